"""Sections of core memory as they are stored, and one that is being changed."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb
from uuid_utils.compat import uuid7

from services.encryption.marks import WordsJson, words_json
from services.errors import InvalidInput
from services.memory.core import sql as core_sql
from services.memory.core.content import MAX_SECTIONS, check_section, check_size, check_values
from services.memory.core.items import apply_changes, canonical, overlay
from services.memory.core.values import pinned_among, without_removals_of
from services.memory.operations import Actor, Entry, Operation, OperationLog, Trigger
from services.platform.authorship import made_by
from services.platform.connections import Connection
from state.memory import ItemChange
from state.prompt import CoreMemoryBlock, CoreMemorySections
from state.turn import OpenTurn


@dataclass(frozen=True)
class Owner:
    """Owner of a memory: a user with an expert, within a space or outside of any.

    What is remembered outside of any space is shared: it is known in every space. What is remembered within one is
    known there alone.
    """

    tenant_id: UUID
    user_id: UUID
    expert_id: UUID
    space_id: UUID | None = None

    @classmethod
    def of_turn(cls, turn: OpenTurn) -> "Owner":
        """Return the owner of the memory that a turn may read and change."""
        return cls(turn.tenant_id, turn.user_id, turn.expert_id, turn.space_id)

    @property
    def shared(self) -> "Owner":
        """Return the owner of the part that all spaces of the user share."""
        return replace(self, space_id=None)


@dataclass(frozen=True)
class Block:
    """A section as it is stored."""

    section: str
    content: dict[str, Any]
    version: int
    """Number of the version: 1 at first, and one more with each change."""
    updated_at: datetime
    id: UUID


@dataclass(frozen=True)
class Change:
    """One change of a section."""

    version: int
    """Number of the version that the change made."""
    old: dict[str, Any] | None
    """Content before the change; None if there was no such section."""
    new: dict[str, Any]
    actor: str
    """Who made the change: model, user, filing or import."""
    trigger_message_id: UUID | None
    """Message that caused the change, if there was one."""
    at: datetime


@dataclass(frozen=True)
class AddedItem:
    """One of several items that are added at once."""

    change: ItemChange
    trigger: Trigger
    of: Entry
    """The operation to which the item belongs; it is logged before the item."""


BACKGROUND: frozenset[Actor] = frozenset(["filing", "maintenance"])
"""Actors that never remove a pinned value."""


class SectionChange:
    """A section that is being changed, in a transaction that has locked its owner's core memory."""

    def __init__(self, connection: Connection, owner: Owner, section: str, log: OperationLog) -> None:
        self.connection = connection
        self.pins: Collection[bytes] = ()
        """Digests of the section's pinned values, which only the user removes; empty if they were not read."""
        self.owner = owner
        self._section = section
        self._log = log
        self._added: list[Entry] = []
        self._there: Block | None = None
        self._others = 0

    @property
    def content(self) -> dict[str, Any] | None:
        """Content of the section now; None = there is no such section."""
        return self._there.content if self._there else None

    @property
    def version(self) -> int:
        """Its version now, or 0."""
        return self._there.version if self._there else 0

    @property
    def block(self) -> Block:
        """Return the section, which must exist."""
        assert self._there is not None  # noqa: S101 — the caller's choice
        return self._there

    async def look(self) -> None:
        """Read the section, and count the owner's others."""
        values = {**vars(self.owner), "visible": False}
        blocks = blocks_of(await (await self.connection.execute(core_sql.READ, values)).fetchall())
        self._there = next((each for each in blocks if each.section == self._section), None)
        self._others = len(blocks) - bool(self._there)

    async def write(self, new: dict[str, Any], what: str, trigger: Trigger, *, whole: bool = False) -> None:
        """Store a new version; `whole` = the content replaces the old one and is not merged. Raises `InvalidInput`
        if it would be too large, or the owner would have one section too many."""
        self.add_version(new, what, trigger)
        await self._note(await self.store(whole=whole))

    def apply(self, changes: Sequence[ItemChange], trigger: Trigger) -> list[ItemChange]:
        """Add the version that results from changes of items, if any; return the changes that found nothing to
        change. Raises `InvalidInput` if the section's name or a value is not accepted, or the section would be too
        large."""
        check_section(self._section)
        for change in changes:
            check_values({change.field: change.value})
        old, refused = self.content or {}, list[ItemChange]()
        if self.pins and trigger.actor in BACKGROUND:
            pinned = pinned_among(self.block.id, old, self.pins)
            changes, refused = without_removals_of(pinned, old, changes)
        applied = apply_changes(old, changes)
        if canonical(old) != canonical(applied.content):
            self.add_version(applied.content, "core_memory_change", trigger)
        return [*refused, *applied.unmatched]

    def add_version(self, new: dict[str, Any], what: str, trigger: Trigger) -> None:
        """Add a version, which `store` writes together with earlier ones. Raises `InvalidInput` if it would be too
        large, or the owner would have one section too many."""
        new = self._log.secrets.without_in(new)
        check_size(self._section, new)
        if self._there is None and self._others >= MAX_SECTIONS:
            raise InvalidInput("section", f"there are {MAX_SECTIONS} sections already, and no more are accepted")
        self._added.append(self._entry(Operation(what, self._section, self.content, new), trigger))
        there = self._there or Block(self._section, {}, 0, datetime.now(UTC), uuid7())
        self._there = replace(there, content=new, version=there.version + 1)

    async def store(self, *, whole: bool = False) -> list[Entry]:
        """Write the versions that were added; return what the caller logs about them."""
        entries, self._added = self._added, []
        if not entries:
            return []
        operations, triggers = [each.operation for each in entries], [each.trigger for each in entries]
        block = self.block
        values = {
            **vars(self.owner),
            "id": block.id,
            "section": self._section,
            "content": WordsJson(block.content),
            "version": block.version,
            "whole": whole,
            "versions": list(range(block.version - len(entries) + 1, block.version + 1)),
            "olds": [words_json(each.old_value) for each in operations],
            "news": [WordsJson(each.new_value) for each in operations],
            "messages": [each.message_id for each in triggers],
            "actors": [each.actor for each in triggers],
            "made_by": [Jsonb(made_by(turn_id=each.turn_id, by=each.by)) for each in triggers],
        }
        row = await (await self.connection.execute(core_sql.WRITE, values)).fetchone()
        assert row is not None  # noqa: S101 — the owner's row was locked
        self._there = replace(block, updated_at=row[0], id=row[1])
        return entries

    async def delete(self, trigger: Trigger) -> None:
        """Delete the section with all of its versions, and remove its content from the log."""
        values: dict[str, Any] = {**vars(self.owner), "section": self._section}
        await self.connection.execute(core_sql.DELETE, values)
        await self.connection.execute(core_sql.SCRUB_SECTION, {**values, "content": None, "since": None})
        await self._note([self._entry(Operation("core_memory_delete", self._section), trigger)])

    def _entry(self, operation: Operation, trigger: Trigger) -> Entry:
        return Entry(operation, replace(trigger, expert_id=self.owner.expert_id, space_id=self.owner.space_id))

    async def _note(self, entries: Sequence[Entry]) -> None:
        await self._log.append_all(self.connection, self.owner.tenant_id, self.owner.user_id, entries)


def blocks_of(rows: Sequence[Sequence[Any]]) -> list[Block]:
    """Return the sections that `core_sql.READ` found."""
    return [Block(*row[:3], *row[4:]) for row in rows]


def sections_of(rows: Sequence[Sequence[Any]]) -> CoreMemorySections:
    """Return the sections that `core_sql.READ` found, a space's laid over the shared ones."""
    sections: CoreMemorySections = {}
    for name, content, version, rewritten, *_ in rows:
        block = CoreMemoryBlock(content=content, version=version, rewritten_version=rewritten)
        sections[name] = _over(sections[name], block) if name in sections else block
    return sections


def _over(shared: CoreMemoryBlock, own: CoreMemoryBlock) -> CoreMemoryBlock:
    """Return a space's section laid over the shared one; its version is the sum of both."""
    return CoreMemoryBlock(
        content=overlay(shared["content"], own["content"]),
        version=shared["version"] + own["version"],
        # If either was rewritten after a prompt began, this exceeds the version of the prompt.
        rewritten_version=max(
            shared["rewritten_version"] + own["version"] if shared["rewritten_version"] else 0,
            own["rewritten_version"] + shared["version"] if own["rewritten_version"] else 0,
        ),
    )
