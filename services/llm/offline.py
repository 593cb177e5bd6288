"""The built-in offline model: it answers by quoting the prompt's context, and says so.

It exists so that a newcomer sees memory work without a key, and so that tests are deterministic. It
knows nothing and understands nothing: it finds the sentences that share the rarest words with the
question.
"""

import json
import math
import re
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, ClassVar

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.tool import tool_call, tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from services.llm.lean_openai import OnText
from services.llm.lexical import words
from services.llm.tokens import count_tokens

_RECALLED = re.compile(r"^- \[\d{4}-\d\d-\d\d(?: \d\d:\d\d)?\] [^:：]{1,40}: ")
"""Before what was said in another conversation the prompt says when, and who said it."""
_OWN_ANSWER = re.compile(r"^(?:- \[\d{4}-\d\d-\d\d(?: \d\d:\d\d)?\]| ) (?:You|你): .*$", re.MULTILINE)
"""Of what is recalled, what the expert said itself."""
_DAY = re.compile(r"^- \[(?:[A-Z][a-z]+day, [\d-]+|\d+年\d+月\d+日星期.)\] (.+)$", re.MULTILINE)
"""What is told of a day that the question asks about."""
_ABOUT_DAYS = re.compile(r"^(?:The user asks about what was said on|用户问的是).*$", re.MULTILINE)
"""Before the days stands what is asked; it answers nothing."""
_SENTENCE = re.compile(r"[^.!?。！？\n]+[.!?。！？]*")
_PIECE = re.compile(r"\s*[^\s\u3400-\u9fff]+|\s*[\u3400-\u9fff]{1,4}")
_CHINESE = re.compile(r"[\u3400-\u9fff]")
_QUESTION = re.compile(
    r"[?？]|[吗呢]\s*[。！]?$|什么|哪|谁|几[点号岁个]|多少|怎么|为什么|是否"
    r"|^\s*(what|when|where|which|who|whose|why|how|do|does|did|is|are|can|could|will|tell me)\b",
    re.IGNORECASE,
)
_QUOTES = 2
_ENOUGH_SHARED_WORDS = 2

_TEXTS = {
    "zh": {
        "quote": "（内置离线模型，只会引用已有的内容）最相关的是：{quotes}",
        "tool": "（内置离线模型）工具的结果：{quotes}",
        "nothing": "（内置离线模型，只会引用已有的内容）在我看到的内容里没有找到相关的信息。",
        "noted": "（内置离线模型，没有接入大模型）收到，已记在这段对话里。",
        "mark": "「{}」",
    },
    "en": {
        "quote": "(Built-in offline model: I can only quote what I was given.) The closest I have: {quotes}",
        "tool": "(Built-in offline model.) The tool says: {quotes}",
        "nothing": "(Built-in offline model: I can only quote what I was given.) I found nothing about that.",
        "noted": "(Built-in offline model: no language model is configured.) Noted; it is stored in this "
        "conversation.",
        "mark": "“{}”",
    },
}


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
    question = next((m.text for m in reversed(messages) if isinstance(m, HumanMessage)), "")
    texts = _TEXTS["zh" if _CHINESE.search(question) else "en"]
    results = [m.text for m in _not_spoken_of(messages) if isinstance(m, ToolMessage)]
    content, calls = "", []
    days = [day for m in messages if isinstance(m, SystemMessage) for day in _DAY.findall(m.text)]
    if not results and not days and (tool := _choose(tools, tool_choice, question)):
        calls = [_call(tool, question, messages)]
    elif results:
        told = [*days[:_QUOTES], *results]
        content = texts["tool"].format(quotes=" ".join(texts["mark"].format(each) for each in told))
    elif quotes := _best_sentences(question, _context(messages)) or days[:_QUOTES]:
        content = texts["quote"].format(quotes=" ".join(texts["mark"].format(quote) for quote in quotes))
    else:
        content = texts["nothing" if _QUESTION.search(question) else "noted"]
    prompt = sum(count_tokens(m.text) for m in messages)
    answer = count_tokens(content)
    usage = UsageMetadata(input_tokens=prompt, output_tokens=answer, total_tokens=prompt + answer)
    return AIMessage(content=content, tool_calls=calls, usage_metadata=usage)


def _not_spoken_of(messages: list[BaseMessage]) -> list[BaseMessage]:
    """What has come since the question, and since the model said or called something itself."""
    first = max((i for i, m in enumerate(messages) if isinstance(m, HumanMessage | AIMessage)), default=-1)
    return messages[first + 1 :]


def _context(messages: list[BaseMessage]) -> list[str]:
    """What the user said before, and what the prompt says of memory and documents; not our own answers."""
    last = max((i for i, m in enumerate(messages) if isinstance(m, HumanMessage)), default=0)
    first = 1 if messages and isinstance(messages[0], SystemMessage) else 0  # the expert's instructions
    said = [m.text for m in messages[first:last] if not isinstance(m, AIMessage)]
    return [_ABOUT_DAYS.sub("", _DAY.sub("", _OWN_ANSWER.sub("", text))) for text in said]


def _best_sentences(question: str, context: list[str]) -> list[str]:
    """The sentences that share the rarest words with a question; none for what is not a question."""
    if not _QUESTION.search(question):
        return []
    sentences = [_RECALLED.sub("", s.strip()) for text in context for s in _SENTENCE.findall(text) if s.strip()]
    sentences = [s for s in dict.fromkeys(sentences) if not _QUESTION.search(s)]
    seen = Counter(word for sentence in sentences for word in set(_stems(sentence)))
    wanted = set(_stems(question))

    def score(sentence: str) -> float:
        return sum(math.log(1 + len(sentences) / seen[word]) for word in wanted & set(_stems(sentence)))

    scored = [(score(sentence), index, sentence) for index, sentence in enumerate(sentences)]
    best = sorted((row for row in scored if row[0] > 0), key=lambda row: (-row[0], -row[1]))[:_QUOTES]
    return [row[2] for row in best if row[0] >= best[0][0] / 2]


def _stems(text: str) -> list[str]:
    """Words without the commonest English endings, so that `lives` meets `live`."""
    return [re.sub(r"(?<=\w{3})(ing|ed|es|s|e)$", "", word) for word in words(text)]


def _choose(tools: list[dict[str, Any]], tool_choice: str | None, question: str) -> dict[str, Any] | None:
    """The tool that was demanded, or the one whose name and description share the most words with the question."""
    if not tools or tool_choice == "none":
        return None
    if tool_choice and tool_choice != "auto":
        return next((tool for tool in tools if tool["function"]["name"] == tool_choice), tools[0])
    asked = set(_stems(question))

    def shared(tool: dict[str, Any]) -> int:
        function = tool["function"]
        return len(asked & set(_stems(f"{function['name'].replace('_', ' ')} {function.get('description', '')}")))

    best = max(tools, key=shared)
    return best if shared(best) >= _ENOUGH_SHARED_WORDS else None


def _call(tool: dict[str, Any], question: str, messages: list[BaseMessage]) -> Any:
    schema = tool["function"].get("parameters") or {}
    required = schema.get("required") or []
    quotes = _best_sentences(question, _context(messages))
    arguments = {
        name: _argument(field, quotes[0] if quotes else question)
        for name, field in (schema.get("properties") or {}).items()
        if name in required
    }
    # The same prompt gives the same call.
    identity = uuid.uuid5(uuid.NAMESPACE_OID, tool["function"]["name"] + question + str(len(messages)))
    return tool_call(name=tool["function"]["name"], args=arguments, id=f"call_{identity.hex[:24]}")


def _argument(field: dict[str, Any], text: str) -> Any:
    if "enum" in field:
        return field["enum"][0]
    note = {"notes": [text]} if field.get("additionalProperties") is True else {}
    values = {"string": text, "integer": 0, "number": 0.0, "boolean": False, "array": [], "object": note}
    return values.get(field.get("type", "string"), text)


def _pieces(text: str) -> list[str]:
    """The text a word, or a few Chinese characters, at a time."""
    pieces = _PIECE.findall(text)
    return pieces if "".join(pieces) == text else [text] if text else []
