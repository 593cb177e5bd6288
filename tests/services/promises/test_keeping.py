"""A promise is kept once, in its conversation and at its time, whatever happens meanwhile."""

import asyncio
import threading
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import httpx
import pytest
from psycopg.rows import tuple_row

from services.bootstrap import Services
from services.engines import Engines
from services.identity.tenants import DEFAULT_TENANT
from services.memory.operations import Trigger
from services.platform.postgres import Database
from services.promises.promises import NewPromise
from tests.support.jobs import running_worker
from tests.support.model_server import ModelServer, Reply, ToolCall
from tests.support.retracting import forget
from tests.support.talking import say

pytestmark = pytest.mark.settings(llm_model="large", small_llm_model="small")

PATH = "/api/v1/users/u-1/promises"
_DONE = Reply(['{"done": true, "message": ""}'])
_NO_MODEL = Reply(status=500)
_WORKER = """
import asyncio, sys
from datetime import datetime
from uuid import UUID
from services.identity.tenants import DEFAULT_TENANT
from services.jobs.queue import JobQueue
from services.llm.chat_models import ChatModels
from services.platform.postgres import Database
from services.platform.settings import load_settings
from services.promises.keeping import Keeping

async def main(url, model, user_id, now):
    database = Database(url)
    await database.open()
    settings = load_settings(llm_model="large", small_llm_model="small", llm_base_url=model, llm_api_key="k")
    keeping = Keeping(database, ChatModels(settings), JobQueue(database))
    print("ready", flush=True)
    while True:
        await keeping.keep(DEFAULT_TENANT, UUID(user_id), datetime.fromisoformat(now))

asyncio.run(main(*sys.argv[1:]))
"""


async def make(client: httpx.AsyncClient, **values: Any) -> dict[str, Any]:
    """Make a promise over HTTP."""
    body = {"text": "call the dentist", "when": "tomorrow at nine", "timezone": "Europe/Berlin", **values}
    answer = await client.post(PATH, json=body)
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


async def listed(client: httpx.AsyncClient, **query: str) -> Sequence[dict[str, Any]]:
    """What is listed of the user's."""
    return list((await client.get(PATH, params=query)).json()["items"])


async def keep(services: Services, now: datetime) -> int:
    """Keep what is due at a moment; return of how many users."""
    due = "SELECT tenant_id, user_id FROM users_with_due_promises(%(now)s)"
    found = await services.database.fetch_without_tenant(due, {"now": now}, tuple_row)
    for tenant_id, user_id in found:
        assert not await services.keeping.keep(tenant_id, user_id, now)
    return len(found)


async def said_in(client: httpx.AsyncClient, conversation_id: str) -> list[tuple[str, str | None]]:
    """What the assistant has said by itself, with the promises."""
    page = await client.get(f"/api/v1/conversations/{conversation_id}/messages", params={"limit": 200})
    return [(each["content"], each["promise_id"]) for each in page.json()["items"] if each["promise_id"]]


async def test_the_model_says_it_in_the_conversation_where_it_was_asked_for(
    services: Services, client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    first = await say(client, "Hello", "s-1")
    await say(client, "I rang Dr. Hu.", "s-2")
    made = await make(client, session_id="s-1")
    due = datetime.fromisoformat(made["when"])
    assert (due.hour, due.minute, due.utcoffset(), made["state"]) == (9, 0, due.utcoffset(), "open")
    assert await keep(services, due - timedelta(seconds=1)) == 0
    model_server.default = Reply(['{"done": false, "message": "You wanted to call the dentist."}'])
    assert await keep(services, due) == 1
    assert await keep(services, due + timedelta(minutes=1)) == 0
    assert await said_in(client, first["conversation_id"]) == [("You wanted to call the dentist.", made["id"])]
    [kept] = await listed(client)
    assert (kept["state"], kept["when"]) == ("kept", made["when"])
    model_server.default = Reply(["Sure."])
    await say(client, "Thanks, what was that?", "s-1")
    assert any(text.endswith("You wanted to call the dentist.") for text in model_server.requests[-1].said)


async def test_without_a_model_it_is_said_plainly_and_late_it_says_so(
    services: Services, client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    made = await make(client, text="给妈妈打电话", when="明早九点", timezone="Asia/Shanghai")
    model_server.default = _NO_MODEL
    due = datetime.fromisoformat(made["when"])
    await keep(services, due + timedelta(hours=2))
    [conversation] = (await client.get("/api/v1/conversations", params={"user_id": "u-1"})).json()["items"]
    assert conversation["session_id"] == "reminders"
    said = f"提醒你（晚了，原定{due:%Y-%m-%d} 09:00）：给妈妈打电话"
    assert await said_in(client, conversation["id"]) == [(said, made["id"])]


async def test_what_is_done_already_is_kept_in_silence_and_what_is_over_is_missed(
    services: Services, client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    first = await say(client, "Hello", "s-1")
    done = await make(client, session_id="s-1")
    over = await make(client, session_id="s-1", when="in 10 minutes")
    await say(client, "I have called the dentist.", "s-1")
    model_server.default = _DONE
    due = datetime.fromisoformat(done["when"])
    await keep(services, datetime.fromisoformat(over["when"]) + timedelta(hours=25))
    await keep(services, due)
    assert "user: I have called the dentist." in model_server.requests[-1].prompt[-1][1]
    assert {each["id"]: each["state"] for each in await listed(client)} == {
        done["id"]: "kept",
        over["id"]: "missed",
    }
    assert await said_in(client, first["conversation_id"]) == []


@pytest.mark.parametrize(
    ("when", "begun", "offsets"),
    [
        ("every day at nine", datetime(2026, 3, 27, 10, tzinfo=UTC), [1, 2, 2]),
        ("每周日早上九点", datetime(2026, 10, 20, 10, tzinfo=UTC), [1, 1, 1]),
    ],
)
async def test_what_recurs_stays_on_the_user_s_clock_across_daylight_saving(
    services: Services, when: str, begun: datetime, offsets: list[int], client: httpx.AsyncClient
) -> None:
    await say(client, "Hello", "s-1")
    owner = await services.memory.core.owner(DEFAULT_TENANT, "u-1", "default")
    new = NewPromise(text="stretch", when=when, timezone="Europe/Berlin")
    promise, _ = await services.promises.make(owner, new, Trigger("user"), begun)
    found = []
    for _ in offsets:
        found.append(promise.when)
        await keep(services, promise.when.astimezone(UTC))
        promise = await services.promises.get(owner, promise.id, begun)
    assert [each.hour for each in found] == [9, 9, 9]
    assert [each.utcoffset() for each in found] == [timedelta(hours=each) for each in offsets]
    assert promise.state == "open"


async def test_a_message_is_not_put_between_a_message_and_its_answer(
    services: Services, client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    first = await say(client, "Hello", "s-1")
    made = await make(client, session_id="s-1", when="in 10 minutes")
    due = datetime.fromisoformat(made["when"])
    held = threading.Event()
    model_server.default = lambda request: (
        Reply(["Still ", "talking."], held=held) if request.body["model"] == "large" else _NO_MODEL
    )
    talking = asyncio.create_task(say(client, "Tell me a story", "s-1"))
    while not any(each.body["model"] == "large" for each in model_server.requests[1:]):  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    user_id = (await services.memory.core.owner(DEFAULT_TENANT, "u-1", "default")).user_id
    assert await services.keeping.keep(DEFAULT_TENANT, user_id, due), "it waits for the end of the turn"
    held.set()
    await talking
    assert not await services.keeping.keep(DEFAULT_TENANT, user_id, due)
    assert [each[1] for each in await said_in(client, first["conversation_id"])] == [made["id"]]


async def test_it_goes_with_the_words_that_asked_for_it_and_comes_back_with_them(
    services: Services, client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    arguments = {"text": "call Tom", "when": "tomorrow at nine"}
    model_server.script(Reply(tool_calls=[ToolCall("promise", arguments)]), Reply(["I will."]))
    await say(client, "I like tea. Remind me tomorrow at nine to call Tom.", "s-1")
    [made] = await listed(client)
    assert (made["quote"], made["text"]) == ("Remind me tomorrow at nine to call Tom.", "call Tom")
    found = await client.get("/api/v1/users/u-1/memory-operations")
    [operation] = [each for each in found.json()["items"] if each["type"] == "promise"]
    undo = f"/api/v1/users/u-1/memory-operations/{operation['id']}/undo"
    (await client.post(undo)).raise_for_status()
    assert await listed(client) == []
    model_server.script(Reply(tool_calls=[ToolCall("promise", arguments)]), Reply(["I will."]))
    await say(client, "I like tea. Remind me tomorrow at nine to call Tom.", "s-2")
    assert len(await listed(client)) == 1
    owner = await services.memory.core.owner(DEFAULT_TENANT, "u-1", "default")
    forgotten = await forget(services, owner, "Remind me tomorrow at nine to call Tom")
    assert await listed(client) == []
    assert forgotten["operation_id"]
    await services.memory.undo.undo(DEFAULT_TENANT, "u-1", UUID(forgotten["operation_id"]))
    [back] = await listed(client)
    (await client.delete(f"{PATH}/{back['id']}")).raise_for_status()
    assert [each["state"] for each in await listed(client)] == ["cancelled"]


@pytest.mark.process
@pytest.mark.in_clear
async def test_a_worker_that_is_killed_and_clocks_that_jump_double_and_lose_nothing(
    services: Services, engines: Engines, client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    first = await say(client, "Hello", "s-1")
    minutes = range(1, 25)
    made = [await make(client, session_id="s-1", text=f"task {n}", when=f"in {n} minutes") for n in minutes]
    model_server.default = Reply(['{"done": false, "message": "Now."}'])
    dues = [datetime.fromisoformat(each["when"]) for each in made]
    user_id = (await services.memory.core.owner(DEFAULT_TENANT, "u-1", "default")).user_id
    asked = (engines.database_url, model_server.base_url, str(user_id))
    with running_worker(_WORKER, *asked, dues[-1].isoformat()) as process:
        there = len(model_server.requests)
        clocks = [dues[15], dues[3] - timedelta(hours=3), dues[-1] + timedelta(hours=1), dues[6]]
        here = [asyncio.create_task(services.keeping.keep(DEFAULT_TENANT, user_id, now)) for now in clocks]
        while len(model_server.requests) < there + 6:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
        process.kill()
        here[2].cancel()
        await asyncio.gather(*here, return_exceptions=True)
    for now in (dues[-1], dues[-1] + timedelta(hours=1)):
        await services.keeping.keep(DEFAULT_TENANT, user_id, now)
    said = await said_in(client, first["conversation_id"])
    assert sorted(each[1] or "" for each in said) == sorted(each["id"] for each in made)


async def test_what_recurs_by_a_count_keeps_its_days_through_an_absence(
    services: Services, client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    made = await make(client, when="every other day at 8am, starting tomorrow")
    model_server.default = _NO_MODEL
    due = datetime.fromisoformat(made["when"])
    for now, days in ((due, 2), (due + timedelta(days=5, hours=1), 6)):
        await keep(services, now)
        [listed_now] = await listed(client)
        assert (datetime.fromisoformat(listed_now["when"]).date() - due.date()).days == days
        assert datetime.fromisoformat(listed_now["when"]).hour == 8


async def test_it_is_found_by_an_index_among_many(database: Database) -> None:
    async with database.tenant(DEFAULT_TENANT) as connection:
        await connection.execute("SET LOCAL enable_seqscan = off")
        for where, index in (
            ("state = 'open' AND due_at <= now() ORDER BY due_at", "promises_due"),
            ("event = 'changed'", "promises_changed"),
        ):
            plan = await connection.execute(f"EXPLAIN SELECT user_id FROM promises WHERE {where} LIMIT 1000")
            assert index in "".join(row[0] for row in await plan.fetchall())


async def test_the_first_prompt_of_a_visit_tells_what_is_coming_up_and_no_other(
    services: Services, client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    await make(client, when="in 2 days", timezone="UTC")
    far = await make(client, text="renew the passport", when="in 3 weeks")
    await say(client, "Hello", timezone="UTC")
    shown = "\n".join(text for _, text in model_server.requests[-1].prompt)
    assert "You promised the user: " in shown
    assert "09:00 call the dentist." in shown
    assert far["text"] not in shown
    await say(client, "And now?")
    assert "You promised the user" not in "\n".join(text for _, text in model_server.requests[-1].prompt)


async def test_other_programs_read_them_as_a_calendar(client: httpx.AsyncClient) -> None:
    made = await make(client, text="买牛奶，带上袋子；" + "谢谢" * 20, when="每周一早上九点", timezone="UTC")
    answer = await client.get(f"{PATH}/calendar.ics")
    lines = answer.text.replace("\r\n ", "").split("\r\n")
    assert all(len(each.encode()) <= 75 for each in answer.text.split("\r\n"))
    first = datetime.fromisoformat(made["when"])
    assert f"DTSTART:{first:%Y%m%dT090000Z}" in lines
    [further] = [each for each in lines if each.startswith("RDATE:")]
    assert further[6:].split(",")[0] == f"{first + timedelta(days=7):%Y%m%dT090000Z}"
    assert f"SUMMARY:{made['text']}" in lines


async def test_it_is_exported_and_imported_and_erased_with_its_message(
    services: Services, client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    arguments = {"text": "call Tom", "when": "every Monday at 9"}
    model_server.script(Reply(tool_calls=[ToolCall("promise", arguments)]), Reply(["I will."]))
    await say(client, "I like tea. Remind me every Monday at 9 to call Tom.", "s-1")
    await make(client)
    before = await listed(client)
    lines = (await client.get("/api/v1/users/u-1/export")).content
    (await client.delete("/api/v1/users/u-1")).raise_for_status()
    for _ in range(2):
        answer = await client.post(
            "/api/v1/import", content=lines, headers={"content-type": "application/x-ndjson"}
        )
        assert answer.is_success, answer.text
    after = await listed(client)
    told = ("text", "when", "said", "repeats", "quote", "state", "timezone", "created_at")
    assert [[each[name] for name in told] for each in after] == [[each[name] for name in told] for each in before]
    [asked] = [each for each in after if each["quote"]]
    gone = await client.post("/api/v1/users/u-1/erasures", json={"message_id": asked["message_id"]})
    assert gone.is_success, gone.text
    assert [each["text"] for each in await listed(client)] == ["call the dentist"]
    rows = await services.database.fetch(
        DEFAULT_TENANT,
        "SELECT count(*) FROM promises WHERE tenant_id = %(tenant_id)s",
        {"tenant_id": DEFAULT_TENANT},
        tuple_row,
    )
    assert rows == [(1,)]


async def test_a_client_that_resends_its_history_need_not_know_what_was_said_unasked(
    services: Services, client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    model_server.default = Reply(["Hi."])
    asked = {"model": "default", "user": "u-1", "metadata": {"session_id": "s-1"}}
    said = [{"role": "user", "content": "Hello"}]
    (await client.post("/v1/chat/completions", json={**asked, "messages": said})).raise_for_status()
    made = await make(client, when="in 10 minutes")
    model_server.default = Reply(['{"done": false, "message": "Now."}'])
    await keep(services, datetime.fromisoformat(made["when"]))
    model_server.default = Reply(["Fine."])
    said += [{"role": "assistant", "content": "Hi."}, {"role": "user", "content": "Thanks"}]
    (await client.post("/v1/chat/completions", json={**asked, "messages": said})).raise_for_status()
    [conversation] = (await client.get("/api/v1/conversations", params={"user_id": "u-1"})).json()["items"]
    page = (await client.get(f"/api/v1/conversations/{conversation['id']}/messages")).json()["items"]
    assert [each["content"] for each in page] == ["Hello", "Hi.", "Now.", "Thanks", "Fine."]


@pytest.mark.settings(llm_model=None, small_llm_model=None)
async def test_what_is_promised_is_told_when_it_is_asked_for_also_without_a_model(
    client: httpx.AsyncClient,
) -> None:
    assert "Nothing is promised" in (await say(client, "What did you promise me?"))["answer"]
    made = await make(client)
    answer = (await say(client, "你答应过我什么？", "s-2"))["answer"]
    assert f"{made['when'][:10]} 09:00" in answer
    assert "call the dentist" in answer
    assert made["id"] not in answer
    assert "call the dentist" not in (await say(client, "What did my sister promise me?", "s-3"))["answer"]


async def test_a_model_reads_the_list_of_promises_before_it_is_asked(
    client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    made = await make(client)
    model_server.default = Reply(["To remind you of the dentist."])
    await say(client, "What did you promise me?")
    assert made["id"] in str(model_server.requests[-1].body)
