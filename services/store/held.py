"""Vectors of items that were searched, held by this process: thousands need not be read for each search."""

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from services.store.ranking import unpacked

_MOST_BYTES = 64 * 2**20


@dataclass(frozen=True)
class Held:
    """The items of one search: their ids, newest first, and the vectors of those that are indexed."""

    stamp: tuple[int, int]
    """Of the items as they were."""
    user_id: UUID
    ids: Sequence[UUID]
    indexed: NDArray[np.intp]
    """Places of those that have vectors."""
    rows: NDArray[np.float32]
    starts: NDArray[np.intp]
    """Where the vectors of each begin."""

    @classmethod
    def of(
        cls,
        stamp: tuple[int, int],
        user_id: UUID,
        ids: Sequence[UUID],
        vectors: Sequence[str | None],
        dimension: int,
    ) -> "Held":
        """Hold the vectors of items, each as it is stored; None = it is not indexed."""
        indexed = np.asarray([at for at, each in enumerate(vectors) if each], np.intp)
        rows, starts = unpacked([each for each in vectors if each], dimension)
        return cls(stamp, user_id, ids, indexed, rows, starts)

    def ranked(self, sought: Sequence[float], offset: int, limit: int) -> list[tuple[UUID, float | None]]:
        """Return a page of ids by nearness; those that are not indexed come last, without one."""
        scores = np.full(len(self.ids), -2.0, np.float32)
        if len(self.indexed):
            scores[self.indexed] = np.maximum.reduceat(self.rows @ np.asarray(sought, np.float32), self.starts)
        order = np.argsort(-scores, kind="stable")[offset : offset + limit]
        return [(self.ids[at], float(scores[at]) if scores[at] > -2.0 else None) for at in order]  # noqa: PLR2004


class HeldVectors:
    """What is held, up to 64 MB; what was used longest ago goes first."""

    def __init__(self) -> None:
        self._held: OrderedDict[Hashable, Held] = OrderedDict()

    def get(self, key: Hashable, stamp: tuple[int, int]) -> Held | None:
        """Return what is held, if the items are still as they were."""
        held = self._held.get(key)
        if held is None or held.stamp != stamp:
            return None
        self._held.move_to_end(key)
        return held

    def put(self, key: Hashable, held: Held) -> None:
        """Hold it in the place of what was held."""
        self._held.pop(key, None)
        self._held[key] = held
        while sum(each.rows.nbytes for each in self._held.values()) > _MOST_BYTES:
            self._held.popitem(last=False)

    def forget(self, user_id: UUID) -> None:
        """Drop what is held of a user."""
        for key in [key for key, each in self._held.items() if each.user_id == user_id]:
            del self._held[key]
