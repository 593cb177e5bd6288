"""A promise is made, moved and settled in the console."""

import pytest
from playwright.async_api import Browser, expect

from tests.console.browser import watched

pytestmark = pytest.mark.anyio


async def test_a_promise_is_made_moved_and_settled(browser: Browser, url: str) -> None:
    async with watched(browser, url) as seen:
        page = seen.page
        await seen.open()
        await seen.ask("Hello")
        await seen.open("promises")
        await page.get_by_role("button", name="New promise").click()
        dialog = page.get_by_role("dialog", name="New promise")
        await dialog.get_by_label("What about").fill("call the dentist")
        await dialog.get_by_label("When").fill("after the exam")
        await dialog.get_by_role("button", name="Save").click()
        await expect(dialog).to_contain_text("afterexam")
        seen.faults.clear()  # the refusal, as the browser notes it
        await dialog.get_by_label("When").fill("every Monday at 9")
        await dialog.get_by_role("button", name="Save").click()
        card = page.locator("li.card")
        await expect(card).to_contain_text("call the dentist")
        await expect(card).to_contain_text("every Monday at 9")
        await card.get_by_role("button", name="Later").click()
        await page.get_by_role("dialog", name="Later").get_by_label("When").fill("tomorrow at noon")
        await page.get_by_role("dialog", name="Later").get_by_role("button", name="Save").click()
        await expect(card).not_to_contain_text("every Monday")
        await card.get_by_role("button", name="Done").click()
        await expect(card).to_have_count(0)
        await page.get_by_role("tab", name="Done").click()
        await expect(card).to_contain_text("call the dentist")
