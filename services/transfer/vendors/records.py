"""Common form of other products' exports: conversations with messages, and single memories.

Reading what is not of this form raises `BadRecord`.
"""

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from services.transfer.vendors.archive import Place


class BadRecord(ValueError):
    """A record that cannot be read; the message says why."""


@dataclass(frozen=True)
class VendorMessage:
    """A message of the user or the model."""

    role: Literal["user", "assistant"]
    text: str
    id: str | None = None
    at: datetime | None = None
    """None = unknown; it follows the message before it."""
    speaker: str | None = None
    """Another participant, whose words they are; None = the user's, or the model's."""


@dataclass(frozen=True)
class VendorConversation:
    """A conversation along its active path."""

    id: str
    title: str
    created_at: datetime
    messages: Sequence[VendorMessage]
    left_out: Counter[str] = field(default_factory=Counter)
    """Messages and parts of messages that are not imported, by kind: `system`, `tool`, `other branches`, …"""
    user: str | None = None
    """Its user, if the export says so."""


@dataclass(frozen=True)
class VendorMemory:
    """A single memory."""

    id: str
    text: str
    created_at: datetime
    user: str | None = None


Record = VendorConversation | VendorMemory
Read = tuple[Place, VendorConversation | BadRecord]
"""A conversation with the place of its first record, or why there is none."""


def mapping(value: Any, name: str) -> Mapping[str, Any]:
    """A JSON object."""
    if not isinstance(value, Mapping):
        raise BadRecord(f"{name} is no object")
    return value


def rows(value: Any, name: str) -> list[Mapping[str, Any]]:
    """A JSON array of objects."""
    if not isinstance(value, list):
        raise BadRecord(f"{name} is no list")
    return [mapping(each, f"{name}[{number}]") for number, each in enumerate(value)]


def named(record: Mapping[str, Any], *names: str) -> str:
    """The first of these fields that is a text and not empty; one of them has to be."""
    found = optional(record, *names)
    if found is None:
        raise BadRecord(f"has no {' or '.join(names)}")
    return found


def optional(record: Mapping[str, Any], *names: str) -> str | None:
    """The first of these fields that is a text and not empty; else None."""
    return next((value for name in names if isinstance(value := record.get(name), str) and value.strip()), None)


def moment(value: Any, name: str) -> datetime | None:
    """A time in seconds or milliseconds since 1970, or in ISO 8601; None if there is none."""
    if value is None or value == "":
        return None
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value / 1000 if value > _MILLISECONDS else value, UTC)
        if isinstance(value, str):
            at = datetime.fromisoformat(value)
            return at if at.tzinfo else at.replace(tzinfo=UTC)
    except (ValueError, OverflowError, OSError):
        pass
    raise BadRecord(f"{name} is no time: {str(value)[:40]!r}")


@dataclass(frozen=True)
class Attached:
    """A message's files: the texts that the export holds of them, and how many others there are."""

    texts: Sequence[tuple[str, str]]
    """Name and text of each."""
    others: int

    def after(self, text: str) -> str:
        """Return the message with the files' texts behind it in fences: they are not words of the speaker."""
        shown = (f"{name}\n{_FENCE}\n{_shortened(content)}\n{_FENCE}" for name, content in self.texts)
        return "\n\n".join(filter(None, [text, *shown]))


def attached_to(message: Mapping[str, Any], *names: str) -> Attached:
    """Return a message's files; lists under several names hold the same files."""
    lists = [value for name in names if isinstance(value := message.get(name), list)]
    texts = dict.fromkeys(found for files in lists for file in files if (found := _text_of_file(file)))
    return Attached(list(texts), max(0, max(map(len, lists), default=0) - len(texts)))


def _text_of_file(file: Any) -> tuple[str, str] | None:
    """Name and text of a file as Claude, Open WebUI or LibreChat exports it; None where it has no text."""
    if not isinstance(file, Mapping):
        return None
    inner = file.get("file")
    data = inner.get("data") if isinstance(inner, Mapping) else None
    text = optional(file, "extracted_content", "text")
    if text is None and isinstance(data, Mapping):
        text = optional(data, "content")
    name = optional(file, "file_name", "filename", "name") or "file"
    return (name, text.strip()) if text else None


def _shortened(text: str) -> str:
    inside = text.replace(_FENCE, _QUOTED_FENCE)
    return inside if len(inside) <= _LONGEST_FILE else f"{inside[:_LONGEST_FILE]}…"


def text_in(content: Any) -> tuple[str, Counter[str]]:
    """The text of a message's content, and the number of its parts that are none, by kind.

    Args:
        content: a text, or a list of parts, each with a `type`; anything else has neither.
    """
    if isinstance(content, str):
        return content.strip(), Counter()
    texts, others = [], Counter[str]()
    for part in content if isinstance(content, list) else ():
        kind = str(part.get("type")) if isinstance(part, Mapping) else "unknown"
        if kind in _TEXTS:
            text = part.get("text")
            texts.append(str((text.get("value") if isinstance(text, Mapping) else text) or ""))
        else:
            others[_KINDS.get(kind, f"parts of the type {kind}")] += 1
    return "\n".join(texts).strip(), others


class Talk:
    """Collects the messages of a conversation, and counts what is not imported."""

    def __init__(self, *, other_branches: int) -> None:
        self.messages: list[VendorMessage] = []
        self.left_out = Counter({"other branches": other_branches})

    @property
    def began(self) -> datetime | None:
        """The first time that a message names."""
        return next((message.at for message in self.messages if message.at), None)

    def conversation(
        self, id: str, title: str | None, created_at: datetime, user: str | None = None
    ) -> VendorConversation:
        """Return the conversation that was collected."""
        return VendorConversation(id, title or "", created_at, self.messages, +self.left_out, user)

    def add(
        self,
        record: Mapping[str, Any],
        role: str,
        said: tuple[str, Counter[str]],
        *,
        id: str | None,
        time: str,
        files: Sequence[str],
    ) -> None:
        """Add a message, or count why it is left out.

        Args:
            role: `user` or `assistant`; anything else is what it is counted as.
            said: its text, and the number of its other parts.
            time: the field with its time.
            files: the fields that list its files.
        """
        text, others = said
        attached = attached_to(record, *files)
        text = attached.after(text)
        self.left_out += others
        self.left_out[FILES] += attached.others
        if role not in {"user", "assistant"}:
            self.left_out[role] += 1
        elif text:
            self.messages.append(VendorMessage(role, text, id, moment(record.get(time), time)))  # type: ignore[arg-type]
        elif not (others or attached.others):  # these are counted
            self.left_out["empty"] += 1


def newest(times: Mapping[str, Any], followed: Container[str | None]) -> str | None:
    """The id of the newest message that nothing follows; of those of one time, the last."""
    leaves = [key for key in times if key not in followed]
    return max(reversed(leaves), key=times.__getitem__, default=None)


def path_to(leaf: str | None, parents: Mapping[str, str | None]) -> list[str]:
    """Ids from the first message to a leaf; a cycle ends the path."""
    path: dict[str, None] = {}
    while leaf is not None and leaf in parents and leaf not in path:
        path[leaf] = None
        leaf = parents[leaf]
    return list(path)[::-1]


FILES = "images and files"
NOT_REMEMBERED = "conversations that are not to be remembered"
SYSTEM = "system"
THOUGHTS = "thoughts"
TOOL = "tool"
_TEXTS = frozenset({"text", "input_text", "output_text", "voice_note"})
_KINDS = {
    "thinking": THOUGHTS,
    "redacted_thinking": THOUGHTS,
    "think": THOUGHTS,
    "reasoning": THOUGHTS,
    "tool_use": TOOL,
    "tool_result": TOOL,
    "tool_call": TOOL,
    "image": FILES,
    "image_url": FILES,
    "image_file": FILES,
    "input_image": FILES,
    "input_file": FILES,
    "file": FILES,
    "document": FILES,
    "input_audio": FILES,
    "video_url": FILES,
}
"""Report of parts that are not imported."""
_FENCE = "```"
_QUOTED_FENCE = "~~~"
_LONGEST_FILE = 20_000
"""Characters of an attached file that come with its message."""
_MILLISECONDS = 100_000_000_000
"""Seconds of the year 5138: a larger number counts milliseconds."""
