"""Identifies the caller of a request by an API key or a token, as the setting `AUTH` says."""

from typing import Any
from uuid import UUID, uuid4

import jwt
from cryptography.fernet import Fernet, InvalidToken
from redis.exceptions import RedisError

from services.errors import Unauthenticated, Unavailable
from services.identity.api_keys import ApiKeys
from services.identity.caller import NOBODY_IN_PARTICULAR, Caller, Scope, known_scopes
from services.identity.signing_keys import ALGORITHMS, SigningKeys
from services.identity.tenants import DEFAULT_TENANT, Tenants
from services.platform.postgres import Database
from services.platform.redis import RedisClient
from services.platform.settings import Settings
from services.validation import RULE, composed, is_id

_LONGEST_CLAIM = 128
_REFUSAL = "The token is not valid."


class Tokens:
    """Checks the signature, issuer, audience and expiry of tokens, and identifies the caller."""

    def __init__(self, settings: Settings, keys: SigningKeys, tenants: Tenants) -> None:
        """Take the issuer and the audience of tokens, and the names of their claims, from the settings."""
        self._keys = keys
        self._tenants = tenants
        self._issuer, self._audience = str(settings.jwt_issuer), str(settings.jwt_audience)
        self._tenant_claim, self._scope_claim = settings.jwt_tenant_claim, settings.jwt_scope_claim

    async def caller_of(self, token: str) -> Caller:
        """Return the caller: the user in `sub` or, with the scope `admin`, the whole tenant.

        Raises:
            Unauthenticated: the token is not valid, or does not say what it must.
            Unavailable: the keys to check it with cannot be read.
            DatabaseUnavailable: its tenant cannot be looked up.
        """
        claims = await self._claims_of(token)
        tenant_id = DEFAULT_TENANT
        if self._tenant_claim is not None:
            tenant_id = await self._tenant_of(claims.get(self._tenant_claim))
        scopes = _scopes_in(claims.get(self._scope_claim))
        if "admin" in scopes:
            return Caller(tenant_id, scopes)
        if not is_id(claims["sub"]):
            raise Unauthenticated(f"The token's sub {RULE} to name a user.")
        return Caller(tenant_id, scopes, composed(claims["sub"]))

    async def _tenant_of(self, named: object) -> UUID:
        tenant = None
        if isinstance(named, str) and 0 < len(named) <= _LONGEST_CLAIM and named.isprintable():
            tenant = await self._tenants.by_name_or_id(named)
        if tenant is None:
            raise Unauthenticated(f"The token's claim {self._tenant_claim} names no tenant of this service.")
        return tenant.id

    async def _claims_of(self, token: str) -> dict[str, Any]:
        try:
            header = jwt.get_unverified_header(token)
            key_id, algorithm = header.get("kid"), header.get("alg")
            if not isinstance(key_id, str) or algorithm not in ALGORITHMS:
                raise Unauthenticated(_REFUSAL)
            key = await self._keys.find(key_id)
            # The key names the algorithm, not the token; so a public key is never used as a shared secret.
            if key is None or algorithm not in key.algorithms:
                raise Unauthenticated(_REFUSAL)
            claims: dict[str, Any] = jwt.decode(
                token,
                key.key,
                algorithms=[algorithm],
                audience=self._audience,
                issuer=self._issuer,
                # An issuer's clock that is a second ahead must not make its tokens invalid.
                options={"require": ["exp", "iss", "aud", "sub"], "verify_iat": False},
            )
        # These messages are given only for a token with a valid signature.
        except jwt.ExpiredSignatureError:
            raise Unauthenticated("The token has expired.") from None
        except jwt.InvalidIssuerError:
            raise Unauthenticated("The token is of another issuer.") from None
        except jwt.InvalidAudienceError:
            raise Unauthenticated("The token is for another audience.") from None
        except jwt.MissingRequiredClaimError as error:
            raise Unauthenticated(f"The token has no claim {error.claim}.") from None
        except (jwt.PyJWTError, ValueError, TypeError):
            raise Unauthenticated(_REFUSAL) from None
        return claims


def _scopes_in(claim: object) -> frozenset[Scope]:
    if isinstance(claim, str):
        return known_scopes(claim.split())
    return known_scopes(claim) if isinstance(claim, list) else frozenset()


class Authenticator:
    """Identifies callers by the header `Authorization`."""

    def __init__(self, settings: Settings, database: Database) -> None:
        self.is_needed = settings.auth != "none"
        self._signing_keys = SigningKeys(str(settings.jwt_jwks)) if settings.auth == "jwt" else None
        self._credentials: ApiKeys | Tokens = ApiKeys(database)
        if self._signing_keys is not None:
            self._credentials = Tokens(settings, self._signing_keys, Tenants(database))

    async def check(self) -> None:
        """Check that the configured key file is usable; an address is read only when it is needed. Raises
        `ConfigurationError` if the file is not usable."""
        if self._signing_keys is not None:
            await self._signing_keys.check()

    async def close(self) -> None:
        """Close the connections."""
        if self._signing_keys is not None:
            await self._signing_keys.close()

    async def caller_of(self, authorization: str | None) -> Caller:
        """Return the caller with this header. Raises `Unauthenticated` if the caller is unknown, and
        `Unavailable` if the caller cannot be identified now."""
        if not self.is_needed:
            return NOBODY_IN_PARTICULAR
        scheme, _, credential = (authorization or "").strip().partition(" ")
        credential = credential.strip()
        if scheme.lower() != "bearer" or not credential:
            what = "API key" if self._signing_keys is None else "token"
            raise Unauthenticated(f"Send your {what} in the header: Authorization: Bearer …")
        return await self._credentials.caller_of(credential)


TICKET_S = 30


class Tickets:
    """Issues and redeems tickets, over all processes that share a Redis."""

    def __init__(self, cache: RedisClient) -> None:
        self._cache = cache

    async def issue(self, authorization: str) -> str:
        """Return a ticket for the sender of this header. Raises `Unavailable` if the ticket cannot be kept."""
        number, key = uuid4().hex, Fernet.generate_key()
        try:
            await self._cache.set(_name(number), Fernet(key).encrypt(authorization.encode()).decode(), ex=TICKET_S)
        except (RedisError, OSError) as error:
            raise Unavailable("No ticket can be kept now, as Redis does not answer; try again.") from error
        return f"{number}.{key.decode()}"

    async def redeem(self, ticket: str) -> str:
        """Return the header for which a ticket was issued, and invalidate the ticket. Raises `Unauthenticated`
        if the ticket was used, has expired, or never existed, and `Unavailable` if the ticket cannot be looked
        up."""
        number, _, key = ticket.partition(".")
        try:
            kept = str(await self._cache.getdel(_name(number)) or "")
        except (RedisError, OSError) as error:
            raise Unavailable(
                "The ticket cannot be looked up now, as Redis does not answer; try again."
            ) from error
        try:
            return Fernet(key).decrypt(kept.encode(), ttl=TICKET_S).decode()
        except (InvalidToken, ValueError) as error:
            raise Unauthenticated("The ticket was used or has expired; ask for another one.") from error


def _name(number: str) -> str:
    return f"ticket:{number}"
