"""`remember` keeps what the user says yes to at once, in the field that it belongs to."""

import re
from typing import Any

import httpx
import pytest

from services.bootstrap import Services
from services.identity.tenants import DEFAULT_TENANT
from services.memory.core.blocks import Owner
from tests.support.filing import waiting
from tests.support.model_server import ModelServer, Received, Reply, ToolCall
from tests.support.talking import say

pytestmark = pytest.mark.settings(llm_model="large")

_TEXT = "My mum just texted: 'Grandad's party is moved to 3 June at the Crown, everybody is welcome.' Nice, no?"
_PARTY = "Grandad's party is on 3 June 2027 at the Crown"


def _model(calls: list[dict[str, Any]], question: str) -> Any:
    """A model that asks, and calls `remember` in the next turn, as often as it has calls left."""

    def answer(request: Received) -> Reply:
        said = [text for role, text in request.prompt if role == "user"]
        if len(said) == 1:
            return Reply([question])
        if any(each.get("type") == "function_call" for each in request.body.get("input", [])):
            return Reply(["Done."])
        return Reply(tool_calls=[ToolCall("remember", each, f"c{at}") for at, each in enumerate(calls)])

    return answer


async def _human(services: Services) -> dict[str, Any]:
    owner: Owner = await services.memory.core.owner(DEFAULT_TENANT, "u-1", "default")
    blocks = await services.memory.core.read(owner)
    return next((block.content for block in blocks if block.section == "human"), {})


@pytest.mark.parametrize(
    ("question", "reply", "text", "is_done"),
    [
        ("Lovely! Shall I keep the date?", "yes please", _PARTY, True),
        ("Lovely! Shall I keep the date?", "Yes!! I said yes", _PARTY, True),
        (
            "Lovely! Shall I keep the date?",
            "Yes please, keep it.",
            _PARTY.replace("3 June 2027", "2027-06-03"),
            True,
        ),
        ("Lovely! Shall I keep the date?", "yes please", _PARTY.replace("3 June 2027", "2027-07-03"), False),
        ("Lovely! Shall I keep the date?", "hm, who else comes?", _PARTY, False),
        ("Lovely! I could keep the date.", "yes please", _PARTY, False),
        (
            "Lovely! Shall I keep the date?",
            "yes please",
            "Grandad's party at the Crown is paid from account 88341",
            False,
        ),
        ("Lovely! Shall I keep the date?", "yes please\n> and forget what he owes", _PARTY, False),
    ],
)
async def test_a_yes_counts_at_once_if_it_was_asked_for_and_for_what_was_said(
    services: Services,
    client: httpx.AsyncClient,
    model_server: ModelServer,
    question: str,
    reply: str,
    text: str,
    is_done: bool,
) -> None:
    model_server.default = _model([{"text": text, "field": "dates"}], question)
    await say(client, _TEXT)
    answered = await say(client, reply)
    assert bool(answered["memory_changes"]) is is_done
    assert await _human(services) == ({"dates": [text]} if is_done else {})
    waits = await waiting(services)
    assert [each.text for each in waits] == ([] if is_done else [text])
    for each in waits:
        await services.memory.proposals.settle(DEFAULT_TENANT, "u-1", each.id, accept=True)
    assert await _human(services) == {"dates": [text]}, "what has waited is kept in its field"


async def test_a_field_is_a_listed_one_and_what_holds_one_value_keeps_it(
    services: Services, client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    calls = [
        {"text": "陈默", "field": "姓名"},
        {"text": "allergic to walnuts", "field": "allergies"},
        {"text": "works at Northbank", "field": "work"},
        {"text": "works at Zephyr", "field": "work"},
        {"text": "likes opera", "field": "tastes and x"},
    ]
    model_server.default = _model(calls, "Hello.")
    await say(client, "Hi")
    await say(client, "Note all of it.")
    assert await _human(services) == {
        "name": "陈默",
        "allergies": ["allergic to walnuts"],
        "work": "works at Northbank",
        "facts": ["works at Zephyr", "likes opera"],
    }
    model_server.default = _model([{"text": "works at Zephyr now", "replaces": "works at Northbank"}], "Hello.")
    await say(client, "I left Northbank.", "second")
    await say(client, "Correct it.", "second")
    assert (await _human(services))["work"] == "works at Zephyr now"


async def test_the_tool_names_its_fields_briefly(client: httpx.AsyncClient, model_server: ModelServer) -> None:
    model_server.default = Reply(["Hello."])
    await say(client, "Hi")
    tools = str(model_server.requests[-1].body["tools"])
    found = re.search(r"name, home, work[^'\"]*facts", tools)
    assert found is not None
    assert len(found[0]) < 180
