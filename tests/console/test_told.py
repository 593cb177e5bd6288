"""What the console says: errors in the reader's language, and the right number."""

import pytest
from playwright.async_api import Browser, expect

from tests.console.browser import Watched, watched

pytestmark = pytest.mark.anyio

_SAYS = """({ code, detail }) => Promise.all([import('./console/static/ui.js'), import('./console/static/api.js')])
  .then(([{ messageOf }, { Problem }]) => messageOf(new Problem(422, code, detail)))"""


async def _message(seen: Watched, code: str, detail: str) -> str:
    said: str = await seen.page.evaluate(_SAYS, {"code": code, "detail": detail})
    return said


async def test_errors_and_background_work_are_told_in_chinese(browser: Browser, url: str) -> None:
    async with watched(browser, url, language="zh") as seen:
        await seen.open()
        assert await _message(seen, "not_found", "There is no user 'x'.") == "没有找到。（There is no user 'x'.）"
        assert await _message(seen, "invalid_input", "prefix: is taken") == "“名称”不被接受：is taken"
        assert await _message(seen, "llm_timeout", "") == "模型没有及时回答。"
        assert await _message(seen, "other", "What it says.") == "What it says."
        await seen.open("health")
        await expect(seen.page.locator("main")).to_contain_text("个等待，")
        assert "waiting" not in await seen.page.locator("main").inner_text()


async def test_in_english_a_count_and_its_noun_agree_and_a_name_is_checked_before_it_is_sent(
    browser: Browser, url: str
) -> None:
    say = """([key, counts]) => import('./console/static/i18n.js').then(({ t }) => t(key, counts))"""
    async with watched(browser, url) as seen:
        await seen.open("knowledge")
        assert await _message(seen, "not_found", "There is no user 'x'.") == "There is no user 'x'."
        assert await _message(seen, "invalid_input", "prefix: is taken") == "Name: is taken"
        for key, counts, said in (
            ("knowledge.counts", {"documents": 1, "chunks": 2}, "1 document · 2 passages"),
            ("knowledge.counts", {"documents": 0, "chunks": 1}, "0 documents · 1 passage"),
            ("why.sources_count", {"n": 1}, "Made from one source"),
            ("why.sources_count", {"n": 2}, "Made from 2 sources"),
        ):
            assert await seen.page.evaluate(say, [key, counts]) == said
        await seen.page.get_by_role("button", name="New knowledge base").click()
        save = seen.page.get_by_role("button", name="Save", exact=True)
        await seen.page.get_by_label("What its documents are about").fill("Wood")
        await seen.page.get_by_label("Name (required)").fill("Some Wood")
        await expect(save).to_be_disabled()
        await seen.page.get_by_label("Name (required)").fill("wood")
        await expect(save).to_be_enabled()
