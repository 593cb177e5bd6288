"""Parties that share a service share nothing: every endpoint, asked with the ids of another."""

import asyncio
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import psycopg
import pytest
from psycopg import sql

from services.bootstrap import Services
from services.identity.api_keys import ApiKeys
from services.identity.tenants import Tenants
from services.platform.embedded_postgres import EmbeddedPostgres
from services.platform.settings import Settings, load_settings
from tests.support.issuer import AUDIENCE, ISSUER, bearer, key_file, token
from tests.support.model_server import ModelServer, Received, Reply

pytestmark = pytest.mark.indexed

SECRET = "canary-of-ada"
"""Stands in every text of the one whose ids are used."""
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'usage' ORDER BY 1"
"""Counts of use are written a moment later."""
_AT_ONCE = 16
_ABSENT = r"/mcp/|/model$"
"""Servers of tools, of which there are none, and the model, which is the default tenant's."""
_ACCEPT = {"Accept": "application/json, text/event-stream"}
_KEY = {"Idempotency-Key": "key-of-ada"}

BODIES: dict[str, Any] = {
    "POST /api/v1/chat": {"user_id": "{user_id}", "session_id": "{session_id}", "message": "Hello"},
    "POST /api/v1/chat/stream": {"user_id": "{user_id}", "session_id": "{session_id}", "message": "Hello"},
    "POST /api/v1/store/batch": {
        "user_id": "{user_id}",
        "operations": [
            {"op": "search", "namespace_prefix": []},
            {"op": "put", "namespace": ["notes"], "key": "k", "value": {"text": "other"}},
        ],
    },
    "POST /v1/chat/completions": {
        "model": "default",
        "user": "{user_id}",
        "messages": [{"role": "user", "content": "Hello"}],
    },
    "POST /v1/responses": {
        "model": "default",
        "user": "{user_id}",
        "input": "Hello",
        "previous_response_id": "{response_id}",
    },
    "POST /v1/conversations": {"metadata": {"user": "{user_id}"}, "items": [{"role": "user", "content": "Hi"}]},
    "POST /v1/conversations/{conversation_id}/items": {"items": [{"role": "user", "content": "Hi"}]},
    "POST /api/v1/turns/{turn_id}/approve": {"approval_id": "{turn_id}", "approved": True},
    "POST /api/v1/turns/{turn_id}/feedback": {"rating": "up", "comment": "Good."},
    "PATCH /api/v1/conversations/{conversation_id}": {"pinned": True},
    "POST /api/v1/conversations/{conversation_id}/exclusions": {"what": "{message_id}"},
    "POST /api/v1/experts": {"name": "new", "system_prompt": "Be kind."},
    "PATCH /api/v1/experts/{name}": {"persona": "Bold."},
    "POST /api/v1/experiments": {"name": "new", "variants": [{"name": "a"}, {"name": "b"}]},
    "PATCH /api/v1/experiments/{name}": {"description": "Another."},
    "POST /api/v1/knowledge-bases": {"prefix": "new", "description": "New."},
    "PATCH /api/v1/knowledge-bases/{prefix}": {"description": "Another."},
    "POST /api/v1/knowledge-bases/{prefix}/search": {"query": "tea"},
    "PUT /api/v1/users/{user_id}/core-memory/{section}": {"content": {"likes": "coffee"}},
    "POST /api/v1/users/{user_id}/core-memory/{section}/rollback": {"version": 1},
    "POST /api/v1/users/{user_id}/memory-proposals/{proposal_id}": {"accept": True},
    "POST /api/v1/users/{user_id}/memory/forget": {"what": "tea"},
    "POST /api/v1/users/{user_id}/erasures": {"episode_id": "{episode_id}"},
    "POST /api/v1/users/{user_id}/episodes": {"content": "Likes coffee."},
    "PATCH /api/v1/users/{user_id}/episodes/{episode_id}": {"content": "Likes coffee."},
    "POST /api/v1/users/{user_id}/episodes/search": {"query": "tea"},
    "POST /api/v1/users/{user_id}/memories/{memory_id}/correct": {"text": "Likes coffee."},
    "POST /api/v1/users/{user_id}/memories/{memory_id}/pin": {"pinned": True},
    "POST /api/v1/users/{user_id}/promises": {"text": "tea", "when": "tomorrow"},
    "PATCH /api/v1/users/{user_id}/promises/{promise_id}": {"text": "coffee"},
    "POST /api/v1/webhooks": {"url": "http://127.0.0.1:9/{user_id}"},
    "PUT /api/v1/upkeep-policy": {"fading": "never"},
    "POST /api/v1/users/{user_id}/upkeep-runs": {"fading": "archive"},
    "PATCH /api/v1/users/{user_id}": {"display_name": "Another"},
    "PATCH /api/v1/users/{user_id}/spaces/{space}": {"name": "another"},
    "PUT /api/v1/retention": {"turns": 36_500},
    "PUT /api/v1/model": {"base_url": "http://127.0.0.1:1/v1", "model": "another"},
    "POST /api/v1/model/models": {"base_url": "http://127.0.0.1:1/v1"},
    "POST /api/v1/model/try": {"base_url": "http://127.0.0.1:1/v1", "model": "another"},
    "POST /api/v1/ui/chat": {
        "id": "{session_id}",
        "user": "{user_id}",
        "messages": [{"id": "m", "role": "user", "parts": [{"type": "text", "text": "Hi"}]}],
    },
    "POST /api/v1/ui/ag-ui": {
        "threadId": "{session_id}",
        "runId": "r",
        "messages": [{"id": "m", "role": "user", "content": "Hi"}],
        "forwardedProps": {"user": "{user_id}"},
    },
    "POST /api/v1/keys": {"name": "new", "scopes": ["chat"]},
    "POST /api/v1/import": {
        "user_id": "{user_id}",
        "session_id": "{session_id}",
        "role": "user",
        "content": "Hi",
        "created_at": "2025-01-01T00:00:00Z",
    },
    "POST /mcp": {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "forget", "arguments": {"id": "{episode_id}"}},
    },
}
"""Bodies of the endpoints that read one, with places for ids."""
_QUERIES = {
    "user_id": "{user_id}",
    "user": "{user_id}",
    "conversation_id": "{conversation_id}",
    "of": "episode:{episode_id}",
    "source": "tea.md",
    "vendor": "chatgpt",
    "wait_s": "0",
}


@dataclass
class Asked:
    """An endpoint, and how it answered."""

    method: str
    path: str
    query: list[str] = field(default_factory=list)

    async def by(
        self, client: httpx.AsyncClient, headers: dict[str, str], names: dict[str, str]
    ) -> httpx.Response:
        """Ask with somebody's names and ids in all places."""
        body = BODIES.get(f"{self.method} {self.path}")
        if self.path.startswith("/v1/"):
            names = {**names, "conversation_id": f"conv_{names['conversation_id']}"}
        return await client.request(
            self.method,
            self.path.format_map(names),
            params={name: _QUERIES[name].format_map(names) for name in self.query if name in _QUERIES},
            json=None if body is None else _filled(body, names),
            headers={**headers, **_KEY, **_ACCEPT, "X-User-Id": names["user_id"]},
        )


def _filled(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _filled(each, names) for key, each in value.items()}
    if isinstance(value, list):
        return [_filled(each, names) for each in value]
    return value.format_map(names) if isinstance(value, str) else value


async def _endpoints(client: httpx.AsyncClient) -> list[Asked]:
    """Every endpoint of the document, and /mcp."""
    document = (await client.get("/openapi.json")).json()
    found = [
        Asked(method.upper(), path, [each["name"] for each in told.get("parameters", ()) if each["in"] == "query"])
        for path, methods in document["paths"].items()
        if path.startswith(("/api/", "/v1/"))
        for method, told in methods.items()
    ]
    assert set(BODIES) - {"POST /mcp"} <= {f"{each.method} {each.path}" for each in found}
    return [*found, Asked("POST", "/mcp")]


def _answer(received: Received) -> Reply:
    return Reply([f"You said: {received.said[-1]}"])


@pytest.fixture
def settings(request: pytest.FixtureRequest, model_server: ModelServer, tmp_path: Path) -> Settings:
    """Settings with API keys, or with tokens."""
    model_server.default = _answer
    jwt = {"jwt_jwks": str(key_file(tmp_path)), "jwt_issuer": ISSUER, "jwt_audience": AUDIENCE}
    by_token = getattr(request, "param", "api_key") == "jwt"
    return load_settings(
        auth="jwt" if by_token else "api_key",
        llm_model="scripted",
        llm_base_url=model_server.base_url,
        llm_api_key="k",
        protect_operations=False,
        webhook_origins="http://127.0.0.1:9",
        rate_limit_user_per_minute=0,
        rate_limit_tenant_per_minute=0,
        **(jwt if by_token else {}),
    )


@pytest.fixture
def superuser_url(postgres: EmbeddedPostgres, database_name: str) -> str:
    """The test's database, for one who sees past row-level security."""
    return postgres.url("postgres", database_name)


async def _tenant(services: Services, name: str) -> tuple[UUID, dict[str, str]]:
    tenant = await Tenants(services.database).create(name)
    _, key = await ApiKeys(services.database).create(tenant.id, "test", ["admin"], acts_for_headers=True)
    return tenant.id, bearer(key)


def _rows(superuser_url: str, *marks: str) -> set[tuple[str, str]]:
    """Every row of every table in which one of the marks stands."""
    wanted = [f"%{mark}%" for mark in marks]
    with psycopg.connect(superuser_url) as connection:
        found = set()
        for (table,) in connection.execute(_TABLES).fetchall():
            rows = sql.SQL("SELECT t::text FROM {} t WHERE t::text LIKE ANY(%s)").format(sql.Identifier(table))
            found |= {(table, row[0]) for row in connection.execute(rows, [wanted]).fetchall()}
    return found


async def _settle(client: httpx.AsyncClient, headers: dict[str, str], *, is_admin: bool) -> dict[str, str]:
    """Let the user `ada` say and keep something of every kind; return what its names and ids are."""

    async def ask(method: str, path: str, **more: Any) -> Any:
        answer = await client.request(method, path, headers={**headers, **_KEY}, **more)
        assert answer.is_success, answer.text
        return answer.json() if answer.content else {}

    nobody = "0190a000-0000-7000-8000-000000000000"
    message = {"user_id": "ada", "session_id": "s-1", "message": f"{SECRET} likes tea.", "space": "garden"}
    said = await ask("POST", "/api/v1/chat", json=message)
    user = "/api/v1/users/ada"
    for content in ({"likes": f"tea, {SECRET}"}, {"likes": f"green tea, {SECRET}"}):
        await ask("PUT", f"{user}/core-memory/human", json={"content": content})
    written = await ask("POST", f"{user}/episodes", json={"content": f"{SECRET} likes tea"})
    await ask("POST", f"/api/v1/turns/{said['turn_id']}/feedback", json={"rating": "up", "comment": SECRET})
    upkeep = await ask("POST", f"{user}/upkeep-runs", json={"fading": "archive"})
    conversation = f"/api/v1/conversations/{said['conversation_id']}"
    messages = (await ask("GET", f"{conversation}/messages"))["items"]
    message_id = next(each["id"] for each in messages if each["role"] == "user")
    await ask("POST", f"{conversation}/exclusions", json={"what": message_id})
    excluded = (await ask("GET", f"{conversation}/exclusions"))["items"][0]
    put = {"op": "put", "namespace": ["notes"], "key": "k", "value": {"text": SECRET}}
    await ask("POST", "/api/v1/store/batch", json={"user_id": "ada", "operations": [put]})
    hook = {"id": nobody}
    if is_admin:
        hook = await ask("POST", "/api/v1/webhooks", json={"url": f"http://127.0.0.1:9/{SECRET}"})
    promised = await ask("POST", f"{user}/promises", json={"text": f"{SECRET} tea", "when": "tomorrow"})
    logged = (await ask("GET", f"{user}/memory-operations"))["items"][0]
    documents: dict[str, Any] = {"params": {"source": "tea.md"}, "content": f"# Tea\n\n{SECRET} likes tea."}
    plain = {**headers, "Content-Type": "text/plain"}
    given = await client.post(f"{user}/sessions/s-1/documents", headers=plain, **documents)
    assert given.is_success, given.text
    names = {
        "user_id": "ada",
        "session_id": "s-1",
        "chat_id": "s-1",
        "conversation_id": said["conversation_id"],
        "turn_id": said["turn_id"],
        "message_id": message_id,
        "response_id": f"resp_{said['turn_id']}",
        "item_id": f"msg_{message_id}",
        "episode_id": written["id"],
        "memory_id": written["id"],
        "promise_id": promised["id"],
        "webhook_id": hook["id"],
        "delivery_id": nobody,
        "exclusion_id": excluded["id"],
        "run_id": upkeep["id"],
        "operation_id": logged["id"],
        "document_id": given.json()["document"]["id"],
        "section": "human",
        "space": "garden",
        "server": "none",
        **dict.fromkeys(("branch_id", "proposal_id", "key_id"), nobody),
        **{"name": "default", "model": "default", "prefix": "tea", "job_id": "1"},
    }
    if is_admin:
        await ask("POST", "/api/v1/experts", json={"name": "tea-master", "system_prompt": SECRET})
        variants = [{"name": "a"}, {"name": "b"}]
        trial = {"name": "tea-master", "description": SECRET, "variants": variants}
        await ask("POST", "/api/v1/experiments", json=trial)
        await ask("POST", "/api/v1/knowledge-bases", json={"prefix": "tea", "description": SECRET})
        taken = await client.post("/api/v1/knowledge-bases/tea/documents", headers=plain, **documents)
        key = await ask("POST", "/api/v1/keys", json={"name": SECRET, "scopes": ["chat"]})
        job = (await ask("GET", "/api/v1/jobs"))["items"][0]
        names |= {"name": "tea-master", "model": "tea-master", "document_id": taken.json()["document"]["id"]}
        names |= {"key_id": key["id"], "job_id": str(job["id"])}
    return names


async def _prove(
    client: httpx.AsyncClient,
    superuser_url: str,
    names: dict[str, str],
    marks: list[str],
    *,
    own: dict[str, str],
    others: dict[str, str],
    nothing_at: str,
) -> None:
    """Call every endpoint as somebody else with these names and ids: no answer tells them, and no row changes.

    Args:
        client: of the application.
        superuser_url: the database.
        names: names and ids of `ada`.
        marks: stand in every row that is hers.
        own: her headers.
        others: the other's headers.
        nothing_at: pattern of the paths at which she has nothing herself.
    """
    endpoints = await _endpoints(client)
    before = _rows(superuser_url, *marks)
    assert {table for table, _ in before} >= {"messages", "turns", "episodes", "core_memory_blocks", "users"}
    shared = set(_UUID.findall(" ".join(row for _, row in _rows(superuser_url, "") - before)))
    ids = set(_UUID.findall(" ".join(row for _, row in before))) - shared
    gate = asyncio.Semaphore(_AT_ONCE)

    async def attack(asked: Asked) -> str:
        async with gate:
            answer = await asked.by(client, others, names)
        sent = f"{answer.request.url}{answer.request.content.decode()}"
        told = (ids & set(_UUID.findall(answer.text))) - set(_UUID.findall(sent))
        wrong = told or SECRET in answer.text or answer.status_code >= 500
        return f"{asked.method} {asked.path}: {answer.status_code} {answer.text[:300]}" if wrong else ""

    wrong = await asyncio.gather(*map(attack, endpoints))
    assert [each for each in wrong if each] == []
    assert before - _rows(superuser_url, *marks) == set()
    # The same requests show all of it to whom it belongs.
    reading = [asked for asked in endpoints if asked.method == "GET" and not re.search(nothing_at, asked.path)]
    own_answers = {asked.path: await asked.by(client, own, names) for asked in reading}
    assert {path: answer.text for path, answer in own_answers.items() if answer.is_error} == {}
    assert sum(SECRET in answer.text for answer in own_answers.values()) > len(own_answers) / 3


async def test_a_tenant_is_told_and_changes_nothing_of_another(
    client: httpx.AsyncClient, services: Services, superuser_url: str
) -> None:
    tenant_id, own = await _tenant(services, "one")
    _, others = await _tenant(services, "other")
    names = await _settle(client, own, is_admin=True)
    await services.memory.indexing.index_waiting()
    await _prove(client, superuser_url, names, [str(tenant_id)], own=own, others=others, nothing_at=_ABSENT)


@pytest.mark.parametrize("settings", ["jwt"], indirect=True)
async def test_a_user_is_told_and_changes_nothing_of_another(
    client: httpx.AsyncClient, services: Services, superuser_url: str
) -> None:
    own, others = (bearer(token(sub=name, scope="chat memory:read memory:write")) for name in ("ada", "bob"))
    names = await _settle(client, own, is_admin=False)
    await services.memory.indexing.index_waiting()
    (row,) = [row for table, row in _rows(superuser_url, "ada") if table == "users"]
    marks = [_UUID.findall(row)[0], names["conversation_id"]]
    nothing_at = rf"{_ABSENT}|knowledge-bases/|/(experiments|retention|users$|jobs|keys|webhooks)"
    await _prove(client, superuser_url, names, marks, own=own, others=others, nothing_at=nothing_at)


async def test_of_many_tenants_at_once_each_is_answered_from_its_own(
    client: httpx.AsyncClient, services: Services
) -> None:
    every = [(await _tenant(services, f"t-{number}"))[1] for number in range(4)]

    async def talk(number: int) -> None:
        headers, word = every[number % 4], f"word-{number % 4}"
        for message in (f"{word}, I said.", "What did I say?"):
            body = {"user_id": "u-1", "session_id": f"s-{number // 4}", "message": message}
            answer = (await client.post("/api/v1/chat", headers=headers, json=body)).json()
            assert answer["answer"] == f"You said: {message}"
        path = f"/api/v1/conversations/{answer['conversation_id']}/messages"
        told = [each["content"] for each in (await client.get(path, headers=headers)).json()["items"]]
        assert [text for text in told if "I said" in text] == [f"{word}, I said.", f"You said: {word}, I said."]

    await asyncio.gather(*map(talk, range(24)))
