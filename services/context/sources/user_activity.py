"""Reads a user's activity with an expert in one statement, for other sources; it shows nothing itself."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import LiteralString

from psycopg.rows import class_row

from services.context.source import PromptTurn, Source
from services.memory.blocks import Owner
from services.platform.postgres import Database
from services.platform.shared_reads import Query

_MOST_VISITS = 1000
_NEWEST_VISITS = 10
"""Number of visits in which the last topic is searched for."""

# Nothing here grows with a user's history: visits are counted up to a limit, in an index.
KNOWN: LiteralString = """
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
        ) AS newest WHERE key_topics <> '[]' ORDER BY last_active_at DESC LIMIT 1), '{}') AS last_topics
"""


@dataclass(frozen=True)
class UserActivity:
    """A user's activity with an expert."""

    visit_count: int = 0
    """Number of earlier visits; at most 1000 are counted."""
    last_visit: datetime | None = None
    """When the user was last active; None = never."""
    last_topics: Sequence[str] = ()
    """Topics of the newest summarised visit."""


NO_ACTIVITY = UserActivity()


class UserActivityReader:
    """Reads a user's activity with an expert."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def read(self, owner: Owner) -> UserActivity:
        """Read a user's visits."""
        values = {**vars(owner), "most_visits": _MOST_VISITS, "newest_visits": _NEWEST_VISITS}
        return (await self._database.read(owner.tenant_id, Query(KNOWN, values, class_row(UserActivity))))[0]


class UserActivitySource(Source[UserActivity]):
    """Reads the activity for the persona card and the present time."""

    name = "visits"
    features = frozenset({"persona_card", "time"})

    def __init__(self, user_activity: UserActivityReader) -> None:
        self._acquaintances = user_activity

    def when_off(self) -> UserActivity:
        """Nobody is known."""
        return NO_ACTIVITY

    async def load(self, turn: PromptTurn) -> UserActivity:
        """Return the user's activity with the expert."""
        return await self._acquaintances.read(turn.owner)
