"""Clients of embedding models: of an endpoint with its failures, and of a model on this machine."""

from typing import Any

import httpx
import openai
from langchain_core.embeddings import Embeddings
from langchain_openai import OpenAIEmbeddings
from pydantic import SecretStr

from services.errors import ConfigurationError
from services.platform.settings import Settings

TIMEOUT_S = 30.0

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


class LocalEmbeddings(Embeddings):
    """A sentence-transformers model, by name or path; it must be on this machine already."""

    def __init__(self, name: str) -> None:
        """Load the model.

        Raises:
            ConfigurationError: the extra is not installed, or there is no such model here.
        """
        try:
            from sentence_transformers import SentenceTransformer  # noqa: PLC0415 — an extra, and heavy
        except ImportError:
            raise ConfigurationError(
                "ANAMNESIS_EMBEDDING_API=local needs the extra: pip install 'anamnesis-agent[local-embeddings]'"
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
        """One vector."""
        return self.embed_documents([text])[0]


def client_of(settings: Settings, http: httpx.AsyncClient | None = None) -> Embeddings:
    """Make the client for the model that the settings name; an endpoint is called over `http`, if given.

    Raises:
        ConfigurationError: a local model cannot be loaded.
    """
    if settings.embedding_api == "local":
        return LocalEmbeddings(str(settings.embedding_model))
    return OpenAIEmbeddings(
        model=str(settings.embedding_model),
        openai_api_base=settings.embedding_base_url or settings.llm_base_url,
        openai_api_key=settings.embedding_api_key or settings.llm_api_key or SecretStr("none"),
        dimensions=settings.embedding_dim,
        # Counting tokens first would download tokenizer tables.
        check_embedding_ctx_length=False,
        request_timeout=TIMEOUT_S,
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
