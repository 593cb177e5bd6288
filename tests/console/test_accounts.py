"""A user's own account at a server of tools, connected by the button under the call that asks for it."""

import json
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from tests.api.test_tool_accounts import address, authorization
from tests.console.browser import watched
from tests.support.authorization_server import AuthorizationServer
from tests.support.model_server import ModelServer, Reply, ToolCall
from tests.support.ports import free_port
from tests.support.service_process import ServiceProcess

pytestmark = [pytest.mark.process, pytest.mark.slow]

__all__ = ["address", "authorization"]  # fixtures


async def test_the_button_connects_in_another_window_and_the_tools_are_there(
    browser: Browser, address: str, authorization: AuthorizationServer, model_server: ModelServer, tmp_path: Path
) -> None:
    desk = {"url": address, "oauth": {"per_user": True, "issuer": authorization.issuer}, "timeout_s": 60}
    process = ServiceProcess(
        tmp_path / "data",
        free_port(),
        mcp_servers=json.dumps({"mcpServers": {"desk": desk}}),
        llm_model="scripted",
        llm_base_url=model_server.base_url,
        llm_api="chat",
    ).start()
    try:
        async with watched(browser, process.url) as seen:
            page = seen.page
            await seen.open()
            model_server.script(Reply(tool_calls=[ToolCall("desk_connect", {})]), Reply(["Connect it first."]))
            await seen.ask("What is in my notes?")
            async with page.context.expect_page() as opened:
                await page.get_by_role("button", name="Connect your account at desk").click()
            window = await opened.value
            await expect(window.locator("body")).to_contain_text("Connected.")
            assert await window.evaluate("window.opener") is None
            await window.close()
            model_server.script(Reply(tool_calls=[ToolCall("desk_whoami", {})]), Reply(["Ada."]))
            await seen.ask("Who am I there?")
            call = page.locator(".tool-calls details").last
            await call.locator("summary").click()
            await expect(call.locator(".result")).to_contain_text("ada@example.com")
    finally:
        process.end()
