"""A user without an account at a server of tools, in a browser: the answer shows where they connect it."""

import json
from datetime import timedelta

import pytest
from playwright.async_api import Browser, expect
from pydantic import SecretStr

from services.bootstrap import Services
from services.platform.settings import Settings
from tests.api.test_tool_accounts import address, authorization
from tests.console.browser import watched
from tests.support.authorization_server import AuthorizationServer
from tests.support.model_server import ModelServer, Reply, ToolCall

pytestmark = [pytest.mark.anyio, pytest.mark.soak, pytest.mark.process]

__all__ = ["address", "authorization"]


@pytest.fixture
def settings(settings: Settings, address: str) -> Settings:
    servers = {"desk": {"url": address, "oauth": {"per_user": True}}}
    return settings.model_copy(update={"mcp_servers": SecretStr(json.dumps(servers))})


async def test_the_link_is_shown(
    browser: Browser,
    url: str,
    services: Services,
    model_server: ModelServer,
    authorization: AuthorizationServer,
) -> None:
    await services.mcp_servers.settled(timedelta(seconds=60))
    model_server.script(Reply(tool_calls=[ToolCall("desk_connect", {})]), Reply(["Please connect."]))
    async with watched(browser, url) as seen:
        page = seen.page
        await seen.open()
        await page.locator(".composer textarea").fill("Read my notes.")
        await page.keyboard.press("Enter")
        link = page.get_by_role("link", name="Connect your account at desk")
        await expect(link).to_have_count(1)
        where = await link.get_attribute("href")
        assert (where or "").startswith(f"{authorization.issuer}/authorize?")
