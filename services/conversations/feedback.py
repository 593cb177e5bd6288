"""Users' feedback on answers: one rating per turn, which may be changed and withdrawn."""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, LiteralString
from uuid import UUID

from psycopg.rows import dict_row, tuple_row

from services.encryption.marks import all_words, words
from services.errors import Conflict, NotFound
from services.experiments.assignment import NAMES_OF_TURN
from services.memory.proposals.wishes import FeedbackWishes
from services.platform.metrics import EXPERIMENT_FEEDBACK, FEEDBACK
from services.platform.postgres import Database

Rating = Literal["up", "down"]

SAID = "said"
"""Tag of a rating that filing took from the user's words; the user pressed no thumb."""
MAX_COMMENT_CHARACTERS = 2000
MAX_TAGS = 10
_LATELY = timedelta(days=30)

RATED_MESSAGE: LiteralString = "coalesce(t.assistant_message_id, t.user_message_id)"
"""SQL for the message that feedback on a turn `t` belongs to: its answer, or the user's message without one."""

OF_TURN: LiteralString = f"""
SELECT jsonb_build_object('rating', CASE f.rating WHEN 1 THEN 'up' ELSE 'down' END, 'comment', f.comment,
           'tags', f.tags, 'updated_at', f.updated_at)
FROM feedback f WHERE f.message_id = {RATED_MESSAGE}
"""  # noqa: S608 — our own text only
"""SQL for the feedback on a turn `t` as JSON; NULL if there is none."""

_TURN: LiteralString = f"""
SELECT {RATED_MESSAGE} AS message_id, t.finished_at IS NOT NULL AS has_ended,
       ({NAMES_OF_TURN}) AS experiments
FROM turns t
WHERE t.id = %(turn_id)s AND t.tenant_id = %(tenant_id)s AND (%(user)s::text IS NULL OR %(user)s = (
    SELECT u.external_id FROM conversations c JOIN users u ON u.id = c.user_id WHERE c.id = t.conversation_id))
"""  # noqa: S608 — our own text only

_SHOWN: LiteralString = """
CASE rating WHEN 1 THEN 'up' ELSE 'down' END AS rating, comment, tags, updated_at
"""

_PUT: LiteralString = f"""
WITH before AS (SELECT rating AS old FROM feedback WHERE message_id = %(message_id)s)
INSERT INTO feedback (message_id, tenant_id, rating, comment, tags)
SELECT id, tenant_id, %(score)s, %(comment)s, %(tags)s FROM messages
WHERE id = %(message_id)s AND tenant_id = %(tenant_id)s
ON CONFLICT (message_id, tenant_id) DO UPDATE SET
    rating = EXCLUDED.rating, comment = EXCLUDED.comment, tags = EXCLUDED.tags, updated_at = clock_timestamp()
RETURNING {_SHOWN}, (SELECT old FROM before) IS DISTINCT FROM %(score)s AS is_new
"""  # noqa: S608

_BEFORE: LiteralString = """
SELECT asked.id, EXISTS (
    SELECT FROM memory_operations o
    WHERE o.turn_id = asked.id AND o.tenant_id = asked.tenant_id AND o.type = 'memory_command'
      AND o.field IN ('remember', 'standing', 'correct') AND o.undone_at IS NULL
      AND o.trigger->>'actor' <> 'filing'
), (
    SELECT CASE WHEN NOT EXISTS (SELECT FROM feedback f WHERE f.message_id = t.assistant_message_id) THEN t.id END
    FROM turns t
    WHERE t.conversation_id = asked.conversation_id AND t.tenant_id = asked.tenant_id
      AND t.started_at < asked.started_at AND t.assistant_message_id IS NOT NULL
    ORDER BY t.started_at DESC LIMIT 1)
FROM turns asked WHERE asked.user_message_id = %(message_id)s AND asked.tenant_id = %(tenant_id)s
"""

_OF_EXPERT: LiteralString = f"""
SELECT f.rating, f.tags
FROM feedback f
JOIN turns t ON f.message_id = {RATED_MESSAGE}
JOIN conversations c ON c.id = t.conversation_id JOIN experts e ON e.id = c.expert_id
WHERE e.name = %(expert)s AND f.tenant_id = %(tenant_id)s AND f.updated_at > %(since)s
"""  # noqa: S608 — our own text only

_DELETE: LiteralString = "DELETE FROM feedback WHERE message_id = %(message_id)s RETURNING message_id"


@dataclass(frozen=True)
class Feedback:
    """A user's opinion of an answer."""

    rating: Rating
    comment: str | None
    tags: list[str]
    """Words chosen by the caller, such as `wrong` or `too long`."""
    updated_at: datetime


@dataclass(frozen=True)
class ExpertFeedback:
    """Number of opinions on an expert's answers in the last 30 days."""

    up: int
    down: int
    """Thumbs down, with the complaints."""
    complaints: int
    """Faults that users found in their own words, such as “too long”, without pressing a thumb."""


def feedback_of(told: Any) -> Feedback | None:
    """Return the JSON of `OF_TURN` as a record."""
    return Feedback(**{**told, "updated_at": datetime.fromisoformat(told["updated_at"])}) if told else None


class TurnFeedback:
    def __init__(self, database: Database, wishes: FeedbackWishes) -> None:
        self._database = database
        self._wishes = wishes

    async def of_expert(self, tenant_id: UUID, expert: str) -> ExpertFeedback:
        """Return how many users' opinions an expert's answers have had lately; none for an unknown expert."""
        since = datetime.now(UTC) - _LATELY
        values = {"tenant_id": tenant_id, "expert": expert, "since": since}
        given = await self._database.fetch(tenant_id, _OF_EXPERT, values, tuple_row)
        ratings = [rating for rating, _ in given]
        # With encryption, only this process can read the tags.
        complaints = sum(SAID in tags for _, tags in given)
        return ExpertFeedback(ratings.count(1), ratings.count(-1), complaints)

    async def put(
        self,
        tenant_id: UUID,
        turn_id: UUID,
        rating: Rating,
        *,
        comment: str | None = None,
        tags: Sequence[str] = (),
        user: str | None = None,
    ) -> Feedback:
        """Store feedback on a turn, replacing any; optionally only if the turn is this user's. Raises
        `NotFound` if the tenant, or the user, has no such turn, and `Conflict` if the turn has not ended."""
        turn = await self._turn(tenant_id, turn_id, user)
        if not turn["has_ended"]:
            raise Conflict("The turn has not ended: there is no answer to rate yet.")
        values = {
            "tenant_id": tenant_id,
            "message_id": turn["message_id"],
            "score": 1 if rating == "up" else -1,
            "comment": words(comment),
            "tags": all_words(dict.fromkeys(tags)),
        }
        rows = await self._database.fetch(tenant_id, _PUT, values, dict_row)
        if not rows:
            raise NotFound(f"There is no turn {turn_id}.")
        if rows[0].pop("is_new"):
            FEEDBACK.labels(rating).inc()
            for experiment, variant in (turn["experiments"] or {}).items():
                EXPERIMENT_FEEDBACK.labels(experiment, variant, rating).inc()
        if rating == "down" and comment:
            await self._wishes.hear(tenant_id, turn_id, comment)
        return Feedback(**rows[0])

    async def complain(self, tenant_id: UUID, message_id: UUID, words_said: str) -> None:
        """Rate down the answer before a message of the user that finds fault with it, unless it is rated. The
        words wait as a wish, which goes with their message, unless its turn has kept one; the rating has none of
        them."""
        values = {"tenant_id": tenant_id, "message_id": message_id}
        for turn_id, is_kept, rated in await self._database.fetch(tenant_id, _BEFORE, values, tuple_row):
            if not is_kept:
                await self._wishes.hear(tenant_id, turn_id, words_said)
            if rated is not None:
                with contextlib.suppress(NotFound, Conflict):
                    await self.put(tenant_id, rated, "down", tags=[SAID])

    async def delete(self, tenant_id: UUID, turn_id: UUID, *, user: str | None = None) -> None:
        """Withdraw the feedback on a turn. Raises `NotFound` if there is no such turn, or no feedback on it."""
        message_id = (await self._turn(tenant_id, turn_id, user))["message_id"]
        if not await self._database.fetch(tenant_id, _DELETE, {"message_id": message_id}, tuple_row):
            raise NotFound(f"There is no feedback on the turn {turn_id}.")

    async def _turn(self, tenant_id: UUID, turn_id: UUID, user: str | None) -> dict[str, Any]:
        values = {"tenant_id": tenant_id, "turn_id": turn_id, "user": user}
        rows = await self._database.fetch(tenant_id, _TURN, values, dict_row)
        if not rows:
            raise NotFound(f"There is no turn {turn_id}.")
        return rows[0]
