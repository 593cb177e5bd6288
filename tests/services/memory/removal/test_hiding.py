"""What is forgotten is in none of the texts that were made of it, for this user alone, until that is undone."""

import json
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

import httpx
import pytest
from psycopg.rows import tuple_row

from services.bootstrap import Services
from services.identity.tenants import DEFAULT_TENANT, Tenants
from services.jobs.tasks import SUMMARISE
from services.memory.core.blocks import Owner
from services.memory.episodes.episode import Scope
from services.memory.operations import Trigger
from services.memory.removal.targets import Target, planned_removal
from services.visits.visit import SUMMARISE_DAYS
from tests.support.core_memory import know
from tests.support.jobs import has_ended, statuses, until
from tests.support.model_server import ModelServer, Reply
from tests.support.retracting import PART, SECRET, WHOLE, forget, long_talk, repeating, retelling
from tests.support.talking import say
from tests.support.talks import new_expert
from tests.support.turns import exchange, owner_of
from tests.support.upkeep import everything, keep_up, write
from tests.support.visits import days_of, import_lines, said, talk_at, visits_of

pytestmark = [
    pytest.mark.indexed,
    pytest.mark.settings(memory_summary_chunk_tokens=500, memory_compression_similarity=0.5),
]

DAY = date(2026, 3, 10)
NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)
USER = "/api/v1/users/u-1"


async def _rows(services: Services, statement: Any, tenant_id: UUID = DEFAULT_TENANT, **values: Any) -> list[Any]:
    return await services.database.fetch(tenant_id, statement, values, tuple_row)


def _asked(model_server: ModelServer) -> str:
    return json.dumps([received.body for received in model_server.requests], ensure_ascii=False)


async def _worked(services: Services, task: str) -> None:
    """Let a worker carry out a job that is to be there, and wait for its end."""
    assert "todo" in await statuses(services.database, task)
    services.jobs.start_worker()

    async def ended() -> bool:
        return await has_ended(services.database, task, "succeeded")

    await until(ended)


async def _search(services: Services, owner: Owner, query: str) -> str:
    """What a search in the index finds, after all of it was indexed."""
    await services.memory.indexing.index_waiting()
    scope = Scope(owner.tenant_id, owner.user_id, owner.expert_id)
    found = await services.memory.archive.search(scope, query, top_k=20, now=datetime.now(UTC))
    assert found.degraded == []
    return "\n".join(item.content for item in found.items)


async def test_a_rolling_summary_and_its_parts_are_withdrawn_and_made_again_without_it(
    services: Services, model_server: ModelServer
) -> None:
    model_server.default = repeating
    turn = await long_talk(services, PART, 40, length=100)
    await services.summaries.update(DEFAULT_TENANT, turn.conversation_id)
    texts = "SELECT summary FROM summary_parts UNION ALL SELECT summary FROM conversation_summaries"
    assert SECRET in str(await _rows(services, "SELECT summary FROM summary_parts"))
    await forget(services, owner_of(turn))
    assert await _rows(services, texts) == []
    model_server.requests.clear()
    await _worked(services, SUMMARISE)
    assert "question 0" in str(await _rows(services, texts))
    assert "question 0" in _asked(model_server)
    assert SECRET not in f"{await _rows(services, texts)} {_asked(model_server)}"
    assert "Porto" in _asked(model_server)


async def test_visits_and_days_are_withdrawn_and_summarised_again_without_it(
    services: Services, model_server: ModelServer
) -> None:
    evening = talk_at(NOON + timedelta(hours=6), "cooking", session_id="s-2")
    await import_lines(services, said(NOON, PART), *talk_at(NOON + timedelta(minutes=1), "skiing"), *evening)
    owner = await services.memory.core.owner(DEFAULT_TENANT, "u-1", "default")
    model_server.default = retelling
    assert await services.daily.make(owner, DAY, "UTC")
    assert SECRET in str(await days_of(services.database))
    assert SECRET in str([visit["summary"] for visit in await visits_of(services.database)])
    await forget(services, owner)
    assert await days_of(services.database) == []
    noon, later = await visits_of(services.database)
    assert noon["summary"] is None
    assert "cooking" in later["summary"]
    model_server.requests.clear()
    await _rows(services, "UPDATE users SET timezone = 'UTC' RETURNING 1")
    assert await services.daily_scheduler.find(datetime.now(UTC)) == 1
    await _worked(services, SUMMARISE_DAYS)
    (day,) = await days_of(services.database)
    visits = [visit["summary"] for visit in await visits_of(services.database)]
    assert "skiing" in day["summary"]
    assert all(visits)
    assert "skiing" in _asked(model_server)
    assert SECRET not in f"{day} {visits} {_asked(model_server)}"


async def test_a_message_goes_what_was_merged_into_its_memory_comes_back_and_undone_all_is_as_it_was(
    services: Services,
) -> None:
    first = await exchange(services.turns, "I drink tea against my asthma.", "Good to know.")
    second = await exchange(services.turns, "Tea helps with my asthma.", "Good to know.")
    owner = owner_of(first)
    old, new = [
        (await write(services, owner, text, source_message_ids=[turn.user_message_id]))[0]
        for text, turn in (("Drinks tea against asthma", first), ("drinks tea against asthma.", second))
    ]
    assert (await keep_up(services)).merged_ids == [old]
    before = await everything(services, owner)
    target = Target(message_id=second.user_message_id)
    hidden = await _hidden(services, owner, second.user_message_id)
    stored = await everything(services, owner)
    assert stored[new]["retracted_at"]
    assert (stored[old]["superseded_by"], stored[old]["retracted_at"]) == (None, None)
    await services.memory.undo.undo(DEFAULT_TENANT, "u-1", hidden)
    assert await everything(services, owner) == before
    done = await services.forgetting.forget(DEFAULT_TENANT, "u-1", target, by="test", delete_messages=True)
    assert done.receipt_id
    stored = await everything(services, owner)
    assert new not in stored
    assert stored[old]["superseded_by"] is None


async def _hidden(services: Services, owner: Owner, message_id: UUID) -> UUID:
    """Hide one message as a command does; return the operation."""
    planned = planned_removal(messages=[message_id])
    async with services.database.tenant(owner.tenant_id) as connection:
        operation_id = await services.memory.hiding.commit(connection, owner, planned, Trigger("user"))
    assert operation_id
    return operation_id


async def test_a_reflection_goes_also_where_the_answer_stays_and_comes_back(
    services: Services, client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    await services.experts.create(DEFAULT_TENANT, new_expert("thoughtful", reflection=True))
    turn = await exchange(services.turns, PART, "Take care.", expert="thoughtful")
    note = {"thoughts": "He has asthma.", "feeling": "warm", "intention": "Ask."}
    model_server.script(Reply([json.dumps(note)]))
    assert await services.reflection.reflect(DEFAULT_TENANT, turn.turn_id)
    notes = "SELECT private_note FROM messages WHERE private_note IS NOT NULL"
    assert await _rows(services, notes) == [(note,)]
    change = await forget(services, owner_of(turn))
    assert await _rows(services, notes) == []
    model_server.requests.clear()
    body = {"user_id": "u-1", "session_id": "s-2", "expert": "thoughtful", "message": "Hello again."}
    assert (await client.post("/api/v1/chat", json=body)).status_code == 200
    assert SECRET not in _asked(model_server)
    undo = await client.post(f"{USER}/memory-operations/{change['operation_id']}/undo")
    assert undo.status_code == 200, undo.text
    assert await _rows(services, notes) == [(note,)]


async def test_the_next_prompts_of_all_conversations_show_it_no_more(
    services: Services, client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    model_server.default = lambda received: Reply([f"You said: {received.said[-1]}"])
    await say(client, WHOLE, "s-1")
    owner = await services.memory.core.owner(DEFAULT_TENANT, "u-1", "default")
    known = {"health": ["asthma", "bad knee"], "home": "Turin"}
    await know(services, owner, "human", known, Trigger("user"))
    await know(services, owner, "plans", {"next": "see a doctor about the asthma"}, Trigger("user"))
    await services.memory.indexing.index_waiting()
    for session in ("s-1", "s-2"):
        await say(client, "What did I say about Hamburg?", session)
        assert SECRET in json.dumps(model_server.requests[-1].body), session
    epochs = "SELECT core_memory::text, persona_card, summary, topics::text FROM context_epochs"
    assert SECRET in str(await _rows(services, epochs))
    await forget(services, owner, "asthma")
    assert SECRET not in str(await _rows(services, epochs))
    assert SECRET not in str(await services.memory.core.read(owner))
    for session in ("s-1", "s-2", "s-3"):
        await say(client, "What did I say about Hamburg?", session)
        body = json.dumps(model_server.requests[-1].body)
        assert SECRET not in body, session
        assert "bad knee" in body, session
    assert SECRET not in str(await _rows(services, epochs))


async def test_nothing_of_another_user_or_another_tenant_is_touched(services: Services) -> None:
    other = await Tenants(services.database).create("other")
    await services.experts.create(other.id, new_expert("archivist"))
    mine = await exchange(services.turns, WHOLE, "Noted.")
    theirs = await exchange(services.turns, WHOLE, "Noted.", user_id="u-2")
    elsewhere = await exchange(services.turns, WHOLE, "Noted.", tenant_id=other.id, expert="archivist")
    for turn in (theirs, elsewhere):
        await know(services, owner_of(turn), "human", {"health": ["asthma"]}, Trigger("user"))
    change = await forget(services, owner_of(mine))
    touched = "SELECT count(*) FROM messages WHERE retraction_id IS NOT NULL AND conversation_id = %(id)s"
    assert await _rows(services, touched, id=mine.conversation_id) == [(2,)]
    for turn in (theirs, elsewhere):
        assert await _rows(services, touched, turn.tenant_id, id=turn.conversation_id) == [(0,)]
        assert SECRET in await _search(services, owner_of(turn), "Hamburg")
        assert SECRET in str(await services.memory.core.read(owner_of(turn)))
        dated = "SELECT retracted_at FROM conversations WHERE id = %(id)s"
        assert await _rows(services, dated, turn.tenant_id, id=turn.conversation_id) == [(None,)]
    with pytest.raises(Exception, match="no operation"):
        await services.memory.undo.undo(DEFAULT_TENANT, "u-2", UUID(change["operation_id"] or ""))


async def _everywhere(services: Services) -> dict[str, str]:
    """Every row of every table that has something of the default tenant."""
    named = (
        "SELECT table_name FROM information_schema.columns WHERE table_schema = 'public'"
        " AND column_name = 'tenant_id' AND table_name <> 'remembered_messages'"
    )
    tables: list[str] = [row[0] for row in await _rows(services, named)]
    async with services.database.tenant(DEFAULT_TENANT) as connection:
        found = {}
        for table in tables:
            rows = await (await connection.execute(f"SELECT {table}::text FROM {table}")).fetchall()
            found[table] = str(rows)
        return found


async def test_a_removed_conversation_leaves_nothing_of_what_was_retracted_in_it(
    services: Services, model_server: ModelServer
) -> None:
    await services.experts.create(DEFAULT_TENANT, new_expert("thoughtful", reflection=True))
    turn = await exchange(services.turns, PART, "Take care.", expert="thoughtful")
    note = {"thoughts": "He has asthma.", "feeling": "warm", "intention": "Ask."}
    model_server.script(Reply([json.dumps(note)]))
    assert await services.reflection.reflect(DEFAULT_TENANT, turn.turn_id)
    other = await exchange(services.turns, "I play the tuba.", "Loud!", expert="thoughtful", session_id="s-2")
    await forget(services, owner_of(turn))
    kept = await forget(services, owner_of(turn), "I play the tuba")
    assert SECRET in (await _everywhere(services))["memory_operations"]
    await services.erasure.conversation(DEFAULT_TENANT, turn.conversation_id)
    left = await _everywhere(services)
    assert [table for table, rows in left.items() if SECRET in rows] == []
    await services.memory.undo.undo(DEFAULT_TENANT, "u-1", UUID(kept["operation_id"] or ""))
    assert "tuba" in await _search(services, owner_of(other), "tuba")
