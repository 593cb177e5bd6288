"""A call that changes something, in a browser: the user sees it whole, and says yes or no."""

import json
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect
from pydantic import SecretStr

from services.bootstrap import Services
from services.platform.settings import Settings
from tests.console.browser import watched
from tests.support.fork_server import ROOT
from tests.support.model_server import ModelServer, Reply, ToolCall

pytestmark = [pytest.mark.soak, pytest.mark.process]


@pytest.fixture
def settings(settings: Settings, tmp_path: Path) -> Settings:
    program = {"command": sys.executable, "args": ["-m", "tests.support.tool_server"], "cwd": str(ROOT)}
    servers = {"desk": {**program, "env": {"NOTES": str(tmp_path / "notes.txt")}}}
    return settings.model_copy(update={"mcp_servers": SecretStr(json.dumps(servers))})


@pytest.mark.parametrize(("button", "told"), [("Allow", "Written."), ("Refuse", "does not agree")])
async def test_the_user_is_asked(
    browser: Browser, url: str, services: Services, model_server: ModelServer, button: str, told: str
) -> None:
    await services.mcp_servers.settled(timedelta(seconds=60))
    call = ToolCall("desk_write_note", {"text": "Buy milk."})
    model_server.script(Reply(tool_calls=[call]), Reply(["Done."]))
    async with watched(browser, url) as seen:
        page = seen.page
        await seen.open()
        await page.locator(".composer textarea").fill("Note that I need milk.")
        await page.keyboard.press("Enter")
        await expect(page.locator(".approval")).to_contain_text("Buy milk.")
        await page.get_by_role("button", name=button, exact=True).click()
        await expect(page.locator(".approval")).to_have_count(0)
        await expect(page.locator(".cost")).to_have_count(1)
        await page.locator(".tool-calls summary").click()
        await expect(page.locator(".tool-calls .result")).to_contain_text(told)
