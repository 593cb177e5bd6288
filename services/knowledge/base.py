"""Values of a knowledge base: new, changed, stored, and as routing sees it."""

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


@dataclass(frozen=True)
class BaseProfile:
    """How a knowledge base describes itself."""

    prefix: str
    """Its name in requests; unique in the tenant."""
    description: str
    """What its documents are about, in a sentence or two."""
    keywords: tuple[str, ...] = ()
    """Words and phrases that only this base's subject has."""
    questions: tuple[str, ...] = ()
    """Questions that it answers, as people ask them."""
    headings: tuple[str, ...] = ()
    """Headings of its documents."""
    handler: str | None = None
    """Name of the prompt strategy that answers from it; None = the usual one."""
    system_prompt: str = ""
    """Instructions added to the expert's system prompt for answers from this base."""
