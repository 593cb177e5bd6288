"""The first prompt of a visit tells what is coming up, and asks at most once a day; quiet hours are kept."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from services.bootstrap import Services
from services.identity.tenants import DEFAULT_TENANT
from services.memory.operations import Trigger
from services.promises.coming_up import coming_up_line
from services.promises.promises import NewPromise
from services.promises.quiet import is_quiet
from tests.support.core_memory import know
from tests.support.model_server import ModelServer, Reply, ToolCall
from tests.support.talking import say
from tests.support.upkeep import change, someone

pytestmark = pytest.mark.settings(llm_model="large", small_llm_model="small")

_NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
_PROFILE = {
    "birthday": "1990-12-03",
    "dates": ["mother's birthday is on December 5", "dentist on 2026-11-28", "deadline on 2027-01-08"],
    "plans": ["wants to learn to dive", "exam on Friday"],
    "facts": ["moves on 2026-12-02"],
}


def _line(last_visit: datetime | None, profile: object = _PROFILE, most: int = 1) -> str:
    count = (lambda text: len(text.split()) * most) if most else len
    return coming_up_line([], [profile], "UTC", "en", count, now=_NOW, last_visit=last_visit)  # type: ignore[list-item]


def test_days_of_the_profile_are_told_once_and_asked_about_once_a_day() -> None:
    assert _line(_NOW - timedelta(days=4)) == (
        "Dates of theirs: dentist on 2026-11-28 (is past); 12-03 1990-12-03; 12-05 mother's birthday is on "
        "December 5. Ask how it went once at most, only if it fits and no wish of theirs forbids it."
    )
    assert _line(_NOW - timedelta(hours=3)) == (
        "Dates of theirs: 12-03 1990-12-03; 12-05 mother's birthday is on December 5."
    ), "the day's second visit asks nothing, and what is past was told"
    assert "is past" not in _line(None)
    assert _line(_NOW - timedelta(minutes=10)) == "", "within a visit"
    assert _line(None, {"facts": ["moves on 2026-12-02"]}) == ""
    assert _line(None, most=4).startswith("Dates of theirs: 12-03 1990-12-03. Ask")


@pytest.mark.parametrize(
    ("hours", "at", "quiet"),
    [
        ("22:00-07:00", "21:59", False),
        ("22:00-07:00", "22:00", True),
        ("22:00-07:00", "06:59", True),
        ("22:00-07:00", "07:00", False),
        ("12:00-13:00", "12:30", True),
        ("12:00-13:00", "13:00", False),
        ("always", "12:00", True),
        ("never", "03:00", False),
    ],
)
def test_hours_are_of_the_user_s_clock(hours: str, at: str, *, quiet: bool) -> None:
    moment = datetime.fromisoformat(f"2026-11-30T{at}+08:00")
    assert is_quiet(hours, moment.astimezone(UTC), "Asia/Shanghai") is quiet


def _shown(model_server: ModelServer) -> str:
    return "\n".join(text for _, text in model_server.requests[-1].prompt)


async def _away(services: Services, days: int = 3) -> None:
    await change(services, "UPDATE visits SET last_active_at = last_active_at - make_interval(days => %s), "
                           "started_at = started_at - make_interval(days => %s)", days, days)  # fmt: skip


async def test_a_plan_that_has_retired_is_told_in_the_next_visit_and_no_more(
    services: Services, client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    owner = await someone(services)
    now = datetime.now(UTC)
    plan = f"has surgery on {(now + timedelta(days=5)).date()}"
    await know(services, owner, "human", {"plans": [plan]}, Trigger("user"))
    await _away(services)
    await say(client, "Hello", "s-2")
    assert f"{plan}. Ask how it went once" in _shown(model_server)
    await services.upkeep_scheduler.keep_up(DEFAULT_TENANT, owner.user_id, now + timedelta(days=10))
    await _away(services)
    await say(client, "Hello", "s-3")
    assert f"{plan} (is past). Ask how it went once" in _shown(model_server)
    await say(client, "And now?", "s-3")
    assert "is past" not in _shown(model_server).partition("Dates of theirs")[2]


async def _told(services: Services, client: httpx.AsyncClient, model_server: ModelServer, session: str) -> bool:
    await _away(services)
    model_server.default = Reply(["Hi."])
    await say(client, "Hello", session)
    return "Dates of theirs" in _shown(model_server)


async def _logged(client: httpx.AsyncClient) -> Sequence[dict[str, Any]]:
    return list((await client.get("/api/v1/users/u-1/memory-operations")).json()["items"])


@pytest.mark.settings(quiet_hours="always")
async def test_the_setting_the_user_a_sentence_and_an_expert_switch_it_off(
    services: Services, client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    owner = await someone(services)
    soon = (datetime.now(UTC) + timedelta(days=5)).date()
    await know(services, owner, "human", {"dates": [f"exam on {soon}"]}, Trigger("user"))
    assert not await _told(services, client, model_server, "s-2"), "the setting"
    user = "/api/v1/users/u-1"
    assert (await client.patch(user, json={"quiet_hours": "25:00-07:00"})).status_code == 422
    assert (await client.patch(user, json={"quiet_hours": "never"})).json()["quiet_hours"] == "never"
    assert await _told(services, client, model_server, "s-3"), "the user's own come first"
    await _away(services)
    model_server.script(
        Reply(tool_calls=[ToolCall("promise", {"state": "quiet", "when": "always"})]), Reply(["All right."])
    )
    await say(client, "Don't ask me anything by yourself any more.", "s-4")
    assert (await client.get(user)).json()["quiet_hours"] == "always"
    assert not await _told(services, client, model_server, "s-5"), "a sentence"
    lines = (await client.get(f"{user}/export")).text
    assert '"quiet_hours":"always"' in lines.replace(" ", "")
    [logged] = [each for each in await _logged(client) if each["type"] == "quiet_hours"]
    assert (logged["old_value"], logged["new_value"]) == ({"hours": "never"}, {"hours": "always"})
    undo = f"{user}/memory-operations/{logged['id']}/undo"
    (await client.post(undo)).raise_for_status()
    assert (await client.get(user)).json()["quiet_hours"] == "never"
    await client.patch(user, json={"quiet_hours": None})
    model_server.script(
        Reply(tool_calls=[ToolCall("promise", {"state": "quiet", "when": "at night"})]), Reply(["When is that?"])
    )
    await say(client, "Be quiet at night.", "s-6")
    assert (await client.get(user)).json()["quiet_hours"] is None


async def test_an_expert_does_without(
    services: Services, client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    owner = await someone(services)
    soon = (datetime.now(UTC) + timedelta(days=5)).date()
    await know(services, owner, "human", {"dates": [f"exam on {soon}"]}, Trigger("user"))
    assert await _told(services, client, model_server, "s-2")
    changed = await client.patch("/api/v1/experts/default", json={"parts_off": ["coming_up"]})
    assert changed.is_success, changed.text
    assert not await _told(services, client, model_server, "s-3")


async def test_an_offer_waits_for_the_end_of_quiet_hours_and_what_was_asked_for_does_not(
    services: Services, client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    owner = await someone(services)
    await client.patch("/api/v1/users/u-1", json={"quiet_hours": "22:00-07:00", "timezone": "UTC"})
    begun = datetime(2026, 11, 30, 20, tzinfo=UTC)
    for by in ("user", "offer"):
        new = NewPromise(text=f"by {by}", when="at 11pm", timezone="UTC", asked_by=by)
        await services.promises.make(owner, new, Trigger("user"), begun)
    model_server.default = Reply(status=500)

    async def states(now: datetime) -> Sequence[str]:
        await services.keeping.keep(DEFAULT_TENANT, owner.user_id, now)
        found = await services.promises.list(owner)
        return [each.state for each in sorted(found, key=lambda each: each.text, reverse=True)]

    assert await states(begun.replace(hour=23, minute=1)) == ["kept", "open"]
    assert await states(begun + timedelta(hours=10)) == ["kept", "open"]
    assert await states(begun + timedelta(hours=11)) == ["kept", "kept"]
