"""A promise moves with the event that it names, and is called off with it; both are told, and can be undone."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

import httpx
import pytest

from services.bootstrap import Services
from services.identity.tenants import DEFAULT_TENANT
from services.memory.core.blocks import Owner
from services.memory.operations import Trigger
from tests.support.model_server import ModelServer, Reply, ToolCall
from tests.support.talking import say
from tests.support.upkeep import someone

PATH = "/api/v1/users/u-1/promises"
_ZONE = "Asia/Shanghai"
_LINES = {"content-type": "application/x-ndjson"}


def _day(days: int) -> date:
    return (datetime.now(UTC) + timedelta(days=days)).date()


async def _asked(services: Services, client: httpx.AsyncClient, day: date) -> Owner:
    """A user with an exam, who asked to be asked after it."""
    owner = await someone(services)
    await _plans(services, owner, f"has the biology exam on {day}")
    body = {"text": "how it went", "when": "after the exam", "timezone": _ZONE}
    (await client.post(PATH, json=body)).raise_for_status()
    return owner


async def _plans(services: Services, owner: Owner, *plans: str) -> None:
    content = {"plans": list(plans)} if plans else {}
    await services.memory.core.replace(owner, "human", content, Trigger("user"))


async def _listed(client: httpx.AsyncClient) -> tuple[str, str]:
    [promise] = (await client.get(PATH)).json()["items"]
    return promise["when"][:16], promise["state"]


async def _told(client: httpx.AsyncClient, model_server: ModelServer) -> Sequence[dict[str, Any]]:
    model_server.script(Reply(["Good."]))
    return list((await say(client, "Good evening.", "s-2"))["memory_changes"])


async def test_a_corrected_day_moves_it_and_the_next_turn_tells_it(
    services: Services, client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    soon, later = _day(5), _day(9)
    await _asked(services, client, soon)
    call = {"text": f"has the biology exam on {later}", "replaces": "biology exam"}
    model_server.script(Reply(tool_calls=[ToolCall("remember", call)]), Reply(["Noted."]))
    await say(client, f"The biology exam is on {later} now.")
    assert await _listed(client) == (f"{later}T19:00", "open")
    [change] = await _told(client, model_server)
    assert change["summary"] == f"Promised: {later} 19:00 how it went."
    undo = f"/api/v1/users/u-1/memory-operations/{change['operation_id']}/undo"
    (await client.post(undo)).raise_for_status()
    assert await _listed(client) == (f"{soon}T19:00", "open")
    assert await _told(client, model_server) == []


async def test_a_cancelled_event_calls_it_off_and_brings_it_back(
    services: Services, client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    soon = _day(5)
    await _asked(services, client, soon)
    model_server.script(
        Reply(tool_calls=[ToolCall("remember", {"text": "the biology exam is off", "replaces": "biology exam"})]),
        Reply(["A pity."]),
    )
    answer = await say(client, "The biology exam is off.")
    due = await services.keeping.find(datetime.now(UTC))
    assert due == 1, "what is marked is found within a minute"
    assert await _listed(client) == (f"{soon}T19:00", "cancelled")
    [change] = await _told(client, model_server)
    assert (change["kind"], change["summary"]) == (
        "called_off",
        f"Called off, as the day is not known any more: {soon} 19:00 how it went.",
    )
    [made] = answer["memory_changes"]
    undo = "/api/v1/users/u-1/memory-operations/{}/undo"
    (await client.post(undo.format(made["operation_id"]))).raise_for_status()
    assert await _listed(client) == (f"{soon}T19:00", "open")
    assert [each["kind"] for each in await _told(client, model_server)] == ["promise"]


async def test_what_is_due_or_was_settled_by_the_user_stays(
    services: Services, client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    soon, later = _day(5), _day(9)
    owner = await _asked(services, client, soon)
    over = datetime.fromisoformat(f"{soon}T19:05:00+08:00")
    await _plans(services, owner)
    model_server.default = Reply(status=500)
    await services.keeping.keep(DEFAULT_TENANT, owner.user_id, over)
    assert await _listed(client) == (f"{soon}T19:00", "kept"), "its time had come"
    await _plans(services, owner, f"has the biology exam on {later}")
    assert await _listed(client) == (f"{soon}T19:00", "kept")
    made = await client.post(PATH, json={"text": "again", "when": "after the exam", "timezone": _ZONE})
    (await client.delete(f"{PATH}/{made.json()['id']}")).raise_for_status()
    await _plans(services, owner, f"has the biology exam on {_day(11)}")
    assert {each["state"] for each in (await client.get(PATH)).json()["items"]} == {"kept", "cancelled"}


@pytest.mark.parametrize("plans", [["biology exam on {soon}", "chemistry exam on {later}"], ["exam on {soon}"]])
async def test_a_day_that_is_still_known_stays(
    services: Services, client: httpx.AsyncClient, plans: list[str]
) -> None:
    soon, later = _day(5), _day(9)
    owner = await _asked(services, client, soon)
    await _plans(services, owner, *(each.format(soon=soon, later=later) for each in plans))
    assert await _listed(client) == (f"{soon}T19:00", "open")


async def test_it_is_exported_and_imported(services: Services, client: httpx.AsyncClient) -> None:
    soon, later = _day(5), _day(9)
    await _asked(services, client, soon)
    lines = (await client.get("/api/v1/users/u-1/export")).text.replace('"u-1"', '"u-2"')
    (await client.post("/api/v1/import", content=lines, headers=_LINES)).raise_for_status()
    other = await services.memory.core.owner(DEFAULT_TENANT, "u-2", "default")
    await _plans(services, other, f"has the biology exam on {later}")
    [promise] = (await client.get("/api/v1/users/u-2/promises")).json()["items"]
    assert promise["when"] == f"{later}T19:00:00+08:00"
