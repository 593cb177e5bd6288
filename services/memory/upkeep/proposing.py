"""Proposes what the memories and values of a user that are alike come to."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import structlog
from psycopg.rows import tuple_row

from services.errors import Conflict
from services.identity.tenants import user_id_of
from services.memory.blocks import Owner
from services.memory.core_values import CoreValues
from services.memory.pairs import Side
from services.memory.proposals import Proposals
from services.memory.upkeep import sql
from services.memory.upkeep.pairs import Pair, PairFinder, compared_memories
from services.memory.upkeep.policy import UpkeepPolicies, UpkeepPolicy
from services.platform.postgres import Database

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class FoundPairs:
    """What a search for proposals came to."""

    proposed: int
    """Pairs that wait for the user now."""
    applied: int
    """Pairs that were settled at once."""


class PairProposer:
    """Finds pairs, and lets them wait for the user or settles them."""

    def __init__(
        self,
        database: Database,
        policies: UpkeepPolicies,
        values: CoreValues,
        finder: PairFinder,
        proposals: Proposals,
    ) -> None:
        self._database = database
        self._policies = policies
        self._values = values
        self._finder = finder
        self._proposals = proposals

    async def look(self, tenant_id: UUID, user: str) -> FoundPairs:
        """Look through all of a user's memory for pairs, and propose or apply them, as the policy says."""
        user_id = await user_id_of(self._database, tenant_id, user)
        policy = await self._policies.of(tenant_id)
        pairs = await self.pairs(tenant_id, user_id, None)
        return await self.propose(tenant_id, user_id, user, policy, pairs, merges=True)

    async def pairs(self, tenant_id: UUID, user_id: UUID, since: datetime | None) -> list[Pair]:
        """Return the pairs of a user that were not found before, of which one was learned since a time."""
        compared = await compared_memories(self._database, self._values, tenant_id, user_id)
        if len(compared) < 2:  # noqa: PLR2004 — a pair
            return []
        before = await self._proposals.pairs.proposed(tenant_id, user_id)
        values = {"tenant_id": tenant_id, "user_id": user_id}
        apart = await self._database.fetch(tenant_id, sql.TAKEN_APART, values, tuple_row)
        before |= {frozenset((Side(one), Side(other))) for one, other in apart}
        return await self._finder.find(compared, since, before)

    async def propose(
        self,
        tenant_id: UUID,
        user_id: UUID,
        user: str,
        policy: UpkeepPolicy,
        pairs: Sequence[Pair],
        *,
        merges: bool = False,
    ) -> FoundPairs:
        """Let pairs wait for the user that a run does not merge, or with `merges` all; or settle them."""
        applied = proposed = 0
        for pair in pairs:
            if is_merge(pair) and not merges:
                continue
            owner = Owner(tenant_id, user_id, pair.kept.expert_id, pair.kept.space_id)
            proposal_id = await self._proposals.pairs.add(owner, pair.kind, pair.kept.side, pair.dropped.side)
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
        return FoundPairs(proposed - applied, applied)


def is_merge(pair: Pair) -> bool:
    """Whether a run may merge it: two memories, or a memory that core memory knows, in the user's words."""
    return pair.kind == "duplicate" and not pair.dropped.in_core_memory and pair.may_be_applied
