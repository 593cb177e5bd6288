"""Requests and answers about knowledge bases, and their limits."""

from uuid import UUID

from pydantic import BaseModel, Field

from api.schemas import StrictModel
from services.conversations.values import Text
from state.conversation import AgentType

MAX_FOUND = 50


class KnowledgeQuery(StrictModel):
    """A question to a knowledge base."""

    query: Text
    top_k: int = Field(5, ge=1, le=MAX_FOUND)
    agent_type: AgentType = Field(
        "hybrid_agent", description="`hybrid_agent` searches by words and meaning, `naive_rag_agent` by meaning."
    )


class PassageView(BaseModel):
    """A passage that was found."""

    document_id: UUID
    document: str
    position: int
    heading: str
    page: int | None
    text: str
    score: float


class PassageList(BaseModel):
    """Passages relevant to a question, best first."""

    items: list[PassageView]
    degraded: list[str] = Field(description="What did not answer: `milvus`, `embedding`.")
