"""The first hour in the browser: from the start to a correction that is taken back."""

import pytest
from playwright.async_api import Browser, Page, expect

from tests.console.browser import Watched, watched
from tests.support.filing import add, filed
from tests.support.model_server import ModelServer, Received, Reply
from tests.support.service_process import ServiceProcess

pytestmark = [pytest.mark.slow, pytest.mark.soak, pytest.mark.in_clear]

_STARTS_AGAIN_MS = 90_000


DOG, DOG_SAID = "has a dog called Bruno", "My dog is called Bruno"
ALLERGY, ALLERGY_SAID = "is allergic to peanuts", "I am allergic to peanuts"
ANSWER = "Your dog is called Bruno."
RIGHT = "has a dog called Benno"


def _stand_in(received: Received) -> Reply:
    """A model that files what the test tells, and answers what it asks."""
    prompt = "\n".join(text for _, text in received.prompt)
    if "You keep an assistant's memory" in prompt:
        known = (add(DOG, DOG_SAID, "pets"), add(ALLERGY, ALLERGY_SAID, "allergies"))
        return filed(*(each for each in known if each["quote"] in received.prompt[-1][1]))
    return Reply([ANSWER if DOG_SAID in prompt or DOG in prompt else "OK."])


async def _connect(page: Page, base_url: str) -> None:
    form = page.get_by_role("form", name="Which model answers?")
    address = form.get_by_label("Address")
    await form.get_by_role("button", name="Ollama").click()
    await expect(address).to_have_value("http://127.0.0.1:11434/v1")
    await form.get_by_role("button", name="Other").click()
    await address.fill(base_url.removesuffix("/v1"))
    await form.get_by_role("button", name="List its models").click()
    await expect(form.get_by_role("alert")).to_contain_text("/v1")
    await address.fill(base_url)
    await form.get_by_label("Key, if it needs one").fill("k")
    await form.get_by_role("button", name="List its models").click()
    await form.get_by_label("Models of this address").select_option("scripted")
    await expect(form.get_by_label("Model", exact=True)).to_have_value("scripted")
    await form.get_by_role("button", name="Try it").click()
    await expect(form.get_by_role("status")).to_contain_text("OK.")
    await form.get_by_role("button", name="Use it", exact=True).click()
    await expect(form).to_have_count(0, timeout=_STARTS_AGAIN_MS)


async def _new_chat(seen: Watched, card: str) -> None:
    """Send what a card of the first page proposes."""
    await seen.open("chat")
    await seen.page.get_by_role("button", name=card).click()
    await expect(seen.page.locator(".composer textarea")).to_be_focused()
    answers = await seen.page.locator(".why-button").count()
    await seen.page.keyboard.press("Enter")
    await seen.page.locator(".why-button").nth(answers).wait_for()


async def _remembers(seen: Watched, *texts: str) -> None:
    """Wait until exactly these memories are listed, in any order."""
    await seen.open("known")
    lines = seen.page.locator("main article p")
    for _ in range(60):
        if sorted(await lines.all_inner_texts()) == sorted(texts):
            return
        await seen.page.wait_for_timeout(500)
        await seen.page.reload()
        await seen.open("known")
        await seen.page.wait_for_timeout(300)
    assert sorted(await lines.all_inner_texts()) == sorted(texts)


async def test_the_first_hour_needs_no_manual(
    browser: Browser, unconnected: ServiceProcess, model_server: ModelServer
) -> None:
    model_server.default = _stand_in
    async with watched(browser, unconnected.url) as seen:
        page = seen.page
        await seen.open()
        await _connect(page, model_server.base_url)
        seen.expect_faults("ERR_", "503")  # while it starts again
        shown = await (await page.request.get(f"{unconnected.url}/api/v1/model")).json()
        assert (shown["source"], shown["model"], shown["restarts"]) == ("console", "scripted", True)
        assert unconnected.text.count("Anamnesis is ready") == 2

        await _new_chat(seen, "Tell something")
        await _remembers(seen, DOG, ALLERGY)
        await _new_chat(seen, "Ask in a new chat")
        await expect(page.locator(".prose").last).to_contain_text(ANSWER)
        await page.get_by_role("button", name="Why?").last.click()
        await expect(page.locator(".drawer")).to_contain_text(DOG_SAID)
        await page.keyboard.press("Escape")

        await seen.open("settings")
        await page.get_by_label("Display name").fill("Ada")
        await page.get_by_role("button", name="Save", exact=True).click()
        await expect(page.locator(".account .user")).to_contain_text("Ada")
        await seen.open("known")
        line = page.locator("main article", has_text=DOG)
        await line.get_by_role("button", name="Wrong…").click()
        await page.get_by_label("What is right").fill(RIGHT)
        await page.get_by_role("button", name="Save", exact=True).click()
        await _remembers(seen, RIGHT, ALLERGY)

        await _new_chat(seen, "Make it forget")
        change = page.locator(".change").last
        await expect(change).to_contain_text(ALLERGY_SAID[-6:])
        forgot = page.url
        await _remembers(seen, RIGHT)
        await page.goto(forgot)
        await change.get_by_role("button", name="Undo").click()
        await expect(change).to_have_class("change undone")
        await _remembers(seen, RIGHT, ALLERGY)

        await seen.open("operations")
        corrected = page.locator("main .card", has_text=RIGHT.rsplit(maxsplit=1)[-1]).first
        await corrected.get_by_role("button", name="Undo", exact=True).click()
        await _remembers(seen, DOG, ALLERGY)
