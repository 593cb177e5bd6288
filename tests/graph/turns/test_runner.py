"""Whole turns: the compiled graph over real stores, and a scripted model server."""

import asyncio
import threading
import time
from collections.abc import Sequence
from typing import Any

import psycopg
import pytest
from psycopg import sql

from graph.builder import build_graph
from graph.turns.log import TurnLog
from graph.turns.run import TurnDriver, TurnRun
from graph.turns.runner import TurnRunner
from graph.turns.turn_queue import TurnQueue
from services.bootstrap import Services
from services.conversations.turn import StoredTurn, TurnRequest
from services.identity.tenants import DEFAULT_TENANT
from services.platform.embedded_postgres import EmbeddedPostgres
from state.events import TurnEvent
from state.turn import TurnInput
from tests.support.model_server import ModelServer, Reply, ToolCall
from tests.support.turns import events_of, first_token, messages_of, new_turn

_DISCONNECT = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = %s"

pytestmark = pytest.mark.untraced


def _request(message: str = "Hello", **values: Any) -> TurnRequest:
    asked = TurnInput(user_id="u-1", session_id="s-1", message=message)
    return TurnRequest(DEFAULT_TENANT, {**asked, **values})  # type: ignore[typeddict-item]


async def _run(runner: TurnRunner, message: str = "Hello", **values: Any) -> list[TurnEvent]:
    return await events_of(runner, await runner.start(_request(message, **values)))


async def _stored(services: Services, events: Sequence[TurnEvent]) -> StoredTurn:
    return await services.turns.get(DEFAULT_TENANT, events[0].content["turn_id"])


async def test_a_turn_goes_through_the_graph_and_is_stored(
    runner: TurnRunner, services: Services, model_server: ModelServer
) -> None:
    events = await _run(runner, "My dog is called Bruno.")
    assert [event.sequence for event in events] == list(range(1, len(events) + 1))
    statuses = [event.status for event in events]
    assert statuses[:2] == ["turn", "route_decision"]
    assert set(statuses[2:-1]) == {"token"}
    assert statuses[-1] == "done"
    done = events[-1].content
    assert done["answer"] == "Certainly, here is the answer."
    assert done["answer"] == "".join(event.content for event in events if event.status == "token")
    assert {"route_ms", "history_ms", "generate_ms", "persist_ms", "first_token_ms", "total_ms"} <= set(
        done["timings"]
    )
    assert done["degraded"] == []
    assert "context_report" not in done
    assert len(model_server.requests) == 1

    stored = await _stored(services, events)
    assert (stored.status, stored.answer) == ("completed", done["answer"])
    assert str(stored.assistant_message_id) == done["message_id"]
    assert stored.usage == done["usage"]
    assert stored.timings is not None
    assert stored.context_report is not None
    assert stored.route_decision is not None
    assert stored.timings["total_ms"] == done["timings"]["total_ms"]
    assert stored.context_report["tokens"]["message"] > 0
    assert stored.route_decision["worker_name"] == "general"


async def test_a_tool_is_called_and_its_result_answered(runner: TurnRunner, model_server: ModelServer) -> None:
    model_server.script(
        Reply(["Let me see. "], [ToolCall("get_current_time", {"timezone": "Asia/Tokyo"})]), Reply(["It is late."])
    )
    events = await _run(runner, "What time is it in Tokyo?")
    statuses = [event.status for event in events]
    assert statuses.index("tool_call") < statuses.index("tool_result") < len(statuses) - 1
    assert events[-1].content["answer"] == "Let me see. It is late."
    assert events[-1].content["usage"]["model_calls"] == 2
    _, request = model_server.requests
    kinds = [item.get("type", item.get("role")) for item in request.body["input"]]
    assert kinds[-2:] == ["function_call", "function_call_output"]


@pytest.mark.parametrize(
    ("reply", "code", "retryable", "partial"),
    [
        (Reply(status=401), "llm_unauthorized", False, None),
        (Reply(status=400), "llm_rejected", False, None),
        (Reply(raw=b"<html>no</html>"), "llm_stream_broken", True, None),
        (Reply(raw=b"data: {garbage\n\n"), "llm_bad_response", True, None),
        (Reply(["It ", "is"], ending="cut"), "llm_stream_broken", True, "It is"),
        (Reply(["It ", "is"], gap_s=0.05, ending="abort"), "llm_stream_broken", True, "It is"),
    ],
)
async def test_a_model_that_fails_leaves_the_message_and_a_usable_conversation(
    runner: TurnRunner,
    services: Services,
    model_server: ModelServer,
    reply: Reply,
    code: str,
    retryable: bool,
    partial: str | None,
) -> None:
    model_server.script(reply, reply, reply)
    events = await _run(runner, "Where is my dog?")
    error = events[-1].content
    assert events[-1].status == "error"
    assert (error["code"], error["retryable"]) == (code, retryable)
    assert error["turn_id"] == events[0].content["turn_id"]
    assert "secret-key" not in str(error)
    assert [event.status for event in events].count("error") == 1

    stored = await _stored(services, events)
    assert (stored.status, stored.answer) == ("partial" if partial else "failed", partial)
    messages = await messages_of(services, stored.conversation_id)
    expected = [("Where is my dog?", True)] + ([(partial, False)] if partial else [])
    assert [(message.content, message.completed) for message in messages] == expected

    model_server.reset()
    assert (await _run(runner, "And now?"))[-1].status == "done"
    assert model_server.requests[0].said == ["Where is my dog?", "And now?"]


async def test_a_turn_survives_a_database_that_goes_away_during_its_answer(
    runner: TurnRunner,
    services: Services,
    model_server: ModelServer,
    postgres: EmbeddedPostgres,
    database_name: str,
) -> None:
    goes_on = threading.Event()
    model_server.script(Reply(["The ", "answer"], held=goes_on))
    turn_id = await runner.start(_request())
    await first_token(runner, turn_id)
    name = sql.Identifier(database_name)
    with psycopg.connect(postgres.url("postgres"), autocommit=True) as superuser:
        superuser.execute(sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS false").format(name))
        try:
            superuser.execute(_DISCONNECT, [database_name])
            goes_on.set()
            async with asyncio.timeout(60):
                async for batch in runner.follow(DEFAULT_TENANT, turn_id):
                    if any(event.content == "answer" for event in batch):
                        break
        finally:
            superuser.execute(sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS true").format(name))
    events = await events_of(runner, turn_id)
    assert events[-1].status == "done"
    assert (await _stored(services, events)).answer == "The answer"


@pytest.mark.parametrize("stopped", [False, True])
async def test_a_turn_ends_after_those_that_begin_but_waits_for_none_that_hangs(
    runner: TurnRunner, services: Services, model_server: ModelServer, stopped: bool
) -> None:
    goes_on = threading.Event()
    model_server.script(Reply(["The ", "answer"], held=goes_on))
    turn_id = await runner.start(_request())
    await first_token(runner, turn_id)
    gate = runner._driver.gate
    beginning = [asyncio.create_task(gate.enter("others")) for _ in range(50)]
    begun = time.monotonic()
    goes_on.set()
    while not gate._ends:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    if stopped:
        assert (await runner.stop(DEFAULT_TENANT, turn_id)).status == "completed"
    assert (await events_of(runner, turn_id))[-1].status == "done"
    assert stopped or time.monotonic() - begun > 0.9
    for each in beginning:
        each.cancel()


async def test_interrupted_behind_its_commit_a_turn_is_still_told_as_done(
    runner: TurnRunner, services: Services
) -> None:
    """What is stored as complete is never told as an error."""
    turn = await services.turns.open(new_turn())
    run = TurnRun(turn, TurnLog())
    graph, places = build_graph(services).compile(), TurnQueue(services.leases)
    memory = services.memory
    meter, recent = services.usage.meter, services.recent_turns
    driver = TurnDriver(graph, services.turns, places, meter, memory.changes, memory.foreign_origins, recent)
    run.task = asyncio.create_task(driver.run(run))
    while not (await services.turns.get(DEFAULT_TENANT, turn.turn_id)).ended and not run.log.ended:  # noqa: ASYNC110
        await asyncio.sleep(0)
    run.stop("stopping")
    await asyncio.wait({run.task})
    (last,) = run.log.events_after(len(run.log) - 1)
    assert (last.status, last.content["answer"]) == ("done", "Certainly, here is the answer.")
