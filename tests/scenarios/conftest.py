"""What dialogues are played on; and a line for each of them when they were asked for by themselves."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from tests.scenarios.stage import Stage
from tests.support.databases import Databases
from tests.support.model_server import ModelServer
from tests.support.weather_server import WeatherServer


@pytest.fixture(scope="module")
async def stage(databases: Databases, milvus_uri: str, _model_server: ModelServer) -> AsyncIterator[Stage]:
    """Services for dialogues, opened as they are wanted."""
    async with WeatherServer() as weather, AsyncExitStack() as stack:
        yield Stage(databases, milvus_uri, _model_server, weather, stack)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """One line for each dialogue: how it went, its language, seconds, title."""
    reports = [
        (dict(report.user_properties), report)
        for outcome in ("passed", "failed")
        for report in terminalreporter.getreports(outcome)
        if report.when == "call" and "dialogue" in dict(report.user_properties)
    ]
    for told, report in sorted(reports, key=lambda each: str(each[0]["file"])):
        how = "ok    " if report.passed else "FAILED"
        line = f"{how} {told['language']:5} {report.duration:5.1f} s  {told['file']}: {told['dialogue']}"
        terminalreporter.write_line(line)
