"""What the methods of OpenAI's SDK do here: each is called, and the guide says the same."""

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import openai

from tests.docs.test_site import DOCS

HELLO: Any = [{"role": "user", "content": "Hello"}]
ROW = re.compile(r"^\| `([a-z_.]+)` \| (.+?) \|$", re.MULTILINE)


def _calls(response_id: str, conversation_id: str) -> Mapping[str, Callable[[Any], Awaitable[Any]]]:
    conversation = {"conversation_id": conversation_id}
    said: Any = {"type": "message", "role": "user", "content": "Hello"}
    return {
        "models.list": lambda sdk: sdk.models.list(),
        "models.retrieve": lambda sdk: sdk.models.retrieve("default"),
        "chat.completions.create": lambda sdk: sdk.chat.completions.create(
            model="default", messages=HELLO, user="u-1"
        ),
        "chat.completions.parse": lambda sdk: sdk.chat.completions.parse(
            model="default", messages=HELLO, user="u-1"
        ),
        "chat.completions.retrieve": lambda sdk: sdk.chat.completions.retrieve("chatcmpl-1"),
        "chat.completions.list": lambda sdk: sdk.chat.completions.list(),
        "responses.create": lambda sdk: sdk.responses.create(model="default", input="Hello", user="u-1"),
        "responses.parse": lambda sdk: sdk.responses.parse(model="default", input="Hello", user="u-1"),
        "responses.retrieve": lambda sdk: sdk.responses.retrieve(response_id),
        "responses.cancel": lambda sdk: sdk.responses.cancel(response_id),
        "responses.input_items.list": lambda sdk: sdk.responses.input_items.list(response_id),
        "responses.compact": lambda sdk: sdk.responses.compact(model="default", input="Hello"),
        "responses.input_tokens.count": lambda sdk: sdk.responses.input_tokens.count(
            model="default", input="Hello"
        ),
        "responses.delete": lambda sdk: sdk.responses.delete(response_id),
        "conversations.create": lambda sdk: sdk.conversations.create(metadata={"user": "u-1"}),
        "conversations.retrieve": lambda sdk: sdk.conversations.retrieve(conversation_id),
        "conversations.items.create": lambda sdk: sdk.conversations.items.create(**conversation, items=[said]),
        "conversations.items.list": lambda sdk: sdk.conversations.items.list(conversation_id),
        "conversations.delete": lambda sdk: sdk.conversations.delete(conversation_id),
        "completions.create": lambda sdk: sdk.completions.create(model="default", prompt="Hello"),
        "files.list": lambda sdk: sdk.files.list(),
        "vector_stores.list": lambda sdk: sdk.vector_stores.list(),
        "moderations.create": lambda sdk: sdk.moderations.create(input="Hello"),
        "images.generate": lambda sdk: sdk.images.generate(prompt="Hello"),
        "audio.speech.create": lambda sdk: sdk.audio.speech.create(input="Hello", model="default", voice="alloy"),
        "batches.list": lambda sdk: sdk.batches.list(),
    }


async def test_the_guide_says_what_each_method_does(sdk: Any) -> None:
    response = await sdk.responses.create(model="default", input="My dog is called Bruno.", user="u-2")
    conversation = await sdk.conversations.create(metadata={"user": "u-2"})
    found: dict[str, str] = {}
    for name, call in _calls(response.id, conversation.id).items():
        try:
            await call(sdk)
            found[name] = "works"
        except openai.APIStatusError as refused:
            found[name] = f"{refused.status_code}: not supported"
    page = (DOCS / "openai.md").read_text("utf-8")
    section = page.partition("## Methods of the SDK")[2].partition("And of Anthropic's:")[0]
    assert dict(ROW.findall(section)) == found
