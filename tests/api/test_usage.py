"""What models were asked for, in the ledger; and what becomes of turns when a budget is used up."""

from typing import Any

import httpx
import psycopg
import pytest

from services.bootstrap import Services
from services.engines import Engines
from services.identity.tenants import DEFAULT_TENANT
from services.platform.settings import Settings
from services.usage.budgets import Budgets
from services.usage.ledger import Spender, Spent
from tests.support.model_server import ModelServer, Reply

pytestmark = pytest.mark.settings(memory_filing_quiet_s=0.0, memory_filing_pause_s=0.0)


async def _say(http: httpx.AsyncClient, message: str, user: str = "u-1", **more: Any) -> httpx.Response:
    body = {"user_id": user, "session_id": "s-1", "message": message, **more}
    return await http.post("/api/v1/chat", json=body)


async def _usage(http: httpx.AsyncClient, services: Services, **query: Any) -> list[dict[str, Any]]:
    await services.usage.write()
    items: list[dict[str, Any]] = (
        (await http.get("/api/v1/usage", params=query)).raise_for_status().json()["items"]
    )
    return items


async def _spend(services: Services, tokens: int) -> None:
    """Record that the user u-1 spent this many tokens."""
    ((user_id,),) = await services.database.fetch(
        DEFAULT_TENANT, "SELECT id FROM users WHERE external_id = 'u-1'", {}, psycopg.rows.tuple_row
    )
    services.usage.meter.add(Spender(DEFAULT_TENANT, "turn", user_id), "m", Spent(1, tokens, 0, 0))
    await services.usage.write()


async def test_turns_and_what_they_cause_are_counted_for_their_user_and_expert(
    client: httpx.AsyncClient, services: Services
) -> None:
    usage = (await _say(client, "My sister Alma moved to Porto last spring.")).json()["usage"]
    await _say(client, "Hello", user="u-2")
    await services.jobs.app.run_worker_async(wait=False, install_signal_handlers=False, listen_notify=False)
    found = await _usage(client, services, by=["user", "expert", "purpose", "model"])
    rows = {(each["user"], each["purpose"]): each for each in found}
    turn = rows["u-1", "turn"]
    assert (turn["calls"], turn["expert"], turn["model"], turn["day"]) == (1, "default", "scripted", None)
    assert (turn["input_tokens"], turn["output_tokens"]) == (usage["input_tokens"], usage["output_tokens"])
    assert rows["u-1", "file_memory"]["calls"] >= 1
    memory = (await client.get("/api/v1/usage", params={"user_id": "u-1"})).json()["memory"]
    own = [each for (user, purpose), each in rows.items() if user == "u-1" and purpose != "turn"]
    assert memory["calls"] == sum(each["calls"] for each in own)
    assert (memory["statements"], memory["tokens_per_statement"]) == (0, None)
    assert rows["u-2", "turn"]["calls"] == 1
    (total,) = await _usage(client, services)
    assert total["calls"] == sum(each["calls"] for each in found)
    assert {each["user"] for each in await _usage(client, services, by=["user"], user_id="u-2")} == {"u-2"}


async def test_an_answer_that_ends_early_is_counted_as_far_as_it_came(
    client: httpx.AsyncClient, services: Services, model_server: ModelServer
) -> None:
    said = "It is a long story. " * 20
    model_server.script(Reply([said, "And then"], gap_s=30))
    body = {"user_id": "u-1", "session_id": "s-1", "message": "Tell me.", "on_disconnect": "cancel"}
    async with client.stream("POST", "/api/v1/chat/stream", json=body) as response:
        turn_id = ""
        async for line in response.aiter_lines():
            if '"turn_id"' in line and not turn_id:
                turn_id = line.split('"turn_id":"')[1][:36]
            if line == "event: token":
                break
    await client.post(f"/api/v1/turns/{turn_id}/cancel")
    (spent,) = await _usage(client, services)
    assert spent["calls"] == 1
    assert spent["output_tokens"] >= len(said) // 5
    assert spent["input_tokens"] > 0


async def test_what_cannot_be_written_is_written_later(
    client: httpx.AsyncClient, services: Services, engines: Engines
) -> None:
    await _say(client, "Hello")
    with psycopg.connect(engines.owner_url or "", autocommit=True) as owner:
        owner.execute("ALTER TABLE usage RENAME TO usage_away")
        await services.usage.write()
        owner.execute("ALTER TABLE usage_away RENAME TO usage")
    assert [each["calls"] for each in await _usage(client, services)] == [1]


@pytest.mark.settings(budget_user_tokens_per_day=10_000)
class TestWithABudget:
    async def test_turns_cost_less_before_they_are_refused_and_say_so(
        self, client: httpx.AsyncClient, services: Services
    ) -> None:
        free = (await _say(client, "Hello", debug=True)).json()
        assert free["degraded"] == []
        await _spend(services, 8_500)
        assert services.budgets
        services.budgets._known.clear()
        saving = (await _say(client, "My sister Alma moved to Porto.", debug=True)).json()
        assert saving["degraded"] == ["budget"]
        assert saving["context_report"]["budget"] == free["context_report"]["budget"] // 2
        await _spend(services, 1_500)
        assert services.budgets
        services.budgets._known.clear()
        refused = await _say(client, "Hello again")
        assert (refused.status_code, refused.json()["code"]) == (429, "budget_exhausted")
        assert 0 < int(refused.headers["retry-after"]) <= 86_400
        assert (await _say(client, "Hello", user="u-2")).status_code == 200

    async def test_nothing_is_refused_while_the_database_does_not_answer(
        self, settings: Settings, services: Services
    ) -> None:
        await services.database.close()
        await Budgets(settings, services.usage).check(DEFAULT_TENANT, "u-1")
