"""Cost of the console for its reader: first paint, bytes, tokens on screen, frames, long answers.

`python -m benchmarks.console [--tokens 500]`

Against the service in a separate process, with a scripted model, in the system's Chromium without a window.
A second client reads the same turn over plain HTTP: how much later than there a token is in a painted frame is
what the browser and the console add.
"""

import argparse
import asyncio
import json
import os
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx
from playwright.async_api import Browser, Page

from benchmarks.processes import free_port
from tests.console.browser import chromium
from tests.support.model_server import ModelServer, Reply
from tests.support.service_process import ServiceProcess

TOKENS_PER_S = 100
FRAME_MS = 1000 / 60
_LOADS = 7
_LENGTHS = (12_500, 25_000, 50_000)

# When each token is in a painted frame: the task behind the frame in which the page was changed. Changes outside
# of a frame's callbacks are painted with the next frame.
_WATCH = """
window.painted = []
window.frames_ms = []
let inFrame = false
const real = window.requestAnimationFrame.bind(window)
window.requestAnimationFrame = (call) => real((at) => {
  inFrame = true
  call(at)
  queueMicrotask(() => { inFrame = false }) // after the observer has been called
})
const now = () => performance.timeOrigin + performance.now()
const afterPaint = (call) => {
  const { port1, port2 } = new MessageChannel()
  port1.onmessage = call
  port2.postMessage(0)
}
let seen = 0
new MutationObserver(() => {
  const found = document.querySelector('.prose')?.textContent.match(/tok\\d+ /g)?.length ?? 0
  if (found <= seen) return
  const [from, to] = [seen, found]
  seen = found
  const note = () => { for (let n = from; n < to; n++) window.painted[n] = now() }
  if (inFrame) afterPaint(note)
  else real(() => afterPaint(note))
}).observe(document, { childList: true, subtree: true, characterData: true })
let last = 0
const tick = (at) => { if (last) window.frames_ms.push(at - last); last = at; real(tick) }
real(tick)
"""
_PAINT = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
_TRANSFERRED = """(() => {
  const all = [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]
  const files = all.filter(({ name }) => !name.includes('/api/'))
  return [files.length, files.reduce((sum, { transferSize }) => sum + transferSize, 0)]
})()"""


@dataclass(frozen=True)
class Streamed:
    """How an answer came."""

    behind_ms: list[float]
    """For each token, how much later than at the plain client it was painted."""
    frames_ms: list[float]
    """Times between frames while it came."""


async def first_loads(browser: Browser, url: str) -> tuple[list[float], int, float]:
    """First contentful paint of new profiles in ms; files, and kilobytes on the wire."""
    paints: list[float] = []
    files, size = 0, 0
    for _ in range(_LOADS):
        context = await browser.new_context(viewport={"width": 1280, "height": 800})
        page = await context.new_page()
        await page.goto(f"{url}/console")
        await page.locator(".composer").wait_for()
        paints.append(await page.evaluate(_PAINT))
        files, size = await page.evaluate(_TRANSFERRED)
        await context.close()
    return paints, files, size / 1000


async def streamed(page: Page, url: str) -> Streamed:
    """Ask, and watch the answer in the page and beside it."""
    await page.goto(f"{url}/console#/chat")
    await page.locator(".composer textarea").fill("Count")
    async with page.expect_request("**/chat/stream"):
        await page.keyboard.press("Enter")
    arrived: list[float] = []
    async with httpx.AsyncClient(base_url=url, timeout=60) as client:
        turn: str | None = None
        while turn is None:
            turns = (await client.get("/api/v1/turns", params={"limit": 1, "status": "running"})).json()["items"]
            turn = turns[0]["id"] if turns else None
        async with client.stream("GET", f"/api/v1/turns/{turn}/stream") as response:
            async for line in response.aiter_lines():
                at = time.time() * 1000
                if line.startswith("data: ") and (event := json.loads(line[6:]))["status"] == "token":
                    arrived += [at] * event["content"].count("tok")
    await page.locator(".why-button").wait_for()
    painted, frames = await page.evaluate("[window.painted, window.frames_ms]")
    # The tokens before the second client had found the turn came to it all at once.
    late = len(arrived) // 10
    behind = [shown - came for shown, came in zip(painted, arrived, strict=False)][late:]
    return Streamed(behind, frames[-int(len(arrived) * 1000 / TOKENS_PER_S / FRAME_MS) : -5])


async def long_answers(browser: Browser, url: str, model: ModelServer) -> list[tuple[int, float, float]]:
    """For each length: characters, seconds until the whole answer is shown, and seconds of the page's thread."""
    measured = []
    paragraph = "Some **bold** words, `code`, a [link](https://example.org) and more to read, line {n}.\n\n"
    for length in _LENGTHS:
        text = "".join(paragraph.format(n=n) for n in range(length // 80))[:length]
        model.default = Reply([text[at : at + 25] for at in range(0, length, 25)])
        page = await (await browser.new_context()).new_page()
        await page.goto(f"{url}/console#/chat")
        await page.locator(".composer").wait_for()
        debugger = await page.context.new_cdp_session(page)
        await debugger.send("Performance.enable")
        before = await _busy_s(debugger)
        begun = time.perf_counter()
        await page.locator(".composer textarea").fill("Write a book")
        await page.keyboard.press("Enter")
        await page.locator(".why-button").wait_for(timeout=120_000)
        measured.append((length, time.perf_counter() - begun, await _busy_s(debugger) - before))
        await page.context.close()
    return measured


async def _busy_s(debugger: object) -> float:
    metrics = await debugger.send("Performance.getMetrics")  # type: ignore[attr-defined]
    return float(next(each["value"] for each in metrics["metrics"] if each["name"] == "TaskDuration"))


def _at(values: Sequence[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


async def main(tokens: int) -> None:
    """Measure, and print."""
    with tempfile.TemporaryDirectory() as folder, ModelServer() as model:
        data = Path(folder) / "data"
        service = ServiceProcess(
            data, free_port(), llm_model="scripted", llm_base_url=model.base_url, llm_api_key="k"
        ).start()
        try:
            async with chromium() as browser:
                print(f"load of the machine: {os.getloadavg()[0]:.1f}")
                paints, files, size = await first_loads(browser, service.url)
                median = statistics.median(paints)
                print(f"first paint: median {median:.0f} ms, {min(paints):.0f} to {max(paints):.0f}")
                print(f"first load: {size:.0f} KB in {files} files")
                context = await browser.new_context(viewport={"width": 1280, "height": 800})
                await context.add_init_script(_WATCH)
                model.default = Reply([f"tok{n} " for n in range(tokens)], gap_s=1 / TOKENS_PER_S)
                got = await streamed(await context.new_page(), service.url)
                await context.close()
                print(
                    f"token on screen after it left the service: median {_at(got.behind_ms, 0.5):.1f} ms, "
                    f"p95 {_at(got.behind_ms, 0.95):.1f}, worst {max(got.behind_ms):.1f}"
                )
                dropped = sum(round(each / FRAME_MS) - 1 for each in got.frames_ms if each > FRAME_MS * 1.5)
                print(f"frames: {len(got.frames_ms)}, dropped {dropped}, longest {max(got.frames_ms):.1f} ms")
                for length, whole_s, busy_s in await long_answers(browser, service.url, model):
                    print(f"{length} characters: shown after {whole_s:.2f} s, the page busy for {busy_s:.2f} s")
        finally:
            service.stop()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, default=500)
    asyncio.run(main(parser.parse_args().tokens))
