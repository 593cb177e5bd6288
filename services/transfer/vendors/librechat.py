"""LibreChat's export of a conversation: a list of messages, or a tree where its export was recursive."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from services.transfer.vendors import records


def conversation(record: Mapping[str, Any], exported_at: datetime) -> records.VendorConversation:
    """Read a conversation; one without any time is as old as its export."""
    if "messagesTree" in record:
        listed = list(_flat(records.rows(record["messagesTree"], "messagesTree"), None))
    else:
        listed = list(_flat(records.rows(record.get("messages"), "messages"), None))
    by_id = {records.named(each, "messageId"): each for each in listed}
    parents = {key: records.optional(each, "parentMessageId") for key, each in by_id.items()}
    times = {key: str(each.get("createdAt") or "") for key, each in by_id.items()}
    path = records.path_to(records.newest(times, set(parents.values())), parents)
    talk = records.Talk(other_branches=len(by_id) - len(path))
    for key in path:
        each = by_id[key]
        role = "user" if each.get("isCreatedByUser") else "assistant"
        if each.get("sender") == "System" or each.get("error"):
            role = "system"
        talk.add(each, role, _text(each), id=key, time="createdAt", files=("files", "attachments"))
    created_at = talk.began or _exported(record) or exported_at
    title = records.optional(record, "title") or ""
    return records.VendorConversation(
        records.named(record, "conversationId"), title, created_at, talk.messages, +talk.left_out
    )


def _exported(record: Mapping[str, Any]) -> datetime | None:
    """When the export says that it was made; None where it names a time of day alone."""
    try:
        return records.moment(record.get("exportAt"), "exportAt")
    except records.BadRecord:
        return None


def _flat(messages: Sequence[Mapping[str, Any]], parent: str | None) -> Iterator[Mapping[str, Any]]:
    """The messages of a tree, parents first; a list is a tree without children."""
    waiting = [(each, parent) for each in reversed(messages)]
    while waiting:
        message, above = waiting.pop()
        yield {**message, "parentMessageId": message.get("parentMessageId") or above}
        children = message.get("children")
        if children:
            key = records.named(message, "messageId")
            waiting += [(each, key) for each in reversed(records.rows(children, f"children of {key}"))]


def _text(message: Mapping[str, Any]) -> tuple[str, Counter[str]]:
    """The text said (`text`, or text parts of `content`), and the number of other parts."""
    text, others = records.text_in(message.get("content"))
    return text or (records.optional(message, "text") or "").strip(), others
