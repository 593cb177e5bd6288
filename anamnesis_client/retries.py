"""How often, and after which pauses, something is tried again."""

from dataclasses import dataclass, field

_FIRST_S, _LONGEST_S = 0.2, 5.0


@dataclass
class Tries:
    """Counts failures in a row; what succeeds in between starts over."""

    most: int
    """Failures in a row that are put up with."""
    failures: int = field(default=0, init=False)

    def pause_s(self, asked_s: float | None = None) -> float | None:
        """Seconds to wait before the next try; None = give up.

        Args:
            asked_s: how long the service asks to wait.
        """
        self.failures += 1
        if self.failures > self.most:
            return None
        own: float = min(_LONGEST_S, _FIRST_S * 2 ** (self.failures - 1))
        return own if asked_s is None else max(asked_s, own)

    def succeeded(self) -> None:
        """Start over."""
        self.failures = 0
