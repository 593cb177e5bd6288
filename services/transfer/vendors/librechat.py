"""LibreChat's export of a conversation: a list of messages, or a tree where its export was recursive."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from services.transfer.vendors import records


def conversation(record: Mapping[str, Any], exported_at: datetime) -> records.VendorConversation:
    """Read a conversation; one without any time is as old as its export.

    Raises:
        BadRecord: it is none.
    """
    if "messagesTree" in record:
        listed = list(_flat(records.rows(record["messagesTree"], "messagesTree"), None))
    else:
        listed = list(_flat(records.rows(record.get("messages"), "messages"), None))
    by_id = {records.named(each, "messageId"): each for each in listed}
    parents = {key: records.optional(each, "parentMessageId") for key, each in by_id.items()}
    path = records.path_to(_leaf(by_id), parents)
    left_out = Counter({"other branches": len(by_id) - len(path)})
    messages = []
    for key in path:
        each = by_id[key]
        text, others = _text(each)
        attached = records.attached_to(each, "files", "attachments")
        text = attached.after(text)
        left_out += others
        if files := attached.others:
            left_out[records.FILES] += files
        if each.get("sender") == "System" or each.get("error"):
            left_out["system"] += 1
        elif not text:
            left_out["empty"] += not (others or files)
        else:
            at = records.moment(each.get("createdAt"), "createdAt")
            role: Any = "user" if each.get("isCreatedByUser") else "assistant"
            messages.append(records.VendorMessage(role, text, key, at))
    times = (each.at for each in messages if each.at)
    created_at = next(times, None) or _exported(record) or exported_at
    title = records.optional(record, "title") or ""
    return records.VendorConversation(
        records.named(record, "conversationId"), title, created_at, messages, +left_out
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


def _leaf(by_id: Mapping[str, Mapping[str, Any]]) -> str | None:
    """The newest message without an answer; of those without times, the last."""
    answered = {each.get("parentMessageId") for each in by_id.values()}
    leaves = [key for key in by_id if key not in answered]
    order = {key: number for number, key in enumerate(by_id)}
    return max(leaves, key=lambda key: (str(by_id[key].get("createdAt") or ""), order[key]), default=None)


def _text(message: Mapping[str, Any]) -> tuple[str, Counter[str]]:
    """The text said (`text`, or text parts of `content`), and the number of other parts."""
    parts, others = records.parts_of(message.get("content"))
    texts = [part.get("text") for part in parts]
    said = [str(text.get("value") or "") if isinstance(text, Mapping) else str(text or "") for text in texts]
    whole = "\n".join(said) if any(said) else records.optional(message, "text") or ""
    return whole.strip(), others
