"""How much of the house a turn walks through: the own files whose code runs, logged, which `pytest -s` shows."""

import asyncio
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest
import structlog

from tests.support.talk import Talk

ROOT = Path(__file__).parents[2]
OWN = tuple(f"{ROOT / name}/" for name in ("api", "graph", "nodes", "services", "state"))
"""Folders whose code serves a turn."""


@contextmanager
def noted(files: set[str]) -> Iterator[None]:
    """Note every own file whose code runs, in this thread and in those that begin meanwhile."""

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and (name := frame.f_code.co_filename).startswith(OWN):
            files.add(name)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


async def _run_by(talk: Talk, message: str, session: str) -> int:
    """Return how many files a message runs that do not run anyway."""
    idle, files = set[str](), set[str]()
    with noted(idle):
        await asyncio.sleep(0.5)
    with noted(files):
        await talk.say(message, session)
    return len(files - idle)


@pytest.mark.untraced
async def test_a_turn_runs_few_files(talk: Talk) -> None:
    # What follows on a turn may run beside the next one: the least of several is a turn's own.
    plain = min([await _run_by(talk, f"Tram {number} runs on time.", f"plain-{number}") for number in range(4)])
    await talk.say("I live in Oslo.", "told")
    talk.calls(("forget", {"what": "I live in Oslo"}))
    forget = await _run_by(talk, "Please forget that I live in Oslo.", "forget")
    structlog.get_logger(__name__).info("own files that a turn runs", plain=plain, forget=forget)
    assert 40 < plain <= 110
    assert plain < forget <= 125
