"""The log of what memory did and why. An entry is appended in the transaction of the change that it records."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Any, Literal, LiteralString
from uuid import UUID

from psycopg.rows import class_row, tuple_row
from uuid_utils.compat import uuid7

from services.encryption.marks import WordsInJson, WordsJson, words, words_in_json, words_json
from services.errors import Conflict
from services.identity.tenants import user_id_of
from services.platform import span_names as names
from services.platform.connections import Connection
from services.platform.postgres import Database
from services.platform.shared_reads import page_after
from services.platform.tracing import span
from services.text.secrets import Secrets
from state.turn import OpenTurn

Actor = Literal["model", "user", "filing", "maintenance"]
"""Who changes memory: the answering model by a tool, the user (or a client for them) through the API, the filing
of what was said, or maintenance by policy."""

PROPOSAL = "memory_proposal"
"""Type of the log entry for a change that waits for the user."""

_OF_ENTRY = (
    *("id", "conversation_id", "space_id", "turn_id", "type", "field"),
    *("old_value", "new_value", "query", "results", "trigger"),
)

# Searches and proposals change nothing.
LAST_CHANGE: LiteralString = """
SELECT id FROM memory_operations
WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s AND type <> 'memory_proposal'
  AND right(type, 7) <> '_search'
ORDER BY at DESC, id DESC LIMIT 1
"""

# An addition takes nothing away from what a prompt has shown; neither does what programs keep.
_LAST_LOSS: LiteralString = """
SELECT id FROM memory_operations
WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s
  AND NOT (type = 'memory_command' AND field IN ('remember', 'standing'))
  AND type NOT IN ('memory_proposal', 'memory_filing', 'episode_insert', 'store_put', 'store_delete')
  AND type !~ '_(search|pin|unpin)$'
ORDER BY at DESC, id DESC LIMIT 1
"""

_ACCEPT = """
UPDATE memory_operations
SET results = results || jsonb_build_object('state', 'accepted', 'operation', %(by)s::text)
WHERE id = %(id)s AND tenant_id = %(tenant_id)s AND user_id = %(user_id)s AND type = 'memory_proposal'
  AND results->>'state' = 'waiting' AND new_value IS NOT NULL
"""

_LIST = """
SELECT o.id, o.conversation_id, o.turn_id, e.name AS expert, o.type, o.field, o.old_value, o.new_value, o.query,
       o.results, o.trigger - ARRAY['expert_id', 'space_id'] AS trigger, o.at, o.undone_at, s.name AS space
FROM memory_operations o
LEFT JOIN spaces s ON s.id = o.space_id AND s.tenant_id = o.tenant_id
LEFT JOIN experts e ON e.id::text = o.trigger->>'expert_id' AND e.tenant_id = o.tenant_id
WHERE o.tenant_id = %(tenant_id)s AND o.user_id = %(user_id)s
  AND (o.space_id IS NULL OR s.name = %(space)s)
  AND (%(after_at)s::timestamptz IS NULL OR (o.at, o.id) < (%(after_at)s, %(after_id)s::uuid))
ORDER BY o.at DESC, o.id DESC LIMIT %(limit)s
"""

_CLEAR = ("actor", "by", "call", "state")
"""Keys whose values are the service's own words, so that they are stored in clear and statements can search by
them."""


@dataclass(frozen=True)
class Trigger:
    """Who changes memory, and what caused the change."""

    actor: Actor
    message_id: UUID | None = None
    conversation_id: UUID | None = None
    turn_id: UUID | None = None
    expert_id: UUID | None = None
    """Expert whose memory of the user changes, if nothing else tells it."""
    space_id: UUID | None = None
    """Space whose memory changes; None = the part that all spaces of the user share."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """Further facts, stored as JSON."""
    accepts: UUID | None = None
    """Proposal that the change carries out. It is accepted in the same transaction, so that neither happens
    without the other."""

    @property
    def by(self) -> str | None:
        """Return the interface through which the user, or a program for them, makes the change: `console`, `api`
        or `mcp`."""
        return self.details.get("by")

    @classmethod
    def of_turn(cls, turn: OpenTurn, actor: Actor) -> "Trigger":
        """Return the trigger for the changes of a turn."""
        return cls(actor, turn.user_message_id, turn.conversation_id, turn.turn_id)


@dataclass(frozen=True)
class Operation:
    """One thing that memory did; fields that do not apply are None."""

    type: str
    """Such as `core_memory_update`."""
    field: str | None = None
    """Name of the thing that was changed, such as a section."""
    old_value: Any = None
    new_value: Any = None
    query: str | None = None
    """Words that were searched for."""
    results: Any = None


@dataclass(frozen=True)
class Entry:
    """An entry to append to the log."""

    operation: Operation
    trigger: Trigger
    operation_id: UUID | None = None
    """Id of the operation, if the caller has chosen it."""


@dataclass(frozen=True)
class LoggedOperation:
    """An operation of the log."""

    id: UUID
    conversation_id: UUID | None
    turn_id: UUID | None
    expert: str | None
    """Name of the expert whose memory it concerns."""
    type: str
    field: str | None
    """Name of what was changed, such as a section of core memory."""
    old_value: Any
    new_value: Any
    query: str | None
    results: Any
    trigger: dict[str, Any]
    """The `actor`, and what caused the operation."""
    at: datetime
    undone_at: datetime | None
    """When it was undone, if it was."""
    space: str | None
    """Name of the space whose memory it concerns; None = the part that all spaces share."""


class OperationLog:
    """Appends to the log and reads it."""

    def __init__(self, database: Database, secrets: Secrets | None = None) -> None:
        self._database = database
        self.secrets = secrets or Secrets()
        """Recognises secrets, which neither memory nor its log keeps."""

    async def last_loss(self, tenant_id: UUID, user_id: UUID) -> UUID | None:
        """Return the newest operation by which memory may have lost or replaced something; None if there is
        none."""
        values = {"tenant_id": tenant_id, "user_id": user_id}
        found = await self._database.fetch(tenant_id, _LAST_LOSS, values, tuple_row)
        return found[0][0] if found else None

    async def append(
        self,
        connection: Connection,
        tenant_id: UUID,
        user_id: UUID,
        operation: Operation,
        trigger: Trigger,
        operation_id: UUID | None = None,
    ) -> UUID:
        """Log an operation in the caller's transaction (`Database.tenant`); return its id.

        `trigger` is stored as `{"actor", "message_id", "expert_id", "space_id", …details}`; `operation_id` is an
        id that the caller has chosen.

        Raises:
            Conflict: the proposal that it accepts does not wait any more.
            NotFound: the user or the conversation was erased in the meantime.
        """
        [made] = await self.append_all(connection, tenant_id, user_id, [Entry(operation, trigger, operation_id)])
        return made

    async def append_all(
        self, connection: Connection, tenant_id: UUID, user_id: UUID, entries: Sequence[Entry]
    ) -> Sequence[UUID]:
        """Log operations in one statement, in their order; return their ids.

        Raises:
            Conflict, NotFound: as `append`.
        """
        if not entries:
            return []
        values: dict[str, Any] = {"tenant_id": tenant_id, "user_id": user_id}
        ids = [each.operation_id or uuid7() for each in entries]
        with ExitStack() as spans:
            for number, (operation_id, entry) in enumerate(zip(ids, entries, strict=True)):
                row = self._row(operation_id, entry)
                values |= {f"{name}_{number}": row[name] for name in _OF_ENTRY}
                spans.enter_context(_span_of(operation_id, entry))
            await connection.execute(_append(len(entries)), values)
        # Where a change consists of parts, the operation that they belong to is what can be undone.
        for operation_id, entry in zip(ids, entries, strict=True):
            accepts = entry.trigger.accepts
            if accepts is not None and "part_of" not in entry.trigger.details:
                accepted = {"id": accepts, "tenant_id": tenant_id, "user_id": user_id, "by": str(operation_id)}
                if (await connection.execute(_ACCEPT, accepted)).rowcount == 0:
                    raise Conflict(f"The proposal {accepts} was settled before.")
        return ids

    def _row(self, operation_id: UUID, entry: Entry) -> dict[str, Any]:
        """Return an operation as it is stored."""
        operation, trigger = entry.operation, entry.trigger
        without = self.secrets.without_in
        why = {**without(trigger.details), "actor": trigger.actor}
        if trigger.accepts is not None:
            why["proposal"] = str(trigger.accepts)
        why |= {
            name: str(value)
            for name in ("message_id", "expert_id", "space_id")
            if (value := getattr(trigger, name)) is not None
        }
        return {
            "id": operation_id,
            "conversation_id": trigger.conversation_id,
            "space_id": trigger.space_id,
            "turn_id": trigger.turn_id,
            "type": operation.type,
            "field": operation.field,
            "old_value": logged_value(operation.type, without(operation.old_value)),
            "new_value": logged_value(operation.type, without(operation.new_value)),
            "query": words(without(operation.query)),
            "results": words_in_json(without(operation.results), clear=_CLEAR),
            "trigger": words_in_json(why, clear=_CLEAR),
        }

    async def list(
        self,
        tenant_id: UUID,
        user: str,
        *,
        space: str | None = None,
        after: tuple[datetime, UUID] | None = None,
        limit: int,
    ) -> Sequence[LoggedOperation]:
        """Return operations on one space and on what all spaces share, newest first.

        `user` and `space` are the caller's names for them.
        """
        user_id = await user_id_of(self._database, tenant_id, user)
        values = {"tenant_id": tenant_id, "user_id": user_id, "space": space, **page_after(after, limit)}
        return await self._database.fetch(tenant_id, _LIST, values, class_row(LoggedOperation))


_SPANS = {"_search": "search_memory", "_insert": "create_memory"} | dict.fromkeys(
    ("_delete", "_supersede", "_archive"), "delete_memory"
)
"""The tracing conventions' name of an operation, by the end of its type; all other types count as changes."""


@lru_cache(maxsize=64)
def _append(count: int) -> bytes:
    """Return the statement that appends `count` operations."""
    rows = (
        f"(%(tenant_id)s, %(user_id)s, {', '.join(f'%({name}_{number})s' for name in _OF_ENTRY)})"
        for number in range(count)
    )
    columns = ", ".join(_OF_ENTRY)
    statement = f"INSERT INTO memory_operations (tenant_id, user_id, {columns}) VALUES {', '.join(rows)}"  # noqa: S608 — our own text only
    return statement.encode()


def _span_of(operation_id: UUID, entry: Entry) -> AbstractContextManager[Any]:
    kinds = (kind for ending, kind in _SPANS.items() if entry.operation.type.endswith(ending))
    kind = next(kinds, "update_memory")
    about = {
        names.OPERATION: kind,
        names.MEMORY_RECORD: str(operation_id),
        names.MEMORY_ACTOR: entry.trigger.actor,
        names.MEMORY_OPERATION: entry.operation.type,
    }
    return span(kind, about)


def logged_value(kind: str, value: Any) -> WordsJson | WordsInJson | None:
    """Return a value in the form in which the log stores it; no statement reads the content of a section."""
    return words_json(value) if kind.startswith("core_memory_") else words_in_json(value, clear=_CLEAR)
