"""A promise is made, moved and settled in the console, and told in every tab when it is due; webhooks are kept."""

from datetime import UTC, datetime, timedelta

import pytest
from playwright.async_api import Browser, expect

from services.bootstrap import Services
from services.identity.tenants import DEFAULT_TENANT
from services.memory.operations import Trigger
from services.promises.promises import NewPromise
from tests.console.browser import watched

pytestmark = pytest.mark.anyio

_NOTE_NOTIFICATIONS = """window.notified = []; Notification = class extends Notification {
  constructor(title, options) { super(title, options); notified.push(options.body) } }"""


async def test_a_promise_is_made_moved_and_settled(browser: Browser, url: str) -> None:
    async with watched(browser, url) as seen:
        page = seen.page
        await seen.open()
        await seen.ask("Hello")
        await seen.open("promises")
        await page.get_by_role("button", name="New promise").click()
        dialog = page.get_by_role("dialog", name="New promise")
        await dialog.get_by_label("What about").fill("call the dentist")
        await dialog.get_by_label("When").fill("until the exam")
        await dialog.get_by_role("button", name="Save").click()
        await expect(dialog).to_contain_text("“until the exam”")
        seen.faults.clear()  # the refusal, as the browser notes it
        await dialog.get_by_label("When").fill("every Monday at 9")
        await dialog.get_by_role("button", name="Save").click()
        card = page.locator("li.card")
        await expect(card).to_contain_text("call the dentist")
        await expect(card).to_contain_text("every Monday at 9")
        await card.get_by_role("button", name="Later").click()
        await page.get_by_role("dialog", name="Later").get_by_label("When").fill("tomorrow at noon")
        await page.get_by_role("dialog", name="Later").get_by_role("button", name="Save").click()
        await expect(card).not_to_contain_text("every Monday")
        await card.get_by_role("button", name="Done").click()
        await expect(card).to_have_count(0)
        await page.get_by_role("tab", name="Done").click()
        await expect(card).to_contain_text("call the dentist")


async def test_what_is_due_is_told_in_the_chat_and_by_the_browser_and_stands_in_the_timeline(
    browser: Browser, url: str, services: Services
) -> None:
    async with watched(browser, url) as seen:
        page = seen.page
        await page.context.grant_permissions(["notifications"])
        await page.add_init_script(_NOTE_NOTIFICATIONS)
        await seen.open("settings")
        await page.get_by_label("Let this browser notify me").check()
        await seen.open()
        async with page.expect_response("**/events"):
            await seen.ask("Hello")
        [user] = await services.users.page(DEFAULT_TENANT, prefix=None, after=None, limit=5)
        owner = await services.memory.core.owner(DEFAULT_TENANT, user.user_id, "default")
        now = datetime.now(UTC)
        new = NewPromise(text="call Bo", when="in 1 minute", timezone="UTC")
        await services.promises.make(owner, new, Trigger("user"), now)
        await services.keeping.keep(DEFAULT_TENANT, owner.user_id, now + timedelta(minutes=2))
        await expect(page.get_by_role("status")).to_contain_text("Due: call Bo")
        await expect(page.locator("main")).to_contain_text("Reminder: call Bo")
        assert await page.evaluate("notified") == ["call Bo"]
        await seen.open("timeline")
        await expect(page.locator("main li.card").first).to_contain_text("call Bo")


@pytest.mark.settings(webhook_origins="http://127.0.0.1:9")
async def test_a_webhook_is_added_tried_listed_and_told_again(
    browser: Browser, url: str, services: Services
) -> None:
    async with watched(browser, url) as seen:
        page = seen.page
        await seen.open("keys")
        await page.get_by_role("button", name="New webhook").click()
        dialog = page.get_by_role("dialog", name="New webhook")
        await dialog.get_by_label("Address").fill("http://127.0.0.1:9/hook")
        await dialog.get_by_label("Memory changed").check()
        await dialog.get_by_role("button", name="Make").click()
        await expect(page.get_by_role("dialog", name="Webhook added").locator(".secret")).to_contain_text("whsec_")
        await page.get_by_role("button", name="Close").last.click()
        card = page.locator("li.card", has_text="http://127.0.0.1:9/hook")
        await expect(card).to_contain_text("Memory changed")
        await card.get_by_role("button", name="Try it").click()
        await expect(page.get_by_role("status")).to_contain_text("It did not take the message")
        await seen.open()
        await seen.ask("Remind me tomorrow at nine to call Bo")
        [hook] = await services.webhooks.list(DEFAULT_TENANT)
        [waiting] = await services.webhooks.deliveries(DEFAULT_TENANT, hook.id, after=None, limit=5)
        while await services.webhooks.deliver(DEFAULT_TENANT, waiting.id):
            pass
        await seen.open("keys")
        await card.get_by_role("button", name="Deliveries").click()
        told = page.get_by_role("dialog", name="Deliveries")
        await expect(told).to_contain_text("tries: 15")
        await told.get_by_role("button", name="Repeat").click()
        await expect(told).to_contain_text("Waiting")
        await page.keyboard.press("Escape")
        await card.get_by_role("button", name="Remove").click()
        await page.get_by_role("dialog").get_by_role("button", name="Remove").click()
        await expect(card).to_have_count(0)
