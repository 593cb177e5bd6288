"""The demo in the browser: loaded and removed with one click each."""

import httpx
import pytest
from playwright.async_api import Browser, expect

from tests.console.browser import watched

pytestmark = [pytest.mark.slow, pytest.mark.settings(llm_model=None, llm_base_url=None, llm_api_key=None)]

_LOADS_MS = 120_000


async def test_every_answer_of_the_demo_has_its_why_and_all_of_it_goes(
    browser: Browser, url: str, client: httpx.AsyncClient
) -> None:
    async with watched(browser, url) as seen:
        page = seen.page
        await seen.open()
        look = page.get_by_role("button", name="Or look around")
        await look.click()
        await page.locator(".drawer .stack").wait_for(timeout=_LOADS_MS)
        await expect(page.locator(".drawer .recalled .item").first).to_contain_text("hazelnuts")
        await expect(page.locator(".account .user")).to_contain_text("Lin (demo)")
        await page.keyboard.press("Escape")
        async with page.expect_event("load"):  # The page is loaded again; what follows must not meet the old one.
            await page.get_by_role("button", name="Back to your own chats").click()
        await expect(page.locator(".account .user")).to_contain_text("me")
        for place in ("experts", "experiments", "users"):
            await seen.open(place)
            await page.locator(".skeleton").first.wait_for(state="detached")
            assert "demo" not in await page.locator("main").inner_text(), place
        await seen.open()
        await expect(page.locator(".composer select")).to_have_count(0)
        await page.locator(".account .user").click()
        users = page.get_by_role("dialog", name="Choose a user")
        await expect(users).to_be_visible()
        await expect(users.get_by_role("button", name="Lin")).to_have_count(0)
        await page.keyboard.press("Escape")
        await expect(users).to_be_hidden()
        await look.click()  # it is there already
        await expect(page.locator(".demo-bar")).to_be_visible()
        await page.locator(".drawer .stack").wait_for()
        await page.keyboard.press("Escape")
        await seen.open("timeline")
        await page.locator(".calendar .has").first.wait_for()
        await expect(page.locator("main")).not_to_contain_text("There is no summary")
        await page.locator(".conversations").get_by_role("link", name="The spare key").click()
        await expect(page.locator(".why-button")).to_have_count(3)
        await expect(page.locator(".change")).to_have_count(3)
        await page.locator(".why-button").first.click()
        await expect(page.locator(".drawer .stack")).to_be_visible()
        await page.keyboard.press("Escape")
        await seen.open("proposals")
        await expect(page.locator("main .card")).to_contain_text("teak chairs")
        await seen.open("experts")
        await expect(page.locator("main .card h2").last).to_have_text("demo-workshop")
        await page.get_by_role("button", name="Remove them").click()
        await expect(page.locator(".welcome")).to_be_visible()
    assert (await client.get("/api/v1/users")).json()["items"] == []
