"""Lists proposals: changes of memory that wait for the user, or were settled, with their texts and sources."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, LiteralString
from uuid import UUID

from psycopg.rows import dict_row

from services.identity.tenants import user_id_of
from services.memory.core_values import CoreValue, CoreValues
from services.memory.episodes.episode import Source, sources_of
from services.memory.open_questions import ProposalKind, State
from services.memory.pairs import Side
from services.platform.postgres import Database
from services.platform.shared_reads import page_after

# Of two memories, one that waits is shown only while both are remembered and the one that would go is not pinned.
# Of a value of core memory only its section is known here.
_LIST: LiteralString = """
SELECT o.id, o.field AS kind, coalesce(kept.content, o.new_value->>'text', '') AS text,
       coalesce(dropped.content, o.new_value->>'replaces') AS replaces, o.results->>'state' AS state,
       x.name AS expert, o.conversation_id, o.turn_id, o.at, (o.trigger->>'message_id')::uuid AS message_id,
       (o.results->>'kept')::uuid AS kept_id, kept.created_at AS kept_at, kept.source_message_ids AS kept_from,
       (o.results->>'dropped')::uuid AS dropped_id, dropped.created_at AS dropped_at,
       dropped.source_message_ids AS dropped_from, o.results->>'kept_value' AS kept_value,
       o.results->>'dropped_value' AS dropped_value, (o.results->>'operation')::uuid AS operation_id
FROM memory_operations o LEFT JOIN experts x ON x.id::text = o.trigger->>'expert_id' AND x.tenant_id = o.tenant_id
LEFT JOIN episodes kept ON kept.id = (o.results->>'kept')::uuid AND kept.tenant_id = o.tenant_id
    AND kept.retracted_at IS NULL
LEFT JOIN episodes dropped ON dropped.id = (o.results->>'dropped')::uuid AND dropped.tenant_id = o.tenant_id
    AND dropped.retracted_at IS NULL
WHERE o.tenant_id = %(tenant_id)s AND o.user_id = %(user_id)s AND o.type = 'memory_proposal'
  AND o.new_value IS NOT NULL AND o.results->>'state' = %(state)s
  AND (NOT o.results ? 'kept'
       OR (o.results ? 'kept_value'
           OR kept.id IS NOT NULL AND (%(state)s <> 'waiting' OR EXISTS (
               SELECT FROM remembered_episodes r WHERE r.id = kept.id)))
      AND (o.results ? 'dropped_value' OR dropped.id IS NOT NULL AND (
           %(state)s <> 'waiting' OR dropped.pinned_at IS NULL AND EXISTS (
               SELECT FROM remembered_episodes r WHERE r.id = dropped.id))))
  AND (%(after_at)s::timestamptz IS NULL OR (o.at, o.id) < (%(after_at)s, %(after_id)s::uuid))
ORDER BY o.at DESC, o.id DESC LIMIT %(limit)s
"""


@dataclass(frozen=True)
class ProposedMemory:
    """One of the two memories that a proposal is about."""

    id: UUID
    """Its id; of a value of core memory that of its section."""
    text: str
    created_at: datetime
    """When it was said or written."""
    messages: list[Source]
    """Messages that it comes from."""
    section: str | None = None
    """Of a value of core memory, its section."""
    field: str | None = None
    """Of a value of core memory, its field."""


@dataclass(frozen=True)
class Proposal:
    """A change of memory that waits for the user, or was settled."""

    id: UUID
    kind: ProposalKind
    text: str
    """What would be remembered or forgotten; of two memories, the one that stays."""
    replaces: str | None
    """What it would replace; of two memories, the one that goes."""
    state: State
    expert: str | None
    conversation_id: UUID | None
    turn_id: UUID | None
    at: datetime
    operation_id: UUID | None
    """By which an accepted one was carried out, and can be undone; None = it changed nothing."""
    memories: list[ProposedMemory]
    """Of two memories, the one that stays and the one that goes."""
    messages: list[Source]
    """The message that a change rests on; of two memories, theirs are with them."""


_Row = dict[str, Any]
_AS_STORED = ("id", "kind", "state", "expert", "conversation_id", "turn_id", "at", "operation_id")


class ProposalList:
    """Reads proposals."""

    def __init__(self, database: Database, values: CoreValues) -> None:
        self._database = database
        self._values = values

    async def list(
        self,
        tenant_id: UUID,
        user: str,
        *,
        state: State = "waiting",
        after: tuple[datetime, UUID] | None = None,
        limit: int,
    ) -> Sequence[Proposal]:
        """Proposals that wait, or were settled in a way, newest first.

        One about two memories waits for as long as both are remembered, and the one that would go is not pinned.
        """
        user_id = await user_id_of(self._database, tenant_id, user)
        found: list[Proposal] = []
        # Values of core memory that have gone meanwhile are known only here, so that a page may lose some.
        while len(found) < limit:
            wanted = limit - len(found)
            values = {"tenant_id": tenant_id, "user_id": user_id, "state": state, **page_after(after, wanted)}
            rows = await self._database.fetch(tenant_id, _LIST, values, dict_row)
            found += await self._shown(tenant_id, user_id, state, rows)
            if len(rows) < wanted:
                break
            after = (rows[-1]["at"], rows[-1]["id"])
        return found

    async def _shown(
        self, tenant_id: UUID, user_id: UUID, state: State, rows: Sequence[_Row]
    ) -> Sequence[Proposal]:
        """Return the proposals with their texts and sources, without those about values that are gone."""
        blocks = {side.id for row in rows for side in _sides(row) if side.digest is not None}
        read = await self._values.read(tenant_id, user_id, blocks) if blocks else []
        values = {Side(each.block_id, each.digest): each for each in read}
        shown = [row for row in rows if _is_shown(row, state, values)]
        ids = {each for row in shown for each in _message_ids(row)}
        of_values = (values[side].message_id for row in shown for side in _sides(row) if side in values)
        ids |= {each for each in of_values if each is not None}
        messages = await sources_of(self._database, tenant_id, ids)
        return [_proposal(row, messages, values) for row in shown]


def _sides(row: _Row) -> list[Side]:
    """Of two memories, the one that stays and the one that goes."""
    if row["kept_id"] is None or row["dropped_id"] is None:
        return []
    return [Side(row["kept_id"], row["kept_value"]), Side(row["dropped_id"], row["dropped_value"])]


def _is_shown(row: _Row, state: State, values: Mapping[Side, CoreValue]) -> bool:
    """Whether the values of core memory that it is about are known, and, while it waits, still hold."""
    both = _sides(row)
    sides = [side for side in both if side.digest is not None]
    if any(side not in values for side in sides):
        return False
    if state != "waiting":
        return True
    return all(values[side].holds and not (side == both[1] and values[side].is_pinned) for side in sides)


def _message_ids(row: _Row) -> list[UUID]:
    own = [row["message_id"]] if row["message_id"] else []
    return [*own, *(row["kept_from"] or []), *(row["dropped_from"] or [])]


def _proposal(row: _Row, messages: Mapping[UUID, Source], values: Mapping[Side, CoreValue]) -> Proposal:
    def said(ids: Sequence[UUID | None] | None) -> list[Source]:
        return [messages[each] for each in ids or [] if each is not None and each in messages]

    memories = []
    written = [(row["text"], row["kept_at"], row["kept_from"])]
    written.append((row["replaces"], row["dropped_at"], row["dropped_from"]))
    for side, (text, at, ids) in zip(_sides(row), written, strict=False):
        if side in values:
            value = values[side]
            of_value = said([value.message_id])
            memories.append(ProposedMemory(side.id, value.text, value.since, of_value, value.section, value.field))
        elif at is not None:
            memories.append(ProposedMemory(side.id, text or "", at, said(ids)))
    return Proposal(
        **{name: row[name] for name in _AS_STORED},
        text=memories[0].text if memories else row["text"],
        replaces=memories[1].text if len(memories) > 1 else row["replaces"],
        memories=memories,
        messages=said([row["message_id"]]),
    )
