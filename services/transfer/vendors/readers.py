"""Reads records of Claude, LibreChat and Open WebUI; one without any time gets the time of its export."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from services.text.elements import elements
from services.transfer.vendors.records import (
    BadRecord,
    Talk,
    VendorConversation,
    mapping,
    moment,
    named,
    newest,
    optional,
    path_to,
    rows,
    text_in,
)

_CLAUDES_ROLES = {"human": "user", "user": "user", "assistant": "assistant"}
_FOLDED = "details"
"""HTML element in which Open WebUI folds thoughts and tool calls away."""

Message = Mapping[str, Any]


def claude(record: Message, exported_at: datetime) -> VendorConversation:
    """Read a conversation of `conversations.json`, its messages in order."""
    said = rows(record.get("chat_messages"), "chat_messages")
    on_path = _active(record, said)
    talk = Talk(other_branches=len(said) - len(on_path))
    for each in on_path:
        role, key = _CLAUDES_ROLES.get(str(each.get("sender")), "system"), optional(each, "uuid")
        parts = text_in(each.get("content"))
        words = parts if any(parts) else _text(each)
        talk.add(each, role, words, id=key, time="created_at", files=("attachments", "files"))
    created_at = moment(record.get("created_at"), "created_at") or talk.began
    created_at = created_at or moment(record.get("updated_at"), "updated_at") or exported_at
    return talk.conversation(named(record, "uuid"), optional(record, "name", "title"), created_at)


def _active(record: Message, said: Sequence[Message]) -> list[Message]:
    """Return the messages on the path to the current one if messages name their parents; otherwise all."""
    by_id = {str(each.get("uuid")): each for each in said}
    parents = {key: optional(each, "parent_message_uuid") for key, each in by_id.items()}
    known = [key for key, parent in parents.items() if parent in parents]
    leaf = optional(record, "current_leaf_message_uuid")
    if not known or len(by_id) < len(said):
        return list(said)
    if leaf not in by_id:
        leaf = max(by_id, key=lambda key: str(by_id[key].get("created_at") or ""))
    return [by_id[key] for key in path_to(leaf, parents)]


def _text(message: Message) -> tuple[str, Counter[str]]:
    """Return the text of a message (text parts of `content`, or `text`), and the number of its other parts."""
    text, others = text_in(message.get("content"))
    return text or (optional(message, "text") or "").strip(), others


def librechat(record: Message, exported_at: datetime) -> VendorConversation:
    """Read a conversation: a list of messages, or a tree if the export was recursive."""
    field = "messagesTree" if "messagesTree" in record else "messages"
    by_id = {named(each, "messageId"): each for each in _flat(rows(record.get(field), field))}
    parents = {key: optional(each, "parentMessageId") for key, each in by_id.items()}
    times = {key: str(each.get("createdAt") or "") for key, each in by_id.items()}
    path = path_to(newest(times, set(parents.values())), parents)
    talk = Talk(other_branches=len(by_id) - len(path))
    for key in path:
        each = by_id[key]
        role = "user" if each.get("isCreatedByUser") else "assistant"
        if each.get("sender") == "System" or each.get("error"):
            role = "system"
        talk.add(each, role, _text(each), id=key, time="createdAt", files=("files", "attachments"))
    created_at = talk.began or _exported(record) or exported_at
    return talk.conversation(named(record, "conversationId"), optional(record, "title"), created_at)


def _exported(record: Message) -> datetime | None:
    """Return when the export was made, as it says; None if it gives only a time of day."""
    try:
        return moment(record.get("exportAt"), "exportAt")
    except BadRecord:
        return None


def _flat(messages: Sequence[Message]) -> Iterator[Message]:
    """Yield the messages of a tree, parents first; a list is a tree without children."""
    waiting: list[tuple[Message, str | None]] = [(each, None) for each in reversed(messages)]
    while waiting:
        message, above = waiting.pop()
        yield {**message, "parentMessageId": message.get("parentMessageId") or above}
        if children := message.get("children"):
            key = named(message, "messageId")
            waiting += [(each, key) for each in reversed(rows(children, f"children of {key}"))]


def openwebui(record: Message, exported_at: datetime) -> VendorConversation:
    """Read a chat: a tree of messages that names the current one."""
    chat = mapping(record.get("chat", record), "chat")
    by_id, leaf = _messages(chat)
    path = path_to(leaf, {key: optional(each, "parentId") for key, each in by_id.items()})
    talk = Talk(other_branches=len(by_id) - len(path))
    for key in path:
        each = by_id[key]
        role = each.get("role")
        if role not in {"user", "assistant", "tool"}:
            role = "system"
        text, others = text_in(each.get("content"))
        said = (_unfolded(text), others)
        talk.add(each, role, said, id=key, time="timestamp", files=("files",))
    created_at = moment(record.get("created_at"), "created_at") or moment(chat.get("timestamp"), "timestamp")
    title = optional(record, "title") or optional(chat, "title")
    chat_id = optional(record, "id") or named(chat, "id")
    user = optional(record, "user_id")
    return talk.conversation(chat_id, title, created_at or talk.began or exported_at, user)


def _unfolded(text: str) -> str:
    """Return a text without the folded elements and the blanks after them."""
    kept, at = [], 0
    for each in elements(text, _FOLDED):
        between = text[at : each.start]
        kept.append(between.lstrip() if at else between)
        at = each.end
    return "".join([*kept, text[at:].lstrip() if at else text]).strip()


def _messages(chat: Message) -> tuple[dict[str, Message], str | None]:
    """Return all messages by id, and the id of the current one."""
    history = chat.get("history")
    if isinstance(history, Mapping) and history.get("messages"):
        found = mapping(history["messages"], "chat.history.messages")
        by_id = {key: mapping(each, f"chat.history.messages.{key}") for key, each in found.items()}
        leaf = optional(history, "currentId")
        if leaf not in by_id:
            times = {key: _seconds(each.get("timestamp")) for key, each in by_id.items()}
            leaf = newest(times, {each.get("parentId") for each in by_id.values()})
        return by_id, leaf
    by_id, before = {}, None
    for number, each in enumerate(rows(chat.get("messages"), "chat.messages")):
        key = optional(each, "id") or str(number)
        by_id[key], before = {**each, "parentId": before}, key
    return by_id, before


def _seconds(value: Any) -> float:
    return value if isinstance(value, int | float) else 0
