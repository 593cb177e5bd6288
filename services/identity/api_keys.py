"""API keys, `ank_<id>_<secret>`: only the SHA-256 of the secret is stored."""

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from psycopg.rows import class_row, tuple_row
from uuid_utils.compat import uuid7

from services.errors import InvalidInput, NotFound, Unauthenticated
from services.identity.caller import Caller, Scope, known_scopes
from services.platform.postgres import Database
from services.validation import RULE, composed, is_id

_FORM = re.compile(r"ank_([0-9a-f]{32})_([A-Za-z0-9_-]{43})", re.ASCII)
_SECRET_BYTES = 32
_LONGEST_NAME = 200
_NO_HASH = bytes(32)
_REFUSAL = "The API key is not valid: it is mistyped, unknown or revoked."

_CREATE = """
INSERT INTO api_keys (id, tenant_id, name, hash, scopes, acts_for_headers, default_user)
VALUES (%(id)s, %(tenant_id)s, %(name)s, %(hash)s, %(scopes)s, %(acts_for_headers)s, %(default_user)s)
RETURNING id, name, scopes, acts_for_headers, default_user, created_at, last_used_at, revoked_at
"""

_LIST = """
SELECT id, name, scopes, acts_for_headers, default_user, created_at, last_used_at, revoked_at
FROM api_keys
WHERE tenant_id = %(tenant_id)s ORDER BY created_at, id
"""

_REVOKE = """
UPDATE api_keys SET revoked_at = coalesce(revoked_at, now())
WHERE id = %(id)s AND tenant_id = %(tenant_id)s
RETURNING id, name, scopes, acts_for_headers, default_user, created_at, last_used_at, revoked_at
"""

_USE = "SELECT tenant_id, hash, scopes, acts_for_headers, default_user FROM use_api_key(%(id)s)"


@dataclass(frozen=True)
class ApiKey:
    """A key's metadata, without the key itself."""

    id: UUID
    name: str
    scopes: list[str]
    acts_for_headers: bool
    """Whether a request may name its user in a header."""
    default_user: str | None
    """User of requests that name none."""
    created_at: datetime
    last_used_at: datetime | None
    revoked_at: datetime | None


class ApiKeys:
    """Makes, lists, revokes and recognises keys. Nothing is cached between requests: every process refuses a
    revoked key at once."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def create(
        self,
        tenant_id: UUID,
        name: str,
        scopes: Iterable[Scope],
        *,
        acts_for_headers: bool = False,
        default_user: str | None = None,
    ) -> tuple[ApiKey, str]:
        """Create a key; return its record and the key, which cannot be read again.

        Args:
            name: Note on the purpose of the key.
            scopes: Permissions of its holder.
            acts_for_headers: Whether a request may name its user in a header.
            default_user: User of requests that name none.

        Raises:
            InvalidInput: The name is empty, too long or not printable, there is no scope, or the default user's
                name is not valid.
        """
        if default_user is not None and not is_id(default_user):
            raise InvalidInput("default_user", RULE)
        default_user = composed(default_user) if default_user else None
        if not name.strip() or len(name) > _LONGEST_NAME or not name.isprintable():
            raise InvalidInput("name", f"must be 1 to {_LONGEST_NAME} printable characters")
        if not (wanted := sorted(set(scopes))):
            raise InvalidInput("scope", "at least one is needed")
        key_id, secret = uuid7(), secrets.token_urlsafe(_SECRET_BYTES)
        values = {
            "id": key_id,
            "tenant_id": tenant_id,
            "name": name,
            "hash": _hash(secret),
            "scopes": wanted,
            "acts_for_headers": acts_for_headers,
            "default_user": default_user,
        }
        (record,) = await self._database.fetch(tenant_id, _CREATE, values, class_row(ApiKey))
        return record, f"ank_{key_id.hex}_{secret}"

    async def list(self, tenant_id: UUID) -> Sequence[ApiKey]:
        """Return the tenant's keys, oldest first, including revoked ones."""
        return await self._database.fetch(tenant_id, _LIST, {"tenant_id": tenant_id}, class_row(ApiKey))

    async def revoke(self, tenant_id: UUID, key_id: UUID) -> ApiKey:
        """Revoke the key; revoking it again changes nothing. Raises `NotFound` if the tenant has no such key."""
        values = {"tenant_id": tenant_id, "id": key_id}
        found = await self._database.fetch(tenant_id, _REVOKE, values, class_row(ApiKey))
        if not found:
            raise NotFound(f"There is no key {key_id}.")
        return found[0]

    async def caller_of(self, key: str) -> Caller:
        """Return the caller with this key. Raises `Unauthenticated` if the key is unknown or revoked."""
        if (match := _FORM.fullmatch(key)) is None:
            raise Unauthenticated(_REFUSAL)
        rows = await self._database.fetch_without_tenant(_USE, {"id": UUID(match[1])}, tuple_row)
        # Compared even if there is no such key, so that timing does not tell which part is wrong.
        tenant_id, stored, scopes, for_headers, user = rows[0] if rows else (None, _NO_HASH, [], False, None)
        if not hmac.compare_digest(_hash(match[2]), stored) or tenant_id is None:
            raise Unauthenticated(_REFUSAL)
        known = known_scopes(scopes)
        # A key for one user acts as that user everywhere, a gateway's key names users, and an admin's has the
        # tenant.
        own = None if for_headers or "admin" in known else user
        return Caller(tenant_id, known, own, acts_for_headers=for_headers, default_user=user)


def _hash(secret: str) -> bytes:
    # A plain hash is enough: 256 random bits cannot be guessed.
    return hashlib.sha256(secret.encode()).digest()
