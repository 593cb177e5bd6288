"""Seals what statements write and opens what they read: the boundary between the service and its stores.

Code above the database only marks parameters (`marks.py`). Other parameters of the statement show whose key seals
a marked one: a user, a conversation, a turn or a message.
"""

import asyncio
import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, LiteralString
from uuid import UUID

from psycopg import AsyncConnection, AsyncCursor
from psycopg.abc import Buffer
from psycopg.adapt import Loader
from psycopg.rows import TupleRow
from psycopg.types.json import Jsonb, JsonLoader
from psycopg.types.string import ByteaLoader

from services.encryption import data_key, marks
from services.encryption.key_store import KeyStore
from services.encryption.marks import json_value
from services.errors import InvalidInput

LookUp = Callable[[LiteralString, Mapping[str, Any]], Awaitable[Sequence[Any] | None]]
"""Runs a statement in the tenant's transaction and returns its first row."""

_MOST_KNOWN = 20_000
_BEGINNING = data_key.BEGINNING.encode()

_USER: LiteralString = "SELECT external_id FROM users WHERE id = %(id)s AND tenant_id = %(tenant_id)s"
_CONVERSATION: LiteralString = """
SELECT u.external_id FROM conversations c JOIN users u ON u.id = c.user_id
WHERE c.id = %(id)s AND c.tenant_id = %(tenant_id)s
"""
_TURN: LiteralString = """
SELECT u.external_id FROM turns t JOIN conversations c ON c.id = t.conversation_id JOIN users u ON u.id = c.user_id
WHERE t.id = %(id)s AND t.tenant_id = %(tenant_id)s
"""
_MESSAGE: LiteralString = """
SELECT u.external_id FROM messages m JOIN conversations c ON c.id = m.conversation_id
JOIN users u ON u.id = c.user_id
WHERE m.id = %(id)s AND m.tenant_id = %(tenant_id)s
"""
_OWNERS: tuple[tuple[str, LiteralString], ...] = (
    ("user_id", _USER),
    ("conversation_id", _CONVERSATION),
    ("turn_id", _TURN),
    ("message_id", _MESSAGE),
)
"""Parameters that tell whose words a statement writes, in the order in which they are tried, each with a
statement that finds the user."""
_NAMES = ("external_id", "user")
"""Parameters that hold the caller's own name for the user."""
_REMEMBERED = ("user_id", "conversation_id", "turn_id")


@dataclass(frozen=True)
class _Owner:
    tenant_id: UUID
    user: str
    """Caller's own name for the user."""


_NOBODY = _Owner(UUID(int=0), "")
"""Owner whose row is gone: the statement changes nothing, and its words are sealed with a key that is not kept."""


class Vault:
    """Seals and opens values with the keys of a store."""

    def __init__(self, keys: KeyStore) -> None:
        """Take the keys."""
        self.keys = keys
        self._owners: OrderedDict[UUID, _Owner] = OrderedDict()
        self._cursor = type("SealingCursor", (_SealingCursor,), {"vault": self})
        opening = {"key_of": staticmethod(keys.of_id)}
        self._loaders = [(name, type("Loader", (base,), opening)) for name, base in _LOADERS]

    def close(self) -> None:
        """Drop all keys, and close their store."""
        self.keys.close()
        self._owners.clear()

    def adapt(self, connection: AsyncConnection[TupleRow]) -> None:
        """Make a connection open what it reads, and seal what its cursors write."""
        connection.cursor_factory = self._cursor
        for name, loader in self._loaders:
            connection.adapters.register_loader(name, loader)

    async def seal(self, values: Mapping[str, Any], look_up: LookUp) -> Mapping[str, Any]:
        """Return a statement's parameters, the marked ones sealed.

        Raises:
            InvalidInput: A name holds text that was sealed elsewhere, which every reader of the name would see.
            LookupError: The parameters do not tell whose words they hold.
            Unavailable: The keys cannot be read or written.
        """
        if any(map(_holds_token, values.values())):
            raise InvalidInput("request", "holds encrypted text, which only the service itself may store")
        marked = {name: value for name, value in values.items() if marks.is_marked(value)}
        if not marked:
            return values
        if (own := await self._one_owner(values, look_up)) is not None:
            key = await self._key(own)
            sealed: dict[str, Any] = {
                name: [_sealed(each, key) for each in value] if isinstance(value, list) else _sealed(value, key)
                for name, value in marked.items()
            }
            if former := await self._former_keys(own, marked):
                for name, value in marked.items():
                    if _is_sought(value):
                        sealed[name] += [each.seal_digest(bytes(one)) for each in former for one in value]
        else:
            keys = await self._key_of_each(values, look_up)
            sealed = {
                name: [_sealed(each, key) for each, key in zip(value, keys, strict=True)]
                for name, value in marked.items()
            }
        return {**values, **sealed}

    async def key(self, values: Mapping[str, Any], look_up: LookUp) -> data_key.DataKey:
        """Return the key of the user whom parameters name; raises as `seal`."""
        owner = await self._one_owner(values, look_up)
        if owner is None:
            raise LookupError(f"Whose words are they? The parameters are {', '.join(values)}.")
        return await self._key(owner)

    def open_bytes(self, content: str | bytes) -> str | bytes | None:
        """Return the content of a token, and anything else as it is; None = its key was destroyed."""
        text = content if isinstance(content, str) else content.decode()
        return data_key.open_token(text, self.keys.of_id) if text.startswith(data_key.BEGINNING) else content

    def know(self, turn_id: UUID, tenant_id: UUID, user: str) -> None:
        """Remember whose turn it is, so that its events can be sealed without asking the database."""
        self._remember({"turn_id": turn_id}, _Owner(tenant_id, user))

    def key_of_turn(self, turn_id: UUID) -> data_key.DataKey | None:
        """Return the key of a turn's user, if this process has opened, adopted or ended the turn."""
        owner = self._owners.get(turn_id)
        return self.keys.of_owner(owner.tenant_id, owner.user) if owner else None

    async def _one_owner(self, values: Mapping[str, Any], look_up: LookUp) -> _Owner | None:
        """Return the user whom the parameters of a statement name; None = they name several."""
        tenant_id = values.get("tenant_id")
        for name in _NAMES:
            if tenant_id is not None and isinstance(user := values.get(name), str):
                owner = _Owner(tenant_id, user)
                self._remember(values, owner)
                return owner
        for name, statement in _OWNERS:
            if isinstance(found := values.get(name), UUID):
                owner = await self._owner_by(statement, tenant_id, found, look_up)
                self._remember(values, owner)
                return owner
        return None

    async def _key_of_each(self, values: Mapping[str, Any], look_up: LookUp) -> list[data_key.DataKey]:
        """Return the keys of parallel lists, one of which names users or conversations."""
        for name, statement in _OWNERS:
            if isinstance(ids := values.get(f"{name}s"), list):
                tenant_id = values.get("tenant_id")
                keys = {
                    each: await self._key(await self._owner_by(statement, tenant_id, each, look_up))
                    for each in dict.fromkeys(ids)
                }
                return [keys[each] for each in ids]
        raise LookupError(f"Whose words are they? The parameters are {', '.join(values)}.")

    async def _owner_by(self, statement: LiteralString, tenant_id: Any, found: UUID, look_up: LookUp) -> _Owner:
        known = self._owners.get(found)
        if known is not None:
            return known
        if tenant_id is None:
            raise LookupError("Whose words are they? The parameters name no tenant.")
        row = await look_up(statement, {"id": found, "tenant_id": tenant_id})
        if row is None:
            return _NOBODY
        owner = _Owner(tenant_id, row[0])
        self._owners[found] = owner
        return owner

    def _remember(self, values: Mapping[str, Any], owner: _Owner) -> None:
        if owner is _NOBODY:
            return
        for name in _REMEMBERED:
            if isinstance(found := values.get(name), UUID):
                self._owners[found] = owner
        while len(self._owners) > _MOST_KNOWN:
            self._owners.popitem(last=False)

    async def _former_keys(self, owner: _Owner, marked: Mapping[str, Any]) -> list[data_key.DataKey]:
        """Return the keys that are being renewed, if a parameter is compared with what they may have sealed."""
        if owner is _NOBODY or not any(map(_is_sought, marked.values())):
            return []
        return await asyncio.to_thread(self.keys.renewed, owner.tenant_id, owner.user, before_s=0)

    async def _key(self, owner: _Owner) -> data_key.DataKey:
        if owner is _NOBODY:
            return data_key.DataKey(
                secrets.token_bytes(data_key.ID_BYTES), secrets.token_bytes(data_key.KEY_BYTES)
            )
        key = self.keys.of_owner(owner.tenant_id, owner.user)
        if key is None:
            key = await asyncio.to_thread(self.keys.make_for, owner.tenant_id, owner.user)
        return key


def _is_sought(value: object) -> bool:
    return isinstance(value, list) and any(type(each) is marks.SoughtDigest for each in value)


def _holds_token(value: object) -> bool:
    """Return whether a plain text, or a list of texts, holds a token."""
    if isinstance(value, list):
        return any(map(_holds_token, value))
    return type(value) is str and data_key.BEGINNING in value and data_key.TOKEN.search(value) is not None


def _sealed(value: Any, key: data_key.DataKey) -> Any:
    way = _WAYS.get(type(value))
    return value if way is None else way(value, key)


_WAYS: dict[type, Callable[[Any, data_key.DataKey], Any]] = {
    marks.Words: lambda text, key: marks.Sealed(key.seal_text(text)),
    marks.WordsJson: lambda value, key: Jsonb(key.seal_json(value.obj)),
    marks.WordsInJson: lambda value, key: Jsonb(key.seal_leaves(value.obj, value.clear)),
    marks.WordsByKey: lambda value, key: Jsonb({name: key.seal_json(each) for name, each in value.obj.items()}),
    marks.WordsDigest: lambda digest, key: key.seal_digest(bytes(digest)),
    marks.SoughtDigest: lambda digest, key: key.seal_digest(bytes(digest)),
    marks.Fingerprint: lambda name, key: f"{name.partition(':')[0]}:{key.fingerprint(name)}",
}
"""For each mark, the function that seals it."""


class _SealingCursor(AsyncCursor[Any]):
    """Seals marked parameters of statements within a transaction."""

    vault: Vault

    async def execute(self, query: Any, params: Any = None, **options: Any) -> Any:
        if isinstance(params, Mapping):
            params = await self.vault.seal(params, self._first)
        return await super().execute(query, params, **options)

    async def _first(self, statement: LiteralString, values: Mapping[str, Any]) -> Sequence[Any] | None:
        async with AsyncCursor(self.connection) as cursor:
            return await (await cursor.execute(statement, values)).fetchone()


class _OpeningTextLoader(Loader):
    """Loads texts; in a text without tokens only the beginning of one is searched for."""

    key_of: Callable[[bytes], data_key.DataKey | None]

    def load(self, data: Buffer) -> str:
        text = bytes(data).decode("utf-8")
        return data_key.open_text(text, self.key_of) if data_key.BEGINNING in text else text


class _OpeningJsonLoader(JsonLoader):
    key_of: Callable[[bytes], data_key.DataKey | None]

    def load(self, data: Buffer) -> Any:
        value = json_value(bytes(data))
        return data_key.open_column(value, self.key_of) if _BEGINNING in bytes(data) else value


class _OpeningByteaLoader(ByteaLoader):
    key_of: Callable[[bytes], data_key.DataKey | None]

    def load(self, data: Buffer) -> bytes:
        value = bytes(super().load(bytes(data)))
        return data_key.open_digest(value, self.key_of) if value.startswith(data_key.DIGEST_MARK) else value


_LOADERS: tuple[tuple[str, type[Loader]], ...] = (
    ("text", _OpeningTextLoader),
    ("varchar", _OpeningTextLoader),
    ("json", _OpeningJsonLoader),
    ("jsonb", _OpeningJsonLoader),
    ("bytea", _OpeningByteaLoader),
)
"""Loaders that open values, by PostgreSQL type."""
