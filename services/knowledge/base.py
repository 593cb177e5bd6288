"""Values of a knowledge base: new, changed and stored."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from typing_extensions import TypedDict

PREFIX_PATTERN = r"^[a-z0-9][a-z0-9_-]{0,62}$"
MAX_SYSTEM_PROMPT_TOKENS = 1000


@dataclass(frozen=True)
class NewBase:
    """A knowledge base to create."""

    prefix: str
    description: str
    keywords: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()
    system_prompt: str = ""
    handler: str | None = None


class BaseChange(TypedDict, total=False):
    """A change of a base; the rest stays."""

    description: str
    keywords: list[str]
    questions: list[str]
    system_prompt: str
    handler: str | None


@dataclass(frozen=True)
class Base:
    """A knowledge base of a tenant."""

    id: UUID
    prefix: str
    description: str
    keywords: list[str]
    questions: list[str]
    system_prompt: str
    handler: str | None
    created_at: datetime
    updated_at: datetime
    """Time of its last change; documents do not count."""
    documents: int
    chunks: int
    waiting: int
    """Chunks not yet in the index."""
