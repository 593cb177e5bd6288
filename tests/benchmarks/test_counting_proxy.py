from pathlib import Path

import psycopg
import pytest

from benchmarks.counting_proxy import counting
from services.engines import Engines
from services.platform.embedded_postgres import EmbeddedPostgres

pytestmark = pytest.mark.anyio


async def test_statements_and_round_trips_are_counted(
    postgres: EmbeddedPostgres, engines: Engines, tmp_path: Path
) -> None:
    async with counting(postgres.sockets, tmp_path) as counts:
        url = engines.database_url.partition("?")[0]
        async with await psycopg.AsyncConnection.connect(f"{url}?host={tmp_path}", autocommit=True) as connection:
            before = counts.copy()
            await connection.execute("BEGIN; SELECT 1")
            await connection.execute("SELECT %s::int", [2])
            await connection.execute("COMMIT")
            found = counts.since(before)
    assert (found.statements, found.round_trips) == (2, 3)
