"""The common form of other products' exports: conversations with messages, and single memories.

Functions raise `BadRecord` for records that do not have the expected form.
"""

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from services.transfer.vendors.archive import Place


class BadRecord(ValueError):
    """A record that cannot be read; the message gives the reason."""


@dataclass(frozen=True)
class VendorMessage:
    """A message of the user or the model."""

    role: Literal["user", "assistant"]
    text: str
    id: str | None = None
    at: datetime | None = None
    """Time of the message; None = unknown, it follows the message before it."""
    speaker: str | None = None
    """Name of another participant whose words they are; None = words of the user or the model."""


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
    """User of the conversation, if the export names one."""


@dataclass(frozen=True)
class VendorMemory:
    """A single memory."""

    id: str
    text: str
    created_at: datetime
    user: str | None = None


Record = VendorConversation | VendorMemory
Read = tuple[Place, VendorConversation | BadRecord]
"""A conversation, or the reason why it cannot be read, with the place of its first record."""


def mapping(value: Any, name: str) -> Mapping[str, Any]:
    """Return a value that must be a JSON object."""
    if not isinstance(value, Mapping):
        raise BadRecord(f"{name} is no object")
    return value


def rows(value: Any, name: str) -> list[Mapping[str, Any]]:
    """Return a value that must be a JSON array of objects."""
    if not isinstance(value, list):
        raise BadRecord(f"{name} is no list")
    return [mapping(each, f"{name}[{number}]") for number, each in enumerate(value)]


def named(record: Mapping[str, Any], *names: str) -> str:
    """Return the first of these fields that holds a text; one of them must."""
    found = optional(record, *names)
    if found is None:
        raise BadRecord(f"has no {' or '.join(names)}")
    return found


def optional(record: Mapping[str, Any], *names: str) -> str | None:
    """Return the first of these fields that holds a text; None if none does."""
    return next((value for name in names if isinstance(value := record.get(name), str) and value.strip()), None)


def moment(value: Any, name: str) -> datetime | None:
    """Read a time in seconds or milliseconds since 1970, or in ISO 8601; None if there is none."""
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
    """A message's files: texts that the export holds of them, and the number of the others."""

    texts: Sequence[tuple[str, str]]
    """Name and text of each."""
    others: int

    def after(self, text: str) -> str:
        """Return the message with the files' texts after it in fences: they are not the speaker's words."""
        shown = (f"{name}\n{_FENCE}\n{_shortened(content)}\n{_FENCE}" for name, content in self.texts)
        return "\n\n".join(filter(None, [text, *shown]))


def attached_to(message: Mapping[str, Any], *names: str) -> Attached:
    """Return a message's files; lists under several names hold the same files."""
    lists = [value for name in names if isinstance(value := message.get(name), list)]
    texts = dict.fromkeys(found for files in lists for file in files if (found := _text_of_file(file)))
    return Attached(list(texts), max(0, max(map(len, lists), default=0) - len(texts)))


def _text_of_file(file: Any) -> tuple[str, str] | None:
    """Return name and text of a file in the form of Claude, Open WebUI or LibreChat; None if it has no text."""
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
    """Return the text of a message's content, and the number of its other parts by kind.

    Args:
        content: A text, or a list of parts, each with a `type`; anything else has no text and no parts.
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
        """Return the first time that a message names."""
        return next((message.at for message in self.messages if message.at), None)

    def conversation(
        self, id: str, title: str | None, created_at: datetime, user: str | None = None
    ) -> VendorConversation:
        """Return the collected conversation."""
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
        """Add a message, or count the reason for leaving it out.

        Args:
            role: `user` or `assistant`; any other role is the reason that is counted.
            said: Its text, and the number of its other parts.
            time: Field with its time.
            files: Fields that list its files.
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
        elif not (others or attached.others):  # they were counted
            self.left_out["empty"] += 1


def newest(times: Mapping[str, Any], followed: Container[str | None]) -> str | None:
    """Return the id of the newest message that nothing follows; of equal times, the last."""
    leaves = [key for key in times if key not in followed]
    return max(reversed(leaves), key=times.__getitem__, default=None)


def path_to(leaf: str | None, parents: Mapping[str, str | None]) -> list[str]:
    """Return the ids from the first message to a leaf; a cycle ends the path."""
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
"""Names under which the report counts kinds of parts."""
_FENCE = "```"
_QUOTED_FENCE = "~~~"
_LONGEST_FILE = 20_000
"""Maximum characters of an attached file that its message keeps."""
_MILLISECONDS = 100_000_000_000
"""Seconds until the year 5138: a larger number counts milliseconds."""
