"""Receipts of forgetting: what was removed, when, and who asked for it, signed with the service's key."""

import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, LiteralString
from uuid import UUID

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from psycopg.rows import dict_row

from services.encryption.private_files import make_file
from services.errors import ConfigurationError, InvalidInput
from services.identity.tenants import user_id_of
from services.platform.connections import Connection
from services.platform.postgres import Database
from services.platform.shared_reads import page_after

KEY_FILE = "receipt_key.pem"
_KEY_ID_CHARACTERS = 16

_ADD: LiteralString = """
INSERT INTO forget_receipts (id, tenant_id, user_id, document, signature, public_key)
VALUES (%(id)s, %(tenant_id)s, %(user_id)s, %(document)s, %(signature)s, %(public_key)s)
"""


_LIST: LiteralString = """
SELECT r.id, r.created_at, r.document, r.signature, r.public_key
FROM forget_receipts r
WHERE r.tenant_id = %(tenant_id)s AND r.user_id = %(user_id)s
  AND (%(after_at)s::timestamptz IS NULL OR (r.created_at, r.id) < (%(after_at)s, %(after_id)s::uuid))
ORDER BY r.created_at DESC, r.id DESC LIMIT %(limit)s
"""


@dataclass(frozen=True)
class SignedReceipt:
    """A receipt in the form in which it is handed out."""

    id: UUID
    created_at: datetime
    receipt: dict[str, Any]
    signature: str
    """Ed25519 signature of the receipt as canonical JSON, in base64."""
    public_key: str
    """Public half of the key that made it, raw, in base64."""


class ReceiptKey:
    """The service's key: from a setting, or from the data folder, where it is created when it is first needed."""

    def __init__(self, data_dir: Path, pem_file: Path | None = None, *, make: bool = True) -> None:
        self._path = pem_file or data_dir / KEY_FILE
        self._is_ours = make and pem_file is None
        self._key: Ed25519PrivateKey | None = None

    def load(self) -> Ed25519PrivateKey:
        """Read the key; create it if there is none and no setting names one. Raises `ConfigurationError` if it
        cannot be read, or is no Ed25519 key."""
        if self._key is None:
            try:
                if self._is_ours and not self._path.exists():
                    self._path.parent.mkdir(parents=True, exist_ok=True)
                    new = Ed25519PrivateKey.generate()
                    make_file(self._path, new.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
                key = load_pem_private_key(self._path.read_bytes(), password=None)
            except (OSError, ValueError, TypeError) as error:
                reason = error.strerror if isinstance(error, OSError) else "it is no private key in PEM"
                raise ConfigurationError(f"The key of receipts, {self._path}, cannot be read: {reason}") from None
            if not isinstance(key, Ed25519PrivateKey):
                raise ConfigurationError(f"The key of receipts, {self._path}, is no Ed25519 key")
            self._key = key
        return self._key

    @property
    def public(self) -> str:
        """The public half, raw; base64."""
        return _text(self.load().public_key().public_bytes(Encoding.Raw, PublicFormat.Raw))

    def sign(self, document: str) -> str:
        """Sign a text; base64."""
        return _text(self.load().sign(document.encode()))


class Receipts:
    """Writes and reads receipts."""

    def __init__(self, database: Database, key: ReceiptKey) -> None:
        self._database = database
        self.key = key

    async def add(
        self, connection: Connection, tenant_id: UUID, user_id: UUID, document: Mapping[str, Any]
    ) -> None:
        """Sign and store a receipt in the caller's transaction. Raises `ConfigurationError` if there is no key
        that can be read."""
        text = canonical(document)
        values = {
            "id": UUID(document["id"]),
            "tenant_id": tenant_id,
            "user_id": user_id,
            "document": text,
            "signature": self.key.sign(text),
            "public_key": self.key.public,
        }
        await connection.execute(_ADD, values)

    async def list(
        self, tenant_id: UUID, user: str, *, after: tuple[datetime, UUID] | None = None, limit: int
    ) -> list[SignedReceipt]:
        """A user's receipts, newest first."""
        user_id = await user_id_of(self._database, tenant_id, user)
        values = {"tenant_id": tenant_id, "user_id": user_id, **page_after(after, limit)}
        rows = await self._database.fetch(tenant_id, _LIST, values, dict_row)
        return [SignedReceipt(receipt=json.loads(row.pop("document")), **row) for row in rows]


def canonical(document: Mapping[str, Any]) -> str:
    """Return the form in which a receipt is signed: JSON with sorted keys, without spaces, escaped only where
    necessary."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def digest_of(nonce: str, kind: str, name: str, text: str) -> str:
    """Return the digest of a removed text: SHA-256 of the receipt's nonce, the kind, the id or field, and the
    text."""
    return hashlib.sha256("\0".join((nonce, kind, name, text)).encode("utf-8", "surrogatepass")).hexdigest()


def key_id(public_key: str) -> str:
    """A short name of a public key."""
    return hashlib.sha256(base64.b64decode(public_key)).hexdigest()[:_KEY_ID_CHARACTERS]


def is_genuine(signed: Mapping[str, Any], public_key: str) -> bool:
    """Return whether a receipt was signed with a key and not changed since. Raises `InvalidInput` if it is not a
    receipt, or the key is not a key."""
    try:
        receipt, signature = signed["receipt"], base64.b64decode(signed["signature"], validate=True)
        if not isinstance(receipt, dict):
            raise InvalidInput("file", "is no receipt")
        key = Ed25519PublicKey.from_public_bytes(base64.b64decode(public_key, validate=True))
    except (KeyError, TypeError, ValueError):
        raise InvalidInput("file", "is no receipt, or the key is none") from None
    try:
        key.verify(signature, canonical(receipt).encode())
    except InvalidSignature:
        return False
    return True


def _text(raw: bytes) -> str:
    return base64.b64encode(raw).decode()
