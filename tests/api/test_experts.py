"""Experts over HTTP: made, listed, changed, removed, and heard by the model."""

import asyncio
from typing import Any

import httpx
import pytest

from tests.support.model_server import ModelServer

pytestmark = [pytest.mark.anyio, pytest.mark.untraced]

EXPERTS = "/api/v1/experts"
CRITIC: dict[str, Any] = {"name": "critic", "system_prompt": "You are a film critic."}
ASK = {"user_id": "u-1", "session_id": "s-1", "message": "Hello", "expert": "critic"}


async def _made(client: httpx.AsyncClient, **values: Any) -> Any:
    response = await client.post(EXPERTS, json={**CRITIC, **values})
    assert response.status_code == 201, response.text
    return response.json()


def _assert_problem(response: httpx.Response, status: int, code: str, *names: str) -> None:
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    assert response.json()["code"] == code
    for name in names:
        assert name in response.json()["detail"]


async def test_an_expert_is_made_with_defaults_and_read_back(client: httpx.AsyncClient) -> None:
    made = await _made(client)
    assert made | {"created_at": ""} == {
        **CRITIC,
        "persona": "",
        "model": None,
        "context_strategy": "summary",
        "context_window": 32_000,
        "context_threshold": 0.6,
        "min_archive_messages": 10,
        "reflection": False,
        "context_budget_tokens": None,
        "parts_off": [],
        "created_at": "",
    }
    assert (await client.get(f"{EXPERTS}/critic")).json() == made


async def test_everything_of_an_expert_can_be_said(client: httpx.AsyncClient) -> None:
    said = {
        "name": "Film.critic_2:a@b-c",
        "system_prompt": "你是影评人。" * 220,
        "persona": "x" * 4000,
        "model": "gpt-x",
        "context_strategy": "topics",
        "context_window": 2_000_000,
        "context_threshold": 0.29,
        "min_archive_messages": 1000,
        "reflection": True,
        "context_budget_tokens": 500,
        "parts_off": ["recall", "memory_filing"],
    }
    made = await _made(client, **{**said, "parts_off": ["recall", "memory_filing", "recall"]})
    assert made == said | {"created_at": made["created_at"]}
    assert (await client.get(f"{EXPERTS}/{said['name']}")).json() == made


_RECOMMENDED: tuple[tuple[dict[str, Any], float, int], ...] = (
    ({"context_window": 1_000}, 0.6, 10),
    ({"context_window": 32_001}, 0.7, 15),
    ({"context_window": 64_000}, 0.7, 15),
    ({"context_window": 64_001}, 0.7, 20),
    ({"context_window": 64_001, "context_threshold": None, "min_archive_messages": None}, 0.7, 20),
    ({"context_window": 8_000, "context_threshold": 0.95}, 0.95, 10),
    ({"context_window": 8_000, "min_archive_messages": 40}, 0.6, 40),
)
"""What is given, and the threshold and the least messages that are recommended then."""


async def test_what_is_not_given_is_recommended_for_the_window(client: httpx.AsyncClient) -> None:
    for number, (given, threshold, messages) in enumerate(_RECOMMENDED):
        made = await _made(client, name=f"critic-{number}", **given)
        assert (made["context_threshold"], made["min_archive_messages"]) == (threshold, messages)


async def test_experts_are_listed_by_name_in_pages(client: httpx.AsyncClient) -> None:
    for name in ("zoe", "critic", "adam", "eve"):
        await _made(client, name=name)
    everything = (await client.get(EXPERTS)).json()
    names = [item["name"] for item in everything["items"]]
    assert names == ["adam", "critic", "default", "eve", "zoe"]
    assert everything["next"] is None
    first = (await client.get(EXPERTS, params={"limit": 3})).json()
    second = (await client.get(EXPERTS, params={"limit": 3, "after": first["next"]})).json()
    assert first["items"] + second["items"] == everything["items"]
    assert second["next"] is None
    for wrong in ({"limit": 0}, {"after": "a\nb"}):
        _assert_problem(await client.get(EXPERTS, params=wrong), 422, "invalid_input", *wrong)


_CHANGES: tuple[dict[str, Any], ...] = (
    {"system_prompt": "You are a poet."},
    {"persona": "A poet"},
    {"model": "gpt-y"},
    {"model": None},
    {"context_strategy": "window"},
    {"context_window": 100_000},
    {"context_threshold": 0.1},
    {"min_archive_messages": 11},
    {"reflection": False},
    {"context_budget_tokens": 1_000_000},
    {"parts_off": ["core_memory"]},
    {},
)


async def test_a_change_changes_what_it_names_and_nothing_else(client: httpx.AsyncClient) -> None:
    other = await _made(client, name="other")
    for number, change in enumerate(_CHANGES):
        name = f"critic-{number}"
        made = await _made(client, name=name, model="gpt-x", persona="A critic", reflection=True)
        changed = await client.patch(f"{EXPERTS}/{name}", json=change)
        assert changed.status_code == 200, changed.text
        assert changed.json() == made | change
        assert (await client.get(f"{EXPERTS}/{name}")).json() == made | change
        assert (await client.get(f"{EXPERTS}/other")).json() == other


async def test_a_conversation_hears_its_expert_and_each_change_of_it(
    client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    await _made(client, model="gpt-x")
    (await client.post("/api/v1/chat", json=ASK)).raise_for_status()
    change = {"system_prompt": "You are a poet.", "model": None}
    (await client.patch(f"{EXPERTS}/critic", json=change)).raise_for_status()
    (await client.post("/api/v1/chat", json=ASK)).raise_for_status()
    before, after = model_server.requests
    assert (before.body["model"], after.body["model"]) == ("gpt-x", "scripted")
    assert CRITIC["system_prompt"] in before.prompt[0][1]
    assert "You are a poet." in after.prompt[0][1]
    assert CRITIC["system_prompt"] not in after.prompt[0][1]
    [conversation] = (await client.get("/api/v1/conversations")).json()["items"]
    assert conversation["expert"] == "critic"


async def test_an_expert_goes_unless_it_is_needed(client: httpx.AsyncClient) -> None:
    await _made(client)
    await _made(client, name="talked-to")
    (await client.post("/api/v1/chat", json={**ASK, "expert": "talked-to"})).raise_for_status()
    for name in ("default", "talked-to"):
        _assert_problem(await client.delete(f"{EXPERTS}/{name}"), 409, "conflict", name)
        assert (await client.get(f"{EXPERTS}/{name}")).status_code == 200

    gone = await client.delete(f"{EXPERTS}/critic")
    assert (gone.status_code, gone.content) == (204, b"")
    assert "content-type" not in gone.headers
    for response in (
        await client.get(f"{EXPERTS}/critic"),
        await client.patch(f"{EXPERTS}/critic", json={"persona": "x"}),
        await client.delete(f"{EXPERTS}/critic"),
    ):
        _assert_problem(response, 404, "not_found")
    _assert_problem(
        await client.post("/api/v1/chat", json={**ASK, "session_id": "s-2"}), 422, "invalid_input", "expert"
    )

    (await client.delete("/api/v1/users/u-1")).raise_for_status()
    assert (await client.delete(f"{EXPERTS}/talked-to")).status_code == 204


async def test_an_expert_that_goes_while_a_conversation_begins_is_either_there_or_not(
    client: httpx.AsyncClient,
) -> None:
    outcomes = set()
    for number in range(10):
        name = f"critic-{number}"
        await _made(client, name=name)
        ask = {**ASK, "session_id": name, "expert": name}
        chat, gone = await asyncio.gather(
            client.post("/api/v1/chat", json=ask), client.delete(f"{EXPERTS}/{name}")
        )
        outcomes.add((chat.status_code, gone.status_code))
    assert outcomes <= {(200, 409), (422, 204)}


async def test_a_name_is_given_once(client: httpx.AsyncClient) -> None:
    made = await _made(client)
    again = await client.post(EXPERTS, json={**CRITIC, "system_prompt": "You are another."})
    _assert_problem(again, 409, "conflict", "critic")
    assert (await client.get(f"{EXPERTS}/critic")).json() == made


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"system_prompt": ""}, "system_prompt"),
    ({"system_prompt": " \n"}, "system_prompt"),
    ({"system_prompt": "a\x00b"}, "system_prompt"),
    ({"system_prompt": "word " * 1000}, "system_prompt"),
    ({"system_prompt": "影" * 1400}, "system_prompt"),
    ({"system_prompt": "x" * 40_000}, "system_prompt"),
    ({"system_prompt": None}, "system_prompt"),
    ({"persona": "x" * 4001}, "persona"),
    ({"persona": "a\x00b"}, "persona"),
    ({"persona": None}, "persona"),
    ({"model": ""}, "model"),
    ({"model": " "}, "model"),
    ({"model": "x" * 201}, "model"),
    ({"model": "a\x00b"}, "model"),
    ({"context_strategy": "forget"}, "context_strategy"),
    ({"context_window": 999}, "context_window"),
    ({"context_window": 2_000_001}, "context_window"),
    ({"context_threshold": 0.09}, "context_threshold"),
    ({"context_threshold": 1.01}, "context_threshold"),
    ({"context_threshold": 0.705}, "context_threshold"),
    ({"min_archive_messages": 9}, "min_archive_messages"),
    ({"min_archive_messages": 1001}, "min_archive_messages"),
    ({"reflection": "perhaps"}, "reflection"),
    ({"context_budget_tokens": 499}, "context_budget_tokens"),
    ({"parts_off": ["soul"]}, "parts_off.0"),
    ({"parts_off": ["recall"] * 40}, "parts_off"),
    ({"surprise": 1}, "surprise"),
]


@pytest.mark.parametrize(("values", "named"), WRONG, ids=[str(values)[:40] for values, _ in WRONG])
async def test_what_is_wrong_is_named_and_nothing_is_stored(
    shared_client: httpx.AsyncClient, values: dict[str, Any], named: str
) -> None:
    _assert_problem(
        await shared_client.post(EXPERTS, json={**CRITIC, **values}), 422, "invalid_input", f"{named}: "
    )
    before = (await shared_client.get(EXPERTS)).json()
    assert [item["name"] for item in before["items"]] == ["default"]
    _assert_problem(
        await shared_client.patch(f"{EXPERTS}/default", json=values), 422, "invalid_input", f"{named}: "
    )
    assert (await shared_client.get(EXPERTS)).json() == before


@pytest.mark.parametrize("name", ["", "a b", "x" * 129, "..", ".", "a/b", None])
async def test_a_name_that_cannot_be_is_refused(shared_client: httpx.AsyncClient, name: str | None) -> None:
    _assert_problem(
        await shared_client.post(EXPERTS, json={**CRITIC, "name": name}), 422, "invalid_input", "name: "
    )


@pytest.mark.parametrize("name", ["name", "context_window", "context_threshold", "min_archive_messages"])
@pytest.mark.parametrize("value", [None, "poet"])
async def test_a_name_stays_and_a_limit_is_not_nothing(
    shared_client: httpx.AsyncClient, name: str, value: Any
) -> None:
    refused = await shared_client.patch(f"{EXPERTS}/default", json={name: value})
    _assert_problem(refused, 422, "invalid_input", f"{name}: ")


async def test_a_prompt_that_is_too_long_is_told_its_tokens(client: httpx.AsyncClient) -> None:
    refused = await client.post(EXPERTS, json={**CRITIC, "system_prompt": "word " * 1000})
    assert refused.json()["detail"] == "system_prompt: has some 1251 tokens; at most 1000 are accepted"
