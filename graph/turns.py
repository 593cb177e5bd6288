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

from graph.turn_log import TurnLog
from services.conversations.turns import LEASE, NewTurn, OpenTurn, TurnOutcome, Turns
from services.errors import AnamnesisError, Conflict, DatabaseUnavailable, ModelFailed
from services.platform.metrics import FIRST_TOKEN_SECONDS, LLM_TOKENS, TURNS, TURNS_RUNNING
from state.context import TurnContext
from state.conversation import ConversationState, TurnInput

log = structlog.get_logger(__name__)

CompiledTurnGraph = CompiledStateGraph[ConversationState, TurnContext, ConversationState, ConversationState]

LONGEST_TURN_S = 600.0
_STOP_GRACE_S = 1.0


@dataclass(frozen=True)
class TurnRequest:
    """What a caller sends, checked: the graph's input, and whose it is."""

    tenant_id: UUID
    input: TurnInput


@dataclass
class RunningTurn:
    """A turn under way, or just ended, in this process."""

    turn: OpenTurn
    log: TurnLog = field(default_factory=TurnLog)
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
            DatabaseUnavailable: nothing was stored.
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
                final = await self._drive(running, request, now)
            self._finish(running, final)
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
            await self._fail(running, "internal", "Something went wrong on our side.", retryable=True)
        finally:
            del self._running[running.turn.turn_id]
            TURNS_RUNNING.dec()

    async def _drive(self, running: RunningTurn, request: TurnInput, now: datetime) -> ConversationState:
        """Stream the graph's events into the log; return what the nodes wrote."""
        turn = running.turn
        final: ConversationState = {}
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
                    timings = {**final.get("timings", {}), **update.get("timings", {})}
                    final.update(update)
                    final["timings"] = timings
        return final

    def _finish(self, running: RunningTurn, final: ConversationState) -> None:
        usage = final["usage"]
        LLM_TOKENS.labels("input").inc(usage["input_tokens"])
        LLM_TOKENS.labels("output").inc(usage["output_tokens"])
        LLM_TOKENS.labels("cached").inc(usage["cached_tokens"])
        timings = {**final["timings"], "total_ms": round((time.perf_counter() - running.begun) * 1000, 1)}
        content: dict[str, Any] = {
            "answer": final["answer"],
            "conversation_id": str(running.turn.conversation_id),
            "turn_id": str(running.turn.turn_id),
            "message_id": final["assistant_message_id"],
            "usage": usage,
            "timings": timings,
            "degraded": final.get("degraded", []),
        }
        if final.get("execution_logs"):
            content["context_report"] = final["context_report"]
        running.log.append("done", content)
        self._note(running, "completed", timings)

    async def _fail(self, running: RunningTurn, code: str, message: str, *, retryable: bool) -> None:
        """Keep what was streamed as an incomplete message, end the turn, and tell the readers."""
        turn = running.turn
        partial = running.log.text
        error = {"code": code, "message": message, "retryable": retryable}
        outcome = TurnOutcome(status="partial" if partial else "failed", answer=partial, error=error)
        try:
            await self._turns.end(turn.tenant_id, turn.turn_id, turn.answer_message_id, outcome)
        except (DatabaseUnavailable, Conflict) as not_stored:
            # Its lease runs out, and whoever looks next ends it.
            log.warning("turn not ended in the database", turn_id=str(turn.turn_id), reason=not_stored.code)
        running.log.append("error", {**error, "turn_id": str(turn.turn_id)})
        self._note(running, outcome.status, {"error": code})

    def _note(self, running: RunningTurn, status: str, facts: dict[str, Any]) -> None:
        TURNS.labels(status).inc()
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


async def open_turn(turns: Turns, request: TurnRequest) -> OpenTurn:
    """Store the request's message and open its turn."""
    asked = request.input
    return await turns.open(
        NewTurn(
            tenant_id=request.tenant_id,
            external_user_id=asked["user_id"],
            session_key=asked["session_id"],
            content=asked["message"],
            images=asked.get("images", ()),
            expert=asked.get("expert"),
            timezone=asked.get("timezone"),
            locale=asked.get("locale"),
        )
    )


def initial_state(turn: OpenTurn, request: TurnInput, now: datetime) -> ConversationState:
    """The state with which a turn begins."""
    state = ConversationState(
        conversation_id=str(turn.conversation_id),
        turn_id=str(turn.turn_id),
        user_message_id=str(turn.user_message_id),
        answer_message_id=str(turn.answer_message_id),
        system_prompt=turn.system_prompt,
        model=turn.model,
        now=now,
    )
    return ConversationState({**state, **request})


def turn_context(turn: OpenTurn, *, debug: bool) -> TurnContext:
    """Whose turn it is."""
    return TurnContext(
        tenant_id=str(turn.tenant_id),
        user_id=str(turn.user_id),
        conversation_id=str(turn.conversation_id),
        turn_id=str(turn.turn_id),
        locale=turn.locale or "",
        timezone=turn.timezone,
        debug=debug,
        deadline=time.time() + LONGEST_TURN_S,
    )
