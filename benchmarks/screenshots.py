"""`make screenshots`: every screen of the console, in both languages, wide and narrow, light and dark.

It starts a service with the demo loaded and the offline model.
"""

import asyncio
import sys
import tempfile
from pathlib import Path

from playwright.async_api import Page

from tests.console.browser import SCREENS, chromium, watched
from tests.support.ports import free_port
from tests.support.service_process import ServiceProcess

_SIZES = {"wide": (1280, 800), "narrow": (390, 844)}
_QUESTION = {
    ("en", "wide"): "How do I keep teak joints from coming loose?",
    ("en", "narrow"): "Which nuts can I use in a carrot cake?",
    ("zh", "wide"): "我打算什么时候去大理？",
    ("zh", "narrow"): "我打算什么时候去大理？",
}
_TELL = {
    "en": "Remember that my cello teacher is called Henrik.",
    "zh": "记住：我的大提琴老师叫亨里克。",
}
_DEMO = {"en": "The loaf rose", "zh": "手术很顺利"}
_AGAIN = {"en": "Answer again without it", "zh": "不用它重新回答"}
_RECALL = {"en": "What am I allergic to?", "zh": "妈妈的手术"}
_CHOOSE_USER = "user => localStorage.setItem('anamnesis.user', user)"


async def _shoot(page: Page, path: Path) -> None:
    await page.wait_for_timeout(900)  # for what fades in
    await page.screenshot(path=path)
    sys.stdout.write(f"{path}\n")


async def main(folder: Path) -> None:
    """Write the screenshots into a folder that is there."""
    with tempfile.TemporaryDirectory() as data:
        service = ServiceProcess(Path(data) / "data", free_port()).start()
        try:
            async with chromium() as browser:
                async with watched(browser, service.url) as seen:
                    await seen.open()
                    await _shoot(seen.page, folder / "welcome.png")
                    await seen.page.locator(".demo button").click()
                    await seen.page.locator(".stack").wait_for()  # why the demo answered as it did
                for language in ("en", "zh"):
                    for size, (width, height) in _SIZES.items():
                        dark = language == "zh" and size == "wide"
                        async with watched(
                            browser, service.url, language=language, width=width, height=height, dark=dark
                        ) as seen:
                            await seen.open()
                            await seen.page.evaluate(_CHOOSE_USER, "demo:lin")
                            await seen.page.reload()
                            await seen.open()
                            if size == "wide":
                                chats = seen.page.locator(".conversations")
                                await chats.get_by_role("link", name=_DEMO[language]).click()
                                await seen.page.locator(".why-button").first.click()
                                await seen.page.locator(".stack").wait_for()
                                await _shoot(seen.page, folder / f"why-demo-{language}.png")
                                await seen.page.keyboard.press("Escape")
                                await seen.open("chat")
                                await seen.page.locator(".welcome").wait_for()
                            await seen.ask(_TELL[language])
                            await seen.page.wait_for_timeout(2000)  # until it is noted
                            await _shoot(seen.page, folder / f"told-{language}-{size}.png")
                            await seen.open("chat")
                            await seen.page.locator(".welcome").wait_for()
                            await seen.ask(_QUESTION[language, size])
                            await _shoot(seen.page, folder / f"chat-{language}-{size}.png")
                            await seen.page.locator(".why-button").click()
                            await seen.page.locator(".stack").wait_for()
                            await _shoot(seen.page, folder / f"why-{language}-{size}.png")
                            await seen.page.get_by_role("button", name=_AGAIN[language]).first.click()
                            await seen.page.locator(".column .prose").nth(1).wait_for()
                            await _shoot(seen.page, folder / f"compare-{language}-{size}.png")
                            await seen.page.keyboard.press("Escape")
                            for screen in SCREENS[1:]:
                                await seen.open(screen)
                                if screen == "recall":
                                    await seen.page.locator("main input[type=search]").fill(_RECALL[language])
                                    await seen.page.keyboard.press("Enter")
                                    await seen.page.locator(".legs").wait_for()
                                await _shoot(seen.page, folder / f"{screen}-{language}-{size}.png")
        finally:
            service.stop()


if __name__ == "__main__":
    wanted = Path(sys.argv[1] if len(sys.argv) > 1 else "screenshots")
    wanted.mkdir(parents=True, exist_ok=True)
    asyncio.run(main(wanted))
