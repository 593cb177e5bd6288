"""Experts over HTTP: made, listed, changed, removed, and heard by the model."""

from typing import Any

import httpx
import pytest

from tests.support.model_server import ModelServer

pytestmark = pytest.mark.untraced

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


_CHANGES: tuple[dict[str, Any], ...] = (
    {"system_prompt": "You are a poet."},
    {"model": None},
    {"context_window": 100_000},
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


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"system_prompt": " \n"}, "system_prompt"),
    ({"system_prompt": "word " * 1000}, "system_prompt"),
    ({"persona": "x" * 4001}, "persona"),
    ({"model": " "}, "model"),
    ({"context_strategy": "forget"}, "context_strategy"),
    ({"context_window": 999}, "context_window"),
    ({"context_threshold": 0.705}, "context_threshold"),
    ({"min_archive_messages": 9}, "min_archive_messages"),
    ({"context_budget_tokens": 499}, "context_budget_tokens"),
    ({"parts_off": ["soul"]}, "parts_off.0"),
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


@pytest.mark.parametrize("name", ["a b", "x" * 129, ".."])
async def test_a_name_that_cannot_be_is_refused(shared_client: httpx.AsyncClient, name: str) -> None:
    _assert_problem(
        await shared_client.post(EXPERTS, json={**CRITIC, "name": name}), 422, "invalid_input", "name: "
    )


@pytest.mark.settings(encryption=True)  # so that the database cannot read the tags
async def test_the_opinions_on_an_expert_s_answers_are_counted_for_it_alone(client: httpx.AsyncClient) -> None:
    await _made(client)
    given: list[dict[str, Any]] = [{"rating": "up"}, {"rating": "down"}, {"rating": "down", "tags": ["said"]}]
    for opinion in given:
        answered = (await client.post("/api/v1/chat", json=ASK)).json()
        (await client.post(f"/api/v1/turns/{answered['turn_id']}/feedback", json=opinion)).raise_for_status()
    path = f"{EXPERTS}/critic/feedback"
    assert (await client.get(path)).json() == {"up": 1, "down": 2, "complaints": 1}
    await client.delete(f"/api/v1/turns/{answered['turn_id']}/feedback")
    assert (await client.get(path)).json() == {"up": 1, "down": 1, "complaints": 0}
    assert (await client.get(f"{EXPERTS}/default/feedback")).json() == {"up": 0, "down": 0, "complaints": 0}
    assert (await client.get(f"{EXPERTS}/nobody/feedback")).status_code == 404
