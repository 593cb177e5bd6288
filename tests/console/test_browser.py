"""The console in a browser, over the real service."""

import re

import pytest
from playwright.async_api import Browser, expect

from tests.console.browser import SCREENS, watched
from tests.support.model_server import ModelServer, Reply

HOSTILE = """<script>alert(1)</script><img src=x onerror="alert(2)">
[click](javascript:alert(3)) ![seen](https://evil.example/pixel.png) <svg onload="alert(4)"></svg>

<iframe src="https://evil.example"></iframe>

```html
<b onclick="alert(5)">bold</b>
```

| a | b |
| --- | --- |
| <style>*{display:none}</style> | \u202emirrored |
"""


async def test_a_new_user_talks_sees_why_and_makes_it_forget(
    browser: Browser, url: str, model_server: ModelServer
) -> None:
    model_server.default = Reply(["**Bruno** is", " a fine name.\n\n```python\nprint('woof')\n", "```\n\nWoof."])
    async with watched(browser, url) as seen:
        page = seen.page
        for screen in ("memory", "core", "timeline", "recall", "operations"):
            await seen.open(screen)
            await expect(page.locator("main")).to_contain_text("Nothing is remembered of me yet")
        await seen.open("chat")
        await page.get_by_role("button", name="Tell something").click()
        await expect(page.locator(".composer textarea")).to_have_value(re.compile("Bruno"))
        await seen.ask("My dog is called Bruno.")
        await expect(page.locator(".prose strong")).to_have_text("Bruno")
        await expect(page.locator(".code-frame code")).to_have_text("print('woof')")
        await page.keyboard.press("Control+Shift+O")
        await expect(page.locator(".welcome")).to_be_visible()
        await seen.ask("What is my dog called?")
        await page.get_by_role("button", name="Why?").click()
        await expect(page.locator(".stack")).to_be_visible()
        item = page.locator(".item", has_text="Bruno").first
        await expect(item).to_contain_text("relevance")
        await expect(item).to_contain_text("said by you")
        assert "words of the assistant" not in await item.inner_text()
        await page.get_by_role("button", name="Forget…").first.click()
        dialog = page.get_by_role("dialog", name="Forget this?")
        await expect(dialog).to_contain_text("messages")
        await dialog.get_by_role("button", name="Forget", exact=True).click()
        await expect(page.locator(".item").first).to_contain_text("No longer in memory")
        for screen in SCREENS[1:]:
            await seen.open(screen)


async def test_hostile_text_stays_text(browser: Browser, url: str, model_server: ModelServer) -> None:
    model_server.default = Reply([HOSTILE])
    async with watched(browser, url) as seen:
        page = seen.page
        await seen.open()
        await seen.ask(f"Hello {HOSTILE}")
        prose = page.locator(".prose")
        await expect(prose).to_contain_text("<script>alert(1)</script>")
        inside = "node => node.querySelectorAll('script, img, svg, iframe, style, [onclick], [onerror]').length"
        assert await prose.evaluate(inside) == 0
        links = await prose.locator("a").evaluate_all("all => all.map(a => a.getAttribute('href'))")
        assert not [link for link in links if link and link.startswith("javascript")]
        await page.reload()
        await expect(page.locator(".prose")).to_contain_text("<script>alert(1)</script>")
        await seen.open("memory")
        await expect(page.locator(".card").first).to_contain_text("<script>alert(1)</script>")


async def test_an_answer_goes_on_after_a_reload_in_its_middle(
    browser: Browser, url: str, model_server: ModelServer
) -> None:
    model_server.default = Reply([f"word{n} " for n in range(40)], gap_s=0.05)
    async with watched(browser, url) as seen:
        page = seen.page
        await seen.open()
        await page.locator(".composer textarea").fill("Tell me a lot")
        await page.keyboard.press("Enter")
        await expect(page.locator(".prose")).to_contain_text("word3")
        await page.reload()
        await expect(page.locator(".prose")).to_contain_text("word0 word1")
        await page.locator(".why-button").wait_for()
        await expect(page.locator(".prose")).to_have_text(re.compile(r"^word0 .* word39\s*$"))


@pytest.mark.soak
async def test_edited_and_repeated_messages_can_be_switched(browser: Browser, url: str) -> None:
    async with watched(browser, url) as seen:
        page = seen.page
        await seen.open()
        await seen.ask("First words")
        await page.get_by_role("button", name="Answer again").click()
        await expect(page.locator(".versions")).to_contain_text("2/2")
        await page.locator(".said").hover()
        await page.get_by_role("button", name="Edit").click()
        await page.locator(".edit textarea").fill("Other words")
        await page.keyboard.press("Enter")
        await expect(page.locator(".versions")).to_contain_text("3/3")
        await page.get_by_role("button", name="Version before").click()
        await expect(page.locator(".bubble")).to_have_text("First words")


@pytest.mark.soak
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("language", ["en", "zh"])
async def test_every_screen_opens_and_fits(browser: Browser, url: str, language: str, width: int) -> None:
    async with watched(browser, url, language=language, width=width) as seen:
        await seen.open()
        await seen.ask("你好，我住在汉堡。" if language == "zh" else "Hello, I live in Hamburg.")
        for screen in SCREENS:
            await seen.open(screen)
            assert await seen.page.evaluate("document.documentElement.scrollWidth") <= width, screen
