"""Proposals for changes of memory that rest on foreign content: they wait for the user."""

from collections.abc import Iterable, Sequence
from typing import Any

from langchain_core.messages import AnyMessage, ToolMessage
from langgraph.prebuilt import ToolRuntime

from services.memory.commands.text import works_on_text
from services.memory.proposals import ProposalKind, Proposals
from services.memory.trust import rests_on_user
from services.tools.actor import editing_of
from state.context import TurnContext
from state.prompt import Passage

_OF_MEMORY = frozenset(
    {
        *("search_memory", "search_chat_history", "archival_memory_search", "get_user_profile"),
        *("remember", "forget", "core_memory_update", "archival_memory_insert", "get_current_time"),
    }
)
"""Tools whose results hold no foreign content."""


def foreign_texts(
    message: str, answers: Iterable[AnyMessage], passages: Iterable[Passage], attached: Sequence[str]
) -> tuple[str, ...]:
    """Foreign content that the model read in the turn: results, documents, notes of an application."""
    results = [each.text for each in answers if isinstance(each, ToolMessage) and each.name not in _OF_MEMORY]
    documents = [f"{each['document']}\n{each['heading']}\n{each['text']}" for each in passages]
    return (*results, *documents, *attached, *([message] if works_on_text(message) else []))


async def proposed(
    proposals: Proposals | None,
    runtime: "ToolRuntime[TurnContext, Any]",
    kind: ProposalKind,
    text: str,
    replaces: str = "",
) -> str:
    """Make a change a proposal unless the user's own words ask for it; return the note for the model, or nothing.

    Raises:
        DatabaseUnavailable: the database does not answer.
    """
    context = runtime.context
    if proposals is None or rests_on_user(f"{text} {replaces}", context.said, context.foreign):
        return ""
    await proposals.add(editing_of(runtime), kind, text, replaces)
    return (
        "Nothing was changed: these are not the user's own words. It waits for the user's consent; tell them so."
    )
