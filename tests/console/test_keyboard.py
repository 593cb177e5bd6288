"""The main paths by keyboard alone."""

import pytest
from playwright.async_api import Browser, Page, expect

from tests.console.browser import watched
from tests.support.model_server import ModelServer, Reply

pytestmark = pytest.mark.soak

NAME = """() => {
  const node = document.activeElement
  if (!node.matches('button, a, article, summary')) return ''
  return `${node.getAttribute('aria-label') ?? ''} ${node.textContent ?? ''}`.trim()
}"""


async def _tab_to(page: Page, name: str, *, most: int = 80) -> None:
    """Press Tab until the thing of this name has the focus."""
    for _ in range(most):
        await page.keyboard.press("Tab")
        if name in str(await page.evaluate(NAME)):
            return
    raise AssertionError(f"Tab does not reach {name!r}")


async def test_a_user_talks_sees_why_and_forgets_by_keyboard(
    browser: Browser, url: str, model_server: ModelServer
) -> None:
    model_server.default = Reply(["Bruno."])
    async with watched(browser, url) as seen:
        page = seen.page
        await seen.open()
        await page.keyboard.type("My dog is called Bruno.")  # the message has the focus
        await page.keyboard.press("Enter")
        await page.locator(".why-button").wait_for()
        await page.keyboard.press("Control+Shift+O")
        await expect(page.locator(".welcome")).to_be_visible()
        await page.keyboard.type("What is my dog called?")
        await page.keyboard.press("Enter")
        await page.locator(".why-button").wait_for()
        await _tab_to(page, "Why?")
        await page.keyboard.press("Enter")
        await expect(page.locator(".item").first).to_contain_text("Bruno")
        await _tab_to(page, "Never use here")
        await page.keyboard.press("Enter")
        await expect(page.locator(".item").first).to_contain_text("not used in this conversation")
        await _tab_to(page, "Undo")
        await page.keyboard.press("Enter")
        await expect(page.locator(".item").first).not_to_contain_text("not used in this conversation")
        await _tab_to(page, "Answer again without it")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("dialog", name="Side by side").locator(".column")).to_have_count(2)
        await page.keyboard.press("Escape")
        await expect(page.locator(".versions")).to_contain_text("2/2")

        await page.keyboard.press("/")
        await expect(page.locator(".composer textarea")).to_be_focused()
        await page.locator("body").press("Shift+Tab")
        await _tab_to(page, "Skip")
        await _tab_to(page, "Details")
        await page.keyboard.press("Enter")
        await _tab_to(page, "Archive")
        await page.keyboard.press("Enter")
        await page.locator("article").first.wait_for()
        await _tab_to(page, "Open")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("dialog")).to_contain_text("Bruno")
        await _tab_to(page, "Forget…")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("dialog", name="Forget this?")).to_be_visible()
        await _tab_to(page, "Forget")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("dialog")).to_have_count(0)
