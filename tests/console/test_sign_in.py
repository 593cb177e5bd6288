"""Sign-in in a browser."""

import pytest
from playwright.async_api import Browser, expect

from services.bootstrap import Services
from services.identity.api_keys import ApiKeys
from services.identity.tenants import DEFAULT_TENANT
from tests.console.browser import watched

pytestmark = [pytest.mark.soak, pytest.mark.settings(auth="api_key", host="0.0.0.0")]


async def test_a_session_that_ends_asks_for_the_key_again(browser: Browser, url: str, services: Services) -> None:
    keys = ApiKeys(services.database)
    first, secret = await keys.create(DEFAULT_TENANT, "browser", ["chat", "memory:read"])
    _, other = await keys.create(DEFAULT_TENANT, "browser", ["chat", "memory:read"])
    async with watched(browser, url) as seen:
        page = seen.page
        await page.goto(f"{url}/console")
        await page.get_by_label("API key or token").fill("wrong")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("alert")).to_contain_text("not accepted")
        await page.get_by_label("API key or token").fill(secret)
        await page.keyboard.press("Enter")
        await page.locator(".welcome").wait_for()
        assert secret not in str(await page.evaluate("JSON.stringify({...localStorage, ...sessionStorage})"))
        await seen.ask("Hello")
        await keys.revoke(DEFAULT_TENANT, first.id)
        await page.locator(".composer textarea").fill("Still there?")
        await page.keyboard.press("Enter")
        await page.get_by_label("API key or token").fill(other)
        await page.keyboard.press("Enter")
        await expect(page.locator(".composer textarea")).to_have_value("Still there?")
        seen.expect_faults("401")
