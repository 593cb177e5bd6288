"""Errors and background work, in the reader's language."""

from typing import Any

from playwright.async_api import Browser, expect

from tests.console.browser import Watched, watched

_SAYS = """({ code, detail, reasons }) =>
  Promise.all([import('./console/static/ui.js'), import('./console/static/api.js')])
  .then(([{ messageOf }, { Problem }]) => messageOf(new Problem(422, code, detail, reasons)))"""


async def _message(seen: Watched, code: str, detail: str, reason: dict[str, Any] | None = None) -> str:
    said: str = await seen.page.evaluate(
        _SAYS, {"code": code, "detail": detail, "reasons": [reason] if reason else []}
    )
    return said


async def test_errors_and_background_work_are_told_in_chinese(browser: Browser, url: str) -> None:
    async with watched(browser, url, language="zh") as seen:
        await seen.open()
        assert await _message(seen, "not_found", "There is no user 'x'.") == "没有找到。"
        taken = await _message(
            seen, "invalid_input", "prefix: is taken", {"field": "prefix", "code": "other", "limits": {}}
        )
        assert taken.startswith("“名称”不被接受：")
        assert "taken" not in taken
        assert await _message(seen, "llm_timeout", "") == "模型没有及时回答。"
        assert await _message(seen, "other", "What it says.") != "What it says."
        await seen.open("health")
        await expect(seen.page.locator("main")).to_contain_text("个等待，")
        assert "waiting" not in await seen.page.locator("main").inner_text()
        rebuilt = {"state": "ok", "latency_ms": None, "name": "milvus"}
        rebuilt["detail"] = "embedded; its indexes are being rebuilt: 321 of 1677 done"
        answer = {"state": "ok", "dependencies": [rebuilt]}
        await seen.page.route("**/readyz", lambda route: route.fulfill(json=answer))
        await seen.page.reload()
        await expect(seen.page.locator("main")).to_contain_text("内置；正在重建索引：已完成 321，共 1677")
