"""The built-in offline model: it answers by quoting the prompt's context, and says so.

It exists so that newcomers see memory work without a key. It understands nothing and calls no tools: it finds the
sentences that share the rarest words with the question, and lists what is remembered about the user.
"""

import re
from collections.abc import AsyncIterator
from typing import Any, ClassVar

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult

from services.llm.offline_prompt import read_prompt
from services.llm.offline_replies import reply_to
from services.llm.request_form import OnText
from services.llm.token_estimates import count_tokens

_PIECE = re.compile(r"(?<!\s)\s*(?:[^\s\u3400-\u9fff]+|[\u3400-\u9fff]{1,4})")


class OfflineChatModel(BaseChatModel):
    """A deterministic extractive chat model."""

    NAME: ClassVar[str] = "offline-extractive"

    @property
    def _llm_type(self) -> str:
        return self.NAME

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        *,
        on_text: OnText | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        reply = _reply(messages)
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
        reply = _reply(messages)
        for piece in _pieces(reply.text):
            if on_text:
                on_text(piece)
            yield ChatGenerationChunk(message=AIMessageChunk(content=piece))
        yield ChatGenerationChunk(message=AIMessageChunk(content="", usage_metadata=reply.usage_metadata))


def _reply(messages: list[BaseMessage]) -> AIMessage:
    content = reply_to(read_prompt(messages))
    size = sum(count_tokens(message.text) for message in messages)
    answer = count_tokens(content)
    usage = UsageMetadata(input_tokens=size, output_tokens=answer, total_tokens=size + answer)
    return AIMessage(content, usage_metadata=usage)


def _pieces(text: str) -> list[str]:
    """Yield the text a word, or a few Chinese characters, at a time."""
    pieces = _PIECE.findall(text)
    return pieces if "".join(pieces) == text else [text] if text else []
