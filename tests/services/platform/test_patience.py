"""A time limit that the work of this process does not use up."""

import asyncio

import pytest

from services.platform.patience import Patience
from tests.support.clocked_loop import clocked, work


@clocked
async def test_what_does_not_answer_is_given_up() -> None:
    with pytest.raises(TimeoutError):
        async with Patience(0.02):
            await asyncio.Event().wait()


@clocked
async def test_what_answers_while_the_process_is_busy_is_waited_for() -> None:
    async def answer() -> str:
        await asyncio.sleep(0.03)
        return "answer"

    async with Patience(0.05):
        answering = asyncio.create_task(answer())
        await asyncio.sleep(0)
        work(0.1)  # of another turn
        assert await answering == "answer"
