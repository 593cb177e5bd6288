"""What users think of answers, over HTTP."""

import json
from uuid import uuid4

import httpx
import pytest

from services.bootstrap import Services
from services.identity.tenants import DEFAULT_TENANT
from services.memory.model import ChangeRequest
from services.platform.metrics import FEEDBACK
from state.turn import OpenTurn
from tests.support.filing import file, filed, human, waiting
from tests.support.model_server import ModelServer
from tests.support.talks import new_expert
from tests.support.transfer import export, ndjson, send
from tests.support.turns import exchange, new_turn


def _counted(rating: str) -> float:
    [value] = [
        s.value
        for m in FEEDBACK.collect()
        for s in m.samples
        if s.labels == {"rating": rating} and s.name.endswith("_total")
    ] or [0.0]
    return value


async def test_feedback_is_kept_shown_changed_and_withdrawn(client: httpx.AsyncClient, services: Services) -> None:
    turn = await exchange(services.turns, "Hello", "Hi")
    path = f"/api/v1/turns/{turn.turn_id}"
    assert (await client.get(path)).json()["feedback"] is None
    ups, downs = _counted("up"), _counted("down")
    given = await client.post(
        f"{path}/feedback", json={"rating": "down", "comment": "不对", "tags": ["wrong", "wrong"]}
    )
    assert given.status_code == 200, given.text
    assert given.json() | {"updated_at": ""} == {
        "rating": "down", "comment": "不对", "tags": ["wrong"], "updated_at": "",
    }  # fmt: skip
    assert (await client.get(path)).json()["feedback"] == given.json()
    again = await client.post(f"{path}/feedback", json={"rating": "down"})
    assert (again.json()["comment"], again.json()["tags"]) == (None, [])
    await client.post(f"{path}/feedback", json={"rating": "up"})
    assert (_counted("up") - ups, _counted("down") - downs) == (1, 1)
    assert (await client.get(path)).json()["feedback"]["rating"] == "up"
    [listed] = (await client.get(f"/api/v1/conversations/{turn.conversation_id}/turns")).json()["items"]
    assert (listed["id"], listed["status"], listed["feedback"]["rating"]) == (str(turn.turn_id), "completed", "up")
    assert (await client.delete(f"{path}/feedback")).status_code == 204
    assert (await client.delete(f"{path}/feedback")).status_code == 404
    assert (await client.get(path)).json()["feedback"] is None


async def test_a_turn_that_has_not_ended_cannot_be_rated(client: httpx.AsyncClient, services: Services) -> None:
    turn = await services.turns.open(new_turn())
    refused = await client.post(f"/api/v1/turns/{turn.turn_id}/feedback", json={"rating": "up"})
    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
    assert (await client.post(f"/api/v1/turns/{uuid4()}/feedback", json={"rating": "up"})).status_code == 404


async def test_feedback_is_exported_and_imported_elsewhere(client: httpx.AsyncClient, services: Services) -> None:
    turn = await exchange(services.turns, "Hello", "Hi")
    body = {"rating": "down", "comment": "too short", "tags": ["短"]}
    await client.post(f"/api/v1/turns/{turn.turn_id}/feedback", json=body)
    lines = [json.loads(line) for line in (await export(client)).splitlines()]
    [rated] = [line for line in lines if "feedback" in line]
    assert (rated["role"], {**rated["feedback"], "updated_at": ""}) == ("assistant", {**body, "updated_at": ""})
    moved = [{**line, "user_id": "u-9"} for line in lines]
    assert (await send(client, ndjson(*moved)))["errors"] == []
    elsewhere = [json.loads(line) for line in (await export(client, "u-9")).splitlines()]
    assert [line.get("feedback") for line in elsewhere] == [line.get("feedback") for line in lines]
    wrong = {**moved[-1], "kind": "message", "feedback": {"rating": "meh"}, "content": "x"}
    [error] = (await send(client, ndjson(wrong)))["errors"]
    assert "feedback.rating" in error["reason"]


async def test_a_reason_waits_as_a_wish_and_is_kept_when_it_is_given_again(
    client: httpx.AsyncClient, services: Services
) -> None:
    async def rate(comment: str, rating: str = "down") -> OpenTurn:
        turn = await exchange(services.turns, "Hello", "Hi. " * 20)
        body = {"rating": rating, "comment": comment}
        assert (await client.post(f"/api/v1/turns/{turn.turn_id}/feedback", json=body)).status_code == 200
        return turn

    turn = await rate("Too long")
    again = {"rating": "down", "comment": "Too long"}
    assert (await client.post(f"/api/v1/turns/{turn.turn_id}/feedback", json=again)).status_code == 200
    await rate("别说教")
    await rate("Too short", "up")
    await rate("x" * 301)
    said = [each.text for each in await waiting(services)]
    assert said == ["对回答的要求：“别说教”", "about answers: “Too long”"]
    assert await human(services, turn) == {}
    await rate("too  long")
    assert await human(services, turn) == {"wishes": ["about answers: “Too long”"]}
    [chinese] = await waiting(services)
    await client.post(f"/api/v1/users/u-1/memory/proposals/{chinese.id}/reject")
    await rate("别说教")
    assert not await waiting(services), "what was rejected is not asked about again"


async def test_a_reason_is_no_wish_of_another_expert_nor_without_memory(
    client: httpx.AsyncClient, services: Services
) -> None:
    await services.experts.create(DEFAULT_TENANT, new_expert("other"))
    turns = [await exchange(services.turns, "Hello", "Hi", session_id=f"s-{at}") for at in range(2)]
    other = await exchange(services.turns, "Hello", "Hi", session_id="s-o", expert="other")
    reason = {"rating": "down", "comment": "Too long"}
    for turn in (turns[0], other):
        assert (await client.post(f"/api/v1/turns/{turn.turn_id}/feedback", json=reason)).status_code == 200
    assert (len(await waiting(services)), await human(services, turns[0])) == (2, {}), (
        "nobody said it twice to one, and each is asked under its own"
    )
    await client.patch("/api/v1/users/u-1", json={"memory": False})
    assert (await client.post(f"/api/v1/turns/{turns[1].turn_id}/feedback", json=reason)).status_code == 200
    assert (len(await waiting(services)), await human(services, turns[0])) == (2, {})


@pytest.mark.parametrize(
    ("said", "quote"),
    [("That's too long. What about Rome?", "That's too long"), ("太长了。罗马呢？", "太长了")],
    ids=["en", "zh"],
)
async def test_a_complaint_in_the_talk_is_a_thumb_down_and_a_wish_that_is_asked_once(
    client: httpx.AsyncClient, services: Services, model_server: ModelServer, said: str, quote: str
) -> None:
    first = await exchange(services.turns, "Tell me about Paris.", "A very long answer.")
    turn = await exchange(services.turns, said, "Rome.")
    model_server.default = filed(complaint=quote)
    await file(services, turn)
    rated = (await client.get(f"/api/v1/turns/{first.turn_id}")).json()["feedback"]
    assert (rated["rating"], rated["comment"], rated["tags"]) == ("down", None, ["said"])
    [wish] = await waiting(services)
    assert quote in wish.text
    again = await exchange(services.turns, said, "Naples.")
    await file(services, again)
    assert not await waiting(services), "said twice, it is kept"
    assert quote in str(await human(services, again))
    invented = await exchange(services.turns, "And Milan?", "A town.")
    model_server.default = filed(complaint="you talk too much")
    await file(services, invented)
    assert not await waiting(services)
    assert (await client.get(f"/api/v1/turns/{again.turn_id}")).json()["feedback"] is None


async def test_a_complaint_is_no_question_where_its_turn_has_kept_the_wish(
    client: httpx.AsyncClient, services: Services, model_server: ModelServer
) -> None:
    first = await exchange(services.turns, "Tell me about Paris.", "A very long answer.")
    turn = await exchange(services.turns, "That's too long, keep it short.", "From now on.")
    await services.memory.changes.remember(
        ChangeRequest.of_turn(turn, "model", None), "wants short answers", field="wishes"
    )
    model_server.default = filed(complaint="That's too long")
    await file(services, turn)
    assert not await waiting(services)
    assert (await client.get(f"/api/v1/turns/{first.turn_id}")).json()["feedback"]["rating"] == "down"
