"""The screen *Model*: what answers, another in its place, and none."""

import pytest
from playwright.async_api import Browser, expect

from tests.console.browser import watched
from tests.support.model_server import ModelServer, Reply
from tests.support.ports import free_port
from tests.support.service_process import ServiceProcess

pytestmark = [pytest.mark.slow, pytest.mark.soak]

_STARTS_AGAIN_MS = 90_000


async def test_a_model_is_chosen_changed_and_removed(
    browser: Browser, unconnected: ServiceProcess, model_server: ModelServer
) -> None:
    async with watched(browser, unconnected.url) as seen:
        page = seen.page
        await seen.open("settings")
        await page.get_by_role("link", name="Which model answers?").click()
        form = page.get_by_role("form", name="Which model answers?")
        alert, now = form.get_by_role("alert"), page.locator(".pairs")
        await expect(now).to_contain_text("built-in offline model")

        await form.get_by_role("button", name="vLLM").click()
        await expect(form.get_by_label("Address")).to_have_value("http://127.0.0.1:8001/v1")
        await form.get_by_role("button", name="Other").click()
        await form.get_by_label("Address").fill(f"{unconnected.url}/v1")
        await form.get_by_role("button", name="List its models").click()
        await expect(alert).to_contain_text("leads to an Anamnesis service")
        await form.locator("[name=model]").fill("default")
        await form.get_by_role("button", name="Use it").click()
        await expect(alert).to_contain_text("leads to an Anamnesis service")
        await form.get_by_label("Address").fill(f"http://127.0.0.1:{free_port()}/v1")
        await form.get_by_role("button", name="Use it").click()
        await expect(alert).to_contain_text("cannot be reached")
        model_server.script(Reply(status=401))
        await form.get_by_label("Address").fill(model_server.base_url)
        await form.get_by_label("Key, if it needs one").fill("sk-a-long-secret-7f3a")
        await form.get_by_role("button", name="Use it").click()
        await expect(alert).to_contain_text("refused the key")
        seen.expect_faults("409")

        model_server.listed = [{"id": each, "max_model_len": 8192} for each in ("bge-m3", "scripted", "whisper-1")]
        await form.get_by_role("button", name="List its models").click()
        await expect(form.get_by_label("Models of this address").locator("option")).to_have_count(3)
        offered = form.get_by_label("Models of this address")
        await expect(offered.locator("option").first).to_contain_text("scripted")
        await offered.select_option("scripted")
        await expect(form).to_contain_text("Takes up to 8,192 tokens.")
        await form.get_by_text("Models for background work and embeddings").click()
        await form.get_by_label("Embeddings").select_option("bge-m3")
        await form.locator("[name=model]").press("Enter")
        await expect(now).to_contain_text("…7f3a", timeout=_STARTS_AGAIN_MS)
        await expect(now).to_contain_text("bge-m3")
        seen.expect_faults("ERR_", "503")  # while it started again

        await form.locator("[name=model]").fill("another")
        await form.get_by_role("button", name="Use it").click()
        await expect(now).to_contain_text("another", timeout=_STARTS_AGAIN_MS)
        assert model_server.requests[-1].headers["Authorization"] == "Bearer sk-a-long-secret-7f3a"
        await seen.open("chat")
        await expect(page.locator(".answers")).to_have_text("another")

        await seen.open("model")
        await page.get_by_role("button", name="Remove it…").click()
        await page.get_by_role("dialog").get_by_role("button", name="Remove").last.click()
        await expect(now).to_contain_text("built-in offline model", timeout=_STARTS_AGAIN_MS)
        seen.expect_faults("ERR_", "503")
