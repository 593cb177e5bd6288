"""Numbers on screen are those of the API."""

import httpx
import pytest
from playwright.async_api import Browser, Locator

from tests.console.browser import watched
from tests.support.model_server import ModelServer, Reply

pytestmark = [pytest.mark.anyio, pytest.mark.soak]


async def _numbers(place: Locator) -> list[str]:
    return [text.split()[0].replace(",", "") for text in await place.all_inner_texts()]


async def test_every_number_is_the_one_that_the_api_gives(
    browser: Browser, url: str, client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    model_server.default = Reply(["Certainly."])
    async with watched(browser, url) as seen:
        page = seen.page
        await seen.open()
        await seen.ask("My dog is called Bruno, and I live in Hamburg.")
        await seen.open("chat")
        await seen.ask("What is my dog called?")
        turns = (await client.get("/api/v1/turns")).json()["items"]
        why = (await client.get(f"/api/v1/turns/{turns[0]['id']}/why")).json()

        await page.locator(".why-button").click()
        await page.locator(".stack").wait_for()
        sections = page.locator(".sections .num:not(small)")
        assert await _numbers(sections) == [str(each["tokens"]) for each in why["sections"]]
        total = sum(each["tokens"] for each in why["sections"])
        assert f"{total} of {why['budget']:,} tokens" in await page.locator("dialog").inner_text()
        shown = [each for each in why["recall"]["items"] if each["shown"]]
        heading = await page.locator("h3", has_text="What was recalled").inner_text()
        left = len(why["recall"]["items"]) - len(shown)
        assert f"{len(shown)} shown, {left} left out" in heading
        likely = await _numbers(page.locator(".item .facts small.num"))
        assert likely == [f"{each['likelihood']:.0%}" for each in shown]
        assert await page.locator(".waterfall li").count() == len(why["nodes"])

        await seen.open("users")
        (user,) = (await client.get("/api/v1/users")).json()["items"]
        await page.locator("tbody td.num").first.wait_for()
        cells = await _numbers(page.locator("td.num"))
        assert cells == [str(user[name]) for name in ("conversations", "messages", "episodes")]

        await seen.open("memory")
        memories = (await client.get("/api/v1/users/me/episodes")).json()["items"]
        await page.locator("article").first.wait_for()
        assert f"{len(memories)} memories" in await page.locator(".small-text").inner_text()

        await seen.open("jobs")
        rows = page.locator("tbody tr")
        await rows.nth(len(turns) - 1).wait_for()
        assert await rows.count() == len(turns)
        tokens = await _numbers(page.locator("td.num:nth-of-type(6)"))
        assert tokens == [str(each["usage"]["total_tokens"]) for each in turns]

        await seen.open("recall")
        await page.get_by_role("searchbox", name="What would you ask?").fill("dog")
        await page.keyboard.press("Enter")
        await page.locator(".legs").first.wait_for()
        found = (await client.post("/api/v1/users/me/episodes/search", json={"query": "dog", "top_k": 10})).json()[
            "items"
        ]
        assert f"{len(found)} found" in await page.locator("main").inner_text()
        scores = [f"{each['likelihood']:.0%}" for each in found]
        percents = await page.locator("ol.recalled .num").all_inner_texts()
        assert [each for each in percents if each.endswith("%")] == scores
