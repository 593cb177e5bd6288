"""What is told in one conversation is recalled in another."""

import httpx
import pytest

from tests.support.model_server import ModelServer
from tests.support.talking import say

pytestmark = [pytest.mark.anyio, pytest.mark.indexed, pytest.mark.untraced]


async def test_what_is_told_in_one_conversation_is_in_the_next_prompt_of_another_without_a_worker(
    client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    await say(client, "My cat is called Minka, she is grey.")
    await say(client, "What is my cat called?", session="s-2")
    prompt = model_server.requests[-1].prompt
    assert prompt[-1] == ("user", "What is my cat called?")
    assert any("My cat is called Minka, she is grey." in text for _, text in prompt[:-1])
