"""A browser for the application over real HTTP, and a service on its first start."""

import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from playwright.async_api import Browser

from tests.console.browser import chromium
from tests.support.folders import new_folder
from tests.support.ports import free_port
from tests.support.service_process import ServiceProcess


@pytest.fixture(scope="package")
async def browser() -> AsyncIterator[Browser]:
    """One browser for all tests of a process; each test has its own profile."""
    async with chromium() as opened:
        yield opened


@pytest.fixture
def unconnected() -> Iterator[ServiceProcess]:
    """A service on its first start, as a process that can start itself again; it files at once what is said."""
    with new_folder() as folder:
        process = ServiceProcess(
            Path(folder) / "data",
            free_port(),
            program=(sys.executable, "-m", "api.cli.main"),
            memory_filing_quiet_s="0",
            memory_filing_pause_s="0",
        )
        yield process.start()
        process.end()
