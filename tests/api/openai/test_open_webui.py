"""Open WebUI in front: what its release 0.12.4 sends with users in headers, its tools and no message ids."""

from typing import Any

import openai
import pytest
from openai import AsyncOpenAI

from services.bootstrap import Services
from services.identity.api_keys import ApiKeys
from services.identity.tenants import DEFAULT_TENANT
from tests.api.openai.test_wrappers import FILES, RAG
from tests.support.model_server import ModelServer, Received, Reply
from tests.support.openai_clients import contents

pytestmark = [pytest.mark.untraced, pytest.mark.settings(auth="api_key", small_llm_model="small")]

TOOLS = [
    {"type": "function", "function": {"name": name, "description": "…", "parameters": {"type": "object"}}}
    for name in ("get_current_timestamp", "ask_user", "search_memories", "add_memory")
]
HISTORY = "### Chat History:\n<chat_history>\nUSER: My dog is called Bruno.\nASSISTANT: Answer 1.\n</chat_history>"
TASKS = {
    "title": f"### Task:\nGenerate a concise title summarizing the chat history.\n{HISTORY}",
    "tags": f"### Task:\nGenerate 1-3 broad tags categorizing the main themes of the chat history.\n{HISTORY}",
    "follow-ups": f"### Task:\nPredict 3-5 useful messages this user might naturally send next.\n{HISTORY}",
    "queries": f"### Task:\nAnalyze the chat history to determine the necessity of search queries.\n{HISTORY}",
}


def _named(user: str) -> dict[str, str]:
    return {
        "X-OpenWebUI-User-Name": "Ann%20Admin",
        "X-OpenWebUI-User-Id": user,
        "X-OpenWebUI-User-Email": f"{user}@example.com",
        "X-OpenWebUI-User-Role": "user",
    }


class OpenWebUi:
    """A tab of Open WebUI: it shows the whole chat with each message, and names user and chat in headers."""

    def __init__(self, sdk: AsyncOpenAI, user: str, chat: str) -> None:
        self._sdk: Any = sdk
        self._headers = {"X-OpenWebUI-Auth-Type": "jwt", "X-OpenWebUI-Chat-Id": chat, **_named(user)}
        self.shown: list[dict[str, str]] = []

    async def say(self, text: str, *, wrapped: str | None = None) -> str:
        """Send a message as a stream, `wrapped` in what the page puts around it, and show the answer."""
        sent = [*self.shown, {"role": "user", "content": wrapped or text}]
        stream = await self._sdk.chat.completions.create(
            model="default", messages=sent, stream=True, tools=TOOLS, extra_headers=self._headers
        )
        answer = "".join([chunk.choices[0].delta.content or "" async for chunk in stream])
        self.shown += [{"role": "user", "content": text}, {"role": "assistant", "content": answer}]
        return answer

    async def task(self, prompt: str) -> None:
        """Ask for a title or the like; no header says that it is one."""
        said = [{"role": "user", "content": prompt}]
        await self._sdk.chat.completions.create(
            model="default", messages=said, stream=False, max_tokens=1000, extra_headers=self._headers
        )


@pytest.fixture
async def sdk(sdk: AsyncOpenAI, services: Services, model_server: ModelServer) -> AsyncOpenAI:
    """The connection of Open WebUI, with a key that acts for its users."""
    count = iter(range(1, 100))

    def answer(asked: Received) -> Reply:
        return Reply(["{}"] if asked.body["model"] == "small" else [f"Answer {next(count)}."])

    model_server.default = answer
    _, key = await ApiKeys(services.database).create(DEFAULT_TENANT, "openwebui", ["chat"], acts_for_headers=True)
    return sdk.with_options(api_key=key)


async def test_a_chat_is_stored_as_its_page_shows_it(
    sdk: AsyncOpenAI, services: Services, model_server: ModelServer
) -> None:
    tab = OpenWebUi(sdk, "ann", "chat-1")
    await tab.task(TASKS["title"])  # before the first message is answered
    await tab.say("My dog is called Bruno.")
    for prompt in TASKS.values():
        await tab.task(prompt)
    await tab.say("My cat is called Minka.")
    del tab.shown[2:]
    await tab.say("My cat is called Minka.")  # regenerated
    del tab.shown[2:]
    await tab.say("My parrot is called Coco.")  # edited
    await tab.say("What animals do I have?")
    assert await contents(services) == [(each["role"], each["content"]) for each in tab.shown]
    prompt = str(model_server.requests[-1].body)
    assert "Coco" in prompt
    assert "Minka" not in prompt


async def test_a_file_that_is_attached_is_shown_and_not_remembered(
    sdk: AsyncOpenAI, services: Services, model_server: ModelServer
) -> None:
    tab = OpenWebUi(sdk, "ann", "chat-1")
    # In the history the page shows the file alone, and no passages.
    question = f"{FILES}\n\nHow many days of leave do I have?"
    await tab.say(question, wrapped=f"{RAG}\n{question}")
    await tab.say("And who decides?", wrapped=f"{RAG}\nAnd who decides?")
    assert "Twelve days a year." in str(model_server.requests[-1].body)
    said = [text for role, text in await contents(services) if role == "user"]
    assert said == ["How many days of leave do I have?", "And who decides?"]
    with pytest.raises(openai.BadRequestError, match="not continued"):  # “Continue Response”
        await tab.say("", wrapped=RAG)
    assert len(await contents(services)) == 4


async def test_users_and_temporary_chats_are_kept_apart(
    sdk: AsyncOpenAI, services: Services, model_server: ModelServer
) -> None:
    await OpenWebUi(sdk, "ann", "chat-1").say("My dog is called Bruno.")
    stored = await contents(services)
    passing = OpenWebUi(sdk, "ann", "temporary:zdP6AKW8gr1C7z7kAAAL")
    await passing.say("My code is 7741. What is my dog called?")
    assert "Bruno" in str(model_server.requests[-1].body)
    await passing.say("Repeat the code.")
    assert "7741" in str(model_server.requests[-1].body)
    assert await contents(services) == stored
    await OpenWebUi(sdk, "ben", "chat-2").say("What is my dog called?")
    assert "Bruno" not in str(model_server.requests[-1].body)
