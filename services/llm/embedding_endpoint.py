"""An endpoint that embeds: its client, its failures, and what to do about them."""

import httpx
import openai
from langchain_core.embeddings import Embeddings
from langchain_openai import OpenAIEmbeddings
from pydantic import SecretStr

from services.platform.settings import Settings

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
