"""How long single steps hold up the event loop, for the longest and strangest input that is accepted.

`python -m benchmarks.loop_steps [--most-ms 50]` sends it over HTTP to the service in this process, with a
scripted model and embedded stores, and prints the longest steps of each kind of input in milliseconds of processor
time of the loop's thread: what else the machine does counts for nothing. Exit code 1 when one is over the limit.
"""

import argparse
import asyncio
import gc
import signal
import sys
import tempfile
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import httpx
import orjson
from rich.console import Console
from rich.table import Table

from services.bootstrap import open_services
from services.engines import migrate_if_owner, open_engines
from services.platform.settings import load_settings
from services.warm_up import warm_up
from tests.support.application import running_turns, served
from tests.support.model_server import ModelServer, Reply

MOST_MS = 50.0
LONGEST = 32_000
_PATIENCE_S = 300.0
_FRAMES = 4
_PIECE_BYTES = 64 * 1024
_ROOT = str(Path(__file__).parents[2])
_WORDS = list("我们昨天去公园看见了一只猫它在树下睡觉气很好风吹过来花开得正红")


@dataclass
class Steps:
    """The longest step of a kind of input, and where the loop was in the midst of it."""

    longest_ms: float = 0.0
    over: int = 0
    where: str = ""
    failed: str = ""


@dataclass
class Watch:
    """The step being measured, and its stack when it takes long."""

    most_ms: float
    steps: Steps = field(default_factory=Steps)
    begun: float = 0.0
    """Wall time of the step that runs; 0 = none runs."""
    seen: str = ""
    collecting_from: float = 0.0

    def note_collection(self, phase: str, about: dict[str, int]) -> None:
        """Note where a step is if it is Python that collects garbage; no other thread runs meanwhile."""
        if phase == "start":
            self.collecting_from = time.thread_time()
        elif self.begun and not self.seen:
            milliseconds = (time.thread_time() - self.collecting_from) * 1000
            if milliseconds > self.most_ms / 3:
                self.seen = f"garbage of generation {about['generation']}, {milliseconds:.0f} ms"

    def run(self, handle: Any) -> None:
        """Run a step and note its processor time."""
        self.seen, self.begun = "", time.perf_counter()
        cpu = time.thread_time()
        try:
            handle._run()
        finally:
            milliseconds = (time.thread_time() - cpu) * 1000
            self.begun = 0.0
            self.steps.over += milliseconds > self.most_ms
            if milliseconds > self.steps.longest_ms:
                self.steps.longest_ms, self.steps.where = milliseconds, self.seen

    def look(self, _: int, frame: FrameType | None) -> None:
        """Note where a step is that already takes long: a signal's handler, also called after long calls of C."""
        if not self.begun or self.seen or time.perf_counter() - self.begun < self.most_ms / 3000:
            return
        frames: list[str] = []
        while frame is not None and len(frames) <= _FRAMES:
            file = frame.f_code.co_filename
            if not frames or (file.startswith(_ROOT) and "site-packages" not in file):
                frames.append(f"{frame.f_code.co_name} ({file.rpartition('/')[2]}:{frame.f_lineno})")
            frame = frame.f_back
        self.seen = " < ".join(frames)


class _Step:
    """A handle that is measured."""

    __slots__ = ("_cancelled", "_handle", "_watch")

    def __init__(self, handle: Any, watch: Watch) -> None:
        self._handle, self._watch = handle, watch
        self._cancelled = handle._cancelled

    def _run(self) -> None:
        self._watch.run(self._handle)


class _Ready(deque[Any]):
    """The handles that the loop runs next."""

    watch: Watch

    def popleft(self) -> Any:
        return _Step(super().popleft(), self.watch)


class WatchedLoop(asyncio.SelectorEventLoop):
    """A loop that measures each of its steps."""

    def __init__(self, watch: Watch) -> None:
        super().__init__()
        self._ready = _Ready()
        self._ready.watch = watch


class Rig:
    """The service, and one user who has said much."""

    def __init__(self, http: httpx.AsyncClient, model: ModelServer) -> None:
        self._http = http
        self._model = model

    async def turn(self, message: str, *, user: str = "u", session: str = "s", answer: str = "Well.") -> None:
        """One message, answered."""
        self._model.default = Reply([answer])
        body = {"user_id": user, "session_id": session, "message": message}
        response = await self._http.post("/api/v1/chat", json=body)
        if response.status_code != httpx.codes.OK:
            raise RuntimeError(response.text)

    async def twice(self, message: str, session: str) -> None:
        """Play a message in a conversation that holds it already, and in one that does not."""
        await self.turn(message, session=session)
        await self.turn(message, session=session)

    async def say_much(self, user: str, session: str, messages: int, characters: int = 60) -> None:
        """Import a history."""
        body = await asyncio.to_thread(self._lines, user, session, messages, characters)
        headers = {"Content-Type": "application/x-ndjson"}
        (await self._http.post("/api/v1/import", content=body, headers=headers)).raise_for_status()

    @staticmethod
    def _lines(user: str, session: str, messages: int, characters: int) -> bytes:
        line = {"user_id": user, "session_id": session, "created_at": "2025-01-01T00:00:00Z"}
        lines = []
        for number in range(messages):
            role = "assistant" if number % 2 else "user"
            text = f"{number} {_chinese(characters, number)} The {number}th bicycle of mine is at place {number}."
            lines.append(orjson.dumps({**line, "role": role, "content": text}))
        return b"\n".join(lines)

    async def read_all(self, user: str) -> None:
        """Read everything stored about the user."""
        found = (await self._http.get("/api/v1/conversations", params={"user_id": user})).json()["items"]
        for conversation in found:
            path = f"/api/v1/conversations/{conversation['id']}/messages"
            (await self._http.get(path, params={"limit": 200})).raise_for_status()

    async def search(self, user: str, query: str) -> None:
        """Search what is remembered, and read the longest answer."""
        body = {"query": query, "top_k": 100}
        (await self._http.post(f"/api/v1/users/{user}/episodes/search", json=body)).raise_for_status()

    async def resend(self, count: int, characters: int) -> None:
        """A long history as a client of `/v1` sends it, and the same with a changed end."""

        def body(last: str) -> bytes:
            said = [
                {"role": "assistant" if number % 2 else "user", "content": _chinese(characters, number)}
                for number in range(count)
            ]
            messages = [*said, {"role": "user", "content": last}]
            return orjson.dumps({"model": "default", "user": "resender", "messages": messages})

        for last in ("And now?", "changed"):
            content = await asyncio.to_thread(body, last)
            headers = {
                "Content-Type": "application/json",
                "Content-Length": str(len(content)),
                "X-Session-Id": "resent",
            }
            response = await self._http.post("/v1/chat/completions", content=_pieces(content), headers=headers)
            response.raise_for_status()

    async def upload(self, size: int) -> None:
        """A document of this many bytes, which is far too long to be taken in."""
        await self._http.post("/api/v1/knowledge", json={"prefix": "big", "description": "Bicycles."})
        text = await asyncio.to_thread(("My bicycle is red. " * (size // 19)).encode)
        headers = {"Content-Type": "text/plain"}
        await self._http.post(
            "/api/v1/knowledge/big/documents", params={"source": "b.txt"}, content=text, headers=headers
        )

    async def send_images(self, count: int = 2, status: int = httpx.codes.OK) -> None:
        """Images as large as they may be."""
        self._model.default = Reply(["A picture."])
        image = "data:image/png;base64," + "iVBORw0KGgo" + "A" * 11_000_000
        images = [image[: len(image) - len(image.partition(",")[2]) % 4]] * count
        body = {"user_id": "artist", "session_id": "images", "message": "What is this?", "images": images}
        content = await asyncio.to_thread(orjson.dumps, body)
        headers = {"Content-Type": "application/json", "Content-Length": str(len(content))}
        response = await self._http.post("/api/v1/chat", content=_pieces(content), headers=headers)
        if response.status_code != status:
            raise RuntimeError(response.text)


async def _pieces(content: bytes) -> AsyncIterator[bytes]:
    """Yield a body in pieces, so that no step is the client's."""
    for begin in range(0, len(content), _PIECE_BYTES):
        yield content[begin : begin + _PIECE_BYTES]


def _chinese(characters: int, seed: int = 0) -> str:
    step = 7 + seed % 5
    return "".join(_WORDS[(number * step + number // 11 + seed) % len(_WORDS)] for number in range(characters))


def _english(characters: int) -> str:
    return "".join(f"word{number} of the story about place {number % 97} and " for number in range(2_000))[
        :characters
    ]


INPUTS: dict[str, Callable[[Rig], Awaitable[None]]] = {
    "a short message": lambda rig: rig.twice("How are you?", "short"),
    "32,000 Chinese characters": lambda rig: rig.twice(_chinese(LONGEST), "chinese"),
    "32,000 of many English words": lambda rig: rig.twice(_english(LONGEST), "english"),
    "one Chinese character 32,000 times": lambda rig: rig.twice("哈" * LONGEST, "ha"),
    "one letter 32,000 times": lambda rig: rig.twice("a" * LONGEST, "a"),
    "one word 6,400 times": lambda rig: rig.twice("very " * (LONGEST // 5), "very"),
    "忘掉 16,000 times": lambda rig: rig.twice("忘掉" * (LONGEST // 2), "forget-zh"),
    "forget that, again and again": lambda rig: rig.twice("forget that " * (LONGEST // 12), "forget-en"),
    "not X but Y, again and again": lambda rig: rig.twice("not tea but coffee, " * (LONGEST // 20), "not-but"),
    "不是甲是乙，again and again": lambda rig: rig.twice("不是茶是咖啡，" * (LONGEST // 7), "not-but-zh"),
    "days, again and again": lambda rig: rig.twice("yesterday last week on 3 May " * (LONGEST // 29), "days"),
    "昨天上周 again and again": lambda rig: rig.twice("昨天上周三月五号我们聊了什么" * (LONGEST // 14), "days-zh"),
    "32,000 digits": lambda rig: rig.twice("1234567890" * (LONGEST // 10), "digits"),
    "32,000 question marks": lambda rig: rig.twice("?" * LONGEST, "questions"),
    "questions without end": lambda rig: rig.twice("why? what? 为什么？" * (LONGEST // 15), "asking"),
    "code": lambda rig: rig.twice("def f(x):\n    return {'a': [x ** 2, (1, 2)]}\n" * (LONGEST // 46), "code"),
    "brackets": lambda rig: rig.twice("([{<" * (LONGEST // 4), "brackets"),
    "spaces": lambda rig: rig.twice("x" + " " * (LONGEST - 2) + "x", "spaces"),
    "lines": lambda rig: rig.twice("- a\n" * (LONGEST // 4), "lines"),
    "an answer of 200,000 characters": lambda rig: rig.turn("Tell.", session="answer", answer=_chinese(200_000)),
    "two images of 8 MB": lambda rig: rig.send_images(),
    "a message after two images of 8 MB": lambda rig: rig.turn("And now?", user="artist", session="images"),
    "the same images once more": lambda rig: rig.send_images(),
    "a message after four images of 8 MB": lambda rig: rig.turn("And now?", user="artist", session="images"),
    "six images of 8 MB, which are refused": lambda rig: rig.send_images(6, status=422),
    "images read": lambda rig: rig.read_all("artist"),
    "a document of 20 MB": lambda rig: rig.upload(20_000_000),
    "10,000 memories imported": lambda rig: rig.say_much("rich", "long", 20_000),
    "10,000 memories asked": lambda rig: rig.turn("Where is my 77th bicycle? 它在树下睡觉吗", user="rich"),
    "10,000 memories, a long question": lambda rig: rig.turn(_chinese(8_000) + _english(8_000), user="rich"),
    "the longest history": lambda rig: rig.turn("And then?", user="rich", session="long"),
    "long messages imported": lambda rig: rig.say_much("writer", "long", 60, 30_000),
    "long messages read": lambda rig: rig.read_all("writer"),
    "long messages searched": lambda rig: rig.search("writer", "What did I say of the bicycle?"),
    "everything about my job, again and again": lambda rig: rig.twice(
        "forget everything about my job, " * (LONGEST // 32), "everything"
    ),
    "我喜欢甲，不喜欢乙，again and again": lambda rig: rig.twice(
        "我不喜欢茶，我喜欢咖啡。" * (LONGEST // 12), "likes-zh"
    ),
    "200 messages of 5,000 characters resent, then changed": lambda rig: rig.resend(200, 5_000),
    "long messages remembered": lambda rig: rig.turn("What did I say of the bicycle?", user="writer"),
}


async def measure(watch: Watch, only: str = "") -> dict[str, Steps]:
    """Send every kind of input."""
    found: dict[str, Steps] = {}
    with (
        tempfile.TemporaryDirectory(prefix="anamnesis-steps-", ignore_cleanup_errors=True) as name,
        ModelServer() as model,
    ):
        await asyncio.to_thread(Path(name).chmod, 0o755)  # root's PostgreSQL has another account
        settings = load_settings(
            data_dir=Path(name) / "data",
            llm_model="scripted",
            llm_base_url=model.base_url,
            llm_api_key="k",
            memory_filing_quiet_s=0,
            memory_filing_pause_s=0,
        )
        async with AsyncExitStack() as stack:
            engines = await stack.enter_async_context(open_engines(settings))
            await migrate_if_owner(engines)
            services = await stack.enter_async_context(open_services(settings, engines))
            services.jobs.start_worker()
            runner = await stack.enter_async_context(running_turns(services))
            url = await stack.enter_async_context(served(services, runner))
            http = await stack.enter_async_context(httpx.AsyncClient(base_url=url, timeout=_PATIENCE_S))
            await warm_up(settings)
            await http.get("/nowhere")  # every route is analysed, as the end of the start does
            rig = Rig(http, model)
            await rig.turn("Hello.")
            gc.collect()
            gc.freeze()
            gc.set_threshold(10_000, 100, 100)
            await asyncio.sleep(0)  # a step that was ours
            for kind, send in INPUTS.items():
                if only in kind:
                    watch.steps = found[kind] = Steps()
                    try:
                        await send(rig)
                    except httpx.TimeoutException:
                        found[kind].failed = "no answer in time"
                    await asyncio.sleep(1)  # the jobs that it causes count, too
                    sys.stderr.write(f"{kind}: {found[kind]}\n")
            watch.steps = Steps()
    return found


def run(most_ms: float = MOST_MS, only: str = "") -> dict[str, Steps]:
    """Measure in a loop that is watched."""
    watch = Watch(most_ms)
    gc.callbacks.append(watch.note_collection)
    signal.signal(signal.SIGALRM, watch.look)
    signal.setitimer(signal.ITIMER_REAL, most_ms / 4000, most_ms / 4000)
    try:
        with asyncio.Runner(loop_factory=lambda: WatchedLoop(watch)) as runner:
            return runner.run(measure(watch, only))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def show(found: dict[str, Steps], most_ms: float) -> None:
    """Print the table."""
    table = Table(title="Steps of the event loop")
    for heading in ("input", "longest, ms", f"over {most_ms:g} ms", "where"):
        table.add_column(heading, overflow="fold")
    for kind, steps in found.items():
        table.add_row(kind, f"{steps.longest_ms:.0f}", str(steps.over), steps.failed or steps.where)
    Console(width=170).print(table)


def main() -> None:
    """Read the options, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.loop_steps", description=__doc__)
    parser.add_argument("--most-ms", type=float, default=MOST_MS)
    parser.add_argument("--only", default="", help="inputs with this in their name")
    options = parser.parse_args()
    found = run(options.most_ms, options.only)
    show(found, options.most_ms)
    sys.exit(any(steps.over or steps.failed for steps in found.values()))


if __name__ == "__main__":
    main()
