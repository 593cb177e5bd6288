"""Tone as it is stored: a row for each completed turn, written by the statement that ends the turn."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, LiteralString
from uuid import UUID

from psycopg.rows import class_row, tuple_row
from psycopg.types.json import Jsonb

from services.platform.postgres import Database
from state.prompt import DominantTone, EmotionScores, Pace

GIVE_OPINION = "give_tone_opinion"
"""Task that asks the small model about a turn's message."""

MESSAGES = 5
"""Messages of the user that make a tone, the present one included."""

# Of messages that are a day old nothing is said about how the user feels now.
EARLIER: LiteralString = """
SELECT coalesce(jsonb_agg(jsonb_build_object(
           'message_scores', message_scores, 'opinion', opinion, 'empathy', empathy
       ) ORDER BY at DESC, turn_id DESC), '[]')
FROM (
    SELECT * FROM tone_states
    WHERE conversation_id = %(conversation_id)s AND tenant_id = %(tenant_id)s AND at > now() - interval '1 day'
    ORDER BY at DESC, turn_id DESC LIMIT 4
) AS last
"""
"""A list of `EarlierTone`, newest first."""

_LIST: LiteralString = """
SELECT s.turn_id, s.conversation_id, c.session_key AS session_id, s.message_scores, s.opinion, s.scores,
       s.dominant, s.empathy, s.pace, s.at
FROM tone_states s JOIN conversations c ON c.id = s.conversation_id
WHERE s.tenant_id = %(tenant_id)s
  AND s.user_id = (SELECT id FROM users WHERE tenant_id = %(tenant_id)s AND external_id = %(user)s)
  AND (%(session_id)s::text IS NULL OR c.session_key = %(session_id)s)
  AND (%(after_at)s::timestamptz IS NULL OR (s.at, s.turn_id) > (%(after_at)s, %(after_id)s::uuid))
ORDER BY s.at, s.turn_id LIMIT %(limit)s
"""

_MESSAGE: LiteralString = """
SELECT m.content FROM tone_states s JOIN turns t ON t.id = s.turn_id
JOIN remembered_messages m ON m.id = t.user_message_id
WHERE s.turn_id = %(turn_id)s AND s.tenant_id = %(tenant_id)s AND s.opinion IS NULL
"""

_OPINION: LiteralString = """
UPDATE tone_states SET opinion = %(opinion)s
WHERE turn_id = %(turn_id)s AND tenant_id = %(tenant_id)s AND opinion IS NULL
"""


@dataclass(frozen=True)
class EarlierTone:
    """How an earlier message sounded."""

    message_scores: EmotionScores
    """By the rules."""
    opinion: EmotionScores | None
    """A model's; None = none was asked, or it has not come."""
    empathy: float
    """Empathy of its turn."""


@dataclass(frozen=True)
class StoredTone:
    """A turn's tone in the database."""

    turn_id: UUID
    conversation_id: UUID
    session_id: str
    message_scores: EmotionScores
    opinion: EmotionScores | None
    scores: EmotionScores
    dominant: DominantTone
    empathy: float
    pace: Pace
    at: datetime


class ToneStates:
    """Reads the trajectory, and keeps what a model thinks of a message."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def of_user(
        self,
        tenant_id: UUID,
        user: str,
        *,
        session_id: str | None,
        after: tuple[datetime, UUID] | None,
        limit: int,
    ) -> Sequence[StoredTone]:
        """A user's turns, by the caller's name for them, the newest last; of all conversations, or of one.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """
        after_at, after_id = after or (None, None)
        values: dict[str, Any] = {
            "tenant_id": tenant_id,
            "user": user,
            "session_id": session_id,
            "after_at": after_at,
            "after_id": after_id,
            "limit": limit,
        }
        return await self._database.fetch(tenant_id, _LIST, values, class_row(StoredTone))

    async def message_without_opinion(self, tenant_id: UUID, turn_id: UUID) -> str | None:
        """What the user said in a turn; None where there is an opinion of it, or the turn is gone.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """
        values = {"tenant_id": tenant_id, "turn_id": turn_id}
        rows = await self._database.fetch(tenant_id, _MESSAGE, values, tuple_row)
        return str(rows[0][0]) if rows else None

    async def keep_opinion(self, tenant_id: UUID, turn_id: UUID, opinion: EmotionScores) -> None:
        """Store what a model thinks of a turn's message, unless that was done.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """
        values = {"tenant_id": tenant_id, "turn_id": turn_id, "opinion": Jsonb(opinion)}
        async with self._database.tenant(tenant_id) as connection:
            await connection.execute(_OPINION, values)
