"""The demo in the browser: loaded and removed with one click each."""

import httpx
import pytest
from playwright.async_api import Browser, expect

from tests.console.browser import watched

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow,
    pytest.mark.settings(llm_model=None, llm_base_url=None, llm_api_key=None),
]


async def test_every_answer_of_the_demo_has_its_why_and_all_of_it_goes(
    browser: Browser, url: str, client: httpx.AsyncClient
) -> None:
    async with watched(browser, url) as seen:
        page = seen.page
        await seen.open()
        await page.get_by_role("button", name="Or look around").click()
        await page.locator(".why-button").first.wait_for()
        async with page.expect_event("load"):  # The page is loaded again; what follows must not meet the old one.
            await page.get_by_role("button", name="Back to your own chats").click()
        await expect(page.locator(".account .user")).to_contain_text("me")
        await page.evaluate("localStorage.setItem('anamnesis.user', 'demo:lin')")
        await page.reload()
        await expect(page.locator(".demo-bar")).to_be_visible()
        await seen.open("timeline")
        await page.locator(".calendar .has").first.wait_for()
        await page.locator(".conversations").get_by_role("link", name="The spare key").click()
        await expect(page.locator(".why-button")).to_have_count(3)
        await expect(page.locator(".change")).to_have_count(3)
        await page.locator(".why-button").first.click()
        await expect(page.locator(".drawer .stack")).to_be_visible()
        await page.keyboard.press("Escape")
        await seen.open("proposals")
        await expect(page.locator("main .card")).to_contain_text("teak chairs")
        await seen.open("knowledge")
        await expect(page.locator("main .card h2")).to_have_text("demo-workshop")
        await page.get_by_role("button", name="Remove them").click()
        await expect(page.locator(".welcome")).to_be_visible()
    assert (await client.get("/api/v1/users")).json()["items"] == []
