"""Public keys that check an issuer's tokens: a JWKS from a file or an address.

Only the configured source is read; hints about keys in a token (`jku`, `x5u`, `jwk`) are ignored.
"""

import asyncio
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import jwt
import structlog
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from services.errors import ConfigurationError, Unavailable
from services.json_levels import shallow_json

log = structlog.get_logger(__name__)

_RSA = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
_ALGORITHMS = {
    ("RSA", None): _RSA,
    ("EC", "P-256"): ("ES256",),
    ("EC", "P-384"): ("ES384",),
    ("OKP", "Ed25519"): ("EdDSA",),
}
ALGORITHMS = frozenset(name for names in _ALGORITHMS.values() for name in names)
"""Algorithms that may sign a token: none with a shared secret, and no unsigned tokens."""

_PUBLIC_PARTS = ("kty", "crv", "x", "y", "n", "e")
_SHORTEST_RSA_BITS = 2048

_FETCH_TIMEOUT_S = 3.0
_AGAIN_AFTER_FAILURE_S = 1.0


@dataclass(frozen=True)
class SigningKey:
    """A public key and the algorithms that it may be used with."""

    key: Any
    algorithms: frozenset[str]


class SigningKeys:
    """Keys of an issuer by their ids, from a file or an address. They are read again after a while, and when an
    id is unknown, but an address is not read too often."""

    def __init__(
        self, source: str, *, fresh_s: float | None = None, again_s: float | None = None, kept_s: float = 3600.0
    ) -> None:
        """Read keys from a path or an address.

        Args:
            fresh_s: Seconds after which the keys are read again.
            again_s: Minimum seconds between two readings for an unknown id.
            kept_s: Seconds for which the last keys are used while reading fails.
        """
        self._source = source
        self._is_address = source.startswith(("http://", "https://"))
        self._fresh_s = fresh_s if fresh_s is not None else 300.0 if self._is_address else 1.0
        self._again_s = again_s if again_s is not None else 10.0 if self._is_address else 0.0
        self._kept_s = kept_s
        self._keys: dict[str, SigningKey] = {}
        self._asked_at = self._answered_at = float("-inf")
        self._failed = False
        self._lock = asyncio.Lock()
        self._client = httpx.AsyncClient(timeout=_FETCH_TIMEOUT_S, follow_redirects=False)

    async def check(self) -> None:
        """Check at the start that a key file can be read. Raises `ConfigurationError` if the file cannot be
        read, or has no usable key."""
        if self._is_address:
            return
        try:
            keys = await self._read()
        except (OSError, ValueError) as error:
            raise ConfigurationError(f"ANAMNESIS_JWT_JWKS={self._source} cannot be read: {error}") from error
        if not keys:
            raise ConfigurationError(
                f"ANAMNESIS_JWT_JWKS={self._source} holds no public key with a kid for any of "
                f"{', '.join(sorted(ALGORITHMS))}"
            )

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def find(self, key_id: str) -> SigningKey | None:
        """Return the key with this id; None if the issuer has none. Raises `Unavailable` if the key is unknown,
        and the issuer's keys cannot be read."""
        # While another request reads the keys, the current key is used.
        is_due = time.monotonic() - self._answered_at > self._fresh_s and not self._lock.locked()
        if is_due or key_id not in self._keys:
            await self._read_again()
        if self._failed and (key_id not in self._keys or time.monotonic() - self._answered_at > self._kept_s):
            raise Unavailable("The keys with which tokens are checked cannot be read; try again in a moment.")
        return self._keys.get(key_id)

    async def _read_again(self) -> None:
        pause_s = min(_AGAIN_AFTER_FAILURE_S, self._again_s) if self._failed else self._again_s
        called_at = time.monotonic()
        async with self._lock:
            if called_at < self._asked_at + pause_s:  # another request may just have read them
                return
            try:
                self._keys = await self._read()
                self._failed, self._answered_at = False, time.monotonic()
            except (OSError, ValueError, httpx.HTTPError, httpx.InvalidURL) as error:
                self._failed = True
                log.error("signing keys not read", reason=f"{type(error).__name__}: {error}")
            self._asked_at = time.monotonic()

    async def _read(self) -> dict[str, SigningKey]:
        if not self._is_address:
            return keys_of(await asyncio.to_thread(Path(self._source).read_bytes))
        async with asyncio.timeout(_FETCH_TIMEOUT_S):
            response = await self._client.get(self._source, headers={"Accept": "application/json"})
        if response.status_code != httpx.codes.OK:
            raise ValueError(f"status {response.status_code}")
        return keys_of(response.content)


def keys_of(document: bytes) -> dict[str, SigningKey]:
    """Return the usable keys of a JWKS; others, such as keys for encryption, are ignored. Raises `ValueError`
    if the document is no JWKS."""
    listed = shallow_json(document)
    if not isinstance(listed, dict) or not isinstance(listed.get("keys"), list):
        raise ValueError("not a JWKS: there is no list named keys")
    found: dict[str, SigningKey] = {}
    for entry in listed["keys"]:
        if isinstance(entry, dict) and isinstance(key_id := entry.get("kid"), str) and (key := _key_of(entry)):
            found.setdefault(key_id, key)
    return found


def _key_of(entry: dict[str, Any]) -> SigningKey | None:
    kind = entry.get("kty")
    names = _ALGORITHMS.get((str(kind), None if kind == "RSA" else str(entry.get("crv"))), ())
    allowed = frozenset(names) if entry.get("alg") is None else frozenset(names) & {str(entry["alg"])}
    if not allowed or entry.get("use", "sig") != "sig":
        return None
    public = {part: entry[part] for part in _PUBLIC_PARTS if part in entry}
    try:
        key = jwt.PyJWK(public, min(allowed)).key
    except (jwt.PyJWTError, ValueError, TypeError):
        return None
    if isinstance(key, RSAPublicKey) and key.key_size < _SHORTEST_RSA_BITS:
        return None
    return SigningKey(key, allowed)
