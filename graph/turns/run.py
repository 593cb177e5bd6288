"""One running turn: drives it through the graph, logs its events, and ends it in every case."""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, Literal, cast

import structlog
from langgraph.graph.state import CompiledStateGraph
from opentelemetry import trace

from graph.builder import EVENTS, after_generate, generation, run_plainly
from graph.turns.log import (
    CANCELLED,
    INTERNAL,
    INTERRUPTED_BY_MESSAGE,
    STOPPING,
    TurnLog,
    calls_ending,
    done_ending,
    failed_ending,
    stored_ending,
)
from graph.turns.turn_queue import FairGate, TurnQueue
from nodes.persist import changes_of_turn, outcome_of
from services.conversations.turn import StopReason, StoredTurn, TurnOutcome, TurnStatus
from services.conversations.turns import Turns
from services.errors import AnamnesisError, Conflict, DatabaseUnavailable, ModelFailed, NotFound
from services.memory.changes import Changes
from services.memory.reading.trust import ForeignOrigins
from services.platform import span_names as names
from services.platform.metrics import (
    DEGRADED,
    EXPERIMENT_FIRST_TOKEN_SECONDS,
    EXPERIMENT_TURNS,
    FIRST_TOKEN_SECONDS,
    LLM_TOKENS,
    TURN_ERRORS,
    TURNS,
)
from services.platform.recent_turns import RecentTurns
from services.platform.tracing import Attributes, confidential, mark_failed, span, trace_id
from services.tools.actor import note_repeated
from services.usage.ledger import Spender, UsageMeter
from state.budget import LONGEST_S
from state.client_tools import RESULTS, messages_of, open_calls
from state.conversation import ConversationState, GraphState, each_once, with_update
from state.memory import MemoryChange, PlannedChange
from state.turn import OpenTurn

log = structlog.get_logger(__name__)

CompiledTurnGraph = CompiledStateGraph[GraphState, OpenTurn, GraphState, GraphState]

Stop = StopReason | Literal["stopping", "handed_over"]
"""Reason for cancelling a turn's task: a caller or a newer message asks for it; the process ends; or the
process ends and another one will run the turn, which was still waiting."""

_FIRST_NODE = "branch:to:route"
"""LangGraph's channel that starts the first node. A turn writes its state to this channel directly. Otherwise
LangGraph would first run a step, a tenth of its work, that only copies the input there."""

_NEXT_PART = {"generate_rag": "branch:to:generate_rag", "generate_kb": "branch:to:generate_kb"}
"""Channels that start a further part of a turn."""

_AT_ONCE = 6
"""Maximum number of turns that begin (store their message and read what their prompts need) or end at the same
time: the more share the processor, the later they all get their first words."""
_END_WAITS_S = 1.0
"""Maximum seconds that the end of a turn waits for others to begin; their beginning may hang."""

_END_AGAIN_S = 1.0
"""Seconds between tries to end a turn while the database is away."""

_FAIL_AT_ONCE = 2
"""Maximum number of turns that are cut off at the same time: many clients that disconnect at once must not take
every connection to the database, nor block the event loop."""

_STOPPED: dict[Stop, tuple[TurnStatus | None, dict[str, Any]]] = {
    "cancelled": ("cancelled", CANCELLED),
    "partial": ("partial", INTERRUPTED_BY_MESSAGE),
    "forgotten": ("cancelled", CANCELLED),
    "stopping": (None, STOPPING),
}


@dataclass(eq=False)
class TurnRun:
    """A turn of this process, running or just ended."""

    turn: OpenTurn
    log: TurnLog
    degraded: list[str] = field(default_factory=list)
    """Features that are unavailable from the turn's beginning."""
    written: ConversationState = field(default_factory=ConversationState)
    """State that the nodes have written so far."""
    begun: float = field(default_factory=time.perf_counter)
    resumed: ConversationState | None = None
    """State with which a further part of the turn begins; None = the turn begins with its first part."""
    now: datetime | None = None
    """Moment that counts as the present in the turn; None = the real present."""
    started_at: datetime = field(default_factory=partial(datetime.now, UTC))
    place: ExitStack = field(default_factory=ExitStack)
    """The turn's place in the gate: held until everything that the prompt needs has been read, and again from
    the complete answer on."""
    task: "asyncio.Task[None] | None" = None
    stopped: Stop | None = None
    unended: bool = False
    """Whether its readers know its end but the database does not."""

    @property
    def text(self) -> str:
        """Return the answer so far, including earlier parts."""
        return (self.resumed or {}).get("answer", "") + self.log.text

    def as_stored(self) -> StoredTurn:
        """Return the turn so far, in the form of a stored one."""
        last = self.log.last if self.log.ended else None
        error = last.content if last is not None and last.status == "error" else None
        if last is None:
            status: TurnStatus = "running"
        elif error is None:
            status = "completed"
        else:
            status = "cancelled" if error["code"] == "cancelled" else "partial" if self.text else "failed"
        return StoredTurn(
            id=self.turn.turn_id,
            conversation_id=self.turn.conversation_id,
            status=status,
            user_message_id=self.turn.user_message_id,
            assistant_message_id=None,
            answer=self.text or None,
            route_decision=self.written.get("route_decision"),
            usage=cast("Mapping[str, int] | None", self.written.get("usage")),
            timings=self.written.get("timings"),
            degraded=list(self.written.get("degraded", [])),
            context_report=self.written.get("context_report"),
            error={name: error[name] for name in ("code", "message", "retryable")} if error else None,
            started_at=self.started_at,
            finished_at=datetime.now(UTC) if last is not None else None,
        )

    def stop(self, why: Stop) -> None:
        """Cancel the turn's task, once."""
        if self.stopped is None and self.task is not None and not self.log.ended:
            self.stopped = why
            # Not cancelled directly: a task cancelled before its first step would never run, and so never end its
            # turn.
            asyncio.get_running_loop().call_soon(self.task.cancel)


class TurnDriver:
    """Drives turns through the graph to their single last event."""

    def __init__(
        self,
        graph: CompiledTurnGraph,
        turns: Turns,
        places: TurnQueue,
        meter: UsageMeter,
        changes: Changes,
        origins: ForeignOrigins,
        recent: RecentTurns,
    ) -> None:
        self._graph = graph
        graph.input_channels = ["turn", _FIRST_NODE, *_NEXT_PART.values()]
        run_plainly(graph)
        self._turns = turns
        self._places = places
        self.gate = FairGate(_AT_ONCE)
        """Gate before turns begin, and before they end."""
        self._meter = meter
        self._changes = changes
        self._origins = origins
        self._recent = recent
        self._ending = asyncio.Semaphore(_FAIL_AT_ONCE)

    async def run(self, run: TurnRun) -> None:
        """Drive the turn; whatever happens, it ends with one event, and its row records how."""
        turn = run.turn
        confidential.set(not turn.stored)
        spender = Spender(turn.tenant_id, "turn", turn.user_id, turn.expert_id)
        with span(f"invoke_agent {turn.expert}", _about(run)), self._meter.spending(spender):
            await self._run(run)
        with suppress(DatabaseUnavailable):  # the reader has the end already; all of the answer counts as foreign
            await note_repeated(self._origins, run.turn, run.written)

    async def _run(self, run: TurnRun) -> None:
        try:
            if run.turn.waiting:
                run.place.close()
                if not await self._places.wait(run.turn):
                    await self._tell_stored(run)
                    return
            now = run.now or datetime.now(UTC)
            run.turn = replace(run.turn, waiting=False, now=now, begun=time.perf_counter())
            async with asyncio.timeout(LONGEST_S):
                await self._drive(run)
            if open_calls(run.written.get("messages", [])):
                run.log.append(*calls_ending(run.turn, run.written))
                self._note(run, "paused", run.written["timings"])
                return
            run.log.append(*done_ending(run.turn, run.written, trace_id()))
            self._note(run, "completed", run.written["timings"])
        except asyncio.CancelledError:
            await self._stopped(run)
        except ModelFailed as failure:
            error = _error(failure.failure, failure.message, retryable=failure.can_retry)
            if failure.parameter:
                error["param"] = failure.parameter
            if failure.retry_after_s and failure.can_retry:
                error["retry_after_s"] = math.ceil(failure.retry_after_s)
            await self._fail(run, error)
        except AnamnesisError as error:
            await self._fail(run, _error(error.code, error.message, retryable=error.retryable))
        except TimeoutError:
            await self._fail(run, _error("turn_timeout", "The turn took too long.", retryable=True))
        except Exception as error:  # the edge of the stream: the client gets a code, the log the traceback
            failed = {"turn_id": str(run.turn.turn_id), "error": type(error).__name__}
            log.error("turn failed", **failed, exc_info=run.turn.stored)
            await self._fail(run, INTERNAL)
        finally:
            run.place.close()
            if not (run.log.ended or run.log.left):  # ending the failed turn failed too
                run.log.append(*failed_ending(run.turn, INTERNAL, run.text))

    async def _drive(self, run: TurnRun) -> None:
        """Stream the graph: append its events to the log, and merge what nodes write into the run."""
        EVENTS.set(partial(_tell, run))
        state, first = run.resumed, _FIRST_NODE
        if state is not None:
            first = _NEXT_PART[generation(state)]
        else:
            state = ConversationState(degraded=list(run.degraded)) if run.degraded else ConversationState()
            if rounds := run.turn.input.get("rounds"):
                state["messages"] = messages_of(rounds)
                if any("of" in result for each in rounds for result in each["results"]):
                    state["degraded"] = each_once(state.get("degraded", []), [RESULTS])
        run.written = state
        stream = self._graph.astream(
            cast("GraphState", {"turn": state, first: None}), context=run.turn, stream_mode="updates"
        )
        async for updates in cast("AsyncIterator[dict[str, GraphState]]", stream):
            if "history" in updates:
                run.place.close()
            for update in updates.values():
                run.written = with_update(run.written, update["turn"])
            if updates.keys() & {"generate_kb", "generate_rag"} and after_generate(run.written) == "persist":
                await self._let_others_begin(run)
        if run.log.uncopied and "redis" not in run.degraded:
            run.degraded.append("redis")
        run.written["degraded"] = each_once(run.degraded, run.written.get("degraded", []))

    async def _let_others_begin(self, run: TurnRun) -> None:
        """Let others begin before the turn ends, because its reader already has the answer. A caller who stops
        the turn has the whole answer, so it ends at once."""
        try:
            async with asyncio.timeout(_END_WAITS_S):
                run.place = await self.gate.enter((run.turn.tenant_id, run.turn.input["user_id"]), ends=True)
        except TimeoutError:
            pass
        except asyncio.CancelledError:
            if run.task is None or run.stopped in {None, "forgotten"}:
                raise
            run.task.uncancel()

    async def _stopped(self, run: TurnRun) -> None:
        why = run.stopped or "stopping"
        if why == "taken_over":
            run.log.leave()
            return
        if why == "handed_over":
            run.log.append(*failed_ending(run.turn, STOPPING, ""))
            return
        status, error = _STOPPED[why]
        await self._fail(run, error, status)

    async def _fail(self, run: TurnRun, error: dict[str, Any], status: TurnStatus | None = None) -> None:
        """Keep what was streamed as an incomplete message, end the turn, and tell the readers. Nothing is kept
        of a turn that forgetting has stopped, because its prompt had what is forgotten."""
        turn, written = run.turn, run.written
        made: list[MemoryChange] = []
        memory: list[PlannedChange] = []
        partial = "" if run.stopped == "forgotten" else run.text
        if partial:  # without any answer the message will be sent again, and causes the jobs then
            made, memory = await self._memory_of(run, partial)
        ended = outcome_of(turn, written, status or ("partial" if partial else "failed"), partial, made, memory)
        outcome = replace(ended, degraded=each_once(run.degraded, ended.degraded), error=error)
        try:
            if turn.stored:
                async with self._ending:
                    await self._turns.end(turn, outcome)
        except Conflict:
            # The answer was stored before the interruption, or another process has ended the turn or runs it.
            if await self._tell_stored(run):
                return
        except DatabaseUnavailable:
            run.unended = True
            log.warning("turn not ended in the database; it is once that is back", turn_id=str(turn.turn_id))
        run.log.append(*failed_ending(turn, error, partial))
        self._note(run, outcome.status, {"error": error["code"]})
        if run.unended:
            await self._end_later(turn, outcome)
            run.unended = False

    async def _end_later(self, turn: OpenTurn, outcome: TurnOutcome) -> None:
        """End a turn, whose readers know its end, once the database is back; renew its lease until then."""
        while True:
            await asyncio.sleep(_END_AGAIN_S)
            try:
                await self._turns.end(turn, outcome)
            except DatabaseUnavailable:
                continue
            except Conflict:  # another process has ended it
                pass
            return

    async def _memory_of(self, run: TurnRun, answer: str) -> tuple[list[MemoryChange], list[PlannedChange]]:
        """Return the changes of memory that a turn made before it was cut off, and those that it still makes."""
        try:
            return await changes_of_turn(run.turn, run.written, self._changes, answer)
        except DatabaseUnavailable:  # the turn cannot be ended either
            return [], list(run.written.get("memory_plan", []))

    async def _tell_stored(self, run: TurnRun) -> bool:
        """End the stream with the stored turn if it has ended; leave the turn to another process that runs it."""
        try:
            stored = await self._turns.get(run.turn.tenant_id, run.turn.turn_id)
        except (NotFound, DatabaseUnavailable):
            return False
        if stored.ended:
            run.log.append(*stored_ending(stored))
            self._note(run, stored.status, {})
        else:
            run.log.leave()
        return True

    def _note(self, run: TurnRun, status: str, facts: dict[str, Any]) -> None:
        TURNS.labels(status).inc()
        self._recent.note(facts.get("error"))
        if "error" in facts:
            TURN_ERRORS.labels(facts["error"]).inc()
        for experiment, variant in run.turn.experiments.items():
            EXPERIMENT_TURNS.labels(experiment, variant, status).inc()
        if usage := run.written.get("usage"):
            LLM_TOKENS.labels("input").inc(usage["input_tokens"])
            LLM_TOKENS.labels("output").inc(usage["output_tokens"])
            LLM_TOKENS.labels("cached").inc(usage["cached_tokens"])
        for source in run.written.get("degraded", []):
            DEGRADED.labels(source).inc()
        if (current := trace.get_current_span()).is_recording():
            current.set_attribute(names.TURN_STATUS, status)
            current.set_attribute(names.DEGRADED, run.written.get("degraded", []))
            if "error" in facts:
                mark_failed(current, facts["error"])
        log.info(
            "turn",
            status=status,
            tenant_id=str(run.turn.tenant_id),
            conversation_id=str(run.turn.conversation_id),
            turn_id=str(run.turn.turn_id),
            **facts,
        )


def _about(run: TurnRun) -> Attributes:
    return {
        names.OPERATION: "invoke_agent",
        names.AGENT: run.turn.expert,
        names.CONVERSATION: str(run.turn.conversation_id),
        names.USER: run.turn.input.get("user_id"),
        names.SESSION: run.turn.input.get("session_id") if run.turn.stored else None,
        names.TENANT: str(run.turn.tenant_id),
        names.TURN: str(run.turn.turn_id),
    }


def _tell(run: TurnRun, event: dict[str, Any]) -> None:
    """Append an event that a node has written."""
    if event["status"] == "token" and not run.log.text_begun:
        seconds = time.perf_counter() - run.begun
        FIRST_TOKEN_SECONDS.observe(seconds)
        for experiment, variant in run.turn.experiments.items():
            EXPERIMENT_FIRST_TOKEN_SECONDS.labels(experiment, variant).observe(seconds)
    run.log.append(event["status"], event["content"])


def _error(code: str, message: str, *, retryable: bool) -> dict[str, Any]:
    return {"code": code, "message": message, "retryable": retryable}
