"""Who says a message: the user, or another participant, whose words are not the user's."""

import unicodedata
from collections.abc import Iterable
from uuid import UUID

from services.conversations.users import Users
from services.errors import NotFound
from services.text.marks import one_line

MOST_CHARACTERS = 256
"""Maximum characters of a speaker's name."""


async def names_of_user(users: Users, tenant_id: UUID, user: str, given: Iterable[str | None]) -> frozenset[str]:
    """Return the names by which messages name the user; nothing is read if no name is given."""
    if not any(given):
        return frozenset()
    try:
        display_name = (await users.get(tenant_id, user)).display_name
    except NotFound:  # the first message of a user
        display_name = None
    return frozenset(_folded(each) for each in (user, display_name) if each)


def other_speaker(name: str | None, names_of_user: frozenset[str]) -> str:
    """Return the name of another participant; empty = the user speaks."""
    speaker = one_line(name or "")[:MOST_CHARACTERS]
    return "" if _folded(speaker) in names_of_user else speaker


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", one_line(name)).casefold())
