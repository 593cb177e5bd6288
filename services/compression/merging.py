"""Merges a group of memories into one text: a model's text, checked; or rules, where safe."""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, Field, StringConstraints

from services.compression import prompts
from services.compression.models import LONGEST_TEXT, Dropped, Member, MergedText
from services.errors import BadModelOutput
from services.llm.chat_models import ChatModels
from services.llm.structured_output import ask_for, json_answer
from services.llm.tokens import count_tokens
from services.memory.recall.superseded import contradicted
from services.search.duplicates import are_duplicates
from services.text.tokenizer import terms

_LEAST = 2
"""A text in the place of one memory compresses nothing."""
_LONGEST_MEMORY = 1200
_NUMBER = re.compile(r"\d+")

Number = Annotated[int, Field(strict=True, ge=1)]


class _Dropped(BaseModel):
    memory: Number
    reason: Dropped


class _Answer(BaseModel):
    memory: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=LONGEST_TEXT)]
    represented: list[Number]
    dropped: list[_Dropped] = []
    apart: list[Number] = []


class GroupMerger:
    """Merges groups, and counts the tokens used."""

    def __init__(self, models: ChatModels) -> None:
        self._models = models
        self.tokens = 0

    @property
    def by_rules(self) -> bool:
        """Whether there is no real model."""
        return self._models.offline

    async def refine(self, group: Sequence[Member]) -> MergedText | None:
        """Return one text for a group; None if its memories should stay separate.

        Raises:
            BadModelOutput: the model's answer was unusable, twice.
            Unavailable: the model did not answer.
        """
        members = sorted(group, key=_age)
        if self._models.offline:
            return by_rules(members)
        asked = prompts.about(members, _LONGEST_MEMORY)
        size = sum(count_tokens(str(message.content)) for message in asked)

        def check(text: str) -> MergedText | None:
            self.tokens += size + count_tokens(text)
            return checked(text, members)

        return await ask_for(self._models, asked, check, schema=_Answer, purpose="merged_memory")


def checked(text: str, members: Sequence[Member]) -> MergedText | None:
    """Return the checked result of a model's answer about these memories, oldest first.

    Raises:
        BadModelOutput: it does not name each of them once, drops them all, or says what none of them says.
    """
    answer = json_answer(_Answer, text)
    dropped = [each.memory for each in answer.dropped]
    named = [*answer.represented, *dropped, *answer.apart]
    if sorted(named) != list(range(1, len(members) + 1)):
        raise BadModelOutput("not every memory is named once")
    if dropped and not answer.represented:
        raise BadModelOutput("it drops memories for a text that represents nothing")
    if len(answer.represented) + len(dropped) < _LEAST:
        return None
    represented = [members[number - 1] for number in answer.represented]
    _check_source(answer.memory, represented)
    gone = [(members[each.memory - 1], each.reason) for each in answer.dropped]
    return MergedText(answer.memory.replace("\x00", ""), represented, gone)


def by_rules(members: Sequence[Member]) -> MergedText | None:
    """Let the newest replace its duplicates, and the written ones that it contradicts.

    Rules never drop a turn, because everything else it says would be lost.
    """
    newest = members[-1]
    same = [member for member in members if member is newest or are_duplicates(member.said, newest.said)]
    others = [member for member in members if member not in same and member.written]
    gone: list[tuple[Member, Dropped]] = [
        (member, "contradicted") for member in others if contradicted(member.said, [newest.said])
    ]
    return MergedText(newest.text, same, gone) if len(same) + len(gone) >= _LEAST else None


def _check_source(text: str, represented: Sequence[Member]) -> None:
    """Check that a text says nothing without a source, as far as possible without understanding it."""
    sources = "\n".join(f"{member.created_at:%Y-%m-%d} {member.text}" for member in represented)
    if not set(map(int, _NUMBER.findall(text))) <= set(map(int, _NUMBER.findall(sources))):
        raise BadModelOutput("it says a number that no memory says")
    said = set(terms(text))
    if any(said.isdisjoint(terms(member.said)) for member in represented):
        raise BadModelOutput("it has no word of a memory that it represents")


def _age(member: Member) -> tuple[datetime, str]:
    return member.created_at, str(member.id)
