"""Lineage of what a turn's prompt showed: the derived items in its sections, and the sources of each."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, LiteralString
from uuid import UUID

from psycopg.rows import tuple_row

from services.memory.lineage.tracing import Edge, Item, Lineage, Node
from services.platform.postgres import Database

_MOST_SOURCES = 12
_DATE = re.compile(r"\b\d{4}-\d{2}-\d{2}\b")

# Sections are named as prompts name them. What is summarised of a conversation has the conversation's id.
_NODES: LiteralString = """
WITH turn AS (
    SELECT t.id, t.started_at, c.id AS conversation_id, c.user_id, c.expert_id, c.space_id
    FROM turns t JOIN conversations c ON c.id = t.conversation_id
    WHERE t.id = %(turn_id)s AND t.tenant_id = %(tenant_id)s
)
SELECT 'core_memory' AS section, 'core_memory' AS kind, b.id FROM turn JOIN core_memory_blocks b
    ON b.user_id = turn.user_id AND b.tenant_id = %(tenant_id)s
    AND b.expert_id = turn.expert_id
    AND (b.space_id IS NULL OR b.space_id = turn.space_id)
UNION ALL
SELECT 'core_memory', 'persona_card', conversation_id FROM turn
UNION ALL
SELECT 'summary', 'summary', conversation_id FROM turn
UNION ALL
SELECT 'topics', 'topic', t.id FROM turn JOIN topics t ON t.conversation_id = turn.conversation_id
UNION ALL
SELECT 'days', 'day', d.id FROM turn JOIN daily_summaries d ON d.user_id = turn.user_id
    AND d.tenant_id = %(tenant_id)s AND d.expert_id = turn.expert_id AND d.date::text = ANY(%(dates)s)
    AND (d.space_id IS NULL OR d.space_id = turn.space_id)
UNION ALL
SELECT 'private_note', 'private_note', note.id FROM turn CROSS JOIN LATERAL (
    SELECT m.id FROM messages m JOIN conversations c ON c.id = m.conversation_id
    WHERE c.user_id = turn.user_id AND c.expert_id = turn.expert_id AND m.tenant_id = %(tenant_id)s
      AND m.private_note IS NOT NULL AND m.created_at < turn.started_at
    ORDER BY m.created_at DESC LIMIT 1
) AS note
"""


@dataclass(frozen=True, kw_only=True)
class ShownItem(Item):
    """A derived item that a prompt showed, with what it was made from."""

    section: str
    sources: Sequence[Item]
    """Messages and derived items from which it was made directly, oldest first; the first twelve."""
    source_count: int


class PromptLineage:
    """Traces what the sections of a turn's prompt were made from."""

    def __init__(self, database: Database, lineage: Lineage) -> None:
        self._database = database
        self._lineage = lineage

    async def of_turn(self, tenant_id: UUID, explanation: Mapping[str, Any]) -> list[ShownItem]:
        """Return the derived items in the sections of an explained turn, in the order of the sections.

        Only items that memory still has are returned.

        Args:
            explanation: of the turn, with `turn_id`, `user_row`, `sections` and `recall`.
        """
        texts = {section["name"]: section["text"] or "" for section in explanation["sections"]}
        values = {
            "tenant_id": tenant_id,
            "turn_id": explanation["turn_id"],
            "dates": sorted(set(_DATE.findall(texts.get("days", "")))),
        }
        rows = await self._database.fetch(tenant_id, _NODES, values, tuple_row)
        recalled = dict.fromkeys(each["episode_id"] for each in explanation["recall"]["items"])
        of_section = [(section, Node(kind, item_id)) for section, kind, item_id in rows if section in texts]
        of_section += [("recall", Node("episode", UUID(str(each)))) for each in recalled]
        nodes = list(dict.fromkeys(node for _, node in of_section))
        items, edges = await self._lineage.with_parents(tenant_id, explanation["user_row"], nodes)
        order = {name: place for place, name in enumerate(texts)}
        shown = [
            _shown(section, items[node], items, edges)
            for section, node in of_section
            if node in items and items[node].state != "retracted"
        ]
        return sorted(shown, key=lambda each: order.get(each.section, len(order)))


def _shown(section: str, item: Item, items: Mapping[Node, Item], edges: Sequence[Edge]) -> ShownItem:
    above = [items[edge.parent] for edge in edges if edge.child == item.node and edge.parent in items]
    parents = [each for each in above if each.state != "retracted"]
    parents.sort(key=lambda each: (each.at, each.id))
    sources = parents[:_MOST_SOURCES]
    return ShownItem(**vars(item), section=section, sources=sources, source_count=len(parents))
