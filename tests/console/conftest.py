"""The application over real HTTP, as the tests of the API have it, and a browser."""

from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Browser

from tests.api.conftest import client, runner, url
from tests.console.browser import chromium

__all__ = ["client", "runner", "url"]


@pytest.fixture(scope="package")
async def browser() -> AsyncIterator[Browser]:
    """One browser for all tests of a process; each test has a profile of its own."""
    async with chromium() as opened:
        yield opened
