"""Requests to `POST /v1/chat/completions`: accepted and refused fields."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from api.openai.messages import ClientMessage
from services.errors import InvalidInput

_MOST_MESSAGES = 10_000


class StreamOptions(BaseModel):
    """What a stream contains besides the text."""

    model_config = ConfigDict(extra="ignore")

    include_usage: bool | None = None


class ChatCompletionRequest(BaseModel):
    """A chat completion, as OpenAI's clients ask for one. Parameters of sampling are not passed on."""

    model_config = ConfigDict(
        extra="ignore",
        json_schema_extra={
            "examples": [{"model": "default", "messages": [{"role": "user", "content": "Hello!"}], "user": "u-1"}]
        },
    )

    model: str = Field(min_length=1, max_length=256, description="Name of an expert, or an alias of one.")
    messages: list[ClientMessage] = Field(min_length=1, max_length=_MOST_MESSAGES)
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    user: str | None = Field(None, description="For whom the request is.")
    safety_identifier: str | None = Field(None, description="For whom the request is; counts more than `user`.")
    metadata: dict[str, Any] | None = Field(None, description="`session_id` names the conversation.")
    store: bool | None = Field(None, description="false: a temporary conversation, nothing is stored.")
    n: int | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None
    audio: dict[str, Any] | None = None
    modalities: list[str] | None = None
    response_format: dict[str, Any] | None = None
    tools: list[dict[str, Any]] | None = Field(None, description="Not called: the service has tools itself.")
    tool_choice: str | dict[str, Any] | None = None
    functions: list[dict[str, Any]] | None = None
    function_call: str | dict[str, Any] | None = None

    def refuse_unsupported(self) -> None:
        """Refuse unsupported parameters that would change the answer.

        Raises:
            InvalidInput: the request asks for such a thing; the field is named.
        """
        if self.n not in {None, 1}:
            raise InvalidInput("n", "one answer is given; only 1 is accepted")
        for field, given in (("logprobs", self.logprobs), ("top_logprobs", self.top_logprobs)):
            if given:
                raise InvalidInput(field, "log probabilities are not supported")
        if self.audio is not None or "audio" in (self.modalities or ()):
            raise InvalidInput("audio", "only text is answered")
        refuse_forced_tools("tool_choice", self.tool_choice)
        refuse_forced_tools("function_call", self.function_call)
        if self.response_format is not None and self.response_format.get("type", "text") != "text":
            raise InvalidInput("response_format", "only answers in plain text are supported")


def refuse_forced_tools(field: str, choice: str | dict[str, Any] | None) -> None:
    """Refuse a request that forces a call of the client's own tool.

    Raises:
        InvalidInput: it is one.
    """
    if choice not in {None, "none", "auto"} if isinstance(choice, str | None) else True:
        raise InvalidInput(field, "tools of clients are not called; leave it out, or send none or auto")
