"""`anamnesis serve --workers N`: processes that share a port, forked from one that has imported everything."""

import asyncio
import gc
import multiprocessing
import os
import signal
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection, wait
from pathlib import Path
from time import monotonic
from typing import Any

import structlog
import uvloop
from prometheus_client.multiprocess import mark_process_dead

from api.app import analyse_routes
from api.cli import serving
from services.engines import Engines, migrate_if_owner, open_engines
from services.errors import AnamnesisError
from services.llm.embeddings import Embedder
from services.platform.child_process import die_with_parent
from services.platform.milvus import pymilvus
from services.platform.settings import Settings
from services.warm_up import load_now

log = structlog.get_logger(__name__)

_FORK = multiprocessing.get_context("fork")
_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 30.0
_STEADY_S = 60.0
"""Seconds after which a process that ends is assumed to have started successfully."""

Tell = Callable[[Any], None]
"""Tells the supervisor that a process is ready, and what it has."""


@dataclass
class _Child:
    """A process that is kept running; it tells one thing, when it is ready."""

    name: str
    run: Callable[[Tell], None]
    process: multiprocessing.process.BaseProcess | None = None
    pipe: Connection | None = None
    told: Any = None
    began: float = 0.0
    due: float = 0.0
    pause_s: float = _FIRST_PAUSE_S


@dataclass
class Supervisor:
    """Forks the processes, forks those that end again, and passes on signals.

    It has one thread and no event loop, so that it can fork at any time, and keeps the socket open while processes
    come and go: a connection not yet accepted waits for the next process instead of being reset.
    """

    settings: Settings
    listening: socket.socket
    folder: Path
    """For the figures that the processes share, and the socket of their Redis."""
    open_console: bool = False
    _stores: _Child = field(init=False)
    _workers: list[_Child] = field(init=False, default_factory=list)
    _engines: Engines | None = field(init=False, default=None)
    _stopping: signal.Signals | None = field(init=False, default=None)
    _is_served: bool = field(init=False, default=False)
    """Whether the first worker has told where the service is."""

    def run(self, count: int) -> int:
        """Keep `count` workers running until a signal ends them; return the exit code.

        The stores and the first worker start alone: if they fail, for example because of wrong settings,
        everything ends.
        """
        self._load()
        self._woken, waking = socket.socketpair()
        for end in (self._woken, waking):
            end.setblocking(False)
        signal.set_wakeup_fd(waking.fileno())
        for number in _SIGNALS:
            signal.signal(number, lambda *_: None)
        self._stores = _Child("stores", self._keep_stores)
        self._workers = [_Child(f"worker {number}", partial(self._work, number)) for number in range(1, count + 1)]
        code = self._start_alone(self._stores) or self._start_alone(self._workers[0])
        self._is_served = True
        while not code and not self._stopping:
            self._keep()
        return self._end(code)

    def _load(self) -> None:
        """Load what all workers need, so that they share its memory."""
        load_now(self.settings)
        if self.settings.embedding_model is None:
            Embedder.of(self.settings).load()
        pymilvus()
        analyse_routes()
        gc.collect()
        gc.freeze()

    def _start_alone(self, child: _Child) -> int:
        """Wait until a process is ready, or ends, or a signal comes; return its exit code, 0 unless it ended."""
        if self._stopping:
            return 0
        process = self._fork(child)
        while child.process is not None and child.told is None and not self._stopping:
            self._wait(None)
        return 0 if child.told or self._stopping else process.exitcode or 1

    def _keep(self) -> None:
        """Fork what is due, then wait until something happens."""
        missing = [each for each in (self._stores, *self._workers) if each.process is None]
        for child in missing:
            if child.due <= monotonic():
                self._fork(child)
        due = [each.due for each in missing if each.process is None]
        self._wait(max(0.0, min(due) - monotonic()) if due else None)

    def _fork(self, child: _Child) -> multiprocessing.process.BaseProcess:
        hearing, telling = _FORK.Pipe(duplex=False)
        guard = die_with_parent(signal.SIGTERM)
        child.began, child.told = monotonic(), None
        # A signal that came before the process has its own handlers would be lost.
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        try:
            child.process = _FORK.Process(target=_enter, args=(child, telling, guard), name=child.name)
            child.process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        telling.close()  # its end is heard once the process has ended
        child.pipe = hearing
        return child.process

    def _wait(self, seconds: float | None) -> None:
        """Wait for a signal, or until a process tells something or ends."""
        children = {each.pipe: each for each in (self._stores, *self._workers) if each.pipe}
        for ready in wait([self._woken, *children], seconds):
            if ready is self._woken:
                self._take_signals()
            else:
                self._hear(children[ready])  # type: ignore[index]

    def _take_signals(self) -> None:
        for number in self._woken.recv(64):
            self._stop(signal.Signals(number))

    def _stop(self, how: signal.Signals) -> None:
        """Refuse new connections and signal the workers; a second signal is passed on as well."""
        self._stopping = how
        self.listening.close()
        for child in self._workers:
            self._tell(child, how)

    def _hear(self, child: _Child) -> None:
        if child.pipe is None or child.process is None:
            return
        try:
            child.told = child.pipe.recv()
        except EOFError:
            self._bury(child, child.process, child.pipe)
            return
        if child is self._stores:
            before, self._engines = self._engines, child.told
            if before not in {None, self._engines}:  # they are at other addresses now
                for each in self._workers:
                    self._tell(each, signal.SIGTERM)

    def _bury(self, child: _Child, process: multiprocessing.process.BaseProcess, pipe: Connection) -> None:
        process.join()
        pipe.close()
        mark_process_dead(process.pid, self.folder)  # type: ignore[no-untyped-call]
        child.process = child.pipe = None
        if self._stopping or self._engines is None:
            return
        child.pause_s = _FIRST_PAUSE_S if monotonic() - child.began > _STEADY_S else child.pause_s
        child.due = monotonic() + child.pause_s
        code, pause_s = process.exitcode, child.pause_s
        log.error("process ended and is started again", process=child.name, exit_code=code, pause_s=pause_s)
        child.pause_s = min(2 * child.pause_s, _LONGEST_PAUSE_S)

    def _end(self, code: int) -> int:
        """End the workers, then the stores; return the exit code."""
        ending = [each.process for each in (*self._workers, self._stores) if each.process]
        if self._stopping is None:
            self._stop(signal.SIGTERM)
        while any(each.process for each in self._workers):
            self._wait(None)
        self._tell(self._stores, signal.SIGTERM)
        while self._stores.process:
            self._wait(None)
        asked = {0, *(-number for number in _SIGNALS)}
        return code or int(any(each.exitcode not in asked for each in ending))

    @staticmethod
    def _tell(child: _Child, number: signal.Signals) -> None:
        if child.process is not None and child.process.pid is not None:
            os.kill(child.process.pid, number)  # it is not waited for yet, so that its id is still its own

    def _keep_stores(self, tell: Tell) -> None:
        """Keep the embedded stores running."""
        asyncio.run(_keep_stores(self.settings, self.folder, len(self._workers), tell))

    def _work(self, number: int, tell: Tell) -> None:
        """Serve as one of the workers; the first one runs the background jobs."""
        if self._engines is None:
            raise AssertionError("workers start after the stores")
        greets = not self._is_served
        worker = serving.Worker(self._engines, runs_jobs=number == 1, greets=greets, tell=tell)
        started = {"redis_url": self._engines.redis_url} if self._engines.redis_url else {}
        settings = self.settings.model_copy(update=started)
        serve = serving.serve_until_stopped(
            settings, self.listening, worker, open_console=greets and self.open_console
        )
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(serve)


def _enter(child: _Child, pipe: Connection, guard: Callable[[], None] | None) -> None:
    """Do a process's work; Ctrl-C in a terminal reaches only the supervisor."""
    signal.set_wakeup_fd(-1)
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    os.setsid()
    if guard:
        guard()
    structlog.contextvars.bind_contextvars(process=child.name)
    try:
        child.run(pipe.send)
    except AnamnesisError as error:
        sys.exit(f"anamnesis: {error.message}")


async def _keep_stores(settings: Settings, folder: Path, workers: int, tell: Tell) -> None:
    stop = asyncio.Event()
    async with open_engines(settings, alone=True, processes=workers, shared_in=folder) as engines:
        await migrate_if_owner(engines)
        for number in _SIGNALS:
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        tell(engines)
        await stop.wait()
