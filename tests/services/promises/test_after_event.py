"""“After the exam” is read by the day that memory knows of the exam; where it knows none, the user is asked."""

import json
from datetime import UTC, date, datetime, timedelta

import httpx
import pytest

from services.bootstrap import Services
from services.memory.operations import Trigger
from services.time_reference.occasions import fixed_day
from tests.support.core_memory import know
from tests.support.model_server import ModelServer, Reply, ToolCall
from tests.support.talking import say
from tests.support.upkeep import someone

PATH = "/api/v1/users/u-1/promises"


@pytest.mark.parametrize(
    ("said", "day"),
    [
        ("has an exam on 2026-12-04", "2026-12-04"),
        ("12月9日手术", "2026-12-09"),
        ("生日是5月12日", "2027-05-12"),
        ("has an exam on Friday", None),
        ("2026年12月考试", None),
        ("exam on December 4 or December 5", None),
        ("sings every year on December 4", None),
        ("works there since 2024-05-01", None),
    ],
)
def test_a_day_is_fixed_that_is_the_same_whenever_it_is_read(said: str, day: str | None) -> None:
    assert fixed_day(said, date(2026, 11, 30)) == (date.fromisoformat(day) if day else None)


async def test_after_an_event_is_the_evening_of_its_day(services: Services, client: httpx.AsyncClient) -> None:
    owner = await someone(services)
    soon, other = ((datetime.now(UTC) + timedelta(days=days)).date() for days in (5, 9))
    plans = [f"has the biology exam on {soon}", f"{other:%Y年%-m月%-d日}动手术", "wants to learn to dive"]
    await know(services, owner, "human", {"plans": plans}, Trigger("user"))
    for when, day in (("After my exam", soon), ("手术以后", other)):
        body = {"text": "how it went", "when": when, "timezone": "Asia/Shanghai"}
        made = (await client.post(PATH, json=body)).json()
        assert (made["when"], made["said"], made["repeats"]) == (f"{day}T19:00:00+08:00", when, False)
    moved = await client.patch(f"{PATH}/{made['id']}", json={"when": "after the exam"})
    assert moved.json()["when"] == f"{soon}T19:00:00+08:00"
    refused = await client.post(PATH, json={**body, "when": "after the dive"})
    assert refused.status_code == 422
    assert "“dive”, of which no day is known; ask the user" in refused.json()["detail"]
    await know(services, owner, "human", {"dates": [f"chemistry exam on {other}"]}, Trigger("user"))
    refused = await client.post(PATH, json={**body, "when": "after the exam"})
    assert f"may be on {soon} or {other}; ask which" in refused.json()["detail"]


async def test_the_model_is_told_that_it_must_ask(
    services: Services, client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    await someone(services)
    arguments = {"text": "ask how it went", "when": "after the exam"}
    model_server.script(Reply(tool_calls=[ToolCall("promise", arguments)]), Reply(["When is it?"]))
    await say(client, "Ask me after the exam how it went.")
    told = json.dumps(model_server.requests[-1].body, ensure_ascii=False)
    assert "Nothing was promised: when: names “exam”, of which no day is known; ask the user for the day." in told
