"""What every client was told and what is stored, compared: nothing lost, nothing doubled, one outcome a turn."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, LiteralString

import psycopg

from services.identity.tenants import DEFAULT_TENANT
from tests.chaos.client import Told

_TURNS: LiteralString = (
    "SELECT t.id, status, content FROM turns t LEFT JOIN messages m ON m.id = assistant_message_id"
)


def query(database_url: str, statement: LiteralString) -> list[tuple[Any, ...]]:
    """Rows of the default tenant."""
    with psycopg.connect(database_url) as connection:
        connection.execute("SELECT set_config('anamnesis.tenant_id', %s, true)", [str(DEFAULT_TENANT)])
        return connection.execute(statement).fetchall()


def broken_promises(told: Sequence[Told], database_url: str, expected: Callable[[str], str]) -> list[str]:
    """Compare what clients were told with what is stored; `expected` gives the whole answer to a message."""
    return [*_wrongly_told(told, expected), *_wrongly_stored(told, database_url)]


def _wrongly_told(told: Sequence[Told], expected: Callable[[str], str]) -> list[str]:
    """One turn a message; the same events to every reader; one outcome."""
    broken: list[str] = []
    for one in told:
        broken += [f"{one.message}: {line}" for line in one.wrong]
        if len(one.turn_ids) > 1:
            broken.append(f"{one.message} became the turns {one.turn_ids}")
        outcomes = {(status, content.get("answer", "")) for status, content in one.last}
        if len(outcomes) > 1:
            broken.append(f"{one.message} ended in several ways: {outcomes}")
        for status, answer in outcomes:
            if status == "done" and answer != expected(one.message):
                broken.append(f"{one.message} was answered {answer[:200]!r}")
            if not expected(one.message).startswith(one.tokens):
                broken.append(f"{one.message} streamed {one.tokens[:200]!r}")
    return broken


def _wrongly_stored(told: Sequence[Told], database_url: str) -> list[str]:
    """Every message once; one outcome a turn, the one that was told; at most one answer."""
    stored = Counter(row[0] for row in query(database_url, "SELECT content FROM messages WHERE role = 'user'"))
    broken = [f"{one.message} is stored {stored[one.message]} times" for one in told if stored[one.message] != 1]
    answers = Counter(
        row[0] for row in query(database_url, "SELECT turn_id FROM messages WHERE role = 'assistant'")
    )
    broken += [f"turn {turn} has {count} answers" for turn, count in answers.items() if count > 1]
    turns = {str(turn): (status, answer or "") for turn, status, answer in query(database_url, _TURNS)}
    for one in told:
        for turn_id in one.turn_ids:
            status, answer = turns.get(turn_id, ("lost", ""))
            for said, content in one.last:
                if (said == "done") != (status == "completed") or content.get("answer", "") != answer:
                    broken.append(f"{one.message} was told {said} {content}; stored is {status} {answer!r}")
    return broken
