"""Times of turns that are compared side by side: long and short conversations, summaries on and off."""

import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, LiteralString
from uuid import UUID

from uuid_utils.compat import uuid7

from benchmarks.conversation_rig import Rig, rig
from benchmarks.dialogue import answer_to, message_of, slow_background
from services.conversations.values import message_tokens
from services.identity.tenants import DEFAULT_TENANT

_MESSAGES = 10_000
_FEW = 20
_NOT_COVERED = 8
"""The newest messages, behind the point that the prefilled summary covers."""
_WARM_UP = 5

_COPY: LiteralString = """
COPY messages (id, tenant_id, conversation_id, turn_id, role, content, completed, token_count, created_at)
FROM STDIN
"""
_SUMMARY: LiteralString = """
INSERT INTO conversation_summaries (conversation_id, tenant_id, summary, summary_version,
    covered_through_created_at, covered_through_message_id, covered_message_count, increments_since_full)
SELECT m.conversation_id, m.tenant_id, %(summary)s, 1, m.created_at, m.id, %(covered)s, 0
FROM messages m WHERE m.conversation_id = %(conversation_id)s AND m.completed
ORDER BY m.created_at DESC, m.id DESC OFFSET %(behind)s LIMIT 1
"""
_FORGET_EPOCH: LiteralString = "DELETE FROM context_epochs WHERE conversation_id = %s"


@dataclass(frozen=True)
class Row:
    """One time in milliseconds, in both."""

    name: str
    one: float
    other: float
    most: float | None = None
    """Upper bound that the ratio should keep."""

    @property
    def ratio(self) -> float:
        """One to the other."""
        return self.one / self.other if self.other else float("nan")


@dataclass(frozen=True)
class Comparison:
    """Result of a comparison."""

    one: str
    other: str
    rows: list[Row]


def compare_lengths(rounds: int, seed: int) -> Comparison:
    """A turn's own time in a long conversation and in a short one, by turns; the model answers at once.

    The short one has so few messages only in the beginning; a fresh one follows every ten turns.
    """
    times: dict[str, list[dict[str, float]]] = {"long": [], "short": []}
    with rig() as service:
        _begin(service, "long", 1, seed)
        _prefill(service, "long", seed)
        _begin(service, "long", _WARM_UP, seed)
        for round_number in range(rounds):
            short = f"short-{round_number // 10}"
            if round_number % 10 == 0:
                _begin(service, short, _FEW // 2, seed)
            message = message_of(seed, 1000 + round_number)
            for name in ("long", "short") if round_number % 2 else ("short", "long"):
                told = service.say("long" if name == "long" else short, message)
                times[name].append(told["timings"])
                service.settle()
    first, second = times["long"][1:], times["short"][1:]
    rows = [
        Row("the turn", _median(t["total_ms"] for t in first), _median(t["total_ms"] for t in second), 1.2),
        Row("without the model's node", _median(map(_own_ms, first)), _median(map(_own_ms, second)), 1.2),
        *(
            Row(name, _median(t.get(name, 0.0) for t in first), _median(t.get(name, 0.0) for t in second))
            for name in ("history_ms", "generate_ms", "persist_ms")
        ),
    ]
    return Comparison(f"{_MESSAGES} messages", f"{_FEW} messages", rows)


def _own_ms(timings: dict[str, float]) -> float:
    return timings["total_ms"] - timings["generate_ms"]


def _median(values: Iterable[float]) -> float:
    return statistics.median(values)


def _begin(service: Rig, session: str, turns: int, seed: int) -> None:
    for turn in range(1, turns + 1):
        service.say(session, message_of(seed, turn))
        service.settle()


def _prefill(service: Rig, session: str, seed: int) -> None:
    """Put messages before the only exchange, and a summary that covers all but the newest.

    The messages come first: behind a summary's point, each would be one that came late.
    """
    conversation_id = service.conversation(session)
    missing = _MESSAGES - 2 * (1 + _WARM_UP)
    begun = datetime.now(UTC) - timedelta(minutes=missing)
    with service.database.transaction(), service.database.cursor() as cursor:
        with cursor.copy(_COPY) as copy:
            for number in range(missing // 2):
                for row in _exchange(conversation_id, begun + timedelta(minutes=2 * number), seed + number):
                    copy.write_row(row)
        values = {"conversation_id": conversation_id, "behind": _NOT_COVERED}
        summary = {"summary": answer_to("summary"), "covered": missing + 2 - _NOT_COVERED}
        cursor.execute(_SUMMARY, {**values, **summary})
        cursor.execute(_FORGET_EPOCH, [conversation_id])  # the next turn begins one from that summary
    service.database.execute("VACUUM ANALYZE messages")


def _exchange(conversation_id: UUID, at: datetime, number: int) -> list[tuple[Any, ...]]:
    message = message_of(number, 0)
    texts = {"user": message, "assistant": answer_to(message)}
    turn_id = uuid7()
    return [
        (uuid7(), DEFAULT_TENANT, conversation_id, turn_id, role, text, True, message_tokens(text), at + later)
        for (role, text), later in zip(texts.items(), (timedelta(), timedelta(seconds=10)), strict=True)
    ]


def compare_summaries(rounds: int, seed: int) -> Comparison:
    """The time to the first token with summaries and without, by turns; a summary takes the model a while."""
    times: dict[str, list[float]] = {"on": [], "off": []}
    with rig(memory_summaries="on") as with_them, rig(memory_summaries="off") as without:
        services = {"on": with_them, "off": without}
        for service in services.values():
            service.model.default = slow_background
            _begin(service, "talk", _WARM_UP, seed)
        for turn in range(rounds):
            message = message_of(seed, 1000 + turn)
            for name in ("on", "off") if turn % 2 else ("off", "on"):
                times[name].append(services[name].first_token_ms("talk", message))
    rows = [
        Row("first token, median", _median(times["on"]), _median(times["off"]), 1.05),
        Row("first token, 90th percentile", *(sorted(times[name])[rounds * 9 // 10] for name in ("on", "off"))),
    ]
    return Comparison("summaries on", "summaries off", rows)
