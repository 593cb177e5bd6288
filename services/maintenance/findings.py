"""Finds written memories that say nearly the same, or contradict each other, and proposes one in place of both.

By rules alone: words for duplicates, and the claims by which recall and compression tell contradictions.
"""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from typing import LiteralString
from uuid import UUID

import structlog
from psycopg.rows import class_row

from services.errors import Conflict
from services.identity.tenants import user_id_of
from services.maintenance.policy import MaintenancePolicies, MaintenancePolicy
from services.memory.blocks import Owner
from services.memory.episodes.episode import Origin
from services.memory.proposals import PairKind, Proposals
from services.memory.recall.superseded import contradicted
from services.platform.postgres import Database
from services.search.duplicates import are_duplicates
from services.text.tokenizer import terms
from services.time_reference.validity import timed

_OVERLAP = 0.8
"""Share of all their words that two memories have in common from which on they are nearly the same."""
_MOST = 2000
"""Newest written memories of a user with an expert that are compared."""
_MOST_FOUND = 50
"""Pairs that are proposed at once, so that the list stays readable; the next night goes on."""

_WRITTEN: LiteralString = """
SELECT id, expert_id, space_id, content, origin, created_at, learned_at, pinned_at IS NOT NULL AS is_pinned FROM (
    SELECT e.*, row_number() OVER (PARTITION BY e.expert_id ORDER BY e.created_at DESC, e.id DESC) AS place
    FROM episodes e
    WHERE e.tenant_id = %(tenant_id)s AND e.user_id = %(user_id)s AND e.content IS NOT NULL
      AND e.superseded_by IS NULL AND e.retracted_at IS NULL AND e.held_at IS NULL
) AS written
WHERE place <= %(most)s ORDER BY expert_id, space_id, created_at, id
"""

_PROPOSED: LiteralString = """
SELECT (results->>'kept')::uuid AS kept, (results->>'dropped')::uuid AS dropped FROM memory_operations
WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s AND type = 'memory_proposal' AND results ? 'kept'
"""

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Written:
    """A written memory that is compared with others."""

    id: UUID
    expert_id: UUID
    space_id: UUID | None
    content: str
    origin: Origin
    created_at: datetime
    learned_at: datetime
    is_pinned: bool


@dataclass(frozen=True)
class Pair:
    """Two memories of which one is enough, or no longer holds."""

    kind: PairKind
    kept: Written
    dropped: Written

    @property
    def may_be_applied(self) -> bool:
        """Whether a policy may settle it: words of others take no place of the user's own without the user."""
        return self.kept.origin in ("user_said", self.dropped.origin)


@dataclass(frozen=True)
class Found:
    """What a search for proposals came to."""

    proposed: int
    """Pairs that wait for the user now."""
    applied: int
    """Pairs that were settled at once, by the policy."""


@dataclass(frozen=True)
class _Known:
    kept: UUID
    dropped: UUID


class Findings:
    """Finds and proposes pairs."""

    def __init__(self, database: Database, policies: MaintenancePolicies, proposals: Proposals) -> None:
        self._database = database
        self._policies = policies
        self._proposals = proposals

    async def look(self, tenant_id: UUID, user: str) -> Found:
        """Look through all written memories of a user, and propose or apply what is found, as the policy says.

        Raises:
            NotFound: the tenant has no such user.
            DatabaseUnavailable: the database does not answer.
        """
        user_id = await user_id_of(self._database, tenant_id, user)
        return await self.look_since(tenant_id, user_id, user, await self._policies.of(tenant_id), None)

    async def look_since(
        self, tenant_id: UUID, user_id: UUID, user: str, policy: MaintenancePolicy, since: datetime | None
    ) -> Found:
        """Compare what was learned since a moment with all written memories; with None, everything.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """
        values = {"tenant_id": tenant_id, "user_id": user_id, "most": _MOST}
        written = await self._database.fetch(tenant_id, _WRITTEN, values, class_row(Written))
        known = await self._database.fetch(tenant_id, _PROPOSED, values, class_row(_Known))
        before = {frozenset((each.kept, each.dropped)) for each in known}
        # In a thread: reading the claims of many memories takes seconds.
        pairs = await asyncio.to_thread(pairs_among, written, since, before)
        applied = 0
        proposed = 0
        for pair in pairs:
            owner = Owner(tenant_id, user_id, pair.kept.expert_id, pair.kept.space_id)
            proposal_id = await self._proposals.add_pair(owner, pair.kind, pair.kept.id, pair.dropped.id)
            if proposal_id is None:
                continue
            proposed += 1
            if policy.proposals == "apply" and pair.may_be_applied:
                try:
                    await self._proposals.settle(tenant_id, user, proposal_id, accept=True, actor="maintenance")
                except Conflict as error:
                    log.info("a proposal waits for the user", proposal_id=str(proposal_id), why=error.message)
                else:
                    applied += 1
        return Found(proposed - applied, applied)


def pairs_among(written: Sequence[Written], since: datetime | None, before: set[frozenset[UUID]]) -> list[Pair]:
    """Return pairs among memories of the same expert and space, each memory in one pair at most.

    Args:
        written: ordered by expert, space and time.
        since: only pairs with a memory that was learned after this; None = any.
        before: pairs that were proposed before.
    """
    found: list[Pair] = []
    for _, group in groupby(written, lambda each: (each.expert_id, each.space_id)):
        taken: set[UUID] = set()
        for older, newer in _candidates(list(group), since):
            if taken & {older.id, newer.id} or frozenset((older.id, newer.id)) in before:
                continue
            pair = _pair(older, newer)
            if pair is not None:
                taken |= {older.id, newer.id}
                found.append(pair)
                if len(found) >= _MOST_FOUND:
                    return found
    return found


def _candidates(group: Sequence[Written], since: datetime | None) -> Iterator[tuple[Written, Written]]:
    """Pairs that share a word, as nothing else can be a duplicate or a contradiction; newest first."""
    said = [frozenset(terms(each.content)) for each in group]
    for newer in range(len(group) - 1, 0, -1):
        for older in range(newer - 1, -1, -1):
            is_new = since is None or max(group[newer].learned_at, group[older].learned_at) > since
            if is_new and not said[newer].isdisjoint(said[older]):
                yield group[older], group[newer]


def _pair(older: Written, newer: Written) -> Pair | None:
    if are_duplicates(older.content, newer.content, _OVERLAP):
        kept, dropped = (older, newer) if older.is_pinned else (newer, older)
        return None if dropped.is_pinned else Pair("duplicate", kept, dropped)
    if older.is_pinned or not _holds(older) or not _holds(newer):
        return None
    return Pair("contradiction", newer, older) if contradicted(older.content, [newer.content]) else None


def _holds(memory: Written) -> bool:
    """Whether it holds today, as far as its text says: what is over contradicts nothing."""
    return timed(memory.content, memory.created_at).validity.holds_on(datetime.now(UTC).date())
