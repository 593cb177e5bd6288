"""The language models of the service: chooses which one answers, with retries and fallbacks."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import Any

import structlog
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.tools import BaseTool

from services.errors import ModelFailed, ModelFailure, Unavailable
from services.llm.endpoint import ESTIMATED, ModelEndpoint
from services.llm.giving_way import LEFT_OUT, GivingWay, Refusals, refused_option
from services.llm.offline import OfflineChatModel
from services.llm.request_form import MessageForm, OnText, Option, Tool, limited
from services.llm.shorter_prompts import without_context
from services.platform.patience import REST_S, CircuitBreaker
from services.platform.settings import Settings
from services.text.secrets import Secrets
from state.turn import Sampling

log = structlog.get_logger(__name__)

_TRIES = 3
_PAID_TRIES = 2
"""Maximum number of tries that are billed and yield no answer."""
_FIRST_PAUSE_S = 0.25
_LONGEST_WAIT_S = 10.0
"""Maximum seconds that one answer waits between tries. If an endpoint asks for a longer wait, the caller is told
it."""
BACKGROUND_TEMPERATURE = 0.3
"""Sampling temperature for calls in the background."""
_FAILED_TURNS = 5
"""Consecutive turns for which a model was unavailable, after which it is not asked for some seconds."""

_VALUED: frozenset[Option] = frozenset({"tools", "temperature", "response_format"})
"""Options that take a value; the others are switches."""

_NOTHING: frozenset[Option] = frozenset()
_TOOLS: frozenset[Option] = frozenset({"tools"})

_Ask = Callable[..., Awaitable[AIMessage]]
"""Asks the named model once. Its answer has to begin within some seconds."""

_MAY_BE_CONTEXT: frozenset[ModelFailure] = frozenset({"llm_content_refused", "llm_context_too_long"})
"""Failures that something in the conversation, in memory or in a tool's result may have caused. Other refusals may
have such a cause too, if the model has answered before."""
_AWAY: frozenset[ModelFailure] = frozenset({"llm_unreachable", "llm_timeout", "llm_server_error"})


@dataclass(frozen=True)
class ModelUsage:
    """Tokens of one call, as the endpoint reported them."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    estimated: bool = False
    """Whether the numbers are estimates, because the endpoint reported none."""

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
        self, settings: Settings, *, first_pause_s: float = _FIRST_PAUSE_S, rest_s: float = REST_S
    ) -> None:
        """Take the settings.

        Args:
            first_pause_s: Seconds before a failed call is repeated; doubled before each further time.
            rest_s: Seconds for which a model that keeps failing is not asked.
        """
        self._settings = settings
        self.offline = settings.offline
        """Whether only the built-in model answers."""
        self._first_pause_s = first_pause_s
        self._rest_s = rest_s
        self._endpoint = ModelEndpoint(settings)
        self._secrets = Secrets(settings.memory_keep_secrets)
        self._refusals = Refusals()
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
        told_calls: Collection[str] = (),
        sampling: Sampling | None = None,
        most_tokens: int | None = None,
    ) -> AIMessage:
        """Stream one answer into `on_text` and return it whole.

        `tool_options` say how the tools may be called, as Chat Completions has it; calls of `told_calls` are
        passed on as they come. The answer ends at
        `most_tokens`, or earlier if the settings say so. Before the first text arrives, temporary failures are
        retried up to three times with exponential back-off, then the fallback models are asked. A model that says
        nothing in time is asked once more. After the first text nothing is retried. A model that refuses one of
        the caller's parameters (`sampling`) has failed.

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
            told_calls=told_calls,
        )
        failed: list[tuple[str, ModelFailed]] = []
        for name in names:
            try:
                return await self._unless_away(name, ask)
            except ModelFailed as failure:
                if failure.begun:
                    raise
                failed.append((name, failure))
                if name != names[-1]:
                    log.warning("model failed, asking the next", model=name, failure=failure.failure)
        refused = next((each for each in failed if each[1].failure in _MAY_BE_CONTEXT), failed[-1])
        return await self._without_context(*refused, ask=ask, messages=messages)

    async def _without_context(
        self,
        name: str,
        refused: ModelFailed,
        *,
        ask: Callable[..., Awaitable[AIMessage]],
        messages: Sequence[BaseMessage],
    ) -> AIMessage:
        """Ask with the message alone, if other parts of the prompt may be the reason for a refusal. Raises
        `ModelFailed` if the message alone is refused as well, or `refused` has another reason."""
        may_be = refused.failure in _MAY_BE_CONTEXT or (
            refused.failure == "llm_rejected" and any(isinstance(each, AIMessage) for each in messages)
        )
        less = without_context(messages) if may_be else None
        if less is None:
            raise refused
        try:
            answer = await self._unless_away(name, partial(ask, messages=less[0]))
        except ModelFailed as failure:
            raise (failure if failure.begun else refused) from refused
        metadata = answer.response_metadata
        told = {**metadata, LEFT_OUT: [less[1], *metadata.get(LEFT_OUT, ())]}
        return answer.model_copy(update={"response_metadata": told})

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
        """Ask a model once with all options, including those it refused before, and remember the result. Raises
        `ModelFailed` if it did not answer."""
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
                option = refused_option(failure, [*options, *own])
                if option is not None:
                    self._refusals.remember(model, option)
                if option is None or option in options or option in refused:
                    raise
                continue  # nobody asked for this option: try again without it
            for option in options:
                self._refusals.forget(model, option)
            return answer

    @property
    def leads_back(self) -> bool:
        """Whether the endpoint is an Anamnesis service, which is not asked."""
        return self._endpoint.leads_back

    def refuse_own_address(self) -> None:
        """Ask no model from now on: the endpoint is an Anamnesis service."""
        self._endpoint.refuse_own_address()

    async def close(self) -> None:
        """Close the connections to the endpoint."""
        await self._endpoint.close()

    async def _unless_away(self, name: str, ask: _Ask) -> AIMessage:
        """Ask a model. If it was unavailable for several turns, fail at once instead of waiting for it."""
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
        patience, hurried = _LONGEST_WAIT_S, name not in self._endpoint.slow
        for attempt in range(1, _TRIES + 1):
            begun = monotonic()
            try:
                return await ask(name, begins_within_s=self._settings.llm_first_token_s if hurried else None)
            except ModelFailed as failure:
                again = failure.can_retry and not failure.begun
                if failure.failure == "llm_timeout":
                    # If a call has used its whole time, a second one would make the user wait twice.
                    again = again and hurried and monotonic() - begun < self._settings.llm_timeout_s
                    hurried = False
                # An unusable answer was paid for; one with a call in its text was already tried twice.
                paid = failure.failure == "llm_bad_response"
                again = again and failure.topic != "calls" and not (paid and attempt >= _PAID_TRIES)
                pause = self._first_pause_s * 2 ** (attempt - 1) * random.uniform(0.8, 1.2)  # noqa: S311
                pause = max(pause, failure.retry_after_s or 0.0)
                again = again and pause <= patience
                if not again or attempt == _TRIES:
                    log.warning(
                        "model failed",
                        model=name,
                        failure=failure.failure,
                        reason=failure.detail,
                        advice=failure.message,
                    )
                    raise
            patience -= pause
            await asyncio.sleep(pause)
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
        told_calls: Collection[str] = (),
        begins_within_s: float | None = None,
    ) -> AIMessage:
        """Ask once; if the endpoint refuses a part of the request, ask again at once without it."""
        if self._settings.llm_messages == "compatible" and not self.offline:
            options = {**options, "system_role": True}
        options = {**options, **dict.fromkeys(self._own_options(messages), True)}
        request = GivingWay(
            name,
            messages,
            options,
            sampling,
            refusals=self._refusals,
            leaves_out=partial(self._leaves_out, name),
            keeps=_NOTHING if self._settings.llm_tools == "auto" else _TOOLS,
        )
        while True:
            form: MessageForm | None = "user_only" if "system_role" in request.left_out else None
            given = {option: value for option, value in request.options.items() if option in _VALUED}
            try:
                answer = await self._endpoint.ask(
                    name,
                    request.messages,
                    on_text=on_text,
                    sampling=request.sampling,
                    form=form,
                    without=request.left_out,
                    tool_options=tool_options if "tools" in given else None,
                    told_calls=told_calls,
                    begins_within_s=begins_within_s,
                    **given,
                )
            except ModelFailed as failure:
                if not request.give_way(failure):
                    raise
                if failure.begun:
                    on_text("\n\n")
                continue
            return request.answered(answer)

    def _own_options(self, messages: Sequence[BaseMessage]) -> list[Option]:
        return [] if self.offline else self._endpoint.own_options(messages)

    def _leaves_out(self, name: str, option: Option) -> bool:
        if option == "tools":
            return not self.offline and not self.takes_tools(name)
        return self._refusals.refuses(name, option)


def _is_away(error: Exception) -> bool:
    return isinstance(error, ModelFailed) and error.failure in _AWAY
