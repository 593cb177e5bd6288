"""A message of the AI SDK, and its form in `/v1`."""

from typing import Any, Literal

import orjson
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from api.openai.client_message import ClientMessage


class Camel(BaseModel):
    """A document whose fields are in camel case; others are named to the caller."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="allow")


class UiMessage(BaseModel):
    """A message of the AI SDK."""

    id: str | None = Field(None, max_length=256)
    role: Literal["system", "user", "assistant"]
    parts: list[dict[str, Any]] = Field(max_length=1000)

    def as_client_messages(self) -> list[ClientMessage]:
        """Return the message in the form of `/v1`: one for each step, with calls and results of client tools."""
        messages: list[ClientMessage] = []
        content: list[dict[str, Any]] = []
        called: list[dict[str, Any]] = []
        for part in (*self.parts, _STEP):
            kind = str(part.get("type"))
            if kind == "text":
                content.append({"type": "text", "text": part.get("text")})
            elif kind == "file":
                is_image = str(part.get("mediaType", "")).startswith("image/")
                content.append({"type": "image_url", "image_url": part.get("url")} if is_image else part)
            elif (kind == "dynamic-tool" or kind.startswith("tool-")) and not part.get("providerExecuted"):
                called.append(part)
            elif kind == _STEP["type"] and called:
                messages += [ClientMessage(role=self.role, content=content, tool_calls=list(map(_call, called)))]
                messages += [_result(each) for each in called if str(each.get("state")).startswith("output-")]
                content, called = [], []
        return [*messages, ClientMessage(role=self.role, content=content)] if content or not messages else messages


_STEP: dict[str, Any] = {"type": "step-start"}
"""Part between two steps."""


def _call(part: dict[str, Any]) -> dict[str, Any]:
    name = part.get("toolName") or str(part["type"]).removeprefix("tool-")
    function = {"name": name, "arguments": orjson.dumps(part.get("input") or {}).decode()}
    return {"id": part.get("toolCallId"), "function": function}


def _result(part: dict[str, Any]) -> ClientMessage:
    failed = part.get("state") == "output-error"
    said = part.get("errorText") if failed else part.get("output")
    parts = said.get("value" if said.get("type") == "content" else "content") if isinstance(said, dict) else None
    if isinstance(parts, list) and parts and all(isinstance(each, dict) and "type" in each for each in parts):
        content: str | list[dict[str, Any]] = list(map(_shown, parts))
    else:
        content = said if isinstance(said, str) else orjson.dumps(said).decode()
    return ClientMessage(role="tool", content=content, tool_call_id=part.get("toolCallId"), failed=failed)


def _shown(part: dict[str, Any]) -> dict[str, Any]:
    """Return a part of a tool's output in the form of `/v1`; it may come from the AI SDK or from an MCP server."""
    kind = str(part.get("mediaType") or part.get("mimeType") or "")
    if kind.startswith("image/") and isinstance(part.get("data"), str):
        return {"type": "image_url", "image_url": f"data:{kind};base64,{part['data']}"}
    if part["type"] == "image-url":
        return {"type": "image_url", "image_url": part.get("url")}
    return part
