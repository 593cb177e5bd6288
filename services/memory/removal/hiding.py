"""Hiding: what a user asked to forget or to leave out disappears from memory, and can come back.

Messages stay where they are, for the user to read; prompts, recall and summaries see them through
`remembered_messages`. Everything made of a retracted message is withdrawn in the same transaction, and made again
without it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb
from uuid_utils.compat import uuid7

from services.encryption.marks import all_words
from services.errors import InvalidInput
from services.jobs.queue import JobQueue
from services.jobs.tasks import ARCHIVE, SUMMARISE
from services.memory.core.blocks import AddedItem, Owner
from services.memory.core.store import CoreMemory
from services.memory.episodes.episode import IMPORTANCE, EpisodeStore, NewEpisode
from services.memory.operations import Entry, Operation, OperationLog, Trigger
from services.memory.removal import hiding_sql as sql
from services.memory.removal.tables import Rows
from services.platform.connections import Connection
from state.memory import PlannedChange

COMMAND = "memory_command"
"""Type of the log entry; changes of core memory that belong to it name it in `part_of`."""


class Hiding:
    """Carries out planned changes of memory in the caller's transaction."""

    def __init__(self, core: CoreMemory, episodes: EpisodeStore, log: OperationLog, jobs: JobQueue) -> None:
        self._core = core
        self._episodes = episodes
        self._log = log
        self._jobs = jobs

    async def commit(
        self,
        connection: Connection,
        owner: Owner,
        planned: PlannedChange,
        trigger: Trigger,
        *,
        but: UUID | None = None,
    ) -> UUID | None:
        """Change memory as planned; return the operation that can be undone, or None if nothing changes.

        `but` is the conversation of the turn that asked for the change; its prompt is already made without what
        goes.

        Raises:
            InvalidInput: An item of core memory is not accepted.
        """
        operation_id = planned.change["operation_id"]
        if operation_id is None:
            return None
        texts = {UUID(message_id): text for message_id, text in planned.messages.items()}
        values: dict[str, Any] = {
            **vars(owner),
            "operation_id": UUID(operation_id),
            "message_ids": list(texts),
            "texts": all_words(
                None if each is None else self._log.secrets.without(each) for each in texts.values()
            ),
            "off_record": [planned.off_record] * len(texts),
            "episode_ids": [UUID(each) for each in planned.episodes],
            "closed_ids": [UUID(each) for each in planned.closes],
        }
        await self.lock(connection, owner)
        part = replace(trigger, details={**trigger.details, "part_of": operation_id})
        old = await self._retract(connection, values) if texts or planned.episodes or planned.closes else None
        written = await self._write(connection, owner, planned, part)
        entry = _entry(owner, planned, trigger, written, old)
        await self._log.append_all(connection, owner.tenant_id, owner.user_id, [entry])
        if planned.items:
            for whose in [owner.shared, owner] if planned.reaches_shared and owner.space_id else [owner]:
                await self._core.change_items(connection, whose, planned.items, part)
        goes = planned.change["kind"] in {"forget", "do_not_remember"} and planned.is_told
        await self.remake(connection, owner, list(texts), everywhere=goes, but=but)
        return UUID(operation_id)

    async def add_all(
        self, connection: Connection, owner: Owner, additions: Sequence[tuple[PlannedChange, Trigger]]
    ) -> list[InvalidInput | None]:
        """Carry out plans that only add, in a few statements. The caller holds the `lock`.

        Returns:
            For each plan why it was refused; None = it was carried out.
        """
        refused: list[InvalidInput | None] = [None] * len(additions)
        entries, items, places = list[Entry](), list[AddedItem](), list[int]()
        for place, (planned, trigger) in enumerate(additions):
            part = replace(trigger, details={**trigger.details, "part_of": planned.change["operation_id"]})
            try:
                written = await self._write(connection, owner, planned, part)
            except InvalidInput as error:
                refused[place] = error
                continue
            entry = _entry(owner, planned, trigger, written)
            if planned.items:
                items.append(AddedItem(planned.items[0], part, entry))
                places.append(place)
            else:
                entries.append(entry)
        await self._log.append_all(connection, owner.tenant_id, owner.user_id, entries)
        for place, why in zip(places, await self._core.add_items(connection, owner, items), strict=True):
            refused[place] = why
        return refused

    async def hold(
        self, connection: Connection, owner: Owner, turn_ids: Sequence[UUID], why: tuple[Trigger, str]
    ) -> UUID | None:
        """Take turns of a game or story out of recall. The caller holds the `lock`.

        Args:
            why: Cause of it, and how the user is told.

        Returns:
            The operation that can be undone; None = none of them was recalled.
        """
        operation_id = uuid7()
        values = {**vars(owner), "operation_id": operation_id, "turn_ids": list(turn_ids)}
        held = await Rows(connection, values).firsts(sql.HOLD_TURNS) if turn_ids else []
        if not held:
            return None
        trigger, told = why
        results = {"items": [told], "messages": 0, "episodes": len(held)}
        operation = Operation(COMMAND, field="do_not_remember", old_value={}, results=results)
        entry = Entry(
            operation, replace(trigger, expert_id=owner.expert_id, space_id=owner.space_id), operation_id
        )
        await self._log.append_all(connection, owner.tenant_id, owner.user_id, [entry])
        return operation_id

    @staticmethod
    async def lock(connection: Connection, owner: Owner) -> None:
        """Lock the user's memory against other changes until the end of the caller's transaction."""
        await connection.execute(sql.LOCK_USER, vars(owner))

    async def remake(
        self,
        connection: Connection,
        owner: Owner,
        message_ids: Sequence[UUID],
        *,
        everywhere: bool,
        but: UUID | None = None,
    ) -> None:
        """Withdraw what was made from changed messages, and have it made again.

        With `everywhere`, the next prompt of each of the user's conversations starts a new epoch, except for that
        of `but`, whose epoch was made without them already.
        """
        if not message_ids and not everywhere:
            return
        values = {**vars(owner), "message_ids": list(message_ids), "everywhere": everywhere, "but": but}
        rows = Rows(connection, {**values, "conversation_ids": []})
        if message_ids:
            rows.values["conversation_ids"] = await rows.firsts(sql.LOCK_CONVERSATIONS)
        if rows.values["conversation_ids"]:
            await rows.run(sql.TOUCH_CONVERSATIONS)
            summarised = await rows.firsts(sql.WITHDRAW_SUMMARIES)
            await rows.run(sql.WITHDRAW_PARTS)
            archived = await rows.firsts(sql.WITHDRAW_TOPICS)
            await rows.run(sql.WITHDRAW_DAYS, visit_ids=await rows.firsts(sql.WITHDRAW_VISITS))
            for task, conversations in ((SUMMARISE, summarised), (ARCHIVE, archived)):
                for of in dict.fromkeys(conversations):
                    tenant_id = owner.tenant_id
                    await self._jobs.defer(connection, task, tenant_id=tenant_id, one_of=of, conversation_id=of)
        await rows.run(sql.END_EPOCHS)

    async def bring_back(
        self,
        connection: Connection,
        owner: Owner,
        operation_id: UUID,
        message_ids: Sequence[UUID],
        unmerged: Sequence[Mapping[str, Any]],
        *,
        everywhere: bool = False,
    ) -> None:
        """Bring back what an operation withdrew along with messages, which have come back already."""
        values: dict[str, Any] = {
            **vars(owner),
            "operation_id": operation_id,
            "message_ids": list(message_ids),
            "unmerged": Jsonb(list(unmerged)),
        }
        for statement in (sql.RESTORE_EPISODES, sql.CHANGED_EPISODES, sql.MERGE_AGAIN):
            await connection.execute(statement, values)
        await self.remake(connection, owner, message_ids, everywhere=everywhere)

    async def _retract(self, connection: Connection, values: dict[str, Any]) -> dict[str, Any]:
        """Mark messages and episodes; return what they were before."""
        rows = Rows(connection, values)
        await rows.run(sql.LOCK_CONVERSATIONS)
        return {
            "messages": await rows.firsts(sql.RETRACT_MESSAGES),
            "notes": await rows.firsts(sql.SILENCE),
            "closed": await rows.firsts(sql.CLOSE_TURNS),
            "unmerged": await self.withdraw_episodes(connection, values),
        }

    async def withdraw_episodes(self, connection: Connection, values: dict[str, Any]) -> list[dict[str, Any]]:
        """Withdraw the episodes that were made from messages; return those that were merged with others and no
        longer are.

        `values` holds `tenant_id`, `user_id`, `operation_id`, `message_ids` and `episode_ids`.
        """
        rows = Rows(connection, values)
        rows.values["episode_ids"] = [*values["episode_ids"], *await rows.firsts(sql.MERGED_INTO)]
        gone = await rows.firsts(sql.RETRACT_EPISODES)
        await rows.run(sql.CHANGED_EPISODES)
        made: dict[UUID, UUID | None] = dict(await rows.all(sql.MERGED_FROM, gone=gone)) if gone else {}
        if not made:
            return []
        instead = {each: _holds_instead(each, made) for each in made}
        return await rows.firsts(sql.UNMERGE, made=list(made), instead=list(instead.values()))

    async def _write(
        self, connection: Connection, owner: Owner, planned: PlannedChange, trigger: Trigger
    ) -> list[str]:
        """Write a plan's memories that had no room in core memory or are events; return their ids."""
        ids = []
        for text in planned.written:
            new = NewEpisode(
                content=text,
                episode_type="context",
                importance=IMPORTANCE["preference"],
                origin="user_said",
                source_message_ids=[trigger.message_id] if trigger.message_id else [],
                conversation_id=trigger.conversation_id,
            )
            ids.append(str(await self._episodes.add(connection, owner, new, trigger)))
        return ids


def _entry(
    owner: Owner,
    planned: PlannedChange,
    trigger: Trigger,
    written: Sequence[str],
    hidden: Mapping[str, Any] | None = None,
) -> Entry:
    """Return the log entry of a plan, with everything needed to undo it."""
    operation = Operation(
        COMMAND,
        field=planned.change["kind"],
        old_value={
            "messages": [],
            "notes": [],
            "unmerged": [],
            "closed": [],
            **(hidden or {}),
            "written": written,
        },
        query=planned.target.replace("\x00", "") or None,
        results={
            "items": planned.change["items"],
            "messages": len(planned.messages),
            "episodes": len(planned.episodes),
        },
    )
    operation_id = planned.change["operation_id"]
    expert_id = trigger.expert_id or owner.expert_id
    why = replace(trigger, expert_id=expert_id, space_id=owner.space_id)
    return Entry(operation, why, UUID(operation_id) if operation_id else None)


def _holds_instead(made: UUID, texts: dict[UUID, UUID | None]) -> UUID | None:
    """Return the text that replaced a merged one, skipping texts that were merged from it."""
    by = texts.get(made)
    while by is not None and by in texts:
        by = texts[by]
    return by
