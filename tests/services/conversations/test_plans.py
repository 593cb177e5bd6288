"""The statements of a turn read no table whole, also while PostgreSQL has no statistics of it."""

import re
from collections import defaultdict
from typing import LiteralString

import pytest

from services.context import conversation
from services.context.prompt_prefix import BEGINNING
from services.conversations import turn_sql
from services.identity.tenants import DEFAULT_TENANT
from services.memory.episodes import statements
from services.platform.postgres import Database
from services.platform.shared_reads import positional

pytestmark = pytest.mark.anyio

_STATEMENTS: dict[str, LiteralString] = {
    "open": turn_sql.OPEN,
    "beginning": BEGINNING,
    "history": conversation.HISTORY,
    "memories": statements.FOUND,
    "end": turn_sql.END,
}


@pytest.mark.parametrize("statement", _STATEMENTS.values(), ids=_STATEMENTS)
async def test_no_plan_reads_a_table_whole(database: Database, statement: LiteralString) -> None:
    text, _ = positional(statement, defaultdict(lambda: None))
    async with database.tenant(DEFAULT_TENANT) as connection:
        # The new database has never been analysed, and its plan is the one for any values.
        plan = await (await connection.execute(f"EXPLAIN (GENERIC_PLAN) {text}")).fetchall()
    lines = [line for (line,) in plan]
    assert any("Index Scan" in line for line in lines)
    read_whole = [found[1] for line in lines if (found := re.search("Seq Scan on ([a-z_]+)", line))]
    assert read_whole == []
