"""Marked parameters are sealed with the key of the user whom the statement names, and never stored in clear."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from psycopg.rows import tuple_row

from services.encryption.data_key import TOKEN
from services.encryption.marks import Words, WordsByKey, WordsInJson, WordsJson, all_words
from services.engines import Engines, make_vault
from services.errors import InvalidInput
from services.identity.tenants import DEFAULT_TENANT
from services.platform.postgres import Database
from services.platform.settings import load_settings

USER, OTHER = uuid4(), uuid4()


@pytest.fixture
async def sealed(engines: Engines, tmp_path: Path) -> AsyncIterator[Database]:
    """An encrypted database with two users."""
    settings = load_settings(encryption=True, encryption_keys_dir=tmp_path / "keys")
    database = Database(engines.database_url, vault=make_vault(settings))
    await database.open()
    async with database.tenant(DEFAULT_TENANT) as connection:
        for user_id, name in ((USER, "u-1"), (OTHER, "u-2")):
            insert = "INSERT INTO users (id, tenant_id, external_id) VALUES (%s, %s, %s)"
            await connection.execute(insert, [user_id, DEFAULT_TENANT, name])
    yield database
    await database.close()


async def _raw(database: Database, value: Any, form: Any, **values: Any) -> bytes:
    """What PostgreSQL is sent of a parameter."""
    statement: Any = f"SELECT convert_to(({form})::text, 'UTF8')"
    [(raw,)] = await database.fetch(DEFAULT_TENANT, statement, {**values, "value": value}, tuple_row)
    return bytes(raw)


async def test_what_the_database_gets_is_sealed_and_comes_back_as_it_was(sealed: Database) -> None:
    for value, form in (
        (Words("I have asthma"), "%(value)s::text"),
        (WordsJson({"asthma": ["since 2019"]}), "%(value)s::jsonb"),
        (WordsInJson({"said": "asthma", "id": str(USER)}), "%(value)s::jsonb"),
        (WordsByKey({"human": {"asthma": 1}}), "%(value)s::jsonb"),
    ):
        raw = await _raw(sealed, value, form, user_id=USER)
        assert b"asthma" not in raw
        assert TOKEN.search(raw.decode())
        statement: Any = f"SELECT {form}"
        [(back,)] = await sealed.fetch(DEFAULT_TENANT, statement, {"user_id": USER, "value": value}, tuple_row)
        assert back == (str(value) if isinstance(value, Words) else value.obj)
    assert b'"human"' in await _raw(sealed, WordsByKey({"human": {"asthma": 1}}), "%(value)s::jsonb", user_id=USER)


async def test_joined_and_aggregated_texts_are_opened_where_they_stand(sealed: Database) -> None:
    values = {"user_id": USER, "texts": all_words(["one", "two", None, ""])}
    statement: Any = """
        SELECT string_agg('user: ' || t, E'\\n' ORDER BY n), array_agg(t ORDER BY n),
               jsonb_agg(jsonb_build_object('said', t) ORDER BY n)
        FROM unnest(%(texts)s::text[]) WITH ORDINALITY AS said (t, n) WHERE t IS NOT NULL
    """
    [row] = await sealed.fetch(DEFAULT_TENANT, statement, values, tuple_row)
    assert row[0] == "user: one\nuser: two\nuser: "
    assert row[1] == ["one", "two", ""]
    assert row[2] == [{"said": "one"}, {"said": "two"}, {"said": ""}]


async def test_parallel_lists_are_sealed_each_for_its_own_user(sealed: Database) -> None:
    assert sealed.vault is not None
    async with sealed.tenant(DEFAULT_TENANT) as connection:
        statement: Any = "SELECT convert_to(t, 'UTF8') FROM unnest(%(contents)s::text[]) AS t"
        values = {
            "tenant_id": DEFAULT_TENANT,
            "user_ids": [USER, OTHER],
            "contents": all_words(["mine", "theirs"]),
        }
        rows = await (await connection.execute(statement, values)).fetchall()
    tokens = [bytes(row[0]).decode() for row in rows]
    keys = [sealed.vault.keys.of_owner(DEFAULT_TENANT, name) for name in ("u-1", "u-2")]
    assert all(key and token.startswith(key.beginning) for key, token in zip(keys, tokens, strict=True))
    assert sealed.vault.keys.count() == 2


async def test_words_of_nobody_are_refused_and_those_of_an_erased_user_are_lost(sealed: Database) -> None:
    assert sealed.vault is not None
    with pytest.raises(LookupError, match="Whose words"):
        await _raw(sealed, Words("asthma"), "%(value)s::text")
    raw = await _raw(sealed, Words("asthma"), "%(value)s::text", conversation_id=UUID(int=7))
    assert b"asthma" not in raw
    assert sealed.vault.keys.count() == 0


async def test_who_has_a_copy_cannot_have_it_opened_by_a_name(sealed: Database) -> None:
    raw = (await _raw(sealed, Words("asthma"), "%(value)s::text", user_id=USER)).decode()
    for stolen in (raw, f"My name is {raw}", [raw]):
        with pytest.raises(InvalidInput, match="encrypted"):
            await sealed.fetch(DEFAULT_TENANT, "SELECT %(name)s::text", {"name": stolen}, tuple_row)
        async with sealed.tenant(DEFAULT_TENANT) as connection:
            with pytest.raises(InvalidInput, match="encrypted"):
                await connection.execute("UPDATE users SET display_name = %(name)s", {"name": stolen})
    # Within a text of the user it stays what it is.
    said = {"user_id": USER, "text": Words(f"What is {raw}?")}
    rows = await sealed.fetch(DEFAULT_TENANT, "SELECT %(text)s::text", said, tuple_row)
    assert rows == [(f"What is {raw}?",)]
