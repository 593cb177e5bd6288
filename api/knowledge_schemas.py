"""Requests and answers about knowledge bases, and their limits."""

from typing import Annotated
from uuid import UUID

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, with_config
from typing_extensions import TypedDict

from api.schemas import StrictModel
from services.conversations.values import Id, Text, no_nul, not_blank
from services.knowledge.bases import MAX_SYSTEM_PROMPT_TOKENS, PREFIX_PATTERN
from state.conversation import AgentType

MAX_FOUND = 50
_MAX_PROMPT_CHARACTERS = 32_000
"""Longer texts certainly have too many tokens and are not counted."""

Prefix = Annotated[str, StringConstraints(pattern=PREFIX_PATTERN)]
_Phrase = Annotated[
    str, StringConstraints(min_length=1, max_length=100), AfterValidator(no_nul), AfterValidator(not_blank)
]
_Question = Annotated[
    str, StringConstraints(min_length=1, max_length=500), AfterValidator(no_nul), AfterValidator(not_blank)
]
Description = Annotated[
    str,
    StringConstraints(min_length=1, max_length=2000),
    AfterValidator(no_nul),
    AfterValidator(not_blank),
    Field(description="What its documents are about, in a sentence or two; messages are routed by it."),
]
Keywords = Annotated[
    list[_Phrase], Field(max_length=200, description="Words and phrases specific to its subject.")
]
Questions = Annotated[
    list[_Question], Field(max_length=200, description="Questions that it answers, as people ask them.")
]
SystemPrompt = Annotated[
    str,
    StringConstraints(max_length=_MAX_PROMPT_CHARACTERS),
    AfterValidator(no_nul),
    Field(
        description="Instructions for answers from this base, in addition to the expert's system prompt; "
        f"at most {MAX_SYSTEM_PROMPT_TOKENS} tokens."
    ),
]
Handler = Annotated[
    Id | None, Field(description="Name of the strategy that answers from it; null = the default one.")
]


class BaseRequest(StrictModel):
    """A knowledge base to create."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"prefix": "handbook", "description": "The handbook of our staff."}]},
    )

    prefix: Prefix = Field(description="Its name, in messages as `kb_prefix`; it cannot be changed.")
    description: Description
    keywords: Keywords = Field(default_factory=list)
    questions: Questions = Field(default_factory=list)
    system_prompt: SystemPrompt = ""
    handler: Handler = None


@with_config(ConfigDict(extra="forbid"))
class BaseChangeRequest(TypedDict, total=False):
    """A change of a knowledge base; fields that are not given stay."""

    description: Description
    keywords: Keywords
    questions: Questions
    system_prompt: SystemPrompt
    handler: Handler


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
