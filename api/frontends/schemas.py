"""What front ends send."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from api.openai.messages import ClientMessage
from services.conversations.values import SpaceName, space_name
from services.errors import InvalidInput

_MOST_MESSAGES = 10_000


class _Camel(BaseModel):
    model_config = ConfigDict(extra="ignore", alias_generator=to_camel, populate_by_name=True)


class UiMessage(BaseModel):
    """A message of the AI SDK; of its parts, text and images are read."""

    model_config = ConfigDict(extra="ignore")

    id: str | None = Field(None, max_length=256)
    role: Literal["system", "user", "assistant"]
    parts: list[dict[str, Any]] = Field(max_length=1000)

    def as_client_message(self) -> ClientMessage:
        """The message as `/v1` reads it."""
        content: list[dict[str, Any]] = []
        for part in self.parts:
            if part.get("type") == "text":
                content.append({"type": "text", "text": part.get("text")})
            elif part.get("type") == "file" and str(part.get("mediaType", "")).startswith("image/"):
                content.append({"type": "image_url", "image_url": part.get("url")})
        return ClientMessage(role=self.role, content=content)


class UiChatRequest(_Camel):
    """What the AI SDK's chat sends; `user` and `expert` are added in its `body`."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "id": "chat-1",
                    "user": "u-1",
                    "messages": [{"id": "m-1", "role": "user", "parts": [{"type": "text", "text": "Hello!"}]}],
                }
            ]
        },
    )

    id: str = Field(min_length=1, max_length=128, description="The chat: the name of the conversation.")
    messages: list[UiMessage] = Field(min_length=1, max_length=_MOST_MESSAGES)
    trigger: Literal["submit-message", "regenerate-message"] = "submit-message"
    message_id: str | None = Field(None, max_length=256, description="The message that was edited, or the answer.")
    user: str | None = Field(None, description="For whom the request is.")
    expert: str = Field("default", description="Name of an expert, or an alias of one.")

    space: SpaceName | None = Field(None, description="The space of a new conversation.")
    temporary: bool = Field(False, description="Store nothing of it.")

    @property
    def edits_first(self) -> bool:
        """Whether the message replaces the first one of the conversation."""
        return self.trigger == "submit-message" and self.message_id is not None and len(self.messages) == 1

    def said(self) -> list[ClientMessage]:
        """The messages as `/v1` reads them."""
        return [each.as_client_message() for each in self.messages]


class AgUiMessage(_Camel):
    """A message of AG-UI; those of tools, of activities and of reasoning are not read."""

    id: str | None = Field(None, max_length=256)
    role: str = Field(max_length=64)
    content: str | list[dict[str, Any]] | dict[str, Any] | None = None


class AgUiRequest(_Camel):
    """What AG-UI calls `RunAgentInput`; `user` and `expert` are read from `forwardedProps`."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "threadId": "thread-1",
                    "runId": "run-1",
                    "messages": [{"id": "m-1", "role": "user", "content": "Hello!"}],
                    "forwardedProps": {"user": "u-1"},
                }
            ]
        }
    )

    thread_id: str = Field(min_length=1, max_length=128, description="The name of the conversation.")
    run_id: str = Field(
        pattern=r"^[\x21-\x7e]{1,255}$", description="Sent again, it is the same turn and nothing happens twice."
    )
    messages: list[AgUiMessage] = Field(min_length=1, max_length=_MOST_MESSAGES)
    forwarded_props: dict[str, Any] | None = None

    def said(self) -> list[ClientMessage]:
        """The messages as `/v1` reads them.

        Raises:
            InvalidInput: a message has a content that is none.
        """
        said = []
        for place, each in enumerate(self.messages):
            if each.role not in {"system", "developer", "user", "assistant"}:
                continue
            if isinstance(each.content, dict):
                raise InvalidInput(f"messages.{place}.content", "is neither a text nor a list of parts")
            content = each.content
            if isinstance(content, list):
                content = [_part(part) for part in content]
            said.append(ClientMessage(role=each.role, content=content))
        return said

    @property
    def space(self) -> str | None:
        """The space of a new conversation.

        Raises:
            InvalidInput: it is no name of one.
        """
        name = self.prop("space")
        try:
            return space_name(name) if name else None
        except ValueError as error:
            raise InvalidInput("forwardedProps.space", str(error)) from None

    @property
    def temporary(self) -> bool:
        """Whether nothing of it is stored.

        Raises:
            InvalidInput: it is neither true nor false.
        """
        value = (self.forwarded_props or {}).get("temporary", False)
        if not isinstance(value, bool):
            raise InvalidInput("forwardedProps.temporary", "is neither true nor false")
        return value

    def prop(self, name: str) -> str | None:
        """A property that the front end forwards.

        Raises:
            InvalidInput: it is no text.
        """
        value = (self.forwarded_props or {}).get(name)
        if value is not None and not isinstance(value, str):
            raise InvalidInput(f"forwardedProps.{name}", "is no text")
        return value or None


def _part(part: dict[str, Any]) -> dict[str, Any]:
    """A part of a message's content; an image as `/v1` reads it, whatever names its source."""
    if part.get("type") != "image":
        return part
    source = part.get("source") or {}
    if source.get("type") == "data":
        return {"type": "image_url", "image_url": f"data:{source.get('mimeType')};base64,{source.get('value')}"}
    return {"type": "image_url", "image_url": source.get("value")}
