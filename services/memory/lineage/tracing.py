"""Traces the sources of something derived, and everything derived from something, over all steps between."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import groupby
from operator import attrgetter
from typing import Any, Literal, LiteralString, get_args
from uuid import UUID

from psycopg.rows import dict_row, tuple_row

from services.errors import InvalidInput, NotFound
from services.identity.tenants import user_id_of
from services.memory.core.values import CoreValues
from services.platform.postgres import Database

_PARENTS: LiteralString = """
SELECT kind, id, parent_kind, parent_id FROM lineage
WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s AND kind = %(kind)s AND id = ANY(%(ids)s)
"""

_CHILDREN: LiteralString = """
SELECT kind, id, parent_kind, parent_id FROM lineage
WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s AND parent_kind = %(kind)s AND parent_id = ANY(%(ids)s)
"""

# What the user may read: a message with its whole text, of a turn's episode none beside that of its messages.
_ITEMS: LiteralString = """
SELECT kind, id, text, at, made_by, CASE WHEN kind = 'episode' AND state = 'superseded' AND EXISTS (
           SELECT FROM episodes e WHERE e.id = derived_items.id AND e.archived_by IS NOT NULL
       ) THEN 'archived' ELSE state END AS state
FROM derived_items
WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s AND kind = %(kind)s AND id = ANY(%(ids)s)
"""

_MESSAGES: LiteralString = """
SELECT 'message' AS kind, m.id, m.content AS text, m.created_at AS at,
       jsonb_build_object('actor', m.role, 'turn_id', m.turn_id) AS made_by,
       CASE WHEN m.retracted_at IS NULL AND m.branch_id IS NULL THEN 'current' ELSE 'retracted' END AS state,
       coalesce(m.origin::text, m.role) AS origin
FROM messages m JOIN conversations c ON c.id = m.conversation_id
WHERE m.tenant_id = %(tenant_id)s AND c.user_id = %(user_id)s AND m.id = ANY(%(ids)s)
"""

_NAMED: LiteralString = """
JOIN experts x ON x.id = t.expert_id LEFT JOIN spaces s ON s.id = t.space_id
WHERE t.tenant_id = %(tenant_id)s AND t.user_id = %(user_id)s AND x.name = %(expert)s
  AND s.name IS NOT DISTINCT FROM %(space)s
"""
_SECTION: LiteralString = f"SELECT t.id FROM core_memory_blocks t {_NAMED} AND t.section = %(name)s"  # noqa: S608
_DAY: LiteralString = f"SELECT t.id FROM daily_summaries t {_NAMED} AND t.date::text = %(name)s"  # noqa: S608


Kind = Literal[
    "message", "episode", "core_memory", "summary", "topic", "visit", "day", "persona_card", "private_note"
]
"""Kinds of nodes. A summary or a persona card has the id of its conversation, a private note the id of the answer
on which it was written."""
Direction = Literal["up", "down"]
"""`up`: to its sources. `down`: to everything derived from it."""

Origin = Literal["document", "import", "tool", "assistant", "operator", "user"]
"""Origins of words, least trusted first: a document or a pasted text; an import; a tool's result; the assistant;
an operator; the user."""

_ORIGINS: tuple[Origin, ...] = get_args(Origin)
_OF_ACTORS: Mapping[str, Origin] = {"user": "user", "import": "import", "operator": "operator"}

KINDS: tuple[Kind, ...] = get_args(Kind)
_MOST_EDGES = 50_000


@dataclass(frozen=True, order=True)
class Node:
    """A message, or something derived."""

    kind: Kind
    id: UUID


@dataclass(frozen=True)
class ItemValue:
    """A single value of core memory."""

    field: str
    text: str
    message_id: UUID | None
    """The message that brought it in."""
    actor: str | None
    made_by: dict[str, Any]


@dataclass(frozen=True)
class Item:
    """A node with what is known of it."""

    kind: Kind
    id: UUID
    text: str | None
    """Text of the item; None for a turn's episode, whose text is in its messages."""
    at: datetime
    made_by: dict[str, Any]
    """Who or what made it, as far as is known: `actor`, `turn_id`, `job`, `job_id`, `prompt`, `model`."""
    state: Literal["current", "superseded", "archived", "retracted"]
    values: list[ItemValue] = field(default_factory=list)
    """Values of a section of core memory. A trace downwards lists only values that come from the node that was
    asked about."""
    origin: Origin | None = None
    """Least trusted origin of the words from which it was made, if it was looked up."""

    @property
    def node(self) -> Node:
        """Return the item's node in the lineage."""
        return Node(self.kind, self.id)


@dataclass(frozen=True, order=True)
class Edge:
    """Something derived, and one thing that it was made from."""

    child: Node
    parent: Node


@dataclass(frozen=True)
class Trace:
    """Everything above or below a node."""

    of: Item
    items: list[Item]
    """Nodes that were reached, without the one that was asked about, ordered by kind and time."""
    edges: list[Edge]
    is_complete: bool
    """Whether the trace is complete; it ends at 50,000 edges."""


class Lineage:
    """Reads lineages of users."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._core_values = CoreValues(database)

    async def find(
        self, tenant_id: UUID, user: str, named: str, *, expert: str = "default", space: str | None = None
    ) -> tuple[UUID, Node]:
        """Return the user's id, and the node that `kind:id` names.

        A section of core memory can also be named by its name, and a day by its date, together with an expert and
        a space.

        Raises:
            InvalidInput: it is of another form.
            NotFound: there is no such user, section or day.
        """
        kind, _, name = named.partition(":")
        if kind not in KINDS or not name:
            raise InvalidInput("of", f"must be kind:id, with a kind of {', '.join(KINDS)}")
        values = {"tenant_id": tenant_id, "user": user, "name": name, "expert": expert, "space": space}
        user_id = await user_id_of(self._database, tenant_id, user)
        try:
            return user_id, Node(kind, UUID(name))
        except ValueError:
            by_name: dict[str, LiteralString] = {"core_memory": _SECTION, "day": _DAY}
            if kind not in by_name:
                raise InvalidInput("of", f"{name!r} is no id") from None
        rows = await self._database.fetch(tenant_id, by_name[kind], {**values, "user_id": user_id}, tuple_row)
        if not rows:
            raise NotFound(f"There is no {kind.replace('_', ' ')} {name!r}.")
        return user_id, Node(kind, rows[0][0])

    async def trace(
        self, tenant_id: UUID, user_id: UUID, of: Sequence[Node], direction: Direction
    ) -> tuple[list[Item], list[Edge], bool]:
        """Return all nodes that can be reached from some, those that are among them, their edges, and whether that
        is all."""
        statement = _PARENTS if direction == "up" else _CHILDREN
        asked = frozenset(of)
        seen, edges, is_complete = set(asked), set[Edge](), True
        newest = set(asked)
        while newest and is_complete:
            reached: set[Node] = set()
            for kind, nodes in groupby(sorted(newest), attrgetter("kind")):
                values = {
                    "tenant_id": tenant_id,
                    "user_id": user_id,
                    "kind": kind,
                    "ids": [node.id for node in nodes],
                }
                for row in await self._database.fetch(tenant_id, statement, values, tuple_row):
                    edge = Edge(Node(row[0], row[1]), Node(row[2], row[3]))
                    edges.add(edge)
                    reached.add(edge.parent if direction == "up" else edge.child)
            is_complete = len(edges) <= _MOST_EDGES
            newest = reached - seen
            seen |= newest
        items = await self.items(tenant_id, user_id, sorted(seen))
        if direction == "down":
            messages = {node.id for node in seen if node.kind == "message"}
            for item in items:
                if item.node not in asked:
                    item.values[:] = [value for value in item.values if value.message_id in messages]
        return items, sorted(edges), is_complete

    async def of_node(self, tenant_id: UUID, user_id: UUID, node: Node, direction: Direction) -> Trace:
        """Return the lineage of one node. Raises `NotFound` if the user has no such thing."""
        items, edges, is_complete = await self.trace(tenant_id, user_id, [node], direction)
        items = await self._with_origins(tenant_id, user_id, items, edges if direction == "up" else None)
        own = next((item for item in items if item.node == node), None)
        if own is None:
            raise NotFound(f"There is no {node.kind.replace('_', ' ')} {node.id}.")
        return Trace(own, [item for item in items if item is not own], edges, is_complete)

    async def with_parents(
        self, tenant_id: UUID, user_id: UUID, nodes: Sequence[Node]
    ) -> tuple[dict[Node, Item], list[Edge]]:
        """Return nodes and everything above them, with origins, and the edges; nodes that do not exist are left
        out."""
        items, edges, _ = await self.trace(tenant_id, user_id, nodes, "up")
        items = await self._with_origins(tenant_id, user_id, items, edges)
        return {item.node: item for item in items}, edges

    async def _with_origins(
        self, tenant_id: UUID, user_id: UUID, items: Sequence[Item], edges: Sequence[Edge] | None
    ) -> list[Item]:
        """Add the origins of items, using the edges above them; if these are None, they are traced first."""
        known = list(items)
        if edges is None:
            known, edges, _ = await self.trace(tenant_id, user_id, [item.node for item in items], "up")
        made = {item.node: item for item in (*items, *known)}  # one may have gone meanwhile
        parents: dict[Node, list[Node]] = {}
        for edge in edges:
            parents.setdefault(edge.child, []).append(edge.parent)
        found: dict[Node, Origin | None] = {}

        def origin(node: Node) -> Origin | None:
            if node not in found:
                item = made.get(node)
                found[node] = item.origin if item else None
                if item and item.origin is None:
                    above = [each for parent in parents.get(node, ()) if (each := origin(parent))]
                    above += [_of_maker({"actor": each.actor}) for each in item.values if each.message_id is None]
                    found[node] = min(above, key=_ORIGINS.index, default=_of_maker(item.made_by))
            return found[node]

        return [replace(item, origin=origin(item.node)) for item in items]

    async def items(self, tenant_id: UUID, user_id: UUID, nodes: Sequence[Node]) -> list[Item]:
        """Return nodes with their contents, by kind and time; nodes that are gone are left out."""
        items: list[Item] = []
        for kind, group in groupby(sorted(nodes), attrgetter("kind")):
            values = {"tenant_id": tenant_id, "user_id": user_id, "kind": kind, "ids": [node.id for node in group]}
            statement = _MESSAGES if kind == "message" else _ITEMS
            rows = await self._database.fetch(tenant_id, statement, values, dict_row)
            single: dict[UUID, list[ItemValue]] = {}
            if kind == "core_memory":
                for each in await self._core_values.read(tenant_id, user_id, values["ids"]):
                    value = ItemValue(each.field, each.text, each.message_id, each.actor, each.made_by)
                    single.setdefault(each.block_id, []).extend([value] if each.holds else [])
            found = [Item(**row, values=single.get(row["id"], [])) for row in rows]
            items += sorted(found, key=attrgetter("at", "id"))
        return items


def _of_maker(made_by: Mapping[str, Any]) -> Origin:
    """Return the origin of something without parents, judged by who made it."""
    return _OF_ACTORS.get(str(made_by.get("actor", "")), "assistant")
