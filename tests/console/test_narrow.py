"""The console on a telephone: nothing lies off the screen."""

from playwright.async_api import Browser, expect

from services.bootstrap import Services
from services.memory.core.blocks import Owner
from services.memory.operations import Trigger
from tests.console.browser import watched
from tests.support.core_memory import know
from tests.support.turns import exchange

WIDTH = 360
LONG = "restores furniture in a small workshop behind the old harbour, on Mondays and Thursdays only"
_OUTSIDE = """(width) => [...document.querySelectorAll('main *')].filter((each) => {
  const { right, width: own, height } = each.getBoundingClientRect()
  return own && height && right > width + 1 && !each.closest('.scroll-x, .tabs, pre, .unseen')
}).map((each) => each.outerHTML.slice(0, 120))"""


async def test_core_memory_and_the_actions_on_a_user_are_within_reach(
    browser: Browser, url: str, services: Services
) -> None:
    turn = await exchange(services.turns, "Hello", "Hi", user_id="me")
    owner = Owner(turn.tenant_id, turn.user_id, turn.expert_id)
    await know(services, owner, "human", {"job": LONG, "facts": [LONG, "a cat"]}, Trigger("user"))
    async with watched(browser, url, width=WIDTH, height=844) as seen:
        await seen.open("core")
        await expect(seen.page.locator(".card textarea, .card input").first).to_be_visible()
        assert await seen.page.evaluate(_OUTSIDE, WIDTH) == []
        await seen.open("users")
        erase = seen.page.get_by_role("button", name="Erase")
        await expect(erase).to_be_in_viewport(ratio=1)
