"""Ten thousand memories in one list."""

import json
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from playwright.async_api import Browser, expect

from tests.console.browser import watched
from tests.support.transfer import LINES

pytestmark = [pytest.mark.anyio, pytest.mark.soak]

MANY = 10_000
MOST_IN_THE_PAGE = 60


def _line(number: int) -> str:
    episode: dict[str, object] = {
        "kind": "episode",
        "user_id": "me",
        "episode_type": "preference" if number % 100 == 0 else "context",
        "content": f"Memory number {number}, " + "and more of it " * (number % 9),
        "importance": 0.5,
        "origin": "user_said",
        "created_at": (datetime(2025, 1, 1, tzinfo=UTC) + timedelta(minutes=number)).isoformat(),
        "sources": [],
    }
    return json.dumps(episode)


async def test_every_memory_of_ten_thousand_is_reached(
    browser: Browser, url: str, client: httpx.AsyncClient
) -> None:
    lines = "\n".join(map(_line, range(MANY)))
    assert (await client.post("/api/v1/import", content=lines, headers=LINES, timeout=300)).json()[
        "imported"
    ] == MANY
    async with watched(browser, url) as seen:
        page = seen.page
        await seen.open("memory")
        cards = page.locator("article.card")
        await expect(cards.first).to_contain_text(f"Memory number {MANY - 1},")
        assert await cards.count() < MOST_IN_THE_PAGE

        await cards.first.focus()
        await page.keyboard.press("ArrowDown")
        await expect(page.locator("article:focus")).to_have_attribute("aria-posinset", "2")
        await page.keyboard.press("End")
        last = page.locator(f'article[aria-posinset="{MANY}"]')
        await expect(last).to_be_focused(timeout=60_000)
        await expect(last).to_contain_text("Memory number 0,")
        assert await last.get_attribute("aria-setsize") == str(MANY)
        assert await cards.count() < MOST_IN_THE_PAGE
        await page.keyboard.press("ArrowUp")
        await expect(page.locator("article:focus")).to_contain_text("Memory number 1,")

        await page.mouse.move(700, 400)
        await page.mouse.wheel(0, -300_000)  # what had the focus is scrolled away
        await expect(page.locator(f'article[aria-posinset="{MANY - 1}"]')).to_have_count(0)
        await page.keyboard.press("Home")
        await expect(page.locator("article:focus")).to_have_attribute("aria-posinset", "1")
        await page.keyboard.press(" ")
        await expect(page.locator(".bulk")).to_contain_text("1 chosen")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("dialog")).to_contain_text(f"Memory number {MANY - 1},")
        await page.keyboard.press("Escape")
        await expect(page.locator("article:focus")).to_have_attribute("aria-posinset", "1")

        await page.get_by_label("Kind").select_option("preference")
        await expect(page.locator(".small-text")).to_contain_text("100 memories")
        await page.get_by_role("searchbox").fill("number 4200")
        await expect(cards).to_have_count(1)
        await expect(cards).to_contain_text("Memory number 4200,")
