"""A message of the AI SDK, as `/v1` reads it."""

from typing import Any, Literal

import orjson
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from api.openai.client_message import ClientMessage


class Camel(BaseModel):
    """A document whose fields are in camel case."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)


class UiMessage(BaseModel):
    """A message of the AI SDK; of its parts, text and images are read."""

    id: str | None = Field(None, max_length=256)
    role: Literal["system", "user", "assistant"]
    parts: list[dict[str, Any]] = Field(max_length=1000)

    def as_client_messages(self) -> list[ClientMessage]:
        """The message as `/v1` reads it: one for each step, with the calls and results of the client's tools."""
        messages: list[ClientMessage] = []
        content: list[dict[str, Any]] = []
        called: list[dict[str, Any]] = []
        for part in (*self.parts, _STEP):
            kind = str(part.get("type"))
            if kind == "text":
                content.append({"type": "text", "text": part.get("text")})
            elif kind == "file" and str(part.get("mediaType", "")).startswith("image/"):
                content.append({"type": "image_url", "image_url": part.get("url")})
            elif (kind == "dynamic-tool" or kind.startswith("tool-")) and not part.get("providerExecuted"):
                called.append(part)
            elif kind == _STEP["type"] and called:
                messages += [ClientMessage(role=self.role, content=content, tool_calls=list(map(_call, called)))]
                messages += [_result(each) for each in called if str(each.get("state")).startswith("output-")]
                content, called = [], []
        return [*messages, ClientMessage(role=self.role, content=content)] if content or not messages else messages


_STEP: dict[str, Any] = {"type": "step-start"}
"""A part between two steps."""


def _call(part: dict[str, Any]) -> dict[str, Any]:
    name = part.get("toolName") or str(part["type"]).removeprefix("tool-")
    function = {"name": name, "arguments": orjson.dumps(part.get("input") or {}).decode()}
    return {"id": part.get("toolCallId"), "function": function}


def _result(part: dict[str, Any]) -> ClientMessage:
    failed = part.get("state") == "output-error"
    said = part.get("errorText") if failed else part.get("output")
    text = said if isinstance(said, str) else orjson.dumps(said).decode()
    return ClientMessage(role="tool", content=text, tool_call_id=part.get("toolCallId"), failed=failed)
