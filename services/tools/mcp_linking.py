"""Links a user's account at a tool server: by a browser that proves itself, or by a code that the user enters.

Anybody can forward a link to an authorization server. So what a browser returns counts only in two cases: a cookie
shows that it is the browser for which the link was made, or the user who asked for the link enters the code that
the browser was shown. Nobody can link another user's account by sending them a link.
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
    """Cookies of the browser that may show for whom the link was made."""
    code: str
    """Code that the browser shows its user if no cookie matches."""

    @property
    def values(self) -> dict[str, str]:
        """Return the parameters in the query."""
        return {name: values[0] for name, values in parse_qs(self.query).items()}


class Entered(BaseModel):
    """A code that a user brought back."""

    tenant_id: str
    user_id: str
    server: str
    code: str


class Told(BaseModel):
    """Notice between processes; one of its two fields is set."""

    returned: Returned | None = None
    entered: Entered | None = None


@dataclass(frozen=True)
class Link:
    """Address at which a user agrees, and the secret that identifies the browser when it returns."""

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
    """Code that was shown, and the authorization that it releases; None if no code is waited for."""
    _tries: int = 0

    def take(self, returned: Returned) -> bool:
        """Take what a browser returned; False = the user has to enter the code that it shows."""
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
