"""Dialogs: Enter sends them, and they say what is missing."""

import pytest
from playwright.async_api import Browser, expect

from tests.console.browser import watched
from tests.support.model_server import ModelServer, Reply

pytestmark = pytest.mark.slow


async def test_enter_sends_every_dialog_and_what_is_missing_is_said(
    browser: Browser, url: str, model_server: ModelServer
) -> None:
    model_server.default = Reply(["Bruno."])
    async with watched(browser, url) as seen:
        page = seen.page
        dialog = page.get_by_role("dialog")
        await seen.open()
        await seen.ask("My dog is called Bruno.")
        await page.get_by_role("button", name="Rename").click()
        await dialog.get_by_label("Name of the chat").fill("About the dog")
        await page.keyboard.press("Enter")
        await expect(dialog).to_have_count(0)
        await expect(page.locator(".chat-head h1")).to_have_text("About the dog")

        await seen.open("knowledge")
        await page.get_by_role("button", name="New knowledge base").click()
        await dialog.get_by_label("Name").fill("My Manuals")
        await expect(dialog).to_contain_text("not of small letters")
        await expect(dialog.get_by_role("button", name="Save")).to_be_disabled()
        await dialog.get_by_label("Name").fill("manuals")
        await expect(dialog).to_contain_text("Say what its documents are about.")
        await dialog.get_by_label("What its documents are about").fill("Machines")
        await dialog.get_by_label("Name").press("Enter")
        await expect(page.locator("main h1")).to_have_text("manuals")

        for place, button, label, text in (
            ("experts", "New expert", "Name", "advisor"),
            ("experiments", "New experiment", "Name", "more"),
        ):
            await seen.open(place)
            await page.get_by_role("button", name=button).click()
            await expect(dialog).to_contain_text("The name is missing.")
            if place == "experts":
                await dialog.get_by_label("Instructions").fill("Be brief.")
            await dialog.get_by_label(label).fill(text)
            await expect(dialog.locator("[type=submit]")).to_be_enabled()
            await page.keyboard.press("Enter")
            await expect(page.locator("main .card h2", has_text=text)).to_be_visible()
        await seen.open("keys")
        await page.get_by_role("button", name="New key").click()
        await dialog.get_by_label("Name").fill("a key")
        await expect(dialog.locator("[type=submit]")).to_be_enabled()
        await page.keyboard.press("Enter")
        await expect(dialog.locator(".secret")).to_be_visible()
        await page.keyboard.press("Escape")

        await seen.open("experts")  # a question without a field: its button has the focus
        await page.locator(".card", has_text="advisor").get_by_role("button", name="Remove").click()
        await expect(dialog.locator("[type=submit]")).to_be_focused()
        await page.keyboard.press("Enter")
        await expect(page.locator("main .card h2", has_text="advisor")).to_have_count(0)
        await seen.open("users")
        await page.get_by_role("button", name="Erase").click()
        await dialog.get_by_role("textbox").fill("me")
        await expect(dialog.locator("[type=submit]")).to_be_enabled()
        await page.keyboard.press("Enter")
        await expect(dialog).to_contain_text("was erased")
