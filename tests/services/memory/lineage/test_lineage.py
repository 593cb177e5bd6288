"""Everything derived names what it was made from, and can be reached from the message that it comes from."""

from typing import Any

import httpx
import pytest
from psycopg.rows import tuple_row

from services.bootstrap import Services
from services.identity.tenants import DEFAULT_TENANT
from state.turn import OpenTurn
from tests.support.derived import KINDS, derive_everything
from tests.support.lineage import orphans
from tests.support.model_server import ModelServer
from tests.support.retracting import FILED, WHOLE, forget
from tests.support.turns import exchange
from tests.support.upkeep import change

pytestmark = [pytest.mark.indexed, pytest.mark.untraced]

LINEAGE = "/api/v1/users/u-1/lineage"


async def _lineage(client: httpx.AsyncClient, of: str, direction: str = "up", **more: str) -> dict[str, Any]:
    response = await client.get(LINEAGE, params={"of": of, "direction": direction, **more})
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    assert found["is_complete"]
    return found


async def _ids(services: Services, kind: str) -> list[str]:
    statement = "SELECT id::text FROM derived_items WHERE kind = %(kind)s ORDER BY at, id"
    return [row[0] for row in await services.database.fetch(DEFAULT_TENANT, statement, {"kind": kind}, tuple_row)]


async def _no_orphans(services: Services) -> None:
    assert await orphans(services.database) == []


async def test_everything_derived_names_its_maker_and_its_messages_and_stays_whole_whatever_is_removed(
    services: Services, client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    owner = await derive_everything(services, client, model_server)
    await _no_orphans(services)
    makers = {}
    for kind in KINDS:
        for item in await _ids(services, kind):
            found = await _lineage(client, f"{kind}:{item}")
            assert {"message"} <= {each["kind"] for each in found["items"]}, (kind, item)
            if found["of"]["text"]:
                makers[kind] = found["of"]["made_by"]
    for kind in ("summary", "topic", "visit", "private_note", "core_memory"):
        assert makers[kind]["model"] == "scripted", kind
        assert "@" in makers[kind]["prompt"], kind
    assert all(makers[kind]["turn_id"] for kind in ("private_note", "persona_card", "core_memory"))
    episodes = [(await _lineage(client, f"episode:{item}"))["of"] for item in await _ids(services, "episode")]
    (filed,) = [each["made_by"] for each in episodes if each["made_by"].get("actor") == "filing"]
    assert filed["turn_id"]
    assert filed["model"] == "scripted"
    by_name = await _lineage(client, "core_memory:human")
    assert [value["text"] for value in by_name["of"]["values"]] == [FILED]
    assert by_name["of"]["values"][0]["message_id"] in {each["id"] for each in by_name["items"]}
    day = await _lineage(client, "day:2026-03-10")
    assert {"visit", "message"} == {each["kind"] for each in day["items"]}

    change = await forget(services, owner)
    await _no_orphans(services)
    undo = await client.post(f"/api/v1/users/u-1/memory-operations/{change['operation_id']}/undo")
    assert undo.status_code == 200
    await _no_orphans(services)
    statement = "SELECT id FROM conversations WHERE session_key = 'long'"
    [(conversation_id,)] = await services.database.fetch(DEFAULT_TENANT, statement, {}, tuple_row)
    await services.erasure.conversation(DEFAULT_TENANT, conversation_id, keep_memories=True)
    await _no_orphans(services)


@pytest.mark.in_clear
async def test_from_a_message_all_that_was_made_of_it_is_reached_and_nothing_else(
    services: Services, client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    await derive_everything(services, client, model_server)
    statement = "SELECT id::text FROM messages WHERE content = %(content)s AND role = 'user'"
    rows = await services.database.fetch(DEFAULT_TENANT, statement, {"content": WHOLE}, tuple_row)
    reached = set()
    for (message_id,) in rows:
        found = await _lineage(client, f"message:{message_id}", "down")
        reached |= {each["kind"] for each in found["items"]}
        assert found["of"]["text"] == WHOLE
    assert reached == KINDS
    unrelated = await exchange(services.turns, "The weather is nice.", "Yes.", session_id="elsewhere")
    found = await _lineage(client, f"message:{unrelated.user_message_id}", "down")
    assert {each["kind"] for each in found["items"]} == {"episode", "visit"}


async def _damaged(services: Services) -> OpenTurn:
    turn = await exchange(services.turns, WHOLE, "Noted.")
    await change(services, "DELETE FROM messages WHERE id = %s", turn.answer_message_id)
    return turn


async def test_the_audit_names_what_has_no_parents_and_whose_parents_are_missing(services: Services) -> None:
    turn = await _damaged(services)
    await exchange(services.turns, "Hello", "Hi", user_id="u-2")
    await change(services, "UPDATE episodes SET source_message_ids = '{}' WHERE user_id <> %s", turn.user_id)
    assert {(each.user, each.kind, each.problem, each.parent_id) for each in await orphans(services.database)} == {
        ("u-1", "episode", "parent is missing", turn.answer_message_id),
        ("u-2", "episode", "no parents", None),
    }


async def test_what_is_not_there_or_misspelt_is_refused(services: Services, client: httpx.AsyncClient) -> None:
    turn = await exchange(services.turns, WHOLE, "Noted.")
    await exchange(services.turns, WHOLE, "Noted.", user_id="u-2")
    expected = {
        "message": 422,
        "weather:1": 422,
        "message:human": 422,
        f"episode:{turn.user_message_id}": 404,
        "core_memory:human": 404,
        "day:2020-01-01": 404,
        f"message:{turn.user_message_id}": 200,
    }
    for of, status in expected.items():
        assert (await client.get(LINEAGE, params={"of": of})).status_code == status, of
    others = LINEAGE.replace("u-1", "u-2")
    of_another = await client.get(others, params={"of": f"message:{turn.user_message_id}"})
    assert of_another.status_code == 404
    assert (await client.get(LINEAGE.replace("u-1", "u-9"), params={"of": "day:2020-01-01"})).status_code == 404
