"""Counts what models are asked for, by who caused it; kept in memory until the ledger takes it."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from uuid import UUID


@dataclass(frozen=True)
class Spender:
    """Who causes calls of models, and for what."""

    tenant_id: UUID
    purpose: str
    """`turn`, `memory_ask`, `conversation_name`, or a background task's name."""
    user_id: UUID | None = None
    """None = that of the turn, conversation or visit, or nobody in particular."""
    expert_id: UUID | None = None
    turn_id: UUID | None = None
    conversation_id: UUID | None = None
    visit_id: UUID | None = None


@dataclass
class Spent:
    """What was asked for."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0

    def add(self, other: "Spent") -> None:
        """Add another sum to this one."""
        self.calls += other.calls
        self.input_tokens += other.input_tokens
        self.output_tokens += other.output_tokens
        self.cached_tokens += other.cached_tokens


Counts = dict[tuple[Spender, str], Spent]
"""By spender and model."""


class UsageMeter:
    """What was spent since it was last taken."""

    def __init__(self) -> None:
        self.counts: Counts = {}

    def add(self, spender: Spender, model: str, spent: Spent) -> None:
        """Count."""
        self.counts.setdefault((spender, model), Spent()).add(spent)

    def take(self) -> Counts:
        """Everything so far; counting begins from nothing."""
        taken, self.counts = self.counts, {}
        return taken

    @contextmanager
    def spending(self, spender: Spender) -> Iterator[None]:
        """Count calls of models within the block, and in tasks that begin in it, as this spender's."""
        token = _SPENDING.set((self, spender))
        try:
            yield
        finally:
            _SPENDING.reset(token)


_SPENDING: ContextVar[tuple[UsageMeter, Spender] | None] = ContextVar("spending", default=None)


def note_spent(model: str, spent: Spent) -> None:
    """Count a model call against the current `spending`; outside of one, count nothing."""
    if (current := _SPENDING.get()) is not None:
        meter, spender = current
        meter.add(spender, model, spent)
