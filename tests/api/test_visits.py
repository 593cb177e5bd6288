"""Visits and days over HTTP: closed, listed, and summaries that are made when they are asked for."""

from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import uuid4

import httpx
import pytest

from services.bootstrap import Services
from tests.services.summaries.test_daily_summaries import written
from tests.support.model_server import ModelServer
from tests.support.turns import exchange
from tests.support.visits import days_of, import_lines, talk_at

pytestmark = pytest.mark.untraced

NOON = datetime(2026, 3, 10, 4, tzinfo=UTC)
"""In Shanghai."""
DAYS = "/api/v1/users/u-1/daily-summaries"
MARCH = {"from": "2026-03-01", "to": "2026-03-31"}


async def _days(client: httpx.AsyncClient, **query: Any) -> dict[str, Any]:
    answer = await client.get(DAYS, params={**MARCH, **query})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


@pytest.mark.traced
async def test_a_visit_is_closed_and_listed(client: httpx.AsyncClient, services: Services) -> None:
    turn = await exchange(services.turns, "Hello", "Hi")
    closing = f"/api/v1/conversations/{turn.conversation_id}/close"
    closed = (await client.post(closing)).json()
    assert closed["closed"]
    assert (await client.post(closing)).json() == {"closed": False, "visit": closed["visit"]}
    page = (await client.get("/api/v1/users/u-1/visits")).json()
    assert page == {"items": [closed["visit"]], "next": None}
    visit = page["items"][0]
    assert datetime.fromisoformat(visit.pop("started_at")) <= datetime.fromisoformat(visit.pop("last_active_at"))
    assert visit.pop("id")
    assert visit.pop("ended_at")
    assert visit == {
        "conversation_id": str(turn.conversation_id),
        "session_id": "s-1",
        "expert": "default",
        "end_reason": "closed",
        "message_count": 2,
        "summary": None,
        "key_topics": [],
        "summary_generated_at": None,
        "feelings": [],
    }


@pytest.mark.traced
async def test_what_is_not_there_is_not_found(client: httpx.AsyncClient, services: Services) -> None:
    await exchange(services.turns, "Hello", "Hi")
    assert (await client.post(f"/api/v1/conversations/{uuid4()}/close")).status_code == 404
    for path in ("visits", "daily-summaries"):
        assert (await client.get(f"/api/v1/users/nobody/{path}")).status_code == 404
    assert (await client.get(DAYS, params={"expert": "nobody"})).status_code == 404
    assert (await client.get("/api/v1/users/nobody")).status_code == 404
    assert (await client.patch("/api/v1/users/nobody", json={"timezone": "UTC"})).status_code == 404


async def test_a_day_whose_summary_is_missing_is_summarised_when_it_is_asked_for(
    client: httpx.AsyncClient, services: Services, model_server: ModelServer
) -> None:
    await import_lines(services, *talk_at(NOON, "skiing"), *talk_at(NOON + timedelta(days=2), "tea"))
    model_server.default = written("A summary.", "Skiing")
    found = await _days(client)
    assert [day["date"] for day in found["items"]] == ["2026-03-12", "2026-03-10"]
    day = found["items"][1]
    assert day.pop("updated_at")
    assert len(day.pop("visit_ids")) == 1
    assert day == {
        "date": "2026-03-10",
        "timezone": "Asia/Shanghai",
        "expert": "default",
        "summary": "A summary.",
        "key_topics": ["Skiing"],
        "session_count": 1,
        "message_count": 4,
        "stale": False,
    }
    assert (found["pending"], found["next"]) == ([], None)
    asked = len(model_server.requests)
    await _days(client)
    assert len(model_server.requests) == asked


async def test_a_users_zone_is_changed_and_their_days_with_it(
    client: httpx.AsyncClient, services: Services, model_server: ModelServer
) -> None:
    await import_lines(services, *talk_at(NOON, "skiing"))
    model_server.default = written("A summary.")
    assert [day["date"] for day in (await _days(client))["items"]] == ["2026-03-10"]
    changed = await client.patch(
        "/api/v1/users/u-1", json={"timezone": "Pacific/Pago_Pago", "locale": "en-US", "display_name": "Ann"}
    )
    assert changed.status_code == 200
    user = changed.json()
    assert user.pop("created_at")
    assert user == {
        "user_id": "u-1", "timezone": "Pacific/Pago_Pago", "locale": "en-US", "display_name": "Ann",
        "memory": True, "mood": True, "quiet_hours": None,
    }  # fmt: skip
    assert [day["date"] for day in (await _days(client))["items"]] == ["2026-03-09"]
    assert {day["date"] for day in await days_of(services.database)} == {date(2026, 3, 9), date(2026, 3, 10)}
    cleared = (await client.patch("/api/v1/users/u-1", json={"display_name": None})).json()
    assert (cleared["display_name"], cleared["locale"], cleared["timezone"]) == (
        None,
        "en-US",
        "Pacific/Pago_Pago",
    )
    assert (await client.get("/api/v1/users/u-1")).json() == cleared
