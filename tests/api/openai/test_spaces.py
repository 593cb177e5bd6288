"""Spaces for OpenAI's clients: named by a header or in the metadata, and kept by the conversation."""

from typing import Any
from urllib.parse import quote

import openai
import pytest

from tests.support.model_server import ModelServer

TOLD = [{"role": "user", "content": "My dog is called Quorvex."}]
ASKED = [{"role": "user", "content": "What is my dog called?"}]


@pytest.mark.parametrize(
    "named",
    [{"extra_headers": {"X-Anamnesis-Space": quote("小说 2")}}, {"metadata": {"space": "小说 2"}}],
    ids=["header", "metadata"],
)
async def test_a_space_is_named_by_a_header_or_in_the_metadata(
    sdk: Any, model_server: ModelServer, named: dict[str, Any]
) -> None:
    await sdk.chat.completions.create(model="default", messages=TOLD, user="u-1", **named)
    await sdk.chat.completions.create(model="default", messages=ASKED, user="u-1")
    assert "Quorvex" not in str(model_server.requests[-1].prompt)
    await sdk.responses.create(
        model="default", input=ASKED[0]["content"], user="u-1", metadata={"space": "小说 2"}
    )
    assert "Quorvex" in str(model_server.requests[-1].prompt)


async def test_a_conversation_of_another_space_is_refused_before_anything_changes(sdk: Any) -> None:
    conversation = await sdk.conversations.create(metadata={"user": "u-1", "space": "a"})
    assert conversation.metadata == {"user": "u-1", "model": "default", "space": "a"}
    await sdk.responses.create(model="default", input="Hello", user="u-1", conversation=conversation.id)
    with pytest.raises(openai.BadRequestError, match="the conversation belongs to the space 'a'") as refused:
        await sdk.responses.create(
            model="default", input="Hello", user="u-1", conversation=conversation.id, metadata={"space": "b"}
        )
    assert refused.value.param == "space"
    items = [item async for item in await sdk.conversations.items.list(conversation.id)]
    assert len(items) == 2
