"""Requests to `POST /v1/chat/completions`: accepted and refused fields."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, cast

from pydantic import BaseModel, ConfigDict, Field

from api.openai.client_message import ClientMessage
from api.openai.client_tools import client_tools
from services.errors import InvalidInput
from services.llm.request_form import ALL, RESPONSES
from services.platform.settings import Settings
from state.client_tools import ClientTools
from state.turn import Sampling

_MOST_MESSAGES = 10_000
_MOST_STOPS = 4
_LONGEST_HEADER = 500

Temperature = Annotated[float | None, Field(ge=0, le=2)]
Share = Annotated[float | None, Field(ge=0, le=1)]
Penalty = Annotated[float | None, Field(ge=-2, le=2)]
TokenCount = Annotated[int | None, Field(ge=1, le=2**31 - 1)]
Word = Annotated[str | None, Field(min_length=1, max_length=32)]
IGNORED_HEADER = "X-Anamnesis-Ignored"
"""Names the parameters of a request that had no effect."""


def parameters_left_out(content: Mapping[str, Any]) -> list[str]:
    """Return the parameters that the model did not know in a turn, from the content of its last event."""
    return [name for name in content.get("degraded", ()) if name in ALL]


def with_left_out(headers: Mapping[str, str], content: Mapping[str, Any]) -> dict[str, str]:
    """Return the headers of an answer, which then also name the parameters that the model did not know."""
    names = [*filter(None, headers.get(IGNORED_HEADER, "").split(", ")), *parameters_left_out(content)]
    return {**headers, **({IGNORED_HEADER: ", ".join(sorted(set(names)))} if names else {})}


class StreamOptions(BaseModel):
    """Further contents of a stream, besides the text."""

    include_usage: bool | None = None


class ModelRequest(BaseModel):
    """Fields that all requests for an answer share. Parameters of the model are checked and passed on."""

    model_config = ConfigDict(extra="allow", strict=True)

    holds_messages: ClassVar[str] = "messages"
    """Name of the request's field that holds the messages."""
    effective: ClassVar[frozenset[str]]
    """Names of the fields that have an effect, or are refused where they cannot have one."""
    parameters: ClassVar[Mapping[str, str]]
    """Fields that are parameters of the model, with their names in Chat Completions."""

    model: str = Field(min_length=1, max_length=256, description="Name of an expert, or an alias of one.")
    stream: bool | None = None
    store: bool | None = Field(None, description="false: a temporary conversation, nothing is stored.")
    user: str | None = Field(None, description="For whom the request is.")
    safety_identifier: str | None = Field(None, description="For whom the request is; counts more than `user`.")
    metadata: dict[str, Any] | None = Field(None, description="`session_id` names the conversation.")
    tools: list[dict[str, Any]] | None = Field(
        None, description="Functions that the client runs itself; the service's own tools are offered beside them."
    )
    tool_choice: str | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    top_logprobs: int | None = None
    temperature: Temperature = None
    top_p: Share = None

    @property
    def client_tools(self) -> ClientTools | None:
        """Return the tools that the client runs; None = the model is offered none of them. Raises `InvalidInput`
        if a tool is not one that a client runs, or the choice names no tool of the request."""
        return client_tools(self.tools, self.tool_choice, parallel=self.parallel_tool_calls)

    def ignored(self, passed: frozenset[str]) -> list[str]:
        """The names of parameters without effect.

        Args:
            passed: parameters that reach the model, as Chat Completions names them.
        """
        effective = {*_EFFECTIVE, *self.effective}
        effective.update(field for field, name in self.parameters.items() if name in passed)
        sent = [*self.model_fields_set, *(self.model_extra or {})]
        return names_in_header(
            {each for each in sent if each not in effective and getattr(self, each) is not None}
        )

    def sampling(self, passed: frozenset[str]) -> Sampling:
        """The parameters that reach the model, of those that may. Raises `InvalidInput` if the form of the
        answer is none, or cannot be asked of the model."""
        raise NotImplementedError

    @property
    def kept_echo(self) -> Mapping[str, Any]:
        """Fields that are stored with the turn, because its answer repeats them."""
        return {}


_EFFECTIVE = frozenset(
    (
        *("model", "stream", "store", "user", "safety_identifier", "metadata", "top_logprobs"),
        *("tools", "tool_choice", "parallel_tool_calls"),
    )
)


def names_in_header(names: Iterable[str]) -> list[str]:
    """Return names of a client that a header can hold; a client may send any name."""
    return sorted(name for name in names if name.isascii() and name.replace("-", "_").isidentifier())


def ignored_header(names: Sequence[str]) -> dict[str, str]:
    """Return the header that names what had no effect; nothing if everything had one."""
    return {IGNORED_HEADER: ", ".join(names)[:_LONGEST_HEADER]} if names else {}


class ChatCompletionRequest(ModelRequest):
    """A chat completion, as OpenAI's clients ask for one. Parameters of the model are checked and passed on."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"model": "default", "messages": [{"role": "user", "content": "Hello!"}], "user": "u-1"}]
        }
    )
    effective = frozenset(
        (
            *("messages", "stream_options", "n", "logprobs", "audio", "modalities", "response_format"),
            *("functions", "function_call"),
        )
    )
    parameters: ClassVar[Mapping[str, str]] = {name: name for name in ALL}

    messages: list[ClientMessage] = Field(min_length=1, max_length=_MOST_MESSAGES)
    stream_options: StreamOptions | None = None
    frequency_penalty: Penalty = None
    presence_penalty: Penalty = None
    max_tokens: TokenCount = None
    max_completion_tokens: TokenCount = None
    stop: str | Annotated[list[str], Field(max_length=_MOST_STOPS)] | None = None
    seed: Annotated[int | None, Field(ge=-(2**63), le=2**63 - 1)] = None
    logit_bias: dict[str, Annotated[float, Field(ge=-100, le=100)]] | None = None
    reasoning_effort: Word = None
    verbosity: Word = None
    n: int | None = None
    logprobs: bool | None = None
    audio: dict[str, Any] | None = None
    modalities: list[str] | None = None
    response_format: dict[str, Any] | None = None
    functions: list[dict[str, Any]] | None = None
    function_call: str | dict[str, Any] | None = None
    web_search_options: dict[str, Any] | None = None

    def sampling(self, passed: frozenset[str]) -> Sampling:
        """The parameters that reach the model, of those that may. Raises `InvalidInput` if the form of the
        answer is none, or cannot be asked of the model."""
        form = answer_form("response_format", self.response_format, passed)
        given = {name: getattr(self, name) for name in passed - {"response_format"}}
        return sampling_of({**given, "response_format": form}, passed)

    def refuse_unsupported(self) -> None:
        """Refuse unsupported parameters that would change the answer. Raises `InvalidInput`, which names the
        field, if the request has one."""
        if self.n not in {None, 1}:
            raise InvalidInput("n", "one answer is given; only 1 is accepted")
        for field, given in (("logprobs", self.logprobs), ("top_logprobs", self.top_logprobs)):
            if given:
                raise InvalidInput(field, "log probabilities are not supported")
        if self.audio is not None or "audio" in (self.modalities or ()):
            raise InvalidInput("audio", "only text is answered")
        for field, older in (("functions", self.functions), ("function_call", self.function_call)):
            if older:
                raise InvalidInput(field, "is the older form, which is not supported; send tools and tool_choice")
        if self.web_search_options is not None:
            raise InvalidInput("web_search_options", "nobody searches the web here; send a function that does")


_FORMS = frozenset({"json_object", "json_schema"})
"""Forms of an answer besides plain text."""


def passed_parameters(settings: Settings) -> frozenset[str]:
    """The parameters that reach the model: those that its API has, unless the settings keep them from it."""
    if settings.offline or settings.openai_parameters == "ignore":
        return frozenset()
    return RESPONSES if settings.llm_api == "responses" else ALL


def sampling_of(given: Mapping[str, Any], passed: frozenset[str]) -> Sampling:
    """The parameters of a request that reach the model, by the names of Chat Completions."""
    sampling = {name: value for name, value in given.items() if name in passed and value is not None}
    if isinstance(stop := sampling.get("stop"), str):
        sampling["stop"] = [stop]
    return cast("Sampling", sampling)


def answer_form(field: str, form: Mapping[str, Any] | None, passed: frozenset[str]) -> dict[str, Any] | None:
    """The form of the answer as Chat Completions takes it; None = plain text.

    Args:
        field: name of the form in the request.
        form: as Chat Completions has it, or as `text.format` of the Responses API does.
        passed: parameters that reach the model.

    Raises:
        InvalidInput: the form is none, or cannot be asked of the model.
    """
    kind = (form or {}).get("type", "text")
    if form is None or kind == "text":
        return None
    if kind not in _FORMS:
        raise InvalidInput(f"{field}.type", "must be text, json_object or json_schema")
    if "response_format" not in passed:
        raise InvalidInput(field, "only answers in plain text are supported here")
    if kind == "json_object":
        return {"type": kind}
    described = form.get("json_schema", form)
    if not isinstance(described, dict) or not isinstance(described.get("schema"), dict):
        raise InvalidInput(field, "a json_schema has a name and a schema")
    parts = {name: described[name] for name in ("name", "description", "strict", "schema") if name in described}
    return {"type": kind, "json_schema": {"name": "answer", **parts}}
