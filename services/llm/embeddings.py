"""Embeddings: of the built-in encoder, an endpoint, or a model on this machine."""

import asyncio
import re
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import httpx
import numpy as np
import structlog
from langchain_core.embeddings import Embeddings
from numpy.typing import NDArray
from opentelemetry.trace import SpanKind

from services.errors import EmbeddingFailed, Unavailable
from services.llm.builtin_embeddings import DIMENSIONS, NAME, BuiltinEncoder, missing
from services.llm.embedding_roles import Roles, roles_of
from services.llm.endpoint_messages import endpoint_message, for_log, secrets_of
from services.platform import span_names as names
from services.platform.patience import CircuitBreaker
from services.platform.proxies import OPENAI, through
from services.platform.settings import Settings
from services.platform.tracing import Attributes, span
from services.usage.ledger import Spent, note_spent

log = structlog.get_logger(__name__)

Vector = NDArray[np.float32]

_SAME = Roles()
NONE = "none: words alone"
"""Name of the model of an index without embeddings."""
_NO_DIMENSIONS = 2
_AT_ONCE = 64
_BETWEEN = 4
"""Texts that the built-in encoder takes before the event loop goes on; a thread beside a busy loop starves."""
_OF_TURNS = 128
"""Texts of a call up to which they come from turns and not from an import."""
_DIMENSIONS = re.compile("dimension|matryoshka", re.IGNORECASE)
_TOO_MANY = re.compile(
    r"batch[ _]?size|too many (?:inputs|texts)|(?:inputs?|texts?|array)\b.{0,40}\bat most", re.IGNORECASE
)

_MOMENT_S = 0.001
_CHARACTERS_AT_ONCE = 600
"""Characters after which the event loop goes on."""


def _clients() -> Any:
    """Return the clients of models other than the built-in one: half a second and 50 MB, for who has one."""
    from services.llm import embedding_clients  # noqa: PLC0415

    return embedding_clients


class EmbeddingBatch:
    """Collects texts for a moment: the encoder's twelve megabytes of weights are then read once for all of them.

    For one short text alone, reading them takes half of its time.
    """

    def __init__(self, encode: Callable[[list[str]], Sequence[Any]]) -> None:
        """Take what makes a vector of each text."""
        self._encode = encode
        self._waiting: deque[tuple[str, asyncio.Future[Any]]] = deque()

    async def of(self, texts: Sequence[str]) -> list[Any]:
        """Return a vector for each text; raises what the encoder raises."""
        loop = asyncio.get_running_loop()
        found: list[asyncio.Future[Any]] = [loop.create_future() for _ in texts]
        self._waiting.extend(zip(texts, found, strict=True))
        loop.call_later(_MOMENT_S, self._embed_waiting)
        return [await found[0]] if len(found) == 1 else await asyncio.gather(*found)

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
        if not taken:
            return
        try:
            vectors = self._encode([text for text, _ in taken])
        except Exception as error:
            for _, found in taken:
                found.set_exception(error)
            return
        for (_, found), vector in zip(taken, vectors, strict=True):
            found.set_result(vector)


class Embedder:
    """Embeds texts, behind a circuit breaker, and checks the results."""

    def __init__(
        self,
        embeddings: Embeddings | None,
        *,
        model: str,
        dimension: int,
        roles: Roles = _SAME,
        builtin: BuiltinEncoder | None = None,
        http: httpx.AsyncClient | None = None,
        url: str = OPENAI,
        secrets: Sequence[str] = (),
    ) -> None:
        """Wrap a client or the built-in encoder; without either, every vector is zero and words alone decide.

        Args:
            dimension: Dimensions of its vectors.
            roles: What is put before a text.
            builtin: The built-in encoder.
            http: The client's connections, which are closed with the embedder.
            url: What the client asks.
            secrets: Removed from the endpoint's messages.
        """
        self._http = http
        self._url = url
        self._secrets = secrets
        self._at_once = _AT_ONCE
        self.answered = False
        """Whether it has made embeddings since the start."""
        self._embeddings = embeddings
        self._builtin = builtin
        self._together = EmbeddingBatch(builtin.encode_again) if builtin else None
        self._roles = roles
        self.model = roles.identity(model)
        """The model's name as an index keeps it, with the prefixes of its roles."""
        self.dimension = dimension
        self._breaker = CircuitBreaker("The embedding endpoint")

    @classmethod
    def of(cls, settings: Settings) -> "Embedder":
        """The one that the settings name.

        Raises:
            ConfigurationError: a local model cannot be loaded.
        """
        if settings.embedding_model is None or settings.embedding_dim is None:
            if reason := missing():
                log.warning("recall goes by words alone", reason=reason)
                return cls(None, model=NONE, dimension=_NO_DIMENSIONS)
            builtin = BuiltinEncoder(settings.data_dir / "encoder")
            return cls(None, model=NAME, dimension=DIMENSIONS, builtin=builtin)
        http = httpx.AsyncClient(timeout=_clients().TIMEOUT_S) if settings.embedding_api == "openai" else None
        return cls(
            _clients().client_of(settings, http),
            http=http,
            url=settings.embedding_base_url or settings.llm_base_url or OPENAI,
            model=settings.embedding_model,
            dimension=settings.embedding_dim,
            roles=roles_of(
                settings.embedding_model, settings.embedding_query_prefix, settings.embedding_document_prefix
            ),
            secrets=secrets_of(settings),
        )

    @property
    def failing(self) -> bool:
        """Whether its last use failed."""
        return self._breaker.failing

    @property
    def by_words_alone(self) -> str | None:
        """Why there are no embeddings at all; None if there are."""
        return missing() if self.model == NONE else None

    async def close(self) -> None:
        """Close the connections to the endpoint."""
        if self._http is not None:
            await self._http.aclose()

    def load(self) -> None:
        """Load what it needs; takes half a second once, so not in the event loop."""
        if self._builtin is not None:
            self._builtin.load()

    async def embed_soon(self, texts: Sequence[str]) -> list[Vector] | None:
        """Return vectors in some milliseconds; None where they take longer, from an endpoint for example."""
        if self._together is None or self._builtin is None or not self._builtin.loaded:
            return None
        return await self._together.of(texts)

    async def embed_query(self, text: str) -> list[float]:
        """Return the vector of a text that is sought.

        Raises:
            Unavailable: the endpoint does not answer, or not with vectors of the configured dimensions.
        """
        found: list[float] = (await self.embed_queries([text]))[0].tolist()
        return found

    async def embed_queries(self, texts: Sequence[str]) -> Vector:
        """Return the vectors (rows) of texts that are sought; raises as `embed_query`."""
        soon = await self.embed_soon(texts)
        asked = [self._roles.query + text for text in texts]
        return np.array(await self._embed_all(asked, again=True) if soon is None else soon, dtype=np.float32)

    async def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        """Return a vector for each text that is searched.

        An endpoint gets up to 64 of them in a call, or as many as it accepts. Of the built-in encoder, what turns
        have had embedded before it is indexed is used again; it keeps the vectors of a few texts.

        Raises:
            Unavailable: as `embed_query`.
        """
        documents = [self._roles.document + text for text in texts]
        return await self._embed_all(documents, again=len(documents) <= _OF_TURNS)

    async def _embed_all(self, texts: list[str], *, again: bool = False) -> list[list[float]]:
        vectors: list[list[float]] = []
        if self._embeddings is not None:
            while len(vectors) < len(texts):
                vectors += await self._embed(texts[len(vectors) : len(vectors) + self._at_once])
            return vectors
        if self._builtin is None:
            return [[0.0] * self.dimension for _ in texts]
        if not self._builtin.loaded:
            await asyncio.to_thread(self._builtin.load)
        for begin in range(0, len(texts), _BETWEEN):
            if begin:
                await asyncio.sleep(0)
            some = texts[begin : begin + _BETWEEN]
            vectors += [each.tolist() for each in self._builtin.encode_again(some, keep=again)]
        return vectors

    async def _embed(self, texts: list[str]) -> list[list[float]]:
        about: Attributes = {
            names.OPERATION: "embeddings",
            names.REQUEST_MODEL: self.model,
            names.DIMENSION: self.dimension,
        }
        async with self._breaker.use():
            try:
                with span(f"embeddings {self.model}", about, kind=SpanKind.CLIENT):
                    vectors = await self._ask(texts)
                note_spent(self.model, Spent(calls=1))
            except _clients().FAILURES as error:
                advice = f"{_clients().advice(error)}{through(self._url)}"
                failed = EmbeddingFailed(advice, for_log(endpoint_message(error), self._secrets, texts))
                log.warning("embedding failed", model=self.model, reason=failed.detail, advice=failed.advice)
                raise failed from error
            if len(vectors) != len(texts) or any(len(vector) != self.dimension for vector in vectors):
                sizes = sorted({len(vector) for vector in vectors})
                raise Unavailable(
                    f"The embedding endpoint answers with {len(vectors)} vectors of {sizes} dimensions for "
                    f"{len(texts)} texts; ANAMNESIS_EMBEDDING_DIM is {self.dimension}."
                )
        self.answered = True
        return vectors

    async def _ask(self, texts: list[str]) -> list[list[float]]:
        """Ask the endpoint, and again without dimensions or with fewer texts if it refuses these."""
        assert self._embeddings is not None  # noqa: S101 — for the type checker
        try:
            return await self._embeddings.aembed_documents(texts)
        except _clients().REFUSALS as error:
            said, half = endpoint_message(error), len(texts) // 2
            plain: Embeddings | None = _clients().without_dimensions(self._embeddings)
            if half and _TOO_MANY.search(said):
                self._at_once = half
                return [*await self._ask(texts[:half]), *await self._ask(texts[half:])]
            if plain is None or not _DIMENSIONS.search(said):
                raise
        vectors = await plain.aembed_documents(texts)
        self._embeddings = plain
        return vectors
