"""Prompts for tests, assembled from their sections."""

from collections.abc import Mapping, Sequence
from typing import Any

from services.bootstrap import Services
from services.context.assemble import Prompt, assemble
from services.context.conversation import Conversation
from services.context.epochs import CoreMemoryChanges
from services.context.source import PromptDraft
from services.context.sources.core_memory import core_memory_sections
from services.context.sources.history import history_section, summary_section
from services.context.sources.knowledge import USUAL
from services.llm.token_estimates import TokenEstimator
from services.text.language import language_of
from state.prompt import FEATURES, Epoch, HistoryMessage, Passage
from state.section import Item, Section
from state.turn import OpenTurn
from tests.support.turns import epoch as first_epoch
from tests.support.turns import given, policy


def sections_of(
    *,
    system_prompt: str = "Be kind.",
    epoch: Epoch | None = None,
    core_memory_changes: Mapping[str, dict[str, Any]] | None = None,
    history: Sequence[HistoryMessage] = (),
    time_note: str = "",
    message: str = "Hello",
) -> list[Section]:
    """Return the sections of a turn as `history` leaves them, without recall and days."""
    shown = epoch or first_epoch()
    return [
        Section("system", system_prompt, stable=True),
        *core_memory_sections(shown, CoreMemoryChanges(dict(core_memory_changes or {})), language_of([message])),
        summary_section(shown, language_of([message])),
        history_section(history, TokenEstimator()),
        Section("knowledge"),
        *([Section("time", items=[Item(time_note)], priority=50)] if time_note else []),
    ]


def prompt_of(
    *,
    budget: int = 4000,
    message: str = "Hello",
    epoch: Epoch | None = None,
    passages: Sequence[Passage] = (),
    tools: str = "",
    after: Sequence[Any] = (),
    **values: Any,
) -> Prompt:
    shown = epoch or first_epoch()
    knowledge = USUAL.section(passages, instructions="", language=language_of([message]))
    sections = sections_of(epoch=shown, message=message, **values)
    return assemble(
        [knowledge if section.name == "knowledge" else section for section in sections],
        TokenEstimator(),
        budget=budget,
        epoch=shown,
        features=FEATURES,
        message=message,
        tools=tools,
        after=after,
    )


async def shown_conversation(services: Services, turn: OpenTurn, **values: Any) -> PromptDraft:
    """Return what a turn's prompt shows of its conversation when nothing is known of the user."""
    draft = PromptDraft(given(turn, policy=policy(), **values), TokenEstimator(), frozenset(FEATURES))
    draft.data[Conversation] = await services.conversation.load(draft)
    services.conversation.show(draft)
    return draft
