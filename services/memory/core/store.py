"""Core memory: what an expert always knows about a user, in named sections of JSON.

Every change is stored with the old and the new value, and logged in its transaction. Changes of one core memory
are made one after the other, so none is lost.
"""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg.rows import tuple_row
from uuid_utils.compat import uuid7

from services.errors import Conflict, InvalidInput, NotFound
from services.memory.as_of import as_of
from services.memory.core import sql as core_sql
from services.memory.core.blocks import (
    BACKGROUND,
    AddedItem,
    Block,
    Change,
    Owner,
    SectionChange,
    blocks_of,
    sections_of,
)
from services.memory.core.content import check_section, check_size, check_values
from services.memory.core.items import canonical, merge_patch
from services.memory.core.provenance import taken_back
from services.memory.core.values import digests_pinned
from services.memory.operations import Actor, Entry, OperationLog, Trigger
from services.platform.connections import Connection, again_if_contended
from services.platform.postgres import Database
from services.platform.shared_reads import Query
from state.memory import ItemChange
from state.prompt import CoreMemorySections


class CoreMemory:
    """Reads and changes core memory."""

    def __init__(self, database: Database, log: OperationLog, *, on: bool = True) -> None:
        """Open core memory; with `on` false turns do not see it, but it can still be read and changed."""
        self._database = database
        self._log = log
        self._on = on

    async def owner(
        self, tenant_id: UUID, user: str, expert: str, space: str | None = None, *, make_space: bool = False
    ) -> Owner:
        """Return the owner for the caller's name of a user, and the names of an expert and a space. With
        `make_space`, a missing space is created. Raises `NotFound` if the tenant has no such user or expert, or
        the user no such space."""
        values = {"tenant_id": tenant_id, "user": user, "expert": expert, "space": space, "space_id": uuid7()}
        found = await self._database.fetch(tenant_id, core_sql.OWNER, values, tuple_row)
        if not found:
            raise NotFound(f"There is no user {user!r}.")
        user_id, expert_id, space_id, _ = found[0]
        if expert_id is None:
            raise NotFound(f"There is no expert {expert!r}.")
        if space is not None and space_id is None:
            if not make_space:
                raise NotFound(f"The user {user!r} has no space {space!r}.")
            await self._database.fetch(tenant_id, core_sql.MAKE_SPACE, values, tuple_row)
            return await self.owner(tenant_id, user, expert, space)
        return Owner(tenant_id, user_id, expert_id, space_id)

    async def read(self, owner: Owner, at: datetime | None = None) -> list[Block]:
        """Return the owner's own sections by name, from PostgreSQL: those of the space, or the shared ones. With
        `at`, return them as they were at that moment, except for sections removed since."""
        return blocks_of(await self._rows(owner, visible=False, at=at))

    async def known(self, owner: Owner) -> dict[str, dict[str, Any]]:
        """The content of every section as prompts show it, a space's laid over the shared ones."""
        sections = sections_of(await self._rows(owner, visible=True))
        return {name: block["content"] for name, block in sections.items()}

    async def for_turn(self, owner: Owner) -> CoreMemorySections:
        """Return every section as a prompt needs it."""
        return sections_of(await self._rows(owner, visible=True)) if self._on else {}

    @again_if_contended
    async def update(self, owner: Owner, section: str, patch: dict[str, Any], trigger: Trigger) -> Block:
        """Merge a patch into a section (`items.py`), which is created if needed. A patch that changes nothing
        makes no version. Raises `InvalidInput` if the section's name, the patch or the resulting size is not
        accepted, or the owner would have one section too many."""
        check_section(section)
        check_values(patch)
        async with self._changing(owner, section) as changing:
            old = changing.content
            new = merge_patch(old or {}, patch)
            if old is None or not _equal(old, new):
                # What is taken away must not stay in the beginning of a prompt.
                await changing.write(new, "core_memory_update", trigger, whole=_removes(patch))
        return changing.block

    async def change_items(
        self, connection: Connection, owner: Owner, changes: Sequence[ItemChange], trigger: Trigger
    ) -> list[ItemChange]:
        """Add, replace and remove single items (`items.py`) in the caller's transaction; everything else stays.

        Each section that changes gets one new version; what changes nothing makes none.

        Returns:
            Changes that found no item to change, or in the background would take a pinned one away.

        Raises:
            InvalidInput: a section's name or a value is not accepted, or a section would be too large.
        """
        unmatched, entries = list[ItemChange](), list[Entry]()
        for section, changing in (await self._sections(connection, owner, changes, {trigger.actor})).items():
            wanted = [change for change in changes if change.section == section]
            unmatched += changing.apply(wanted, trigger)
            entries += await changing.store()
        await self._log.append_all(connection, owner.tenant_id, owner.user_id, entries)
        return unmatched

    async def add_items(
        self, connection: Connection, owner: Owner, added: Sequence[AddedItem]
    ) -> list[InvalidInput | None]:
        """Add single items as `change_items` does, each with a version of its own, using few statements.

        Returns:
            For each item why it was not accepted, and nothing was logged; None = it was.
        """
        actors = {each.trigger.actor for each in added}
        sections = await self._sections(connection, owner, [each.change for each in added], actors)
        refused = [_why_not(sections[each.change.section], each) for each in added]
        entries = [each.of for each, why in zip(added, refused, strict=True) if why is None]
        for changing in sections.values():
            entries += await changing.store()
        await self._log.append_all(connection, owner.tenant_id, owner.user_id, entries)
        return refused

    async def take_back(
        self,
        connection: Connection,
        owner: Owner,
        section: str,
        changed: tuple[Mapping[str, Any] | None, Mapping[str, Any] | None],
        trigger: Trigger,
    ) -> bool:
        """Undo a change of a section in the caller's transaction; return whether that undid all of it and
        nothing later. Raises `InvalidInput` if the section has filled up since."""
        old, new = changed
        changing = await self._locked(connection, owner, section)
        content = changing.content or {}
        left, is_whole = taken_back(content, old or {}, new or {})
        if not _equal(content, left):
            await changing.write(left, "core_memory_change", trigger, whole=True)
        return is_whole

    async def locked_content(self, connection: Connection, owner: Owner, section: str) -> dict[str, Any]:
        """Return a section's content and lock it until the end of the caller's transaction."""
        return (await self._locked(connection, owner, section)).content or {}

    @again_if_contended
    async def replace(
        self,
        owner: Owner,
        section: str,
        content: dict[str, Any],
        trigger: Trigger,
        *,
        expected_version: int | None = None,
    ) -> Block:
        """Replace the whole content of a section, which starts a new epoch in every conversation.

        Raises:
            Conflict: the section's version is another than `expected_version` (0 = there is none yet).
            InvalidInput: as `update`.
        """
        check_section(section)
        check_size(section, content)
        async with self._changing(owner, section) as changing:
            if expected_version is not None and expected_version != changing.version:
                raise Conflict(f"The section {section} is at version {changing.version}.")
            if changing.content is None or not _equal(changing.content, content):
                await changing.write(content, "core_memory_replace", trigger, whole=True)
        return changing.block

    @again_if_contended
    async def rollback(self, owner: Owner, section: str, version: int, trigger: Trigger) -> Block:
        """Restore the content that a section had at a version, as a new version, which starts new epochs. Raises
        `NotFound` if there is no such section or version."""
        async with self._changing(owner, section) as changing:
            values = {**vars(changing.owner), "section": section, "version": version}
            row = await (await changing.connection.execute(core_sql.VERSION, values)).fetchone()
            if row is None:
                raise NotFound(f"There is no version {version} of a section {section!r}.")
            await changing.write(row[0], "core_memory_rollback", trigger, whole=True)
        return changing.block

    @again_if_contended
    async def forget(self, owner: Owner, section: str, trigger: Trigger) -> None:
        """Remove a section with its history. The log still says that there were changes, without their content.
        Raises `NotFound` if there is no such section."""
        async with self._changing(owner, section) as changing:
            if changing.content is None:
                raise NotFound(f"There is no section {section!r}.")
            await changing.delete(trigger)

    async def history(
        self, owner: Owner, section: str, *, before: int | None = None, limit: int
    ) -> Sequence[Change]:
        """Return changes of a section, newest first, beginning before the version `before`. Raises `NotFound` if
        there is no such section."""
        values = {**vars(owner), "section": section, "before": before, "limit": limit}
        rows = await self._database.fetch(owner.tenant_id, core_sql.HISTORY, values, tuple_row)
        if not rows:
            raise NotFound(f"There is no section {section!r}.")
        return [Change(*row) for row in rows if row[0] is not None]

    @asynccontextmanager
    async def _changing(self, owner: Owner, section: str) -> AsyncIterator[SectionChange]:
        """Open a transaction in which nobody else changes this core memory."""
        async with self._database.tenant(owner.tenant_id) as connection:
            changing = await self._locked(connection, owner, section)
            yield changing

    async def _locked(self, connection: Connection, owner: Owner, section: str) -> SectionChange:
        """Lock the core memory that holds a section, for the rest of the transaction."""
        if await (await connection.execute(core_sql.LOCK, vars(owner))).fetchone() is None:
            raise NotFound("There is no such user.")
        changing = SectionChange(connection, owner, section, self._log)
        await changing.look()
        return changing

    async def _sections(
        self, connection: Connection, owner: Owner, changes: Sequence[ItemChange], actors: Collection[Actor]
    ) -> dict[str, SectionChange]:
        """Lock the sections that changes name, always in the same order, so that two transactions never wait for
        each other."""
        sections = {
            each: await self._locked(connection, owner, each) for each in sorted({c.section for c in changes})
        }
        for changing in sections.values():
            if changing.version and not BACKGROUND.isdisjoint(actors):
                changing.pins = await digests_pinned(connection, owner.tenant_id, [changing.block.id])
        return sections

    async def _rows(self, owner: Owner, *, visible: bool, at: datetime | None = None) -> Sequence[Sequence[Any]]:
        values = {**vars(owner), "visible": visible, "as_of": at}
        if at is None:
            return await self._database.read(owner.tenant_id, Query(core_sql.READ, values, tuple_row))
        return await self._database.fetch(owner.tenant_id, as_of(core_sql.READ), values, tuple_row)


def _why_not(changing: SectionChange, added: AddedItem) -> InvalidInput | None:
    try:
        changing.apply([added.change], added.trigger)
    except InvalidInput as error:
        return error
    return None


def _removes(patch: Mapping[str, Any]) -> bool:
    """Return whether a patch takes a field away."""
    return any(each is None or (isinstance(each, dict) and _removes(each)) for each in patch.values())


def _equal(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return canonical(one) == canonical(other)
