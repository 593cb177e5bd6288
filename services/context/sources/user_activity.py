"""Reads a user's activity with an expert in one statement, for other sources; it shows nothing itself."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, LiteralString
from uuid import UUID

from psycopg.rows import kwargs_row

from services.context.source import PromptTurn, Source
from services.memory.blocks import Owner
from services.platform.postgres import Database
from services.platform.shared_reads import Query
from services.tone.states import EARLIER, EarlierTone
from state.prompt import DominantTone

_MOST_VISITS = 1000
_NEWEST_VISITS = 10
"""Number of visits in which the last topic is searched for."""

# Nothing here grows with a user's history: visits are counted up to a limit, in an index.
_KNOWN: LiteralString = f"""
SELECT (SELECT count(*) FROM (
            SELECT FROM visits WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s
            AND expert_id = %(expert_id)s AND (space_id IS NULL OR space_id = %(space_id)s)
            LIMIT %(most_visits)s
        ) AS counted) AS visit_count,
       (SELECT max(last_active_at) FROM visits WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s
            AND expert_id = %(expert_id)s AND (space_id IS NULL OR space_id = %(space_id)s)) AS last_visit,
       coalesce((SELECT array(SELECT jsonb_array_elements_text(key_topics)) FROM (
            SELECT key_topics, last_active_at FROM visits WHERE tenant_id = %(tenant_id)s
            AND user_id = %(user_id)s AND expert_id = %(expert_id)s
            AND (space_id IS NULL OR space_id = %(space_id)s)
            ORDER BY last_active_at DESC LIMIT %(newest_visits)s
        ) AS newest WHERE key_topics <> '[]' ORDER BY last_active_at DESC LIMIT 1), '{{}}') AS last_topics,
       (SELECT s.dominant FROM tone_states s JOIN conversations c ON c.id = s.conversation_id
            WHERE s.tenant_id = %(tenant_id)s AND s.user_id = %(user_id)s AND s.expert_id = %(expert_id)s
            AND (c.space_id IS NULL OR c.space_id = %(space_id)s) ORDER BY s.at DESC LIMIT 1) AS mood,
       ({EARLIER}) AS earlier
"""  # noqa: S608 — our own text only


@dataclass(frozen=True)
class UserActivity:
    """A user's activity with an expert."""

    visit_count: int = 0
    """Number of earlier visits; at most 1000 are counted."""
    last_visit: datetime | None = None
    """When the user was last active; None = never."""
    last_topics: Sequence[str] = ()
    """Topics of the newest summarised visit."""
    mood: DominantTone | None = None
    """How the user sounded last; None = not known."""
    earlier: Sequence[EarlierTone] = ()
    """Tone of the last messages of the conversation, newest first."""

    @classmethod
    def of_row(cls, *, earlier: Sequence[Mapping[str, Any]], **known: Any) -> "UserActivity":
        """Return the same from a row."""
        return cls(**known, earlier=[EarlierTone(**each) for each in earlier])


NO_ACTIVITY = UserActivity()


class UserActivityReader:
    """Reads a user's activity with an expert."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def read(self, owner: Owner, conversation_id: UUID | None = None) -> UserActivity:
        """Read a user's visits and moods, and how the last messages of a conversation sounded, if one is named.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """
        values = {
            **vars(owner),
            "conversation_id": conversation_id,
            "most_visits": _MOST_VISITS,
            "newest_visits": _NEWEST_VISITS,
        }
        return (
            await self._database.read(owner.tenant_id, Query(_KNOWN, values, kwargs_row(UserActivity.of_row)))
        )[0]


class UserActivitySource(Source[UserActivity]):
    """Reads the activity for the persona card, the tone and the present time."""

    name = "tone"
    features = frozenset({"tone", "persona_card", "time"})

    def __init__(self, user_activity: UserActivityReader) -> None:
        self._acquaintances = user_activity

    def when_off(self) -> UserActivity:
        """Nobody is known."""
        return NO_ACTIVITY

    async def load(self, turn: PromptTurn) -> UserActivity:
        """Return the user's activity with the expert.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """
        return await self._acquaintances.read(turn.owner, None if turn.begins else turn.conversation_id)
