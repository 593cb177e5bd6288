"""The statements of searching and indexing chunks."""

from typing import LiteralString

_CHUNK: LiteralString = """
SELECT c.id AS chunk_id, c.base_id, c.document_id, c.version, d.title, c.heading, c.text, c.terms
FROM kb_chunks c JOIN kb_documents d ON d.id = c.document_id AND d.tenant_id = c.tenant_id
WHERE c.tenant_id = %(tenant_id)s
"""

TO_INDEX: LiteralString = f"{_CHUNK} AND c.indexed_at IS NULL ORDER BY c.base_id, c.id LIMIT %(limit)s"

ALL: LiteralString = f"{_CHUNK} AND c.id > %(after)s ORDER BY c.id LIMIT %(limit)s"

INDEXED: LiteralString = """
UPDATE kb_chunks SET indexed_at = clock_timestamp()
WHERE tenant_id = %(tenant_id)s AND id = ANY(%(chunk_ids)s::uuid[])
RETURNING id
"""

# In some bases, or in all.
NOT_INDEXED: LiteralString = """
UPDATE kb_chunks SET indexed_at = NULL
WHERE tenant_id = %(tenant_id)s AND indexed_at IS NOT NULL
  AND (%(base_ids)s::uuid[] IS NULL OR base_id = ANY(%(base_ids)s::uuid[]))
"""

VERSIONS: LiteralString = """
SELECT id, version FROM kb_documents WHERE tenant_id = %(tenant_id)s AND id = ANY(%(document_ids)s::uuid[])
"""

COUNT: LiteralString = "SELECT count(*) FROM kb_chunks WHERE tenant_id = %(tenant_id)s"

_SHOWN: LiteralString = """
SELECT c.id AS chunk_id, c.base_id, c.document_id, d.source AS document, c.position, c.heading, c.page, c.text,
       c.terms, c.indexed_at IS NULL AS waiting
FROM kb_chunks c JOIN kb_documents d ON d.id = c.document_id AND d.tenant_id = c.tenant_id
"""

FOUND: LiteralString = f"""{_SHOWN}
WHERE c.tenant_id = %(tenant_id)s AND c.base_id = ANY(%(base_ids)s::uuid[]) AND c.id = ANY(%(chunk_ids)s::uuid[])
"""

# The tenant's own bases, all or one, and the documents of the conversation itself.
ANSWERING: LiteralString = """
SELECT b.id, b.prefix, b.keywords, b.handler, b.system_prompt, b.user_id IS NOT NULL AS of_conversation
FROM knowledge_bases b
WHERE b.tenant_id = %(tenant_id)s AND CASE
    WHEN b.user_id IS NULL THEN %(prefix)s::text IS NULL OR b.prefix = %(prefix)s
    ELSE (b.user_id, b.session_key) = (
        SELECT c.user_id, c.session_key FROM conversations c
        WHERE c.id = %(conversation_id)s AND c.tenant_id = %(tenant_id)s
    ) END
"""

NEWLY_GIVEN: LiteralString = f"""{_SHOWN}
WHERE c.tenant_id = %(tenant_id)s AND c.base_id = %(base_id)s AND d.ingested_at > coalesce((
    SELECT max(m.created_at) FROM messages m
    WHERE m.conversation_id = %(conversation_id)s AND m.tenant_id = %(tenant_id)s AND m.role = 'assistant'
      AND m.branch_id IS NULL
), '-infinity')
ORDER BY c.position, d.ingested_at DESC LIMIT %(limit)s
"""  # noqa: S608 — our own text only


def _by_words(waiting: LiteralString) -> LiteralString:
    """Return SQL for the best chunks by words.

    Terms are weighted by their rarity among the chunks that are read, whose number is limited. Each step is
    materialised: the planner knows nothing of a table that was just filled, and might repeat the step for each
    row.
    """
    return f"""
WITH looked_through AS MATERIALIZED (
    SELECT id, words FROM kb_chunks
    WHERE tenant_id = %(tenant_id)s AND base_id = ANY(%(base_ids)s::uuid[]){waiting}
    ORDER BY id LIMIT %(most)s
),
asked AS (SELECT unnest(%(terms)s::text[]::tsquery[]) AS term),
held AS MATERIALIZED (SELECT l.id, a.term FROM looked_through l JOIN asked a ON l.words @@ a.term),
weights AS MATERIALIZED (
    SELECT term, ln(1 + ((SELECT count(*) FROM looked_through) - count(*) + 0.5) / (count(*) + 0.5)) AS weight
    FROM held GROUP BY term
),
best AS MATERIALIZED (
    SELECT h.id FROM held h JOIN weights w USING (term)
    GROUP BY h.id ORDER BY sum(w.weight) DESC, h.id LIMIT %(limit)s
)
{_SHOWN} WHERE c.tenant_id = %(tenant_id)s AND c.id = ANY(ARRAY(SELECT id FROM best))
"""  # noqa: S608 — our own text only


WAITING_BY_WORDS, ALL_BY_WORDS = _by_words(" AND indexed_at IS NULL"), _by_words("")
