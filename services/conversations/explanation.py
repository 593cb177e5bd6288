"""Explains a turn's answer: what its model was sent, what was recalled, and where that comes from.

Texts are read from memory as it is now, so what has been forgotten since is not shown.
"""

from collections.abc import Mapping, Sequence
from typing import Any, LiteralString
from uuid import UUID

from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from services.errors import NotFound
from services.platform.postgres import Database

_TURN: LiteralString = """
SELECT t.id AS turn_id, t.conversation_id, t.status, u.external_id AS user_id, u.id AS user_row,
       x.name AS expert, t.route_decision, t.usage, t.timings, t.degraded, t.context_report, t.prompt,
       t.memory_changes, t.finished_at
FROM turns t JOIN conversations c ON c.id = t.conversation_id JOIN users u ON u.id = c.user_id
JOIN experts x ON x.id = c.expert_id
WHERE t.id = %(turn_id)s AND t.tenant_id = %(tenant_id)s
  AND (%(user_id)s::text IS NULL OR u.external_id = %(user_id)s)
"""

# A unit is a message of an episode, or a written episode itself.
_UNITS: LiteralString = """
SELECT hit.unit_id, e.id AS episode_id, coalesce(m.content, e.content) AS text, e.episode_type,
       coalesce(m.created_at, e.created_at) AS created_at, e.conversation_id, x.name AS expert,
       coalesce((
           SELECT jsonb_agg(jsonb_build_object(
               'message_id', s.id, 'external_id', s.external_id, 'role', s.role, 'speaker', s.speaker,
               'content', s.content, 'created_at', s.created_at
           ) ORDER BY s.created_at, s.id)
           FROM remembered_messages s WHERE s.id = ANY(e.source_message_ids) AND s.completed
       ), '[]') AS sources
FROM unnest(%(unit_ids)s::uuid[], %(episode_ids)s::uuid[]) AS hit(unit_id, episode_id)
JOIN episodes e ON e.id = hit.episode_id AND e.tenant_id = %(tenant_id)s AND e.retracted_at IS NULL
JOIN experts x ON x.id = e.expert_id
LEFT JOIN remembered_messages m ON m.id = hit.unit_id AND m.id = ANY(e.source_message_ids) AND m.completed
WHERE m.id IS NOT NULL OR (e.content IS NOT NULL AND e.id = hit.unit_id)
"""

_MESSAGES: LiteralString = """
SELECT coalesce(speaker, role) AS said_by, content FROM remembered_messages
WHERE tenant_id = %(tenant_id)s AND id = ANY(%(message_ids)s::uuid[])
ORDER BY created_at, id
"""

_PASSAGES: LiteralString = """
SELECT hit.place, c.text
FROM jsonb_to_recordset(%(sources)s::jsonb) AS hit(place integer, kb_prefix text, document text, position integer)
JOIN knowledge_bases b ON b.tenant_id = %(tenant_id)s AND b.prefix = hit.kb_prefix
JOIN kb_documents d ON d.base_id = b.id AND d.source = hit.document
JOIN kb_chunks c ON c.document_id = d.id AND c.position = hit.position
"""

_OPERATIONS: LiteralString = """
SELECT id, type, field, old_value, new_value, query, at, undone_at FROM memory_operations
WHERE tenant_id = %(tenant_id)s AND turn_id = %(turn_id)s ORDER BY at, id LIMIT 50
"""


_SECTIONS = (
    *("system", "client", "core_memory", "summary", "topics", "history"),
    *("cut_off", "core_memory_changes", "days", "recall", "knowledge", "private_note", "open_question"),
    *("memory_changes", "speaker", "time"),
)
"""Usual order of sections, for prompts whose text is not kept."""
_NODES = (
    "memory_loading",
    "route",
    "history",
    "quick",
    "retrieve",
    "generate",
    "tools",
    "no_record",
    "heard",
    "persist",
)
"""Nodes in the order in which they begin."""


class Explanations:
    """Collects what is stored of a turn and of the sources of its answer."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def of_turn(self, tenant_id: UUID, turn_id: UUID, *, user_id: str | None = None) -> dict[str, Any]:
        """Explain a turn, optionally only if it is this user's. Raises `NotFound` if the tenant, or the user,
        has no such turn."""
        values = {"tenant_id": tenant_id, "turn_id": turn_id, "user_id": user_id}
        found = await self._database.fetch(tenant_id, _TURN, values, dict_row)
        if not found:
            raise NotFound(f"There is no turn {turn_id}.")
        turn = found[0]
        report = turn.pop("context_report") or {}
        prompt = turn.pop("prompt")
        timings = turn.pop("timings") or {}
        hits = (report.get("recall") or {}).get("hits", [])
        return {
            **turn,
            "route": turn.pop("route_decision"),
            "budget": report.get("budget", 0),
            "strategy": report.get("strategy"),
            "epoch": report.get("epoch"),
            "epoch_reason": report.get("epoch_reason"),
            "prefix": report.get("prefix") or {"tokens": 0, "share": 0.0},
            "features": report.get("parts", []),
            "texts": _texts(prompt, report),
            "sections": await self._sections(tenant_id, report, prompt),
            "dropped": report.get("dropped", []),
            "rounds": report.get("rounds", []),
            "recall": {
                "queries": (report.get("recall") or {}).get("queries", []),
                "found": (report.get("recall") or {}).get("found", 0),
                "ms": (report.get("recall") or {}).get("ms"),
                "items": await self._items(tenant_id, hits, report),
            },
            "sources": await self._sources(tenant_id, report.get("sources", [])),
            "nodes": _node_times(timings),
            "first_token_ms": timings.get("first_token_ms"),
            "total_ms": timings.get("total_ms"),
            "operations": await self._database.fetch(tenant_id, _OPERATIONS, values, dict_row),
        }

    async def _sections(
        self, tenant_id: UUID, report: Mapping[str, Any], prompt: Sequence[Mapping[str, Any]] | None
    ) -> list[dict[str, Any]]:
        """Return every section with its tokens, and with its text if that is kept."""
        kept = {section["name"]: section for section in prompt or []}
        # JSON in the database does not keep the order of keys.
        order = {name: place for place, name in enumerate((*(kept or _SECTIONS), "message"))}
        counted = sorted((report.get("tokens") or {}).items(), key=lambda item: order.get(item[0], len(order)))
        sections = []
        for name, tokens in counted:
            if not tokens:
                continue
            section = kept.get(name, {"text": "", "message_ids": []})
            text = section["text"]
            if section["message_ids"]:
                values = {"tenant_id": tenant_id, "message_ids": section["message_ids"]}
                said = await self._database.fetch(tenant_id, _MESSAGES, values, dict_row)
                text = "\n\n".join(f"{each['said_by']}: {each['content']}" for each in said)
            sections.append({"name": name, "tokens": tokens, "text": text or None})
        return sections

    async def _items(
        self, tenant_id: UUID, hits: Sequence[Mapping[str, Any]], report: Mapping[str, Any]
    ) -> list[dict[str, Any]]:
        """Return what was recalled, most likely first, with text and messages if memory still has them."""
        if not hits:
            return []
        values = {
            "tenant_id": tenant_id,
            "unit_ids": [hit["unit_id"] for hit in hits],
            "episode_ids": [hit["episode_id"] for hit in hits],
        }
        rows = await self._database.fetch(tenant_id, _UNITS, values, dict_row)
        units = {str(row["unit_id"]): row for row in rows}
        shown = set(report["recall"].get("shown", []))
        return [
            {
                **_NO_UNIT,
                "cosine": None,
                **{key: value for key, value in hit.items() if key != "left_out"},
                **units.get(hit["unit_id"], {}),
                "shown": hit["episode_id"] in shown and "left_out" not in hit,
                "reason": hit.get("left_out"),
            }
            for hit in hits
        ]

    async def _sources(self, tenant_id: UUID, sources: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        if not sources:
            return []
        named = [{**source, "place": place} for place, source in enumerate(sources)]
        values = {"tenant_id": tenant_id, "sources": Jsonb(named)}
        rows = await self._database.fetch(tenant_id, _PASSAGES, values, dict_row)
        texts = {row["place"]: row["text"] for row in rows}
        return [{**source, "text": texts.get(place)} for place, source in enumerate(sources)]


_NO_UNIT: Mapping[str, Any] = {
    "text": None,
    "episode_type": None,
    "created_at": None,
    "conversation_id": None,
    "expert": None,
    "sources": [],
}


def _node_times(timings: Mapping[str, float]) -> list[dict[str, Any]]:
    nodes = {name.removesuffix("_ms"): value for name, value in timings.items()}
    known = [name for name in _NODES if name in nodes]
    others = [name for name in nodes if name not in (*_NODES, "first_token", "total")]
    return [{"name": name, "ms": nodes[name]} for name in (*known, *others)]


def _texts(prompt: object, report: Mapping[str, Any]) -> str:
    """Return whether the prompt's texts are `kept`, were `withdrawn`, or never existed (`none`)."""
    if prompt is not None:
        return "kept"
    return "withdrawn" if report.get("tokens") else "none"
