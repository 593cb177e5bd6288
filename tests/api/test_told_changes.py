"""What filing changed is told once, by the user's next turn, with the operation that undoes it."""

from typing import Any

import httpx
import pytest

from services.bootstrap import Services
from services.identity.tenants import DEFAULT_TENANT
from services.memory.model import ChangeRequest
from services.memory.operations import Trigger
from tests.support.filing import add, file, filed, human, owner
from tests.support.model_server import ModelServer, Received, Reply
from tests.support.talking import say
from tests.support.turns import exchange

pytestmark = pytest.mark.settings(llm_model="large", small_llm_model="small")


def _model(*operations: dict[str, Any]) -> Any:
    return lambda request: filed(*operations) if _is_small(request) else Reply(["Fine."])


def _is_small(request: Received) -> bool:
    return bool(request.body["model"] == "small")


async def test_the_next_turn_tells_what_filing_changed_once_and_it_can_be_undone(
    services: Services, client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    turn = await exchange(services.turns, "I moved to Bath and I keep bees.", "Nice.")
    model_server.default = _model(
        add("lives in Bath", "I moved to Bath", "home"), add("keeps bees", "I keep bees", "hobbies")
    )
    assert await file(services, turn) == 2
    first = await say(client, "Hello", "second")
    told = [(each["kind"], each["items"], each["made_by"]) for each in first["memory_changes"]]
    assert told == [("remember", ["lives in Bath"], "filing"), ("remember", ["keeps bees"], "filing")]
    stored = (await client.get(f"/api/v1/turns/{first['turn_id']}")).json()
    assert stored["memory_changes"] == first["memory_changes"]
    assert (await say(client, "And now?", "second"))["memory_changes"] == []
    undo = first["memory_changes"][1]["operation_id"]
    (await client.post(f"/api/v1/users/u-1/memory-operations/{undo}/undo")).raise_for_status()
    assert await human(services, turn) == {"home": "lives in Bath"}


async def test_the_stream_tells_it_at_its_end(
    services: Services, client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    turn = await exchange(services.turns, "我搬到厦门了", "好。")
    model_server.default = _model(add("住在厦门", "我搬到厦门了", "住处"))
    assert await file(services, turn) == 1
    body = {"user_id": "u-1", "session_id": "s-1", "message": "你好"}
    answer = await client.post("/api/v1/chat", json=body, headers={"accept": "text/event-stream"})
    assert "已记住：住在厦门。" in answer.text


async def test_what_was_forgotten_since_or_belongs_to_another_space_or_expert_is_not_told(
    services: Services, client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    turn = await exchange(services.turns, "I moved to Bath and I keep bees.", "Nice.")
    worked = await exchange(services.turns, "I lead the audit.", "Well done.", session_id="w", space="work")
    model_server.default = _model(
        add("lives in Bath", "I moved to Bath", "home"),
        add("keeps bees", "I keep bees", "hobbies"),
        add("leads the audit", "I lead the audit", "work"),
    )
    assert await file(services, turn) == 3
    request = ChangeRequest.outside_of_turns(owner(turn), Trigger("user"))
    await services.memory.changes.forget(request, "keeps bees")
    told = (await say(client, "Hello", "second"))["memory_changes"]
    assert [each["items"] for each in told] == [["lives in Bath"]]
    told = (await say(client, "Hello", "third", space="work"))["memory_changes"]
    assert [each["items"] for each in told] == [["leads the audit"]]
    assert worked.tenant_id == DEFAULT_TENANT


async def test_a_turn_that_fails_leaves_it_for_the_next(
    services: Services, client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    turn = await exchange(services.turns, "I keep bees.", "Nice.")
    model_server.default = _model(add("keeps bees", "I keep bees", "hobbies"))
    assert await file(services, turn) == 1
    model_server.default = Reply(status=400)
    body = {"user_id": "u-1", "session_id": "s-1", "message": "Hello"}
    assert (await client.post("/api/v1/chat", json=body)).is_error
    model_server.default = Reply(["Fine."])
    assert [each["items"] for each in (await say(client, "Hello again"))["memory_changes"]] == [["keeps bees"]]
