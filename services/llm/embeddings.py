"""Embeddings: the configured endpoint's, or the built-in lexical ones."""

from langchain_core.embeddings import Embeddings
from langchain_openai import OpenAIEmbeddings
from pydantic import SecretStr

from services.llm.lexical import LexicalEmbeddings
from services.platform.settings import Settings


def make_embeddings(settings: Settings) -> Embeddings:
    """The embeddings that the settings name; every vector has `embedding_dim` dimensions."""
    if settings.embedding_model is None:
        return LexicalEmbeddings(settings.embedding_dim or 2048)
    return OpenAIEmbeddings(
        model=settings.embedding_model,
        openai_api_base=settings.embedding_base_url or settings.llm_base_url,
        openai_api_key=settings.embedding_api_key or settings.llm_api_key or SecretStr("none"),
        dimensions=settings.embedding_dim,
        # Counting tokens first would download their tables.
        check_embedding_ctx_length=False,
    )
