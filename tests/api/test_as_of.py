"""What was known at a moment, over HTTP and the client: after corrections, and after forgetting for good."""

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from anamnesis_client import AsyncAnamnesis
from services.bootstrap import Services
from services.memory.core.blocks import Owner
from services.memory.model import ChangeRequest
from services.memory.operations import Trigger
from tests.support.model_server import ModelServer
from tests.support.retracting import retelling
from tests.support.turns import exchange
from tests.support.visits import import_lines, said, talk_at

USER = "/api/v1/users/u-1"
CITIES = {"en": ("I live in Hamburg.", "I live in Lisbon."), "zh": ("我住在杭州。", "我住在上海。")}
in_both_languages = pytest.mark.parametrize("told", CITIES.values(), ids=CITIES)


async def _items(client: httpx.AsyncClient, path: str, **params: Any) -> list[Any]:
    answer = await client.get(f"{USER}/{path}", params=params)
    assert answer.status_code == 200, answer.text
    found: list[Any] = answer.json()["items"]
    return found


async def _search(client: httpx.AsyncClient, query: str, **more: Any) -> str:
    answer = await client.post(f"{USER}/episodes/search", json={"query": query, **more})
    assert answer.status_code == 200, answer.text
    return " ".join(each["content"] for each in answer.json()["items"])


async def _tell_and_correct(services: Services, told: tuple[str, str]) -> datetime:
    """Have memory know one thing and then the other; return a moment between."""
    turn = await exchange(services.turns, told[0], "Noted.")
    owner = Owner(turn.tenant_id, turn.user_id, turn.expert_id)
    request = ChangeRequest.outside_of_turns(owner, Trigger("user"))
    await services.memory.changes.remember(request, told[0])
    between = datetime.now(UTC)
    corrected = await services.memory.changes.correct(request, told[0], told[1])
    assert corrected["operation_id"], corrected
    return between


@in_both_languages
async def test_a_correction_closes_what_was_known_and_loses_nothing(
    services: Services, client: httpx.AsyncClient, told: tuple[str, str]
) -> None:
    before = datetime.now(UTC)
    between = await _tell_and_correct(services, told)
    old, new = (text[-3:-1] if "我" in text else text.split()[-1][:-1] for text in told)
    assert old not in str(await _items(client, "core-memory"))
    assert told[0] in str(await _items(client, "episodes"))  # it was said, and stays said
    for path in ("core-memory", "episodes"):
        assert old in str(await _items(client, path, as_of=between.isoformat())), path
        assert new not in str(await _items(client, path, as_of=between.isoformat())), path
        assert await _items(client, path, as_of=before.isoformat()) == [], path
    assert old in await _search(client, told[0], as_of=between.isoformat())
    address = str(client.base_url)
    async with AsyncAnamnesis(address, user="u-1") as sdk:
        assert old in str([section.content for section in await sdk.profile(as_of=between)])
        assert any(old in memory.text for memory in await sdk.recall(told[0], as_of=between))
        assert old not in str([section.content for section in await sdk.profile()])


async def test_what_is_forgotten_for_good_was_never_known(services: Services, client: httpx.AsyncClient) -> None:
    told = CITIES["en"]
    between = await _tell_and_correct(services, told)
    old = "Hamburg"
    forgotten = await client.post(f"{USER}/erasures", json={"topic": told[0], "delete_messages": True})
    assert forgotten.status_code == 200, forgotten.text
    for path in ("core-memory", "episodes"):
        assert old not in str(await _items(client, path, as_of=between.isoformat())), path
    assert old not in await _search(client, told[0], as_of=between.isoformat())


async def test_a_day_is_shown_as_it_was_summarised_then(
    services: Services, client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    noon = datetime(2026, 3, 10, 4, tzinfo=UTC)
    march = {"from": "2026-03-01", "to": "2026-03-31"}
    model_server.default = retelling
    await import_lines(services, *talk_at(noon, "skiing"))
    [day] = await _items(client, "daily-summaries", **march)
    learned = datetime.now(UTC)
    await import_lines(services, said(noon + timedelta(minutes=20), "I also keep bees."))
    [later] = await _items(client, "daily-summaries", **march)
    assert "bees" in later["summary"]
    [then] = await _items(client, "daily-summaries", **march, as_of=learned.isoformat())
    assert then == {**day, "stale": None}
    assert await _items(client, "daily-summaries", **march, as_of=noon.isoformat()) == []


async def test_values_and_memories_list_when_they_hold(services: Services, client: httpx.AsyncClient) -> None:
    content, valid_to = "在海风工作（到2024-06为止）", "2024-06-30"
    await exchange(services.turns, "Hello", "Hi")
    written = await client.put(f"{USER}/core-memory/human", json={"content": {"facts": [content, "likes tea"]}})
    assert written.status_code == 200, written.text
    [section] = await _items(client, "core-memory")
    holds = {"valid_from": None, "valid_to": valid_to, "is_over": True}
    assert section["validity"] == [{"field": "facts", "text": content, **holds}]
    await client.post(f"{USER}/episodes", json={"content": content})
    listed = await _items(client, "episodes", episode_type="context")
    assert [{name: each[name] for name in holds} for each in listed] == [holds]
