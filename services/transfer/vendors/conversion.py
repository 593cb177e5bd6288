"""Converts a vendor's export to the lines of an import.

Ids of the lines are made from the vendor's ids, so that importing an export again, or a newer one, adds only what
is new. Everything is data: system messages and custom instructions are left out, and nothing that is imported
becomes a standing wish by itself.
"""

import asyncio
import hashlib
import json
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from services.transfer.report import MOST_ERRORS
from services.transfer.vendors import chatgpt, chats, memories, messengers, readers, records
from services.transfer.vendors.archive import Archive, Place
from services.validation import composed, is_id

Vendor = Literal[
    "chatgpt", "claude", "openwebui", "librechat", "deepseek", "gemini", "sillytavern", "characterai", "telegram",
    "whatsapp", "mem0", "zep", "letta", "langmem", "hindsight",
]  # fmt: skip
USUAL_USER = "me"
"""The user when neither the caller nor the export names one."""

_BYTES_AT_ONCE = 256 * 1024
_LONGEST_TITLE = 500
_IMPORTANCE = 0.5
_NO_ID = re.compile(r"[^A-Za-z0-9._:@-]", re.ASCII)
_LONGEST_ID = 128

_Found = records.Record | Sequence[records.Record]
_READERS: Mapping[Vendor, Callable[[Mapping[str, Any], datetime], _Found]] = {
    "chatgpt": chatgpt.conversation,
    "claude": readers.claude,
    "openwebui": readers.openwebui,
    "librechat": readers.librechat,
    "deepseek": chats.deepseek,
    "characterai": chats.characterai,
    "mem0": memories.mem0,
    "zep": memories.zep,
    "letta": memories.letta,
    "langmem": memories.langmem,
    "hindsight": memories.hindsight,
}
_GATHERERS: Mapping[Vendor, Callable[[Iterable[tuple[Place, Any]]], Iterator[records.Read]]] = {
    "gemini": chats.gemini,
    "sillytavern": chats.sillytavern,
    "telegram": messengers.telegram,
}
"""Functions that read products whose records belong together."""
_CONVERSATIONS = r"(^|/)conversations(-\d+)?\.json$"
_MEMBERS: Mapping[Vendor, str] = {
    **dict.fromkeys(("chatgpt", "claude", "deepseek"), _CONVERSATIONS),
    **{"gemini": r"(?i)activity\.json$|活动.*\.json$", "sillytavern": r"\.jsonl$", "whatsapp": r"\.txt$"},
    **{"telegram": r"(^|/)result\.json$", "letta": r"\.(af|json)$"},
}
_LISTS: Mapping[Vendor, tuple[str, ...]] = {
    **{"claude": ("conversations",), "mem0": ("results", "memories"), "telegram": ("chats.list",)},
    **{"zep": ("edges", "facts", "relevant_facts"), "langmem": ("items",), "hindsight": ("items", "results")},
}
_UNREAD = (
    ("NextChat", frozenset({"chat-next-web-store"})),
    ("LobeChat", frozenset({"exportType", "state"})),
    ("Cherry Studio", frozenset({"localStorage", "indexedDB"})),
    ("Grok", frozenset({"conversations", "projects"})),
)
"""Products whose exports are known and not read, and fields by which they are known."""
_CONVERT = "convert it to lines as the guide's page on importing shows them"
_LOOKS: Sequence[tuple[Vendor, frozenset[str]]] = [
    ("deepseek", frozenset({"mapping", "inserted_at"})),
    ("chatgpt", frozenset({"mapping"})),
    ("claude", frozenset({"chat_messages"})),
    ("openwebui", frozenset({"chat", "user_id"})),
    ("librechat", frozenset({"conversationId"})),
    ("gemini", frozenset({"header", "time", "products"})),
    ("sillytavern", frozenset({"user_name", "character_name"})),
    ("sillytavern", frozenset({"mes", "is_user"})),
    ("characterai", frozenset({"histories"})),
    ("telegram", frozenset({"personal_information"})),
    ("telegram", frozenset({"name", "type", "messages"})),
    ("zep", frozenset({"fact", "uuid"})),
    ("letta", frozenset({"core_memory"})),
    ("letta", frozenset({"agents", "blocks"})),
    ("langmem", frozenset({"namespace", "key", "value"})),
    ("hindsight", frozenset({"text", "mentioned_at"})),
    ("mem0", frozenset({"memory", "id"})),
]
"""Fields that tell the products apart, the most specific first."""


@dataclass
class Conversion:
    """Counts of the records that were read."""

    conversations: int = 0
    messages: int = 0
    memories: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    """Messages and parts of messages that are not imported, by kind."""
    unread: int = 0
    """Records that could not be read."""
    errors: list[str] = field(default_factory=list)
    """The first few unread records, each with its place and the reason."""
    _starts: list[int] = field(default_factory=list)
    _places: list[str] = field(default_factory=list)
    _lines: int = 0

    def place_of(self, line: int) -> str:
        """Return the record from which a line was made; lines count from 1."""
        return self._places[bisect_right(self._starts, line) - 1]


class VendorExport:
    """An export and the user who receives it."""

    def __init__(self, vendor: Vendor, path: Path, *, user: str | None = None, expert: str | None = None) -> None:
        """Take the export's properties.

        Args:
            path: The archive, or a JSON file of it.
            user: User who receives the history; None = the users that the export names, else `USUAL_USER`.
            expert: Expert with whom the conversations go on; None = the default one.
        """
        self._vendor = vendor
        self.archive = Archive(
            path,
            members=_MEMBERS.get(vendor, r"\.json$"),
            lists=_LISTS.get(vendor, ()),
            as_text=vendor == "whatsapp",
        )
        self._user = user
        self._expert = {"expert": expert} if expert else {}

    def lines(self, into: Conversion, read: Callable[[int], None] = lambda _: None) -> Iterator[bytes]:
        """Yield the lines of every record in turn; counts are added to `into`. Raises `InvalidInput` if the
        file cannot be read, or breaks off."""
        for place, record in self._records(read):
            try:
                if isinstance(record, records.BadRecord):
                    raise record
                made = (
                    self._conversation(record)
                    if isinstance(record, records.VendorConversation)
                    else self._memory(record)
                )
            except records.BadRecord as error:
                into.unread += 1
                if len(into.errors) < MOST_ERRORS:
                    into.errors.append(f"{place}: {error}")
                continue
            into._starts.append(into._lines + 1)
            into._places.append(f"{place} ({record.id})")
            into._lines += len(made)
            _count(into, record)
            yield b"".join(json.dumps(line, ensure_ascii=False).encode() + b"\n" for line in made)

    def _records(self, read: Callable[[int], None]) -> Iterator[tuple[Place, records.Record | records.BadRecord]]:
        found = self.archive.records(read)
        if gather := _GATHERERS.get(self._vendor):
            yield from gather(found)
            return
        for place, raw in found:
            try:
                made = self._read(raw, place)
            except records.BadRecord as error:
                yield place, records.BadRecord(self._reason(raw, error))
                continue
            for each in made if isinstance(made, Sequence) else [made]:
                yield place, each

    def _read(self, raw: Any, place: Place) -> _Found:
        if self._vendor == "whatsapp":
            return messengers.whatsapp(raw, place)
        if self._vendor == "letta" and isinstance(raw, str):
            raw = memories.within(raw)
        return _READERS[self._vendor](records.mapping(raw, "it"), place.written_at)

    def _reason(self, raw: Any, error: records.BadRecord) -> str:
        """Return why a record cannot be read, and whose export it looks like."""
        keys = raw.keys() if isinstance(raw, Mapping) else frozenset()
        if product := next((name for name, fields in _UNREAD if fields <= keys), ""):
            return f"looks like an export of {product}, which has no reader: {_CONVERT}"
        other = next((vendor for vendor, fields in _LOOKS if fields <= keys), self._vendor)
        return (
            f"{error}; it looks like an export to be read with --from {other}"
            if other != self._vendor
            else str(error)
        )

    def _conversation(self, found: records.VendorConversation) -> list[dict[str, Any]]:
        if not found.messages:
            return []
        owner = {"user_id": self._user_of(found.user), "session_id": self._id(found.id)}
        about = {"kind": "session", "title": found.title.replace("\x00", "")[:_LONGEST_TITLE], **self._expert}
        lines = [{**owner, **about, "created_at": found.created_at.isoformat()}]
        at = found.created_at
        for message in found.messages:
            at = _later(at, message.at)
            line = {
                **owner,
                "role": message.role,
                "content": message.text.replace("\x00", ""),
                "created_at": at.isoformat(),
            }
            if message.speaker is not None:
                line["speaker"] = message.speaker
            if message.id is not None:
                line["external_id"] = self._id(message.id)
            lines.append(line)
        return lines

    def _memory(self, found: records.VendorMemory) -> list[dict[str, Any]]:
        line = {
            "kind": "episode",
            "user_id": self._user_of(found.user),
            "episode_type": "context",
            "content": found.text.replace("\x00", ""),
            "importance": _IMPORTANCE,
            "origin": "derived",
            "created_at": found.created_at.isoformat(),
        }
        return [line | self._expert]

    def _user_of(self, told: str | None) -> str:
        user = self._user or told or USUAL_USER
        if not is_id(user):
            raise records.BadRecord(f"its user {user[:40]!r} is no name of ours; name one with --user")
        return composed(user)

    def _id(self, vendors: str) -> str:
        """Return a stable id made from the vendor's id."""
        own = f"{self._vendor}:{_NO_ID.sub('_', vendors)}"
        if len(own) <= _LONGEST_ID and own == f"{self._vendor}:{vendors}":
            return own
        return f"{self._vendor}:{hashlib.sha256(vendors.encode()).hexdigest()}"


async def in_chunks(lines: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Yield lines in chunks for the importer; a thread reads them."""
    while chunk := await asyncio.to_thread(_next, lines):
        yield chunk


def _next(lines: Iterator[bytes]) -> bytes:
    chunk = bytearray()
    for line in lines:
        chunk += line
        if len(chunk) >= _BYTES_AT_ONCE:
            break
    return bytes(chunk)


def _later(before: datetime, at: datetime | None) -> datetime:
    """Return a time that keeps the order of the path, even if edits or clocks contradict it."""
    return before if at is None else max(before, at)


def _count(into: Conversion, record: records.Record) -> None:
    if isinstance(record, records.VendorMemory):
        into.memories += 1
        return
    into.left_out += record.left_out
    if record.messages:
        into.conversations += 1
        into.messages += len(record.messages)
    elif records.NOT_REMEMBERED not in record.left_out:
        into.left_out["conversations without messages"] += 1
