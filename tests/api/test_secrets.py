"""Secrets that users mention: the conversation keeps them, memory and the small model see none."""

import json
from collections.abc import Iterable

import httpx
import pytest
from psycopg import sql

from services.bootstrap import Services
from services.identity.tenants import DEFAULT_TENANT
from tests.support.filing import add, asked, filed
from tests.support.model_server import ModelServer, Received, Reply, ToolCall
from tests.support.secret_values import Planted, planted
from tests.support.talking import say

pytestmark = [
    pytest.mark.in_clear,
    pytest.mark.settings(llm_model="large", small_llm_model="small", memory_filing_quiet_s=600),
]

USER = "/api/v1/users/u-1"
CARD = "4111 1111 1111 1111"
_RECORDS_OF_TURNS = frozenset({"messages", "turns", "context_epochs"})
"""Hold what was said, and what prompts of the same conversation showed."""

_TABLES = """
SELECT c.table_name FROM information_schema.columns c
JOIN information_schema.tables t USING (table_schema, table_name)
WHERE c.table_schema = 'public' AND c.column_name = 'tenant_id' AND t.table_type = 'BASE TABLE'
"""


async def _memory(services: Services) -> str:
    """Every row of every table of the tenant but what was said, and of messages what memory reads."""
    found = []
    async with services.database.tenant(DEFAULT_TENANT) as connection:
        names = [row[0] for row in await (await connection.execute(_TABLES)).fetchall()]
        assert {"episodes", "core_memory_blocks", "memory_operations", "conversations"} <= set(names)
        for name in [*(each for each in names if each not in _RECORDS_OF_TURNS), "remembered_messages"]:
            rows = await connection.execute(sql.SQL("SELECT t::text FROM {} t").format(sql.Identifier(name)))
            found += [row[0] for row in await rows.fetchall()]
    return "\n".join(found)


def _as_client(message: str) -> dict[str, object]:
    return {"model": "default", "messages": [{"role": "user", "content": message}], "user": "u-1"}


def _stored(secrets: Iterable[Planted], text: str) -> list[str]:
    text = text.replace("\\n", "\n").replace('""', '"')
    return [each.secret for each in secrets if max(each.secret.splitlines(), key=len) in text]


async def test_none_of_150_is_stored(
    services: Services, client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    secrets = planted(150)
    said, by_tool, put, imported, echoed = (secrets[at::5] for at in range(5))
    for start in range(0, len(said), 20):
        message = "\n".join(each.sentence for each in said[start : start + 20])
        answer = "\n".join(each.sentence for each in echoed[start : start + 20])
        model_server.script(Reply([answer]), model="large")
        await say(client, message, f"s-{start}")
    for start in range(0, len(by_tool), 10):
        kept = [
            ToolCall("remember", {"text": each.secret[:290]}, f"call_{at}")
            for at, each in enumerate(by_tool[start : start + 10])
        ]
        model_server.script(Reply(tool_calls=kept), Reply(["Done."]), model="large")
        await say(client, "Remember these: " + "; ".join(each.secret for each in by_tool[start : start + 10]))
    content = {"notes": [each.secret for each in put[:20]]}
    assert (await client.put(f"{USER}/core-memory/human", json={"content": content})).status_code == 200
    for each in put[20:]:
        await client.post("/v1/chat/completions", json=_as_client(each.sentence))
    lines = [
        {"user_id": "u-1", "session_id": "old", "role": "user", "content": each.sentence,
         "created_at": f"2026-11-01T10:{at:02}:00Z"}
        for at, each in enumerate(imported[:20])
    ] + [
        {"kind": "episode", "user_id": "u-1", "episode_type": "context", "content": each.sentence,
         "importance": 0.5, "origin": "user_said", "created_at": f"2026-11-01T10:{at:02}:00Z"}
        for at, each in enumerate(imported[20:])
    ]  # fmt: skip
    body = "\n".join(json.dumps(line, ensure_ascii=False) for line in lines)
    report = await client.post("/api/v1/import", content=body, headers={"content-type": "application/x-ndjson"})
    assert report.json()["imported"] == len(lines), report.text

    def file(request: Received) -> Reply:
        return filed(*(add(each.secret, each.secret) for each in said[:10]))

    model_server.default = file
    owner = await services.memory.core.owner(DEFAULT_TENANT, "u-1", "default")
    await services.filing.file(DEFAULT_TENANT, owner.user_id)

    assert _stored(secrets, await _memory(services)) == []
    prompts = "\n".join(text for request in asked(model_server) for _, text in request.prompt)
    assert "left out]" in prompts
    assert _stored(secrets, prompts.replace("\n> ", "\n")) == []


async def test_the_conversation_keeps_them_and_goes_on_with_them(
    services: Services, client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    await say(client, f"My card is {CARD}, and I live in Lyon.")
    await say(client, "Where do I live, and what was my card?")
    assert any(CARD in text for role, text in model_server.requests[-1].prompt if role == "user")
    history = await client.get("/api/v1/conversations", params={"user_id": "u-1"})
    assert CARD not in history.text  # the title
    found = await client.post(f"{USER}/episodes/search", json={"query": "my card"})
    texts = " ".join(item["content"] for item in found.json()["items"])
    assert "My card is [card number left out], and I live in Lyon." in texts
    assert "Where do I live" in await _memory(services)  # nothing else is left out of memory


@pytest.mark.settings(memory_keep_secrets=True)
async def test_the_setting_allows_them(client: httpx.AsyncClient, services: Services) -> None:
    await say(client, f"My card is {CARD}.")
    assert CARD in await _memory(services)
