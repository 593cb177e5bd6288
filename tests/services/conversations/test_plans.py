"""The statements of a turn read no table whole, also while PostgreSQL has no statistics of it."""

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import LiteralString
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql

from services.context import conversation
from services.context.epochs import BEGINNING
from services.context.sources import time
from services.conversations import turn_sql
from services.memory import core_sql
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
    assert len(conditions) == 3
    assert all(re.search(r"\bid = ", each) for each in conditions), conditions


@pytest.fixture(scope="module")
def million_messages(postgres: EmbeddedPostgres) -> Iterator[psycopg.Connection]:
    """A database with a million messages in 20,000 conversations, and with statistics."""
    name = f"million_{uuid4().hex}"
    with psycopg.connect(postgres.url("postgres", "postgres"), autocommit=True) as maintenance:
        maintenance.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), sql.Identifier(TEMPLATE))
        )
        try:
            with psycopg.connect(postgres.url("postgres", name), autocommit=True) as owner:
                owner.execute("SET session_replication_role = replica")  # no foreign keys, no triggers
                owner.execute(_MILLION)
                owner.execute("ANALYZE messages")
            with psycopg.connect(postgres.url(SERVICE_ROLE, name)) as connection:
                yield connection
        finally:
            maintenance.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.mark.soak
@pytest.mark.parametrize("statement", _STATEMENTS.values(), ids=_STATEMENTS)
def test_no_plan_reads_a_million_messages(million_messages: psycopg.Connection, statement: LiteralString) -> None:
    text, _ = positional(statement, defaultdict(lambda: None))
    plan = million_messages.execute(f"EXPLAIN (GENERIC_PLAN) {text}").fetchall()
    assert [line for (line,) in plan if re.search("Seq Scan on messages", line)] == []


_MILLION = """
INSERT INTO messages (id, tenant_id, conversation_id, turn_id, role, content, completed, token_count, created_at)
SELECT gen_random_uuid(), '00000000-0000-7000-8000-000000000001', md5((n % 20000)::text)::uuid,
       md5((n / 2)::text)::uuid, CASE n % 2 WHEN 0 THEN 'user' ELSE 'assistant' END, 'Hello', true, 2,
       now() - make_interval(secs => n)
FROM generate_series(1, 1000000) AS n
"""
