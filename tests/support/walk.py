"""Many operations of several parties at once, every answer looked at; and what is stored after them."""

import asyncio
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any
from urllib.parse import quote, urlencode
from uuid import UUID

import aiohttp
import orjson
import psycopg
from yarl import URL

from tests.support.model_server import Received, Reply
from tests.support.parties import CANARY, Ask, Mixed, Names, Party

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")

Endpoint = tuple[str, str]
Build = Callable[[Party, Names, Names, Random], Ask]
"""From who asks, whose ids it names first, and whose details (cursors, filters), to the request."""

ERASE_CONVERSATION: Endpoint = ("DELETE", "/api/v1/conversations/{conversation_id}")
ERASE_V1_CONVERSATION: Endpoint = ("DELETE", "/v1/conversations/{conversation_id}")
ERASE_USER: Endpoint = ("DELETE", "/api/v1/users/{user_id}")
LEAVING_SESSION = "s-leaving"
"""Of the one conversation of each party that is removed."""

KINDS = ("own", "foreign", "details", "hostile")
_KIND_WEIGHTS = (25, 45, 10, 20)


@dataclass(frozen=True)
class Entry:
    """How one endpoint is asked, and what it may answer."""

    build: Build
    own: frozenset[int]
    foreign: frozenset[int]
    """To ids of another tenant."""
    of_other_user: frozenset[int]
    """To a user, of ids of another user of the tenant."""
    weight: int = 12
    is_admins: bool = False


@dataclass(frozen=True)
class Operation:
    """One request to be made."""

    endpoint: Endpoint
    kind: str
    me: Party
    ask: Ask

    def __str__(self) -> str:
        shown = {name: value for name, value in vars(self.ask).items() if value}
        return f"{self.kind} {' '.join(self.endpoint)} {str(shown)[:300]}"


@dataclass(frozen=True)
class Said:
    """A message that was accepted."""

    tenant_id: UUID
    user: str
    session: str
    message: str


def echo(received: Received) -> Reply:
    """An answer that belongs to one message; slow where the message says so."""
    asked = received.prompt[-1][1]
    return Reply(["You said: ", asked], delay_s=5.0 if " slowly" in asked else 0.0)


def echoed(message: str) -> str:
    """The whole answer to a message."""
    return f"You said: {message}"


@dataclass
class Walk:
    """Makes operations and keeps what must be true of their answers."""

    http: aiohttp.ClientSession
    url: str
    table: dict[Endpoint, Entry]
    wrong: list[str] = field(default_factory=list)
    counts: Counter[tuple[Endpoint, str]] = field(default_factory=Counter)
    statuses: Counter[tuple[Endpoint, str, int]] = field(default_factory=Counter)
    said: dict[str, Said] = field(default_factory=dict)
    """By the id of the turn."""
    erased: set[tuple[UUID, str]] = field(default_factory=set)
    removed: set[str] = field(default_factory=set)
    """Canaries of the parties whose `LEAVING_SESSION` was removed."""
    shown: dict[str, dict[str, str]] = field(default_factory=dict)
    """The ids that each party was shown and had not named itself, and in which answer, by its canary."""

    def plan(self, parties: Sequence[Party], number: int, chance: Random) -> Iterable[Operation]:
        """This many operations, over every endpoint of the table in every kind."""
        endpoints = list(self.table)
        weights = [entry.weight for entry in self.table.values()]
        for place in range(number):
            me, other = chance.sample(parties, 2)
            endpoint = chance.choices(endpoints, weights)[0]
            kind = chance.choices(KINDS, _KIND_WEIGHTS)[0]
            if place < len(endpoints) * len(KINDS):  # each at least once
                endpoint, kind = endpoints[place // len(KINDS)], KINDS[place % len(KINDS)]
            mixed = Mixed(me)
            sources: dict[str, tuple[Names, Names]] = {
                "own": (me, me),
                "foreign": (other, other),
                "details": (me, other),
                "hostile": (mixed, mixed),
            }
            yield Operation(endpoint, kind, me, self.table[endpoint].build(me, *sources[kind], chance))

    async def run(self, operations: Iterable[Operation], *, at_once: int) -> None:
        """Make them all."""
        waiting = iter(operations)

        async def one_after_another() -> None:
            for operation in waiting:
                await self.make(operation)

        await asyncio.gather(*(one_after_another() for _ in range(at_once)))

    async def make(self, operation: Operation) -> dict[str, Any]:
        """Make one; return its answer where that is one JSON object."""
        (method, path), ask = operation.endpoint, operation.ask
        filled = path.format_map({name: quote(value, safe="") for name, value in ask.path.items()})
        address = f"{self.url}{filled}" + (f"?{urlencode(ask.query)}" if ask.query else "")
        headers = {**operation.me.headers, **ask.headers}
        body = None
        if ask.body is not None:
            body, headers["Content-Type"] = json.dumps(ask.body).encode(), "application/json"
        async with self.http.request(method, URL(address, encoded=True), data=body, headers=headers) as answer:
            text = await answer.text()
        self.counts[operation.endpoint, operation.kind] += 1
        self.statuses[operation.endpoint, operation.kind, answer.status] += 1
        self._check_status(operation, answer.status, text)
        self.check_text(operation.me, f"{address}{ask.headers}{ask.body}", text, str(operation))
        is_json = answer.content_type.endswith("json")
        first, *_ = text.split("\n", 1)  # of JSON Lines; other JSON is a line
        found: dict[str, Any] = orjson.loads(first) if is_json else {}
        if "items" in found and _names_another(operation) and found["items"]:
            self.wrong.append(f"{operation} listed {text[:300]}")
        if answer.status == 200:
            self._note(operation, found, text)
        return found

    def check_text(self, me: Party, sent: str, text: str, what: str) -> None:
        """See that nothing of another party stands in what one was told, unless it said so itself."""
        told = set(CANARY.findall(text)) - set(CANARY.findall(sent)) - {me.canary}
        if told:
            self.wrong.append(f"{what} of {me.canary} was told {told}: {text[:500]}")
        self.shown.setdefault(me.canary, {}).update(
            dict.fromkeys(set(_UUID.findall(text)) - set(_UUID.findall(sent)), what)
        )

    def _check_status(self, operation: Operation, status: int, text: str) -> None:
        entry = self.table[operation.endpoint]
        if operation.kind == "hostile":
            fits = status < 500
        elif operation.me.user is not None and entry.is_admins:
            fits = status == 403
        elif operation.kind == "foreign":
            fits = status in (entry.foreign if operation.me.user is None else entry.of_other_user)
        else:
            fits = status in entry.own
        if not fits:
            self.wrong.append(f"{operation} was answered {status} {text[:300]}")

    def _note(self, operation: Operation, found: dict[str, Any], text: str) -> None:
        if operation.endpoint in {ERASE_CONVERSATION, ERASE_V1_CONVERSATION}:
            self.removed.add(operation.me.canary)
        elif operation.endpoint == ERASE_USER:
            self.erased.add((operation.me.tenant_id, operation.ask.path["user_id"]))
        if not found and "event: done\n" not in text and "event: error\n" not in text and "[DONE]" not in text:
            self.wrong.append(f"{operation} has no end: {text[-300:]}")
        if (said := said_in(operation)) is None:
            return
        turn_id = found.get("turn_id") or _UUID.findall(text)[0]
        if self.said.setdefault(turn_id, said) != said:
            self.wrong.append(f"{operation} was taken for {self.said[turn_id]}")
        if orjson.dumps(echoed(said.message)).decode() not in text:
            self.wrong.append(f"{operation} was answered {text[:500]}")


def said_in(operation: Operation) -> Said | None:
    """The message of an operation that sends one."""
    me, body = operation.me, operation.ask.body
    if body is None:
        return None
    if "message" in body:
        return Said(me.tenant_id, body["user_id"], body["session_id"], body["message"])
    if "messages" in body:
        session = operation.ask.headers["X-Session-Id"]
        user = (me.user or body["user"]).strip()  # as headers are
        return Said(me.tenant_id, user, session, body["messages"][-1]["content"])
    return None


def _names_another(operation: Operation) -> bool:
    named = set(CANARY.findall(str(operation.ask.query)))
    return operation.kind == "foreign" and bool(named - {operation.me.canary})


_OWNERS = """
SELECT id, tenant_id, external_id FROM users
UNION ALL SELECT c.id, c.tenant_id, u.external_id FROM conversations c JOIN users u ON u.id = user_id
UNION ALL SELECT t.id, t.tenant_id, u.external_id FROM turns t JOIN conversations c ON c.id = conversation_id
    JOIN users u ON u.id = user_id
UNION ALL SELECT m.id, m.tenant_id, u.external_id FROM messages m JOIN conversations c ON c.id = conversation_id
    JOIN users u ON u.id = user_id
UNION ALL SELECT o.id, o.tenant_id, external_id FROM memory_operations o JOIN users u ON u.id = user_id
UNION ALL SELECT e.id, e.tenant_id, external_id FROM episodes e JOIN users u ON u.id = user_id
UNION ALL SELECT b.id, b.tenant_id, external_id FROM core_memory_blocks b JOIN users u ON u.id = user_id
UNION ALL SELECT v.id, v.tenant_id, external_id FROM visits v JOIN users u ON u.id = user_id
UNION ALL SELECT d.id, d.tenant_id, external_id FROM daily_summaries d JOIN users u ON u.id = user_id
UNION ALL SELECT f.id, f.tenant_id, external_id FROM upkeep_runs f JOIN users u ON u.id = user_id
UNION ALL SELECT o.field::uuid, o.tenant_id, external_id FROM memory_operations o JOIN users u ON u.id = user_id
    WHERE o.type = 'episode_delete'
UNION ALL SELECT d.id, d.tenant_id, NULL FROM kb_documents d
UNION ALL SELECT k.id, k.tenant_id, NULL FROM api_keys k
UNION ALL SELECT t.id, t.id, NULL FROM tenants t
UNION ALL SELECT x.id, x.tenant_id, NULL FROM experiments x
UNION ALL SELECT g.id, g.tenant_id, NULL FROM retention_runs g
UNION ALL SELECT (j.args->>'base_id')::uuid, (j.args->>'tenant_id')::uuid, NULL FROM procrastinate_jobs j
    WHERE j.args ? 'base_id'
UNION ALL SELECT d.id::uuid, (j.args->>'tenant_id')::uuid, NULL FROM procrastinate_jobs j
    CROSS JOIN LATERAL jsonb_array_elements_text(j.args->'document_ids') AS d(id) WHERE j.args ? 'document_ids'
UNION ALL SELECT e.id::uuid, (j.args->>'tenant_id')::uuid, NULL FROM procrastinate_jobs j
    CROSS JOIN LATERAL jsonb_array_elements_text(j.args->'expert_ids') AS e(id) WHERE j.args ? 'expert_ids'
UNION ALL SELECT m.turn_id, m.tenant_id, u.external_id FROM messages m
    JOIN conversations c ON c.id = conversation_id JOIN users u ON u.id = user_id WHERE m.import_key IS NOT NULL
"""

_STORED = """
SELECT m.turn_id::text, m.role, m.content, m.completed, t.status, u.external_id, c.session_key, c.title,
       m.tenant_id, ARRAY[t.tenant_id, c.tenant_id, u.tenant_id, e.tenant_id]
FROM messages m JOIN turns t ON t.id = m.turn_id JOIN conversations c ON c.id = m.conversation_id
JOIN users u ON u.id = c.user_id JOIN experts e ON e.id = c.expert_id
"""

_COUNTS = """
SELECT (SELECT count(*) FROM messages WHERE import_key IS NULL), (SELECT count(*) FROM turns)
"""

_IMPORTED = """
SELECT m.content, m.tenant_id, u.external_id, ARRAY[c.tenant_id, u.tenant_id]
FROM messages m JOIN conversations c ON c.id = m.conversation_id JOIN users u ON u.id = c.user_id
WHERE m.import_key IS NOT NULL
"""


def owners(superuser_url: str) -> dict[str, tuple[UUID, str]]:
    """Whose each id is: the tenant and the user's name."""
    with psycopg.connect(superuser_url) as connection:
        return {str(row[0]): (row[1], row[2]) for row in connection.execute(_OWNERS).fetchall()}


def shown_to_others(walk: Walk, parties: Sequence[Party], whose: dict[str, tuple[UUID, str]]) -> list[str]:
    """Ids that a party was shown and that are not its own."""
    wrong = []
    for me in parties:
        for one, where in walk.shown[me.canary].items():
            tenant_id, user = whose.get(one, (None, None))
            if tenant_id != me.tenant_id or (me.user is not None and user not in (None, me.user)):
                wrong.append(f"{me.canary} was shown {one} of {tenant_id} {user} in {where}")
    return wrong


def wrongly_stored(walk: Walk, parties: Sequence[Party], superuser_url: str) -> list[str]:
    """What is stored and was not said, or was said and is not stored, or is another's. A superuser looks."""
    expected = {
        (turn_id, role, content, one.user, one.session, one.tenant_id)
        for turn_id, one in walk.said.items()
        if (one.tenant_id, one.user) not in walk.erased
        and not (one.session == LEAVING_SESSION and walk.removed & set(CANARY.findall(one.message)))
        for role, content in (("user", one.message), ("assistant", echoed(one.message)))
    }
    with psycopg.connect(superuser_url) as connection:
        rows = connection.execute(_STORED).fetchall()
        counts = connection.execute(_COUNTS).fetchone()
        imported = connection.execute(_IMPORTED).fetchall()
    wrong = []
    canaries = {(party.tenant_id, party.user): party.canary for party in parties}
    for turn_id, role, content, completed, status, user, session, title, tenant_id, tenants in rows:
        own = canaries.get((tenant_id, user)) or canaries.get((tenant_id, None))
        if set(tenants) != {tenant_id} or not completed or status != "completed":
            wrong.append(f"{turn_id} {role} {completed} {status} is of {tenant_id} and {tenants}")
        if set(CANARY.findall(f"{content} {user} {session} {title}")) - {own}:
            wrong.append(f"{turn_id} of {own} is {role} {content[:200]} in {session}, {title}")
    for content, tenant_id, user, tenants in imported:
        own = canaries.get((tenant_id, user)) or canaries.get((tenant_id, None))
        if set(tenants) != {tenant_id} or set(CANARY.findall(content)) != {own}:
            wrong.append(f"imported for {own}: {content[:200]} of {tenant_id} and {tenants}")
    stored = [(row[0], row[1], row[2], row[5], row[6], row[8]) for row in rows]
    wrong += [f"not stored: {row}" for row in expected - set(stored)]
    wrong += [f"stored: {row}" for row in set(stored) - expected]
    if counts != (len(stored), len(stored) // 2) or len(stored) != len(expected):
        wrong.append(f"{counts} messages and turns are stored for {len(expected)} messages")
    return wrong
