"""The closure of a removal: everything that goes with the named memories.

A statement takes along the clause of the message from which it was filed, a clause takes along the statements that
were filed from it, and both take along what answers repeat of them. `what_stays` decides what remains of each
text.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from services.memory.core.items import removed_value
from services.memory.core.values import CoreValues
from services.memory.finding.finder import MemoryFinder
from services.memory.model import ChangeRequest, Memory
from services.memory.reading.what_stays import Rest, names_a_part, says_more_than, what_stays
from services.memory.reading.words import Words, repeats, says
from state.memory import ItemChange

_MOST_REPEATED = 50
"""Maximum number of texts whose repetitions are looked for in an answer; with more, the whole answer goes."""


@dataclass
class Gone:
    """Everything that goes."""

    messages: dict[str, str | None] = field(default_factory=dict)
    """Text that memory keeps of each message, by the message's id; None if it keeps nothing."""
    episodes: list[str] = field(default_factory=list)
    items: list[ItemChange] = field(default_factory=list)
    written: list[str] = field(default_factory=list)
    """Remaining texts of written memories, which are written again."""
    told: list[str] = field(default_factory=list)
    """The user's words that go."""
    shared: list[str] = field(default_factory=list)
    """Sentences that also say something else, which would go along."""
    texts: list[str] = field(default_factory=list)
    """Whole texts from which something goes."""

    def __bool__(self) -> bool:
        return bool(self.messages or self.episodes or self.items)


@dataclass
class _Source:
    """Texts of one message that go."""

    texts: list[str] = field(default_factory=list)
    is_whole: bool = False


class Closure:
    """Finds what goes with what."""

    def __init__(self, finder: MemoryFinder, values: CoreValues) -> None:
        self._finder = finder
        self._values = values

    async def of(
        self, request: ChangeRequest, memories: Sequence[Memory], *, what: str = "", whole: bool = False
    ) -> Gone:
        """Return everything that goes with some memories.

        Args:
            request: whose memory; of its own message nothing goes.
            memories: what is named.
            what: the words that name it; empty = ids do.
            whole: whether memories go as a whole, messages as well.
        """
        filed = await self._filed(request) if memories else {}
        sources: defaultdict[UUID, _Source] = defaultdict(_Source)
        named: dict[str, list[Memory]] = {}
        for each in memories:
            if each.kind != "said":
                named.setdefault(each.id, []).append(each)
            source = filed.get((each.field, each.within or each.text)) if each.kind == "value" else each.message_id
            if source is not None and source != request.message_id:
                sources[source].texts.append(each.text)
                sources[source].is_whole |= whole and each.kind == "said"
        gone = Gone()
        for parts in named.values():
            _take_statement(gone, parts, what, says_more_than, whole=whole)
        for value in await self._finder.values(request.owner):
            source = filed.get((value.field, value.text))
            if source is not None and source in sources and value.id not in named:
                self._take_filed(gone, value, sources[source])
        await self._take_from_messages(request, gone, sources, [what] if what else [])
        gone.told = _each_once(gone.told)
        gone.shared = _each_once(gone.shared)
        return gone

    @staticmethod
    def of_statements(memories: Sequence[Memory], what: str = "") -> Gone:
        """Return the statements among some memories that are replaced, without anything that was said.

        `what` are the words that name them; if it is empty, ids name them, and each statement is replaced as a
        whole.
        """
        gone, named = Gone(), dict[str, list[Memory]]()
        for each in memories:
            if each.kind == "said":
                gone.told.append(each.text)
            else:
                named.setdefault(each.id, []).append(each)
        for parts in named.values():
            _take_statement(gone, parts, what, names_a_part, whole=not what)
        gone.told, gone.shared = _each_once(gone.told), _each_once(gone.shared)
        return gone

    async def _filed(self, request: ChangeRequest) -> Mapping[tuple[str, str], UUID]:
        """Return the message from which each value was filed, by the value's field and text."""
        read = await self._values.read(request.owner.tenant_id, request.owner.user_id)
        return {(each.field, each.text): each.message_id for each in read if each.holds and each.message_id}

    @staticmethod
    def _take_filed(gone: Gone, value: Memory, source: _Source) -> None:
        """Add a value that was filed from the part of a message that goes."""
        if source.is_whole:
            _take(gone, value, value.text, Rest("", (value.text,)))
        elif any(says(text, value.text) for text in source.texts):
            rest = what_stays(
                value.text,
                lambda clause: any(says(text, clause) for text in source.texts),
                says_more=lambda clause: _says_more(clause, source.texts),
            )
            _take(gone, value, value.text, rest)

    async def _take_from_messages(
        self, request: ChangeRequest, gone: Gone, sources: Mapping[UUID, _Source], namings: Sequence[str]
    ) -> None:
        owner, clauses = request.owner, list[str]()
        for message in await self._finder.messages(owner, list(sources)):
            if message.role != "user":
                continue
            rest = _rest_of_message(message.text, sources[UUID(message.id)], namings)
            gone.messages[message.id] = rest.text or None
            gone.told += rest.gone
            gone.shared += rest.shared
            gone.texts.append(message.text)
            clauses += rest.gone
        for answer_id, content, asked in await self._finder.answers(owner, [UUID(each) for each in gone.messages]):
            if str(answer_id) not in gone.messages:
                left = without_repetition(content, clauses) if gone.messages[str(asked)] else ""
                gone.messages[str(answer_id)] = left or None
        for text, answer in await self._finder.repeated(request, clauses):
            gone.messages.setdefault(answer.id, without_repetition(answer.text, [text]) or None)


def without_repetition(answer: str, gone: Iterable[str]) -> str:
    """Return an answer without the clauses that repeat some texts; if there are very many texts, nothing
    remains."""
    texts = list(dict.fromkeys(gone))
    if len(texts) > _MOST_REPEATED:
        return ""
    return what_stays(answer, lambda clause: any(repeats(clause, text) for text in texts)).text


def _rest_of_message(content: str, source: _Source, namings: Sequence[str]) -> Rest:
    if source.is_whole:
        return Rest("", (content,))
    rest = what_stays(
        content,
        lambda clause: any(clause == text or says(clause, text) for text in source.texts),
        says_more=lambda clause: _says_more(clause, namings or source.texts),
    )
    if rest.gone:
        return rest
    # Nothing can be told apart, as where a statement is a translation.
    is_one = len(what_stays(content, lambda _: True).gone) == 1
    return Rest("", (content,), () if is_one else (content,))


def _take_statement(
    gone: Gone, parts: Sequence[Memory], what: str, says_more: Callable[[str, str], bool], *, whole: bool
) -> None:
    """Remove the named clauses of a statement, or the whole statement if `whole`."""
    clauses = {each.text for each in parts}
    text = parts[0].within or parts[0].text
    rest = Rest("", (text,))
    if not whole:
        rest = what_stays(text, clauses.__contains__, says_more=lambda clause: says_more(clause, what))
    _take(gone, parts[0], text, rest)


def _take(gone: Gone, memory: Memory, text: str, rest: Rest) -> None:
    """Remove a value or a written memory, and keep the rest of its text."""
    if memory.kind == "written":
        gone.episodes.append(memory.id)
        gone.written += [rest.text] if rest.text else []
    elif rest.text and "." not in memory.field:
        kept = rest.text.strip(" .。")
        gone.items.append(ItemChange("replace", memory.section, memory.field, value=kept, old=text))
    else:
        gone.items.append(removed_value(memory.section, memory.field, text))
    gone.told += rest.gone
    gone.shared += rest.shared
    gone.texts.append(text)


def _says_more(clause: str, namings: Iterable[str]) -> bool:
    """Return whether a clause says something beyond the words that name what goes."""
    words = Words.of(clause)
    touching = [each for each in namings if Words.of(each).share_in(words) > 0]
    return bool(touching) and all(says_more_than(clause, each) for each in touching)


def _each_once(texts: Iterable[str]) -> list[str]:
    """Return the texts without those that only repeat a part of another."""
    kept: list[str] = []
    for text in sorted({each.strip(): None for each in texts if each.strip()}, key=len, reverse=True):
        if not any(Words.of(text).covered_by(Words.of(other)) for other in kept):
            kept.append(text)
    return kept
