"""What an expert thinks of a turn reaches its own next prompt, and nobody else, whatever is read."""

import json

import httpx
import pytest

from services.bootstrap import Services
from services.identity.tenants import DEFAULT_TENANT
from services.reflection.schedule import REFLECT
from tests.support.jobs import statuses, until
from tests.support.model_server import ModelServer, Received, Reply
from tests.support.talks import new_expert
from tests.support.transfer import export

pytestmark = pytest.mark.untraced

SECRET = "xylophone"
VOICE = {"thoughts": f"A {SECRET} of a day.", "feeling": SECRET, "intention": f"Play the {SECRET}."}


def _answer(received: Received) -> Reply:
    thinks = "inner monologue" in received.prompt[0][1]
    return Reply([json.dumps(VOICE)]) if thinks else Reply(["Rest well."])


async def test_what_is_thought_is_told_to_its_own_expert_alone(
    client: httpx.AsyncClient, services: Services, model_server: ModelServer
) -> None:
    model_server.default = _answer
    await services.experts.create(DEFAULT_TENANT, new_expert("thoughtful", reflection=True))
    body = {"user_id": "u-1", "session_id": "s-1", "message": "Work was long", "expert": "thoughtful"}
    first = await client.post("/api/v1/chat", json=body)
    assert first.status_code == 200
    services.jobs.start_worker()

    async def thought() -> bool:
        return "succeeded" in await statuses(services.database, REFLECT)

    await until(thought)
    async with services.database.tenant(DEFAULT_TENANT) as connection:
        kept = await connection.execute("SELECT private_note FROM messages WHERE private_note IS NOT NULL")
        assert await kept.fetchall() == [(VOICE,)]

    second = await client.post("/api/v1/chat", json={**body, "message": f"Do you know my {SECRET[:4]}?"})
    conversation = f"/api/v1/conversations/{first.json()['conversation_id']}"
    expert = {"expert": "thoughtful"}
    answers = [
        first.text,
        second.text,
        await export(client),
        (await client.get(f"/api/v1/turns/{first.json()['turn_id']}")).text,
        (await client.get(f"/api/v1/turns/{first.json()['turn_id']}/stream")).text,
        (await client.get(conversation)).text,
        (await client.get(f"{conversation}/messages")).text,
        (await client.get("/api/v1/users/u-1/memory-operations")).text,
        (await client.post("/api/v1/users/u-1/episodes/search", json={"query": SECRET, **expert})).text,
        (await client.get("/api/v1/jobs")).text,
    ]
    assert not any(SECRET in answer.lower() for answer in answers)
    own = [received for received in model_server.requests if SECRET in str(received.prompt)]
    (note,) = [text for received in own for _, text in received.prompt if SECRET in text]
    assert "private note" in note
    await client.post("/api/v1/chat", json={"user_id": "u-1", "session_id": "s-2", "message": "And you?"})
    await client.post("/api/v1/chat", json={**body, "user_id": "u-2", "session_id": "s-3"})
    assert [received for received in model_server.requests if SECRET in str(received.prompt)] == own
