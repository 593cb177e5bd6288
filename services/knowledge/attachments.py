"""Cuts what a client attached to a message to its budget: the passages nearest to the question stay."""

import asyncio
import re
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from uuid import UUID

import structlog

from services.context.source import inert
from services.errors import Unavailable
from services.knowledge.chunking import CHUNK_TOKENS, chunks_of
from services.knowledge.document import Converted, Part
from services.knowledge.passage_scores import Candidate, probabilities
from services.llm.embeddings import Embedder, Vector
from services.llm.token_estimates import count_tokens
from services.platform.patience import Patience
from services.search.queries import Query, Utterance, make_query
from services.text.tokenizer import terms

SHARE_OF_WINDOW = 0.25
"""Share of the model's context that attachments may take, unless a setting gives the tokens."""
GAP = "[…]"
"""Mark in place of passages that were left out."""
_MOST_EMBEDDED = 48
"""Maximum passages compared by meaning: those with most words in common with the question."""
_MOST_KNOWN = 4_000
"""Maximum passages whose terms and vectors are kept: some 20 MB."""
_EMBEDDING_S = 3.0
_MOST_TERMS = 120
_TOKENS_OF_FRAME = 2 * CHUNK_TOKENS
"""Maximum tokens of text around sources that is kept whole, because it says how to use them."""
_SOURCE = re.compile(r"(<source\b[^<>]{0,2000}>)")
_CLOSES_SOURCE = "</source>"

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Attachments:
    """The parts of attached texts that are shown, in their order."""

    texts: list[str]
    shown: int
    """Approximate characters of the originals that are shown."""
    of: int
    """Characters of the originals."""

    @property
    def is_cut(self) -> bool:
        """Return whether anything was left out."""
        return self.shown < self.of


@dataclass
class _Piece:
    """A frame, which is kept, or a passage, which is shown if it is near enough to the question."""

    text: str
    of: int
    """Index of the attached text that it belongs to."""
    is_passage: bool = True
    heading: str = ""


@dataclass
class _Known:
    """Terms and meaning of a passage, in a form that nobody can read."""

    terms: tuple[int, ...]
    """Hashes of the terms, which differ between processes."""
    vector: Vector | None = None


class AttachmentCuts:
    """Cuts attachments in threads, as the terms of a passage take milliseconds. Clients send them again with
    each message, so passages are known for a while."""

    def __init__(self, embedder: Embedder) -> None:
        """Take the embedder that compares by meaning; if it fails, only words decide."""
        self._embedder = embedder
        self._known: OrderedDict[bytes, _Known] = OrderedDict()

    async def cut(
        self, texts: Sequence[str], question: str, earlier: Sequence[Utterance], *, budget: int
    ) -> Attachments:
        """Return the texts if they fit; otherwise their passages nearest to the question, with marks for gaps.

        Args:
            texts: Texts attached to the message.
            question: The message.
            earlier: What was said before it, for a question that names no subject.
            budget: Maximum tokens, as estimated.
        """
        of = sum(map(len, texts))
        if sum(map(count_tokens, texts)) <= budget:
            return Attachments(list(texts), of, of)
        query = await asyncio.to_thread(make_query, question, earlier)
        pieces = await asyncio.to_thread(_pieces, texts)
        ranked = await self._ranked(pieces, query)
        kept = _kept(pieces, ranked, budget)
        return Attachments(_rendered(pieces, kept, len(texts)), sum(len(pieces[at].text) for at in kept), of)

    async def _ranked(self, pieces: Sequence[_Piece], query: Query | None) -> list[int]:
        """Return the places of the passages, the nearest to the question first."""
        places = [at for at, each in enumerate(pieces) if each.is_passage]
        if query is None:
            return places
        sought = "\n".join(query.context) or query.text
        words, known = await asyncio.to_thread(
            lambda: (list(dict.fromkeys(terms(sought)))[:_MOST_TERMS], {at: self._of(pieces[at]) for at in places})
        )

        def nearest(cosines: Mapping[int, float]) -> list[int]:
            named = {hash(word): word for word in words}
            candidates = [
                Candidate(UUID(int=at), tuple(named.get(term, "") for term in each.terms), cosines.get(at), 0.0)
                for at, each in known.items()
            ]
            floor = 0.0 if cosines else None
            likely = probabilities(words, candidates, floor, query, asks_documents=None, by_words=True)
            return [places[at] for at in (-likely).argsort(kind="stable")]

        best = await asyncio.to_thread(nearest, {})
        if self._embedder.by_words_alone:
            return best
        near = {at: known[at] for at in best[:_MOST_EMBEDDED]}
        try:
            async with Patience(_EMBEDDING_S):
                vector = await self._embedder.embed_query(sought)
                unknown = [at for at, each in near.items() if each.vector is None]
                vectors = await self._embedder.embed_documents([pieces[at].text for at in unknown])
        except (Unavailable, TimeoutError) as error:
            log.warning("attachments are cut by words alone", error=type(error).__name__)
            return best
        for at, of_passage in zip(unknown, vectors, strict=True):
            near[at].vector = of_passage
        cosines = {at: float(each.vector @ vector) for at, each in near.items() if each.vector is not None}
        return await asyncio.to_thread(nearest, cosines)

    def _of(self, piece: _Piece) -> _Known:
        """Return the terms and meaning of a passage, which are cached for a while."""
        text = f"{piece.heading}\n{piece.text}"
        digest = blake2b(text.encode(), digest_size=16).digest()
        found = self._known.pop(digest, None) or _Known(tuple(map(hash, terms(text))))
        self._known[digest] = found
        if len(self._known) > _MOST_KNOWN:
            self._known.popitem(last=False)
        return found


def _pieces(texts: Sequence[str]) -> list[_Piece]:
    found: list[_Piece] = []
    for at, text in enumerate(texts):
        parts = _SOURCE.split(inert(text))
        found += _frame_or_passages(parts[0], at)
        for opening, inside in zip(parts[1::2], parts[2::2], strict=True):
            content, closing, after = inside.rpartition(_CLOSES_SOURCE)
            found.append(_Piece(opening, at, is_passage=False))
            found += _passages(content if closing else inside, at)
            if closing:
                found.append(_Piece(closing, at, is_passage=False))
                found += _frame_or_passages(after, at)
    return found


def _frame_or_passages(text: str, at: int) -> list[_Piece]:
    if count_tokens(text) > _TOKENS_OF_FRAME:
        return _passages(text, at)
    return [_Piece(text.strip(), at, is_passage=False)] if text.strip() else []


def _passages(text: str, at: int) -> list[_Piece]:
    chunks = chunks_of(Converted("", (Part(text),), headings=True))
    return [_Piece(each.text, at, heading=each.heading) for each in chunks]


def _kept(pieces: Sequence[_Piece], ranked: Sequence[int], budget: int) -> set[int]:
    kept = {at for at, each in enumerate(pieces) if not each.is_passage}
    left = budget - sum(count_tokens(pieces[at].text) for at in kept)
    for at in ranked:
        tokens = count_tokens(f"{GAP}\n{pieces[at].heading}\n{pieces[at].text}")
        if tokens <= left:
            kept.add(at)
            left -= tokens
    return kept


def _rendered(pieces: Sequence[_Piece], kept: set[int], count: int) -> list[str]:
    """Return what is kept of each text, in order, with a heading where it changes."""
    lines: list[list[str]] = [[] for _ in range(count)]
    heading = ""
    for at, each in enumerate(pieces):
        text = lines[each.of]
        if at in kept:
            if each.heading and each.heading != heading:
                text.append(f"# {each.heading}")
            text.append(each.text)
            heading = each.heading
        elif not text or text[-1] != GAP:
            text.append(GAP)
    return ["\n".join(each) for each in lines]
