"""Embeddings: of the built-in encoder, an endpoint, or a model on this machine."""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import structlog
from numpy.typing import NDArray
from opentelemetry.trace import SpanKind

from services.errors import Unavailable
from services.llm.builtin_embeddings import DIMENSIONS, NAME, BuiltinEncoder, missing
from services.platform import span_names as names
from services.platform.patience import CircuitBreaker
from services.platform.settings import Settings
from services.platform.tracing import Attributes, span
from services.search.embedding_quality import probe_texts
from services.search.queries import of_length_1
from services.text.caches import drop_with_texts
from services.usage.ledger import Spent, note_spent

if TYPE_CHECKING:
    from services.llm.embedding_clients import EmbeddingClient

log = structlog.get_logger(__name__)

Vector = NDArray[np.float32]

NONE = "none: words alone"
"""Name of the model in an index without embeddings, which is searched by words alone."""
_NO_DIMENSIONS = 2
_BETWEEN, _WHILE_IDLE = 4, 16
"""Number of texts that the built-in encoder takes before it lets the event loop continue, while the loop is busy
and while it is idle. A separate thread would starve beside a busy loop. Sixteen texts at once cost a sixth less
each."""
_MOMENT_S, _LONGEST_S = 0.001, 0.03
"""Seconds for which texts are collected, normally and at most. The longer time lets other turns of a busy event
loop catch up."""
_EXPECTED = 600
"""Maximum number of texts that are expected, since some of them may never be needed."""
_CHARACTERS_AT_ONCE = 600
"""Characters after which the encoder lets a busy event loop continue. An idle loop waits in proportion to its
larger number of texts."""


class EmbeddingBatch:
    """Collects the texts of a moment, so that the encoder reads its twelve megabytes of weights once for all of
    them.

    For a single short text, reading them takes half of the time. If late calls and timers show that the event loop
    is busy, other turns run first, since most of them are about to bring texts. An idle loop embeds at once.
    """

    def __init__(self, encode: Callable[[list[str]], Sequence[Any]]) -> None:
        """Take the function that makes a vector of each text."""
        self._encode = encode
        self._waiting: deque[tuple[str, asyncio.Future[Any]]] = deque()
        self._expected: deque[str] = deque(maxlen=_EXPECTED)
        drop_with_texts(self._expected.clear)

    def expect(self, texts: Sequence[str], *, soon: bool = False) -> None:
        """Announce texts whose vectors will be needed. They fill up the next batch, whose results are cached. An
        idle event loop embeds them `soon`."""
        self._expected.extend(texts)
        if soon:
            loop = asyncio.get_running_loop()
            loop.call_soon(self._embed_expected, loop.time() + 2 * _MOMENT_S)

    async def of(self, texts: Sequence[str]) -> list[Any]:
        """Return a vector for each text; raises what the encoder raises."""
        loop = asyncio.get_running_loop()
        found: list[asyncio.Future[Any]] = [loop.create_future() for _ in texts]
        if not self._waiting:
            loop.call_soon(self._look, loop.time() + 2 * _MOMENT_S, loop.time() + _LONGEST_S)
        self._waiting.extend(zip(texts, found, strict=True))
        return [await found[0]] if len(found) == 1 else await asyncio.gather(*found)

    def _look(self, late: float, until: float) -> None:
        loop = asyncio.get_running_loop()
        few = sum(len(text) for text, _ in self._waiting) < _CHARACTERS_AT_ONCE
        if few and late < loop.time() < until:
            loop.call_later(_MOMENT_S, self._look, loop.time() + 2 * _MOMENT_S, until)
        else:
            self._embed_waiting()

    def _embed_expected(self, late: float) -> None:
        if not self._waiting and asyncio.get_running_loop().time() < late:
            self._embed_waiting()

    def _embed_waiting(self) -> None:
        taken: list[tuple[str, asyncio.Future[Any]]] = []
        characters = 0
        while self._waiting and characters < _CHARACTERS_AT_ONCE:
            text, found = self._waiting.popleft()
            if not found.done():  # not cancelled meanwhile
                taken.append((text, found))
                characters += len(text)
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._embed_waiting)
        texts = [text for text, _ in taken]
        while self._expected and characters < _CHARACTERS_AT_ONCE:
            texts.append(text := self._expected.popleft())
            characters += len(text)
        if not texts:
            return
        try:
            vectors = self._encode(texts)
        except Exception as error:
            for _, found in taken:
                found.set_exception(error)
            return
        for (_, found), vector in zip(taken, vectors, strict=False):
            found.set_result(vector)


class Embedder:
    """Embeds texts, behind a circuit breaker, and checks the results."""

    def __init__(
        self,
        client: "EmbeddingClient | None",
        *,
        model: str,
        dimension: int,
        builtin: BuiltinEncoder | None = None,
    ) -> None:
        """Wrap a client or the built-in encoder; without either, every vector is zero and words alone decide."""
        self.answered = False
        """Whether it has made embeddings since the start."""
        self._client = client
        self._builtin = builtin
        self._together = EmbeddingBatch(builtin.encode_again) if builtin else None
        self._query, self._document = (client.roles.query, client.roles.document) if client else ("", "")
        self.model = client.roles.identity(model) if client else model
        """Name of the model as an index stores it, with the prefixes of its roles."""
        self._centre: asyncio.Task[Vector] | None = None
        self.dimension = dimension
        self._breaker = CircuitBreaker("The embedding endpoint")

    @classmethod
    def of(cls, settings: Settings) -> "Embedder":
        """Make the embedder that the settings name. Raises `ConfigurationError` if a local model cannot be
        loaded."""
        if settings.embedding_model is None or settings.embedding_dim is None:
            if reason := missing():
                log.warning("recall goes by words alone", reason=reason)
                return cls(None, model=NONE, dimension=_NO_DIMENSIONS)
            builtin = BuiltinEncoder(settings.data_dir / "encoder")
            return cls(None, model=NAME, dimension=DIMENSIONS, builtin=builtin)
        # This import takes half a second and 50 MB; only a configured model needs it.
        from services.llm.embedding_clients import EmbeddingClient  # noqa: PLC0415

        return cls(EmbeddingClient(settings), model=settings.embedding_model, dimension=settings.embedding_dim)

    @property
    def failing(self) -> bool:
        """Whether its last use failed."""
        return self._breaker.failing

    @property
    def is_loading(self) -> bool:
        """Whether the built-in encoder is still to be loaded, which takes half a second."""
        return self._builtin is not None and not self._builtin.loaded

    @property
    def by_words_alone(self) -> str | None:
        """Return the reason why there are no embeddings at all; None if there are."""
        return missing() if self.model == NONE else None

    @property
    def computes_here(self) -> bool:
        """Whether it computes in this process, and so holds up the event loop."""
        return self._builtin is not None

    async def close(self) -> None:
        """Close the connections to the endpoint."""
        if self._centre is not None:
            self._centre.cancel()
        if self._client is not None:
            await self._client.close()

    def load(self) -> None:
        """Load what it needs; takes half a second once, so not in the event loop."""
        if self._builtin is not None:
            self._builtin.load()

    async def prepare(self) -> None:
        """Load or ask for whatever the first texts would have to wait for. An endpoint that does not answer is
        asked again later."""
        if self._client is None:
            await asyncio.to_thread(self.load)
            return
        with contextlib.suppress(Unavailable):
            await self._centre_of(self._client)

    async def embed_soon(self, texts: Sequence[str]) -> list[Vector] | None:
        """Return vectors if they take only some milliseconds; None if they take longer, for example from an
        endpoint."""
        if self._together is None or self._builtin is None or not self._builtin.loaded:
            return None
        return await self._together.of(texts)

    def expect(self, texts: Sequence[str], *, soon: bool = False) -> None:
        """Announce texts that beginning turns will search by. The built-in encoder embeds them along with others,
        or soon."""
        if self._together is not None and self._builtin is not None and self._builtin.loaded:
            self._together.expect(texts, soon=soon)

    async def embed_query(self, text: str) -> list[float]:
        """Return the vector of a text to search by. Raises `Unavailable` if the endpoint does not answer, or its
        vectors do not have the configured number of dimensions."""
        vector: list[float] = (await self._embed_all([self._query + text]))[0].tolist()
        return vector

    async def embed_queries(self, texts: Sequence[str]) -> Vector:
        """Return the vectors (rows) of the texts that a turn searches by; raises as `embed_query`."""
        soon = await self.embed_soon(texts)
        asked = [self._query + text for text in texts]
        return np.array(await self._embed_all(asked, again=True) if soon is None else soon, dtype=np.float32)

    async def embed_documents(self, texts: Sequence[str], *, again: bool = False) -> list[Vector]:
        """Return a vector for each text that can be found by a search.

        An endpoint gets up to 64 texts in a call, or as many as it accepts.

        Args:
            texts: that are embedded.
            again: whether turns have had most of them embedded before: the built-in encoder keeps what it found.

        Raises:
            Unavailable: as `embed_query`.
        """
        return await self._embed_all([self._document + text for text in texts], again=again)

    async def _embed_all(self, texts: list[str], *, again: bool = False) -> list[Vector]:
        vectors: list[Vector] = []
        if self._client is not None and texts:
            centre = await self._centre_of(self._client)
            while some := texts[len(vectors) : len(vectors) + self._client.at_once]:
                vectors += list(of_length_1(of_length_1(await self._embed(self._client, some)) - centre))
            return vectors
        if self._builtin is None:
            return list(np.zeros((len(texts), self.dimension), dtype=np.float32))
        if not self._builtin.loaded:
            await asyncio.to_thread(self._builtin.load)
        encode = self._builtin.encode_again if again else self._builtin.encode
        most = _BETWEEN
        while some := texts[len(vectors) : len(vectors) + most]:
            if vectors:
                begun = time.perf_counter()
                await asyncio.sleep(0)
                most = _WHILE_IDLE if time.perf_counter() - begun < _MOMENT_S else _BETWEEN
            while len(some) > 1 and sum(map(len, some)) * _BETWEEN > most * _CHARACTERS_AT_ONCE:
                some = some[:-1]
            vectors += list(encode(some))
        return vectors

    async def _centre_of(self, client: "EmbeddingClient") -> Vector:
        """Return the mean of ordinary sentences, computed once.

        Many models put all texts into a narrow cone, in which two unrelated texts have a cosine of .8. Without the
        common part the cosines are spread like those of the built-in encoder, for which the weights of recall were
        learned (Mu, Viswanath: All-but-the-Top, 2018).
        """
        if self._centre is None or (
            self._centre.done() and (self._centre.cancelled() or self._centre.exception())
        ):
            self._centre = asyncio.create_task(self._find_centre(client), name="centre of the embeddings")
        return await asyncio.shield(self._centre)

    async def _find_centre(self, client: "EmbeddingClient") -> Vector:
        texts = [self._document + text for text in probe_texts()]
        vectors: list[list[float]] = []
        while some := texts[len(vectors) : len(vectors) + client.at_once]:
            vectors += await self._embed(client, some)
        centre: Vector = of_length_1(vectors).mean(axis=0)
        return centre

    async def _embed(self, client: "EmbeddingClient", texts: list[str]) -> list[list[float]]:
        about: Attributes = {
            names.OPERATION: "embeddings",
            names.REQUEST_MODEL: self.model,
            names.DIMENSION: self.dimension,
        }
        async with self._breaker.use():
            with span(f"embeddings {self.model}", about, kind=SpanKind.CLIENT):
                vectors = await client.embed(texts)
            note_spent(self.model, Spent(calls=1))
            if len(vectors) != len(texts) or any(len(vector) != self.dimension for vector in vectors):
                sizes = sorted({len(vector) for vector in vectors})
                raise Unavailable(
                    f"The embedding endpoint answers with {len(vectors)} vectors of {sizes} dimensions for "
                    f"{len(texts)} texts; ANAMNESIS_EMBEDDING_DIM is {self.dimension}."
                )
        self.answered = True
        return vectors
