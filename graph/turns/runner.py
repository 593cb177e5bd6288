"""Start turns, follow them, stop them.

Every interface (HTTP, WebSocket and others) starts turns here. A turn runs in a separate task: a client that
disconnects does not stop it. Any process can follow and stop any turn.
"""

import asyncio
import contextlib
import time
from base64 import urlsafe_b64decode
from collections.abc import AsyncGenerator, Coroutine, Mapping, Sequence
from contextlib import ExitStack, aclosing
from dataclasses import replace
from functools import partial
from typing import Any
from uuid import UUID

import structlog

from graph.turns.log import CANCELLED, EventWriter, TurnLog
from graph.turns.other_processes import end_from_outside, end_paused, follow_anywhere, keep
from graph.turns.run import CompiledTurnGraph, Stop, TurnDriver, TurnRun
from graph.turns.turn_queue import TurnQueue, turn_signals
from nodes.pause import resumed
from services.bootstrap import Services
from services.context.request_budget import within
from services.context.wiring import features_on
from services.conversations.resent_history import BranchReason
from services.conversations.turn import StopReason, StoredTurn, TurnRequest, TurnStatus, saving
from services.conversations.turn_values import KEY, KEY_OF_ANOTHER_MESSAGE, other_space
from services.conversations.values import check_length, message_digest
from services.errors import Busy, DatabaseUnavailable, InvalidInput
from services.llm.token_estimates import count_tokens
from services.platform.metrics import TURNS_RUNNING
from services.platform.settings import Settings
from state.client_tools import ClientResult
from state.conversation import ConversationState
from state.events import PART, TurnEvent
from state.turn import OpenTurn, TurnInput

log = structlog.get_logger(__name__)

_LOOK_S = 0.05
_LOOKS = 12
"""Number of checks whether a turn's process has stopped it, before it is ended from outside."""
_END_WITHIN_S = 3.0

_CANCEL_AGAIN_S = 0.5
_NOTED_WITHIN_S = 0.5
"""Maximum time that a turn waits for the notes of one just ended: the database may be away."""
_UNSTORED_KEPT_S = 5.0
"""Seconds to keep a temporary turn after its end, for the reader who started it."""


class TurnRunner:
    """Starts turns and manages those that run in this process."""

    def __init__(self, graph: CompiledTurnGraph, services: Services) -> None:
        self._services = services
        self._turns, self._leases, self._events = services.turns, services.leases, services.events
        self._places = TurnQueue(services.leases)
        self._driver = TurnDriver(
            graph,
            services.turns,
            self._places,
            services.usage.meter,
            services.memory.changes,
            services.memory.foreign_origins,
            services.recent_turns,
        )
        self._writer = EventWriter(services.events)
        self._running: dict[UUID, TurnRun] = {}
        self._unstored: dict[UUID, TurnRun] = {}
        """Temporary turns, until shortly after their end."""
        self._recalls = "recall" in features_on(services.settings)
        self._opening = 0
        """Turns that are about to be stored."""
        self._tasks: list[asyncio.Task[None]] = []
        self._heard: set[asyncio.Task[None]] = set()
        self.draining = False
        """Whether this process is about to end."""

    @property
    def busy(self) -> bool:
        """Whether the maximum number of turns runs or waits in this process."""
        return self._turns_here >= self._services.settings.turns_max

    @property
    def under_pressure(self) -> bool:
        """Whether at least half of the maximum does: background work that can wait then makes room."""
        return self._turns_here * 2 >= self._services.settings.turns_max

    def admit(self) -> None:
        """Check whether another turn may start. Raises `Busy` if the maximum number of turns runs or waits
        here."""
        if self.busy:
            raise Busy

    async def start(self, request: TurnRequest) -> UUID:
        """Store the user's message, let the turn run, and return its id.

        A request with the idempotency key of an earlier one stores nothing and returns that turn's id.
        A temporary turn runs only in this process and can be followed only here, until shortly after its end. It
        ignores an idempotency key, because nothing is kept to recognise it by.

        Raises:
            Busy: the maximum number of turns is running; nothing is stored.
            InvalidInput: the request names something that does not exist.
            ConversationExists: the turn must begin its conversation, which has begun already; nothing is stored.
            Conflict: another turn of the conversation is in progress, and this one may not wait.
            DatabaseUnavailable: the turn was not begun. Nothing was stored, unless the connection broke during the
                commit: then the message is stored and its turn ends as failed.
        """
        begun = time.perf_counter()
        self.admit()
        check_length(request.input["message"], self._services.settings.message_characters)
        request = _with_budget(request, self._services.settings)
        self._opening += 1
        place = ExitStack()
        try:
            alone = self._turns_here == 1
            if self._recalls and (alone or self._driver.gate.is_full):
                self._services.memory.recall.expect(request.input["message"], alone=alone)
            place = await self._driver.gate.enter((request.tenant_id, request.input["user_id"]))
            turn = await self._open(request)
            if isinstance(turn, UUID):
                place.close()
                return turn
        except BaseException:
            place.close()
            raise
        finally:
            self._opening -= 1
        if turn.turn_id in self._running:  # opening it took so long that it was taken for one that nobody runs
            place.close()
            return turn.turn_id
        for each in turn.paused:
            await end_paused(self._services, turn.tenant_id, each)
        self._run(turn, begun, place)
        if turn.waiting and request.on_conflict == "interrupt":
            await self._interrupt(turn)
        return turn.turn_id

    async def _open(self, request: TurnRequest) -> OpenTurn | UUID:
        await self._noted(request)
        if request.stored:
            return await self._turns.open_or_find(request)
        reads = self._services.settings.temporary_memory == "read"
        return await self._turns.unstored(request, reads_memory=reads and request.of_user)

    async def resume(
        self, tenant_id: UUID, turn_id: UUID, user_id: str, results: Mapping[int, ClientResult], asked: TurnInput
    ) -> bool:
        """Run the next part of a turn that waits for the results of a client's tools.

        Args:
            tenant_id: whose it is.
            turn_id: the turn.
            user_id: the caller's name for its user.
            results: by the places of their calls, one for each.
            asked: what the request asks for: parameters, tools, a budget.

        Returns:
            Whether it runs; False: it does not wait any more, or a newer message has taken its place.

        Raises:
            Busy: the maximum number of turns is running.
            DatabaseUnavailable: the turn could not be reached.
        """
        begun = time.perf_counter()
        self.admit()
        settings = self._services.settings
        if limits := within(asked.get("budget", {}), settings.request_budget, settings.request_budget_max):
            asked = {**asked, "budget": limits}
        paused = await self._services.paused_turns.resume(tenant_id, turn_id, user_id)
        if paused is None:
            return False
        state = resumed(paused.state, results, keeps_content=settings.client_tools_keep == "content")
        turn = replace(paused.turn, input={**paused.turn.input, **asked}, paused=(), waiting=False)
        self._run(turn, begun, ExitStack(), state)
        return True

    async def _noted(self, request: TurnRequest) -> None:
        """Wait until it is noted what the user's turns that have just ended repeat; a turn reads that."""
        asked = request.tenant_id, request.input["user_id"]
        noting = [
            run.task
            for run in self._running.values()
            if run.task and run.log.ended and (run.turn.tenant_id, run.turn.input["user_id"]) == asked
        ]
        if noting:
            await asyncio.wait(noting, timeout=_NOTED_WITHIN_S)

    async def start_instead(self, request: TurnRequest, replaced: UUID) -> UUID:
        """Start a turn in place of another one, which becomes a branch together with all that follow it.

        A repeated request with the same idempotency key finds nothing left to put aside.

        Raises:
            InvalidInput: the turn is not of this conversation, or as `start`.
            Conflict: another message has arrived meanwhile, or as `start`.
            DatabaseUnavailable: as `start`.
        """
        user, session = request.input["user_id"], request.input["session_id"]
        conversations = self._services.known_conversations
        known = await conversations.named(request.tenant_id, user, session, messages=0)
        if known is None:
            raise InvalidInput("replaces", "is no turn of this conversation")
        if (space := request.input.get("space")) is not None and space != known.space:
            raise other_space(known.space)
        digest = message_digest("user", request.input["message"], request.input.get("images", ()))
        for said in known.messages:
            if request.idempotency_key is not None and said.key == request.idempotency_key:
                if said.role == "user" and said.digest != digest:
                    raise InvalidInput(KEY, KEY_OF_ANOTHER_MESSAGE)
                return said.turn_id
        place = await conversations.place_of(request.tenant_id, known.id, turn_id=replaced)
        if place is None:
            raise InvalidInput("replaces", "is no turn of this conversation")
        if place[1] is not None:
            raise InvalidInput("replaces", f"is on the branch {place[1]}; switch to it first")
        again = any(said.turn_id == replaced and said.digest == digest for said in known.messages)
        await self.put_aside(request.tenant_id, known.id, replaced, "regenerate" if again else "edit")
        return await self.start(request)

    async def follow(
        self, tenant_id: UUID, turn_id: UUID, after: int = 0
    ) -> AsyncGenerator[Sequence[TurnEvent], None]:
        """Yield a turn's events after number `after`, until its last, wherever it runs. Raises `NotFound` if
        the tenant has no such turn."""
        unstored = self.unstored(tenant_id, turn_id)
        turn_log = unstored.log if unstored else self._writer.find(turn_id)
        stream = (
            turn_log.follow(after)
            if turn_log is not None
            else follow_anywhere(self._turns, self._events, tenant_id, turn_id, after)
        )
        async with aclosing(stream):
            async for batch in stream:
                after = batch[-1].sequence
                yield batch
        if turn_log is not None and turn_log.left:
            elsewhere = follow_anywhere(self._turns, self._events, tenant_id, turn_id, after)
            async with aclosing(elsewhere):
                async for batch in elsewhere:
                    yield batch

    def unstored(self, tenant_id: UUID, turn_id: UUID, *, user_id: str | None = None) -> TurnRun | None:
        """Return a temporary turn of this process, optionally only of this user; None if there is none."""
        run = self._unstored.get(turn_id)
        if run is None or run.turn.tenant_id != tenant_id or user_id not in {None, run.turn.input["user_id"]}:
            return None
        return run

    async def stop(self, tenant_id: UUID, turn_id: UUID, reason: StopReason = "cancelled") -> StoredTurn:
        """Stop a turn, wherever it runs or waits, and return the ended turn; an ended one is unchanged. Raises
        `NotFound` if the tenant has no such turn, and `DatabaseUnavailable` if the turn could not be reached."""
        if (unstored := self.unstored(tenant_id, turn_id)) is not None:
            self._stop_here(turn_id, reason)
            if unstored.task is not None:
                await asyncio.wait({unstored.task}, timeout=_END_WITHIN_S)
            return unstored.as_stored()
        run = self._running.get(turn_id)
        if run is not None and run.task is not None and run.turn.tenant_id == tenant_id and not run.turn.waiting:
            run.stop(reason)  # no other process is involved
            await asyncio.wait({run.task}, timeout=_END_WITHIN_S)
        if (stored := await self._turns.get(tenant_id, turn_id)).ended:
            return stored
        await self._leases.request_stop(tenant_id, turn_id, reason)
        self._stop_here(turn_id, reason)
        for _ in range(_LOOKS):
            if (stored := await self._turns.get(tenant_id, turn_id)).ended:
                return stored
            await asyncio.sleep(_LOOK_S)
        # Its process hangs, or has died and its lease is still valid.
        status: TurnStatus = "partial" if reason == "partial" else "cancelled"
        await end_from_outside(self._services, tenant_id, turn_id, status=status, error=CANCELLED)
        return await self._turns.get(tenant_id, turn_id)

    async def abandon(self, tenant_id: UUID, turn_id: UUID) -> None:
        """Stop a turn that nobody waits for any more, without waiting for its end if it runs here. Raises
        `NotFound` if the tenant has no such turn, and `DatabaseUnavailable` if the turn could not be reached."""
        run = self._running.get(turn_id)
        if run is not None and run.turn.tenant_id == tenant_id and not run.turn.waiting:
            run.stop("cancelled")
        else:
            await self.stop(tenant_id, turn_id)

    async def put_aside(
        self, tenant_id: UUID, conversation_id: UUID, turn_id: UUID, reason: BranchReason
    ) -> UUID | None:
        """Move a turn and all that follow it to a branch of the conversation; running ones are cancelled first.

        Returns:
            The branch; None if nothing of the turn was left.

        Raises:
            NotFound: there is no such conversation.
            Conflict: another message has arrived meanwhile.
        """
        branches = self._services.branches
        for unfinished in await branches.unfinished(tenant_id, conversation_id, turn_id):
            await self.stop(tenant_id, unfinished)
        return await branches.put_aside(tenant_id, conversation_id, turn_id, reason)

    def open(self) -> None:
        """Start copying events, listening to other processes, and taking care of turns whose process is gone."""
        self._services.jobs.postpone_while(lambda: self.under_pressure)
        self._services.jobs.turns_run = lambda: self._turns_here > 0
        self._begin(self._writer.run(), "event writer")
        self._begin(self._listen(), "turn signals")
        self._services.mcp_servers.start()
        keeping = keep(
            self._services, self._running, self._stop_here, self._adopt, lambda: self.draining, self._writer.unread
        )
        self._begin(keeping, "leases")

    async def close(self, grace_s: float = 1.0) -> None:
        """Give turns `grace_s` seconds to finish, then end them as interrupted; waiting ones are left to
        others. A second call ends at once those that the first is waiting for."""
        self.draining = True
        end = asyncio.get_running_loop().time() + grace_s
        while (tasks := self._turn_tasks(ended=False)) and (left := end - asyncio.get_running_loop().time()) > 0:
            await asyncio.wait(tasks, timeout=left)
        for run in list(self._running.values()):
            if run.turn.waiting:
                self._writer.forget(run.turn.turn_id)
                run.stop("handed_over")
                with contextlib.suppress(DatabaseUnavailable):
                    await self._leases.release(run.turn.tenant_id, run.turn.turn_id)
            else:
                run.stop("stopping")
        if tasks := self._turn_tasks():
            await asyncio.wait(tasks, timeout=_END_WITHIN_S)
        await _cancel(self._tasks)
        self._tasks.clear()
        await self._writer.close()

    def _run(
        self,
        turn: OpenTurn,
        begun: float,
        place: ExitStack,
        state: ConversationState | None = None,
        earlier: Sequence[TurnEvent] = (),
    ) -> None:
        """Run a turn, or with `state` its next part; another process has told `earlier` events of it."""
        budgets = self._services.budgets
        is_saving = budgets is not None and budgets.is_saving(turn.tenant_id, turn.input["user_id"])
        if is_saving:
            turn = saving(turn, self._services.settings.context_budget_tokens)
        before = PART * len(state["context_report"]["rounds"]) if state else 0
        log_of_turn = (
            self._writer.log_for(turn.turn_id, before=before, earlier=earlier) if turn.stored else TurnLog()
        )
        run = TurnRun(turn, log_of_turn, begun=begun, place=place, resumed=state)
        if not turn.stored:
            self._unstored[turn.turn_id] = run
        if is_saving:
            run.degraded.append("budget")
        if self._events.failing and turn.stored:
            run.degraded.append("redis")
        if not earlier:
            run.log.append(
                "turn",
                {
                    "turn_id": str(turn.turn_id),
                    "conversation_id": str(turn.conversation_id),
                    "user_message_id": str(turn.user_message_id),
                },
            )
        self._running[turn.turn_id] = run
        TURNS_RUNNING.inc()
        run.task = asyncio.create_task(self._driver.run(run), name=f"turn {turn.turn_id}")
        run.task.add_done_callback(partial(self._ended, run))

    def _ended(self, run: TurnRun, task: "asyncio.Task[None]") -> None:
        turn = run.turn
        run.task = None  # its context refers to the run: together they would wait for a garbage collection
        if self._running.get(turn.turn_id) is run:  # its next part may run already
            del self._running[turn.turn_id]
        if run.log.left and self._writer.find(turn.turn_id) is run.log:
            self._writer.forget(turn.turn_id)
        if not turn.stored:
            asyncio.get_running_loop().call_later(_UNSTORED_KEPT_S, self._unstored.pop, turn.turn_id, None)
        TURNS_RUNNING.dec()
        if not task.cancelled() and (error := task.exception()):
            log.error("turn ended badly", turn_id=str(turn.turn_id), exc_info=error if turn.stored else None)

    def _adopt(self, turn: OpenTurn, earlier: Sequence[TurnEvent] = ()) -> None:
        """Run a turn of a process that is gone, which has told `earlier` events of it."""
        self._run(turn, time.perf_counter(), ExitStack(), earlier=earlier)

    @property
    def _turns_here(self) -> int:
        return len(self._running) + self._opening

    def _turn_tasks(self, *, ended: bool = True) -> list["asyncio.Task[None]"]:
        """Return the tasks of turns, also of those that are `ended` but for the database, which is away."""
        return [run.task for run in self._running.values() if run.task and (ended or not run.unended)]

    def _begin(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.create_task(work, name=name)
        task.add_done_callback(_log_end)
        self._tasks.append(task)

    async def _listen(self) -> None:
        async for signal in turn_signals(self._services.database):
            match signal:
                case ["next", conversation_id]:
                    self._places.free(UUID(conversation_id))
                case ["stop", turn_id, ("cancelled" | "partial" | "forgotten") as reason]:
                    self._stop_here(UUID(turn_id), reason)
                case ["approval", turn_id, approval_id, ("yes" | "no") as answer]:
                    self._services.approvals.settle(UUID(turn_id), UUID(approval_id), approved=answer == "yes")
                case [
                    "account",
                    coded,
                ]:  # what an authorization server said, to a process that does not wait for it
                    self._hear(urlsafe_b64decode(coded).decode())
                case ["forgotten", user_id]:  # something of the user was removed for good
                    self._services.memory.drop_cached(UUID(user_id))
                    self._services.store.forget(UUID(user_id))
                case _:
                    self._places.free(None)

    def _hear(self, told: str) -> None:
        task = asyncio.create_task(self._services.mcp_servers.hear(told))
        self._heard.add(task)
        task.add_done_callback(self._heard.discard)

    def _stop_here(self, turn_id: UUID, why: Stop) -> None:
        if (run := self._running.get(turn_id)) is None:
            return
        if run.turn.waiting and why != "taken_over":
            self._places.free(run.turn.conversation_id)  # it checks, and finds that it has ended
        else:
            run.stop(why)

    async def _interrupt(self, turn: OpenTurn) -> None:
        """Stop the turn before this one."""
        with contextlib.suppress(DatabaseUnavailable):  # this one then waits for its place
            running = await self._leases.running(turn.tenant_id, turn.conversation_id)
            if running is not None and running != turn.turn_id:
                await self._leases.request_stop(turn.tenant_id, running, "partial")
                self._stop_here(running, "partial")


def _with_budget(request: TurnRequest, settings: Settings) -> TurnRequest:
    """Return the request with the limits that its turn has: its own or the usual ones, and none above the
    highest. Raises `InvalidInput` if its message alone is longer than the tokens that it may use."""
    limits = within(request.input.get("budget", {}), settings.request_budget, settings.request_budget_max)
    if not limits:
        return request
    message = request.input["message"]
    if limits.get("tokens", len(message)) < len(message) and (needed := count_tokens(message)) > limits["tokens"]:
        raise InvalidInput("budget.tokens", f"must be more than {needed}, the tokens of the message alone")
    return replace(request, input={**request.input, "budget": limits})


async def _cancel(tasks: Sequence["asyncio.Task[None]"]) -> None:
    """Cancel tasks until all have ended: a library may swallow a cancellation that coincides with its time-out."""
    while running := [task for task in tasks if not task.done()]:
        for task in running:
            task.cancel()
        await asyncio.wait(running, timeout=_CANCEL_AGAIN_S)


def _log_end(task: "asyncio.Task[None]") -> None:
    """Log that a background task has ended. It should not: without it turns are neither stopped nor adopted."""
    if not task.cancelled():
        log.critical("work of the turn runner has ended", task=task.get_name(), exc_info=task.exception())
