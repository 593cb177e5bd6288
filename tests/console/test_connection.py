"""Two tabs on one conversation, and a connection that is lost."""

import re

import httpx
import pytest
from playwright.async_api import Browser, expect

from tests.console.browser import watched
from tests.support.cutting_proxy import CuttingProxy
from tests.support.model_server import ModelServer, Reply

SLOW = Reply([f"word{n} " for n in range(30)], gap_s=0.05)
WHOLE = re.compile(r"^" + " ".join(f"word{n}" for n in range(30)) + r"\s*$")


@pytest.mark.soak
async def test_two_tabs_show_the_same_conversation_as_it_goes_on(
    browser: Browser, url: str, client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    async with watched(browser, url) as first:
        await first.open()
        await first.ask("Good morning")
        second = await first.tab()
        await second.page.goto(first.page.url)
        await expect(second.page.locator(".bubble")).to_have_text("Good morning")

        model_server.default = SLOW
        await first.say("Tell me a lot")
        await expect(second.page.locator(".prose").last).to_contain_text("word3")
        await second.say("And this waits")  # behind the turn of the other tab
        for tab in (first, second):
            await expect(tab.page.locator(".bubble")).to_have_text(
                ["Good morning", "Tell me a lot", "And this waits"]
            )
            await expect(tab.page.locator(".why-button")).to_have_count(3)
            await expect(tab.page.locator(".prose").nth(1)).to_have_text(WHOLE)
            await expect(tab.page.locator(".prose").nth(2)).to_have_text(WHOLE)
    (conversation,) = (await client.get("/api/v1/conversations")).json()["items"]
    turns = (await client.get(f"/api/v1/conversations/{conversation['id']}/turns")).json()["items"]
    assert [each["status"] for each in turns] == ["completed"] * 3


async def test_an_answer_is_complete_and_not_doubled_after_the_connection_was_lost(
    browser: Browser, url: str, client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    model_server.default = SLOW
    port = int(url.rsplit(":", 1)[1])
    with CuttingProxy(port, cut_at=b"word3 ", goes_away=True) as proxy:
        async with watched(browser, f"http://127.0.0.1:{proxy.port}") as seen:
            page = seen.page
            await seen.open()
            await seen.say("Tell me a lot")
            await expect(page.locator(".status")).to_contain_text("connection was lost")
            proxy.is_away = False
            await page.locator(".why-button").wait_for()
            await expect(page.locator(".prose")).to_have_text(WHOLE)

            model_server.default = Reply(["Yes."])
            proxy.is_away = True
            await seen.say("Is anybody there?")
            await expect(page.locator(".toast.bad")).to_contain_text("cannot be reached")
            await expect(page.locator(".composer textarea")).to_have_value("Is anybody there?")
            proxy.is_away = False
            await page.keyboard.press("Enter")
            await page.locator(".why-button").nth(1).wait_for()
            await expect(page.locator(".bubble")).to_have_text(["Tell me a lot", "Is anybody there?"])
            seen.expect_faults("net::ERR_")
    (conversation,) = (await client.get("/api/v1/conversations")).json()["items"]
    messages = (await client.get(f"/api/v1/conversations/{conversation['id']}/messages")).json()["items"]
    assert [each["role"] for each in messages] == ["user", "assistant"] * 2
