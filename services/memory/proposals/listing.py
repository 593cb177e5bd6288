"""Lists proposals: changes of memory that wait for the user, or were settled, with their texts and sources."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, LiteralString
from uuid import UUID

from psycopg.rows import dict_row

from services.identity.tenants import user_id_of
from services.memory.core.values import CoreValue, CoreValues
from services.memory.episodes.episode import Source, sources_of
from services.memory.proposals.questions import ProposalKind, State
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
    """Id of the memory; for a value of core memory, the id of its section."""
    text: str
    created_at: datetime
    """When the memory was said or written."""
    messages: list[Source]
    """Messages that it comes from."""
    section: str | None = None
    """Section of a value of core memory; None = a written memory."""
    field: str | None = None
    """Field of a value of core memory; None = a written memory."""


@dataclass(frozen=True)
class Proposal:
    """A change of memory that waits for the user, or was settled."""

    id: UUID
    kind: ProposalKind
    text: str
    """Text to remember or to forget; of two memories, the one to keep."""
    replaces: str | None
    """Text that this would replace; of two memories, the one to remove."""
    state: State
    expert: str | None
    conversation_id: UUID | None
    turn_id: UUID | None
    at: datetime
    operation_id: UUID | None
    """Operation that carried an accepted one out, and can be undone; None = it changed nothing."""
    memories: list[ProposedMemory]
    """The one of two memories that stays, and the one that goes."""
    messages: list[Source]
    """Messages on which the change rests; those of two memories are listed with each memory."""


_Row = dict[str, Any]
_SIDES = ("kept", "dropped")
"""The one of two memories that stays, and the one that goes."""
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
        """Return proposals that wait, or were settled in a given way, newest first. A proposal about two memories
        waits as long as both are remembered and the one that would go is not pinned."""
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
        blocks = {row[f"{side}_id"] for row in rows for side in _SIDES if row[f"{side}_value"] is not None}
        read = await self._values.read(tenant_id, user_id, blocks) if blocks else []
        values = {(each.block_id, each.digest): each for each in read}
        pairs = [(row, _memories(row, values, waits=state == "waiting")) for row in rows]
        shown = [(row, memories) for row, memories in pairs if memories is not None]
        ids = [row["message_id"] for row, _ in shown]
        ids += [each for _, memories in shown for _, sources in memories for each in sources]
        messages = await sources_of(self._database, tenant_id, {each for each in ids if each is not None})

        def said(ids: Sequence[UUID | None]) -> list[Source]:
            return [messages[each] for each in ids if each is not None and each in messages]

        return [
            Proposal(
                **{name: row[name] for name in _AS_STORED},
                text=memories[0][0].text if memories else row["text"],
                replaces=memories[1][0].text if len(memories) > 1 else row["replaces"],
                memories=[replace(memory, messages=said(sources)) for memory, sources in memories],
                messages=said([row["message_id"]]),
            )
            for row, memories in shown
        ]


def _memories(
    row: _Row, values: Mapping[tuple[UUID, str], CoreValue], *, waits: bool
) -> list[tuple[ProposedMemory, Sequence[UUID | None]]] | None:
    """Return the two memories of a proposal, first the one that stays, each with the messages it comes from.
    Returns None if a value of core memory is unknown, or no longer holds while the proposal waits."""
    found: list[tuple[ProposedMemory, Sequence[UUID | None]]] = []
    for side, text in zip(_SIDES, (row["text"], row["replaces"]), strict=True):
        memory_id, digest, at = row[f"{side}_id"], row[f"{side}_value"], row[f"{side}_at"]
        if digest is not None:
            value = values.get((memory_id, digest))
            if value is None or (waits and (not value.holds or (side == "dropped" and value.is_pinned))):
                return None
            memory = ProposedMemory(memory_id, value.text, value.since, [], value.section, value.field)
            found.append((memory, [value.message_id]))
        elif at is not None:
            found.append((ProposedMemory(memory_id, text or "", at, []), row[f"{side}_from"] or []))
    return found
