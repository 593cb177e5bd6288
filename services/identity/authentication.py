"""Identifies the caller of a request, depending on the setting `AUTH`."""

from pathlib import Path

from services.errors import Unauthenticated
from services.identity.api_keys import ApiKeys
from services.identity.caller import NOBODY_IN_PARTICULAR, Caller
from services.identity.signing_keys import KeyAddress, KeyFile, SigningKeys
from services.identity.tenants import Tenants
from services.identity.tokens import Tokens
from services.platform.postgres import Database
from services.platform.settings import Settings


class Authenticator:
    """Identifies callers by the header `Authorization`."""

    def __init__(self, settings: Settings, database: Database) -> None:
        self.is_needed = settings.auth != "none"
        self._api_keys: ApiKeys | None = None
        self._tokens: Tokens | None = None
        self._signing_keys: SigningKeys | None = None
        if settings.auth == "api_key":
            self._api_keys = ApiKeys(database)
        elif settings.auth == "jwt":
            self._signing_keys, self._tokens = _make_tokens(settings, database)

    async def check(self) -> None:
        """Check that the configured key file is usable; an address is not fetched before it is needed.

        Raises:
            ConfigurationError: it cannot.
        """
        if self._signing_keys is not None:
            await self._signing_keys.check()

    async def close(self) -> None:
        """Close the connections."""
        if self._signing_keys is not None:
            await self._signing_keys.close()

    async def caller_of(self, authorization: str | None) -> Caller:
        """Return the caller with this header.

        Raises:
            Unauthenticated: the caller is unknown.
            Unavailable: this cannot be determined now.
        """
        if not self.is_needed:
            return NOBODY_IN_PARTICULAR
        scheme, _, credential = (authorization or "").strip().partition(" ")
        credential = credential.strip()
        if scheme.lower() != "bearer" or not credential:
            what = "API key" if self._api_keys else "token"
            raise Unauthenticated(f"Send your {what} in the header: Authorization: Bearer …")
        if self._api_keys is not None:
            return await self._api_keys.caller_of(credential)
        if self._tokens is not None:
            return await self._tokens.caller_of(credential)
        raise Unauthenticated


def _make_tokens(settings: Settings, database: Database) -> tuple[SigningKeys, Tokens]:
    jwks = str(settings.jwt_jwks)
    is_address = jwks.startswith(("http://", "https://"))
    keys: SigningKeys = KeyAddress(jwks) if is_address else KeyFile(Path(jwks))
    tokens = Tokens(
        keys,
        Tenants(database),
        issuer=str(settings.jwt_issuer),
        audience=str(settings.jwt_audience),
        tenant_claim=settings.jwt_tenant_claim,
        scope_claim=settings.jwt_scope_claim,
    )
    return keys, tokens
