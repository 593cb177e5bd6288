"""What OpenAI's clients keep here: sessions of the Agents SDK, metadata of conversations, embeddings."""

from typing import Any

import httpx
import numpy as np
import openai
import pytest
from openai import AsyncOpenAI

from tests.support.model_server import ModelServer, Reply

pytestmark = pytest.mark.untraced

HEADERS = {"X-User-Id": "u-1"}


async def _texts(sdk: AsyncOpenAI, conversation: str) -> list[str]:
    items: Any = await sdk.conversations.items.list(conversation, order="asc")
    return [each.content[0].text async for each in items]


def _user(text: str) -> Any:
    return {"type": "message", "role": "user", "content": text}


async def test_an_answer_that_a_session_posts_is_the_one_that_its_turn_has_stored(
    sdk: AsyncOpenAI, model_server: ModelServer
) -> None:
    """The calls of `OpenAIConversationsSession`: the message, the response to the whole history, the answer."""
    sdk = sdk.with_options(default_headers=HEADERS)
    model_server.script(Reply(["Woof."]), Reply(["Woof."]), Reply(["Bruno."]))
    session = (await sdk.conversations.create(items=[])).id
    history: list[Any] = []
    for said in ("Bark.", "Again.", "What is my dog called?"):
        await sdk.conversations.items.create(session, items=[_user(said)])
        history.append({"role": "user", "content": said})
        answer = await sdk.responses.create(model="default", input=history)
        posted: Any = [answer.output[0].model_dump(exclude={"id", "status"})]
        await sdk.conversations.items.create(session, items=posted)
        history.append({"role": "assistant", "content": answer.output_text})
    told = ["Bark.", "Woof.", "Again.", "Woof.", "What is my dog called?", "Bruno."]
    assert await _texts(sdk, session) == told
    await sdk.conversations.items.create(session, items=[_user("Bark."), posted[0]])
    assert await _texts(sdk, session) == [*told, "Bark.", "Bruno."]  # another message before it: another answer
    await sdk.conversations.items.create(session, items=[posted[0]])
    assert (await _texts(sdk, session))[-2:] == ["Bruno.", "Bruno."]  # no turn has stored that one


async def test_a_conversation_without_a_user_has_one_of_its_own(
    sdk: AsyncOpenAI, model_server: ModelServer
) -> None:
    first, second = await sdk.conversations.create(), await sdk.conversations.create(metadata={"topic": "dogs"})
    assert second.metadata == {"topic": "dogs", **second.metadata}  # type: ignore[dict-item]
    await sdk.responses.create(model="default", input="My dog is called Bruno.", conversation=first.id)
    await sdk.responses.create(model="default", input="And he is brown.", conversation=first.id)
    assert "Bruno" in str(model_server.requests[-1].body)
    await sdk.responses.create(model="default", input="What is my dog called?", conversation=second.id)
    assert "Bruno" not in str(model_server.requests[-1].body)


async def test_metadata_of_a_conversation_is_kept_and_replaced(
    sdk: AsyncOpenAI, client: httpx.AsyncClient
) -> None:
    made: Any = await sdk.conversations.create(metadata={"user": "u-1", "topic": "dogs"})
    ours = {"user": "u-1", "model": "default"}
    assert made.metadata == {**ours, "topic": "dogs"}
    changed: Any = await sdk.conversations.update(made.id, metadata={"ticket": "17"})
    assert changed.metadata == {**ours, "ticket": "17"}
    assert (await sdk.conversations.retrieve(made.id)).metadata == changed.metadata
    with pytest.raises(openai.BadRequestError, match=r"metadata\.user.*cannot be changed"):
        await sdk.conversations.update(made.id, metadata={"user": "u-2"})
    exported = (await client.get("/api/v1/users/u-1/export")).text
    assert '"ticket":"17"' in exported.replace(" ", "")
    moved = exported.replace('"u-1"', '"u-2"')
    headers = {"Content-Type": "application/x-ndjson"}
    assert (await client.post("/api/v1/import", content=moved, headers=headers)).status_code == 200
    assert '"ticket":"17"' in (await client.get("/api/v1/users/u-2/export")).text.replace(" ", "")


async def test_texts_are_embedded_by_the_encoder_of_the_service(sdk: AsyncOpenAI) -> None:
    texts = ["Mein Hund heißt Bruno.", "My dog is called Bruno.", "The parliament met on Tuesday.", "long " * 400]
    made = await sdk.embeddings.create(model="embedding", input=texts)  # as base64, which the SDK decodes
    plain = await sdk.embeddings.create(model="embedding", input=texts, encoding_format="float")
    vectors = np.array([each.embedding for each in made.data])
    assert np.array_equal(
        vectors.astype(np.float32), np.array([each.embedding for each in plain.data], np.float32)
    )
    assert vectors.shape == (4, 512)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-3)
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2] + 0.3
    assert "embedding" in [each.id async for each in sdk.models.list()]
    with pytest.raises(openai.BadRequestError, match="dimensions"):
        await sdk.embeddings.create(model="embedding", input="x", dimensions=64)
    with pytest.raises(openai.NotFoundError, match="embedding"):
        await sdk.embeddings.create(model="default", input="x")
    with pytest.raises(openai.BadRequestError, match="100000"):
        await sdk.embeddings.create(model="embedding", input=["x" * 50_001] * 2)


@pytest.mark.settings(llm_model=None)
async def test_the_offline_model_claims_to_keep_nothing_where_memory_is_off(sdk: AsyncOpenAI) -> None:
    async def told(text: str, **more: Any) -> str:
        asked: Any = [{"role": "user", "content": text}]
        answer: Any = await sdk.chat.completions.create(model="default", messages=asked, **more)
        return str(answer.choices[0].message.content)

    for text, off in (("My dog is called Bruno.", "nothing is kept"), ("我的狗叫布鲁诺。", "不会保存")):
        assert off in await told(text)
        assert off in await told(text, user="u-1", store=False)
        assert off not in await told(text, user="u-1")
    assert "memory is off" in await told("What do you know about me?")
