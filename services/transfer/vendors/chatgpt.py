"""Reads ChatGPT's export, `conversations.json`: each conversation is a tree that names its current node."""

import re
from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from services.json_levels import shallow_json
from services.transfer.vendors.records import (
    FILES,
    NOT_REMEMBERED,
    BadRecord,
    VendorConversation,
    VendorMessage,
    attached_to,
    mapping,
    moment,
    named,
    newest,
    optional,
    path_to,
)

_SAID = frozenset({"text", "multimodal_text"})
"""Types of content that the user or the model has said; others are code, thoughts and tool output."""
_INSTRUCTIONS = frozenset({"user_editable_context", "model_editable_context"})
_SEPARATOR = "\ue202"
_MARK = re.compile("\ue200([^\ue201]*)\ue201|[\ue200-\ue206]")
"""Marks of citations and entities, in private-use characters."""
_HIDDEN = "is_visually_hidden_from_conversation"


def conversation(record: Mapping[str, Any], exported_at: datetime) -> VendorConversation:
    """Read a conversation; one without any time gets the time of its export."""
    nodes = mapping(record.get("mapping"), "mapping")
    parents = {key: optional(mapping(node, f"mapping.{key}"), "parent") for key, node in nodes.items()}
    leaf = optional(record, "current_node")
    if leaf not in nodes:
        times = {key: _seconds(node.get("message")) for key, node in nodes.items()}
        leaf = newest(times, {key for key, node in nodes.items() if node.get("children")})
    path = path_to(leaf, parents)
    left_out = Counter({"other branches": sum(1 for key in nodes.keys() - set(path) if nodes[key].get("message"))})
    messages = []
    for key in path:
        if not (said := nodes[key].get("message")):
            continue
        found = _message(mapping(said, f"mapping.{key}.message"))
        if files := _files(said):
            left_out[FILES] += files
        if isinstance(found, str):
            left_out[found] += 1
        else:
            messages.append(found)
    if record.get("is_do_not_remember") is True:
        messages, left_out = [], Counter({NOT_REMEMBERED: 1})
    said_at = (each.at for each in messages if each.at)
    created_at = moment(record.get("create_time"), "create_time") or next(said_at, None)
    created_at = created_at or moment(record.get("update_time"), "update_time") or exported_at
    return VendorConversation(
        named(record, "conversation_id", "id"), optional(record, "title") or "", created_at, messages, +left_out
    )


def _message(said: Mapping[str, Any]) -> VendorMessage | str:
    """Return a message, or the reason to leave it out."""
    role: Any = mapping(said.get("author"), "author").get("role")
    content = mapping(said.get("content") or {}, "content")
    if kind := _unsaid(said, role, content.get("content_type", "text")):
        return kind
    parts = content.get("parts") or []
    if not isinstance(parts, list):
        raise BadRecord("content.parts is no list")
    text = _MARK.sub(_marked, "\n".join(filter(None, map(_text, parts)))).strip()
    if not text:
        return "messages without text" if parts and any(parts) else "empty"
    return VendorMessage(role, text, optional(said, "id"), moment(said.get("create_time"), "create_time"))


def _unsaid(said: Mapping[str, Any], role: Any, kind: Any) -> str:
    """Return why a message is no part of the talk between user and model; empty = it is a part."""
    metadata = said.get("metadata")
    if kind in _INSTRUCTIONS:
        return "instructions"
    if role not in {"user", "assistant"}:
        return "tool" if role == "tool" else "system"
    if role == "assistant" and (said.get("recipient") or "all") != "all":
        return "tool"
    if kind not in _SAID:
        return "thoughts and code"
    return "hidden" if isinstance(metadata, Mapping) and metadata.get(_HIDDEN) else ""


def _text(part: Any) -> str:
    """Return the text of a part; an image has none, and a recording only its transcript."""
    if isinstance(part, str):
        return part
    return part["text"] if isinstance(part, Mapping) and isinstance(part.get("text"), str) else ""


def _files(said: Mapping[str, Any]) -> int:
    """Return the number of images, recordings and files in a message."""
    content, metadata = said.get("content"), said.get("metadata")
    parts = content.get("parts") if isinstance(content, Mapping) else None
    shown = sum(1 for part in parts or () if isinstance(part, Mapping) and not _text(part))
    # Attachments list the images again.
    return max(shown, attached_to(metadata, "attachments").others if isinstance(metadata, Mapping) else 0)


def _marked(found: "re.Match[str]") -> str:
    """Return the text for a mark: the name of an entity; nothing for a citation."""
    kind, _, inside = (found[1] or "").partition(_SEPARATOR)
    try:
        named = shallow_json(inside) if kind == "entity" else None
    except ValueError:
        return ""
    return named[1] if isinstance(named, list) and len(named) > 1 and isinstance(named[1], str) else ""


def _seconds(message: Any) -> float:
    at = message.get("create_time") if isinstance(message, Mapping) else None
    return at if isinstance(at, int | float) else 0
