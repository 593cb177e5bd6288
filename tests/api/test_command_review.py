"""A small model reviews what a message asks memory to change, over HTTP and on real stores."""

import json
from typing import Any
from uuid import UUID

import httpx
import pytest

from services.bootstrap import Services
from services.identity.tenants import DEFAULT_TENANT
from tests.support.jobs import statuses
from tests.support.model_server import ModelServer, Reply, ToolCall

pytestmark = pytest.mark.anyio

USER = "/api/v1/users/u-1"


async def _say(client: httpx.AsyncClient, message: str, session: str = "s-1") -> dict[str, Any]:
    body = {"user_id": "u-1", "session_id": session, "message": message}
    answer = await client.post("/api/v1/chat", json=body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def _found(client: httpx.AsyncClient, query: str) -> str:
    answer = await client.post(f"{USER}/episodes/search", json={"query": query})
    return " ".join(item["content"] for item in answer.json()["items"])


def _answers(model_server: ModelServer, command: str, *memories: tuple[str, str], message: str = "") -> None:
    changed = [{"id": key, "text": text} for key, text in memories]
    model_server.requests.clear()
    model_server.script(
        Reply([json.dumps({"command": command, "memories": changed, "message": message}, ensure_ascii=False)])
    )


async def _review(services: Services, turn: dict[str, Any]) -> str:
    return await services.command_review.decide(DEFAULT_TENANT, UUID(turn["turn_id"]))


def _asked(model_server: ModelServer) -> str:
    return model_server.requests[0].prompt[-1][1]


async def _changes(client: httpx.AsyncClient, turn: dict[str, Any]) -> list[dict[str, Any]]:
    answer = await client.get(f"/api/v1/conversations/{turn['conversation_id']}/turns")
    changes: list[dict[str, Any]] = answer.json()["items"][-1]["memory_changes"]
    return changes


async def test_a_correction_that_rules_do_not_resolve_is_made_by_the_review_and_can_be_undone(
    client: httpx.AsyncClient, services: Services, model_server: ModelServer
) -> None:
    await _say(client, "The recruiter is Hannah, and she wants my CV by Friday.")
    turn = await _say(client, "I got her name wrong, she's called Joanna. Everything else is right.")
    assert turn["memory_changes"] == []
    assert await statuses(services.database, "decide_memory_command") == ["todo"]
    _answers(model_server, "correct", ("m1", "The recruiter is Joanna, and she wants my CV by Friday."))
    assert await _review(services, turn) == "correct"
    assert "[m1]* " in _asked(model_server)
    memory = await _found(client, "recruiter CV")
    assert "Joanna, and she wants my CV by Friday" in memory
    assert "Hannah" not in memory

    (change,) = await _changes(client, turn)
    assert change["kind"] == "correct"
    undone = await client.post(f"{USER}/memory-operations/{change['operation_id']}/undo")
    assert undone.status_code == 200, undone.text
    assert "Hannah" in await _found(client, "recruiter CV")


async def test_what_rules_removed_too_much_comes_back(
    client: httpx.AsyncClient, services: Services, model_server: ModelServer
) -> None:
    told = "My partner Jules is from Ghent, works as a lighting technician in theatre."
    await _say(client, told)
    turn = await _say(client, "Please forget that Jules is from Ghent and works in theatre.")
    assert [change["kind"] for change in turn["memory_changes"]] == ["forget"]
    assert "lighting technician" not in await _found(client, "Jules lighting technician")
    _answers(model_server, "forget", ("m1", "My partner Jules works as a lighting technician in theatre."))
    assert await _review(services, turn) == "forget"
    assert f") {told}" in _asked(model_server)
    memory = await _found(client, "Jules lighting technician Ghent")
    assert "lighting technician" in memory
    assert "Ghent" not in memory
    operations = (await client.get(f"{USER}/memory-operations")).json()["items"]
    of_commands = [each for each in operations if each["type"] == "memory_command"]
    assert [each["undone_at"] is None for each in of_commands] == [True, False]


async def test_two_things_just_said_are_forgotten_in_chinese(
    client: httpx.AsyncClient, services: Services, model_server: ModelServer
) -> None:
    await _say(client, "wifi密码是 panda8866，备用密码 190327。路由器放在鞋柜上。")
    turn = await _say(client, "等下，密码不该发给你。两个都清掉，一个也别剩")
    _answers(model_server, "forget", ("m1", "路由器放在鞋柜上。"))
    assert await _review(services, turn) == "forget"
    memory = await _found(client, "密码 路由器")
    assert "鞋柜" in memory
    assert "panda8866" not in memory
    assert "190327" not in memory


async def test_of_several_changes_in_one_turn_the_review_sees_what_was_there_before_all_of_them(
    client: httpx.AsyncClient, services: Services, model_server: ModelServer
) -> None:
    told = "家里wifi密码是liu8866tian，路由器是小米的，为啥电视老断"
    await _say(client, told)
    turn = await _say(client, "换了2.4好了。刚才那个密码你别存，给我删干净")
    assert len(turn["memory_changes"]) == 2
    _answers(model_server, "forget", ("m1", "路由器是小米的，为啥电视老断"), message="换了2.4好了")
    assert await _review(services, turn) == "forget"
    assert told in _asked(model_server)
    memory = await _found(client, "路由器 密码")
    assert "小米" in memory
    assert "liu8866tian" not in memory


async def test_an_item_of_core_memory_is_replaced(
    client: httpx.AsyncClient, services: Services, model_server: ModelServer
) -> None:
    await _say(client, "Hello!")
    written = {"content": {"work": "nurse on the cardiac ward"}}
    assert (await client.put(f"{USER}/core-memory/human", json=written)).status_code == 200
    turn = await _say(client, "I was wrong about the ward, update that: paediatric it is.")
    _answers(model_server, "correct", ("c1", "nurse on the paediatric ward"))
    assert await _review(services, turn) == "correct"
    core = (await client.get(f"{USER}/core-memory")).json()["items"][0]["content"]
    assert core == {"work": "nurse on the paediatric ward"}


@pytest.mark.parametrize(
    "reply",
    [
        Reply(
            ['{"command": "correct", "memories": [{"id": "m1", "text": "I am a spy, wanted, armed, in Lisbon."}]}']
        ),
        Reply(["Sure, done!"]),
        Reply(status=500),
        Reply(['{"command": "forget", "memories": [{"id": "m7", "text": ""}]}']),
    ],
)
async def test_without_a_usable_answer_rules_have_the_last_word(
    client: httpx.AsyncClient, services: Services, model_server: ModelServer, reply: Reply
) -> None:
    await _say(client, "The recruiter is Hannah, and she wants my CV by Friday.")
    turn = await _say(client, "I got her name wrong, she's called Joanna. Everything else is right.")
    model_server.default = reply
    assert await _review(services, turn) == "none"
    assert "Hannah" in await _found(client, "recruiter CV")


async def test_what_the_model_did_by_a_tool_or_the_user_undid_is_not_reviewed(
    client: httpx.AsyncClient, services: Services, model_server: ModelServer
) -> None:
    await _say(client, "I have asthma. I live in Porto.")
    turn = await _say(client, "Please forget that I have asthma.")
    (change,) = turn["memory_changes"]
    await client.post(f"{USER}/memory-operations/{change['operation_id']}/undo")
    model_server.requests.clear()
    assert await _review(services, turn) == "none"
    assert not model_server.requests
    assert "asthma" in await _found(client, "asthma")

    await _say(client, "The recruiter is Hannah, and she wants my CV by Friday.", "s-2")
    model_server.script(Reply(tool_calls=[ToolCall("forget", {"what": "recruiter Hannah"})]), Reply(["Done."]))
    turn = await _say(client, "I got her name wrong, she's called Joanna. Everything else is right.", "s-2")
    assert "Hannah" not in await _found(client, "recruiter")
    model_server.requests.clear()
    assert await _review(services, turn) == "none"
    assert not model_server.requests


async def test_what_rules_did_by_mistake_is_undone_but_not_what_was_plainly_asked(
    client: httpx.AsyncClient, services: Services, model_server: ModelServer
) -> None:
    turn = await _say(client, "领导的名言：凡是我没回的消息都当我同意了。这话有法律效力吗")
    assert [change["kind"] for change in turn["memory_changes"]] == ["standing"]
    _answers(model_server, "none")
    assert await _review(services, turn) == "none"
    assert await _changes(client, turn) == []
    assert "凡是" not in str((await client.get(f"{USER}/core-memory")).json())

    await _say(client, "I have asthma. I live in Porto.", "s-2")
    turn = await _say(client, "Please forget that I have asthma.", "s-2")
    _answers(model_server, "none")
    assert await _review(services, turn) == "none"
    assert "asthma" not in await _found(client, "asthma")


async def test_what_is_off_the_record_stays_out_where_a_later_message_repeats_it(
    client: httpx.AsyncClient, services: Services, model_server: ModelServer
) -> None:
    await _say(client, "Off the record: I am going to sell the bakery to Marta.")
    turn = await _say(client, "I got her name wrong: I am going to sell the bakery to Marina in May.")
    _answers(model_server, "standing", message="I am going to sell the bakery to Marina in May")
    assert await _review(services, turn) == "none"
    assert "bakery" not in await _found(client, "bakery Marina")
    assert "bakery" not in str((await client.get(f"{USER}/core-memory")).json())


async def test_a_weak_model_removes_nothing_that_nobody_asked_to_forget(
    client: httpx.AsyncClient, services: Services, model_server: ModelServer
) -> None:
    await _say(client, "I have asthma. I live in Porto.")
    turn = await _say(client, "We moved the sofa to the other wall at last.")
    _answers(model_server, "forget", ("m1", "I live in Porto."))
    assert await _review(services, turn) == "none"
    assert "asthma" in await _found(client, "asthma")


async def test_an_ordinary_message_asks_for_no_review(
    client: httpx.AsyncClient, services: Services, model_server: ModelServer
) -> None:
    await _say(client, "How long can cooked chicken sit out?")
    assert await statuses(services.database, "decide_memory_command") == []
