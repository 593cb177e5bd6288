"""One service with its embedded engines, clients who talk to it all the time, and what they were told."""

import asyncio
import contextlib
import random
import re
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil
import psycopg

from services.platform.embedded_postgres import SERVICE_ROLE, EmbeddedPostgres
from tests.chaos.checks import broken_promises, query
from tests.chaos.client import Client, Told
from tests.chaos.cluster import echo, echoed
from tests.support.model_server import ModelServer
from tests.support.ports import free_port
from tests.support.service_process import ServiceProcess

_SPEAKERS = 4
_PAUSE_S = 0.1
_ASK_EVERY_S = 1.0
_ASK_FOR_S = 110.0
_USABLE_WITHIN_S = 60.0
_SETTLED_WITHIN_S = 60.0
_MILVUS_WITHIN_S = 60.0
_ADVICE = re.compile(r"again|\bANAMNESIS_[A-Z]|anamnesis [a-z]|shorter|\bfree\b", re.IGNORECASE)
"""In an error that says what to do."""


@dataclass
class Asked:
    """One plain request, which is not repeated."""

    message: str
    seconds: float = 0.0
    status: int = 0
    """0 = nothing came."""
    problem: dict[str, Any] = field(default_factory=dict)
    finish: str = ""
    """How the answer ended."""


@dataclass
class Findings:
    """What a fault did."""

    usable_s: float = 0.0
    """Seconds from the end of the fault to the next turn that was answered."""
    asked: list[Asked] = field(default_factory=list)
    told: list[Told] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What was seen beside the turns, such as the line with which a start was refused."""
    broken: list[str] = field(default_factory=list)

    @property
    def messages(self) -> int:
        """How many were sent."""
        return len(self.told) + len(self.asked)

    @property
    def slowest_s(self) -> float:
        """The longest wait for an answer or an error."""
        return max((one.seconds for one in self.asked), default=0.0)

    @property
    def errors(self) -> dict[str, str]:
        """Every error that was told, by its code."""
        found: dict[str, str] = {}
        for one in self.told:
            found |= {each["code"]: each["detail"] for each in one.refused}
            found |= {content["code"]: content["message"] for status, content in one.last if status == "error"}
        return found | {one.problem["code"]: one.problem["detail"] for one in self.asked if one.problem}

    def expect(self, what: str, is_so: bool) -> None:
        """Note a promise as broken unless it was kept."""
        if not is_so:
            self.broken.append(what)


class Rig:
    """The service, and what can be done to it."""

    def __init__(self, data: Path, settings: Mapping[str, str]) -> None:
        """Take the data folder, and settings without their prefix."""
        self.data = data
        self.model = ModelServer()
        self.findings = Findings()
        self.redis: subprocess.Popen[bytes] | None = None
        self.environment: dict[str, str] = {}
        self.settings: dict[str, Any] = dict(settings)
        self._services: list[ServiceProcess] = []

    @property
    def service(self) -> ServiceProcess:
        """The one that is talked to."""
        return self._services[0]

    @property
    def database_url(self) -> str:
        """The service's own, over PostgreSQL's socket."""
        return EmbeddedPostgres(self.data).url(SERVICE_ROLE)

    @property
    def postmaster(self) -> psutil.Process:
        """PostgreSQL's first process."""
        return psutil.Process(int((self.data / "postgres" / "postmaster.pid").read_text().split("\n", 1)[0]))

    @property
    def postgres(self) -> list[psutil.Process]:
        """All processes of PostgreSQL."""
        return [self.postmaster, *self.postmaster.children()]

    async def milvus(self) -> psutil.Process:
        """The embedded Milvus, once the service has started it to index what clients say."""
        assert self.service.process
        service, folder = psutil.Process(self.service.process.pid), str(self.data / "milvus")
        async with asyncio.timeout(_MILVUS_WITHIN_S):
            while not (found := [each for each in service.children() if folder in each.cmdline()]):  # noqa: ASYNC110
                await asyncio.sleep(_PAUSE_S)
        return found[0]

    def another(self, data: Path | None = None) -> ServiceProcess:
        """A service over the same data folder, or over another one; not yet started."""
        made = ServiceProcess(
            data or self.data,
            free_port(),
            environment=self.environment,
            llm_model="scripted",
            llm_base_url=self.model.base_url,
            log_level="warning",
            **self.settings,
        )
        self._services.append(made)
        return made

    async def refused(self, service: ServiceProcess) -> str:
        """Start a service that must refuse to; return what it said."""
        try:
            await asyncio.to_thread(service.start)
        except AssertionError as error:
            text = str(error).partition("\n")[2].strip()
            self.findings.notes.append(text.splitlines()[-1] if text else "ended without a word")
            self.findings.expect("a start was refused with a traceback", "Traceback" not in text)
            return text
        self.findings.broken.append("a start that had to be refused was not")
        return ""

    async def start(self) -> None:
        """Start the model and the service."""
        self.model.__enter__()
        self.model.default = echo
        await asyncio.to_thread(self.another().start)

    async def stop(self) -> None:
        """End everything that is left."""
        for process in self._services:
            if process.alive:
                await asyncio.to_thread(process.stop)
        self.model.__exit__(None, None, None)

    @asynccontextmanager
    async def clients(self) -> AsyncIterator[None]:
        """Talk all the time: some who repeat what breaks off, and every second somebody who does not."""
        stop = asyncio.Event()
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
        async with httpx.AsyncClient(timeout=25, limits=limits) as http:
            speaking = [asyncio.create_task(self._speak(http, speaker, stop)) for speaker in range(_SPEAKERS)]
            asking = asyncio.create_task(self._ask_often(http, stop))
            try:
                await asyncio.sleep(2)
                yield
            finally:
                stop.set()
                await asyncio.gather(*speaking, asking)

    async def _speak(self, http: httpx.AsyncClient, speaker: int, stop: asyncio.Event) -> None:
        chance = random.Random(speaker)
        client = Client(http, [self.service.url], chance)
        number = 0
        while not stop.is_set():
            one = Told(f"speaker-{speaker}", "s", f"message-{speaker}-{number}")
            self.findings.told.append(one)
            try:
                await client.send(one)
            except TimeoutError:
                self.findings.broken.append(f"{one.message} was never told its end")
            number += 1
            await asyncio.sleep(_PAUSE_S)

    async def _ask_often(self, http: httpx.AsyncClient, stop: asyncio.Event) -> None:
        async with asyncio.TaskGroup() as group:
            number = 0
            while not stop.is_set():
                group.create_task(self.ask(http, f"question-{number}", f"asker-{number % 20}"))
                number += 1
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(stop.wait(), _ASK_EVERY_S)

    async def ask(
        self, http: httpx.AsyncClient, message: str, user: str, *, answer: Callable[[str], str] | None = echoed
    ) -> Asked:
        """Send a message once and note what came; `answer` gives the right one, None = any is right."""
        one = Asked(message)
        self.findings.asked.append(one)
        begun = time.monotonic()
        body = {"user_id": user, "session_id": "s", "message": message}
        with contextlib.suppress(httpx.HTTPError):
            response = await http.post(f"{self.service.url}/api/v1/chat", json=body, timeout=_ASK_FOR_S)
            one.status = response.status_code
            if one.status != httpx.codes.OK:
                one.problem = response.json()
            else:
                one.finish = response.json()["finish"]
            if one.finish and answer is not None and response.json()["answer"] != answer(message):
                self.findings.broken.append(f"{message} was answered {response.text[:200]}")
        one.seconds = time.monotonic() - begun
        return one

    async def until_usable(self) -> None:
        """Ask until a turn is answered; note how long that took."""
        begun = time.monotonic()
        number = 0
        async with httpx.AsyncClient() as http:
            while time.monotonic() - begun < _USABLE_WITHIN_S:
                one = await self.ask(http, f"afterwards-{number}", f"late-{number}")
                self.findings.asked.remove(one)  # its wait is counted here
                if one.status == httpx.codes.OK:
                    self.findings.usable_s = time.monotonic() - begun
                    return
                number += 1
                await asyncio.sleep(_PAUSE_S)
        self.findings.usable_s = float("inf")
        self.findings.broken.append(f"not usable within {_USABLE_WITHIN_S:.0f} s")

    async def until_settled(self) -> None:
        """Wait until no turn is in progress."""
        begun = time.monotonic()
        left = 1
        while left and time.monotonic() - begun < _SETTLED_WITHIN_S:
            with contextlib.suppress(psycopg.Error):
                left = query(
                    self.database_url, "SELECT count(*) FROM turns WHERE status IN ('running', 'waiting')"
                )[0][0]
            await asyncio.sleep(0.2)
        self.findings.expect(f"{left} turns are left unfinished", not left)

    def check(self) -> None:
        """Compare what was told with what is stored, and read every error and the log."""
        findings = self.findings
        findings.broken += broken_promises(findings.told, self.database_url, echoed)
        stored = Counter(
            row[0] for row in query(self.database_url, "SELECT content FROM messages WHERE role = 'user'")
        )
        findings.broken += [
            f"{one.message} got {one.status} and is stored {stored[one.message]} times"
            for one in findings.asked
            if stored[one.message] > 1 or (one.status == httpx.codes.OK and not stored[one.message])
        ]
        findings.broken += [
            f"{code} does not say what to do: {text}"
            for code, text in findings.errors.items()
            if not _ADVICE.search(text)
        ]
        log = self.service.earlier + self.service.text
        if "Traceback" in log:
            findings.broken.append(f"a defect in the log: …{log[log.index('Traceback') - 300 :][:3000]}")


def new_folder() -> "tempfile.TemporaryDirectory[str]":
    """A folder that PostgreSQL's account can reach; it goes with its context."""
    folder = tempfile.TemporaryDirectory(prefix="faults-", ignore_cleanup_errors=True)
    Path(folder.name).chmod(0o755)
    return folder


def copy_of(template: Path, folder: Path) -> Path:
    """A copy of a prepared data folder, with its owners and rights."""
    data = folder / "data"
    subprocess.run(["cp", "-a", template, data], check=True)
    return data
