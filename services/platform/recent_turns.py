"""How the turns of the last minute ended in this process, as far as the model is concerned."""

import time
from collections import deque

_WINDOW_S = 60.0
_OF_THE_REQUEST = frozenset({"llm_parameter_refused"})


class RecentTurns:
    """Counts turns of the last minute, and those that failed because of the model."""

    def __init__(self) -> None:
        self._ended: deque[tuple[float, bool]] = deque()
        self._failed = 0

    def note(self, error: str | None) -> None:
        """Note that a turn has ended, with the code of its error if it has one."""
        failed = error is not None and error.startswith("llm_") and error not in _OF_THE_REQUEST
        self._ended.append((time.monotonic(), failed))
        self._failed += failed
        self._drop_older()

    def failed_by_model(self) -> tuple[int, int]:
        """Return the number of turns that failed because of the model, and the number of all turns."""
        self._drop_older()
        return self._failed, len(self._ended)

    def _drop_older(self) -> None:
        oldest = time.monotonic() - _WINDOW_S
        while self._ended and self._ended[0][0] < oldest:
            self._failed -= self._ended.popleft()[1]
