"""Decides what becomes of an operation that a model wants filed: done, asked about, or dropped.

Only exact things count: whose words its quote is, whether a removal was asked for, and whether figures, addresses,
names or negations stand in foreign text alone. The wording is the model's: translations, resolved names and dates
pass.
"""

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

from services.memory.core_values import CoreValues
from services.memory.filing_prompt import Batch, FilingOperation
from services.memory.filing_store import request_of
from services.memory.finding import MemoryFinder
from services.memory.model import Memory
from services.memory.quotes import asks_removal, folded, foreign_text, is_quoted, own_text
from services.memory.trust import ForeignOrigins
from services.memory.words import stated
from services.text.tokenizer import informative_terms

Verdict = Literal["do", "ask", "drop"]

_MOST_FOREIGN = 1 / 3
"""Share of a statement's words that stand in foreign text alone."""
_EXACT = re.compile(
    r"[\w.+-]{1,64}@[\w-]{1,64}\.[\w.-]{1,64}"  # e-mail addresses
    r"|(?:https?://|www\.)[^\s<>\"']{1,200}|[\w-]{1,64}\.(?:com|org|net|io|example|cn|de|eu|uk)\b"
    r"|\b[a-z]{2}\d{2}[ \d\w]{4,40}|\d[\d ,./-]{1,30}\d|\d{3,20}",
    re.IGNORECASE,
)
"""Figures of three digits or more, account numbers and addresses."""
_FEWEST_DIGITS = 3
_HAN = re.compile(r"[\u3400-\u9fff]")
_NAME = re.compile(r"\b[A-Z][\w'’-]{1,40}")
_NEGATION = re.compile(
    r"\b(?:not|no|never|none|nobody|nothing|without|stopped|former\w*|cannot)\b|n['’]t\b|[不没無无未勿别]",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Evidence:
    """What the words of a batch are."""

    messages: Mapping[str, str]
    """The user's new messages by their short ids, as memory keeps them."""
    said: Sequence[str]
    """What the user has said themselves, in these messages and before."""
    answers: Sequence[str] = ()
    """What the assistant has said."""
    known: Sequence[str] = ()
    """What is remembered of it."""
    foreign: Sequence[str] = ()
    """What others wrote: in the messages, in answers made from it, in memories."""
    memories: Mapping[str, Memory] = field(default_factory=dict)
    """The memories that the model was shown, by their short ids."""

    @cached_property
    def own_text(self) -> str:
        """Return what the user has said, and what is remembered of it, folded."""
        return folded("\n".join([*self.said, *self.known]))

    @cached_property
    def said_terms(self) -> frozenset[str]:
        """Return the informative words of what the user has said."""
        return _terms(self.said)

    @cached_property
    def foreign_terms(self) -> frozenset[str]:
        """Return the informative words of what only others wrote."""
        return _terms(self.foreign) - self.said_terms - _terms(self.known)

    @cached_property
    def foreign_text(self) -> str:
        """Return what others wrote, folded."""
        return folded("\n".join(self.foreign))


def checked(
    operations: Sequence[FilingOperation], evidence: Evidence
) -> list[tuple[FilingOperation, Verdict, str | None]]:
    """Return each operation with what becomes of it and the message that it rests on; one for each memory."""
    found: list[tuple[FilingOperation, Verdict, str | None]] = []
    changed: set[str] = set()
    for each in (losing_nothing(one, evidence) for one in operations):
        verdict = "drop" if each.memory and each.memory in changed else verdict_on(each, evidence)
        if verdict == "do" and each.memory:
            changed.add(each.memory)
        found.append((each, verdict, message_of(each.quote, evidence.messages)))
    return found


def message_of(quote: str, messages: Mapping[str, str]) -> str | None:
    """Return the short id of the message that a quote is taken from; None = it is in nobody's own words."""
    return next((key for key, text in messages.items() if is_quoted(quote, text)), None)


def losing_nothing(operation: FilingOperation, evidence: Evidence) -> FilingOperation:
    """Return an operation as it may be done: a statement about something else than a memory replaces nothing.

    It is added if memory and statement are in the same script, and it has a word that the user said. Everything
    else is left as it is, and so is what stands beside foreign text: it waits.
    """
    memory = evidence.memories.get(operation.memory)
    if operation.kind != "replace" or memory is None:
        return operation
    if _is_about(memory, _terms([operation.text, operation.quote])):
        return operation
    said = informative_terms(operation.quote) | evidence.said_terms
    rests = not informative_terms(operation.text).isdisjoint(said)
    if _is_chinese(memory.text) != _is_chinese(operation.text) or any(evidence.foreign) or not rests:
        return operation
    return FilingOperation("add", operation.quote, operation.text)


def verdict_on(operation: FilingOperation, evidence: Evidence) -> Verdict:
    """Return what becomes of an operation.

    A change whose quote is foreign waits for the user if it says something; one whose quote stands nowhere is
    dropped. A removal waits without a quote that asks for it, and if no word of what goes was said. What is pinned
    stays.
    """
    memory = evidence.memories.get(operation.memory)
    source = message_of(operation.quote, evidence.messages)
    if memory is not None and memory.pinned:
        return "drop"
    if source is None:
        said_by_others = [*evidence.answers, *evidence.foreign]
        return "ask" if operation.text and stands_in(operation.quote, said_by_others) else "drop"
    if operation.kind == "leave_out":
        return "do" if source == operation.message and asks_removal(operation.quote) else "drop"
    if operation.kind == "end" and memory is not None and not _is_about(memory, evidence.said_terms):
        return "drop"
    waits = False
    if operation.kind == "remove" and memory is not None:
        waits = not asks_removal(operation.quote) or not _was_told_of(memory, evidence)
    elif operation.kind == "replace" and memory is not None:
        waits = not _is_about(memory, _terms([operation.text, operation.quote]))
    if any(evidence.foreign):
        # Foreign text may have named the memory, or said what is to be remembered.
        waits = waits or (memory is not None and informative_terms(memory.text).isdisjoint(evidence.said_terms))
        waits = waits or is_foreign(operation.text, own_text(evidence.messages[source]), evidence)
    return "ask" if waits else "do"


def _was_told_of(memory: Memory, evidence: Evidence) -> bool:
    """Whether a word of a memory was said; in another script it may have been."""
    said = _terms([*evidence.said, *evidence.answers])
    return _is_about(memory, said) or all(_is_chinese(memory.text) != _is_chinese(each) for each in evidence.said)


def _is_chinese(text: str) -> bool:
    return _HAN.search(text) is not None


def _is_about(memory: Memory, told: frozenset[str]) -> bool:
    """Whether a memory shares a word with what is told, given by its words."""
    return not informative_terms(stated(memory)).isdisjoint(told)


def is_foreign(text: str, said: str, evidence: Evidence) -> bool:
    """Whether a statement says what stands in foreign text alone.

    Args:
        said: the user's own words that it rests on.
        evidence: what else was said.
    """
    own, foreign = evidence.own_text, evidence.foreign_text
    figures = _EXACT.findall(text)
    exact = [each for each in figures if sum(map(str.isdigit, each)) >= _FEWEST_DIGITS or not each[0].isdigit()]
    if any(folded(each) in foreign and folded(each) not in own for each in exact):
        return True
    alien = informative_terms(text) & evidence.foreign_terms
    if any(_is_foreign_name(each, own, evidence.foreign) for each in _NAME.finditer(text)):
        return True
    if _NEGATION.search(text) and not _NEGATION.search(said) and _NEGATION.search(" ".join(evidence.foreign)):
        return True
    return len(alien) >= _MOST_FOREIGN * max(len(informative_terms(text)), 1)


def _is_foreign_name(name: re.Match[str], own: str, foreign: Sequence[str]) -> bool:
    """Whether a capitalised word stands in foreign text alone; at the beginning it may be any word."""
    if folded(name[0]) in own:
        return False
    before = r"(?<=[\w,;:] )" if name.start() == 0 else r"\b"
    return any(re.search(rf"{before}{re.escape(name[0])}\b", text) for text in foreign)


def stands_in(quote: str, texts: Sequence[str]) -> bool:
    """Whether a quote stands anywhere in some texts, whosever words they are."""
    sought = folded(quote)
    return bool(informative_terms(sought)) and any(sought in folded(text) for text in texts)


def _terms(texts: Sequence[str]) -> frozenset[str]:
    return frozenset(term for text in texts for term in informative_terms(text))


_LONGEST_QUERY = 1_000
"""Characters of a message by which memories are sought."""


class FilingEvidence:
    """Reads the memories that new messages may change, and tells whose words everything is."""

    def __init__(self, finder: MemoryFinder, values: CoreValues, origins: ForeignOrigins) -> None:
        self._finder = finder
        self._values = values
        self._origins = origins

    async def of(self, batch: Batch) -> tuple[Batch, Evidence]:
        """Return a batch with the nearest memories, and whose words it is."""
        memories, foreign_ids = await self._memories(batch)
        said, answers = list[str](), list[str]()
        known = [each.text for each in memories.values() if each.id not in foreign_ids]
        foreign = [each.text for each in memories.values() if each.id in foreign_ids]
        for each in [*batch.earlier, *batch.messages.values()]:
            if each.role == "user" and not each.is_foreign:
                said.append(own_text(each.content))
                foreign.append(foreign_text(each.content))
            else:
                (foreign if each.is_foreign else answers).append(each.content)
        shown = replace(batch, memories=memories)
        return shown, Evidence(
            shown.said, said, answers, known, [each for each in foreign if each.strip()], memories
        )

    async def _memories(self, batch: Batch) -> tuple[dict[str, Memory], set[str]]:
        """Return the nearest memories by their short ids, and the ids of those of foreign words."""
        owner, request = batch.owner, request_of(batch.owner, batch.last)
        # One by one: their turns have had them embedded, and of a long text only the beginning is.
        said = [each[:_LONGEST_QUERY] for each in batch.said.values()]
        nearest, read = await asyncio.gather(
            self._finder.nearest(request, said), self._values.read(owner.tenant_id, owner.user_id)
        )
        foreign = set[str]()
        if written := [each.id for each in nearest if each.kind == "written"]:
            found = await self._origins.among(owner.tenant_id, owner.user_id, episodes=written)
            foreign = set(found.episodes)
        values = {(each.section, each.field, each.text): each for each in read if each.holds}
        memories = {}
        for number, memory in enumerate(nearest, 1):
            value = values.get((memory.section, memory.field, memory.text))
            if value is not None:
                memory = replace(memory, pinned=value.is_pinned, at=value.since)  # noqa: PLW2901
                foreign |= {memory.id} if value.is_foreign else set()
            memories[f"m{number}"] = memory
        return memories, foreign
