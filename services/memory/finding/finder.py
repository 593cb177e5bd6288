"""Finds the memory that a text means: by its words, or by the encoder if no memory has all of them.

A memory is meant if it is clearly the best. If several may be meant, they are candidates, and nothing is decided.
"""

import asyncio
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import Any, Literal
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from psycopg.rows import class_row, tuple_row

from services.errors import Unavailable
from services.llm.builtin_embeddings import NAME as BUILTIN
from services.llm.embeddings import Embedder
from services.memory.core.blocks import Block, Owner
from services.memory.core.items import values_of
from services.memory.core.store import CoreMemory
from services.memory.core.values import digest_of_value
from services.memory.finding import sql
from services.memory.model import ChangeRequest, Memory
from services.memory.reading.quotes import folded
from services.memory.reading.what_stays import clauses_of, parts_of
from services.memory.reading.words import (
    Words,
    begins_with_another,
    labelled,
    patterns_of,
    speaks_of_another,
    words_of,
)
from services.platform.patience import beside_the_loop
from services.platform.postgres import Database
from services.platform.shared_reads import Query
from services.text.language import SEMICOLONS, sentences

_MOST_MENTIONS = 300
_MOST_SCANNED = 10_000
"""Number of the newest texts that are searched if the database cannot read them, unless all texts are meant."""
_LONGEST_NAMING = 300
"""Maximum characters of the words that name a memory."""
_FEW = 10
"""Number of texts up to which answers are searched for each text separately; for more, all answers are read
once."""
_LONG = 20_000
"""Characters of answers from which on they are compared in a thread."""
_ANYTHING = ["%"]
_STATEMENT = 3
"""Number of informative words from which on a text names one statement; fewer may name a subject."""
_SAME = 0.5
"""Share of the words of two texts by which they are the same statement."""
_MOST_CANDIDATES = 5
_MOST_COMPARED = 120
"""Texts whose meaning is compared, those that share most words first, then the newest."""
_ALIKE, _AHEAD = 0.6, 0.15
"""Minimum cosine of the built-in encoder for a text with words of the same stems to be meant, and its minimum
lead over every other statement."""
_MAY_BE_ALIKE = 0.42
_NAME = re.compile(r"\d+|(?<=[\w,;:] )[A-Z]\w+")
_VALUE_ID = re.compile(r"v[0-9a-f]{12}")

Embeddings = Mapping[Any, Sequence[float] | NDArray[np.float32]]
"""Embeddings of units by their ids."""
EmbeddingsOf = Callable[[Owner, Collection[UUID]], Embeddings]


@dataclass(frozen=True)
class Found:
    """Memories that a text means."""

    meant: Sequence[Memory] = ()
    """Memories that are meant beyond doubt: the same statement, in every place that has it."""
    candidates: Sequence[Memory] = ()
    """Memories that may be meant, if none is meant beyond doubt."""
    left: Sequence[Memory] = ()
    """Texts that contain all of the words too but say something else."""


class MemoryFinder:
    """Reads what a text may mean, and decides what it means."""

    def __init__(
        self, database: Database, core: CoreMemory, embedder: Embedder, embeddings_of: EmbeddingsOf
    ) -> None:
        """Take the function that returns the embeddings of those units of an owner that are at hand."""
        self._database = database
        self._embeddings_of = embeddings_of
        self._core = core
        self._embedder = embedder

    async def find(
        self, request: ChangeRequest, what: str, *, everything: bool = False, reaches_shared: bool = True
    ) -> Found:
        """Return the memories that an id or a description means.

        Args:
            request: Request with the owner of the memory; its own message is not searched.
            what: An id, or the user's words.
            everything: Whether every text with all of the words is meant, whatever else it says.
            reaches_shared: Whether, in a space, what all spaces share is searched too.
        """
        what = what.replace("\x00", "").strip()
        if is_id(what):
            memory = await self.by_id(request.owner, what, reaches_shared=reaches_shared)
            return Found([memory] if memory else [])
        sought = Words.of(what)
        if not sought.count:
            return Found()
        values = await self.values(request.owner, reaches_shared=reaches_shared)
        most = None if everything else _MOST_MENTIONS
        stored = await self._stored(request, what, most, reaches_shared=reaches_shared)
        places = _places([*values, *stored])
        covering = [each for each in places if _has_all(each, sought) and not speaks_of_another(what, each)]
        wholly = _named_wholly(places, covering, sought)
        covering += [each for each in wholly if each not in covering]
        if everything:
            return Found(covering)
        left: list[Memory] = []
        if verbatim := [Words.of(each.text) for each in covering if folded(what) in folded(each.text)]:
            # “I like tea” is not “my wife likes tea”, and the value “tea” says nothing else.
            left = [each for each in covering if not any(Words.of(each.text).covered_by(own) for own in verbatim)]
            covering = [each for each in covering if each not in left]
        if covering:
            found = _decided(covering, sought)
            return replace(found, left=left)
        if parts := self._named_apart(what, places):
            return Found(parts)
        names = Words.of(" ".join(_NAME.findall(what)))
        named = [
            each
            for each in places
            if names.covered_by(words_of(replace(each, text=each.within or each.text))) or not names.count
        ]
        named = [each for each in named if not speaks_of_another(what, each)]
        return await self._by_meaning(what, sought, named)

    @staticmethod
    def _named_apart(what: str, places: Sequence[Memory]) -> list[Memory]:
        """Return the memories for words that name several things (“the code and the password”), if each of them is
        clear."""
        found: list[Memory] = []
        parts = parts_of(what) if len(what) <= _LONGEST_NAMING else []
        for part in parts if len(parts) > 1 else ():
            sought = Words.of(part)
            covering = [each for each in places if _has_all(each, sought) and not speaks_of_another(part, each)]
            meant = _decided(covering, sought).meant if covering else ()
            if not meant:
                return []
            found += [each for each in meant if each not in found]
        return found

    async def _by_meaning(self, what: str, sought: Words, places: Sequence[Memory]) -> Found:
        """Return the memory nearest in meaning to the words, if one statement is clearly ahead of all others."""
        places = sorted(places, key=lambda each: -sought.share_in(words_of(each)))[:_MOST_COMPARED]
        if not places:
            return Found()
        likeness = await self.likeness([what], places, {})
        if likeness is None:
            return _nearly(places, sought)
        order = np.argsort(-likeness)
        best = places[int(order[0])]
        others = [at for at in order[1:] if not _say_the_same(places[int(at)], best)]
        ahead = float(likeness[order[0]] - likeness[others[0]]) if others else 1.0
        # Alike is not the same: “allergic to kiwi” is next to “allergic to peanuts”, my dog to my cat.
        is_meant = sought.resembles(words_of(best)) and likeness[order[0]] >= _ALIKE and ahead >= _AHEAD
        if self._embedder.model == BUILTIN and is_meant:
            return Found([each for each in places if each is best or _say_the_same(each, best)])
        if self._embedder.model == BUILTIN:
            order = order[likeness[order] >= _MAY_BE_ALIKE]
        else:  # what its scores mean is not known: only words tell whether anything is meant
            order = order[[sought.share_in(words_of(places[int(at)])) > 0 for at in order]]
        return Found((), [places[int(at)] for at in order[:_MOST_CANDIDATES]])

    async def likeness(
        self, texts: Sequence[str], places: Sequence[Memory], vectors: Embeddings
    ) -> NDArray[np.float64] | None:
        """Return the cosine of each memory with the nearest of some texts; None if no encoder answers.

        `vectors` are the embeddings of some memories, by their ids.
        """
        if self._embedder.by_words_alone is not None:
            return None
        others = [each for each in places if each.id not in vectors]
        try:
            wanted = await self._embedder.embed_queries(texts)
            found = iter(await self._embedder.embed_documents([labelled(each) for each in others], again=True))
        except Unavailable:
            return None
        # Clauses of one message have its id.
        known = np.array([vectors[each.id] if each.id in vectors else next(found) for each in places], np.float64)
        return np.asarray((known @ wanted.T).max(axis=1))

    async def by_id(self, owner: Owner, memory_id: str, *, reaches_shared: bool = True) -> Memory | None:
        """Return the memory with an id; None if the owner has no such memory."""
        memory_id = memory_id.strip().lower()
        if not is_id(memory_id):
            return None
        if _VALUE_ID.fullmatch(memory_id):
            values = await self.values(owner, reaches_shared=reaches_shared)
            return next((each for each in values if each.id == memory_id), None)
        asked = {**vars(owner), "id": UUID(memory_id), "reaches_shared": reaches_shared}
        rows = await self._database.fetch(owner.tenant_id, sql.EPISODE, asked, class_row(Memory))
        if rows:
            return rows[0] if rows[0].text else None
        return next(iter(await self.messages(owner, [UUID(memory_id)])), None)

    async def values(self, owner: Owner, *, reaches_shared: bool = True) -> list[Memory]:
        """Return the values of core memory, those of the owner's space first."""
        blocks = await self._core.read(owner)
        if owner.space_id is not None and reaches_shared:
            blocks += await self._core.read(owner.shared)
        return [each for block in blocks for each in _values_of(block)]

    async def written(self, owner: Owner) -> list[Memory]:
        """Return the newest written memories."""
        query = Query(sql.WRITTEN, {**vars(owner), "most": _MOST_MENTIONS}, class_row(Memory))
        return await self._database.read(owner.tenant_id, query)

    async def nearest(self, request: ChangeRequest, texts: Sequence[str], *, limit: int = 12) -> list[Memory]:
        """Return the values and written memories nearest to any of some texts, at least one. By the encoder, or
        by words without one."""
        values, written = await asyncio.gather(self.values(request.owner), self.written(request.owner))
        known = [*values, *written]
        if len(known) <= limit:
            return _by_words(known, texts)
        indexed = self._embeddings_of(request.owner, {UUID(each.id) for each in written})
        vectors = {str(unit_id): vector for unit_id, vector in indexed.items()}
        others = [each for each in known if each.id not in vectors]
        if len(others) > _MOST_COMPARED:
            others = _by_words(others, texts)[:_MOST_COMPARED]
        known = [*others, *(each for each in known if each.id in vectors)]
        likeness = await self.likeness(texts, known, vectors)
        nearest = _by_words(known, texts) if likeness is None else [known[int(at)] for at in np.argsort(-likeness)]
        return nearest[:limit]

    async def previous(self, request: ChangeRequest) -> Memory | None:
        """Return the user's last message before the request's."""
        asked = {"tenant_id": request.owner.tenant_id, "conversation_id": request.conversation_id}
        asked["message_id"] = request.message_id
        found = await self._database.fetch(request.owner.tenant_id, sql.PREVIOUS, asked, class_row(Memory))
        return found[0] if found else None

    async def quoted(self, request: ChangeRequest, quote: str) -> Memory | None:
        """Return the user's newest message before the request's that contains a quote; None if there is none."""
        sought = folded(quote)
        if not sought:
            return None
        patterns = patterns_of(quote)
        found = await self._mentions(request, patterns, "user", _MOST_MENTIONS, reaches_shared=True)
        said = sorted((each for each in found if each.kind == "said"), key=attrgetter("at", "id"), reverse=True)
        return next((each for each in said if sought in folded(each.text)), None)

    async def messages(self, owner: Owner, ids: Sequence[UUID]) -> list[Memory]:
        """Return messages of the owner as memory keeps them, oldest first."""
        asked = {**vars(owner), "message_ids": list(ids)}
        return await self._database.fetch(owner.tenant_id, sql.MESSAGES, asked, class_row(Memory))

    async def answers(self, owner: Owner, ids: Sequence[UUID]) -> list[tuple[UUID, str, UUID]]:
        """Return id and text of the answer to each message, and the message that it answers."""
        asked = {"tenant_id": owner.tenant_id, "message_ids": list(ids)}
        return await self._database.fetch(owner.tenant_id, sql.ANSWERS, asked, tuple_row)

    async def repeated(self, request: ChangeRequest, texts: Sequence[str]) -> list[tuple[str, Memory]]:
        """Return the answers that contain all words of some text, each with that text."""
        if len(texts) > _FEW:
            every = await self._mentions(request, _ANYTHING, "assistant", None, reaches_shared=True)
            found = [(text, every) for text in texts]
        else:
            ask = partial(self._mentions, request, role="assistant", most=_MOST_MENTIONS, reaches_shared=True)
            found = [(text, await ask(patterns=patterns_of(text))) for text in texts]
        characters = sum(len(each.text) for _, answers in found for each in answers)
        return await beside_the_loop(partial(_covered, found), characters=characters, most=_LONG)

    async def _stored(
        self, request: ChangeRequest, what: str, most: int | None, *, reaches_shared: bool
    ) -> list[Memory]:
        some = {
            each.id: each
            for patterns, limit in ((patterns_of(what), most), (_ANYTHING, _MOST_MENTIONS))
            for each in await self._mentions(request, patterns, "user", limit, reaches_shared=reaches_shared)
        }
        return sorted(some.values(), key=attrgetter("at", "id"), reverse=True)

    async def _mentions(
        self,
        request: ChangeRequest,
        patterns: list[str],
        role: Literal["user", "assistant"],
        most: int | None,
        *,
        reaches_shared: bool,
    ) -> list[Memory]:
        """Return messages and memories that match most of the patterns, newest first; `most` None = all of
        them."""
        if not patterns:
            return []
        values: dict[str, Any] = {
            **vars(request.owner),
            "message_id": request.message_id,
            "reaches_shared": reaches_shared,
            "patterns": patterns,
            "roles": [role],
            "most": most,
        }
        is_searched_here = self._database.vault is not None and patterns != _ANYTHING  # as it is encrypted
        if is_searched_here:
            values |= {"patterns": _ANYTHING, "most": most and _MOST_SCANNED}
        found = await self._database.fetch(request.owner.tenant_id, sql.MENTIONS, values, class_row(Memory))
        if not is_searched_here:
            return found
        parts = [re.sub(r"\\(.)", r"\1", each[1:-1]).lower() for each in patterns]
        lowered = [(each.text.lower(), each) for each in found]
        matched = [(sum(part in content for part in parts), each) for content, each in lowered]
        matched = sorted((each for each in matched if each[0]), key=lambda each: -each[0])
        return [each for _, each in matched[:most]]


def _by_words(known: Sequence[Memory], texts: Sequence[str]) -> list[Memory]:
    """Return memories sorted by the number of words that they share with some texts."""
    sought = Words.of("\n".join(texts))
    return sorted(known, key=lambda each: -words_of(each).share_in(sought))


def _covered(found: Iterable[tuple[str, Sequence[Memory]]]) -> list[tuple[str, Memory]]:
    """Return each text with those of its answers that have all of its words."""
    words: dict[str, Words] = {}
    covered = []
    for text, answers in found:
        sought = Words.of(text)
        for each in answers:
            if each.id not in words:
                words[each.id] = Words.of(each.text)
            if sought.covered_by(words[each.id]):
                covered.append((text, each))
    return covered


def is_id(text: str) -> bool:
    """Return whether a text is an id of a memory, and names nothing by its words."""
    try:
        UUID(text.strip())
    except ValueError:
        return _VALUE_ID.fullmatch(text.strip().lower()) is not None
    return True


def _values_of(block: Block) -> Iterable[Memory]:
    for field, text in values_of(block.content):
        memory_id = "v" + digest_of_value(block.id, field, text).hex()[:12]
        yield Memory("value", memory_id, text, block.updated_at, section=block.section, field=field)


def _places(known: Iterable[Memory]) -> list[Memory]:
    """Return each clause of memories and messages, except for questions."""
    found = []
    for each in known:
        before = ""
        for sentence in sentences(each.text, SEMICOLONS):
            subject = ""
            for clause in clauses_of(sentence):
                about = before if begins_with_another(clause.text) else "" if clause.stands else subject
                before = clause.text
                subject = clause.text if clause.stands else subject
                if not clause.asks or each.kind != "said":
                    found.append(replace(each, text=clause.text, within=each.text, subject=about))
    return found


def _has_all(memory: Memory, sought: Words) -> bool:
    """Return whether a clause has all of some words, counting those of the subject that stands before it."""
    own, before = words_of(memory), Words.of(memory.subject)
    if sought.covered_by(own) or not memory.subject or not sought.share_in(own) or sought.covered_by(before):
        return sought.covered_by(own)
    return sought.covered_by(words_of(replace(memory, text=f"{memory.subject} {memory.text}")))


def _named_wholly(places: Iterable[Memory], covering: Iterable[Memory], sought: Words) -> list[Memory]:
    """Return all clauses of the texts that say nothing beyond the words, because the words name all of them."""
    named = {each.id for each in covering}
    return [each for each in places if each.id in named and Words.of(each.within).covered_by(sought)]


def _decided(covering: Sequence[Memory], sought: Words) -> Found:
    """Return the texts that have all of the words: as one statement if they say the same, otherwise as
    candidates."""
    if sought.count >= _STATEMENT:
        return Found(covering)
    groups: list[list[Memory]] = []
    for each in covering:
        for group in groups:
            if _say_the_same(each, group[0]):
                group.append(each)
                break
        else:
            groups.append([each])
    if len(groups) == 1:
        return Found(covering)
    return Found((), [group[0] for group in groups[:_MOST_CANDIDATES]])


def _say_the_same(one: Memory, other: Memory) -> bool:
    first, second = Words.of(one.text), Words.of(other.text)
    return max(first.share_in(second), second.share_in(first)) > _SAME


def _nearly(named: Sequence[Memory], sought: Words) -> Found:
    """Return the memory that shares most words with the request, if it clearly shares more than any other."""
    scored = sorted(((sought.share_in(words_of(each)), each) for each in named), key=lambda each: -each[0])
    return Found((), [each for share, each in scored if share >= _SAME][:_MOST_CANDIDATES])
