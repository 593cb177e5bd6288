"""The built-in offline model: it answers by quoting the prompt's context, and says so.

It exists so that newcomers see memory work without a key, and so that tests are deterministic. It understands
nothing: it finds the sentences that share the rarest words with the question, lists what is remembered about the
user, and calls tools only for plain requests.
"""

import json
import re
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, ClassVar

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
)
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from services.llm.message_form import OnText
from services.llm.offline_prompt import read_prompt
from services.llm.offline_replies import closest, reply_to
from services.llm.offline_tools import call_of, choose_tool
from services.llm.token_estimates import count_tokens

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
