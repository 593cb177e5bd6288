"""A user's memory for a prompt with which another agent answers the message."""

import hashlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from nodes.history import gather, planned_forms
from services.bootstrap import Services
from services.context.source import MEMORY, PromptDraft, Source, tagged
from services.context.sources.recall import RecallSource
from services.context.wiring import features_on
from services.conversations.turn import TurnRequest
from services.memory.reading.plain_forms import plain_forms
from services.platform.patience import beside_the_loop
from services.time_reference.detect import detect
from state.prompt import Feature
from state.section import Section
from state.turn import OpenTurn, TurnInput

_ONCE, _ALWAYS = frozenset({"core_memory", "recall"}), frozenset({"days", "memory_changes"})
"""Sections whose entries a conversation is shown once, and sections that belong to the message."""
_FEATURES: frozenset[Feature] = frozenset({"core_memory", "persona_card", "recall", "days"})
_DIGEST_CHARACTERS = 16
_LONG = 1_000


@dataclass(frozen=True)
class PromptMemory:
    """Memory for one prompt, with what earlier prompts of its conversation have shown."""

    text: str
    """Text for the model, between tags; empty = there is nothing to show."""
    version: str
    """Version that changes when memory loses or replaces something: older lines may be wrong."""
    shown: list[str]
    """Keys of the lines shown in this and earlier prompts under this version; the next request sends them."""
    degraded: list[str]
    """Sources that did not answer and were left out."""


class _InPrompt(Source[None]):
    """Leaves out messages that the agent's prompt already has."""

    name = "in_prompt"

    def __init__(self, external_ids: Collection[str]) -> None:
        self._ids = frozenset(external_ids)

    def revise(self, draft: PromptDraft) -> None:
        """Remove these messages from what was recalled."""
        found = draft.of(RecallSource)
        if found is not None and found.units and self._ids:
            left = [
                each for each in found.ranking.results if found.units[each.unit.id].external_id not in self._ids
            ]
            draft.data[RecallSource] = replace(found, ranking=replace(found.ranking, results=tuple(left)))


async def prompt_memory(
    services: Services,
    request: TurnRequest,
    *,
    version: str = "",
    shown: Collection[str] = (),
    in_prompt: Collection[str] = (),
) -> PromptMemory:
    """Return what memory has for a message, as the service's own prompts show it; nothing is stored.

    What plain forms of the message take away is left out, and the model is told. A user without memory gets
    nothing.

    Args:
        services: Services to ask.
        request: The message and its user; its `earlier` messages say what it may refer to.
        version: Version of what earlier prompts of the conversation have shown.
        shown: Keys of the lines that they have shown.
        in_prompt: The caller's ids of messages that its prompt already has.

    Raises:
        InvalidInput: There is no such expert.
        DatabaseUnavailable: Nothing can be read.
    """
    turn = await _unstored(services, request)
    if not turn.remembers:
        return PromptMemory("", "", [], [])
    draft = await _draft(services, turn, in_prompt)
    now = str(await services.memory.operations.last_loss(turn.tenant_id, turn.user_id) or "-")
    known = set(shown) if now == version else set()
    lines: list[str] = []
    for section in draft.sections:
        lines += _new_of(section, known) if section.name in _ONCE else ()
    texts = [tagged(MEMORY, "\n".join(lines))] if lines else []
    texts += [each.text for each in draft.sections if each.name in _ALWAYS and each.text]
    return PromptMemory("\n".join(texts), now, sorted(known), draft.degraded)


async def _unstored(services: Services, request: TurnRequest) -> OpenTurn:
    """Open the message's turn without storing it, in its conversation and space, if that has begun."""
    asked = request.input
    named = request.tenant_id, asked["user_id"], asked["session_id"]
    known = await services.known_conversations.named(*named, messages=0)
    if known is None:
        return await services.turns.unstored(request, reads_memory=True)
    where = TurnInput(**{**asked, "space": known.space, "expert": known.expert})
    turn = await services.turns.unstored(replace(request, input=where), reads_memory=True)
    return replace(turn, conversation_id=known.id)


async def _draft(services: Services, turn: OpenTurn, in_prompt: Collection[str]) -> PromptDraft:
    on = _FEATURES.intersection(features_on(services.settings)).difference(turn.parts_off)
    message, days = turn.message, "days" in on
    reference = (
        await beside_the_loop(
            lambda: detect(message, turn.timezone, turn.now), characters=len(message), most=_LONG
        )
        if days
        else None
    )
    changes = services.memory.changes
    planned = await planned_forms([] if turn.speaker else plain_forms(message), turn, changes)
    tokens = services.estimators.of(turn.model or "")
    draft = PromptDraft(turn, tokens, on, reference=reference, memory_plan=planned)
    sources: Sequence[Source[Any]] = [*services.sources, _InPrompt(in_prompt)]
    await gather(sources, draft, conversation=services.conversation, topics=services.topics)
    return draft


def _new_of(section: Section, known: set[str]) -> Iterator[str]:
    """Yield the new entries of a section after their heading, and add them to `known`."""
    heading: list[str] = []
    for line in (*section.text.splitlines(), *(item.text for item in section.items)):
        if line.strip("</>") == MEMORY:
            continue
        if not line.startswith("-"):
            heading = [line]
            continue
        name = hashlib.sha256(line.encode()).hexdigest()[:_DIGEST_CHARACTERS]
        if name not in known:
            known.add(name)
            yield from (*heading, line)
            heading = []
