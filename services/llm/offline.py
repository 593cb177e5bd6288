"""The built-in offline model: it answers by quoting the prompt's context, and says so.

It exists so that newcomers see memory work without a key, and so that tests are deterministic. It understands
nothing: it finds the sentences that share the rarest words with the question, lists what is remembered about the
user, and calls tools only for plain requests.
"""

import json
import re
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, ClassVar

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolCall
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.tool import tool_call, tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from services.llm.message_form import OnText
from services.llm.offline_prompt import read_prompt
from services.llm.offline_replies import closest, reply_to
from services.llm.token_estimates import count_tokens
from services.text.lexical import stems

_ENOUGH_SHARED_WORDS = 2
_POLITE = r"(?:please|kindly|hey|hi|ok(?:ay)?|now|and|also|can you|could you|would you|will you)[,:]?\s+"
_POLITE_ZH = r"(?:请|請|麻烦|麻煩|帮我|幫我|帮忙|幫忙|你|您|能不能|可以|现在|現在)*"

_REMEMBER = (
    rf"^(?:{_POLITE})*(?:remember|make a note|take a note|note down|keep in mind|bear in mind)\b"
    rf"(?: (?:this|that|of))?[,:]?\s+(?!when\b|how\b|the time\b)(?P<what>[^?]+)$",
    rf"^{_POLITE_ZH}(?:记住|記住|记一下|記一下|记下|記下|备忘)(?:一下|来|來)?[：:，,\s]*(?P<what>[^?？]+)$",
)
_FORGET = (
    rf"^(?:{_POLITE})*(?:forget|delete|erase|remove)\b"
    rf"(?: (?:what (?:i|you) (?:said|know) about|everything about|all about|about|that))?\s+"
    rf"(?!it\b\W*$|to\b)(?P<what>[^?]+)$",
    rf"^{_POLITE_ZH}(?:忘掉|忘记|忘記|删掉|刪掉|删除|刪除|忘了(?=我|这|這|那))(?P<what>[^?？]+)$",
)
_SEARCH = (
    r"\b(?:search|look (?:in|through|into)|check|go through)\b.{0,30}"
    r"\b(?:memory|memories|conversations|chats?|chat history|what (?:i|we) said)\b",
    r"(?:搜|查|翻|找)(?:索|一下|一查|找)?.{0,8}(?:记忆|記憶|聊天记录|聊天記錄|历史对话|歷史對話|以前的对话)",
)

_TRIGGERS: dict[str, tuple[str, ...]] = {
    "remember": _REMEMBER,
    "core_memory_update": _REMEMBER,
    "forget": _FORGET,
    "search_memory": _SEARCH,
    "get_current_time": (
        r"\bwhat(?:'s| is| are)?\b.{0,20}\b(?:time|date|day|weekday)\b.{0,20}(?:\bit\b|\btoday\b|\bnow\b|\bis\b)"
        r"|\b(?:current|local) (?:time|date)\b|\btime in [A-Z]",
        r"几点(?:了|钟)?[?？]?$|(?:今天|现在).{0,4}(?:几号|星期几|周几|日期|时间)|什么时间了",
    ),
    "get_weather": (
        r"\bweather\b|\bforecast\b|\b(?:will|is|does) it (?:be )?(?:rain|snow|sunny|warm|cold)",
        r"天气|天氣|气温|氣溫|(?:会|會)(?:下雨|下雪)",
    ),
}
"""The tools of the service, and the messages that trigger each. The first that matches is called; a tool without
triggers never. Other tools are chosen by the words that they share with the message."""


def choose_tool(
    tools: Sequence[dict[str, Any]], tool_choice: str | None, question: str
) -> tuple[dict[str, Any], str] | None:
    """Return the tool to call, and the text for its arguments; None if none is called."""
    if not tools or tool_choice == "none":
        return None
    if tool_choice and tool_choice != "auto":
        return next((tool for tool in tools if _name(tool) == tool_choice), tools[0]), question
    for tool in tools:
        for pattern in _TRIGGERS.get(_name(tool), ()):
            if found := re.search(pattern, question.strip(), re.IGNORECASE):
                what = (found.groupdict().get("what") or question).strip()
                return tool, what
    others = [tool for tool in tools if _name(tool) not in _TRIGGERS]
    asked = set(stems(question))
    best = max(others, key=lambda tool: len(asked & _words_of(tool)), default=None)
    if best is None or len(asked & _words_of(best)) < _ENOUGH_SHARED_WORDS:
        return None
    return best, question


def call_of(tool: dict[str, Any], text: str) -> ToolCall:
    """Return a call of the tool with `text` for its required arguments; the same text gives the same call."""
    schema = tool["function"].get("parameters") or {}
    fields: dict[str, Any] = schema.get("properties") or {}
    required = schema.get("required") or [name for name in fields if _is_text(fields[name])][:1]
    arguments = {name: _argument(fields[name], text) for name in required if name in fields}
    identity = uuid.uuid5(uuid.NAMESPACE_OID, _name(tool) + json.dumps(arguments, sort_keys=True))
    return tool_call(name=_name(tool), args=arguments, id=f"call_{identity.hex[:24]}")


def _name(tool: dict[str, Any]) -> str:
    return str(tool["function"]["name"])


def _words_of(tool: dict[str, Any]) -> set[str]:
    return set(stems(f"{_name(tool).replace('_', ' ')} {tool['function'].get('description', '')}"))


def _is_text(field: dict[str, Any]) -> bool:
    return field.get("type") == "string" or any(each.get("type") == "string" for each in field.get("anyOf", ()))


def _argument(field: dict[str, Any], text: str) -> Any:
    if "enum" in field:
        return field["enum"][0]
    note = {"notes": [text]} if field.get("additionalProperties") is True else {}
    values = {"string": text, "integer": 0, "number": 0.0, "boolean": False, "array": [], "object": note}
    return values.get(field.get("type", "string"), text)


_PIECE = re.compile(r"(?<!\s)\s*(?:[^\s\u3400-\u9fff]+|[\u3400-\u9fff]{1,4})")


class OfflineChatModel(BaseChatModel):
    """A deterministic extractive chat model: streaming, tool calls and structured output included."""

    NAME: ClassVar[str] = "offline-extractive"

    @property
    def _llm_type(self) -> str:
        return self.NAME

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Offer tools; with `tool_choice` the answer is a call of that tool (or of the first, for `any`)."""
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], tool_choice=tool_choice, **kwargs)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        *,
        on_text: OnText | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        reply = _reply(messages, kwargs.get("tools") or [], kwargs.get("tool_choice"))
        for piece in _pieces(reply.text):
            if on_text:
                on_text(piece)
        return ChatResult(generations=[ChatGeneration(message=reply)])

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return self._generate(messages, stop, None, **kwargs)

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        *,
        on_text: OnText | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        reply = _reply(messages, kwargs.get("tools") or [], kwargs.get("tool_choice"))
        for piece in _pieces(reply.text):
            if on_text:
                on_text(piece)
            yield ChatGenerationChunk(message=AIMessageChunk(content=piece))
        calls = [
            tool_call_chunk(
                name=call["name"],
                args=json.dumps(call["args"], ensure_ascii=False),
                id=call["id"],
                index=index,
            )
            for index, call in enumerate(reply.tool_calls)
        ]
        yield ChatGenerationChunk(
            message=AIMessageChunk(content="", tool_call_chunks=calls, usage_metadata=reply.usage_metadata)
        )


def _reply(messages: list[BaseMessage], tools: list[dict[str, Any]], tool_choice: str | None) -> AIMessage:
    prompt = read_prompt(messages)
    told = prompt.results or prompt.days or prompt.changes
    content, calls = "", []
    if not told and (chosen := choose_tool(tools, tool_choice, prompt.question)):
        tool, what = chosen
        quotes = closest(prompt)
        calls = [call_of(tool, quotes[0] if quotes else what)]
    else:
        content = reply_to(prompt)
    size = sum(count_tokens(message.text) for message in messages)
    answer = count_tokens(content)
    usage = UsageMetadata(input_tokens=size, output_tokens=answer, total_tokens=size + answer)
    return AIMessage(content=content, tool_calls=calls, usage_metadata=usage)


def _pieces(text: str) -> list[str]:
    """Yield the text a word, or a few Chinese characters, at a time."""
    pieces = _PIECE.findall(text)
    return pieces if "".join(pieces) == text else [text] if text else []
