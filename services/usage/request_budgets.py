"""What is left of a request's budget before each call of the model. Pure functions of the turn so far."""

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

from services.errors import RequestBudgetExceeded
from state.budget import BudgetMeasure, BudgetReport, RequestBudget
from state.conversation import ConversationState

REASON = "request_budget"
"""The entry in `degraded` of a turn that its request's budget changed."""
LEAST_ANSWER = 16
"""Tokens below which no answer is asked for."""

_TOOLS_UNTIL = 0.5
"""Share of the seconds after which the model is offered no tools: the rest is for the answer."""
_OF_REST = 0.5
"""Share of the seconds left that tools, or the reading of memory, may take."""


@dataclass(frozen=True)
class Allowance:
    """What is left of a budget; None = no limit."""

    limits: RequestBudget
    model_calls: int | None = None
    seconds: float | None = None
    tokens: int | None = None

    @property
    def allows_tools(self) -> bool:
        """Whether the next call may use tools: another call and half of the seconds remain for the answer."""
        if self.model_calls is not None and self.model_calls < 2:  # noqa: PLR2004 — this call and the next
            return False
        return self.seconds is None or self.seconds >= self.limits["seconds"] * _TOOLS_UNTIL

    @property
    def besides_answer_s(self) -> float | None:
        """Seconds that anything but the model may take now; None = no limit."""
        return None if self.seconds is None else max(0.0, self.seconds * _OF_REST)

    @property
    def spent(self) -> str | None:
        """The limit that does not allow another call at all; None = none of them, as far as is known."""
        if self.model_calls is not None and self.model_calls < 1:
            return "model_calls"
        if self.seconds is not None and self.seconds <= 0:
            return "seconds"
        return "tokens" if self.tokens is not None and self.tokens < LEAST_ANSWER else None

    def exceeded(self, limit: str, *, needed: int | None = None) -> RequestBudgetExceeded:
        """Return the error for a turn without any answer; `needed` = the least tokens it takes."""
        return RequestBudgetExceeded(limit, str(self.limits.get(limit)), needed)


def allowance(state: ConversationState) -> Allowance:
    """Return what a turn may still use."""
    limits = state.get("budget") or RequestBudget()
    used = state.get("usage")
    calls, seconds, tokens = limits.get("model_calls"), limits.get("seconds"), limits.get("tokens")
    return Allowance(
        limits,
        None if calls is None else calls - (used["model_calls"] if used else 0),
        None if seconds is None else seconds - (perf_counter() - state["begun"]),
        None if tokens is None else tokens - (used["total_tokens"] if used else 0),
    )


def with_measures(
    limits: RequestBudget, before: BudgetReport | None, measures: Sequence[BudgetMeasure]
) -> BudgetReport:
    """Return the report of a turn's budget with more measures."""
    earlier = before["measures"] if before else []
    return BudgetReport(limits=limits, measures=list(dict.fromkeys([*earlier, *measures])))
