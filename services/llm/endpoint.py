"""The configured endpoint, or the built-in offline model: one request, without retries."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import structlog
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage, SystemMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from pydantic import SecretStr

from services.errors import ModelFailed, ModelFailure
from services.llm.calls import EnoughSaid, Heard, finish_of, observed_call
from services.llm.endpoint_messages import secrets_of
from services.llm.offline import OfflineChatModel
from services.llm.request_form import (
    LENGTHS,
    MessageForm,
    OnText,
    Option,
    Tool,
    call_options,
    in_form,
    tool_schema,
)
from services.llm.shorter_prompts import images_of
from services.llm.streams.answer import REASONING, UNUSABLE_CALL
from services.llm.streams.text import ThinkStyles
from services.llm.token_estimates import IMAGE_TOKENS, MESSAGE_OVERHEAD, count_tokens
from services.platform import span_names as names
from services.platform.proxies import OPENAI, proxy_for, through
from services.platform.settings import Settings
from state.turn import Sampling

if TYPE_CHECKING:
    import httpx2

    from services.llm.lean_openai import LeanChatOpenAI

_NOT_THERE = (404, 405)
_LEFT_OUT = {"stream_options": "stream_usage", "reasoning": "with_reasoning", "bare_calls": "with_bare_calls"}
"""For each part that can be left out of a request, the client's argument that is False then."""
ESTIMATED = "usage_estimated"
"""Key of a message's metadata: whether its usage is an estimate."""


log = structlog.get_logger(__name__)

_AWAY: frozenset[ModelFailure] = frozenset(
    {"llm_unreachable", "llm_timeout", "llm_server_error", "llm_bad_response", "llm_rejected"}
)
"""Failures that a proxy in between may have caused."""


class ModelEndpoint:
    """Sends requests to the endpoint's models and classifies their failures."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._offline = settings.offline
        self._base_url = settings.llm_base_url
        self._responses_api = settings.llm_api == "responses"
        self._secrets = secrets_of(settings)
        self._runnables: dict[tuple[str, tuple[str, ...]], Runnable[LanguageModelInput, Any]] = {}
        self._schemas: dict[str, tuple[BaseTool, dict[str, Any]]] = {}
        """Descriptions of the service's tools under other names, used while the client brings a tool of the same
        name."""
        self.answered: set[str] = set()
        """Models that have answered since the start."""
        self.slow: set[str] = set()
        """Models whose last answer began later than ANAMNESIS_LLM_FIRST_TOKEN_S."""
        self._http: httpx2.AsyncClient | None = None
        self._making = asyncio.Lock()
        self._think_styles = ThinkStyles(settings.data_dir / "think_styles.json")
        self.leads_back = False
        """Whether the endpoint is an Anamnesis service, so that the service would call itself without end."""

    async def ask(
        self,
        model: str,
        messages: Sequence[BaseMessage],
        *,
        on_text: OnText,
        tools: Sequence[Tool] = (),
        tool_options: Mapping[str, Any] | None = None,
        told_calls: Collection[str] = (),
        temperature: float | None = None,
        response_format: dict[str, Any] | None = None,
        sampling: Sampling | None = None,
        form: MessageForm | None = None,
        without: Collection[Option] = (),
        begins_within_s: float | None = None,
    ) -> AIMessage:
        """Stream one answer into `on_text` and return it whole.

        Args:
            model: The model's name; the offline model answers to any.
            tool_options: How the tools may be called, as Chat Completions has it.
            told_calls: Names of the tools whose calls are passed on as they come.
            response_format: As Chat Completions takes it, such as `{"type": "json_schema", …}`.
            sampling: The caller's own parameters.
            form: Of the messages; None = as ANAMNESIS_LLM_MESSAGES says.
            without: Parts of the request to leave out.
            begins_within_s: Seconds for the first bytes of the response; None = as for any others.

        Raises:
            ModelFailed: the model did not answer, or the answer broke off.
        """
        heard = Heard(on_text, self._settings.llm_answer_characters, told_calls)
        provider = names.OFFLINE if self._offline else names.OPENAI
        with observed_call(model, provider, heard):
            given = {"temperature": temperature, "response_format": response_format}
            options = {name: value for name, value in given.items() if value is not None}
            options |= call_options(sampling or Sampling(), responses_api=self._responses_api)
            options |= {argument: False for option, argument in _LEFT_OUT.items() if option in without}
            options |= tool_options or {}
            ask = partial(
                self._answer, model, messages, heard, tools, options, sampling or (), form, begins_within_s
            )
            if self.leads_back:
                raise self._told(ModelFailed("llm_own_address"))
            answer = heard.answer = _with_usage(await self._despite_missing_v1(ask), heard.prompt)
            return answer

    def _told(self, failed: ModelFailed) -> ModelFailed:
        """Add to a failure where the model was chosen: on the screen or by a variable."""
        if self._settings.from_console("llm_model"):
            failed.name_screen()
        return failed

    def refuse_own_address(self) -> None:
        """Send no more requests: the endpoint is an Anamnesis service, so that the service would call itself
        without end."""
        self.leads_back = True

    async def _despite_missing_v1(self, ask: Callable[[], Awaitable[AIMessage]]) -> AIMessage:
        """Ask. If the address has no path and nothing is found there, ask once more below `/v1`."""
        try:
            return await ask()
        except ModelFailed as failed:
            if not _is_nothing_there(failed) or self._base_url is None or urlsplit(self._base_url).path.strip("/"):
                raise
            given = self._base_url
            self._use(f"{given.rstrip('/')}/v1")
            try:
                return await ask()
            except ModelFailed as again:
                if not _is_nothing_there(again):
                    raise
                self._use(given)
                raise failed from failed.__cause__
            finally:
                if self._base_url != given:
                    log.warning("ANAMNESIS_LLM_BASE_URL lacks its /v1", used=self._base_url)

    def _use(self, base_url: str) -> None:
        self._base_url = base_url
        self._runnables.clear()

    def own_options(self, messages: Sequence[BaseMessage]) -> list[Option]:
        """Return the optional parts that a request with these messages contains by default."""
        options: list[Option] = [] if self._responses_api else ["stream_options"]
        if any(REASONING in message.additional_kwargs for message in messages):
            options.append("reasoning")
        called = [each for each in messages if isinstance(each, AIMessage) and each.tool_calls]
        if not self._responses_api and any(REASONING not in each.additional_kwargs for each in called):
            options.append("bare_calls")
        return options

    async def _answer(
        self,
        model: str,
        messages: Sequence[BaseMessage],
        heard: Heard,
        tools: Sequence[Tool],
        options: dict[str, Any],
        sampling: Collection[str],
        form: MessageForm | None,
        begins_within_s: float | None,
    ) -> AIMessage:
        own = [] if any(isinstance(tool, dict) for tool in tools) else tools
        if len(own) < len(tools):  # tools of a client are its request's alone
            options = {"tools": [self._schema(tool) for tool in tools], **options}
        runnable = await self._runnable(model, own)
        prompt = in_form(messages, form or ("native" if self._offline else self._settings.llm_messages))
        heard.prompt = prompt
        sent: set[str] = {*options, *self.own_options(prompt)}
        sent -= {option for option, argument in _LEFT_OUT.items() if options.get(argument) is False}
        sent |= {"tools"} if tools else set()
        sent |= {"images"} if any(map(images_of, prompt)) else set()
        sent |= {"system_role"} if any(isinstance(message, SystemMessage) for message in prompt) else set()
        try:
            answer = await self._begun_in_time(
                partial(runnable.ainvoke, prompt, on_text=heard, **options), model, begins_within_s
            )
        except EnoughSaid:
            self.answered.add(model)
            return AIMessage(heard.said.text, response_metadata={"finish_reason": "length"})
        except Exception as error:
            from services.llm.failures import EXPECTED, failure_of  # noqa: PLC0415 — loaded with the client

            if not isinstance(error, EXPECTED):
                raise
            failure = failure_of(
                error,
                responses_api=self._responses_api,
                begun=heard.passed_on,
                sent=sent,
                sampling=sampling,
                secrets=self._secrets,
                prompt=[message.text for message in prompt],
            )
            failed = self._told(failure)
            if failed.failure in _AWAY and (proxy := through(self._settings.llm_base_url or OPENAI)):
                failed.add_proxy(proxy)
            raise failed from error
        if isinstance(answer, AIMessage):
            heard.answer = _with_usage(answer, prompt)  # what is no answer is paid for, too
        if isinstance(answer, AIMessage) and answer.response_metadata.get(UNUSABLE_CALL) and not answer.tool_calls:
            detail = "a call of a tool, written as text"
            raise ModelFailed("llm_bad_response", detail, begun=heard.passed_on, topic="calls")
        if not isinstance(answer, AIMessage) or not (heard.said.pieces or (answer.tool_calls and tools)):
            raise _empty(answer, sampling, begun=heard.passed_on)
        self.answered.add(model)
        if answer.tool_calls and not tools:  # a document may have told it to call something it was not offered
            return answer.model_copy(
                update={"content": heard.said.text, "tool_calls": [], "additional_kwargs": {}}
            )
        if (
            heard.said.pieces and not answer.text
        ):  # it declined, in words that the APIs keep separate from the text
            return answer.model_copy(update={"content": heard.said.text})
        return answer

    async def _begun_in_time(self, ask: Callable[..., Awaitable[Any]], model: str, within_s: float | None) -> Any:
        """Ask, and note whether the first bytes came late. Raises `TimeoutError` if they did not come within
        these seconds."""
        if self._offline:
            return await ask()
        begun = perf_counter()
        async with asyncio.timeout(within_s) as limit:

            def has_begun() -> None:
                if within_s is not None:
                    limit.reschedule(None)
                late = perf_counter() - begun > self._settings.llm_first_token_s
                (self.slow.add if late else self.slow.discard)(model)

            return await ask(on_begun=has_begun)

    async def close(self) -> None:
        """Close the connections."""
        if self._http is not None:
            await self._http.aclose()

    def _schema(self, tool: Tool) -> dict[str, Any]:
        """Return the description of a tool. Those of the service's own tools are cached, because making one takes
        longer than sending it."""
        if isinstance(tool, dict):
            return tool
        known = self._schemas.get(tool.name)
        if known is None or known[0] is not tool:
            known = self._schemas[tool.name] = (tool, tool_schema(tool))
        return known[1]

    async def _runnable(self, model: str, tools: Sequence[Tool]) -> Runnable[LanguageModelInput, Any]:
        """Return the model with the tools bound; cached, because describing tools costs more than a call."""
        key = (model, tuple(tool.name for tool in tools if isinstance(tool, BaseTool)))
        if key not in self._runnables:
            if self._offline:
                made: BaseChatModel = OfflineChatModel()
            else:
                async with self._making:
                    # In a thread: the first call imports the SDK, and each reads the system's certificates from
                    # disk.
                    made = await asyncio.to_thread(self._make, model)
            self._runnables[key] = made.bind_tools([tool_schema(tool) for tool in tools]) if tools else made
        return self._runnables[key]

    def _make(self, name: str) -> "LeanChatOpenAI":
        from services.llm import lean_openai  # noqa: PLC0415 — half a second, which a start without a model saves

        settings = self._settings
        if self._http is None:
            proxy = proxy_for(settings.llm_base_url or OPENAI) or ""
            self._http = lean_openai.connections(settings.llm_timeout_s, over_socks=proxy.startswith("socks"))
        return lean_openai.LeanChatOpenAI(
            model=name,
            think_styles=self._think_styles,
            base_url=self._base_url,
            api_key=settings.llm_api_key or SecretStr("none"),
            use_responses_api=self._responses_api,
            use_previous_response_id=False,
            # Ask the provider to store nothing: memory is kept here.
            store=False if self._responses_api else None,
            stream_usage=True,
            max_retries=0,  # retries are counted here, together with those after the headers
            timeout=lean_openai.timeouts(settings.llm_timeout_s),
            http_async_client=self._http,
            http_socket_options=(),  # of a client that is not used; with others it warns of proxies for nothing
        )


def _with_usage(answer: AIMessage, prompt: Sequence[BaseMessage]) -> AIMessage:
    """Return the answer with an estimate of its tokens where the endpoint reported none."""
    if answer.usage_metadata:
        return answer
    asked = sum(MESSAGE_OVERHEAD + count_tokens(message.text) + _images(message) for message in prompt)
    thought = answer.additional_kwargs.get(REASONING, {}).values()
    said = [answer.text, *(each for each in thought if isinstance(each, str))]
    said += [f"{call['name']} {call['args']}" for call in answer.tool_calls]
    answered = sum(map(count_tokens, said))
    usage = UsageMetadata(input_tokens=asked, output_tokens=answered, total_tokens=asked + answered)
    metadata = {**answer.response_metadata, ESTIMATED: True}
    return answer.model_copy(update={"usage_metadata": usage, "response_metadata": metadata})


def _images(message: BaseMessage) -> int:
    parts = message.content if isinstance(message.content, list) else ()
    return IMAGE_TOKENS * sum(1 for part in parts if isinstance(part, dict) and part.get("type") == "image_url")


def _is_nothing_there(failed: ModelFailed) -> bool:
    return getattr(failed.__cause__, "status_code", None) in _NOT_THERE


def _empty(answer: object, sampling: Collection[str], *, begun: bool) -> ModelFailed:
    """Return the failure for an answer that has neither text nor a call that the model may make. `begun` says that
    a call was passed on already and cannot be read."""
    if isinstance(answer, AIMessage) and finish_of(answer) == "content_filter":
        return ModelFailed("llm_content_refused", "the answer ended at the content filter before any text")
    limit = next((name for name in sampling if name in LENGTHS), None)
    if isinstance(answer, AIMessage) and finish_of(answer) == "length":
        detail = "the model used all of it up before it said anything"
        if limit:
            return ModelFailed("llm_parameter_refused", detail, parameter=limit, begun=begun)
        return ModelFailed("llm_only_reasoning", detail, begun=begun)
    detail = "a call of a tool that cannot be read" if begun else "neither text nor tool calls that it may make"
    return ModelFailed("llm_bad_response", detail, begun=begun)
