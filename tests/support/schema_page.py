"""The schema as a Markdown page, from the catalogue of a database; run as a program, it writes it beside
the migrations."""

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
SELECT a.attname, replace(format_type(a.atttypid, a.atttypmod), 'timestamp with time zone', 'timestamptz'),
       col_description(a.attrelid, a.attnum)
FROM pg_attribute a WHERE a.attrelid = %s::regclass AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""

_KEY: LiteralString = """
SELECT pg_get_constraintdef(oid) FROM pg_constraint
WHERE conrelid = %s::regclass AND contype = 'p' AND pg_get_constraintdef(oid) <> 'PRIMARY KEY (id, tenant_id)'
"""

_BEGINNING = """\
# Schema

Tables and views of PostgreSQL at revision {revision}, written by `make schema` from a database that the \
migrations made; a test compares them. The key is `(id, tenant_id)` where none is named. Defaults, constraints, \
indexes, functions and triggers are in `services/platform/migrations/`. A transaction sees the rows of the tenant \
that it names. The tables of the job queue (`procrastinate_…`) are procrastinate's.
"""


def schema_page(connection: Connection) -> str:
    return "\n".join([_BEGINNING.format(revision=newest_revision()), *_sections(connection)])


def _sections(connection: Connection) -> Iterator[str]:
    for name, is_view, description in connection.execute(_RELATIONS).fetchall():
        yield f"## {name}\n"
        yield f"{'View. ' if is_view else ''}{description}\n"
        columns = connection.execute(_COLUMNS, [name]).fetchall()
        if plain := [f"`{column}:{type_}`" for column, type_, meaning in columns if not meaning]:
            yield f"- {', '.join(plain)}"
        yield from (f"- `{column}:{type_}`: {meaning}" for column, type_, meaning in columns if meaning)
        yield from (f"- `{row[0]}`" for row in connection.execute(_KEY, [name]).fetchall())
        yield ""


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
    Path("services/platform/migrations/schema.md").write_text(asyncio.run(_page()), encoding="utf-8")
