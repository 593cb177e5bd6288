"""A document given in a chat: the answer names it, a click opens its passage, and it can be taken out again."""

import httpx
import pytest
from playwright.async_api import Browser, FilePayload, expect

from tests.console.browser import watched
from tests.support.model_server import ModelServer, Reply

pytestmark = pytest.mark.in_clear

_LEASE: FilePayload = {
    "name": "lease.md",
    "mimeType": "text/markdown",
    "buffer": b"# Lease\n\nThe rent of the flat is 912 euros a month.\n",
}


async def test_a_document_is_given_in_a_new_chat_and_its_passage_opened(
    browser: Browser, url: str, client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    model_server.default = Reply(["It costs 912 euros [1]."])
    async with watched(browser, url) as seen:
        page = seen.page
        await seen.open()
        async with page.expect_file_chooser() as choosing:
            await page.get_by_role("button", name="Add pictures or documents").click()
        await (await choosing.value).set_files([_LEASE])
        await expect(page.locator(".given .chip.good")).to_have_text("lease.md")
        await seen.ask("What does the flat cost?")
        await page.locator(".sources").get_by_role("button", name="lease.md").click()
        await expect(page.get_by_role("dialog", name="lease.md")).to_contain_text(
            "The rent of the flat is 912 euros"
        )
        await page.keyboard.press("Escape")
        await page.get_by_role("button", name="Source 1").click()
        await expect(page.get_by_role("dialog", name="lease.md")).to_contain_text("912 euros")
        await page.keyboard.press("Escape")
        await page.reload()
        await page.get_by_role("button", name="1 document").click()
        dialog = page.get_by_role("dialog", name="Documents of this chat")
        await dialog.get_by_role("button", name="Remove").click()
        await expect(dialog).not_to_contain_text("lease.md")
    (stored,) = (await client.get("/api/v1/conversations")).json()["items"]
    path = f"/api/v1/users/me/sessions/{stored['session_id']}/documents"
    assert (await client.get(path)).json() == {"items": [], "next": None}
