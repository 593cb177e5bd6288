"""The key of one user: seals texts and JSON into tokens, and digests into blocks.

A token is `~[1.` + base64url of the key's id (8 bytes), a nonce (12) and AES-256-GCM over one byte of flags and
the content + `]~`. It is text that every store and all JSON can hold, and that can be found inside longer text.
"""

import base64
import hashlib
import hmac
import os
import re
import zlib
from collections.abc import Callable
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.ciphers.algorithms import AES256
from cryptography.hazmat.primitives.ciphers.modes import ECB

from services.encryption.marks import is_id, json_bytes, json_value

KEY_BYTES = 96
"""Bytes of a user's key: 32 each for contents, for digests, and for names that stand for words."""
RENEWED_BYTES = 64
"""Bytes of the key that its renewal replaces; the names that stand for words stay."""
ID_BYTES = 8
_NONCE_BYTES = 12
_ID_CHARACTERS = 10
"""Base64 characters of a token that depend only on the key's id."""
_TERM_BYTES = 5
"""Bytes of a term's digest: among 10,000 terms of a user two equal digests are unlikely."""
_JSON, _COMPRESSED = 1, 2
_COMPRESSED_FROM = 1000
"""Minimum bytes of a content that is compressed before encryption; encrypted bytes cannot be compressed."""
BEGINNING = "~[1."
_END = "]~"
TOKEN = re.compile(r"~\[1\.([A-Za-z0-9_-]{50,})\]~")
DIGEST_MARK = b"\x7fA1"
"""Beginning of a sealed digest, before the key's id and the encrypted block."""
DIGEST_BYTES = 16
"""Bytes of a digest that can be sealed: one block."""
UNREADABLE = "[unreadable]"
"""Text shown in place of a content whose key was destroyed."""
_LOST = UNREADABLE.encode()


class DataKey:
    """Seals and opens what belongs to one user."""

    def __init__(self, key_id: bytes, secret: bytes) -> None:
        self.id = key_id
        self._contents = AESGCM(secret[:32])
        # ECB is safe here: each digest is one block and uniformly distributed, so nothing has to be chained.
        self._digests = Cipher(AES256(secret[32:64]), ECB())  # noqa: S305
        self._mac = hmac.new(secret[64:], digestmod=hashlib.sha256)

    def seal(self, content: bytes, *, is_json: bool = False) -> str:
        """Return a token for a content."""
        flags = _JSON if is_json else 0
        if len(content) >= _COMPRESSED_FROM:
            content, flags = zlib.compress(content, 1), flags | _COMPRESSED
        return self._token(bytes((flags,)) + content)

    def _token(self, opened: bytes) -> str:
        nonce = os.urandom(_NONCE_BYTES)
        sealed = self._contents.encrypt(nonce, opened, self.id)
        return BEGINNING + base64.urlsafe_b64encode(self.id + nonce + sealed).rstrip(b"=").decode() + _END

    @property
    def beginning(self) -> str:
        """Return the beginning that all tokens of this key share."""
        return BEGINNING + base64.urlsafe_b64encode(self.id).decode()[:_ID_CHARACTERS]

    def seal_text(self, text: str) -> str:
        """Return a token for a text; an empty text stays empty."""
        return self.seal(text.encode("utf-8", "surrogatepass")) if text else text

    def seal_json(self, value: Any) -> Any:
        """Return one token for a whole value; an empty value stays as it is."""
        if value is None or value in ("", [], {}):
            return value
        return self.seal(json_bytes(value), is_json=True)

    def seal_leaves(self, value: Any, clear: frozenset[str]) -> Any:
        """Seal every text in a value except ids and the values of the keys in `clear`."""
        if isinstance(value, str):
            return value if is_id(value) else self.seal_text(value)
        if isinstance(value, dict):
            return {key: each if key in clear else self.seal_leaves(each, clear) for key, each in value.items()}
        if isinstance(value, list | tuple):
            return [self.seal_leaves(each, clear) for each in value]
        return value

    def open(self, raw: bytes) -> tuple[bytes, bool]:
        """Return the content in a token's bytes, and whether it is JSON. Raises `InvalidTag` if the token was
        not sealed with this key."""
        opened = self.open_raw(raw)
        flags, content = opened[0], opened[1:]
        return (zlib.decompress(content) if flags & _COMPRESSED else content), bool(flags & _JSON)

    def open_raw(self, raw: bytes) -> bytes:
        """Return the flags and the content of a token's bytes; raises as `open`."""
        nonce, sealed = raw[ID_BYTES : ID_BYTES + _NONCE_BYTES], raw[ID_BYTES + _NONCE_BYTES :]
        return self._contents.decrypt(nonce, sealed, self.id)

    def seal_digest(self, digest: bytes) -> bytes:
        """Return a block for a digest of 16 bytes; equal digests have equal blocks."""
        encryptor = self._digests.encryptor()
        return DIGEST_MARK + self.id + encryptor.update(digest) + encryptor.finalize()

    def open_digest(self, sealed: bytes) -> bytes:
        """Return the digest in a block."""
        decryptor = self._digests.decryptor()
        return decryptor.update(sealed[len(DIGEST_MARK) + ID_BYTES :]) + decryptor.finalize()

    def hidden_term(self, term: str) -> str:
        """Return a word that stands for a term in an index of words; equal terms have equal words."""
        mac = self._mac.copy()
        mac.update(term.encode("utf-8", "surrogatepass"))
        return base64.b32encode(mac.digest()[:_TERM_BYTES]).decode().lower()

    def fingerprint(self, text: str) -> str:
        """Return a keyed digest of a text, 128 bits in hexadecimal digits."""
        mac = self._mac.copy()
        mac.update(text.encode("utf-8", "surrogatepass"))
        return mac.hexdigest()[:32]

    def reseal(self, text: str, old: "DataKey") -> str:
        """Return the text of a column with every token of the old key sealed with this key."""

        def again(found: "re.Match[str]") -> str:
            raw = _raw(found[1])
            if raw is None or raw[:ID_BYTES] != old.id:
                return found[0]
            opened = old.open_raw(raw)
            return self._token(opened)

        return TOKEN.sub(again, text)

    def reseal_digest(self, sealed: bytes, old: "DataKey") -> bytes:
        """Return a digest that the old key sealed, sealed with this key; any other bytes stay as they are."""
        if not sealed.startswith(DIGEST_MARK + old.id):
            return sealed
        return self.seal_digest(old.open_digest(sealed))


KeyOf = Callable[[bytes], DataKey | None]
"""Function from the id of a key to the key; None = the key was destroyed."""


def open_text(text: str, key_of: KeyOf) -> str:
    """Replace every token in a text by its content."""
    return TOKEN.sub(lambda found: _opened(found, key_of)[0].decode("utf-8", "surrogatepass"), text)


def open_json(value: Any, key_of: KeyOf) -> Any:
    """Replace every token in a JSON value by its content."""
    if isinstance(value, str):
        if BEGINNING not in value:
            return value
        whole = TOKEN.fullmatch(value)
        if whole is None:
            return open_text(value, key_of)
        content, is_json = _opened(whole, key_of)
        return json_value(content) if is_json else content.decode("utf-8", "surrogatepass")
    if isinstance(value, dict):
        return {key: open_json(each, key_of) for key, each in value.items()}
    if isinstance(value, list):
        return [open_json(each, key_of) for each in value]
    return value


def open_column(value: Any, key_of: KeyOf) -> Any:
    """Open every token in a column's value. A value sealed as a whole with a destroyed key becomes empty.
    Readers of such a column expect an object or a list, and an empty object serves as either."""
    if isinstance(value, str) and (whole := TOKEN.fullmatch(value)) and _opened(whole, key_of)[0] == _LOST:
        return {}
    return open_json(value, key_of)


def open_token(token: str, key_of: KeyOf) -> bytes | None:
    """Return the content of a text that is one token; None = its key was destroyed, or it is no token."""
    whole = TOKEN.fullmatch(token)
    if whole is None:
        return None
    content, _ = _opened(whole, key_of)
    return None if content == _LOST else content


def open_digest(sealed: bytes, key_of: KeyOf) -> bytes:
    """Return the digest in a column, whether it is sealed or not."""
    if not sealed.startswith(DIGEST_MARK):
        return sealed
    key = key_of(sealed[len(DIGEST_MARK) : len(DIGEST_MARK) + ID_BYTES])
    return sealed if key is None else key.open_digest(sealed)


def _opened(found: "re.Match[str]", key_of: KeyOf) -> tuple[bytes, bool]:
    """Return the content of a possible token; what only looks like a token stays as it is."""
    raw = _raw(found[1])
    if raw is None:
        return found[0].encode(), False
    key = key_of(raw[:ID_BYTES])
    if key is None:
        return _LOST, False
    try:
        return key.open(raw)
    except InvalidTag:
        return _LOST, False


def _raw(encoded: str) -> bytes | None:
    try:
        return base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4))
    except ValueError:
        return None
