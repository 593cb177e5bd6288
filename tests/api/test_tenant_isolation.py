"""Parties that share a service share nothing: every endpoint, asked with the ids of others."""

import asyncio
import json
import secrets
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID, uuid4

import aiohttp
import psycopg
import pytest
from websockets.asyncio.client import connect

from graph.turns.requests import TurnRequest
from graph.turns.runner import TurnRunner
from services.bootstrap import Services
from services.experiments.assignment import Variant
from services.experiments.experiments import NewExperiment
from services.identity.api_keys import ApiKeys
from services.identity.tenants import DEFAULT_TENANT, Tenants
from services.knowledge.bases import NewBase
from services.platform.embedded_postgres import EmbeddedPostgres
from services.platform.settings import Settings, load_settings
from state.conversation import TurnInput
from tests.support.endpoints import (
    CHAT,
    CONVERSATIONS,
    EPISODES,
    MESSAGES,
    OUTSIDE_OF_THE_DOCUMENT,
    TABLE,
    words_with_key,
)
from tests.support.issuer import AUDIENCE, ISSUER, bearer, key_file, token
from tests.support.model_server import ModelServer
from tests.support.parties import CANARY, SHARED_SESSIONS, SHARED_USERS, Ask, Party
from tests.support.walk import (
    KINDS,
    LEAVING_SESSION,
    Endpoint,
    Operation,
    Said,
    Walk,
    echo,
    owners,
    shown_to_others,
    wrongly_stored,
)

pytestmark = [pytest.mark.anyio, pytest.mark.indexed]

OPERATIONS = 600
AT_ONCE = 64
KEPT_S = 2
"""Shorter than the server keeps an idle connection, so that none is used that it closes at this moment."""


@pytest.fixture
def settings(request: pytest.FixtureRequest, model_server: ModelServer, tmp_path: Path) -> Settings:
    """Settings with API keys, or with tokens."""
    model_server.default = echo
    jwt = {"jwt_jwks": str(key_file(tmp_path)), "jwt_issuer": ISSUER, "jwt_audience": AUDIENCE}
    by_token = getattr(request, "param", "api_key") == "jwt"
    return load_settings(
        auth="jwt" if by_token else "api_key",
        llm_model="scripted",
        llm_base_url=model_server.base_url,
        llm_api_key="k",
        protect_operations=False,
        rate_limit_user_per_minute=0,
        rate_limit_tenant_per_minute=0,
        **(jwt if by_token else {}),
    )


@pytest.fixture
async def walk(url: str) -> AsyncIterator[Walk]:
    """A walk over every endpoint of the document."""
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=AT_ONCE, keepalive_timeout=KEPT_S), timeout=aiohttp.ClientTimeout(60)
    ) as http:
        document = await (await http.get(f"{url}/openapi.json")).json()
        listed = _endpoints(document)
        assert listed - set(TABLE) == set(), "endpoints of the document that the table does not ask"
        assert set(TABLE) - listed == OUTSIDE_OF_THE_DOCUMENT, "endpoints of the table that it does not have"
        yield Walk(http, url, TABLE)


@pytest.fixture
def superuser_url(postgres: EmbeddedPostgres, database_name: str) -> str:
    """The test's database, for one who sees past row-level security."""
    return postgres.url("postgres", database_name)


def _endpoints(document: dict[str, Any]) -> set[Endpoint]:
    return {
        (method.upper(), path)
        for path, methods in document["paths"].items()
        if path.startswith(("/api/", "/v1/"))
        for method in methods
    }


async def _tenant(services: Services, superuser_url: str, number: int) -> Party:
    tenant = await Tenants(services.database).create(f"tenant-{number}")
    _, key = await ApiKeys(services.database).create(tenant.id, "test", ["admin"], acts_for_headers=True)
    party = Party(tenant.id, bearer(key), f"canary-{secrets.token_hex(8)}")
    party.add("user", *SHARED_USERS)
    party.add("own user", f"user-{party.canary}")
    party.add("leaving user", "leaving")
    party.add("expert", f"expert-{party.canary}", "default")
    party.add("own expert", f"expert-{party.canary}", f"leaving-{party.canary}")
    party.add("leaving expert", f"leaving-{party.canary}")
    with psycopg.connect(superuser_url) as connection:
        connection.execute(
            "INSERT INTO experts (id, tenant_id, name, system_prompt) VALUES (gen_random_uuid(), %s, %s, %s)",
            [tenant.id, f"expert-{party.canary}", f"You are of {party.canary}."],
        )
    party.add("experiment", f"experiment-{party.canary}")
    await services.experiments.create(
        tenant.id,
        NewExperiment(
            f"experiment-{party.canary}",
            [Variant(name=name, weight=1, settings={}) for name in ("a", "b")],
            description=f"Of {party.canary}.",
        ),
    )
    await _failed_jobs(services, party, superuser_url)
    known = services.knowledge
    base = await known.bases.create(tenant.id, NewBase(f"base-{party.canary}", f"What {party.canary} knows."))
    text = f"# Tea\n\n{party.canary} says hello over tea.".encode()
    taken = await known.documents.ingest(tenant.id, base.id, "tea.md", text)
    party.add("own base", base.prefix)
    party.add("document", str(taken.document.id))
    return party


async def _failed_jobs(services: Services, party: Party, superuser_url: str) -> None:
    async with services.database.tenant(party.tenant_id) as connection:
        for _ in range(3):
            await services.jobs.defer(connection, f"look-{party.canary}", tenant_id=party.tenant_id)
    with psycopg.connect(superuser_url) as superuser:
        failed = superuser.execute(
            "UPDATE procrastinate_jobs SET status = 'failed' WHERE args->>'tenant_id' = %s RETURNING id",
            [str(party.tenant_id)],
        ).fetchall()
    party.add("job", str(failed[0][0]))
    party.add("kept job", *(str(row[0]) for row in failed[1:]))


async def _user(number: int) -> Party:
    name, canary = f"u-{number}", f"canary-{secrets.token_hex(8)}"
    party = Party(
        DEFAULT_TENANT, bearer(token(sub=name, scope="chat memory:read memory:write")), canary, user=name
    )
    for kind in ("user", "own user", "leaving user"):
        party.add(kind, name)
    for kind in ("expert", "own expert", "leaving expert"):
        party.add(kind, "default")
    party.add("experiment", f"experiment-{party.canary}")
    party.add("job", "1")
    party.add("kept job", "1")
    party.add("own base", "commons")
    party.add("document", str(uuid4()))
    return party


async def _settle(walk: Walk, runner: TurnRunner, party: Party) -> None:
    """Let the party say a few things, and remember under which ids they are stored."""
    party.add("session", *SHARED_SESSIONS, f"session-{party.canary}")
    party.add("shared session", *SHARED_SESSIONS)
    party.add("phrase", "hello", "更多", "'; --")
    party.add("event", "0", "1", "3")
    party.add("limit", "1", "2", "200")
    party.add("section", "human", "persona", "notes")
    party.add("version", "1", "2", "3")
    party.add("shared expert", "shared-1", "shared-2")
    party.add("leaving experiment", f"leaving-{party.canary}")
    party.add("expert place", "default", "shared-1")
    party.add("key", f"key-{party.canary}")
    party.add("shared base", "shared-1", "shared-2")
    party.add("leaving base", f"leaving-{party.canary}")
    party.add("base place", "a", "shared-1")
    leaving = () if party.user else ("leaving",)
    for user in dict.fromkeys((*party.things["user"], *party.things["own user"], *leaving)):
        for session in party.things["session"]:
            message = f"{party.canary} says {words_with_key(party.things['key'][0])}"
            ask = Ask(
                headers={"Idempotency-Key": party.things["key"][0]},
                body={"user_id": user, "session_id": session, "message": message},
            )
            answer = await walk.make(Operation(CHAT, "own", party, ask))
            if user != "leaving":
                party.add("conversation", answer["conversation_id"])
                party.add("turn", answer["turn_id"])
                party.add("ended turn", answer["turn_id"])
    goodbye = {"user_id": party.things["own user"][0], "session_id": LEAVING_SESSION, "message": party.canary}
    answer = await walk.make(Operation(CHAT, "own", party, Ask(body=goodbye)))
    party.add("leaving conversation", answer["conversation_id"])
    page = await walk.make(Operation(CONVERSATIONS, "own", party, Ask(query={"limit": "2"})))
    place = {"conversation_id": party.things["conversation"][0]}
    more = await walk.make(Operation(MESSAGES, "own", party, Ask(place, {"limit": "1"})))
    party.add("cursor", page["next"], more["next"])
    ask = Ask({"user_id": party.things["own user"][0]}, body={"content": f"{party.canary} likes tea"})
    written = await walk.make(Operation(("POST", EPISODES), "own", party, ask))
    party.add("episode", written["id"])
    slow = Said(party.tenant_id, party.things["user"][0], "s-slow", f"{party.canary} speaks slowly")
    asked = TurnInput(user_id=slow.user, session_id=slow.session, message=slow.message, images=[])
    turn_id = str(await runner.start(TurnRequest(party.tenant_id, asked)))
    walk.said[turn_id] = slow
    party.add("turn", turn_id)
    party.add("running turn", turn_id)


async def _keep_owners(whose: dict[str, tuple[UUID, str]], superuser_url: str) -> None:
    """Note whose each id is, also of what is removed again during a walk."""
    while True:
        whose.update(await asyncio.to_thread(owners, superuser_url))
        await asyncio.sleep(0.3)


async def _prove(
    walk: Walk, parties: list[Party], operations: int, superuser_url: str, model_server: ModelServer
) -> None:
    before = owners(superuser_url)
    having = {owner[0 if parties[0].user is None else 1] for owner in before.values()}
    assert {party.user or party.tenant_id for party in parties} <= having
    chance = Random(13)
    looking = asyncio.create_task(_keep_owners(before, superuser_url))
    await walk.run(walk.plan(parties, operations, chance), at_once=AT_ONCE)
    looking.cancel()
    for party in parties:  # its slow turn has ended
        slow = Ask({"turn_id": party.things["running turn"][0]}, headers={"Last-Event-ID": "0"})
        await walk.make(Operation(("GET", "/api/v1/turns/{turn_id}/stream"), "own", party, slow))
    wrong = [
        *walk.wrong,
        *shown_to_others(walk, parties, before | owners(superuser_url)),
        *wrongly_stored(walk, parties, superuser_url),
    ]
    assert not wrong, f"{len(wrong)} things are wrong: " + "\n".join(wrong[:20])
    for received in model_server.requests:
        assert len(set(CANARY.findall(json.dumps(received.body)))) == 1, received.body
    assert sum(walk.counts.values()) >= operations
    assert set(walk.counts) == {(endpoint, kind) for endpoint in walk.table for kind in KINDS}


@pytest.mark.slow
@pytest.mark.untraced
@pytest.mark.parametrize(
    ("tenants", "operations"), [(4, OPERATIONS), pytest.param(10, 14_000, marks=pytest.mark.soak)]
)
async def test_tenants_at_once_neither_see_nor_touch_each_other(
    walk: Walk,
    services: Services,
    runner: TurnRunner,
    superuser_url: str,
    model_server: ModelServer,
    tenants: int,
    operations: int,
) -> None:
    parties = [await _tenant(services, superuser_url, number) for number in range(tenants)]
    await asyncio.gather(*(_settle(walk, runner, party) for party in parties))
    assert await services.memory.indexing.index_waiting() > tenants
    await _prove(walk, parties, operations, superuser_url, model_server)
    assert walk.erased
    assert walk.erased <= {(party.tenant_id, "leaving") for party in parties}
    with psycopg.connect(superuser_url) as superuser:
        failed = superuser.execute("SELECT id::text FROM procrastinate_jobs WHERE status = 'failed'").fetchall()
        experts = superuser.execute("SELECT tenant_id, name, experts::text FROM experts").fetchall()
    own = {job for party in parties for job in party.things["job"]}  # retried by the party itself, or not
    assert {row[0] for row in failed} - own == {job for party in parties for job in party.things["kept job"]}
    canaries = {party.tenant_id: {party.canary} for party in parties}
    for tenant_id, _, whole in experts:
        assert set(CANARY.findall(whole)) <= canaries.get(tenant_id, set())
    names = {(tenant_id, name) for tenant_id, name, _ in experts}
    assert {(party.tenant_id, name) for party in parties for name in party.things["expert"]} <= names


@pytest.mark.untraced
@pytest.mark.parametrize("settings", ["jwt"], indirect=True)
async def test_users_of_one_tenant_neither_see_nor_touch_each_other(
    walk: Walk, services: Services, runner: TurnRunner, superuser_url: str, model_server: ModelServer
) -> None:
    await services.knowledge.bases.create(DEFAULT_TENANT, NewBase("commons", "Of all users."))
    parties = [await _user(number) for number in range(4)]
    await asyncio.gather(*(_settle(walk, runner, party) for party in parties))
    assert await services.memory.indexing.index_waiting() > len(parties)
    await _prove(walk, parties, OPERATIONS, superuser_url, model_server)


async def test_a_socket_is_told_of_its_own_tenant_only(
    walk: Walk, services: Services, runner: TurnRunner, superuser_url: str, url: str
) -> None:
    one, other = [await _tenant(services, superuser_url, number) for number in range(2)]
    await _settle(walk, runner, one)
    ask = {"user_id": "u-1", "session_id": "s-1", "idempotency_key": one.things["key"][0]}
    address = url.replace("http", "ws") + "/api/v1/chat/ws"
    async with connect(address, additional_headers=other.headers) as socket:
        for frame in ('{"user_id": "\\u0000"}', "[" * 5000, "' OR 1=1", b"\x00\xff"):
            await socket.send(frame)
            assert json.loads(await socket.recv())["status"] == "error"
        await socket.send(json.dumps({**ask, "expert": f"expert-{one.canary}", "message": "Hello"}))
        assert json.loads(await socket.recv())["content"]["code"] == "invalid_input"
        await socket.send(json.dumps({**ask, "message": f"{other.canary} says hello"}))
        told = [json.loads(await socket.recv())]
        while told[-1]["status"] not in {"done", "error"}:
            told.append(json.loads(await socket.recv()))
    assert told[-1]["content"]["answer"] == f"You said: {other.canary} says hello"
    assert told[-1]["content"]["turn_id"] not in one.things["turn"]
    assert one.canary not in json.dumps(told)
