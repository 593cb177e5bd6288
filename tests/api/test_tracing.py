"""Traces of turns, as a collector gets them."""

import asyncio
import io
import logging
from collections.abc import AsyncIterator, Iterator

import httpx
import pytest
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.parser import text_fd_to_metric_families

from services.bootstrap import Services
from services.platform.tracing import TRACING
from tests.support.application import running_turns, served
from tests.support.model_server import ModelServer, Reply, ToolCall
from tests.support.trace_collector import TraceCollector, trace_collector

CALLERS_TRACE = "0af7651916cd43dd8448eb211c80319c"
CALLERS_SPAN = "b7ad6b7169203331"
REMEMBER = ToolCall("remember", {"text": "The user's dog is called Bruno."})
EARLIER = {"user_id": "u-1", "session_id": "s-0", "message": "My sister Alma bakes bread."}
ASK = {"user_id": "u-1", "session_id": "s-1", "message": "I moved to Porto with my dog Bruno last spring."}


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[TraceCollector]:
    with trace_collector() as listening:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", listening.endpoint)
        TRACING.start()
        yield listening
        TRACING.stop()


@pytest.fixture
async def client(services: Services, collector: TraceCollector) -> AsyncIterator[httpx.AsyncClient]:
    """A client of an application that was made while tracing was on."""
    async with (
        running_turns(services) as runner,
        served(services, runner) as url,
        httpx.AsyncClient(base_url=url, timeout=120, verify=False) as opened,
    ):
        yield opened


async def _asked(services: Services) -> httpx.Response:
    async with (
        running_turns(services) as runner,
        served(services, runner) as url,
        httpx.AsyncClient(base_url=url, timeout=120, verify=False) as http,
    ):
        return await http.post("/api/v1/chat", json=ASK)


def _families(text: str) -> list[Metric]:
    return list(text_fd_to_metric_families(io.StringIO(text)))  # type: ignore[no-untyped-call]


async def _sent() -> None:
    await asyncio.to_thread(TRACING.stop)


async def test_a_turn_is_one_trace_within_its_callers(
    client: httpx.AsyncClient, services: Services, model_server: ModelServer, collector: TraceCollector
) -> None:
    earlier = (await client.post("/api/v1/chat", json=EARLIER)).json()
    model_server.script(Reply(tool_calls=[REMEMBER]), Reply(["Noted."]))
    headers = {"traceparent": f"00-{CALLERS_TRACE}-{CALLERS_SPAN}-01"}
    answer = await client.post("/api/v1/chat", json=ASK, headers=headers)
    done = answer.json()
    assert answer.headers["x-trace-id"] == done["trace_id"] == CALLERS_TRACE
    await services.jobs.app.run_worker_async(wait=False, install_signal_handlers=False, listen_notify=False)
    await _sent()

    assert collector.service == {"anamnesis"}
    request = collector.one("POST /api/v1/chat", CALLERS_TRACE)
    turn = collector.one("invoke_agent default", CALLERS_TRACE)
    assert (request.trace_id, request.parent_id, request.kind) == (CALLERS_TRACE, CALLERS_SPAN, 2)
    assert request.attributes["http.response.status_code"] == 200
    assert (turn.trace_id, turn.parent_id) == (CALLERS_TRACE, request.span_id)
    assert turn.attributes["gen_ai.conversation.id"] == done["conversation_id"]
    assert turn.attributes["anamnesis.turn.id"] == done["turn_id"]
    assert (turn.attributes["user.id"], turn.attributes["session.id"]) == ("u-1", "s-1")

    calls = [each for each in collector.spans if each.name == "chat scripted" and each.trace_id == CALLERS_TRACE]
    assert [each.parent_id for each in calls] == [turn.span_id] * 2
    assert calls[0].kind == 3
    assert calls[1].attributes["gen_ai.usage.input_tokens"] > 0
    assert calls[1].attributes["gen_ai.response.time_to_first_chunk"] > 0
    tool = collector.one("execute_tool remember")
    assert (tool.parent_id, tool.attributes["gen_ai.operation.name"]) == (turn.span_id, "execute_tool")
    written = [each for each in collector.spans if "anamnesis.memory.operation" in each.attributes]
    actors = {
        (each.name, each.attributes["anamnesis.memory.actor"])
        for each in written
        if each.trace_id == turn.trace_id
    }
    assert actors == {("update_memory", "model")}
    assert collector.one("search_memory", CALLERS_TRACE).parent_id == turn.span_id

    jobs = [each for each in collector.spans if each.name.startswith("job ")]
    assert jobs
    assert CALLERS_TRACE in {trace for each in jobs for trace in each.linked}
    assert CALLERS_TRACE not in {each.trace_id for each in jobs}
    # One job files what several turns said.
    filed = next(each for each in jobs if each.name == "job file_memory")
    assert filed.linked == [earlier["trace_id"], CALLERS_TRACE]

    told = repr([each.attributes for each in collector.spans])
    assert "Bruno" not in told
    assert "Noted." not in told


async def test_durations_name_the_newest_trace_for_those_who_accept_openmetrics(client: httpx.AsyncClient) -> None:
    await client.post("/api/v1/chat", json=EARLIER)  # there is nothing to recall before
    await client.post("/api/v1/chat", json=ASK, headers={"traceparent": f"00-{CALLERS_TRACE}-{CALLERS_SPAN}-01"})
    shown = await client.get("/metrics", headers={"Accept": "application/openmetrics-text; version=1.0.0"})
    assert shown.headers["content-type"].startswith("application/openmetrics-text")
    families = {family.name: family for family in _families(shown.text)}
    for name in ("first_token_seconds", "node_seconds", "recall_seconds"):
        traces = {
            each.exemplar.labels["trace_id"] for each in families[f"anamnesis_{name}"].samples if each.exemplar
        }
        assert CALLERS_TRACE in traces, name
    assert any(each.exemplar for each in families["gen_ai_client_operation_duration_seconds"].samples)
    plain = await client.get("/metrics")
    assert plain.headers["content-type"].startswith("text/plain")
    assert "trace_id" not in plain.text


async def test_what_was_said_is_sent_on_request_alone(
    client: httpx.AsyncClient, model_server: ModelServer, collector: TraceCollector
) -> None:
    await client.post("/api/v1/chat", json=EARLIER)
    TRACING.content = True
    model_server.script(Reply(["Porto is lovely."]))
    trace_id = (await client.post("/api/v1/chat", json=ASK)).json()["trace_id"]
    await _sent()
    call = collector.one("chat scripted", trace_id)
    assert "I moved to Porto" in call.attributes["gen_ai.input.messages"]
    assert "Porto is lovely." in call.attributes["gen_ai.output.messages"]
    search = collector.one("search_memory", trace_id)
    assert search.attributes["gen_ai.memory.query.text"] == ASK["message"]


async def test_a_failure_is_named_without_its_message(
    client: httpx.AsyncClient, model_server: ModelServer, collector: TraceCollector
) -> None:
    model_server.script(Reply(status=400, error_message="no: I moved to Porto"))
    answer = await client.post("/api/v1/chat", json=ASK)
    assert answer.status_code >= 400
    await _sent()
    for name in ("chat scripted", "invoke_agent default"):
        assert collector.one(name).failed
        assert collector.one(name).attributes["error.type"].startswith("llm_")
    assert "Porto" not in repr(collector.spans)


async def test_a_collector_that_refuses_or_is_away_costs_no_turn_anything(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
    with trace_collector(status=400) as refusing:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", refusing.endpoint)
        TRACING.start()
        assert (await _asked(services)).json()["degraded"] == []
        await _sent()
    assert refusing.spans == []


async def test_without_an_exporter_nothing_is_added(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT", raising=False)
    TRACING.start()
    assert TRACING.tracer is None
    answer = await _asked(services)
    assert "x-trace-id" not in answer.headers
    assert answer.json().get("trace_id") is None
