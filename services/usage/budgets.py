"""Budgets: of a user's and a tenant's tokens of a day, and of what one request may use.

From 80 % of a day's budget turns go without what costs most; beyond it they are refused.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from time import perf_counter
from uuid import UUID

import structlog

from services.errors import BudgetExhausted, DatabaseUnavailable, RequestBudgetExceeded
from services.platform.settings import Settings
from services.usage.ledger import UsageLedger, today
from state.budget import BudgetMeasure, BudgetReport, RequestBudget
from state.conversation import ConversationState

_SAVING = 0.8
_KNOWN_S = 5.0
"""For this long what the ledger said is taken to be true."""
_MOST_KNOWN = 10_000

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class _Known:
    at: float
    share: float
    """Of whichever budget is used up most; 1 = all of it."""
    whose: str


class Budgets:
    """Says how users and tenants stand. Without a budget it asks nothing."""

    def __init__(self, settings: Settings, ledger: UsageLedger) -> None:
        self._of_user = settings.budget_user_tokens_per_day
        self._of_tenant = settings.budget_tenant_tokens_per_day
        self._ledger = ledger
        self._known: dict[tuple[UUID, str], _Known] = {}

    async def check(self, tenant_id: UUID, user: str) -> None:
        """Look whether a turn may begin; while the database does not answer, it may.

        Raises:
            BudgetExhausted: the user's or the tenant's tokens of today are used up.
        """
        if self._of_user is None and self._of_tenant is None:
            return
        known = self._known.get((tenant_id, user))
        if known is None or time.monotonic() - known.at > _KNOWN_S:
            try:
                known = await self._ask(tenant_id, user)
            except DatabaseUnavailable:
                log.warning("budget was not looked at", reason="the database does not answer")
                return
        if known.share >= 1:
            raise BudgetExhausted(known.whose, _seconds_left())

    def is_saving(self, tenant_id: UUID, user: str) -> bool:
        """Whether a turn is to cost less: most of a budget is used up, as of the last look."""
        known = self._known.get((tenant_id, user))
        return known is not None and known.share >= _SAVING

    async def _ask(self, tenant_id: UUID, user: str) -> _Known:
        of_tenant, of_user = await self._ledger.spent_on(today(), tenant_id, user)
        shares = [
            (spent / budget, whose)
            for spent, budget, whose in (
                (of_user, self._of_user, "user"),
                (of_tenant, self._of_tenant, "tenant"),
            )
            if budget is not None
        ]
        share, whose = max(shares)
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        known = self._known[tenant_id, user] = _Known(time.monotonic(), share, whose)
        return known


def _seconds_left() -> int:
    now = datetime.now(UTC)
    tomorrow = (now + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
    return max(1, round((tomorrow - now).total_seconds()))


REQUEST_BUDGET = "request_budget"
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
