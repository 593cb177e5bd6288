"""A long run of one character costs a turn no more than other text of its length."""

import time

import httpx
import pytest

from services.bootstrap import Services

pytestmark = [pytest.mark.anyio, pytest.mark.untraced]

RUNS = (" ", "\t", "\n", "　", "a", "我", "1", "1a", "é", ".", "-", "，", '"', "(", "\\", "x \t")
LENGTH = 8_000
MOST_S = 0.5
"""Processor time of the whole process, all threads and the client included; a short message takes 0.03 s."""


async def _turn(client: httpx.AsyncClient, message: str) -> float:
    body = {"user_id": "u-1", "session_id": "s-1", "message": message}
    begun = time.process_time()
    assert (await client.post("/api/v1/chat", json=body)).status_code == 200
    return time.process_time() - begun


async def test_a_message_with_a_long_run(client: httpx.AsyncClient, services: Services) -> None:
    services.embedder.load()  # in the service it is loaded before; its load costs a second whenever it comes
    await _turn(client, "Hello")
    # In one conversation: what was said before is searched and shown in each turn that follows.
    slow = list(RUNS)
    for begin in "xz":  # what is loaded at its first use, or another thread of this process, costs once
        slow = [run for run in slow if await _turn(client, f"{begin}{(run * LENGTH)[:LENGTH]}y") > MOST_S]
    assert slow == []


async def test_lines_with_blanks_as_in_a_table_of_a_pdf(client: httpx.AsyncClient) -> None:
    await _turn(client, "Hello")
    tables = ["\n".join(f"{name} {number}{' ' * 300}value" for number in range(20)) for name in ("row", "line")]
    assert min([await _turn(client, table) for table in tables]) < MOST_S
