"""A browser for the application over real HTTP."""

from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Browser

from tests.console.browser import chromium


@pytest.fixture(scope="package")
async def browser() -> AsyncIterator[Browser]:
    """One browser for all tests of a process; each test has its own profile."""
    async with chromium() as opened:
        yield opened
