"""Notices that somebody has set the clock by which leases and heartbeats are judged."""

import time
from datetime import datetime

import structlog

log = structlog.get_logger(__name__)

_JUMP_S = 2.0
_DRIFT = 0.001
"""Part of the elapsed time by which a clock may run fast or slow."""


class ClockWatch:
    """Compares another machine's clock with the seconds that have passed here.

    After a jump forward every lease looks expired, after a jump back none ever does. Both pass as soon as live
    processes have renewed theirs, so whatever follows from an expired lease waits that long.
    """

    def __init__(self, *, settles_s: float) -> None:
        """Take the seconds within which every live process has written the time again."""
        self._settles_s = settles_s
        self._seen: tuple[datetime, float] | None = None
        self._steady_from = 0.0

    def is_steady(self, now: datetime) -> bool:
        """Take the clock's present time; return whether it has run evenly for long enough."""
        passed = time.monotonic()
        if self._seen is not None:
            before, then = self._seen
            elapsed = passed - then
            jump = (now - before).total_seconds() - elapsed
            if abs(jump) > _JUMP_S + elapsed * _DRIFT:
                log.warning("the database's clock was set", by_s=round(jump))
                self._steady_from = passed + self._settles_s
        self._seen = (now, passed)
        return passed >= self._steady_from
