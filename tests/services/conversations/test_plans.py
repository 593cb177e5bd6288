"""The statements of a turn read no table whole, also while PostgreSQL has no statistics of it."""

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import LiteralString

import psycopg
import pytest

from services.context import conversation
from services.context.epochs import BEGINNING
from services.context.sources import time
from services.conversations import turn_sql
from services.memory.core import sql as core_sql
from services.memory.episodes import statements
from services.memory.removal import hiding_sql
from services.platform.embedded_postgres import SERVICE_ROLE, EmbeddedPostgres
from services.platform.shared_reads import positional
from services.usage import ledger
from tests.support.databases import TEMPLATE

_STATEMENTS: dict[str, LiteralString] = {
    "open": turn_sql.OPEN,
    "beginning": BEGINNING,
    "history": conversation.HISTORY,
    "activity": time.KNOWN,
    "core memory": core_sql.READ,
    "changes of memory": statements.GENERATION_AND_CHANGED,
    "memories": statements.FOUND,
    "end": turn_sql.END,
    "usage": ledger.WRITE,
    "silencing": hiding_sql.SILENCE,
}


@pytest.fixture
def empty_database(postgres: EmbeddedPostgres) -> Iterator[psycopg.Connection]:
    """The template of the other tests' databases: nothing was ever in it, so that it has no statistics."""
    with psycopg.connect(postgres.url(SERVICE_ROLE, TEMPLATE)) as connection:
        yield connection


@pytest.mark.parametrize("statement", _STATEMENTS.values(), ids=_STATEMENTS)
def test_no_plan_reads_a_table_whole(empty_database: psycopg.Connection, statement: LiteralString) -> None:
    text, _ = positional(statement, defaultdict(lambda: None))
    plan = empty_database.execute(f"EXPLAIN (GENERIC_PLAN) {text}").fetchall()  # the one for any values
    lines = [line for (line,) in plan]
    assert any("Index Scan" in line for line in lines)
    assert [found[1] for line in lines if (found := re.search("Seq Scan on ([a-z_]+)", line))] == []


def test_memories_are_found_by_their_ids(empty_database: psycopg.Connection) -> None:
    text, _ = positional(statements.FOUND, defaultdict(lambda: None))
    plan = empty_database.execute(f"EXPLAIN (GENERIC_PLAN) {text}").fetchall()
    conditions = [line for (line,) in plan if "Index Cond" in line]
    assert len(conditions) == 4, conditions
    assert all(re.search(r"\b(?:trigger_message_)?id = ", each) for each in conditions), conditions
