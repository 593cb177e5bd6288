"""The language models of the service: which one answers, what happens when it does not."""

import asyncio
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import openai
import structlog
from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from pydantic import SecretStr

from services.errors import ModelFailed, ModelFailure, Unavailable
from services.llm.failures import EXPECTED, failure_of
from services.llm.lean_openai import LeanChatOpenAI, OnText
from services.llm.offline import OfflineChatModel
from services.platform.breaker import CircuitBreaker
from services.platform.settings import Settings

log = structlog.get_logger(__name__)

_TRIES = 3
_FIRST_PAUSE_S = 0.25
_CONNECT_TIMEOUT_S = 5.0
_TEMPERATURE = 0.3
"""For work behind the answers."""
_FAILED_TURNS = 5
"""After so many turns in a row for which a model was away, it is left alone for some seconds."""

_NAMES_OF_STRUCTURED_OUTPUT = ("response_format", "json_schema", "text.format", "grammar", "structured", "schema")

_AWAY: frozenset[ModelFailure] = frozenset({"llm_unreachable", "llm_timeout", "llm_server_error"})


@dataclass(frozen=True)
class ModelUsage:
    """Tokens of one call, as the endpoint reported them; zeros when it reported none."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0

    @classmethod
    def of(cls, message: AIMessage) -> "ModelUsage":
        """The usage that a message carries."""
        if not (usage := message.usage_metadata):
            return cls()
        cached = (usage.get("input_token_details") or {}).get("cache_read") or 0
        return cls(usage["input_tokens"], usage["output_tokens"], cached)


class ChatModels:
    """Answers through the configured endpoint, or through the built-in offline model."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._responses_api = settings.llm_api == "responses"
        self._runnables: dict[tuple[str, tuple[str, ...]], Runnable[LanguageModelInput, Any]] = {}
        self._breakers: dict[str, CircuitBreaker] = {}
        self._refused_options: set[tuple[str, str]] = set()
        """Models with the options of a request that their endpoint has refused."""
        # A client of the SDK passes its own time-outs on with every request, whatever those of `_http` are.
        self._timeout = openai.Timeout(
            settings.llm_timeout_s, connect=min(_CONNECT_TIMEOUT_S, settings.llm_timeout_s)
        )
        self._http = None if settings.offline else openai.DefaultAioHttpClient(timeout=self._timeout)

    @property
    def default_model(self) -> str:
        """The name of the model that answers when an expert names none."""
        return self._settings.llm_model or OfflineChatModel.NAME

    async def answer(
        self,
        messages: Sequence[BaseMessage],
        *,
        on_text: OnText,
        model: str | None = None,
        tools: Sequence[BaseTool] = (),
    ) -> AIMessage:
        """Stream one answer into `on_text` and return it whole.

        Before the first text has arrived a passing failure is tried again, up to three times with
        exponential back-off, and then the fallback models are asked. After it nothing is asked twice.

        Raises:
            ModelFailed: no model answered, or the answer broke off.
        """
        names = [model or self.default_model, *self._settings.llm_fallback_models]
        if self._settings.offline:
            names = [OfflineChatModel.NAME]
        for name in names[:-1]:
            try:
                return await self._unless_away(name, messages, on_text, tools)
            except ModelFailed as failure:
                if failure.begun:
                    raise
                log.warning("model failed, asking the next", model=name, failure=failure.failure)
        return await self._unless_away(names[-1], messages, on_text, tools)

    @property
    def offline(self) -> bool:
        """Whether only the built-in model answers, which understands nothing."""
        return self._settings.offline

    async def complete(
        self,
        messages: Sequence[BaseMessage],
        *,
        temperature: float = _TEMPERATURE,
        response_format: dict[str, Any] | None = None,
    ) -> str:
        """Have the small model answer, for work behind the answers; it is asked once, as jobs are tried again.

        What an endpoint refuses of the temperature and the response format is left out, then and from then on.
        Failures are counted apart from those of turns, so that they cost no turn anything.

        Args:
            messages: the prompt.
            temperature: of sampling, 0 to 2.
            response_format: as Chat Completions takes it; such as `{"type": "json_schema", …}`.

        Raises:
            ModelFailed: it did not answer.
            Unavailable: it is left alone for a moment, after it was away several times.
        """
        name = OfflineChatModel.NAME if self.offline else self._settings.small_llm_model or self.default_model
        options: dict[str, Any] = {"temperature": temperature}
        if response_format is not None:
            options["response_format"] = response_format
        options = {key: value for key, value in options.items() if (name, key) not in self._refused_options}
        async with self._breaker(f"{name} (background)").use():
            left_out: list[str] = []
            while True:
                try:
                    answer = await self._once(name, messages, _ignore, (), **options)
                except ModelFailed as failure:
                    refused = _refused_option(failure, options)
                    if refused is None:
                        raise
                    del options[refused]
                    left_out.append(refused)
                else:
                    self._refused_options.update((name, key) for key in left_out)
                    return answer.text

    @property
    def failing(self) -> list[str]:
        """Models that were away when they were asked last."""
        return sorted(name for name, breaker in self._breakers.items() if breaker.failing)

    async def close(self) -> None:
        """Close the connections to the endpoint."""
        if self._http is not None:
            await self._http.aclose()

    async def _unless_away(
        self, name: str, messages: Sequence[BaseMessage], on_text: OnText, tools: Sequence[BaseTool]
    ) -> AIMessage:
        """Ask a model, unless it has been away for several turns: then the turn does not wait for it again."""
        try:
            async with self._breaker(name).use():
                return await self._with_retries(name, messages, on_text, tools)
        except ModelFailed:
            raise
        except Unavailable as error:
            raise ModelFailed("llm_unreachable", "left alone after it was away for several turns") from error

    def _breaker(self, name: str) -> CircuitBreaker:
        breaker = self._breakers.get(name)
        if breaker is None:
            breaker = self._breakers[name] = CircuitBreaker(name, failures=_FAILED_TURNS, counts=_is_away)
        return breaker

    async def _with_retries(
        self, name: str, messages: Sequence[BaseMessage], on_text: OnText, tools: Sequence[BaseTool]
    ) -> AIMessage:
        for attempt in range(1, _TRIES + 1):
            try:
                return await self._once(name, messages, on_text, tools)
            except ModelFailed as failure:
                # A time-out has cost its whole budget already; another would make the user wait twice.
                again = failure.can_retry and not failure.begun and failure.failure != "llm_timeout"
                if not again or attempt == _TRIES:
                    log.warning("model failed", model=name, failure=failure.failure)
                    # What an endpoint says may quote the prompt or a key.
                    log.debug("model failed", model=name, detail=failure.detail)
                    raise
            await asyncio.sleep(_FIRST_PAUSE_S * 2 ** (attempt - 1) * random.uniform(0.8, 1.2))  # noqa: S311
        raise AssertionError("unreachable")

    async def _once(
        self,
        name: str,
        messages: Sequence[BaseMessage],
        on_text: OnText,
        tools: Sequence[BaseTool],
        **options: Any,
    ) -> AIMessage:
        heard: list[str] = []

        def note_and_pass_on(text: str) -> None:
            heard.append(text)
            on_text(text)

        model = await self._runnable(name, tools)
        try:
            answer = await model.ainvoke(list(messages), on_text=note_and_pass_on, **options)
        except EXPECTED as error:
            raise failure_of(error, responses_api=self._responses_api, begun=bool(heard)) from error
        if not isinstance(answer, AIMessage) or not (heard or (answer.tool_calls and tools)):
            raise ModelFailed("llm_bad_response", "neither text nor tool calls that it may make")
        if answer.tool_calls and not tools:  # what it was not offered it may have been told to call by a document
            return answer.model_copy(update={"content": "".join(heard), "tool_calls": [], "additional_kwargs": {}})
        if heard and not answer.text:  # it declined, in words that the APIs keep apart from the text
            return answer.model_copy(update={"content": "".join(heard)})
        return answer

    async def _runnable(self, name: str, tools: Sequence[BaseTool]) -> Runnable[LanguageModelInput, Any]:
        """The model with the tools bound: made once, as describing tools costs more than calling the model."""
        key = (name, tuple(tool.name for tool in tools))
        if key not in self._runnables:
            # In a thread: making a client reads the system's certificates from disk.
            model = OfflineChatModel() if self._settings.offline else await asyncio.to_thread(self._make, name)
            self._runnables[key] = model.bind_tools(tools) if tools else model
        return self._runnables[key]

    def _make(self, name: str) -> LeanChatOpenAI:
        settings = self._settings
        return LeanChatOpenAI(
            model=name,
            base_url=settings.llm_base_url,
            api_key=settings.llm_api_key or SecretStr("none"),
            use_responses_api=self._responses_api,
            use_previous_response_id=False,
            # Ask the provider to keep nothing: what we remember is ours.
            store=False if self._responses_api else None,
            stream_usage=True,
            max_retries=0,  # here they are counted together with those after the headers
            timeout=self._timeout,
            http_async_client=self._http,
        )


def _ignore(_: str) -> None:
    """Nobody reads along."""


def _refused_option(failure: ModelFailed, options: Mapping[str, Any]) -> str | None:
    """Return the option to leave out of a request that failed; None where the failure has other reasons."""
    detail = failure.detail.casefold()
    if failure.failure == "llm_rejected" and "temperature" in detail and "temperature" in options:
        return "temperature"  # models that reason take none
    # Servers without structured output name it in many ways, or break on the schema.
    names_it = any(word in detail for word in _NAMES_OF_STRUCTURED_OUTPUT)
    if failure.failure == "llm_rejected" or (failure.failure == "llm_server_error" and names_it):
        return "response_format" if "response_format" in options else None
    return None


def _is_away(error: Exception) -> bool:
    return isinstance(error, ModelFailed) and error.failure in _AWAY
