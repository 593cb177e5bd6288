"""Every screen and dialog of the console, checked by axe-core, which no lock of this repository can hold.

`AXE_CORE` is the path of its source, such as `node_modules/axe-core/axe.min.js` after `npm install axe-core`.
"""

import os
from pathlib import Path

import httpx
import pytest
from playwright.async_api import Browser

from tests.console.browser import SCREENS, Watched, watched
from tests.support.model_server import ModelServer, Reply

pytestmark = [
    pytest.mark.slow,
    pytest.mark.soak,
    pytest.mark.skipif("AXE_CORE" not in os.environ, reason="AXE_CORE names no axe-core"),
]

OPENED_BY = {
    "known": ("Where it comes from", "Wrong…", "Forget…"),
    "memory": ("Open", "Write a memory"),
    "core": ("New section", "Versions"),
    "knowledge": ("New knowledge base",),
    "knowledge/manuals": ("Edit", "Remove"),
    "experts": ("New expert", "Prompt", "Edit"),
    "experiments": ("New experiment", "Report"),
    "users": ("Edit", "Erase", "Import"),
    "jobs": ("Why?",),
    "keys": ("New key",),
}
"""Buttons that open something, by their screens."""
IN_WHY = ("Ranks and source", "This is wrong…", "Forget…")
_AXE = Path(os.environ.get("AXE_CORE", os.devnull)).read_text("utf-8")
_STILL = """() => Promise.allSettled(document.getAnimations()
  .filter(({effect}) => effect.getComputedTiming().endTime < Infinity).map(({finished}) => finished))"""
"""Until all that fades in is there: what is half there has too little contrast."""
_VIOLATIONS = """axe.run().then(({violations}) => violations.map(
  ({id, nodes}) => [id, nodes.slice(0, 2).map(({html}) => html.slice(0, 200))]))"""


async def _check(seen: Watched, where: str) -> None:
    # Through the debugger: the page's own policy lets no script in.
    await seen.page.evaluate(_AXE)
    await seen.page.evaluate(_STILL)
    seen.faults += [f"{where}: {violation}" for violation in await seen.page.evaluate(_VIOLATIONS)]


async def _check_screen(seen: Watched, screen: str) -> None:
    page = seen.page
    await seen.open(screen)
    await page.locator(".skeleton").first.wait_for(state="detached")
    await _check(seen, screen)
    for name in OPENED_BY.get(screen, ()):
        await page.locator("main").get_by_role("button", name=name, exact=True).first.click()
        await page.locator("dialog .skeleton").first.wait_for(state="detached")
        await _check(seen, f"{screen}: {name}")
        await page.keyboard.press("Escape")


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
async def test_no_screen_and_no_dialog_keeps_anybody_out(
    browser: Browser, url: str, client: httpx.AsyncClient, model_server: ModelServer, width: int, *, dark: bool
) -> None:
    (await client.post("/api/v1/demo")).raise_for_status()
    base = {"prefix": "manuals", "description": "Machines"}
    (await client.post("/api/v1/knowledge-bases", json=base)).raise_for_status()
    answer = "# Walnuts\n\n## Roasted\n\n| g | min |\n| --- | --- |\n| 120 | 8 |\n\n```python\nprint(8)\n```"
    model_server.default = Reply([answer])
    async with watched(browser, url, width=width, dark=dark) as seen:
        page = seen.page
        await seen.open()
        await _check(seen, "the first page")
        await page.evaluate("localStorage.setItem('anamnesis.user', 'demo:lin')")
        await page.reload()
        await seen.ask("Which nuts can I use in a carrot cake?")
        await _check(seen, "a chat")
        await page.locator(".why-button").click()
        await page.locator(".drawer .stack").wait_for()
        await _check(seen, "Why?")
        for name in IN_WHY:
            await page.locator(".drawer").get_by_role("button", name=name).first.click()
            await _check(seen, f"Why?: {name}")
            if name != IN_WHY[0]:
                await page.keyboard.press("Escape")
        await page.locator(".drawer").get_by_role("button", name="Answer again without it").first.click()
        await page.locator(".column .prose").nth(1).wait_for()
        await _check(seen, "versions side by side")
        await page.keyboard.press("Escape")
        for name in ("Rename", "Remove the conversation"):
            await page.get_by_role("button", name=name).click()
            await _check(seen, f"a chat: {name}")
            await page.keyboard.press("Escape")
        model_server.script(Reply(status=401))
        await seen.say("And now?")
        await page.locator(".turn .failure").wait_for()
        await _check(seen, "a failed answer")
        seen.expect_faults("Failed to load resource")
        for screen in dict.fromkeys([*SCREENS[1:], *OPENED_BY]):
            await _check_screen(seen, screen)
        if width > 800:
            await page.locator(".account .user").click()
            await _check(seen, "the choice of a user")
