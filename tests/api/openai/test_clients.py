"""What Open WebUI and LibreChat send beside conversation, and what of it is remembered."""

from typing import Any

import openai
import pytest
from openai import AsyncOpenAI

from services.bootstrap import Services
from services.identity.api_keys import ApiKeys
from services.identity.tenants import DEFAULT_TENANT
from tests.api.openai.test_wrappers import RAG, TITLE
from tests.support.model_server import ModelServer, Reply
from tests.support.openai_clients import contents

pytestmark = [
    pytest.mark.untraced,
    pytest.mark.settings(
        auth="api_key", small_llm_model="small", openai_model_aliases="gpt-4o=default", openai_system_tokens=20
    ),
]


async def _client(services: Services, sdk: AsyncOpenAI, **key: Any) -> Any:
    _, secret = await ApiKeys(services.database).create(DEFAULT_TENANT, "gateway", ["chat"], **key)
    return sdk.with_options(api_key=secret)


@pytest.mark.traced
async def test_requests_for_titles_go_to_the_small_model_and_leave_nothing(
    sdk: Any, services: Services, model_server: ModelServer
) -> None:
    client = await _client(services, sdk, acts_for_headers=True)
    headers = {"X-OpenWebUI-Chat-Id": "c-1", "X-OpenWebUI-User-Id": "u-1"}
    await client.chat.completions.create(
        model="default", messages=[{"role": "user", "content": "Hello"}], extra_headers=headers
    )
    stored = await contents(services)
    for more, content in (({"X-OpenWebUI-Task": "tags_generation"}, "Tags?"), ({}, TITLE)):
        model_server.script(Reply(['{"title": "Hello"}']))
        title = await client.chat.completions.create(
            model="gpt-4o", messages=[{"role": "user", "content": content}], extra_headers={**headers, **more}
        )
        assert title.choices[0].message.content == '{"title": "Hello"}'
        assert title.usage.total_tokens > 0
        assert model_server.requests[-1].body["model"] == "small"
        assert model_server.requests[-1].said == [content]
    assert await contents(services) == stored


@pytest.mark.traced
async def test_what_the_client_adds_is_shown_and_not_remembered(
    sdk: Any, services: Services, model_server: ModelServer
) -> None:
    client = await _client(services, sdk, default_user="u-1")
    system = "Answer as a pirate. " + "Be very thorough in everything. " * 50
    messages = [
        {"role": "system", "content": system},
        {"role": "user", "content": f"{RAG}\nHow many days of leave do I have?"},
    ]
    await client.chat.completions.create(model="gpt-4o", messages=messages)
    sent = str(model_server.requests[-1].body)
    assert "Answer as a pirate." in sent
    assert sent.count("thorough") <= 5
    assert "Twelve days a year." in sent
    assert (await contents(services))[0] == ("user", "How many days of leave do I have?")
    await client.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": "How many days?"}])
    later = str(model_server.requests[-1].body)
    assert "pirate" not in later
    assert "Twelve days" not in later
    async with services.database.tenant(DEFAULT_TENANT) as connection:
        kept = await (await connection.execute("SELECT request::text FROM turns")).fetchall()
    assert all("pirate" not in row[0] and "Twelve" not in row[0] for row in kept)


@pytest.mark.traced
async def test_without_a_key_the_refusal_has_the_same_form(sdk: Any) -> None:
    with pytest.raises(openai.AuthenticationError) as refused:
        await sdk.chat.completions.create(model="default", messages=[{"role": "user", "content": "Hi"}])
    assert refused.value.type == "authentication_error"


@pytest.mark.traced
async def test_two_models_in_one_chat_have_a_conversation_each(sdk: Any, services: Services, client: Any) -> None:
    _, admin = await ApiKeys(services.database).create(DEFAULT_TENANT, "admin", ["admin"])
    made = await client.post(
        "/api/v1/experts",
        json={"name": "coach", "system_prompt": "You are a coach."},
        headers={"Authorization": f"Bearer {admin}"},
    )
    assert made.status_code == 201
    gateway = await _client(services, sdk, default_user="u-1")
    for model in ("default", "coach", "default", "coach"):
        raw = await gateway.chat.completions.with_raw_response.create(
            model=model,
            messages=[{"role": "user", "content": f"Hello {model}"}],
            extra_headers={"X-OpenWebUI-Chat-Id": "c-1"},
        )
        assert raw.headers["X-Session-Id"] == ("c-1" if model == "default" else "c-1:coach")
    assert {model.id for model in (await gateway.models.list()).data} == {
        "default",
        "coach",
        "gpt-4o",
        "embedding",
    }
