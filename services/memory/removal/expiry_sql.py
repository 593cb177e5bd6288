"""The statements of retention: for each kind, what is older is counted and removed by the same condition."""

from typing import LiteralString

RULES: LiteralString = "SELECT kind, days FROM retention_rules WHERE tenant_id = %(tenant_id)s"

SET_RULE: LiteralString = """
INSERT INTO retention_rules (tenant_id, kind, days) VALUES (%(tenant_id)s, %(kind)s, %(days)s)
ON CONFLICT (tenant_id, kind) DO UPDATE SET days = excluded.days, set_at = clock_timestamp()
"""

REMOVE_RULE: LiteralString = "DELETE FROM retention_rules WHERE tenant_id = %(tenant_id)s AND kind = %(kind)s"

KEEP_REPORT: LiteralString = """
INSERT INTO retention_runs (id, tenant_id, begun_at, report)
VALUES (%(id)s, %(tenant_id)s, %(begun_at)s, %(report)s)
"""

REPORTS: LiteralString = """
SELECT id, begun_at, report FROM retention_runs WHERE tenant_id = %(tenant_id)s
ORDER BY begun_at DESC, id DESC LIMIT %(limit)s
"""

# The newest message decides: a conversation that goes on keeps its beginning.
_SILENT: LiteralString = """
SELECT c.id AS conversation_id, c.user_id, c.expert_id FROM conversations c
WHERE c.tenant_id = %(tenant_id)s
  AND coalesce(
      (SELECT max(m.created_at) FROM messages m WHERE m.conversation_id = c.id), c.created_at
  ) < %(before)s
  AND NOT EXISTS (SELECT FROM turns t WHERE t.conversation_id = c.id AND t.finished_at IS NULL)
"""

SILENT: LiteralString = f"{_SILENT} ORDER BY c.id LIMIT %(limit)s"

COUNT_SILENT: LiteralString = f"""
WITH silent AS MATERIALIZED ({_SILENT})
SELECT (SELECT count(*) FROM silent) AS conversations,
       (SELECT count(*) FROM messages m JOIN silent s USING (conversation_id)) AS messages,
       (SELECT count(*) FROM turns t JOIN silent s USING (conversation_id)) AS turns,
       (SELECT count(*) FROM episodes e JOIN silent s USING (conversation_id)
        WHERE e.content IS NULL) AS turn_episodes
"""  # noqa: S608 — our own text only

COUNT_STAYING: LiteralString = """
SELECT count(*) FROM messages m
WHERE m.tenant_id = %(tenant_id)s AND m.created_at < %(before)s AND EXISTS (
    SELECT FROM messages l WHERE l.conversation_id = m.conversation_id AND l.created_at >= %(before)s)
"""

_REPORTED_TURNS: LiteralString = """
SELECT id FROM turns WHERE tenant_id = %(tenant_id)s AND finished_at < %(before)s
  AND (prompt IS NOT NULL OR context_report IS NOT NULL OR request <> '{}')
"""

_FINISHED_JOBS: LiteralString = """
SELECT j.id FROM procrastinate_jobs j
WHERE j.status NOT IN ('todo', 'doing')
  AND coalesce(j.args->>'tenant_id', '00000000-0000-7000-8000-000000000001') = %(tenant_id)s::text
  AND (SELECT max(e.at) FROM procrastinate_events e WHERE e.job_id = j.id) < %(before)s
"""

_OLD_OPERATIONS: LiteralString = """
SELECT id FROM memory_operations o WHERE o.tenant_id = %(tenant_id)s AND o.at < %(before)s
  AND NOT coalesce(o.type = 'memory_proposal' AND o.results->>'state' = 'waiting', false)
"""

COUNT: dict[str, LiteralString] = {
    "turns": f"SELECT count(*) FROM ({_REPORTED_TURNS}) AS found",  # noqa: S608
    "jobs": f"SELECT count(*) FROM ({_FINISHED_JOBS}) AS found",  # noqa: S608
    "operations": f"SELECT count(*) FROM ({_OLD_OPERATIONS}) AS found",  # noqa: S608
}

REMOVE_BATCH: dict[str, LiteralString] = {
    "turns": f"""
        UPDATE turns SET prompt = NULL, context_report = NULL, request = '{{}}'
        WHERE id IN ({_REPORTED_TURNS} LIMIT %(limit)s)""",  # noqa: S608
    "jobs": f"DELETE FROM procrastinate_jobs WHERE id IN ({_FINISHED_JOBS} LIMIT %(limit)s)",  # noqa: S608
    "operations": f"DELETE FROM memory_operations WHERE id IN ({_OLD_OPERATIONS} LIMIT %(limit)s)",  # noqa: S608
}
