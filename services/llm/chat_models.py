"""The language models of the service: chooses which one answers, with retries and fallbacks."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, get_args

import structlog
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.tools import BaseTool

from services.errors import ModelFailed, ModelFailure, Unavailable
from services.llm.endpoint import ESTIMATED, ModelEndpoint
from services.llm.offline import OfflineChatModel
from services.llm.request_form import (
    OPTION_OF,
    MessageForm,
    OnText,
    Option,
    Refusals,
    Tool,
    limited,
    without_tool_messages,
)
from services.platform.patience import REST_S, CircuitBreaker
from services.platform.settings import Settings
from services.text.secrets import Secrets
from state.turn import Sampling

log = structlog.get_logger(__name__)

_TRIES = 3
_FIRST_PAUSE_S = 0.25
BACKGROUND_TEMPERATURE = 0.3
"""For background work."""
_FAILED_TURNS = 5
"""Consecutive turns for which a model was unavailable, after which it is not asked for some seconds."""

_VALUED: frozenset[Option] = frozenset({"tools", "temperature", "response_format"})
"""Options that have a value; the others are there or not."""

_Ask = Callable[[str], Awaitable[AIMessage]]
"""Asks the model of a name once."""

_AWAY: frozenset[ModelFailure] = frozenset({"llm_unreachable", "llm_timeout", "llm_server_error"})


@dataclass(frozen=True)
class ModelUsage:
    """Tokens of one call, as the endpoint reported them."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    estimated: bool = False
    """Whether they are an estimate, because it reported none."""

    @classmethod
    def of(cls, message: AIMessage) -> "ModelUsage":
        """The usage that a message carries."""
        if not (usage := message.usage_metadata):
            return cls()
        cached = (usage.get("input_token_details") or {}).get("cache_read") or 0
        estimated = bool(message.response_metadata.get(ESTIMATED))
        return cls(usage["input_tokens"], usage["output_tokens"], cached, estimated)


def _ignore(_: str) -> None:
    """Ignore the streamed text."""


class ChatModels:
    """Answers through the configured endpoint, or through the built-in offline model."""

    def __init__(
        self,
        settings: Settings,
        refusals: Refusals | None = None,
        *,
        first_pause_s: float = _FIRST_PAUSE_S,
        rest_s: float = REST_S,
    ) -> None:
        """Take the settings.

        Args:
            refusals: what models refused earlier; None = nothing yet.
            first_pause_s: seconds before a failed call is repeated; doubled before each further time.
            rest_s: seconds for which a model that keeps failing is not asked.
        """
        self._settings = settings
        self.offline = settings.offline
        """Whether only the built-in model answers."""
        self._first_pause_s = first_pause_s
        self._rest_s = rest_s
        self._endpoint = ModelEndpoint(settings)
        self._secrets = Secrets(settings.memory_keep_secrets)
        self._refusals = refusals or Refusals()
        self._breakers: dict[str, CircuitBreaker] = {}

    @property
    def default_model(self) -> str:
        """The name of the model that answers when an expert names none."""
        return self._settings.llm_model or OfflineChatModel.NAME

    @property
    def small_model(self) -> str:
        """The name of the model for background work."""
        return OfflineChatModel.NAME if self.offline else self._settings.small_llm_model or self.default_model

    @property
    def failing(self) -> list[str]:
        """Models that were unavailable when last asked."""
        return sorted(name for name, breaker in self._breakers.items() if breaker.failing)

    def has_answered(self, model: str) -> bool:
        """Whether the model has answered since the start."""
        return model in self._endpoint.answered

    def takes_tools(self, model: str | None = None) -> bool:
        """Whether tools are sent to a model: as ANAMNESIS_LLM_TOOLS says, unless it refused them recently."""
        if self.offline or self._settings.llm_tools == "off":
            return False
        return self._settings.llm_tools == "on" or not self._refusals.refuses(model or self.default_model, "tools")

    async def answer(
        self,
        messages: Sequence[BaseMessage],
        *,
        on_text: OnText,
        model: str | None = None,
        tools: Sequence[Tool] = (),
        tool_options: Mapping[str, Any] | None = None,
        sampling: Sampling | None = None,
        most_tokens: int | None = None,
    ) -> AIMessage:
        """Stream one answer into `on_text` and return it whole.

        `tool_options` say how the tools may be called, as Chat Completions has it. The answer ends at
        `most_tokens`, or earlier if the settings say so. Before the first text arrives, temporary failures are
        retried up to three times with exponential back-off, then the fallback models are asked. After it nothing
        is retried. A model that refuses one of the caller's parameters (`sampling`) has failed.

        Raises:
            ModelFailed: no model answered, or the answer broke off.
        """
        names = [model or self.default_model, *self._settings.llm_fallback_models]
        if self.offline:
            names = [OfflineChatModel.NAME]
        sampling = limited(limited(sampling or Sampling(), self._settings.llm_answer_tokens), most_tokens)
        options: dict[Option, Any] = {"tools": tools}
        given = dict(tool_options or {}) if tools else {}
        ask = partial(
            self._once,
            messages=messages,
            on_text=on_text,
            options=options,
            sampling=sampling,
            tool_options=given,
        )
        for name in names[:-1]:
            try:
                return await self._unless_away(name, ask)
            except ModelFailed as failure:
                if failure.begun:
                    raise
                log.warning("model failed, asking the next", model=name, failure=failure.failure)
        return await self._unless_away(names[-1], ask)

    async def complete(
        self,
        messages: Sequence[BaseMessage],
        *,
        temperature: float = BACKGROUND_TEMPERATURE,
        response_format: dict[str, Any] | None = None,
        sampling: Sampling | None = None,
    ) -> str:
        """Have the small model answer, for background work; it is asked once, because jobs are retried.

        Secrets in the prompt are left out. If the endpoint refuses the temperature or the response format (as Chat
        Completions takes it), it is left out, now and for a while. Failures do not count for turns.

        Raises:
            ModelFailed: it did not answer.
            Unavailable: it is not asked for a moment, after it was unavailable several times.
        """
        name = self.small_model
        messages = [
            each.model_copy(update={"content": self._secrets.without_in(each.content)}) for each in messages
        ]
        options: dict[Option, Any] = {"temperature": temperature}
        if response_format is not None:
            options["response_format"] = response_format
        async with self._breaker(f"{name} (background)").use():
            answer = await self._once(
                name, messages=messages, on_text=_ignore, options=options, sampling=sampling or Sampling()
            )
        return answer.text

    async def probe(
        self,
        model: str,
        messages: Sequence[BaseMessage],
        *,
        on_text: OnText = _ignore,
        tools: Sequence[BaseTool] = (),
        response_format: dict[str, Any] | None = None,
        form: MessageForm | None = None,
    ) -> AIMessage:
        """Ask a model once with all options, including those it refused before, and remember the result.

        Raises:
            ModelFailed: it did not answer.
        """
        given: dict[Option, Any] = {"tools": tools, "response_format": response_format}
        options = {option: value for option, value in given.items() if value}
        own = self._own_options(messages)
        while True:
            refused = [option for option in own if self._refusals.refuses(model, option)]
            try:
                answer = await self._endpoint.ask(
                    model, messages, on_text=on_text, form=form, without=refused, **options
                )
            except ModelFailed as failure:
                option = _refused_option(failure, [*options, *own])
                if option is not None:
                    self._refusals.remember(model, option)
                if option is None or option in options or option in refused:
                    raise
                continue  # it is never asked for: once more without
            for option in options:
                self._refusals.forget(model, option)
            return answer

    def refuse_own_address(self) -> None:
        """Ask no model from now on: the endpoint is an Anamnesis service."""
        self._endpoint.refuse_own_address()

    async def close(self) -> None:
        """Close the connections to the endpoint."""
        await self._endpoint.close()

    async def _unless_away(self, name: str, ask: _Ask) -> AIMessage:
        """Ask a model, unless it has been unavailable for several turns: then this turn does not wait for it."""
        try:
            async with self._breaker(name).use():
                return await self._with_retries(name, ask)
        except ModelFailed:
            raise
        except Unavailable as error:
            raise ModelFailed("llm_unreachable", "left alone after it was away for several turns") from error

    def _breaker(self, name: str) -> CircuitBreaker:
        breaker = self._breakers.get(name)
        if breaker is None:
            breaker = self._breakers[name] = CircuitBreaker(
                name, failures=_FAILED_TURNS, rest_s=self._rest_s, counts=_is_away
            )
        return breaker

    async def _with_retries(self, name: str, ask: _Ask) -> AIMessage:
        for attempt in range(1, _TRIES + 1):
            try:
                return await ask(name)
            except ModelFailed as failure:
                # A time-out has already used its whole budget; another would make the user wait twice.
                again = failure.can_retry and not failure.begun and failure.failure != "llm_timeout"
                if not again or attempt == _TRIES:
                    log.warning(
                        "model failed",
                        model=name,
                        failure=failure.failure,
                        reason=failure.detail,
                        advice=failure.message,
                    )
                    raise
            await asyncio.sleep(self._first_pause_s * 2 ** (attempt - 1) * random.uniform(0.8, 1.2))  # noqa: S311
        raise AssertionError("unreachable")

    async def _once(
        self,
        name: str,
        *,
        messages: Sequence[BaseMessage],
        on_text: OnText,
        options: dict[Option, Any],
        sampling: Sampling,
        tool_options: Mapping[str, Any] | None = None,
    ) -> AIMessage:
        """Ask once; if the endpoint refuses an option, ask again at once without it.

        An option counts as refused only when the request without it is answered. The caller's own parameters
        (`sampling`) are never left out.
        """
        if self._settings.llm_messages == "compatible" and not self.offline:
            options = {**options, "system_role": True}
        options = {**options, **dict.fromkeys(self._own_options(messages), True)}
        left_out = [option for option in get_args(Option) if self._leaves_out(name, option)]
        refused: dict[Option, ModelFailed] = {}
        while True:
            sent = {option: value for option, value in options.items() if option not in left_out}
            form: MessageForm | None = "user_only" if "system_role" in left_out else None
            given = {option: value for option, value in sent.items() if option in _VALUED}
            try:
                answer = await self._endpoint.ask(
                    name,
                    without_tool_messages(messages) if "tools" in left_out else messages,
                    on_text=on_text,
                    sampling=sampling,
                    form=form,
                    without=left_out,
                    tool_options=tool_options if "tools" in given else None,
                    **given,
                )
            except ModelFailed as failure:
                option = _refused_option(failure, sent)
                if option is None or (option == "tools" and self._settings.llm_tools != "auto"):
                    raise
                refused[option] = failure
                left_out.append(option)
                continue
            for option, refusal in refused.items():
                self._refusals.remember(name, option)
                setting = {"setting": "ANAMNESIS_LLM_TOOLS=off"} if option == "tools" else {}
                log.warning("model refuses an option", model=name, option=option, reason=refusal.detail, **setting)
            return answer

    def _own_options(self, messages: Sequence[BaseMessage]) -> list[Option]:
        return [] if self.offline else self._endpoint.own_options(messages)

    def _leaves_out(self, name: str, option: Option) -> bool:
        if option == "tools":
            return not self.offline and not self.takes_tools(name)
        return self._refusals.refuses(name, option)


def _refused_option(failure: ModelFailed, sent: Collection[Option]) -> Option | None:
    """Return the option to leave out of a request that failed; None if the failure has other reasons."""
    option = OPTION_OF.get(failure.topic) if failure.topic else None
    if option == "reasoning" and option not in sent:  # it is missed
        option = "bare_calls"
    # Servers without structured output report it in many ways, or not at all.
    if option is None and failure.failure == "llm_rejected":
        option = "response_format"
    return option if option in sent else None


def _is_away(error: Exception) -> bool:
    return isinstance(error, ModelFailed) and error.failure in _AWAY
