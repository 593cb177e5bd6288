"""Finds memories and values of core memory that say nearly the same, or contradict each other, and proposes one
in place of both.

By rules alone: words for duplicates, and the claims by which recall and compression tell contradictions.
"""

import asyncio
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from uuid import UUID

import structlog

from services.errors import Conflict
from services.identity.tenants import user_id_of
from services.maintenance.compared import Compared, ComparedMemories
from services.maintenance.policy import MaintenancePolicies, MaintenancePolicy
from services.memory.blocks import Owner
from services.memory.pairs import PairKind, Side
from services.memory.proposals import Proposals
from services.memory.recall.superseded import contradicted
from services.platform.postgres import Database
from services.search.duplicates import are_duplicates
from services.text.paraphrases import differ_in_sense, say_the_same
from services.text.tokenizer import terms
from services.time_reference.validity import timed

_OVERLAP = 0.8
"""Share of all their words that two memories have in common from which on they are nearly the same."""
_MOST_FOUND = 50
"""Pairs that are proposed at once, so that the list stays readable; the next night goes on."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Pair:
    """Two memories of which one is enough, or no longer holds."""

    kind: PairKind
    kept: Compared
    dropped: Compared
    unsure: bool = False
    """Whether they are told by likeness: a duplicate in other words, another value of the same."""

    @property
    def may_be_applied(self) -> bool:
        """Whether a policy may settle it: neither what rules may mistake, nor words of others that would take the
        place of the user's own."""
        return not self.unsure and self.kept.origin in ("user_said", self.dropped.origin)


@dataclass(frozen=True)
class Found:
    """What a search for proposals came to."""

    proposed: int
    """Pairs that wait for the user now."""
    applied: int
    """Pairs that were settled at once, by the policy."""


class Findings:
    """Finds and proposes pairs."""

    def __init__(
        self,
        database: Database,
        policies: MaintenancePolicies,
        compared: ComparedMemories,
        proposals: Proposals,
    ) -> None:
        self._database = database
        self._policies = policies
        self._compared = compared
        self._proposals = proposals

    async def look(self, tenant_id: UUID, user: str) -> Found:
        """Look through all of a user's memory, and propose or apply what is found, as the policy says.

        Raises:
            NotFound: the tenant has no such user.
            DatabaseUnavailable: the database does not answer.
        """
        user_id = await user_id_of(self._database, tenant_id, user)
        return await self.look_since(tenant_id, user_id, user, await self._policies.of(tenant_id), None)

    async def look_since(
        self, tenant_id: UUID, user_id: UUID, user: str, policy: MaintenancePolicy, since: datetime | None
    ) -> Found:
        """Compare what was learned since a moment with all that is remembered; with None, everything.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """
        compared = await self._compared.read(tenant_id, user_id)
        before = await self._proposals.pairs.proposed(tenant_id, user_id)
        # In a thread: reading the claims of many memories takes seconds.
        pairs = await asyncio.to_thread(pairs_among, compared, since, before)
        applied = 0
        proposed = 0
        for pair in pairs:
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
        return Found(proposed - applied, applied)


def pairs_among(
    compared: Sequence[Compared], since: datetime | None, before: Collection[frozenset[Side]]
) -> list[Pair]:
    """Return pairs of the same expert and space, each memory and value in one pair at most.

    Args:
        compared: ordered by expert, space and time.
        since: only pairs of which one was learned after this; None = any.
        before: pairs that were proposed before.
    """
    found: list[Pair] = []
    for _, group in groupby(compared, lambda each: (each.expert_id, each.space_id)):
        taken: set[Side] = set()
        for older, newer in _candidates(list(group), since):
            if taken & {older.side, newer.side} or frozenset((older.side, newer.side)) in before:
                continue
            pair = _pair(older, newer)
            if pair is not None:
                taken |= {older.side, newer.side}
                found.append(pair)
                if len(found) >= _MOST_FOUND:
                    return found
    return found


def _candidates(group: Sequence[Compared], since: datetime | None) -> Iterator[tuple[Compared, Compared]]:
    """Pairs that share a word, as nothing else can be a duplicate or a contradiction; newest first."""
    said = [frozenset(terms(each.content)) for each in group]
    for newer in range(len(group) - 1, 0, -1):
        for older in range(newer - 1, -1, -1):
            is_new = since is None or max(group[newer].learned_at, group[older].learned_at) > since
            if is_new and not said[newer].isdisjoint(said[older]):
                yield group[older], group[newer]


def _pair(older: Compared, newer: Compared) -> Pair | None:
    share_words = are_duplicates(older.content, newer.content, _OVERLAP)
    if share_words and not differ_in_sense(older.content, newer.content):
        return None if _filed_together(older, newer) else _duplicate(older, newer)
    if not share_words and say_the_same(older.content, newer.content):
        return None if _filed_together(older, newer) else _duplicate(older, newer, unsure=True)
    if older.is_pinned or not _holds(older) or not _holds(newer):
        return None
    if contradicted(older.content, [newer.content]):
        return Pair("contradiction", newer, older)
    return None


def _duplicate(older: Compared, newer: Compared, *, unsure: bool = False) -> Pair | None:
    """The pair of two that say the same: what is pinned stays, then what core memory knows, then the newer."""
    kept, dropped = (older, newer) if _stays(older) > _stays(newer) else (newer, older)
    return None if dropped.is_pinned else Pair("duplicate", kept, dropped, unsure)


def _stays(compared: Compared) -> tuple[bool, bool]:
    return compared.is_pinned, compared.in_core_memory


def _filed_together(one: Compared, other: Compared) -> bool:
    """Whether one message was filed both in core memory, which is always known, and as a memory with its time."""
    return one.in_core_memory != other.in_core_memory and not one.message_ids.isdisjoint(other.message_ids)


def _holds(compared: Compared) -> bool:
    """Whether it holds today, as far as its text says: what is over contradicts nothing."""
    return timed(compared.content, compared.created_at).validity.holds_on(datetime.now(UTC).date())
