"""A temporary chat in a browser."""

import httpx
import pytest
from playwright.async_api import Browser, expect

from tests.console.browser import watched
from tests.support.model_server import ModelServer

pytestmark = pytest.mark.soak


async def test_a_temporary_chat_goes_on_and_leaves_nothing(
    browser: Browser, url: str, client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    async with watched(browser, url) as seen:
        page = seen.page
        await seen.open()
        await page.get_by_role("button", name="Temporary chat").click()
        for count, message in enumerate(("Keep nothing of this", "What did I say?"), 1):
            await page.locator(".composer textarea").fill(message)
            await page.keyboard.press("Enter")
            await expect(page.locator(".cost")).to_have_count(count)
        assert "Keep nothing of this" in model_server.requests[-1].said
    assert (await client.get("/api/v1/conversations")).json()["items"] == []


async def test_a_conversation_begins_in_a_space(browser: Browser, url: str, client: httpx.AsyncClient) -> None:
    async with watched(browser, url) as seen:
        await seen.open()
        await seen.page.get_by_label("Space", exact=True).fill("garden")
        await seen.ask("The roses need water")
        await expect(seen.page.locator(".chat-head")).to_contain_text("garden")
    (conversation,) = (await client.get("/api/v1/conversations")).json()["items"]
    assert conversation["space"] == "garden"
