"""Budgets of tokens per day, for users and tenants.

From 80 % of a budget on, turns go without the most expensive features; beyond 100 % they are refused.
"""

import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

import structlog

from services.errors import BudgetExhausted, DatabaseUnavailable
from services.platform.settings import Settings
from services.usage.ledger import UsageLedger, today

_SAVING = 0.8
_KNOWN_S = 5.0
"""Seconds for which an answer of the ledger is reused."""
_MOST_KNOWN = 10_000

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class _Known:
    at: float
    share: float
    """Used share of the more exhausted of both budgets; 1 = all of it."""
    whose: str


class Budgets:
    """Tells how much of their budgets users and tenants have used."""

    def __init__(self, settings: Settings, ledger: UsageLedger) -> None:
        self._of_user = settings.budget_user_tokens_per_day
        self._of_tenant = settings.budget_tenant_tokens_per_day
        self._ledger = ledger
        self._known: dict[tuple[UUID, str], _Known] = {}

    async def check(self, tenant_id: UUID, user: str) -> None:
        """Check whether a turn may begin; while the database does not answer, it may. Raises `BudgetExhausted`
        if the user or the tenant has used up today's tokens."""
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
        """Return whether a turn should cost less, because most of a budget was used up at the last check."""
        known = self._known.get((tenant_id, user))
        return known is not None and known.share >= _SAVING

    async def _ask(self, tenant_id: UUID, user: str) -> _Known:
        of_tenant, of_user = await self._ledger.spent_on(today(), tenant_id, user)
        shares = [
            (spent / budget, whose)
            for spent, budget, whose in ((of_user, self._of_user, "user"), (of_tenant, self._of_tenant, "tenant"))
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
