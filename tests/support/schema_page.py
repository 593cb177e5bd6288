"""The schema as a Markdown page, from the catalogue of a database; run as a program, it writes docs/schema.md."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, LiteralString

import psycopg

from services.platform.embedded_postgres import OWNER_ROLE, SERVICE_ROLE, EmbeddedPostgres
from services.platform.migrate import migrate, newest_revision

Connection = psycopg.Connection[tuple[Any, ...]]

_RELATIONS: LiteralString = """
SELECT c.relname, c.relkind = 'v', obj_description(c.oid) FROM pg_class c
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'v')
  AND c.relname <> 'alembic_version' AND NOT starts_with(c.relname, 'procrastinate_')
ORDER BY c.relkind, c.relname
"""

_COLUMNS: LiteralString = """
SELECT a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, pg_get_expr(d.adbin, d.adrelid),
       col_description(a.attrelid, a.attnum)
FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE a.attrelid = %s::regclass AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""

_CONSTRAINTS: LiteralString = """
SELECT pg_get_constraintdef(oid) FROM pg_constraint
WHERE conrelid = %s::regclass AND contype IN ('p', 'u', 'f')
ORDER BY array_position('{p,u,f}', contype::text), conname
"""

_INDEXES: LiteralString = """
SELECT pg_get_indexdef(x.indexrelid) FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid
WHERE x.indrelid = %s::regclass AND NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conindid = x.indexrelid)
ORDER BY i.relname
"""

_BEGINNING = """\
# Schema

Every table and view of PostgreSQL, at revision {revision}. `make schema` writes this page from a database that \
the migrations made; a test compares them. The SQL itself, with its functions and triggers, is in \
`services/platform/migrations/baseline/`. Tables with `tenant_id` are under row-level security: a transaction \
sees the rows of the tenant that it names. The tables of the job queue (`procrastinate_…`) are procrastinate's.
"""


def schema_page(connection: Connection) -> str:
    """Return the page."""
    return "\n".join([_BEGINNING.format(revision=newest_revision()), *_sections(connection)])


def _sections(connection: Connection) -> Iterator[str]:
    for name, is_view, description in connection.execute(_RELATIONS).fetchall():
        yield f"## {name}\n"
        yield f"{'View. ' if is_view else ''}{description}\n"
        yield "| column | type | null | default | meaning |"
        yield "| --- | --- | --- | --- | --- |"
        for column, type_, is_required, default, meaning in connection.execute(_COLUMNS, [name]).fetchall():
            cells = (f"`{column}`", type_, "" if is_required or is_view else "yes", _code(default), meaning or "")
            yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
        yield ""
        keys = [row[0] for row in connection.execute(_CONSTRAINTS, [name]).fetchall()]
        indexes = [row[0].replace("public.", "") for row in connection.execute(_INDEXES, [name]).fetchall()]
        yield from (f"- `{each}`" for each in (*keys, *indexes))
        if keys or indexes:
            yield ""


def _code(text: str | None) -> str:
    return f"`{text}`" if text else ""


async def _page() -> str:
    with TemporaryDirectory() as folder:
        server = EmbeddedPostgres(Path(folder))
        await server.start()
        try:
            migrate(server.url(OWNER_ROLE), SERVICE_ROLE)
            with psycopg.connect(server.url(OWNER_ROLE)) as connection:
                return schema_page(connection)
        finally:
            await server.stop()


if __name__ == "__main__":
    Path("docs/schema.md").write_text(asyncio.run(_page()), encoding="utf-8")
