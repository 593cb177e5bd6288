"""Open WebUI's export of chats: a list of chats, each a tree of messages with the current one named."""

import re
from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from services.transfer.vendors import records

_FOLDED = re.compile(r"<details\b.*?</details>\s*", re.DOTALL)
"""Thoughts and tool calls, which the page folds away."""


def conversation(record: Mapping[str, Any], exported_at: datetime) -> records.VendorConversation:
    """Read a chat; one without any time is as old as its export.

    Raises:
        BadRecord: it is none.
    """
    chat = records.mapping(record.get("chat", record), "chat")
    by_id, leaf = _messages(chat)
    path = records.path_to(leaf, {key: records.optional(each, "parentId") for key, each in by_id.items()})
    left_out = Counter({"other branches": len(by_id) - len(path)})
    messages = []
    for key in path:
        each = by_id[key]
        role, content = each.get("role"), each.get("content")
        texts, others = records.parts_of(content)
        told = content if isinstance(content, str) else "\n".join(str(part.get("text") or "") for part in texts)
        attached = records.attached_to(each, "files")
        text = attached.after(_FOLDED.sub("", told).strip())
        left_out += others
        if files := attached.others:
            left_out[records.FILES] += files
        if role not in {"user", "assistant"}:
            left_out["tool" if role == "tool" else "system"] += 1
        elif not text:
            left_out["empty"] += not (others or files)
        else:
            messages.append(
                records.VendorMessage(role, text, key, records.moment(each.get("timestamp"), "timestamp"))
            )
    created_at = records.moment(record.get("created_at"), "created_at") or records.moment(
        chat.get("timestamp"), "timestamp"
    )
    created_at = created_at or next((each.at for each in messages if each.at), exported_at)
    title = records.optional(record, "title") or records.optional(chat, "title") or ""
    chat_id = records.optional(record, "id") or records.named(chat, "id")
    return records.VendorConversation(
        chat_id, title, created_at, messages, +left_out, records.optional(record, "user_id")
    )


def _messages(chat: Mapping[str, Any]) -> tuple[dict[str, Mapping[str, Any]], str | None]:
    """All messages by id, and the current one."""
    history = chat.get("history")
    if isinstance(history, Mapping) and history.get("messages"):
        found = records.mapping(history["messages"], "chat.history.messages")
        by_id = {key: records.mapping(each, f"chat.history.messages.{key}") for key, each in found.items()}
        leaf = records.optional(history, "currentId")
        return by_id, leaf if leaf in by_id else _newest(by_id)
    listed = records.rows(chat.get("messages"), "chat.messages")
    by_id, before = {}, None
    for number, each in enumerate(listed):
        key = records.optional(each, "id") or str(number)
        by_id[key], before = {**each, "parentId": before}, key
    return by_id, before


def _newest(by_id: Mapping[str, Mapping[str, Any]]) -> str | None:
    """The newest message that nothing follows; of those of one time, the last."""
    followed = {each.get("parentId") for each in by_id.values()}
    order = {key: number for number, key in enumerate(by_id)}
    leaves = [key for key in by_id if key not in followed]
    return max(leaves, key=lambda key: (_seconds(by_id[key].get("timestamp")), order[key]), default=None)


def _seconds(value: Any) -> float:
    return value if isinstance(value, int | float) else 0
