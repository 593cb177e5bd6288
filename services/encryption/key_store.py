"""Users' keys, each wrapped with the master key, in a file that is not backed up together with the data.

They are not in PostgreSQL: a destroyed key would live on in its write-ahead log, replicas and backups, where the
master key could open it. The file is a SQLite database that overwrites deleted bytes.
"""

import base64
import hashlib
import os
import secrets
import sqlite3
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, LiteralString, TypeVar
from uuid import UUID, uuid4

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from services.encryption.data_key import ID_BYTES, KEY_BYTES, RENEWED_BYTES, DataKey
from services.encryption.private_files import make_file, replace_file
from services.errors import ConfigurationError, Unavailable

MASTER_KEY_FILE = "master.key"
STORE_FILE = "user_keys.sqlite"
_MASTER_BYTES = 32
_NONCE_BYTES = 12
_CHECK = b"anamnesis"
_WAIT_S = 5.0
_KEPT = 10_000
_KEPT_S = 60.0
"""Maximum seconds for which a process still uses a key that another process has destroyed."""

_SCHEMA = """
CREATE TABLE store (id TEXT NOT NULL, checked BLOB NOT NULL);
CREATE TABLE user_keys (
    key_id     BLOB PRIMARY KEY,
    owner      BLOB NOT NULL UNIQUE,
    wrapped    BLOB NOT NULL,
    created_at REAL NOT NULL,
    renews_of  BLOB,
    renewed_at REAL
);
"""

Result = TypeVar("Result")


class KeyStore:
    """Makes, reads and destroys users' keys. All processes of a machine share one file. Every method but `open`
    and `close` raises `Unavailable` if the file cannot be read or written."""

    def __init__(self, folder: Path, master_key_file: Path | None = None) -> None:
        """Take the folder of the keys, and the file of the master key if it is elsewhere."""
        self.folder = folder
        self._master_path = master_key_file or folder / MASTER_KEY_FILE
        self._makes_master = master_key_file is None
        self._path = folder / STORE_FILE
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._kept: OrderedDict[bytes, tuple[DataKey, float]] = OrderedDict()

    def open(self, *, make: bool) -> UUID:
        """Open the store and return its id; `make` creates a missing store, and a master key if there is none.
        Raises `ConfigurationError` if the store or the master key is missing or cannot be read, or they do not
        belong together."""
        try:
            if not self._path.exists():
                if not make:
                    raise ConfigurationError(
                        f"The keys of the encrypted data are missing: there is no {self._path}. Bring the file "
                        "back from its backup, or name its folder in ANAMNESIS_ENCRYPTION_KEYS_DIR; without it "
                        "nothing that users said can be read."
                    )
                self._make()
            self._master = self._masters()[0]
            self._connection = sqlite3.connect(
                self._path, timeout=_WAIT_S, isolation_level=None, check_same_thread=False
            )
            self._store.execute("PRAGMA secure_delete = ON")
            self._store.execute("PRAGMA synchronous = FULL")
            store_id, checked = self._store.execute("SELECT id, checked FROM store").fetchone()
            self._unwrapped(checked, b"store")
        except InvalidTag:
            raise ConfigurationError(
                f"The master key in {self._master_path} is not the one of {self._path}; give the right one in "
                "ANAMNESIS_ENCRYPTION_KEY_FILE."
            ) from None
        except (OSError, sqlite3.Error, TypeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is no store of keys"
            raise ConfigurationError(f"The keys of users, {self._path}, cannot be read: {reason}.") from None
        return UUID(store_id)

    def close(self) -> None:
        """Close the file if it is open, and drop all keys."""
        self._kept.clear()
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def of_owner(self, tenant_id: UUID, user: str) -> DataKey | None:
        """Return the key of a user, by the caller's own name for them; None = there is none yet."""
        row = self._run("SELECT key_id, wrapped FROM user_keys WHERE owner = ?", _owner(tenant_id, user))
        return self._key(*row) if row else None

    def make_for(self, tenant_id: UUID, user: str) -> DataKey:
        """Return the key of a user; make one if there is none. It waits for the disk, so run it in a thread."""
        key_id, secret = secrets.token_bytes(ID_BYTES), secrets.token_bytes(KEY_BYTES)
        self._run(
            "INSERT INTO user_keys (key_id, owner, wrapped, created_at) VALUES (?, ?, ?, ?)"
            " ON CONFLICT (owner) DO NOTHING",
            key_id,
            _owner(tenant_id, user),
            self._wrapped(secret, key_id),
            time.time(),
        )
        key = self.of_owner(tenant_id, user)
        if key is None:
            raise Unavailable("The key of a user was destroyed as it was made; try again.")
        return key

    def of_id(self, key_id: bytes) -> DataKey | None:
        """Return a key by its id; None = it was destroyed."""
        kept = self._kept.get(key_id)
        if kept and kept[1] > time.monotonic():
            return kept[0]
        row = self._run("SELECT key_id, wrapped FROM user_keys WHERE key_id = ?", key_id)
        if row is None:
            self._kept.pop(key_id, None)
            return None
        return self._key(*row)

    def renew(self, tenant_id: UUID, user: str) -> None:
        """Give a user who has a key a new one; the old key is used for reading until it is destroyed."""
        owner = _owner(tenant_id, user)

        def renewed() -> None:
            row = self._store.execute("SELECT key_id, wrapped FROM user_keys WHERE owner = ?", (owner,)).fetchone()
            if row is None:
                return
            key_id, kept = secrets.token_bytes(ID_BYTES), self._unwrapped(row[1], row[0])[RENEWED_BYTES:]
            wrapped = self._wrapped(secrets.token_bytes(RENEWED_BYTES) + kept, key_id)
            self._store.execute(
                "UPDATE user_keys SET owner = ?, renews_of = ?, renewed_at = ? WHERE key_id = ?",
                (secrets.token_bytes(len(owner)), owner, time.time(), row[0]),
            )
            self._store.execute(
                "INSERT INTO user_keys (key_id, owner, wrapped, created_at) VALUES (?, ?, ?, ?)",
                (key_id, owner, wrapped, time.time()),
            )

        self._transaction(renewed)

    def renewed(self, tenant_id: UUID, user: str, *, before_s: float) -> list[DataKey]:
        """Return the old keys of a user that were renewed at least `before_s` seconds ago."""
        statement = "SELECT key_id, wrapped FROM user_keys WHERE renews_of = ? AND renewed_at <= ?"
        values = (_owner(tenant_id, user), time.time() - before_s)
        return self._transaction(lambda: [self._key(*row) for row in self._store.execute(statement, values)])

    def destroy(self, tenant_id: UUID, user: str) -> bool:
        """Destroy the keys of a user, in the file and in this process; return whether there was a key."""
        owner = _owner(tenant_id, user)
        return self._destroy("owner = ? OR renews_of = ?", owner, owner)

    def destroy_renewed(self, key: DataKey) -> bool:
        """Destroy an old key of a user, which no longer seals anything."""
        return self._destroy("key_id = ? AND renews_of IS NOT NULL", key.id)

    def _destroy(self, which: LiteralString, *values: bytes) -> bool:
        statement = f"DELETE FROM user_keys WHERE {which} RETURNING key_id"  # noqa: S608 — our own text only
        gone = self._transaction(lambda: self._store.execute(statement, values).fetchall())
        for (key_id,) in gone:
            self._kept.pop(key_id, None)
        return bool(gone)

    def drop_cached(self) -> None:
        """Drop all keys that this process holds in memory."""
        self._kept.clear()

    def count(self) -> int:
        """Return the number of users with a key."""
        return int(self._run("SELECT count(*) FROM user_keys WHERE renews_of IS NULL")[0])

    def rotate_master(self) -> int:
        """Wrap every key with a new master key, which replaces the old one; return the number of keys.

        The new master key is stored beside the old one until the store has changed, so that a crash loses neither.
        """
        new = secrets.token_bytes(_MASTER_BYTES)
        try:
            replace_file(self._master_path, _line(new) + _line(self._master))
            old, self._master = self._master, new
            count = self._transaction(lambda: self._wrap_again(old))
            replace_file(self._master_path, _line(new))
        except OSError as error:
            raise Unavailable(f"{self._master_path} cannot be written: {error.strerror}.") from error
        self._kept.clear()
        return count

    def _wrap_again(self, old: bytes) -> int:
        rows = self._store.execute("SELECT key_id, wrapped FROM user_keys").fetchall()
        for key_id, wrapped in rows:
            secret = AESGCM(old).decrypt(wrapped[:_NONCE_BYTES], wrapped[_NONCE_BYTES:], key_id)
            self._store.execute(
                "UPDATE user_keys SET wrapped = ? WHERE key_id = ?", (self._wrapped(secret, key_id), key_id)
            )
        self._store.execute("UPDATE store SET checked = ?", (self._wrapped(_CHECK, b"store"),))
        return len(rows)

    @property
    def _store(self) -> sqlite3.Connection:
        if self._connection is None:
            raise Unavailable("The keys of users are not open.")
        return self._connection

    def _key(self, key_id: bytes, wrapped: bytes) -> DataKey:
        kept = self._kept.get(key_id)
        key = kept[0] if kept else DataKey(key_id, self._unwrapped(wrapped, key_id))
        self._kept[key_id] = (key, time.monotonic() + _KEPT_S)
        if len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        return key

    def _wrapped(self, secret: bytes, about: bytes) -> bytes:
        nonce = os.urandom(_NONCE_BYTES)
        return nonce + AESGCM(self._master).encrypt(nonce, secret, about)

    def _unwrapped(self, wrapped: bytes, about: bytes) -> bytes:
        """Unwrap a key with the master key, which another process may just have rotated."""
        try:
            return AESGCM(self._master).decrypt(wrapped[:_NONCE_BYTES], wrapped[_NONCE_BYTES:], about)
        except InvalidTag:
            for master in self._masters():
                try:
                    secret = AESGCM(master).decrypt(wrapped[:_NONCE_BYTES], wrapped[_NONCE_BYTES:], about)
                except InvalidTag:
                    continue
                self._master = master
                return secret
            raise

    def _run(self, statement: str, *values: Any) -> Any:
        try:
            with self._lock:
                return self._store.execute(statement, values).fetchone()
        except sqlite3.Error as error:
            raise Unavailable("The keys of users cannot be read or written.") from error

    def _transaction(self, work: Callable[[], Result]) -> Result:
        try:
            with self._lock:
                self._store.execute("BEGIN EXCLUSIVE")
                try:
                    done = work()
                except BaseException:
                    self._store.execute("ROLLBACK")
                    raise
                self._store.execute("COMMIT")
                return done
        except sqlite3.Error as error:
            raise Unavailable("The keys of users cannot be written.") from error

    def _make(self) -> None:
        """Create the store, unless another process is just creating it."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if self._makes_master and not self._master_path.exists():
            make_file(self._master_path, _line(secrets.token_bytes(_MASTER_BYTES)))
        self._master = self._masters()[0]
        with closing(sqlite3.connect(":memory:")) as connection:
            connection.executescript(_SCHEMA)
            connection.execute("INSERT INTO store VALUES (?, ?)", (str(uuid4()), self._wrapped(_CHECK, b"store")))
            connection.commit()
            make_file(self._path, connection.serialize())

    def _masters(self) -> list[bytes]:
        """Return the master key, and during a rotation also the previous one."""
        try:
            lines = self._master_path.read_text(encoding="ascii").split()
            keys = [base64.b64decode(line, validate=True) for line in lines]
        except OSError as error:
            raise ConfigurationError(
                f"The master key, {self._master_path}, cannot be read: {error.strerror}. Name its file in "
                "ANAMNESIS_ENCRYPTION_KEY_FILE; without it nothing that users said can be read."
            ) from None
        except ValueError:
            keys = []
        if not keys or any(len(key) != _MASTER_BYTES for key in keys):
            raise ConfigurationError(f"The master key, {self._master_path}, is not 32 bytes in base64.")
        return keys


def _owner(tenant_id: UUID, user: str) -> bytes:
    """Return the name under which a user's key is stored, which does not show the user's own name."""
    return hashlib.sha256(tenant_id.bytes + user.encode("utf-8", "surrogatepass")).digest()


def _line(key: bytes) -> bytes:
    return base64.b64encode(key) + b"\n"
