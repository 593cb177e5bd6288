"""Claude's export: `conversations.json`, each conversation with its messages in order."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from services.transfer.vendors import records

_ROLES = {"human": "user", "user": "user", "assistant": "assistant"}


def conversation(record: Mapping[str, Any], exported_at: datetime) -> records.VendorConversation:
    """Read a conversation; one without any time is as old as its export.

    Raises:
        BadRecord: it is none.
    """
    said = records.rows(record.get("chat_messages"), "chat_messages")
    on_path = _active(record, said)
    left_out = Counter({"other branches": len(said) - len(on_path)})
    messages = []
    for each in on_path:
        role = _ROLES.get(str(each.get("sender")))
        text, others = _text(each)
        attached = records.attached_to(each, "attachments", "files")
        text = attached.after(text)
        left_out += others
        if files := attached.others:
            left_out[records.FILES] += files
        if role is None:
            left_out["system"] += 1
        elif not text:
            left_out["empty"] += not (others or files)  # else these are counted
        else:
            at = records.moment(each.get("created_at"), "created_at")
            messages.append(records.VendorMessage(role, text, records.optional(each, "uuid"), at))  # type: ignore[arg-type]
    created_at = records.moment(record.get("created_at"), "created_at")
    created_at = created_at or next((each.at for each in messages if each.at), None)
    created_at = created_at or records.moment(record.get("updated_at"), "updated_at") or exported_at
    title = records.optional(record, "name", "title") or ""
    return records.VendorConversation(records.named(record, "uuid"), title, created_at, messages, +left_out)


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
    texts, others = records.parts_of(message.get("content"))
    if texts or others:
        return "\n".join(str(each.get("text") or "") for each in texts).strip(), others
    return (records.optional(message, "text") or "").strip(), others
