"""What routing knows of a knowledge base."""

from dataclasses import dataclass


@dataclass(frozen=True)
class BaseProfile:
    """What a knowledge base says of itself."""

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
    """Instructions beside the expert's own system prompt for answers from this base."""
