"""Turns that wait, are stopped, followed from elsewhere, and outlive their process."""

import asyncio
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from psycopg.rows import tuple_row
from redis import Redis

from graph.turns.log import EventWriter
from graph.turns.runner import TurnRunner
from services.bootstrap import Services
from services.conversations.event_log import EventLog
from services.conversations.turn import LEASE, StoredTurn, TurnRequest
from services.engines import Engines
from services.errors import DatabaseUnavailable, NotFound
from services.identity.tenants import DEFAULT_TENANT
from services.platform import redis
from services.platform.embedded_postgres import SERVICE_ROLE, EmbeddedPostgres
from services.platform.patience import CircuitBreaker
from services.platform.settings import Settings, load_settings
from state.events import PART, Status, TurnEvent
from state.turn import TurnInput
from tests.graph.conftest import process_of
from tests.support.hanging import hanging_proxy
from tests.support.model_server import ModelServer, Reply, ToolCall
from tests.support.ports import free_port, wait_for_port
from tests.support.turns import events_of, first_token, new_turn, some_uuid

pytestmark = pytest.mark.untraced

Process = tuple[Services, TurnRunner]
SLOW = Reply(["It ", "is ", "late ", "now."], gap_s=0.3)
HANGS_S = 4
"""Seconds for which Redis is waited for."""
ENDLESS = Reply(["It ", "is ", "late"], gap_s=30)


def _request(message: str = "Hello", session: str = "s-1", **values: Any) -> TurnRequest:
    return TurnRequest(DEFAULT_TENANT, TurnInput(user_id="u-1", session_id=session, message=message), **values)


async def _stored(process: Process, turn_id: UUID) -> StoredTurn:
    return await process[0].turns.get(DEFAULT_TENANT, turn_id)


async def _written(process: Process, turn_id: UUID, events: list[TurnEvent]) -> None:
    """Wait until Redis has the events of a turn, which are written behind it."""
    async with asyncio.timeout(60):
        while await process[0].events.read(turn_id, 0) != events:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def _end_of_leases(process: Process) -> datetime:
    """When the first lease ends, unless it is renewed."""
    statement = "SELECT min(lease_expires_at) FROM turns"
    [(ends,)] = await process[0].database.fetch(DEFAULT_TENANT, statement, {}, tuple_row)
    assert isinstance(ends, datetime)
    return ends


def _tokens(events: list[TurnEvent]) -> str:
    return "".join(event.content for event in events if event.status == "token")


async def test_a_message_to_another_process_waits_for_the_same_conversation(
    here: Process, there: Process, model_server: ModelServer
) -> None:
    model_server.script(SLOW, Reply(["Second."]), Reply(["Third."]))
    first = await here[1].start(_request("one"))
    second = await there[1].start(_request("two"))
    third = await here[1].start(_request("three"))
    answers = [
        (await events_of(process[1], turn))[-1].content["answer"]
        for process, turn in ((here, first), (there, second), (here, third))
    ]
    assert answers == ["It is late now.", "Second.", "Third."]


@pytest.mark.traced
async def test_interrupt_ends_the_running_turn_as_partial_in_whichever_process(
    here: Process, there: Process, model_server: ModelServer
) -> None:
    model_server.script(ENDLESS, Reply(["Never mind."]))
    first = await here[1].start(_request("one"))
    await first_token(here[1], first)
    second = await there[1].start(_request("two", on_conflict="interrupt"))
    interrupted = (await events_of(here[1], first))[-1]
    assert (interrupted.status, interrupted.content["code"]) == ("error", "interrupted_by_message")
    assert interrupted.content["answer"] == "It "
    assert (await _stored(here, first)).status == "partial"
    assert (await events_of(there[1], second))[-1].content["answer"] == "Never mind."


@pytest.mark.parametrize("elsewhere", [False, True])
async def test_a_running_turn_is_cancelled_long_before_its_lease_ends_and_keeps_its_tokens(
    here: Process, there: Process, model_server: ModelServer, elsewhere: bool
) -> None:
    model_server.script(ENDLESS)
    turn = await here[1].start(_request())
    await first_token(here[1], turn)
    lease_ends = await _end_of_leases(here)
    stored = await (there if elsewhere else here)[1].stop(DEFAULT_TENANT, turn)
    assert datetime.now(UTC) < lease_ends
    assert (stored.status, stored.answer) == ("cancelled", "It ")
    last = (await events_of(here[1], turn))[-1]
    assert (last.content["code"], last.content["answer"]) == ("cancelled", "It ")


@pytest.mark.traced
async def test_a_waiting_turn_is_cancelled_and_a_turn_that_has_ended_stays(
    here: Process, there: Process, model_server: ModelServer
) -> None:
    goes_on = threading.Event()
    model_server.script(Reply(["It ", "is ", "late ", "now."], held=goes_on))
    first = await here[1].start(_request("one"))
    second = await here[1].start(_request("two"))
    assert (await there[1].stop(DEFAULT_TENANT, second)).status == "cancelled"
    assert (await events_of(here[1], second))[-1].content["code"] == "cancelled"
    goes_on.set()
    await events_of(here[1], first)
    assert (await there[1].stop(DEFAULT_TENANT, first)).status == "completed"
    assert len(model_server.requests) == 1
    with pytest.raises(NotFound):
        await here[1].stop(DEFAULT_TENANT, some_uuid(1))


async def test_a_turn_whose_process_hangs_is_cancelled_from_outside(
    here: Process, there: Process, model_server: ModelServer
) -> None:
    model_server.script(ENDLESS)
    turn = await here[0].turns.open(new_turn())  # and nobody runs it
    await here[0].events.append(
        {turn.turn_id: [TurnEvent(1, "turn", {}), TurnEvent(2, "token", "It "), TurnEvent(3, "token", "is ")]}
    )
    lease_ends = await _end_of_leases(here)
    stored = await there[1].stop(DEFAULT_TENANT, turn.turn_id)
    assert datetime.now(UTC) < lease_ends
    assert (stored.status, stored.answer) == ("cancelled", "It is ")


async def test_after_the_end_the_events_are_still_there_and_then_the_stored_turn(
    here: Process, there: Process, model_server: ModelServer
) -> None:
    turn = await here[1].start(_request())
    events = await events_of(here[1], turn)
    await _written(here, turn, events)
    assert await events_of(there[1], turn) == events
    assert await events_of(here[1], turn, 3) == events[3:]
    assert [event.status for event in await events_of(there[1], turn, len(events))] == ["done"]

    assert await here[0].events.delete([turn]) == 1
    (only,) = await events_of(there[1], turn, 3)
    assert (only.sequence, only.status) == (4, "done")
    assert only.content["answer"] == events[-1].content["answer"]


async def test_a_gap_in_the_events_is_never_papered_over(
    here: Process, there: Process, model_server: ModelServer
) -> None:
    model_server.script(SLOW)
    turn = await here[1].start(_request())
    await first_token(here[1], turn)
    while not await here[0].events.delete([turn]):  # noqa: ASYNC110 — as if Redis had been restarted
        await asyncio.sleep(0.01)
    events = await events_of(there[1], turn)
    assert [event.status for event in events] == ["done"]
    assert events[0].content["answer"] == "It is late now."


async def test_a_dead_processs_turn_is_partial_with_its_tokens_and_its_reader_is_told(
    here: Process, there: Process, model_server: ModelServer
) -> None:
    turn = await here[0].turns.open(new_turn())
    await here[0].events.append({turn.turn_id: [TurnEvent(1, "turn", {}), TurnEvent(2, "token", "It is ")]})
    waiting = await here[0].turns.open(new_turn("and then?"))
    seen_more = asyncio.create_task(events_of(there[1], turn.turn_id, 7))
    async with here[0].database.tenant(DEFAULT_TENANT) as connection:
        await connection.execute("UPDATE turns SET lease_expires_at = now() - interval '1 hour'")
    (last,) = await seen_more
    assert (last.sequence, last.status) == (8, "error")
    assert (last.content["code"], last.content["answer"]) == ("interrupted", "It is ")
    assert (await _stored(there, turn.turn_id)).status == "partial"
    events = await events_of(there[1], waiting.turn_id)
    assert events[-1].status == "done", "its waiting turn goes on in a process that lives"
    assert [event.status for event in events].count("turn") <= 1


async def _let_its_process_die(process: Process) -> None:
    """Say that a process has the turn which has no connection any more, and renewed the lease four seconds ago."""
    statement = "UPDATE turns SET process = 1, lease_expires_at = now() + interval '11 seconds' RETURNING id"
    await process[0].database.fetch(DEFAULT_TENANT, statement, {}, tuple_row)


async def test_a_turn_without_text_is_run_again_once_and_long_before_its_lease_ends(
    here: Process, there: Process, model_server: ModelServer
) -> None:
    model_server.script(Reply(delay_s=60), Reply(["Again."]), Reply(delay_s=60), Reply(delay_s=60))
    turn = await here[1].start(_request())
    reading = asyncio.create_task(events_of(here[1], turn))
    await model_server.asked()
    lease_ends = await _end_of_leases(here)
    await _let_its_process_die(here)
    events = await reading
    assert [event.status for event in events if event.status in {"turn", "done"}] == ["turn", "done"]
    assert (_tokens(events), events[-1].content["answer"]) == ("Again.", "Again.")
    assert await events_of(there[1], turn) == events
    assert datetime.now(UTC) < lease_ends

    turn = await here[1].start(_request("two"))
    for times in (3, 4):
        await model_server.asked(times=times)
        await _let_its_process_die(here)
    last = (await events_of(there[1], turn))[-1]
    assert (last.status, last.content["code"]) == ("error", "interrupted")
    assert len(model_server.requests) == 4


async def test_a_turn_that_was_opened_by_a_statement_without_an_answer_is_run_by_the_same_process(
    here: Process, model_server: ModelServer
) -> None:
    turn = await here[0].turns.open(new_turn())
    statement = "UPDATE turns SET lease_expires_at = now() + interval '11 seconds' RETURNING id"
    await here[0].database.fetch(DEFAULT_TENANT, statement, {}, tuple_row)
    lease_ends = await _end_of_leases(here)
    assert (await events_of(here[1], turn.turn_id))[-1].status == "done"
    assert datetime.now(UTC) < lease_ends


async def test_a_turn_that_has_changed_memory_is_not_run_again(
    here: Process, there: Process, model_server: ModelServer
) -> None:
    remembers = ToolCall("remember", {"facts": ["The user's dog is called Bruno."]})
    model_server.script(Reply(tool_calls=[remembers]), Reply(delay_s=60))
    turn = await here[1].start(_request("My dog is called Bruno."))
    await model_server.asked(times=2)
    await _let_its_process_die(here)
    assert (await events_of(there[1], turn))[-1].content["code"] == "interrupted"
    assert len(model_server.requests) == 2


@pytest.mark.parametrize("fault", ["full", "replica", "flushed", "partly lost"])
async def test_a_turn_whose_events_redis_has_lost_or_refused_is_not_run_again(
    fault: str,
    shared_settings: Settings,
    engines: Engines,
    own_redis: "subprocess.Popen[bytes]",
    redis_port: int,
    model_server: ModelServer,
) -> None:
    values = {**shared_settings.model_dump(exclude_unset=True), "redis_url": f"redis://127.0.0.1:{redis_port}/0"}
    begins = threading.Event()
    calls = ToolCall("current_time", {})
    model_server.script(Reply(tool_calls=[calls], held=begins), Reply(delay_s=60))
    mine, others = load_settings(**values), load_settings(**values)
    async with process_of(mine, engines) as here, process_of(others, engines) as there:
        with Redis(port=redis_port) as server:
            turn = await here[1].start(_request())
            await model_server.asked()
            async with asyncio.timeout(60):
                while not (told := await here[0].events.read(turn, 0)):  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
            if fault == "full":
                server.config_set("maxmemory", 1)
            elif fault == "replica":
                server.replicaof("127.0.0.1", free_port())
            begins.set()
            await model_server.asked(times=2)
            if fault != "replica":
                statement = "SELECT FROM turns WHERE shown"
                async with asyncio.timeout(60):
                    while not await here[0].database.fetch(DEFAULT_TENANT, statement, {}, tuple_row):  # noqa: ASYNC110
                        await asyncio.sleep(0.05)
                server.config_set("maxmemory", 0)
                server.flushall()
            if fault == "partly lost":
                await here[0].events.append({turn: [TurnEvent(len(told) + 4, "reasoning", "Hm.")]})
            await _let_its_process_die(here)
            last = (await events_of(there[1], turn))[-1]
    assert (last.status, last.content["code"]) == ("error", "interrupted")
    assert len(model_server.requests) == 2


async def test_an_end_that_could_not_be_written_is_once_the_database_is_back(
    settings: Settings, engines: Engines, postgres: EmbeddedPostgres, database_name: str, model_server: ModelServer
) -> None:
    goes_on = threading.Event()
    whole, broken = Reply(["It ", "is ", "late."], held=goes_on), Reply(["It ", "is "], ending="cut", held=goes_on)
    async with hanging_proxy(f"{postgres.sockets}/.s.PGSQL.5432") as (port, flows):
        url = f"postgresql://{SERVICE_ROLE}@127.0.0.1:{port}/{database_name}?sslmode=disable"
        async with process_of(settings, replace(engines, database_url=url)) as process:
            turns = []
            for session, reply in (("s-1", whole), ("s-2", broken)):
                model_server.script(reply)
                turns.append(await process[1].start(_request(session=session)))
                await first_token(process[1], turns[-1])
            flows.cut()
            goes_on.set()
            failed = (await events_of(process[1], turns[1]))[-1]
            assert failed.content["code"] == "llm_stream_broken", "its reader is told while the database is away"
            with pytest.raises(DatabaseUnavailable):
                await _stored(process, turns[1])
            flows.away = False
            done = (await events_of(process[1], turns[0]))[-1]
            assert (done.status, done.content["answer"]) == ("done", "It is late.")
            async with asyncio.timeout(LEASE.total_seconds()):
                while not (stored := await _stored(process, turns[1])).ended:  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
            assert (stored.status, stored.answer) == ("partial", "It is ")


async def test_a_process_that_was_thought_dead_cannot_add_to_its_turn(
    here: Process, there: Process, model_server: ModelServer
) -> None:
    goes_on = threading.Event()
    model_server.script(Reply(["It ", "is ", "late ", "now."], held=goes_on))
    turn = await here[1].start(_request())
    async with asyncio.timeout(60):
        while len(await there[0].events.read(turn, 0)) < 2:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    async with here[0].database.tenant(DEFAULT_TENANT) as connection:
        await connection.execute(
            "UPDATE turns SET status = 'partial', finished_at = now(), lease_expires_at = NULL, "
            'error = \'{"code": "interrupted", "message": "-", "retryable": true}\''
        )
    stored = TurnEvent(3, "error", {"code": "interrupted", "answer": "It "})
    await there[0].events.append({turn: [stored]})
    goes_on.set()
    mine = await events_of(here[1], turn)
    assert (mine[-1].status, mine[-1].content["code"]) == ("error", "interrupted"), "it tells what is stored"
    await asyncio.sleep(0.2)
    again = await events_of(there[1], turn, 0)
    assert again[-1].content["answer"] == "It "
    assert [event.is_last for event in again].count(True) == 1


async def test_without_redis_turns_answer_and_say_what_they_went_without(
    runner_without_redis: Process, model_server: ModelServer
) -> None:
    _, runner = runner_without_redis
    model_server.script(SLOW, Reply(["Quick."]))
    first = await runner.start(_request("one"))
    assert (await events_of(runner, first))[-1].content["degraded"] == ["redis"]
    second = await runner.start(_request("two", session="s-2"))
    assert (await events_of(runner, second))[-1].content["degraded"] == ["redis"]
    assert (await _stored(runner_without_redis, second)).degraded == ["redis"]


@pytest.mark.traced
async def test_closing_hands_waiting_turns_to_another_process(
    here: Process, there: Process, model_server: ModelServer
) -> None:
    model_server.script(ENDLESS, Reply(["Adopted."]))
    await here[1].start(_request("one"))
    waiting = await here[1].start(_request("two"))
    elsewhere = asyncio.create_task(events_of(there[1], waiting))
    await model_server.asked()
    mine = asyncio.create_task(events_of(here[1], waiting))
    await asyncio.sleep(0)
    await here[1].close(0.1)
    assert (await mine)[-1].content["code"] == "interrupted"
    events = await elsewhere
    assert [event.status for event in events].count("turn") == 1
    assert events[-1].content["answer"] == _tokens(events) == "Adopted."


async def test_a_redis_that_hangs_costs_a_turn_nothing_and_is_found_again(
    settings: Settings, engines: Engines, own_redis: "subprocess.Popen[bytes]", redis_port: int
) -> None:
    values = settings.model_dump(exclude_unset=True)
    patience = f"socket_timeout={HANGS_S}&socket_connect_timeout={HANGS_S}"
    hanging = load_settings(**{**values, "redis_url": f"redis://127.0.0.1:{redis_port}/0?{patience}"})
    async with process_of(hanging, engines) as (services, runner):
        await events_of(runner, await runner.start(_request("before")))
        own_redis.send_signal(signal.SIGSTOP)
        took: list[float] = []
        degraded: list[str] = []
        while len(took) < 4 or (degraded != ["redis"] and len(took) < 60):
            begun = time.monotonic()
            last = (await events_of(runner, await runner.start(_request(f"message {len(took)}"))))[-1]
            took.append(time.monotonic() - begun)
            assert last.status == "done"
            degraded = last.content["degraded"]
            await asyncio.sleep(0.3)
        assert degraded == ["redis"]
        assert min(took) < HANGS_S, "the writer waits for Redis, and no turn does"
        own_redis.send_signal(signal.SIGCONT)
        async with asyncio.timeout(60):
            while services.events.failing:  # noqa: ASYNC110
                await asyncio.sleep(0.1)
        turn = await runner.start(_request("after"))
        events = await events_of(runner, turn)
        assert events[-1].content["degraded"] == []
        await _written((services, runner), turn, events)


@pytest.fixture
def redis_port() -> int:
    return free_port()


@pytest.fixture
def own_redis(redis_port: int) -> Iterator["subprocess.Popen[bytes]"]:
    """A Redis that the test may stop."""
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("no redis-server on this machine")
    process = subprocess.Popen([program, "--port", str(redis_port), "--save", ""], stdout=subprocess.DEVNULL)
    wait_for_port(redis_port)
    yield process
    process.send_signal(signal.SIGCONT)
    process.terminate()
    process.wait(60)


@pytest.mark.parametrize("status", ["tool_call", "token"])
def test_what_another_run_would_contradict_does_not_wait_for_further_events(status: Status) -> None:
    turn_log = EventWriter(EventLog(redis.connect(None), CircuitBreaker("Redis"), keep_s=60)).log_for(some_uuid(1))
    turn_log.append("turn", {})
    assert (turn_log.is_full, turn_log.shown) == (False, False)
    turn_log.append(status, "It ")
    assert (turn_log.is_full, turn_log.shown) == (True, True)


async def test_an_in_process_redis_gets_a_turn_when_it_has_ended() -> None:
    client = redis.connect(None)
    events = EventLog(client, CircuitBreaker("Redis"), keep_s=60)
    writer = EventWriter(events)
    writing = asyncio.create_task(writer.run())
    turn_log = writer.log_for(some_uuid(1))
    turn_log.append("token", "Hello")
    await asyncio.sleep(0.2)
    assert await events.read(some_uuid(1), 0) == [], "nobody else reads it, and this process has its log"
    turn_log.append("done", {"answer": "Hello"})
    async with asyncio.timeout(60):
        while writer.find(some_uuid(1)) is not None:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert await events.read(some_uuid(1), 0) == list(turn_log.events_after(0))
    writing.cancel()
    await redis.close(client)


@pytest.mark.parametrize("written", [True, False])
async def test_the_next_part_of_a_turn_is_copied_though_the_one_before_is_being_written(*, written: bool) -> None:
    client = redis.connect(None)
    events = EventLog(client, CircuitBreaker("Redis"), keep_s=60)
    writer, turn_id = EventWriter(events), some_uuid(1)
    first = writer.log_for(turn_id)
    first.append("token", "Let me look.")
    first.append("calls", {"answer": "Let me look."})
    if written:
        writing = asyncio.create_task(writer.close())
        await asyncio.sleep(0)  # until it waits for Redis
        assert not writing.done()
    second = writer.log_for(turn_id, before=PART)
    if written:
        await writing
    second.append("token", "It rains.")
    second.append("done", {"answer": "It rains."})
    assert writer.find(turn_id) is second
    await writer.close()
    assert await events.read(turn_id, 0) == [*first.events_after(0), *second.events_after(PART)]
    await redis.close(client)
