"""Run one turn: open it, drive it through the graph, turn what happens into events, end it.

Every way in (HTTP, WebSocket, and those to come) starts turns here. A turn runs in a task of its own:
a client that goes away does not stop it.
"""

import asyncio
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, cast
from uuid import UUID

import structlog
from langgraph.graph.state import CompiledStateGraph

from graph.opening import LONGEST_TURN_S, TurnRequest, initial_state, open_turn, turn_context
from graph.turn_log import TurnLog
from services.conversations.turns import LEASE, OpenTurn, StoredTurn, TurnOutcome, Turns
from services.errors import AnamnesisError, Conflict, DatabaseUnavailable, ModelFailed
from services.platform.metrics import FIRST_TOKEN_SECONDS, LLM_TOKENS, TURNS, TURNS_RUNNING
from state.context import TurnContext
from state.conversation import ConversationState, TurnInput

log = structlog.get_logger(__name__)

CompiledTurnGraph = CompiledStateGraph[ConversationState, TurnContext, ConversationState, ConversationState]

_STOP_GRACE_S = 1.0
_INTERNAL: dict[str, Any] = {
    "code": "internal",
    "message": "Something went wrong on our side.",
    "retryable": True,
}


@dataclass
class RunningTurn:
    """A turn under way, or just ended, in this process."""

    turn: OpenTurn
    log: TurnLog = field(default_factory=TurnLog)
    written: ConversationState = field(default_factory=ConversationState)
    """What the nodes have written so far."""
    begun: float = field(default_factory=time.perf_counter)
    task: "asyncio.Task[None] | None" = None


class TurnRunner:
    """Starts turns and looks after those that run in this process."""

    def __init__(self, graph: CompiledTurnGraph, turns: Turns) -> None:
        self._graph = graph
        self._turns = turns
        self._running: dict[UUID, RunningTurn] = {}
        self._keeper: asyncio.Task[None] | None = None

    async def start(self, request: TurnRequest) -> RunningTurn:
        """Store the user's message and let the turn run.

        Raises:
            InvalidInput: the request names something that does not exist.
            DatabaseUnavailable: the turn was not begun. Unless the connection broke in the very moment of the
                commit, nothing was stored; otherwise the message is there and its turn ends as failed.
        """
        begun = time.perf_counter()
        now = datetime.now(UTC)
        turn = await open_turn(self._turns, request)
        running = RunningTurn(turn, begun=begun)
        running.log.append(
            "turn",
            {
                "turn_id": str(turn.turn_id),
                "conversation_id": str(turn.conversation_id),
                "user_message_id": str(turn.user_message_id),
            },
        )
        self._running[turn.turn_id] = running
        TURNS_RUNNING.inc()
        running.task = asyncio.create_task(self._run(running, request.input, now), name=f"turn {turn.turn_id}")
        return running

    def open(self) -> None:
        """Begin to keep the leases of running turns and to end those whose process is gone."""
        self._keeper = asyncio.create_task(self._keep_leases(), name="leases")

    async def close(self) -> None:
        """Give running turns a moment to finish, then end them as interrupted."""
        if self._keeper is not None:
            self._keeper.cancel()
        tasks = [running.task for running in self._running.values() if running.task]
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=_STOP_GRACE_S)
            for task in late:
                task.cancel()
            await asyncio.wait(tasks)

    async def _run(self, running: RunningTurn, request: TurnInput, now: datetime) -> None:
        """Drive the turn; whatever happens, it ends with one event, and its row says how."""
        try:
            async with asyncio.timeout(LONGEST_TURN_S):
                await self._drive(running, request, now)
            self._finish(running)
        except asyncio.CancelledError:
            await self._fail(running, "interrupted", "The service is stopping; please try again.", retryable=True)
        except ModelFailed as failure:
            await self._fail(running, failure.failure, failure.message, retryable=failure.can_retry)
        except AnamnesisError as error:
            await self._fail(running, error.code, error.message, retryable=error.retryable)
        except TimeoutError:
            await self._fail(running, "turn_timeout", "The turn took too long.", retryable=True)
        except Exception:  # the edge of the stream: the client gets a code, the log the traceback
            log.exception("turn failed", turn_id=str(running.turn.turn_id))
            await self._fail(running, **_INTERNAL)
        finally:
            if not running.log.ended:  # even the failure failed
                running.log.append("error", {**_INTERNAL, "turn_id": str(running.turn.turn_id)})
            del self._running[running.turn.turn_id]
            TURNS_RUNNING.dec()

    async def _drive(self, running: RunningTurn, request: TurnInput, now: datetime) -> None:
        """Stream the graph: its events into the log, what the nodes write into the running turn."""
        turn = running.turn
        stream = self._graph.astream(
            initial_state(turn, request, now),
            context=turn_context(turn, debug=request.get("debug", False)),
            stream_mode=["updates", "custom"],
        )
        async for part in stream:
            mode, content = cast("tuple[str, dict[str, Any]]", part)
            if mode == "custom":
                if content["status"] == "token" and not running.log.text_begun:
                    FIRST_TOKEN_SECONDS.observe(time.perf_counter() - running.begun)
                running.log.append(content["status"], content["content"])
            else:
                for update in content.values():
                    _merge(running.written, update)

    def _finish(self, running: RunningTurn) -> None:
        written = running.written
        taken = round((time.perf_counter() - running.begun) * 1000, 1)
        content: dict[str, Any] = {
            "answer": written["answer"],
            "conversation_id": str(running.turn.conversation_id),
            "turn_id": str(running.turn.turn_id),
            "message_id": written["assistant_message_id"],
            "usage": written["usage"],
            "timings": {**written["timings"], "total_ms": taken},
            "degraded": written.get("degraded", []),
        }
        if written.get("execution_logs"):
            content["context_report"] = written["context_report"]
        running.log.append("done", content)
        self._note(running, "completed", content["timings"])

    async def _fail(self, running: RunningTurn, code: str, message: str, *, retryable: bool) -> None:
        """Keep what was streamed as an incomplete message, end the turn, and tell the readers."""
        turn, written, partial = running.turn, running.written, running.log.text
        error = {"code": code, "message": message, "retryable": retryable}
        outcome = TurnOutcome(
            status="partial" if partial else "failed",
            answer=partial,
            route_decision=written.get("route_decision"),
            usage=written.get("usage"),
            timings=written.get("timings"),
            degraded=written.get("degraded", []),
            context_report=written.get("context_report"),
            error=error,
        )
        try:
            if stored := await self._end_unless_complete(turn, outcome):
                running.log.append("done", _done_of(stored))
                self._note(running, "completed", {})
                return
        except DatabaseUnavailable:
            # Its lease runs out, and whoever looks next ends it.
            log.warning("turn not ended in the database", turn_id=str(turn.turn_id))
        running.log.append("error", {**error, "turn_id": str(turn.turn_id)})
        self._note(running, outcome.status, {"error": code})

    async def _end_unless_complete(self, turn: OpenTurn, outcome: TurnOutcome) -> StoredTurn | None:
        """End the turn; where it was interrupted between its commit and its last event, return it as stored."""
        try:
            await self._turns.end(turn.tenant_id, turn.turn_id, turn.answer_message_id, outcome)
        except Conflict:
            stored = await self._turns.get(turn.tenant_id, turn.turn_id)
            return stored if stored.status == "completed" else None
        return None

    def _note(self, running: RunningTurn, status: str, facts: dict[str, Any]) -> None:
        TURNS.labels(status).inc()
        if usage := running.written.get("usage"):
            LLM_TOKENS.labels("input").inc(usage["input_tokens"])
            LLM_TOKENS.labels("output").inc(usage["output_tokens"])
            LLM_TOKENS.labels("cached").inc(usage["cached_tokens"])
        log.info(
            "turn",
            status=status,
            tenant_id=str(running.turn.tenant_id),
            conversation_id=str(running.turn.conversation_id),
            turn_id=str(running.turn.turn_id),
            **facts,
        )

    async def _keep_leases(self) -> None:
        while True:
            try:
                by_tenant: dict[UUID, list[UUID]] = {}
                for running in self._running.values():
                    by_tenant.setdefault(running.turn.tenant_id, []).append(running.turn.turn_id)
                for tenant_id, turn_ids in by_tenant.items():
                    await self._turns.renew_leases(tenant_id, turn_ids)
                for turn_id in await self._turns.end_abandoned():
                    TURNS.labels("failed").inc()
                    log.warning("turn abandoned by its process, ended as failed", turn_id=str(turn_id))
            except DatabaseUnavailable:
                log.warning("leases not renewed", reason="database unavailable")
            await asyncio.sleep(LEASE.total_seconds() / 3)


def _merge(written: ConversationState, update: ConversationState) -> None:
    """Add a node's update as the graph's reducers do."""
    timings = {**written.get("timings", {}), **update.get("timings", {})}
    degraded = [*written.get("degraded", []), *update.get("degraded", [])]
    written.update(update)
    written["timings"], written["degraded"] = timings, degraded


def _done_of(stored: StoredTurn) -> dict[str, Any]:
    """The last event of a turn, from the turn as it is stored."""
    return {
        "answer": stored.answer,
        "conversation_id": str(stored.conversation_id),
        "turn_id": str(stored.id),
        "message_id": str(stored.assistant_message_id),
        "usage": stored.usage,
        "timings": stored.timings,
        "degraded": stored.degraded,
    }
