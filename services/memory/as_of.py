"""Runs statements of memory on the tables as they were at a moment in the past.

`memory_versions` keeps each earlier state of a row, and the history of core memory each earlier content of a
section. Common table expressions named like the tables replace these in a statement. What was removed for good is
in neither.
"""

from typing import LiteralString

# The version that was closed first after the moment is the one that held at it; without one, the row as it is.
# Where the text that held instead is gone, as after the undoing of a merge, its sources say what was known.
_EPISODES: LiteralString = """
episodes AS NOT MATERIALIZED (
    SELECT e.id, e.tenant_id, e.user_id, e.expert_id, e.conversation_id, e.space_id, held.episode_type,
           held.content, held.importance, e.origin, held.source_message_ids, e.created_at, e.learned_at,
           e.last_recalled_at, e.recall_count, e.pinned_at, held.indexed_at, held.retracted_at, held.held_at,
           e.changed_in, e.made_by,
           CASE WHEN e.valid_until <= %(as_of)s THEN e.valid_until END AS valid_until,
           (SELECT id FROM episodes WHERE id = held.superseded_by) AS superseded_by,
           (SELECT id FROM core_memory_blocks WHERE id = held.superseded_in) AS superseded_in, held.archived_by
    FROM episodes e LEFT JOIN LATERAL (
        SELECT v.was FROM memory_versions v WHERE v.episode_id = e.id AND v.closed_at > %(as_of)s
        ORDER BY v.closed_at LIMIT 1
    ) AS version ON true
    CROSS JOIN LATERAL jsonb_populate_record(e, coalesce(version.was, '{}')) AS held
    WHERE e.learned_at <= %(as_of)s
), remembered_episodes AS NOT MATERIALIZED (
    SELECT * FROM episodes
    WHERE superseded_by IS NULL AND superseded_in IS NULL AND archived_by IS NULL AND retracted_at IS NULL
      AND held_at IS NULL
)"""

_MESSAGES: LiteralString = """
remembered_messages AS NOT MATERIALIZED (
    SELECT m.id, m.tenant_id, m.conversation_id, m.turn_id, m.role,
           coalesce(held.memory_text, m.content) AS content, m.parts, m.completed, m.created_at, m.external_id,
           m.speaker
    FROM messages m LEFT JOIN LATERAL (
        SELECT v.was FROM memory_versions v WHERE v.message_id = m.id AND v.closed_at > %(as_of)s
        ORDER BY v.closed_at LIMIT 1
    ) AS version ON true
    CROSS JOIN LATERAL jsonb_populate_record(m, coalesce(version.was, '{}')) AS held
    WHERE held.retracted_at IS NULL AND held.branch_id IS NULL
)"""

# What an import brought keeps the time that it names.
_CORE_MEMORY: LiteralString = """
core_memory_blocks AS NOT MATERIALIZED (
    SELECT b.id, b.tenant_id, b.user_id, b.expert_id, b.space_id, b.section, latest.new AS content, latest.version,
           least(b.rewritten_version, latest.version) AS rewritten_version,
           CASE WHEN latest.version = b.version THEN b.updated_at ELSE latest.at END AS updated_at
    FROM core_memory_blocks b CROSS JOIN LATERAL (
        SELECT h.new, h.version, h.at FROM core_memory_history h
        WHERE h.block_id = b.id AND h.at <= %(as_of)s ORDER BY h.version DESC LIMIT 1
    ) AS latest
)"""

_DAYS: LiteralString = """
daily_summaries AS NOT MATERIALIZED (
    SELECT d.* FROM daily_summaries d WHERE d.updated_at <= %(as_of)s
    UNION ALL
    SELECT held.* FROM memory_versions v
    CROSS JOIN LATERAL jsonb_populate_record(NULL::daily_summaries, v.was) AS held
    WHERE v.user_id = %(user_id)s AND v.tenant_id = %(tenant_id)s AND v.day_id IS NOT NULL
      AND v.closed_at > %(as_of)s AND held.updated_at <= %(as_of)s
)"""

_PAST: LiteralString = f"WITH {_EPISODES}, {_MESSAGES}, {_CORE_MEMORY}, {_DAYS}"


def as_of(statement: LiteralString) -> LiteralString:
    """Return a statement that reads the past; it takes `as_of`, `user_id` and `tenant_id` among its values. The
    statement may read episodes, remembered messages, core memory and summaries of days, and must not be recursive.
    """
    body = statement.lstrip()
    return f"{_PAST}, {body.removeprefix('WITH ')}" if body.startswith("WITH ") else f"{_PAST} {body}"
