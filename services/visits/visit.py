"""Visits: when they begin and end, and how messages of a conversation are grouped into them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Literal, LiteralString
from uuid import UUID

from psycopg.rows import class_row
from uuid_utils.compat import uuid7

from services.jobs.queue import JobQueue
from services.platform.connections import Connection
from services.platform.settings import Settings

SUMMARISE_VISIT = "summarise_visit"
"""Task that summarises a visit after its end."""

EndReason = Literal["closed", "idle"]
"""Reason for the end: `closed` by the caller, or `idle` after a silence."""


# Parts of the statement that ends a turn; they follow its parts `ended` and `moment`. The turn continues the
# newest visit of the conversation if that had not ended when the message was sent. Otherwise it begins a visit,
# and the previous one has ended by silence.
VISIT_OF_TURN: LiteralString = """said AS (
    SELECT created_at, CASE WHEN %(message_id)s::uuid IS NULL THEN created_at ELSE at END AS last_at
    FROM (SELECT moment.at, (SELECT m.created_at FROM messages m WHERE m.id = ended.user_message_id) AS created_at
          FROM ended CROSS JOIN moment) AS of_message
    WHERE created_at IS NOT NULL
), newest_visit AS (
    SELECT v.id, said.created_at <= coalesce(v.ended_at, v.last_active_at + %(visit_idle)s) AS goes_on
    FROM ended CROSS JOIN said CROSS JOIN LATERAL (
        SELECT id, last_active_at, ended_at FROM visits WHERE conversation_id = ended.conversation_id
        ORDER BY started_at DESC LIMIT 1
    ) AS v
), same_visit AS (
    UPDATE visits v SET
        last_active_at = greatest(v.last_active_at, said.last_at),
        message_count = v.message_count + %(messages)s,
        ended_at = CASE WHEN v.ended_at IS NOT NULL THEN greatest(v.ended_at, said.last_at) END,
        daily_due_at = CASE WHEN v.ended_at IS NOT NULL THEN now() END
    FROM said WHERE v.id = (SELECT id FROM newest_visit WHERE goes_on)
), visit_before AS (
    UPDATE visits v SET ended_at = v.last_active_at + %(visit_idle)s, end_reason = 'idle', daily_due_at = now()
    WHERE v.id = (SELECT id FROM newest_visit WHERE NOT goes_on) AND v.ended_at IS NULL
    RETURNING v.id, v.message_count
), new_visit AS (
    INSERT INTO visits (id, tenant_id, conversation_id, user_id, expert_id, space_id, started_at, last_active_at,
        message_count)
    SELECT %(visit_id)s, %(tenant_id)s, c.id, c.user_id, c.expert_id, c.space_id, said.created_at, said.last_at,
        %(messages)s
    FROM ended JOIN conversations c ON c.id = ended.conversation_id CROSS JOIN said
    WHERE NOT EXISTS (SELECT FROM newest_visit WHERE goes_on)
      AND (SELECT count(*) FROM visit_before) >= 0  -- two are never open, also not within this statement
    ON CONFLICT DO NOTHING
)"""


@dataclass(frozen=True)
class VisitSchedule:
    """Rules for the end of a visit, and for its summary."""

    idle: timedelta = timedelta(minutes=30)
    """Length of a silence that ends a visit."""
    summaries: bool = True
    """Whether visits and days are summarised."""
    shortest_messages: int = 3
    """Minimum messages of a visit that gets a summary; a shorter visit is shown as it is."""
    shortest_characters: int = 51
    recent: timedelta = timedelta(days=35)
    """Maximum age at which the day of a visit is summarised unasked; an older visit was imported."""

    def is_summarised(self, messages: int) -> bool:
        """Return whether a visit of this many messages may be long enough for a summary."""
        return self.summaries and messages >= self.shortest_messages


def visit_schedule(settings: Settings) -> VisitSchedule:
    """Return the rules that the settings give."""
    idle = timedelta(minutes=settings.memory_visit_idle_minutes)
    return VisitSchedule(idle=idle, summaries=settings.memory_visits)


@dataclass(frozen=True)
class Visit:
    """A stored visit. Its messages are those of the conversation within its time."""

    id: UUID
    conversation_id: UUID
    session_id: str
    """The caller's own name for the conversation."""
    expert: str
    started_at: datetime
    last_active_at: datetime
    ended_at: datetime | None
    """End of the visit; unset while it continues. After a silence, it is when the silence was long enough."""
    end_reason: EndReason | None
    message_count: int
    """Complete messages."""
    summary: str | None
    """Summary; unset while the visit continues, is too short, or waits for its summary."""
    key_topics: list[str]
    summary_generated_at: datetime | None
    feelings: list[str]
    """Feelings of the user during the visit, in the user's own words."""


SUMMARISE_DAYS = "summarise_days"
"""Task that summarises the days of some visits."""


async def defer_days(jobs: JobQueue, connection: Connection, tenant_id: UUID, visit_ids: Sequence[UUID]) -> None:
    """Defer a job that summarises the days of these visits, in the caller's transaction; only one may wait."""
    await jobs.defer(
        connection,
        SUMMARISE_DAYS,
        tenant_id=tenant_id,
        queueing_lock=f"{SUMMARISE_DAYS}:{visit_ids[0]}:{len(visit_ids)}",
        visit_ids=list(visit_ids),
    )


# The time of the visits that the messages can affect: from the one before or around the first message to the one
# after the last.
_REGION: LiteralString = """
SELECT coalesce((
           SELECT v.started_at FROM visits v
           WHERE v.conversation_id = %(conversation_id)s AND v.started_at <= %(first)s
           ORDER BY v.started_at DESC LIMIT 1
       ), %(first)s),
       greatest(%(last)s, (
           SELECT v.last_active_at FROM visits v
           WHERE v.conversation_id = %(conversation_id)s AND v.started_at <= %(last)s
           ORDER BY v.started_at DESC LIMIT 1
       ), (
           SELECT v.last_active_at FROM visits v
           WHERE v.conversation_id = %(conversation_id)s AND v.started_at > %(last)s
           ORDER BY v.started_at LIMIT 1
       )),
       (SELECT max(started_at) FROM visits
        WHERE conversation_id = %(conversation_id)s AND tenant_id = %(tenant_id)s),
       now()
"""

# Messages of a running turn join a visit when the turn ends.
_GROUPS: LiteralString = """
WITH said AS (
    SELECT m.created_at, m.id, m.completed AND m.branch_id IS NULL AS completed, m.retracted_at,
           lag(m.created_at) OVER (ORDER BY m.created_at, m.id) AS before
    FROM messages m
    WHERE m.conversation_id = %(conversation_id)s AND m.tenant_id = %(tenant_id)s
      AND m.created_at >= %(lower)s AND m.created_at <= %(upper)s
      AND NOT EXISTS (SELECT FROM turns t WHERE t.id = m.turn_id AND t.finished_at IS NULL)
), numbered AS (
    SELECT created_at, completed, retracted_at,
        sum(CASE WHEN before IS NULL OR created_at - before > %(idle)s OR EXISTS (
        SELECT FROM visits v WHERE v.conversation_id = %(conversation_id)s AND v.end_reason = 'closed'
          AND v.ended_at >= before AND v.ended_at < created_at
    ) THEN 1 ELSE 0 END) OVER (ORDER BY created_at, id) AS number
    FROM said
)
SELECT min(created_at) AS started_at, max(created_at) AS last_active_at,
       count(*) FILTER (WHERE completed AND retracted_at IS NULL) AS message_count
FROM numbered GROUP BY number ORDER BY 1
"""

_VISITS: LiteralString = """
SELECT id, started_at, last_active_at, ended_at, end_reason, message_count FROM visits
WHERE conversation_id = %(conversation_id)s AND tenant_id = %(tenant_id)s
  AND started_at >= %(lower)s AND started_at <= %(upper)s
ORDER BY started_at FOR UPDATE
"""

_REMOVE: LiteralString = "DELETE FROM visits WHERE id = ANY(%(ids)s) AND tenant_id = %(tenant_id)s"

_WRITE: LiteralString = """
INSERT INTO visits AS v (id, tenant_id, conversation_id, user_id, expert_id, space_id, started_at, last_active_at,
    ended_at, end_reason, message_count, daily_due_at)
SELECT %(id)s, c.tenant_id, c.id, c.user_id, c.expert_id, c.space_id, %(started_at)s, %(last_active_at)s,
    %(ended_at)s, %(end_reason)s, %(message_count)s, %(due_at)s
FROM conversations c WHERE c.id = %(conversation_id)s AND c.tenant_id = %(tenant_id)s
ON CONFLICT (id, tenant_id) DO UPDATE SET
    started_at = EXCLUDED.started_at, last_active_at = EXCLUDED.last_active_at, ended_at = EXCLUDED.ended_at,
    end_reason = EXCLUDED.end_reason, message_count = EXCLUDED.message_count,
    daily_due_at = coalesce(EXCLUDED.daily_due_at, v.daily_due_at)
"""


@dataclass(frozen=True)
class Span:
    """The messages of one visit, and what is stored of the visit."""

    started_at: datetime
    last_active_at: datetime
    message_count: int
    id: UUID | None = None
    ended_at: datetime | None = None
    end_reason: EndReason | None = None


async def group_visits(
    connection: Connection,
    tenant_id: UUID,
    schedule: VisitSchedule,
    conversation_id: UUID,
    first: datetime,
    last: datetime,
) -> int:
    """Correct the visits of a conversation after messages from `first` to `last` were added. This works in the
    transaction that stores the messages. Return how many visits changed."""
    ids = {"tenant_id": tenant_id, "conversation_id": conversation_id}
    values: dict[str, Any] = {**ids, "idle": schedule.idle, "first": first, "last": last}
    region = await (await connection.execute(_REGION, values, prepare=False)).fetchone()
    assert region is not None  # noqa: S101 — it has no table of its own
    values["lower"], values["upper"], newest, now = region
    async with connection.cursor(row_factory=class_row(Span)) as cursor:
        groups = await (await cursor.execute(_GROUPS, values, prepare=False)).fetchall()
        stored = await (await cursor.execute(_VISITS, values, prepare=False)).fetchall()
    # Each group comes with the visits whose messages it holds, oldest first; the group of a new visit has none.
    pairs = [
        (group, [each for each in stored if group.started_at <= each.started_at <= group.last_active_at])
        for group in groups
    ]
    gone = [each.id for _, inside in pairs for each in inside[1:]]
    if gone:
        await connection.execute(_REMOVE, {**values, "ids": gone}, prepare=False)
    changed = len(gone)
    for group, inside in pairs:
        may_go_on = group is groups[-1] and (newest is None or group.last_active_at >= newest)
        visit = _visit(group, inside, schedule.idle, now if may_go_on else None)
        if inside == [visit]:
            continue
        is_due = visit.ended_at and visit.started_at > now - schedule.recent
        written = {**values, **vars(visit), "due_at": now if is_due else None}
        await connection.execute(_WRITE, written, prepare=False)
        changed += 1
    return changed


def _visit(group: Span, inside: Sequence[Span], idle: timedelta, now: datetime | None) -> Span:
    """Return the visit of a group of messages; without `now` it has ended in any case."""
    visit = replace(group, id=inside[0].id if inside else uuid7())
    closed = [each.ended_at for each in inside if each.end_reason == "closed" and each.ended_at]
    if closed:
        return replace(visit, ended_at=max(closed), end_reason="closed")
    over = group.last_active_at + idle
    return visit if now is not None and over > now else replace(visit, ended_at=over, end_reason="idle")
