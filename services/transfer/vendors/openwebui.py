"""Open WebUI's export of chats: a list of chats, each a tree of messages with the current one named."""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from services.transfer.vendors import records

_FOLDED = re.compile(r"<details\b.*?</details>\s*", re.DOTALL)
"""Thoughts and tool calls, which the page folds away."""


def conversation(record: Mapping[str, Any], exported_at: datetime) -> records.VendorConversation:
    """Read a chat; one without any time is as old as its export."""
    chat = records.mapping(record.get("chat", record), "chat")
    by_id, leaf = _messages(chat)
    path = records.path_to(leaf, {key: records.optional(each, "parentId") for key, each in by_id.items()})
    talk = records.Talk(other_branches=len(by_id) - len(path))
    for key in path:
        each = by_id[key]
        role = each.get("role")
        if role not in {"user", "assistant", "tool"}:
            role = "system"
        text, others = records.text_in(each.get("content"))
        said = (_FOLDED.sub("", text).strip(), others)
        talk.add(each, role, said, id=key, time="timestamp", files=("files",))
    created_at = records.moment(record.get("created_at"), "created_at") or records.moment(
        chat.get("timestamp"), "timestamp"
    )
    created_at = created_at or talk.began or exported_at
    title = records.optional(record, "title") or records.optional(chat, "title") or ""
    chat_id = records.optional(record, "id") or records.named(chat, "id")
    return records.VendorConversation(
        chat_id, title, created_at, talk.messages, +talk.left_out, records.optional(record, "user_id")
    )


def _messages(chat: Mapping[str, Any]) -> tuple[dict[str, Mapping[str, Any]], str | None]:
    """All messages by id, and the current one."""
    history = chat.get("history")
    if isinstance(history, Mapping) and history.get("messages"):
        found = records.mapping(history["messages"], "chat.history.messages")
        by_id = {key: records.mapping(each, f"chat.history.messages.{key}") for key, each in found.items()}
        leaf = records.optional(history, "currentId")
        if leaf not in by_id:
            times = {key: _seconds(each.get("timestamp")) for key, each in by_id.items()}
            leaf = records.newest(times, {each.get("parentId") for each in by_id.values()})
        return by_id, leaf
    listed = records.rows(chat.get("messages"), "chat.messages")
    by_id, before = {}, None
    for number, each in enumerate(listed):
        key = records.optional(each, "id") or str(number)
        by_id[key], before = {**each, "parentId": before}, key
    return by_id, before


def _seconds(value: Any) -> float:
    return value if isinstance(value, int | float) else 0
