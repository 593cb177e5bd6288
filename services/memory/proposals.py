"""Proposals: changes of memory that rest on content which is not the user's own words, and wait for the user.

They stand in the log of operations, so that they fall with their turn, their conversation and their user.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, LiteralString
from uuid import UUID

from psycopg.rows import class_row, tuple_row

from services.errors import Conflict, NotFound
from services.identity.tenants import user_id_of
from services.memory.blocks import Owner
from services.memory.editor import EditContext, MemoryEditor
from services.memory.operations import Operation, OperationLog, Trigger
from services.platform.postgres import Database
from state.memory import MemoryChange

PROPOSAL = "memory_proposal"
"""Type under which it stands in the log."""
ProposalKind = Literal["remember", "forget"]
State = Literal["waiting", "accepted", "rejected"]


_LIST: LiteralString = """
SELECT o.id, o.field AS kind, o.new_value->>'text' AS text, o.new_value->>'replaces' AS replaces,
       o.results->>'state' AS state, x.name AS expert, o.conversation_id, o.turn_id, o.at
FROM memory_operations o LEFT JOIN experts x ON x.id::text = o.trigger->>'expert_id' AND x.tenant_id = o.tenant_id
WHERE o.tenant_id = %(tenant_id)s AND o.user_id = %(user_id)s AND o.type = 'memory_proposal'
  AND o.new_value IS NOT NULL AND o.results->>'state' = 'waiting'
  AND (%(after_at)s::timestamptz IS NULL OR (o.at, o.id) < (%(after_at)s, %(after_id)s::uuid))
ORDER BY o.at DESC, o.id DESC LIMIT %(limit)s
"""

_SETTLE: LiteralString = """
UPDATE memory_operations SET results = jsonb_set(results, '{state}', to_jsonb(%(state)s::text))
WHERE id = %(id)s AND tenant_id = %(tenant_id)s AND user_id = %(user_id)s AND type = 'memory_proposal'
  AND results->>'state' = %(expected)s AND new_value IS NOT NULL
RETURNING field, new_value->>'text', coalesce(new_value->>'replaces', ''), trigger->>'expert_id', space_id
"""

_OF_TURN: LiteralString = """
SELECT id, new_value->>'text' FROM memory_operations
WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s AND turn_id = %(turn_id)s AND field = %(kind)s
  AND type = 'memory_proposal' AND new_value IS NOT NULL
"""

_EXISTS: LiteralString = """
SELECT 1 FROM memory_operations
WHERE id = %(id)s AND tenant_id = %(tenant_id)s AND user_id = %(user_id)s AND type = 'memory_proposal'
"""


@dataclass(frozen=True)
class Proposal:
    """A change of memory that waits for the user."""

    id: UUID
    kind: ProposalKind
    text: str
    """What would be remembered or forgotten."""
    replaces: str | None
    """What it would replace."""
    state: State
    expert: str | None
    conversation_id: UUID | None
    turn_id: UUID | None
    at: datetime


class Proposals:
    """Keeps proposals until the user settles them."""

    def __init__(self, database: Database, editor: MemoryEditor, log: OperationLog) -> None:
        self._database = database
        self._editor = editor
        self._log = log

    async def add(self, editing: EditContext, kind: ProposalKind, text: str, replaces: str = "") -> UUID:
        """Let a change wait; return its id, or that of the same one if the turn has proposed it before.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """
        owner = editing.owner
        trigger = editing.trigger
        async with self._database.tenant(owner.tenant_id) as connection:
            of_turn = {**vars(owner), "turn_id": trigger.turn_id, "kind": kind}
            for known, proposed in await (await connection.execute(_OF_TURN, of_turn)).fetchall():
                if proposed == text:  # compared here: it may be encrypted
                    return UUID(str(known))
            return await self._log.append(
                connection,
                tenant_id=owner.tenant_id,
                user_id=owner.user_id,
                operation=Operation(
                    PROPOSAL,
                    kind,
                    new_value={"text": text.replace("\x00", ""), "replaces": replaces.replace("\x00", "") or None},
                    results={"state": "waiting"},
                ),
                trigger=Trigger(
                    trigger.actor,
                    trigger.message_id,
                    trigger.conversation_id,
                    trigger.turn_id,
                    owner.expert_id,
                    owner.space_id,
                ),
            )

    async def list(
        self, tenant_id: UUID, user: str, *, after: tuple[datetime, UUID] | None = None, limit: int
    ) -> Sequence[Proposal]:
        """Proposals that wait, newest first.

        Raises:
            NotFound: the tenant has no such user.
            DatabaseUnavailable: the database does not answer.
        """
        at, last = after or (None, None)
        values = {
            "tenant_id": tenant_id,
            "user_id": await user_id_of(self._database, tenant_id, user),
            "after_at": at,
            "after_id": last,
            "limit": limit,
        }
        return await self._database.fetch(tenant_id, _LIST, values, class_row(Proposal))

    async def settle(self, tenant_id: UUID, user: str, proposal_id: UUID, *, accept: bool) -> MemoryChange | None:
        """Carry a proposal out on the user's word, or reject it; return the change of one that was accepted.

        Raises:
            NotFound: the user has no such proposal.
            Conflict: it was settled before.
            DatabaseUnavailable: the database does not answer.
        """
        values = {
            "tenant_id": tenant_id,
            "user_id": await user_id_of(self._database, tenant_id, user),
            "id": proposal_id,
        }
        settled = {**values, "state": "accepted" if accept else "rejected", "expected": "waiting"}
        rows = await self._database.fetch(tenant_id, _SETTLE, settled, tuple_row)
        if not rows:
            if await self._database.fetch(tenant_id, _EXISTS, values, tuple_row):
                raise Conflict(f"The proposal {proposal_id} was settled before.")
            raise NotFound(f"There is no proposal {proposal_id}.")
        if not accept:
            return None
        kind, text, replaces, expert_id, space_id = rows[0]
        owner = Owner(tenant_id, values["user_id"], UUID(expert_id), space_id)
        editing = EditContext.outside_of_turns(owner, Trigger("user", details={"proposal": str(proposal_id)}))
        try:
            if kind == "forget":
                return await self._editor.forget(editing, text)
            return await self._editor.remember(editing, text, replaces=replaces)
        except BaseException:
            again = {**values, "state": "waiting", "expected": "accepted"}
            await self._database.fetch(tenant_id, _SETTLE, again, tuple_row)
            raise
