"""The closure of a removal: everything that goes with the memories that are named.

With a value goes the clause that it was filed from, with a clause the values that were filed from it, and with
both what answers repeat of them. Where a message tells something else in whole clauses, that stays.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from services.memory.core_values import CoreValue, CoreValues
from services.memory.finding import MemoryFinder
from services.memory.items import removed_value
from services.memory.model import ChangeRequest, Memory
from services.memory.remainders import Remainder, Words, sentences_without, without
from state.memory import ItemChange

_TELLS_OF = 0.5
"""Share of a value's words by which a clause is what it was filed from."""


@dataclass
class Removal:
    """What goes."""

    messages: dict[UUID, str | None] = field(default_factory=dict)
    """What memory keeps of each message; None = nothing."""
    episodes: list[str] = field(default_factory=list)
    items: list[ItemChange] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    """What goes, in the user's words."""
    also: list[str] = field(default_factory=list)
    """What goes with it because it cannot stand alone."""

    def __bool__(self) -> bool:
        return bool(self.messages or self.episodes or self.items)


@dataclass
class _Sources:
    """What goes of each message."""

    texts: defaultdict[UUID, list[str]] = field(default_factory=lambda: defaultdict(list))
    whole: set[UUID] = field(default_factory=set)
    """Messages of which nothing stays."""

    def tell(self, message_id: UUID | None, text: str) -> bool:
        """Return whether a value that was filed from a message says what goes of it."""
        if message_id is None:
            return False
        return message_id in self.whole or any(tells_of(gone, text) for gone in self.texts.get(message_id, ()))


class Closure:
    """Finds what goes with what."""

    def __init__(self, finder: MemoryFinder, values: CoreValues) -> None:
        self._finder = finder
        self._values = values

    async def of(
        self, request: ChangeRequest, memories: Sequence[Memory], *, whole: bool = False, replaces: bool = False
    ) -> Removal:
        """Return everything that goes with some memories.

        With `whole`, messages go as a whole. If a statement `replaces` them, a message stays in which they
        cannot be told from something else.
        """
        owner = request.owner
        filed = await self._filed(request) if memories else {}
        named = {each.id: each for each in memories if each.kind == "value"}
        sources = _Sources()
        for each in memories:
            source = filed.get((each.field, each.text)) if each.kind == "value" else each.message_id
            if source is not None and source != request.message_id:
                sources.texts[source].append(each.text)
                if whole and each.kind == "said":
                    sources.whole.add(source)
        for value in await self._finder.values(owner):
            if sources.tell(filed.get((value.field, value.text)), value.text):
                named.setdefault(value.id, value)
        removal = Removal(
            episodes=[each.id for each in memories if each.kind == "written"],
            items=[removed_value(each.section, each.field, each.text) for each in named.values()],
        )
        await self._take_from_messages(request, removal, sources, replaces=replaces)
        told = [*removal.told, *(each.text for each in memories if each.kind != "said")]
        removal.told = list(dict.fromkeys(text.strip() for text in told if text.strip()))
        return removal

    async def _filed(self, request: ChangeRequest) -> Mapping[tuple[str, str], UUID]:
        """Return the message that each value, by its field and text, was filed from."""
        read: list[CoreValue] = await self._values.read(request.owner.tenant_id, request.owner.user_id)
        return {(each.field, each.text): each.message_id for each in read if each.holds and each.message_id}

    async def _take_from_messages(
        self, request: ChangeRequest, removal: Removal, sources: _Sources, *, replaces: bool
    ) -> None:
        owner = request.owner
        gone: list[str] = []
        for message in await self._finder.messages(owner, list(sources.texts)):
            message_id, rest = UUID(message.id), Remainder("", (message.text,))
            if message_id not in sources.whole:
                found = _without(message.text, sources.texts[message_id])
                if message.role != "user" or (replaces and not found.gone):
                    continue
                rest = found if found.gone else rest  # nothing can be told apart, as in a translation
            removal.messages[message_id] = rest.text or None
            removal.told += rest.gone
            removal.also += rest.also_gone
            gone += [*rest.gone, *rest.also_gone]
        for answer_id, content, asked in await self._finder.answers(owner, list(removal.messages)):
            if answer_id not in removal.messages:
                left = sentences_without(content, " ".join(gone)) if removal.messages[asked] else ""
                removal.messages[answer_id] = left or None
        for text, answer in await self._finder.repeated(request, gone):
            removal.messages.setdefault(UUID(answer.id), sentences_without(answer.text, text) or None)


def tells_of(clause: str, value: str) -> bool:
    """Return whether a clause has most words of a text."""
    return Words.of(value).share_in(Words.of(clause)) > _TELLS_OF


def _without(content: str, texts: Iterable[str]) -> Remainder:
    sought = list(texts)
    return without(content, lambda clause: any(clause == text or tells_of(clause, text) for text in sought))
