"""The schema as the migrations make it."""

from pathlib import Path
from typing import LiteralString

import psycopg
import pytest

from services.engines import Engines
from services.platform import migrate as migration
from tests.support.schema_page import schema_page

_TENANTS: LiteralString = """
SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant_id'
WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace
"""
_KEYS: LiteralString = """
SELECT i.indrelid::regclass::text, i.indexrelid::regclass::text, i.indisprimary, array_agg(a.attname::text)
FROM pg_index i CROSS JOIN LATERAL unnest(i.indkey) AS key (number)
JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = key.number
WHERE i.indisunique AND i.indrelid::regclass::text = ANY(%s)
GROUP BY i.indrelid, i.indexrelid, i.indisprimary
"""
_REFERENCES: LiteralString = """
SELECT conrelid::regclass::text, conname::text, confrelid::regclass::text,
       ARRAY(SELECT a.attname::text FROM unnest(conkey) AS key (number)
             JOIN pg_attribute a ON a.attrelid = conrelid AND a.attnum = key.number),
       ARRAY(SELECT a.attname::text FROM unnest(confkey) AS key (number)
             JOIN pg_attribute a ON a.attrelid = confrelid AND a.attnum = key.number)
FROM pg_constraint WHERE contype = 'f' AND connamespace = 'public'::regnamespace
"""
_PAGE = Path(migration.__file__).parent / "migrations" / "schema.md"


@pytest.fixture
def connection(engines: Engines) -> psycopg.Connection:
    assert engines.owner_url
    return psycopg.connect(engines.owner_url, autocommit=True)


def test_the_tenant_is_in_every_key_of_every_table_that_grows(connection: psycopg.Connection) -> None:
    """So rows of two tenants cannot refer to each other."""
    with connection:
        of_tenants = {row[0] for row in connection.execute(_TENANTS)}
        keys = connection.execute(_KEYS, [list(of_tenants)]).fetchall()
        references = connection.execute(_REFERENCES).fetchall()
    assert len(of_tenants) > 30
    assert [name for _, name, _, columns in keys if "tenant_id" not in columns] == []
    assert of_tenants - {table for table, _, _, _ in keys} == set()
    without = [
        name
        for table, name, other, columns, others in references
        if table in of_tenants and other in of_tenants and not {"tenant_id"} <= set(columns) & set(others)
    ]
    assert without == []
    beyond = {(table, other) for table, _, other, _, _ in references if table in of_tenants} - {
        (table, other) for table in of_tenants for other in (*of_tenants, "tenants")
    }
    assert beyond == set()


def test_the_page_about_the_schema_is_true(connection: psycopg.Connection) -> None:
    with connection:
        assert _PAGE.read_text(encoding="utf-8") == schema_page(connection), "run: make schema"


def test_no_index_holds_what_every_recall_changes(connection: psycopg.Connection) -> None:
    """Otherwise each memory that a prompt shows would get a new entry in every index of its table."""
    with connection:
        indexes = connection.execute(
            "SELECT indexname FROM pg_indexes WHERE tablename = 'episodes' AND indexdef ~ 'recall'"
        ).fetchall()
        room = connection.execute("SELECT reloptions FROM pg_class WHERE oid = 'episodes'::regclass").fetchone()
    assert indexes == []
    assert room == (["fillfactor=85"],)
