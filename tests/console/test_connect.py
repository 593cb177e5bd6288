"""The first start: a model is connected in the browser, and answers without a file edited."""

import httpx
import pytest
from playwright.async_api import Browser, expect

from tests.console.browser import watched
from tests.support.model_server import ModelServer, Reply
from tests.support.service_process import ServiceProcess

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


async def test_a_model_is_connected_without_a_file_edited(
    browser: Browser, unconnected: ServiceProcess, model_server: ModelServer
) -> None:
    async with watched(browser, unconnected.url) as seen:
        await seen.open()
        form = seen.page.get_by_role("form", name="Which model answers?")
        await form.get_by_role("button", name="Ollama").click()
        await expect(form.get_by_label("Address")).to_have_value("http://127.0.0.1:11434/v1")
        await form.get_by_role("button", name="Other").click()
        await form.get_by_label("Address").fill(model_server.base_url.removesuffix("/v1"))
        await form.get_by_role("button", name="List its models").click()
        await expect(form.get_by_role("alert")).to_contain_text("usually ends in /v1")
        await form.get_by_label("Address").fill(model_server.base_url)
        await form.get_by_label("Key, if it needs one").fill("k")
        await form.get_by_role("button", name="List its models").click()
        await expect(form.get_by_label("Model", exact=True)).to_have_value("scripted")
        model_server.script(Reply(["Hello there."]))
        await form.get_by_role("button", name="Try it").click()
        await expect(form.get_by_role("status")).to_contain_text("Hello there.")
        await form.get_by_role("button", name="Use it").click()
        await expect(form).to_have_count(0, timeout=60_000)
        model_server.script(Reply(["Good day from the model."]))
        await seen.ask("Good morning")
        await expect(seen.page.locator(".prose").last).to_contain_text("Good day from the model.")
        seen.expect_faults("ERR_", "503")  # while it starts again
    async with httpx.AsyncClient(base_url=unconnected.url, timeout=60) as client:
        shown = (await client.get("/api/v1/model")).json()
    assert (shown["source"], shown["model"], shown["restarts"]) == ("console", "scripted", True)
    assert unconnected.text.count("Anamnesis is ready") == 2
