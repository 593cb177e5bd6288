"""Spaces: what is said in one stays there, what is said outside of any is known in all of them."""

import json
from typing import Any

import httpx
import pytest

from services.bootstrap import Services
from services.identity.tenants import DEFAULT_TENANT
from tests.support.model_server import ModelServer

USER = "/api/v1/users/u-1"


class Talk:
    """A user who talks in several spaces."""

    def __init__(self, client: httpx.AsyncClient, services: Services, model_server: ModelServer) -> None:
        self._client = client
        self._services = services
        self._model_server = model_server

    async def say(self, message: str, space: str | None, session: str, **more: Any) -> httpx.Response:
        body = {"user_id": "u-1", "session_id": session, "message": message, "space": space, **more}
        return await self._client.post("/api/v1/chat", json=body)

    async def tell(self, message: str, space: str | None, session: str) -> dict[str, Any]:
        """Say something, and have it filed."""
        answer = await self.say(message, space, session)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        owner = await self._services.memory.core.owner(DEFAULT_TENANT, "u-1", "default")
        await self._services.filing.file(DEFAULT_TENANT, owner.user_id)
        return found

    async def prompt(self, message: str, space: str | None, session: str, **more: Any) -> str:
        """All that the model is shown before the message."""
        asked = len(self._model_server.requests)
        answer = await self.say(message, space, session, **more)
        assert answer.status_code == 200, answer.text
        requests = self._model_server.requests[asked:]
        shown = [text for request in requests for _, text in request.prompt if text != message]
        return "\n".join([*shown, answer.json()["answer"]])

    async def known(self, space: str | None) -> str:
        """What memory answers to callers who ask in a space."""
        query = {} if space is None else {"space": space}
        paths = ("core-memory", "episodes", "memory-operations", "persona", "daily-summaries")
        found = [(await self._client.get(f"{USER}/{path}", params=query)).text for path in paths]
        for text in ("dog", "live", "allergic", "狗", "住", "过敏"):
            body = {"query": text, "space": space, "top_k": 50}
            found.append((await self._client.post(f"{USER}/episodes/search", json=body)).text)
        if space is not None:
            found.append((await self._client.get(f"{USER}/export", params=query)).text)
        return "\n".join(
            json.dumps(json.loads(each), ensure_ascii=False) if each[:1] == "{" and "\n" not in each else each
            for each in found
        )


@pytest.fixture
def talk(client: httpx.AsyncClient, services: Services, model_server: ModelServer) -> Talk:
    """The user u-1."""
    return Talk(client, services, model_server)


async def test_what_is_said_in_a_space_is_known_there_and_what_is_said_outside_everywhere(talk: Talk) -> None:
    await talk.tell("My dog is called Quorvex.", "Novel", "s-1")
    await talk.tell("I live in Brimolo.", None, "s-2")
    assert "Quorvex" in await talk.prompt("What is my dog called?", "Novel", "s-3")
    assert "Brimolo" in await talk.prompt("Where do I live?", "Novel", "s-3")
    for space in (None, "holiday"):
        session = f"s-4-{space}"
        assert "Quorvex" not in await talk.prompt("What is my dog called?", space, session)
        assert "Brimolo" in await talk.prompt("Where do I live?", space, session)
    assert "Quorvex" in await talk.known("Novel")
    assert "Quorvex" not in await talk.known(None)


async def test_a_conversation_keeps_the_space_in_which_it_began(talk: Talk, client: httpx.AsyncClient) -> None:
    await talk.tell("Hello!", "Novel", "s-1")
    await talk.tell("Hello!", None, "s-2")
    assert (await talk.say("And now?", None, "s-1")).status_code == 200
    for space, session, belongs in (("holiday", "s-1", "to the space 'Novel'"), ("Novel", "s-2", "to no space")):
        refused = await talk.say("And now?", space, session)
        assert refused.status_code == 422
        assert f"the conversation belongs {belongs}" in refused.json()["detail"]
    turn_id = (await client.get(f"{USER}/memory-operations")).json()
    assert turn_id["items"] is not None
    names = [each["name"] for each in (await client.get(f"{USER}/spaces")).json()["items"]]
    assert names == ["Novel"]
    listed = (await client.get("/api/v1/conversations", params={"user_id": "u-1"})).json()["items"]
    assert {each["session_id"]: each["space"] for each in listed} == {"s-1": "Novel", "s-2": None}
    within = await client.get("/api/v1/conversations", params={"user_id": "u-1", "space": "Novel"})
    assert [each["session_id"] for each in within.json()["items"]] == ["s-1"]


async def test_a_wrong_name_of_a_space_is_refused(talk: Talk) -> None:
    names = {"": "is empty", "x" * 65: "at most 64", "a\u0007b": "not printed", "a\u0000": "NUL"}
    for name, reason in names.items():
        refused = await talk.say("Hello!", name, "s-1")
        assert refused.status_code == 422
        assert "space: " in refused.json()["detail"]
        assert reason in refused.json()["detail"]


async def test_forgetting_in_a_space_reaches_what_all_spaces_share_and_no_other_space(talk: Talk) -> None:
    for space in (None, "Novel", "holiday"):
        await talk.tell("I have asthma.", space, f"s-{space}")
    answer = await talk.tell("Please forget that I have asthma.", "Novel", "s-f")
    [change] = answer["memory_changes"]
    assert change["operation_id"]
    for space, knows in ((None, False), ("Novel", False), ("holiday", True)):
        shown = await talk.prompt("Which illness do I have?", space, f"s-q-{space}")
        assert ("asthma" in shown) == knows, space


async def test_an_export_holds_spaces_and_gives_an_equal_one_elsewhere(
    talk: Talk, client: httpx.AsyncClient
) -> None:
    await talk.tell("I live in Brimolo.", None, "s-1")
    await talk.tell("My dog is called Quorvex.", "Novel", "s-2")
    body = {"content": "Likes slow trains.", "space": "holiday"}
    assert (await client.post(f"{USER}/episodes", json=body)).status_code == 201
    exported = (await client.get(f"{USER}/export")).text
    assert {json.loads(line).get("space") for line in exported.splitlines()} == {None, "Novel", "holiday"}
    moved = exported.replace('"user_id":"u-1"', '"user_id":"u-2"')
    report = await client.post("/api/v1/import", content=moved, headers={"Content-Type": "application/x-ndjson"})
    assert (report.json()["refused"], report.json()["skipped"]) == (0, 0), report.text
    assert (await client.get("/api/v1/users/u-2/export")).text == moved
    of_space = (await client.get(f"{USER}/export", params={"space": "Novel"})).text
    assert "Quorvex" in of_space
    assert "Brimolo" not in of_space
    assert (await client.get(f"{USER}/export", params={"space": "none such"})).status_code == 404


async def test_an_import_does_not_move_a_conversation_to_another_space(
    talk: Talk, client: httpx.AsyncClient
) -> None:
    await talk.tell("Hello!", "Novel", "s-1")
    line = {"user_id": "u-1", "session_id": "s-1", "role": "user", "content": "Hi", "space": "holiday"}
    line["created_at"] = "2026-01-01T10:00:00Z"
    report = await client.post("/api/v1/import", json=line)
    assert report.json()["refused"] == 1
    assert "belongs to another space" in report.json()["errors"][0]["reason"]


async def test_a_space_is_erased_and_nothing_else(
    talk: Talk, client: httpx.AsyncClient, services: Services
) -> None:
    for space, word in ((None, "Brimolo"), ("工作 / 项目", "Quorvex"), ("holiday", "Tandrel")):
        await talk.tell(f"My dog is called {word}.", space, f"s-{word}")
    erased = await client.delete(f"{USER}/spaces/工作 / 项目")
    assert erased.status_code == 200, erased.text
    assert erased.json()["removed"]["postgresql"]["conversations"] == 1
    assert await _rows_with(services, "Quorvex") == []
    assert await _rows_with(services, "Brimolo") != []
    assert "Tandrel" in await talk.prompt("What is my dog called?", "holiday", "s-h")
    assert [each["name"] for each in (await client.get(f"{USER}/spaces")).json()["items"]] == ["holiday"]
    assert (await client.delete(f"{USER}/spaces/工作 / 项目")).status_code == 404
    assert (await client.delete(USER)).json()["removed"]["postgresql"]["spaces"] == 1


async def test_a_space_is_renamed_with_all_that_is_in_it(talk: Talk, client: httpx.AsyncClient) -> None:
    await talk.tell("My dog is called Quorvex.", "工作 / 项目", "s-1")
    await talk.tell("My dog is called Tandrel.", "holiday", "s-2")
    renamed = await client.patch(f"{USER}/spaces/工作 / 项目", json={"name": "  Work  "})
    assert renamed.status_code == 204, renamed.text
    listed = (await client.get(f"{USER}/spaces")).json()["items"]
    assert [(each["name"], each["conversations"]) for each in listed] == [("Work", 1), ("holiday", 1)]
    assert "Quorvex" in await talk.prompt("What is my dog called?", "Work", "s-3")
    # Under the old name there is nothing any more: it begins another space.
    assert "Quorvex" not in await talk.prompt("What is my dog called?", "工作 / 项目", "s-4")
    for space, name, status in (
        ("Work", "holiday", 409),
        ("none such", "x", 404),
        ("Work", "", 422),
        ("Work", "x" * 65, 422),
    ):
        assert (await client.patch(f"{USER}/spaces/{space}", json={"name": name})).status_code == status
    assert (await client.patch("/api/v1/users/u-2/spaces/Work", json={"name": "x"})).status_code == 404
    assert (await client.patch(f"{USER}/spaces/Work", json={"name": "Work"})).status_code == 204


async def test_core_memory_of_a_space_lies_over_what_all_spaces_share(
    talk: Talk, client: httpx.AsyncClient
) -> None:
    for space, content in (
        (None, {"name": "Wang", "hobbies": ["chess"]}),
        ("Novel", {"name": "Ishmael", "hobbies": ["whaling"]}),
    ):
        query = {} if space is None else {"space": space}
        await talk.tell("Hello!", space, f"s-{space}")
        put = await client.put(f"{USER}/core-memory/human", params=query, json={"content": content})
        assert put.status_code == 200, put.text
        own = (await client.get(f"{USER}/core-memory", params=query)).json()["items"]
        assert [each["content"] for each in own] == [content]
    within = await talk.prompt("Who am I?", "Novel", "s-1")
    assert "Ishmael" in within
    assert "Wang" not in within
    assert "chess" in within
    assert "whaling" in within
    outside = await talk.prompt("Who am I?", None, "s-2")
    assert "Wang" in outside
    assert "Ishmael" not in outside
    assert "whaling" not in outside


async def _rows_with(services: Services, word: str) -> list[str]:
    """Names of the tables that hold a word in any row."""
    found = []
    async with services.database.tenant(DEFAULT_TENANT) as connection:
        tables = await (
            await connection.execute("SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 2200")
        ).fetchall()
        for (name,) in tables:
            rows = await connection.execute(
                f'SELECT 1 FROM "{name}" AS each WHERE strpos(each::text, %s) > 0 LIMIT 1', [word]
            )
            if await rows.fetchone():
                found.append(name)
    return found
