"""Text that no page expects: in memories, file names and answers, right to left, and far too long."""

import httpx
import pytest
from playwright.async_api import Browser, FilePayload, expect

from tests.console.browser import watched
from tests.support.model_server import ModelServer, Reply

pytestmark = [pytest.mark.anyio, pytest.mark.soak]

EVIL_NAME = "<img src=x onerror=alert(1)> \"'.md"
SVG = "<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'><script>alert(2)</script></svg>"
INSIDE = "node => node.querySelectorAll('img, script, iframe, object, [onerror], [onload]').length"
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


async def test_names_and_contents_of_documents_stay_text(
    browser: Browser, url: str, client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    await client.post("/api/v1/knowledge-bases", json={"prefix": "docs", "description": SVG})
    async with watched(browser, url) as seen:
        page = seen.page
        await seen.open("knowledge/docs")
        body = f"# {SVG}\n\nThe bridge opens at noon. {SVG}"
        await page.locator("input[type=file]").set_input_files(
            [FilePayload(name=EVIL_NAME, mimeType="text/markdown", buffer=body.encode())]
        )
        await expect(page.locator("td b")).to_have_text(EVIL_NAME)
        await page.get_by_role("searchbox").fill("When does the bridge open?")
        await page.keyboard.press("Enter")
        await expect(page.locator(".item").first).to_contain_text("The bridge opens at noon")
        assert await page.locator("main").evaluate(INSIDE) == 0

        model_server.default = Reply(
            [f"At noon [1]. {SVG}\n\n![x]({SVG}) [here](data:text/html,<script>1</script>)"]
        )
        await seen.open("chat")
        await page.locator("input[type=file]").set_input_files(
            [FilePayload(name="evil.svg", mimeType="image/svg+xml", buffer=SVG.encode())]
        )
        await expect(page.locator(".toast.bad")).to_be_visible()
        await page.get_by_label("Knowledge").select_option("docs")
        await seen.ask("When does the bridge open?")
        await expect(page.locator(".sources")).to_contain_text(EVIL_NAME)
        await expect(page.locator(".prose")).to_contain_text("<script>alert(2)</script>")
        assert await page.locator("main").evaluate(INSIDE) == 0
        links = await page.locator(".prose a").evaluate_all("all => all.map(a => a.protocol)")
        assert not set(links) - {"http:", "https:", "mailto:", ":"}  # the last has no address


async def test_text_from_right_to_left_is_set_so(browser: Browser, url: str, model_server: ModelServer) -> None:
    model_server.default = Reply(["שלום! **ברוך** הבא.\n\n", "And now in English."])
    async with watched(browser, url) as seen:
        page = seen.page
        await seen.open()
        await seen.ask("אני גר בתל אביב")
        direction = "node => getComputedStyle(node).direction"
        assert await page.locator(".composer textarea").evaluate(direction) == "ltr"
        await page.locator(".composer textarea").fill("مرحبا")
        assert await page.locator(".composer textarea").evaluate(direction) == "rtl"
        assert await page.locator(".prose p").first.evaluate(direction) == "rtl"
        assert await page.locator(".prose p").last.evaluate(direction) == "ltr"
        await seen.open("memory")
        await expect(page.locator("article").first).to_contain_text("אני גר בתל אביב")
        assert await page.evaluate(OVERFLOW) == 0


@pytest.mark.parametrize("width", [1280, 390])
async def test_a_hundred_thousand_characters_fit(
    browser: Browser, url: str, client: httpx.AsyncClient, model_server: ModelServer, width: int
) -> None:
    word = "x" * 100_000
    model_server.default = Reply([word[at : at + 1000] for at in range(0, len(word), 1000)])
    async with watched(browser, url, width=width) as seen:
        page = seen.page
        await seen.open()
        await page.locator(".composer textarea").fill(word)
        await expect(page.locator(".composer")).to_contain_text("100000 / 32000")
        await expect(page.get_by_role("button", name="Send")).to_be_disabled()
        await seen.ask("x" * 32_000)
        assert await page.locator(".prose").evaluate("node => node.textContent.trim().length") == 100_000
        assert await page.evaluate(OVERFLOW) == 0
        for screen in ("memory", "operations", "jobs"):
            await seen.open(screen)
            await page.wait_for_timeout(300)
            assert await page.evaluate(OVERFLOW) == 0, screen
