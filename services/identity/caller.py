"""The caller of a request and their permissions."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args
from uuid import UUID

from services.errors import Forbidden, NotFound
from services.identity.tenants import DEFAULT_TENANT

Scope = Literal["chat", "memory:read", "memory:write", "admin"]
"""Scopes of callers; `admin` includes the others."""

SCOPES: tuple[Scope, ...] = get_args(Scope)


def known_scopes(names: Iterable[object]) -> frozenset[Scope]:
    """Return the known scopes among the names; a token may hold others for other services."""
    given = frozenset(name for name in names if isinstance(name, str))
    return frozenset(scope for scope in SCOPES if scope in given)


@dataclass(frozen=True, slots=True)
class Caller:
    """The authenticated identity behind a request."""

    tenant_id: UUID
    scopes: frozenset[Scope]
    user_id: str | None = None
    """External id of the only user for whom the caller may act; None = every user of the tenant."""
    acts_for_headers: bool = False
    """Whether a request may name its user in a header."""
    default_user: str | None = None
    """User of requests to `/v1` that name none."""

    @property
    def actor(self) -> str:
        """Return who acts, as a receipt names them."""
        return f"user {self.user_id}" if self.user_id else "operator"

    def require(self, scope: Scope) -> None:
        """Refuse a caller without the scope. Raises `Forbidden` if the caller does not have the scope."""
        if scope not in self.scopes and "admin" not in self.scopes:
            raise Forbidden(f"This needs the scope {scope}.")

    def act_for(self, user_id: str) -> None:
        """Refuse a caller who is another user. Raises `NotFound` if the caller may not know whether there is
        such a user."""
        if self.user_id is not None and self.user_id != user_id:
            raise NotFound(f"There is no user {user_id!r}.")


NOBODY_IN_PARTICULAR = Caller(DEFAULT_TENANT, frozenset(SCOPES), acts_for_headers=True)
"""Every caller while authentication is off."""
