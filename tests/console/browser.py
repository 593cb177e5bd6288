"""A browser with a page whose errors, foreign requests and reports of its policy are noted."""

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from playwright.async_api import Browser, Page, Request, async_playwright, expect

SCREENS = (
    *("chat", "known", "memory", "core", "timeline", "recall", "proposals", "promises", "operations", "settings"),
    *("knowledge", "experts", "experiments", "users", "jobs", "model", "health", "keys"),
)
PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
_NOTE_REPORTS = "addEventListener('securitypolicyviolation', (e) => console.error('policy', e.violatedDirective))"
_PATIENCE_MS = 30_000
"""For a page on a machine that does much else."""
expect.set_options(timeout=_PATIENCE_MS)


@dataclass
class Watched:
    """A page, and what must not happen in it."""

    page: Page
    url: str
    faults: list[str] = field(default_factory=list)

    async def tab(self) -> "Watched":
        """Another tab of the same browser, watched as well."""
        other = Watched(await self.page.context.new_page(), self.url, self.faults)
        other.watch()
        return other

    def watch(self) -> None:
        """Note what goes wrong in the page from now on."""
        self.page.set_default_timeout(_PATIENCE_MS)
        self.page.on("pageerror", lambda error: self.faults.append(f"error: {error}"))
        self.page.on("dialog", lambda dialog: self.faults.append(f"dialog: {dialog.message}"))
        self.page.on("console", lambda said: self.faults.append(said.text) if said.type == "error" else None)
        self.page.on("request", self._note_foreign)

    def _note_foreign(self, asked: Request) -> None:
        if not asked.url.startswith((self.url, "data:", "blob:")):
            self.faults.append(f"asked for {asked.url}")

    def expect_faults(self, *words: str) -> None:
        """Take back the faults that hold one of the words: the test brought them about."""
        self.faults[:] = [fault for fault in self.faults if not any(word in fault for word in words)]

    async def say(self, message: str) -> None:
        """Send a message, and do not wait."""
        await self.page.locator(".composer textarea").fill(message)
        await self.page.keyboard.press("Enter")

    async def open(self, place: str = "") -> None:
        """Open a screen, and wait until it has its heading."""
        await self.page.goto(f"{self.url}/console#/{place}")
        await self.page.locator("main h1:visible, main .composer").first.wait_for()

    async def ask(self, message: str) -> None:
        """Send a message, and wait until it is answered."""
        answers = await self.page.locator(".why-button").count()
        await self.say(message)
        await self.page.locator(".why-button").nth(answers).wait_for()


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    """The system's Chromium; the test is skipped where there is none."""
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        pytest.skip("no Chromium on this machine; install the system's package")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        await browser.close()


@asynccontextmanager
async def watched(
    browser: Browser, url: str, *, language: str = "en", width: int = 1280, height: int = 800, dark: bool = False
) -> AsyncIterator[Watched]:
    """A page of a new profile, at whose end nothing may have gone wrong."""
    context = await browser.new_context(
        viewport={"width": width, "height": height},
        locale="zh-CN" if language == "zh" else "en-GB",
        color_scheme="dark" if dark else "light",
        permissions=["clipboard-read", "clipboard-write"],
    )
    await context.add_init_script(_NOTE_REPORTS)
    page = await context.new_page()
    seen = Watched(page, url)
    seen.watch()
    yield seen
    await context.close()
    assert not seen.faults, seen.faults
