"""What a client resends: added, answered once more, edited, cut, or taken in; never stored twice."""

import asyncio
from typing import Any
from uuid import uuid4

import httpx
import openai
import pytest

from services.bootstrap import Services
from tests.support.model_server import ModelServer, Received, Reply
from tests.support.openai_clients import Chat, OpenWebUi, contents

pytestmark = pytest.mark.untraced


@pytest.fixture(autouse=True)
def _answers_are_told_apart(model_server: ModelServer) -> None:
    count = iter(range(1, 1000))

    def answer(_: Received) -> Reply:
        return Reply([f"Answer {next(count)}."])

    model_server.default = answer


NAMED = {"X-Session-Id": "chat-1"}


either_way = pytest.mark.parametrize("headers", [NAMED, {}], ids=["named", "unnamed"])
"""A client that names its conversation, and one that does not."""


@either_way
async def test_a_history_that_is_sent_along_is_stored_once(
    sdk: Any, services: Services, headers: dict[str, str], model_server: ModelServer
) -> None:
    chat = Chat(sdk, headers)
    for said in ("One", "Two", "Three"):
        await chat.say(said)
    assert await contents(services) == chat.pairs
    assert model_server.requests[-1].said == [*(text for _, text in chat.pairs[:-1])]


async def test_an_answer_is_given_once_more_in_place_of_the_old_one(
    sdk: Any, services: Services, model_server: ModelServer
) -> None:
    chat = Chat(sdk, NAMED)
    await chat.say("One")
    await chat.say("My dog is called Bruno.")
    await chat.regenerate()
    assert await contents(services) == chat.pairs
    assert chat.pairs[-1] == ("assistant", "Answer 3.")
    assert "Answer 2." not in str(model_server.requests[-1].body)
    await chat.say("Four")
    assert "Answer 2." not in str(model_server.requests[-1].body)


async def test_a_conversation_that_began_elsewhere_is_continued_by_its_name(
    sdk: Any, services: Services, url: str
) -> None:
    async with httpx.AsyncClient(base_url=url) as http:
        said = {"user_id": "u-1", "session_id": "chat-1", "message": "One"}
        (await http.post("/api/v1/chat", json=said)).raise_for_status()
    chat = Chat(sdk, NAMED)
    await chat.say("One")
    assert await contents(services) == chat.pairs == [("user", "One"), ("assistant", "Answer 2.")]


@pytest.mark.traced
@either_way
async def test_an_edit_puts_the_tail_aside_and_out_of_memory(
    sdk: Any, services: Services, headers: dict[str, str], model_server: ModelServer
) -> None:
    chat = Chat(sdk, headers)
    await chat.say("One")
    await chat.say("My dog is called Bruno.")
    await chat.say("Three")
    chat.back_to(2)
    await chat.say("My cat is called Minka.")
    assert await contents(services) == chat.pairs
    other = Chat(sdk, {"X-Session-Id": "other"})
    await other.say("What is the name of my dog called?")
    assert "Bruno" not in str(model_server.requests[-1].body)
    await other.say("What is the name of my cat called?")
    assert "Minka" in str(model_server.requests[-1].body)


@pytest.mark.traced
async def test_a_branch_is_taken_up_again_by_showing_it(
    sdk: Any, services: Services, model_server: ModelServer
) -> None:
    chat = Chat(sdk, NAMED)
    await chat.say("One")
    await chat.say("My dog is called Bruno.")
    first = list(chat.messages)
    chat.back_to(2)
    await chat.say("My cat is called Minka.")
    second = list(chat.messages)
    chat.messages = first
    await chat.say("Three")
    assert await contents(services) == chat.pairs
    other = Chat(sdk, {"X-Session-Id": "other"})
    await other.say("What is the name of my dog called?")
    assert "Bruno" in str(model_server.requests[-1].body)
    chat.messages = second
    await chat.say("Four")
    assert await contents(services) == [*chat.pairs, *other.pairs]


@pytest.mark.traced
async def test_a_history_that_was_cut_is_no_edit(sdk: Any, services: Services) -> None:
    chat = Chat(sdk, NAMED)
    for said in ("One", "Two", "Three"):
        await chat.say(said)
    whole = list(chat.pairs)
    compacted = {"role": "user", "content": "So far: 1, 2, 3."}
    for first, more in ((2, []), (-1, []), (-1, [compacted])):
        chat.messages = [*more, *chat.messages[first:]]
        await chat.say(f"After {len(whole)} messages")
        whole += chat.pairs[-2:]
    assert await contents(services) == whole


@either_way
async def test_an_unknown_conversation_with_history_is_taken_in_once(
    sdk: Any, services: Services, headers: dict[str, str], model_server: ModelServer
) -> None:
    chat = Chat(sdk, headers)
    for number in range(3):
        chat.messages += [
            {"role": "user", "content": f"Question {number}"},
            {"role": "assistant", "content": f"Elsewhere {number}"},
        ]
    await chat.say("Now here")
    assert len(model_server.requests[-1].said) == 7
    await chat.say("And again")
    assert await contents(services) == chat.pairs


@pytest.mark.traced
async def test_a_message_that_failed_and_is_sent_again_counts_once(
    sdk: Any, services: Services, model_server: ModelServer
) -> None:
    chat = Chat(sdk, NAMED)
    await chat.say("One")
    model_server.script(Reply(status=401))
    with pytest.raises(Exception, match="key"):
        await chat.say("Two")
    chat.back_to(2)
    await chat.say("Two")
    assert await contents(services) == chat.pairs


@pytest.mark.traced
async def test_ids_of_open_webui_decide_what_texts_cannot(
    sdk: Any, services: Services, model_server: ModelServer
) -> None:
    chat = OpenWebUi(sdk)
    first = await chat.say("Yes", parent="")
    second = await chat.say("Yes", parent=first)
    assert [text for _, text in await contents(services)] == ["Yes", "Answer 1.", "Yes", "Answer 2."]
    again = await chat.say("Yes", parent=first, user_message=second.user_message)
    assert [text for _, text in await contents(services)] == ["Yes", "Answer 1.", "Yes", "Answer 3."]
    await chat.say("No", parent="")
    assert [text for _, text in await contents(services)] == ["No", "Answer 4."]
    await chat.say("Back", parent=again)
    shown = ["Yes", "Answer 1.", "Yes", "Answer 3.", "Back", "Answer 5."]
    assert [text for _, text in await contents(services)] == shown
    assert model_server.requests[-1].said == shown[:-1]


async def test_users_never_go_on_with_each_others_conversations(sdk: Any, services: Services) -> None:
    mine = Chat(sdk, {}, user="u-1")
    await mine.say("One")
    theirs = Chat(sdk, {}, user=f"u-{uuid4().hex}")
    theirs.messages = list(mine.messages)
    await theirs.say("Two")
    await mine.say("Two")
    assert len(await contents(services)) == 8


async def test_requests_with_one_key_at_once_are_one_turn(sdk: Any, services: Services) -> None:
    async def ask(text: str) -> str:
        said = [{"role": "user", "content": text}]
        key = {"Idempotency-Key": "k-1"}
        answer = await sdk.chat.completions.create(model="default", messages=said, user="u-1", extra_headers=key)
        return str(answer.id)

    assert len(set(await asyncio.gather(*map(ask, ["My dog is called Bruno."] * 5)))) == 1
    assert len(await contents(services)) == 2
    with pytest.raises(openai.UnprocessableEntityError, match="belongs to another message"):
        await ask("Something else.")


async def test_an_answer_that_the_client_changed_is_a_branch(sdk: Any, services: Services) -> None:
    chat = Chat(sdk, NAMED)
    await chat.say("One")
    await chat.say("Two")
    chat.messages[-1] = {"role": "assistant", "content": "What I wish it had said."}
    await chat.say("Three")
    assert await contents(services) == chat.pairs


async def test_small_changes_of_what_is_shown_are_none(sdk: Any, services: Services) -> None:
    chat = Chat(sdk, NAMED)
    await chat.say("  Café au lait?  ")
    chat.messages[0]["content"] = "Cafe\u0301 au lait?"
    chat.messages[1]["content"] = (
        '<details type="reasoning" done="true"><summary>Thought</summary>Hm.</details>\nAnswer 1.\n'
    )
    await chat.say("Two")
    assert [text for _, text in await contents(services)][1:] == ["Answer 1.", "Two", "Answer 2."]
