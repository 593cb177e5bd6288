"""Responses and conversations, as OpenAI's SDK asks for them and reads them."""

import asyncio
from typing import Any

import httpx
import openai
import pytest
from psycopg.rows import tuple_row

from services.bootstrap import Services
from services.identity.tenants import DEFAULT_TENANT
from tests.support.model_server import ModelServer, Reply
from tests.support.openai_clients import contents

ANSWER = "Certainly, here is the answer."


async def test_a_response_is_a_turn_and_can_be_read_again(sdk: Any) -> None:
    response = await sdk.responses.create(model="default", input="My dog is called Bruno.", user="u-1")
    assert (response.status, response.output_text) == ("completed", ANSWER)
    again = await sdk.responses.retrieve(response.id)
    assert (again.output_text, again.usage, again.created_at) == (ANSWER, response.usage, response.created_at)
    items = await sdk.responses.input_items.list(response.id)
    assert [item.content[0].text for item in items.data] == ["My dog is called Bruno."]


async def test_a_stream_has_every_event_of_a_response_in_order(sdk: Any) -> None:
    stream = await sdk.responses.create(model="default", input="Hello", user="u-1", stream=True)
    events = [event async for event in stream]
    kinds = [event.type for event in events if event.type != "response.output_text.delta"]
    assert kinds == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    numbers = [event.sequence_number for event in events]
    assert numbers == sorted(set(numbers))
    assert "".join(e.delta for e in events if e.type == "response.output_text.delta") == ANSWER
    assert events[-1].response.output_text == ANSWER


async def test_a_stream_broken_at_any_event_is_taken_up_where_it_was(sdk: Any) -> None:
    stream = await sdk.responses.create(model="default", input="Hello", user="u-1", stream=True)
    events = [event async for event in stream]
    response_id = events[0].response.id
    for place, event in enumerate(events[:-1]):
        rest = await sdk.responses.retrieve(response_id, stream=True, starting_after=event.sequence_number)
        assert [each.to_dict() async for each in rest] == [each.to_dict() for each in events[place + 1 :]]


async def test_a_response_in_the_background_is_followed_and_cancelled(sdk: Any, model_server: ModelServer) -> None:
    model_server.script(Reply(["One ", "two"], gap_s=20.0))
    begun = await sdk.responses.create(model="default", input="Count", user="u-1", background=True)
    assert begun.status in {"queued", "in_progress"}
    stream = await sdk.responses.retrieve(begun.id, stream=True)
    async for event in stream:
        if event.type == "response.output_text.delta":
            break
    cancelled = await sdk.responses.cancel(begun.id)
    assert (cancelled.status, cancelled.output_text, cancelled.error) == ("cancelled", "One ", None)
    assert (await sdk.responses.cancel(begun.id)).status == "cancelled"


async def test_a_response_follows_the_one_before(sdk: Any, model_server: ModelServer) -> None:
    first = await sdk.responses.create(model="default", input="First", user="u-1")
    second = await sdk.responses.create(model="default", input="Second", user="u-1", previous_response_id=first.id)
    assert second.conversation.id == first.conversation.id
    assert model_server.requests[-1].said == ["First", ANSWER, "Second"]
    with pytest.raises(openai.NotFoundError):
        await sdk.responses.create(model="default", input="x", user="u-2", previous_response_id=first.id)


@pytest.mark.parametrize(
    ("wrong", "param"),
    [
        ({"conversation": "conv_x", "previous_response_id": "resp_x"}, "previous_response_id"),
        ({"store": False, "background": True}, "background"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"text": {"format": {"type": "xml"}}}, "text.format.type"),
        ({"input": [{"type": "item_reference", "id": "x"}, {"role": "user", "content": "Hi"}]}, "input.0"),
        (
            {"input": [{"role": "user", "content": "Hi"}, {"type": "function_call_output", "output": "42"}]},
            "input.1",
        ),
        ({"prompt": {"id": "pmpt_1"}}, "prompt"),
    ],
)
async def test_what_cannot_be_done_is_refused_by_name(shared_sdk: Any, wrong: dict[str, Any], param: str) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        await shared_sdk.responses.create(**{"model": "default", "input": "Hello", "user": "u-1", **wrong})
    assert refused.value.param == param


async def test_a_conversation_begins_with_items_and_goes_on(sdk: Any, model_server: ModelServer) -> None:
    items = [{"role": "user", "content": "One"}, {"role": "assistant", "content": "Two"}]
    conversation = await sdk.conversations.create(items=items, metadata={"user": "u-1"})
    await sdk.responses.create(model="default", input="Three", user="u-1", conversation=conversation.id)
    assert model_server.requests[-1].said == ["One", "Two", "Three"]
    listed = await sdk.conversations.items.list(conversation.id, limit=3)
    shown = [item.content[0].text for item in listed.data]
    assert shown == [ANSWER, "Three", "Two"]
    assert [item.content[0].text async for item in sdk.conversations.items.list(conversation.id, limit=1)] == [
        *shown,
        "One",
    ]
    one = await sdk.conversations.items.retrieve(listed.data[0].id, conversation_id=conversation.id)
    assert one.content[0].text == ANSWER
    await sdk.conversations.items.create(conversation.id, items=[{"role": "user", "content": "Four"}])
    newest = await sdk.conversations.items.list(conversation.id, limit=1)
    assert newest.data[0].content[0].text == "Four"
    assert (await sdk.conversations.delete(conversation.id)).deleted
    with pytest.raises(openai.NotFoundError):
        await sdk.conversations.retrieve(conversation.id)


async def test_a_response_repeats_what_it_was_asked(sdk: Any) -> None:
    first = await sdk.responses.create(model="default", input="First", user="u-1", metadata={"topic": "a"})
    assert (first.metadata, first.previous_response_id) == ({"topic": "a"}, None)
    # The response before names the user.
    second = await sdk.responses.create(
        model="default", input="Second", previous_response_id=first.id, instructions="Be brief.", temperature=0.5
    )
    assert (second.previous_response_id, second.conversation) == (first.id, first.conversation)
    assert (second.instructions, second.temperature) == ("Be brief.", 0.5)
    assert (await sdk.responses.retrieve(first.id)).metadata == {"topic": "a"}
    later = await sdk.responses.retrieve(second.id)
    assert (later.previous_response_id, later.temperature, later.metadata) == (first.id, 0.5, {})
    assert later.instructions is None  # an application's instructions are never stored


async def test_a_deleted_response_is_nowhere_any_more(sdk: Any, services: Services) -> None:
    kept = await sdk.responses.create(model="default", input="My dog is called Bruno.", user="u-1")
    gone = await sdk.responses.create(
        model="default", input="My code is 7741.", previous_response_id=kept.id, metadata={"code": "7741"}
    )
    await sdk.responses.delete(gone.id)
    for again in (
        sdk.responses.retrieve(gone.id),
        sdk.responses.delete(gone.id),
        sdk.responses.create(model="default", input="x", previous_response_id=gone.id),
    ):
        with pytest.raises(openai.NotFoundError, match=gone.id):
            await again
    items = await sdk.conversations.items.list(kept.conversation.id, order="asc")
    assert items.data[0].content[0].text == "My dog is called Bruno."
    assert len(items.data) == 2
    await sdk.conversations.items.delete(items.data[0].id, conversation_id=kept.conversation.id)
    assert (await sdk.conversations.items.list(kept.conversation.id)).data == []
    with pytest.raises(openai.NotFoundError):
        await sdk.conversations.items.retrieve(items.data[0].id, conversation_id=kept.conversation.id)
    assert all(not text for _, text in await contents(services))
    stored: list[Any] = await services.database.fetch(DEFAULT_TENANT, "SELECT t::text FROM turns t", {}, tuple_row)
    assert len(stored) == 2
    assert not any("7741" in row[0] for row in stored)


async def test_requests_that_follow_one_response_at_once_are_all_answered(
    sdk: Any, model_server: ModelServer
) -> None:
    first = await sdk.responses.create(model="default", input="First", user="u-1")
    model_server.default = Reply(["One ", "answer."], gap_s=0.2)

    async def follow(number: int) -> str:
        await asyncio.sleep(number * 0.1)
        asked = {"input": f"Question {number}", "previous_response_id": first.id}
        answer = await sdk.responses.create(model="default", **asked)
        return str(answer.output_text)

    assert await asyncio.gather(*map(follow, range(3))) == ["One answer."] * 3
    items = await sdk.conversations.items.list(first.conversation.id)
    assert len(items.data) == 8


async def test_a_user_in_a_header_sees_and_deletes_nothing_of_another_user(client: httpx.AsyncClient) -> None:
    body = {"model": "default", "user": "anna", "input": "My secret is a zebra."}
    response = (await client.post("/v1/responses", json=body)).json()
    place, conversation = f"/v1/responses/{response['id']}", f"/v1/conversations/{response['conversation']['id']}"
    bob = {"X-User-Id": "bob"}
    for method, path in (
        *(("GET", place), ("GET", f"{place}/input_items"), ("POST", f"{place}/cancel"), ("DELETE", place)),
        *(("GET", conversation), ("GET", f"{conversation}/items"), ("DELETE", conversation)),
    ):
        answer = await client.request(method, path, headers=bob)
        assert (answer.status_code, "zebra" in answer.text) == (404, False), (method, path)
    named = [{"type": "item_reference", "id": response["output"][0]["id"]}, {"role": "user", "content": "And?"}]
    asked = await client.post("/v1/responses", json={**body, "input": named}, headers=bob)
    assert (asked.status_code, "there is no item" in asked.text) == (400, True)
    assert (await client.get(place, headers={"X-User-Id": "anna"})).status_code == 200
    assert (await client.get(place)).status_code == 200


async def test_items_that_a_conversation_does_not_keep_are_named(client: httpx.AsyncClient) -> None:
    conversation = (await client.post("/v1/conversations", json={"metadata": {"user": "u-1"}})).json()["id"]
    items = [
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "function_call_output", "call_id": "call_1", "output": "x"},
        {"role": "user", "content": "Hello"},
    ]
    answer = await client.post(f"/v1/conversations/{conversation}/items", json={"items": items})
    assert answer.headers["X-Anamnesis-Ignored"] == "function_call_output, reasoning"
    assert len(answer.json()["data"]) == 1
    wrong = {"model": "default", "input": "Hello", "metadata": {"session_id": 5}}
    refused = await client.post("/v1/responses", json=wrong)
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "metadata.session_id")
