"""Whole conversations for tests, and experts to have them with."""

from typing import Any
from uuid import UUID

from services.conversations.experts import NewExpert
from services.conversations.turns import Turns
from tests.support.turns import exchange


def new_expert(name: str, **values: Any) -> NewExpert:
    usual: dict[str, Any] = {
        "system_prompt": "You are kind.",
        "persona": "",
        "model": None,
        "context_strategy": "summary",
        "context_window": 32_000,
        "context_threshold": None,
        "min_archive_messages": None,
        "reflection": False,
    }
    return NewExpert(name=name, **{**usual, **values})


async def talk(turns: Turns, session: str, exchanges: int, **values: Any) -> UUID:
    """A conversation with this many exchanges; each message names the session and a number."""
    for number in range(1, exchanges + 1):
        question, answer = f"In {session} I say {number}.", f"In {session} I answer {number}."
        turn = await exchange(turns, question, answer, session_id=session, **values)
    return turn.conversation_id
