"""Events are heard as a stream that resumes, and by webhooks that are signed and repeated."""

import base64
import hashlib
import hmac
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import httpx
import pytest
from aiohttp import web
from psycopg.rows import tuple_row
from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException

from services.bootstrap import Services
from services.identity.tenants import DEFAULT_TENANT
from services.platform.settings import Settings, load_settings
from tests.support.model_server import ModelServer
from tests.support.ports import free_port
from tests.support.talking import say


class Receiver:
    """A server that is told of events, and answers with the statuses that it is given."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.statuses: list[int] = []
        self.received: list[tuple[dict[str, str], bytes]] = []

    async def take(self, request: web.Request) -> web.Response:
        self.received.append((dict(request.headers), await request.read()))
        return web.Response(status=self.statuses.pop(0) if self.statuses else 204)


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    """One on the loopback."""
    port = free_port()
    made = Receiver(port)
    app = web.Application()
    app.router.add_post("/{path:.*}", made.take)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    yield made
    await runner.cleanup()


@pytest.fixture
def settings(receiver: Receiver, model_server: ModelServer) -> Settings:
    """The receiver's origin is allowed, though it is no public address."""
    return load_settings(
        llm_model="scripted", llm_base_url=model_server.base_url, llm_api_key="k", webhook_origins=receiver.url
    )


async def _heard(client: httpx.AsyncClient, after: int | None) -> list[dict[str, Any]]:
    headers = {} if after is None else {"Last-Event-ID": str(after)}
    answer = await client.get("/api/v1/users/u-1/events", params={"wait_s": 0}, headers=headers)
    assert answer.status_code == 200, answer.text
    return [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: ")]


def _signed(secret: str, headers: dict[str, str], body: bytes) -> str:
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    return f"v1,{base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()}"


async def _promise(client: httpx.AsyncClient) -> dict[str, Any]:
    body = {"text": "call Bo", "when": "tomorrow at nine"}
    return dict((await client.post("/api/v1/users/u-1/promises", json=body)).json())


async def test_a_stream_tells_what_happens_and_resumes_after_any_event(
    client: httpx.AsyncClient, services: Services
) -> None:
    said = await say(client, "Hello")
    made = await _promise(client)
    assert await _heard(client, None) == [], "only what happens from now on"
    [changed] = await _heard(client, 0)
    assert changed["kind"] == "memory.changed"
    owner = await services.memory.core.owner(DEFAULT_TENANT, "u-1", "default")
    due = (await services.promises.get(owner, UUID(made["id"]))).when
    await services.keeping.keep(DEFAULT_TENANT, owner.user_id, due)
    [heard] = await _heard(client, changed["id"])
    assert (heard["kind"], heard["about"]["promise_id"]) == ("promise.due", made["id"])
    assert heard["about"]["conversation_id"] == said["conversation_id"]
    assert (await client.get("/api/v1/users/nobody/events")).status_code == 404


async def test_the_socket_of_turns_tells_them_too_and_resumes(
    client: httpx.AsyncClient, services: Services, url: str
) -> None:
    await say(client, "Hello")
    address = url.replace("http", "ws") + "/api/v1/chat/ws"
    async with connect(f"{address}?events_of=u-1") as socket:
        body = {"user_id": "u-1", "session_id": "s-1", "message": "Remind me in one minute to call Bo."}
        await socket.send(json.dumps(body))
        frames = [json.loads(await socket.recv())]
        while {"done", "memory.changed"} - {each["status"] for each in frames}:
            frames.append(json.loads(await socket.recv()))
        owner = await services.memory.core.owner(DEFAULT_TENANT, "u-1", "default")
        await services.keeping.keep(DEFAULT_TENANT, owner.user_id, datetime.now(UTC) + timedelta(minutes=2))
        due = json.loads(await socket.recv())
    [made] = (await client.get("/api/v1/users/u-1/promises")).json()["items"]
    assert (due["status"], due["content"]["promise_id"], due["turn_id"]) == ("promise.due", made["id"], None)
    assert due["content"]["message_id"] == made["kept_in"]
    async with connect(f"{address}?events_of=u-1&after={due['id'] - 1}") as socket:
        assert json.loads(await socket.recv()) == due
    with pytest.raises(WebSocketException):
        await connect(f"{address}?events_of=nobody")


async def test_who_listens_is_woken(client: httpx.AsyncClient) -> None:
    await say(client, "Hello")
    async with client.stream("GET", "/api/v1/users/u-1/events", timeout=60) as answer:
        lines = answer.aiter_lines()
        made = await _promise(client)
        async for line in lines:
            if line.startswith("data: "):
                assert json.loads(line[6:])["kind"] == "memory.changed"
                break
    assert made["state"] == "open"


async def test_a_webhook_is_told_signed_and_again_until_it_takes_it(
    client: httpx.AsyncClient, services: Services, receiver: Receiver
) -> None:
    await say(client, "Hello")
    hook = (await client.post("/api/v1/webhooks", json={"url": f"{receiver.url}/hook"})).json()
    await _promise(client)
    deliveries = f"/api/v1/webhooks/{hook['id']}/deliveries"
    [waiting] = (await client.get(deliveries)).json()["items"]
    receiver.statuses = [503]
    assert await services.webhooks.deliver(DEFAULT_TENANT, UUID(waiting["id"])) == 5.0
    [tried] = (await client.get(deliveries)).json()["items"]
    assert (tried["state"], tried["tries"], tried["status"]) == ("waiting", 1, 503)
    assert await services.webhooks.deliver(DEFAULT_TENANT, UUID(waiting["id"])) is None
    assert await services.webhooks.deliver(DEFAULT_TENANT, UUID(waiting["id"])) is None, "it has ended"
    (first, _), (headers, body) = receiver.received
    assert first["webhook-id"] == headers["webhook-id"] == waiting["id"]
    assert headers["webhook-signature"] == _signed(hook["secret"], headers, body)
    told = json.loads(body)
    assert (told["type"], told["data"]["user_id"]) == ("memory.changed", "u-1")
    again = f"{deliveries}/{waiting['id']}/repeat"
    (await client.post(again)).raise_for_status()
    assert (await client.post(again)).status_code == 409
    assert await services.webhooks.deliver(DEFAULT_TENANT, UUID(waiting["id"])) is None
    assert len(receiver.received) == 3
    tried = f"/api/v1/webhooks/{hook['id']}/test"
    assert (await client.post(tried)).json() == {"status": 204, "error": None}
    headers, body = receiver.received[-1]
    assert json.loads(body)["type"] == "webhook.test"
    assert headers["webhook-signature"] == _signed(hook["secret"], headers, body)
    receiver.statuses = [500]
    assert (await client.post(tried)).json()["error"] == "it answered with the status 500"
    assert (await client.delete(f"/api/v1/webhooks/{hook['id']}")).status_code == 204
    assert (await client.post(tried)).status_code == 404


async def test_secrets_of_webhooks_are_sealed_where_words_are(
    client: httpx.AsyncClient, services: Services, receiver: Receiver
) -> None:
    hook = (await client.post("/api/v1/webhooks", json={"url": f"{receiver.url}/hook"})).json()
    values = {"tenant_id": DEFAULT_TENANT}
    # Within the database, as loaders open what is read.
    told = "SELECT starts_with(secret, '~[1.') FROM webhooks WHERE tenant_id = %(tenant_id)s"
    [(is_sealed,)] = await services.database.fetch(DEFAULT_TENANT, told, values, tuple_row)
    assert is_sealed == (services.database.vault is not None)
    assert (await client.post(f"/api/v1/webhooks/{hook['id']}/test")).json()["status"] == 204
    headers, body = receiver.received[-1]
    assert headers["webhook-signature"] == _signed(hook["secret"], headers, body)


@pytest.mark.parametrize(
    "address", ["http://127.0.0.1:1/x", "https://10.0.0.8/x", "ftp://x.example/", "https://[::1]/x"]
)
async def test_an_address_within_the_network_is_refused(client: httpx.AsyncClient, address: str) -> None:
    answer = await client.post("/api/v1/webhooks", json={"url": address})
    assert answer.status_code == 422
    assert answer.json()["detail"].startswith("url: "), answer.text
