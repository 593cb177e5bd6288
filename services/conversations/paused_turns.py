"""Turns that wait for the results of a client's tools; their state is kept with them, sealed."""

from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Any, LiteralString, cast, get_args, get_type_hints
from uuid import UUID

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from psycopg.errors import UniqueViolation
from psycopg.rows import tuple_row

from services.conversations.turn import LEASE, TurnOutcome
from services.conversations.turn_sql import OWN, PASSING
from services.conversations.turn_values import outcome_values
from services.encryption.marks import WordsInJson
from services.errors import Conflict
from services.platform.patience import beside_the_loop
from services.platform.postgres import Database
from state.conversation import ConversationState
from state.turn import OpenTurn, TurnInput

_PAUSE: LiteralString = f"""
WITH paused AS (
    UPDATE turns SET
        status = 'paused', lease_expires_at = now() + %(wait)s, usage = %(usage)s, timings = %(timings)s,
        degraded = %(degraded)s, context_report = %(context_report)s, prompt = %(prompt)s,
        route_decision = %(route_decision)s, request = (request - ARRAY[{PASSING}]) || %(paused)s
    WHERE id = %(turn_id)s AND tenant_id = %(tenant_id)s AND status = 'running' AND stop_requested IS NULL
      AND {OWN}
    RETURNING conversation_id
)
SELECT CASE WHEN EXISTS (
    SELECT FROM turns t WHERE t.conversation_id = paused.conversation_id AND t.status = 'waiting'
) THEN pg_notify('anamnesis_turns', 'next:' || conversation_id)::text END
FROM paused
"""  # noqa: S608 — our own text only

_AGAIN = "SELECT 1 FROM turns WHERE id = %(turn_id)s AND tenant_id = %(tenant_id)s AND status = 'paused'"

# A newer message has taken the turn's place in the conversation, if there is one.
_RESUME: LiteralString = """
UPDATE turns t SET status = 'running', lease_expires_at = now() + %(lease)s, process = %(process)s,
    request = t.request - 'paused'
FROM (
    SELECT id, request->>'paused' AS paused FROM turns
    WHERE id = %(turn_id)s AND tenant_id = %(tenant_id)s FOR UPDATE
) AS before
WHERE t.id = before.id AND t.tenant_id = %(tenant_id)s AND t.status = 'paused' AND t.stop_requested IS NULL
  AND NOT EXISTS (
      SELECT FROM turns o WHERE o.conversation_id = t.conversation_id AND o.status IN ('waiting', 'running')
  )
RETURNING before.paused
"""


def _types_within(*roots: Any) -> list[tuple[str, str]]:
    """Return module and name of all classes in the state that these types are made of."""
    found: set[type] = set()
    left = list(roots)
    while left:
        each = left.pop()
        left += get_args(each)
        if isinstance(each, type) and each.__module__.startswith("state.") and each not in found:
            found.add(each)
            left += get_type_hints(each).values()
    return [(each.__module__, each.__qualname__) for each in found]


# No other classes are read, so a row that was tampered with makes no other object.
_SERIALIZER = JsonPlusSerializer(
    allowed_msgpack_modules=[
        *_types_within(OpenTurn, ConversationState),
        ("services.llm.request_form", "ContextMessage"),
    ]
)
_OF_REQUEST = frozenset({"client_tools", "rounds", "sampling", "budget"})
"""Fields that every request for a turn repeats."""
_MUCH = 100_000
"""Minimum characters of a paused turn's messages for which a thread reads and writes it."""


@dataclass(frozen=True)
class PausedTurn:
    """A turn as it was when it called the client's tools."""

    turn: OpenTurn
    state: ConversationState


class PausedTurns:
    """Keeps turns while their clients run tools, and returns each once."""

    def __init__(self, database: Database, *, wait_s: float) -> None:
        """Take the seconds that a turn waits before it ends as partial."""
        self._database = database
        self._wait = timedelta(seconds=wait_s)

    async def pause(self, turn: OpenTurn, state: ConversationState, outcome: TurnOutcome) -> None:
        """Keep a running turn until its client brings results; to do it again changes nothing. Raises
        `Conflict` if the turn has ended, or is to stop."""
        packed = await beside_the_loop(partial(_packed, turn, state), characters=_size(state), most=_MUCH)
        values = {
            **outcome_values(outcome, "", ""),
            "turn_id": turn.turn_id,
            "tenant_id": turn.tenant_id,
            "wait": self._wait,
            "process": self._database.process,
            "paused": WordsInJson({"paused": packed}),
        }
        if not await self._database.fetch(turn.tenant_id, _PAUSE, values, tuple_row):
            again = {"turn_id": turn.turn_id, "tenant_id": turn.tenant_id}
            if not await self._database.fetch(turn.tenant_id, _AGAIN, again, tuple_row):
                raise Conflict("This turn has ended already.")

    async def resume(self, tenant_id: UUID, turn_id: UUID, user: str) -> PausedTurn | None:
        """Take a paused turn, which runs here from now on; return None if it does not wait any more.

        `user` is the caller's name for its user.
        """
        values = {"tenant_id": tenant_id, "turn_id": turn_id, "lease": LEASE, "process": self._database.process}
        try:
            rows = await self._database.fetch(tenant_id, _RESUME, values, tuple_row)
        except UniqueViolation:  # another turn was opened at the same moment
            return None
        if not rows or rows[0][0] is None:
            return None
        if self._database.vault is not None:
            self._database.vault.know(turn_id, tenant_id, user)
        packed: str = rows[0][0]
        return await beside_the_loop(partial(_unpacked, packed), characters=len(packed), most=_MUCH)


def _packed(turn: OpenTurn, state: ConversationState) -> str:
    rest = {name: value for name, value in turn.input.items() if name not in _OF_REQUEST}
    asked = cast("TurnInput", rest)
    kept = {name: value for name, value in state.items() if name not in {"message_vector", "execution_logs"}}
    _, data = _SERIALIZER.dumps_typed({"turn": replace(turn, input=asked), "state": kept})
    return b64encode(data).decode()


def _unpacked(packed: str) -> PausedTurn:
    found: Mapping[str, Any] = _SERIALIZER.loads_typed(("msgpack", b64decode(packed)))
    return PausedTurn(found["turn"], found["state"])


def _size(state: ConversationState) -> int:
    sections = (item for section in state.get("sections", []) for item in section.items)
    return sum(len(each.text) for each in sections) + sum(len(each.text) for each in state.get("messages", []))
