"""Keeps the working sets of a few moments in the past, since people who look back tend to ask more than once."""

from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime
from time import monotonic
from uuid import UUID

from services.memory.episodes.episode import Scope
from services.memory.recall.working_set import WorkingSet

_MOST = 8
_SHARE = 0.125
"""Maximum share of the memory for working sets that those of the past may take in addition."""
_KEPT_S = 300.0

Moment = tuple[UUID, UUID, UUID | None, datetime | None]
"""A user, an expert, a space and the moment."""


@dataclass(frozen=True)
class _Kept:
    units: WorkingSet
    generation: int
    """The user's memory generation from which it was read; a later one may have removed something."""
    until: float
    nbytes: int


class PastSets:
    """The sets that were asked for last."""

    def __init__(self, limit_bytes: int) -> None:
        """Take the limit of all working sets in bytes; an eighth of it is used."""
        self._most_bytes = int(limit_bytes * _SHARE)
        self._kept: OrderedDict[Moment, _Kept] = OrderedDict()

    def get(self, scope: Scope, generation: int) -> WorkingSet | None:
        """Return the set of a moment; None if there is none, or the user's memory has changed since it was
        made."""
        kept = self._kept.get(_moment(scope))
        if kept is None or kept.generation != generation or kept.until < monotonic():
            return None
        self._kept.move_to_end(_moment(scope))
        return kept.units

    def put(self, scope: Scope, generation: int, units: WorkingSet) -> None:
        """Keep a set for five minutes; sets that were used longest ago are dropped to make room."""
        kept = _Kept(units, generation, monotonic() + _KEPT_S, units.nbytes)
        self._kept.pop(_moment(scope), None)
        if kept.nbytes > self._most_bytes:
            return
        self._kept[_moment(scope)] = kept
        now = monotonic()
        for moment in [moment for moment, each in self._kept.items() if each.until < now]:
            del self._kept[moment]
        while len(self._kept) > _MOST or sum(each.nbytes for each in self._kept.values()) > self._most_bytes:
            self._kept.popitem(last=False)

    def forget(self, user_id: UUID) -> None:
        """Drop the sets of a user."""
        for moment in [moment for moment in self._kept if moment[0] == user_id]:
            del self._kept[moment]


def _moment(scope: Scope) -> Moment:
    return scope.user_id, scope.expert_id, scope.space_id, scope.as_of
