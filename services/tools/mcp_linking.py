"""How a user's account is linked: by a browser that proves itself, or by a code that the user brings back.

A link to an authorization server can be forwarded. What the browser brings back counts only if it is the browser
for which the link was made (its cookie says so), or if the user who asked for the link enters, in the same place,
the code that the browser was shown. So nobody can link somebody else's account by sending them a link.
"""

import asyncio
import hmac
import secrets
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import parse_qs

from mcp.shared.auth import AuthorizationCodeResult
from pydantic import BaseModel

from services.errors import InvalidInput, Unavailable

_LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
_PARTS, _IN_PART = 3, 4
_MOST_TRIES = 5


class Returned(BaseModel):
    """Parameters that a browser brought back from an authorization server."""

    query: str
    proofs: list[str] = []
    """Its cookies that may show for whom the link was made."""
    code: str
    """Shown to its user if none of them does."""

    @property
    def values(self) -> dict[str, str]:
        """Return what stands in the query."""
        return {name: values[0] for name, values in parse_qs(self.query).items()}


class Entered(BaseModel):
    """A code that a user brought back."""

    tenant_id: str
    user_id: str
    server: str
    code: str


class Told(BaseModel):
    """Notice between processes: one of both fields is set."""

    returned: Returned | None = None
    entered: Entered | None = None


@dataclass(frozen=True)
class Link:
    """Where a user agrees, and the secret of the browser that is to come back."""

    address: str
    secret: str


@dataclass(frozen=True)
class Outcome:
    """Outcome of an authorization."""

    state: Literal["connected", "waits", "elsewhere"]
    user: str = ""
    server: str = ""


@dataclass
class Attempt:
    """A user who was sent to the authorization server."""

    user: str
    address: asyncio.Future[str]
    answer: asyncio.Future[AuthorizationCodeResult]
    done: asyncio.Future[None]
    secret: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    states: list[str] = field(default_factory=list)
    _waiting: tuple[str, AuthorizationCodeResult] | None = None
    """A code, and what it lets through."""
    _tries: int = 0

    def take(self, returned: Returned) -> bool:
        """Take what a browser brought back; False = the user has to bring its code."""
        given = returned.values
        if self.answer.done():
            return True
        if not given.get("code"):
            why = f"it was refused: {given.get('error_description') or given.get('error', 'no reason')}"[:300]
            self.answer.set_exception(Unavailable(why))
            return True
        result = AuthorizationCodeResult.model_validate(given)
        if _is_among(self.secret, returned.proofs):
            self.answer.set_result(result)
            return True
        self._waiting = returned.code, result
        return False

    def enter(self, code: str) -> None:
        """Take the code that the user brings. Raises `InvalidInput` if it is not the one that was shown."""
        if self.answer.done():
            return
        if self._waiting is None:
            raise InvalidInput("code", "belongs to nothing: open the link and agree there first")
        if not _is_among(_plain(self._waiting[0]), [_plain(code)]):
            self._tries += 1
            if self._tries >= _MOST_TRIES:
                self.answer.set_exception(Unavailable("wrong codes were entered"))
            raise InvalidInput("code", "is not the one that the browser shows")
        self.answer.set_result(self._waiting[1])


def new_code() -> str:
    """Return a code that is easy to read and hard to guess."""
    return "-".join("".join(secrets.choice(_LETTERS) for _ in range(_IN_PART)) for _ in range(_PARTS))


def _plain(code: str) -> str:
    return "".join(letter for letter in code.upper() if letter.isalnum())


def _is_among(secret: str, given: Collection[str]) -> bool:
    return any(hmac.compare_digest(secret.encode(), each.encode()) for each in given)
