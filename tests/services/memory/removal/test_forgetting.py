"""What is forgotten for good is in no store but its conversation, and nowhere once its words are deleted."""

from typing import Any

import httpx
import pytest
from psycopg.rows import tuple_row

from services.bootstrap import Services
from services.identity.tenants import DEFAULT_TENANT
from services.memory.core.blocks import Owner
from services.memory.episodes.episode import NewEpisode
from services.memory.operations import Trigger
from services.memory.removal.canary import CanarySearch
from tests.support.core_memory import know
from tests.support.derived import NOON, derive_everything, maintain_everything
from tests.support.lineage import orphans
from tests.support.model_server import ModelServer
from tests.support.retracting import FILED, SECRET, WHOLE
from tests.support.turns import exchange, owner_of

pytestmark = pytest.mark.indexed

USER = "/api/v1/users/u-1"


async def _forget(client: httpx.AsyncClient, **body: Any) -> dict[str, Any]:
    response = await client.post(f"{USER}/erasures", json=body)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


async def _places(services: Services, word: str = SECRET) -> set[str]:
    """Where a word is, by store and place."""
    search = CanarySearch(services.database, services.memory.index, services.redis)
    found = await search.search(DEFAULT_TENANT, "u-1", word)
    assert found.unreachable == []
    return {f"{each.store}:{each.place}:{','.join(each.columns)}" for each in found.findings}


async def _ids(services: Services, statement: Any) -> list[str]:
    return [str(row[0]) for row in await services.database.fetch(DEFAULT_TENANT, statement, {}, tuple_row)]


async def test_a_fact_that_reached_everything_is_afterwards_in_its_conversations_alone_and_then_nowhere(
    services: Services, client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    owner = await derive_everything(services, client, model_server)
    await maintain_everything(services, client, owner)
    places = await _places(services)
    tables = {each.split(":")[1] for each in places}
    assert tables >= {
        *("messages", "episodes", "core_memory_blocks", "core_memory_history", "conversation_summaries", "topics"),
        *("visits", "daily_summaries", "memory_operations", "turns"),
    }
    forgotten = await _forget(client, topic="my asthma")
    assert {"summary", "topic", "visit", "day"} <= {
        each["kind"] for each in forgotten["items"] if each["outcome"] == "rebuilt"
    }
    assert [each["text"] for each in forgotten["values"]] == [FILED]
    assert forgotten["counts"]["prompts"] >= 20
    await services.memory.indexing.index_waiting()
    assert await _places(services) == {"postgresql:conversations:title", "postgresql:messages:content"}
    again = await _forget(client, topic="my asthma", delete_messages=True)
    assert again["counts"]["messages"]
    assert await _places(services) == set()
    assert await _places(services, "skiing") != set()
    assert await orphans(services.database) == []


async def test_a_preview_changes_nothing_and_shows_what_then_happens(
    services: Services, client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    await derive_everything(services, client, model_server)
    before = await _places(services)
    said = await services.database.fetch(
        DEFAULT_TENANT,
        "SELECT m.id::text, m.content FROM messages m JOIN conversations c ON c.id = m.conversation_id"
        " WHERE c.session_key = 'long' AND m.role = 'user'",
        {},
        tuple_row,
    )
    [message] = [each for each, content in said if "asthma" in content.lower()]
    preview = await _forget(client, message_id=message, delete_messages=True, preview=True)
    assert (preview["preview"], preview["receipt_id"]) == (True, None)
    assert await _places(services) == before
    assert (await client.get(f"{USER}/erasures")).json()["items"] == []
    done = await _forget(client, message_id=message, delete_messages=True)
    assert done["receipt_id"]
    for name in ("items", "values", "counts"):
        assert done[name] == preview[name], name
    outcomes = {(each["kind"], each["outcome"]) for each in done["items"]}
    assert {("message", "removed"), ("summary", "rebuilt"), ("episode", "removed")} <= outcomes


async def test_what_something_else_supports_is_kept_and_said_to_be(
    services: Services, client: httpx.AsyncClient
) -> None:
    first = await exchange(services.turns, "My sister lives in Porto.", "Noted.")
    second = await exchange(services.turns, "Porto again: that is where my sister works.", "Noted.")
    owner = Owner(first.tenant_id, first.user_id, first.expert_id)
    both = Trigger("filing", second.user_message_id, second.conversation_id, second.turn_id)
    await know(services, owner, "human", {"family": ["a sister in Porto"]}, both)
    preview = await _forget(client, message_id=str(first.user_message_id), preview=True)
    assert preview["values"] == []
    gone = await _forget(client, message_id=str(second.user_message_id))
    assert [each["text"] for each in gone["values"]] == ["a sister in Porto"]
    assert {each["outcome"] for each in gone["items"] if each["kind"] == "message"} == {"kept"}
    assert "conversation" in gone["items"][0]["reason"]


@pytest.mark.parametrize("kind", ["episode", "value", "conversation", "day", "span"])
async def test_every_kind_of_target_takes_what_was_made_of_it(
    services: Services, client: httpx.AsyncClient, model_server: ModelServer, kind: str
) -> None:
    await derive_everything(services, client, model_server)
    [conversation] = await _ids(services, "SELECT id FROM conversations WHERE session_key = 's-1'")
    [episode, *_] = await _ids(services, "SELECT id FROM episodes WHERE episode_type = 'context'")
    targets: dict[str, dict[str, Any]] = {
        "episode": {"episode_id": episode},
        "value": {"value": {"section": "human", "field": "health", "text": FILED}},
        "conversation": {"conversation_id": conversation},
        "day": {"day": "2026-03-10"},
        "span": {"since": NOON.isoformat(), "until": "2026-03-11T00:00:00Z", "expert": "default"},
    }
    done = await _forget(client, **targets[kind], delete_messages=True)
    assert done["receipt_id"]
    texts = "SELECT content FROM episodes WHERE episode_type = 'context'"
    if kind == "episode":
        assert await _ids(services, texts) == []
    elif kind == "value":
        content = await _ids(services, "SELECT content FROM core_memory_blocks WHERE section = 'human'")
        assert SECRET not in str(content)
        history = await _ids(services, "SELECT coalesce(old::text, '') || new FROM core_memory_history")
        assert SECRET not in str(history)
    else:
        left = await _ids(
            services, "SELECT count(*) FROM messages WHERE created_at < '2026-04-01' AND content <> ''"
        )
        days = await _ids(services, "SELECT count(*) FROM daily_summaries")
        assert (left, days) == ((["0"], ["0"]) if kind == "day" else (["5"], ["1"]))
    assert await orphans(services.database) == []


async def test_a_command_that_could_be_undone_leaves_nothing_once_it_is_forgotten_for_good(
    services: Services, client: httpx.AsyncClient
) -> None:
    turn = await exchange(services.turns, WHOLE, f"Noted: {WHOLE}")
    await exchange(services.turns, "I bake bread every Sunday.", "Noted.")
    done = (await client.post(f"{USER}/memory/forget", json={"what": "my asthma"})).json()
    assert done["operation_id"]
    assert "postgresql:memory_operations:query,results" not in await _places(services, "bread")
    await _forget(client, topic="my asthma", delete_messages=True)
    assert await _places(services) == set()
    undo = await client.post(f"{USER}/memory-operations/{done['operation_id']}/undo")
    assert SECRET not in undo.text
    assert await _places(services) == set()
    listed = await client.get(f"/api/v1/conversations/{turn.conversation_id}/messages")
    assert "bread" in listed.text


async def test_the_command_that_asked_to_remember_it_keeps_none_of_its_words(
    services: Services, client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    said = {"user_id": "u-1", "session_id": "s-1", "message": "Remember that my sister Odile keeps bees."}
    assert (await client.post("/api/v1/chat", json=said)).status_code == 200
    assert any("query,results" in place for place in await _places(services, "Odile"))
    await _forget(client, topic="my sister Odile's bees", delete_messages=True)
    assert await _places(services, "Odile") == set()


async def test_what_was_kept_out_of_memory_before_stays_out_when_the_rest_is_deleted(
    services: Services, client: httpx.AsyncClient
) -> None:
    await exchange(services.turns, f"{WHOLE} My landlord is Mr Okafor.", "Noted.")
    for what in ("my landlord", "my asthma"):
        done = (await client.post(f"{USER}/memory/forget", json={"what": what})).json()
        assert done["operation_id"], what
    await _forget(client, topic="my asthma", delete_messages=True)
    assert await _places(services) == set()
    assert await _places(services, "Okafor") != set()
    found = await client.post(f"{USER}/episodes/search", json={"query": "Who is my landlord?"})
    assert "Okafor" not in found.text


async def test_an_operation_whose_values_are_gone_is_refused_when_it_is_undone(
    services: Services, client: httpx.AsyncClient
) -> None:
    turn = await exchange(services.turns, WHOLE, "Noted.")
    owner = owner_of(turn)
    trigger = Trigger("model", turn.user_message_id, turn.conversation_id, turn.turn_id)
    new = NewEpisode(WHOLE, "context", 0.5, "derived", [turn.user_message_id], turn.conversation_id)
    await services.memory.archive.insert(owner, new, trigger)
    await _forget(client, message_id=str(turn.user_message_id))
    operations = (await client.get(f"{USER}/memory-operations")).json()["items"]
    (insert,) = [each for each in operations if each["type"] == "episode_insert"]
    undo = await client.post(f"{USER}/memory-operations/{insert['id']}/undo")
    assert undo.status_code == 409, undo.text


async def test_nothing_of_another_user_is_touched(services: Services, client: httpx.AsyncClient) -> None:
    await exchange(services.turns, WHOLE, "Noted.")
    other = await exchange(services.turns, WHOLE, "Noted.", user_id="u-2")
    refused = await client.post(f"{USER}/erasures", json={"message_id": str(other.user_message_id)})
    assert refused.status_code == 404
    await _forget(client, topic="my asthma", delete_messages=True)
    kept = await client.get(f"/api/v1/conversations/{other.conversation_id}/messages")
    assert SECRET in kept.text
    found = await client.post("/api/v1/users/u-2/episodes/search", json={"query": "Hamburg"})
    assert SECRET in found.text


async def test_wrong_targets_are_refused(services: Services, client: httpx.AsyncClient) -> None:
    await exchange(services.turns, WHOLE, "Noted.")
    nothing = "0190a000-0000-7000-8000-00000000ffff"
    expected: list[tuple[dict[str, Any], int]] = [
        ({}, 422),
        ({"topic": "x", "day": "2026-01-01"}, 422),
        ({"until": "2026-01-01T00:00:00Z", "topic": "x"}, 422),
        ({"until": "2026-01-01T00:00:00Z", "since": "2026-02-01T00:00:00Z"}, 422),
        ({"since": "2026-01-01T00:00:00"}, 422),
        ({"message_id": nothing}, 404),
        ({"episode_id": nothing}, 404),
        ({"conversation_id": nothing}, 404),
        ({"value": {"section": "human", "field": "name", "text": "Ada"}}, 404),
        ({"day": "2001-01-01"}, 404),
        ({"topic": "asthma", "expert": "nobody"}, 404),
    ]
    for body, status in expected:
        assert (await client.post(f"{USER}/erasures", json=body)).status_code == status, body
    assert (await client.post("/api/v1/users/u-9/erasures", json={"topic": "x"})).status_code == 404
    nothing_found = await _forget(client, topic="my violin")
    assert (nothing_found["receipt_id"], nothing_found["items"]) == (None, [])
