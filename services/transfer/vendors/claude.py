"""Claude's export: `conversations.json`, each conversation with its messages in order."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from services.transfer.vendors import records

_ROLES = {"human": "user", "user": "user", "assistant": "assistant"}


def conversation(record: Mapping[str, Any], exported_at: datetime) -> records.VendorConversation:
    """Read a conversation; one without any time is as old as its export."""
    said = records.rows(record.get("chat_messages"), "chat_messages")
    on_path = _active(record, said)
    talk = records.Talk(other_branches=len(said) - len(on_path))
    for each in on_path:
        role, key = _ROLES.get(str(each.get("sender")), "system"), records.optional(each, "uuid")
        talk.add(each, role, _text(each), id=key, time="created_at", files=("attachments", "files"))
    created_at = records.moment(record.get("created_at"), "created_at") or talk.began
    created_at = created_at or records.moment(record.get("updated_at"), "updated_at") or exported_at
    title = records.optional(record, "name", "title") or ""
    return records.VendorConversation(
        records.named(record, "uuid"), title, created_at, talk.messages, +talk.left_out
    )


def _active(record: Mapping[str, Any], said: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The messages on the path to the current one, where messages name their parents; else all."""
    by_id = {str(each.get("uuid")): each for each in said}
    parents = {key: records.optional(each, "parent_message_uuid") for key, each in by_id.items()}
    known = [key for key, parent in parents.items() if parent in parents]
    leaf = records.optional(record, "current_leaf_message_uuid")
    if not known or len(by_id) < len(said):
        return list(said)
    if leaf not in by_id:
        leaf = max(by_id, key=lambda key: str(by_id[key].get("created_at") or ""))
    return [by_id[key] for key in records.path_to(leaf, parents)]


def _text(message: Mapping[str, Any]) -> tuple[str, Counter[str]]:
    """The text said, and the number of thoughts, tool calls and the like."""
    text, others = records.text_in(message.get("content"))
    if text or others:
        return text, others
    return (records.optional(message, "text") or "").strip(), others
