"""The public keys for checking an issuer's tokens: a JWKS, from a file or an address.

Only what the operator configured is ever read; a token's hints about its key (`jku`, `x5u`, `jwk`) are ignored.
"""

import asyncio
import json
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import jwt
import structlog
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from services.errors import ConfigurationError, Unavailable

log = structlog.get_logger(__name__)

_RSA = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
_ALGORITHMS = {
    ("RSA", None): _RSA,
    ("EC", "P-256"): ("ES256",),
    ("EC", "P-384"): ("ES384",),
    ("OKP", "Ed25519"): ("EdDSA",),
}
ALGORITHMS = frozenset(name for names in _ALGORITHMS.values() for name in names)
"""Algorithms with which a token may be signed: never with a shared secret, and never unsigned."""

_PUBLIC_PARTS = ("kty", "crv", "x", "y", "n", "e")
_SHORTEST_RSA_BITS = 2048

_FETCH_TIMEOUT_S = 3.0
_AGAIN_AFTER_FAILURE_S = 1.0


@dataclass(frozen=True)
class SigningKey:
    """A public key, and its algorithms."""

    key: Any
    algorithms: frozenset[str]


class SigningKeys(ABC):
    """An issuer's keys by their ids."""

    def __init__(self) -> None:
        self._keys: dict[str, SigningKey] = {}
        self._tries = 0
        self._failed = False
        self._lock = asyncio.Lock()

    async def find(self, key_id: str) -> SigningKey | None:
        """Return the key with this id, or None if the issuer has none.

        Raises:
            Unavailable: the key is unknown, and the issuer's keys cannot be read.
        """
        if key_id not in self._keys:
            wanted = self._due() or self._may_ask_again()
        else:  # while another request reads, use the current key
            wanted = self._due() and not self._lock.locked()
        if wanted:
            await self._read_once()
        if self._failed and (key_id not in self._keys or self._too_old()):
            raise Unavailable("The keys with which tokens are checked cannot be read; try again in a moment.")
        return self._keys.get(key_id)

    async def check(self) -> None:
        """Check at the start that the keys can be read, if they are in a file.

        Raises:
            ConfigurationError: they cannot.
        """
        return

    async def close(self) -> None:
        """Close what was opened."""
        return

    async def _read_once(self) -> None:
        tries = self._tries
        async with self._lock:
            if self._tries != tries:  # another request has just done it
                return
            try:
                self._keys = await self._read()
                self._failed = False
            except (OSError, ValueError, httpx.HTTPError, httpx.InvalidURL) as error:
                self._failed = True
                log.error("signing keys not read", reason=f"{type(error).__name__}: {error}")
            self._tries += 1

    @abstractmethod
    def _due(self) -> bool: ...

    @abstractmethod
    def _may_ask_again(self) -> bool: ...

    @abstractmethod
    def _too_old(self) -> bool: ...

    @abstractmethod
    async def _read(self) -> dict[str, SigningKey]: ...


class KeyFile(SigningKeys):
    """Keys in a file; read again when it changes, and for an id that it did not hold."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        self._seen: tuple[int, int, int] | None = None

    async def check(self) -> None:
        """Read the file.

        Raises:
            ConfigurationError: it cannot be read, or holds no key that could be used.
        """
        try:
            keys = await self._read()
        except (OSError, ValueError) as error:
            raise ConfigurationError(f"ANAMNESIS_JWT_JWKS={self._path} cannot be read: {error}") from error
        if not keys:
            raise ConfigurationError(
                f"ANAMNESIS_JWT_JWKS={self._path} holds no public key with a kid for any of "
                f"{', '.join(sorted(ALGORITHMS))}"
            )

    def _due(self) -> bool:
        return self._stamp() != self._seen

    def _may_ask_again(self) -> bool:
        return True

    def _too_old(self) -> bool:
        return False

    async def _read(self) -> dict[str, SigningKey]:
        seen = self._stamp()
        document = await asyncio.to_thread(self._path.read_bytes)
        self._seen = seen
        return keys_of(document)

    def _stamp(self) -> tuple[int, int, int] | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino


class KeyAddress(SigningKeys):
    """Keys at an address; refreshed after a while, and for an unknown id, but not too often."""

    def __init__(self, url: str, *, fresh_s: float = 300.0, again_s: float = 10.0, kept_s: float = 3600.0) -> None:
        """Keys are fetched again after `fresh_s`, for an unknown id after `again_s`, and used without an
        answer for `kept_s`.
        """
        super().__init__()
        self._url = url
        self._fresh_s = fresh_s
        self._again_s = again_s
        self._kept_s = kept_s
        self._asked_at = float("-inf")
        self._answered_at = float("-inf")
        self._client = httpx.AsyncClient(timeout=_FETCH_TIMEOUT_S, follow_redirects=False)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    def _due(self) -> bool:
        return time.monotonic() - self._answered_at > self._fresh_s and self._may_ask_again()

    def _may_ask_again(self) -> bool:
        pause = min(_AGAIN_AFTER_FAILURE_S, self._again_s) if self._failed else self._again_s
        return time.monotonic() - self._asked_at >= pause

    def _too_old(self) -> bool:
        return time.monotonic() - self._answered_at > self._kept_s

    async def _read(self) -> dict[str, SigningKey]:
        try:
            async with asyncio.timeout(_FETCH_TIMEOUT_S):
                response = await self._client.get(self._url, headers={"Accept": "application/json"})
            if response.status_code != httpx.codes.OK:
                raise ValueError(f"status {response.status_code}")
            keys = keys_of(response.content)
            self._answered_at = time.monotonic()
            return keys
        finally:
            self._asked_at = time.monotonic()


def keys_of(document: bytes) -> dict[str, SigningKey]:
    """Return the usable keys of a JWKS, ignoring others, such as those for encryption.

    Raises:
        ValueError: it is not a JWKS.
    """
    listed = json.loads(document)
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
