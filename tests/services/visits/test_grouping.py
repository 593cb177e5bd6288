"""Which messages are one visit does not depend on the order in which they come."""

import itertools
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st

from services.bootstrap import Services
from services.identity.tenants import DEFAULT_TENANT
from tests.support.visits import import_lines, said, visits_of

BEGINNING = datetime(2026, 3, 1, 9, tzinfo=UTC)
IDLE = timedelta(minutes=30)

Shape = list[tuple[datetime, datetime, int]]


def _expected(times: list[datetime], closes: list[datetime]) -> Shape:
    """The same by the plainest of rules."""
    visits: list[list[datetime]] = []
    for at in sorted(times):
        before = visits[-1][-1] if visits else None
        if before is None or at - before > IDLE or any(before <= close < at for close in closes):
            visits.append([])
        visits[-1].append(at)
    return [(visit[0], visit[-1], len(visit)) for visit in visits]


def _found(visits: list[dict[str, Any]]) -> Shape:
    return [(visit["started_at"], visit["last_active_at"], visit["message_count"]) for visit in visits]


@given(
    minutes=st.lists(st.integers(0, 400), min_size=1, max_size=25, unique=True),
    cuts=st.lists(st.integers(0, 25), max_size=4),
    close=st.integers(0, 400),
    seed=st.integers(0, 10_000),
)
@limits(max_examples=20)
async def test_any_order_and_any_batches_give_the_same_visits(
    services: Services, minutes: list[int], cuts: list[int], close: int, seed: int
) -> None:
    session = f"s-{seed}-{Random().getrandbits(48)}"
    times = [BEGINNING + timedelta(minutes=minute) for minute in minutes]
    Random(seed).shuffle(times)
    closes: list[datetime] = []
    bounds = sorted({0, len(times), *(cut % (len(times) + 1) for cut in cuts)})
    for begin, end in itertools.pairwise(bounds):
        lines = [said(at, f"At {at}", session_id=session) for at in times[begin:end]]
        await import_lines(services, *lines)
        if not closes:
            closes = await _close_one(services, session, BEGINNING + timedelta(minutes=close))
    conversation = await _id(services, session)
    visits = [each for each in await visits_of(services.database) if each["conversation_id"] == conversation]
    assert _found(visits) == _expected(times, closes)
    assert all(one["last_active_at"] < other["started_at"] for one, other in itertools.pairwise(visits))


async def _id(services: Services, session: str) -> Any:
    (conversation,) = await services.transcript.conversations(DEFAULT_TENANT, session_id=session, limit=1)
    return conversation.id


async def _close_one(services: Services, session: str, at: datetime) -> list[datetime]:
    """The visit that goes on at that time, if one does, is closed then."""
    async with services.database.tenant(DEFAULT_TENANT) as connection:
        rows = await connection.execute(
            "UPDATE visits SET ended_at = %(at)s, end_reason = 'closed' WHERE conversation_id = %(id)s "
            "AND last_active_at <= %(at)s AND ended_at > %(at)s RETURNING ended_at",
            {"at": at, "id": await _id(services, session)},
        )
        return [row[0] for row in await rows.fetchall()]
