"""Origins of what is derived: the least trusted of those of everything it was made from. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal, get_args

Origin = Literal["document", "import", "tool", "assistant", "operator", "user"]
"""Whose words something is made of, the least trusted first: those of a document, or of a text that a user or an
application pasted; of an import; of a tool's result; of the assistant; of an operator; the user's own."""

_ORIGINS: tuple[Origin, ...] = get_args(Origin)
_OF_ACTORS: Mapping[str, Origin] = {"user": "user", "import": "import", "operator": "operator"}


def of_maker(made_by: Mapping[str, Any]) -> Origin:
    """Return the origin of something without parents, by who made it."""
    return _OF_ACTORS.get(str(made_by.get("actor", "")), "assistant")


def least_trusted(origins: Iterable[Origin]) -> Origin | None:
    """Return the least trusted of some origins; None of none."""
    return min(origins, key=_ORIGINS.index, default=None)
