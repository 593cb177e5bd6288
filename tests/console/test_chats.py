"""The list of chats, and the settings of the user and the browser."""

import re
from pathlib import Path

import httpx
from playwright.async_api import Browser, expect

from tests.console.browser import watched
from tests.services.transfer.exports import EXPORTS, written
from tests.support.model_server import ModelServer, Received, Reply


def _names(received: Received) -> Reply:
    """A model that answers, and names a chat about bread."""
    prompt = str(received.prompt)
    if "Name the conversation below" not in prompt:
        return Reply(["Gladly."])
    return Reply(["Bread in the cold" if "bread" in prompt else "Plan my week"])


async def test_chats_are_named_renamed_pinned_searched_and_saved(
    browser: Browser, url: str, model_server: ModelServer
) -> None:
    model_server.default = _names
    async with watched(browser, url) as seen:
        page, chats = seen.page, seen.page.locator(".conversations")
        for message in ("How does rye bread rise?", "Plan my week"):
            await seen.open("chat")
            await page.locator(".welcome").wait_for()
            await seen.ask(message)
        await expect(chats.locator("a")).to_have_text(["Plan my week", "Bread in the cold"])
        await chats.get_by_role("link", name="Bread in the cold").click()
        await expect(page.locator(".bubble")).to_have_text("How does rye bread rise?")
        await page.get_by_role("button", name="Rename").click()
        await page.get_by_label("Name of the chat").fill("The loaf")
        await page.get_by_role("button", name="Save", exact=True).click()
        await expect(page.locator(".chat-head h1")).to_have_text("The loaf")
        await page.get_by_role("button", name="Pin", exact=True).click()
        await expect(chats.locator("h2").first).to_have_text("Pinned")
        await expect(chats.locator("a").first).to_have_text("The loaf")
        async with page.expect_download() as saving:
            await page.get_by_role("button", name="Save as a file").click()
        saved = await saving.value
        assert saved.suggested_filename == "The loaf.md"
        text = _read(await saved.path())
        assert text.startswith("# The loaf")
        assert "How does rye bread rise?" in text
        await page.get_by_label("Search chats").fill("WEEK")
        await expect(chats.locator("a")).to_have_text(["Plan my week"])
        await page.get_by_label("Search chats").fill("zebra")
        await expect(chats).to_contain_text("Nothing was found")


def _read(path: Path) -> str:
    return path.read_text("utf-8")


async def test_settings_are_kept(browser: Browser, url: str, client: httpx.AsyncClient, tmp_path: Path) -> None:
    archive = written(tmp_path, "chatgpt", EXPORTS["chatgpt"], zipped=True)
    async with watched(browser, url) as seen:
        page = seen.page
        await seen.open()
        await page.get_by_role("link", name="Settings").click()
        await page.get_by_label("Display name").fill("Robin")
        await page.get_by_label("Time zone").fill("Asia/Tokyo")
        await page.get_by_label("Language of answers").select_option("zh-CN")
        await page.get_by_label("Remember what I say, and use it").uncheck()
        await page.get_by_role("button", name="Save", exact=True).click()
        await expect(page.locator(".toast")).to_have_text("Saved.")
        await page.get_by_label("Appearance").select_option("dark")
        assert await page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(24, 24, 22)"
        await page.get_by_label("Begin every chat as a temporary one").check()
        async with page.expect_file_chooser() as choosing:
            await page.get_by_role("button", name="Choose the archive…").click()
        await (await choosing.value).set_files(archive)
        await expect(page.locator("main")).to_contain_text("1 conversation, 3 messages")
        await expect(page.locator(".conversations a")).to_have_text(["Bruno 🐕"])
        await page.reload()
        await expect(page.get_by_label("Appearance")).to_have_value("dark")
        await page.get_by_role("link", name="New chat").first.click()
        await expect(page.locator(".chat-head")).to_contain_text("Not remembered")
        await seen.open("settings")
        await page.get_by_role("combobox", name="Language", exact=True).select_option("zh")
        await expect(page.locator("h1:visible")).to_have_text("设置")
        await expect(page.get_by_role("link", name="使用指南")).to_have_attribute(
            "href", re.compile(r"/guide/zh/$")
        )
    user = (await client.get("/api/v1/users/me")).json()
    assert (user["display_name"], user["timezone"], user["locale"]) == ("Robin", "Asia/Tokyo", "zh-CN")
    assert user["memory"] is False
