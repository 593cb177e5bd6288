"""An endpoint that embeds: its client, the prefixes its model needs, its failures, and what to do about them."""

import re
from dataclasses import dataclass

import httpx
import openai
from langchain_core.embeddings import Embeddings
from langchain_openai import OpenAIEmbeddings
from pydantic import SecretStr

from services.platform.settings import Settings

_RETRIEVE = "Given a web search query, retrieve relevant passages that answer the query"


@dataclass(frozen=True)
class Roles:
    """Text put before what is embedded, by its role."""

    query: str = ""
    document: str = ""

    def identity(self, model: str) -> str:
        """Return the name by which an index knows whose embeddings it holds."""
        return f"{model} [{self.query}|{self.document}]" if self.query or self.document else model


# From the models' own descriptions; the first that matches counts.
_FAMILIES: tuple[tuple[str, Roles], ...] = (
    (r"e5.*instruct|qwen3-?embedding", Roles(f"Instruct: {_RETRIEVE}\nQuery: ")),
    (r"\be5\b|-e5-", Roles("query: ", "passage: ")),
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
    (r"arctic-embed.*v2", Roles("query: ")),
)  # fmt: skip


def roles_of(model: str, query: str | None = None, document: str | None = None) -> Roles:
    """Return the prefixes of a model: those given, and for the others those of its family."""
    name = model.lower().replace("_", "-")
    usual = next((roles for pattern, roles in _FAMILIES if re.search(pattern, name)), Roles())
    return Roles(usual.query if query is None else query, usual.document if document is None else document)


FAILURES: tuple[type[Exception], ...] = (
    openai.OpenAIError,
    httpx.HTTPError,
    OSError,
    TimeoutError,
    ValueError,
    TypeError,
)
"""Exceptions for which the endpoint is at fault."""
REFUSALS = openai.APIStatusError


def client_of(settings: Settings, http: httpx.AsyncClient | None, *, timeout_s: float) -> Embeddings:
    """Make the client for the model that the settings name; it calls over `http`, if given."""
    return OpenAIEmbeddings(
        model=str(settings.embedding_model),
        openai_api_base=settings.embedding_base_url or settings.llm_base_url,
        openai_api_key=settings.embedding_api_key or settings.llm_api_key or SecretStr("none"),
        dimensions=settings.embedding_dim,
        # Counting tokens first would download tokenizer tables.
        check_embedding_ctx_length=False,
        request_timeout=timeout_s,
        http_async_client=http,
        max_retries=1,
    )


def without_dimensions(embeddings: Embeddings) -> Embeddings | None:
    """Return the client without the parameter dimensions; None if nothing can be left out."""
    if not isinstance(embeddings, OpenAIEmbeddings) or embeddings.dimensions is None:
        return None
    return embeddings.model_copy(update={"dimensions": None})


def advice(error: Exception) -> str:
    """Say what to do about a failure."""
    match error:
        case openai.AuthenticationError() | openai.PermissionDeniedError():
            return "The endpoint refused the key; check ANAMNESIS_EMBEDDING_API_KEY."
        case openai.NotFoundError() | openai.BadRequestError():
            return "Check ANAMNESIS_EMBEDDING_MODEL and ANAMNESIS_EMBEDDING_BASE_URL."
        case openai.APIConnectionError():
            return "The endpoint cannot be reached; check ANAMNESIS_EMBEDDING_BASE_URL."
        case _:
            return "Recall goes by words until the endpoint answers again."
