"""What was played in an announced game or story is not recalled; undoing or the user's word brings it back."""

from typing import Any

import httpx
import pytest

from services.bootstrap import Services
from services.identity.tenants import DEFAULT_TENANT
from services.memory.filing.story import StoryTold, story_of_answer
from services.memory.model import ChangeRequest
from state.turn import OpenTurn
from tests.support.filing import add, file, filed, human
from tests.support.model_server import ModelServer
from tests.support.turns import exchange

PLAYED = {
    "en": (
        "I keep a cat.",
        "Let us play: I am a hermit.",
        "I live on Mount Hua and I never drink wine.",
        "Game over.",
    ),
    "zh": ("我养了一只猫。", "我们来玩角色扮演：我是隐士。", "我住在华山，我从不喝酒。", "游戏结束。"),
}
QUESTION = {"en": "Where do I live, and do I drink wine on Mount Hua?", "zh": "我住在哪里？华山上我喝酒吗？"}


async def _play(services: Services, language: str) -> OpenTurn:
    for message in PLAYED[language]:
        turn = await exchange(services.turns, message, "Good." if language == "en" else "好。")
    return turn


async def _recalled(client: httpx.AsyncClient, language: str) -> str:
    query = {"query": QUESTION[language] + PLAYED[language][0]}
    found = await client.post("/api/v1/users/u-1/episodes/search", json=query)
    return " ".join(each["content"] for each in found.json()["items"])


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize(
    "story",
    [{"from": "u2", "to": "u4"}, ["u2", "u3", "u4"], "u2-u4", {"start": "[u2]", "end": "a4", "goes_on": False}],
)
async def test_what_was_played_is_not_recalled_and_nothing_else_is_held(
    services: Services, client: httpx.AsyncClient, model_server: ModelServer, language: str, story: Any
) -> None:
    turn = await _play(services, language)
    model_server.default = filed(story=story)
    await file(services, turn)
    found = await _recalled(client, language)
    for played in PLAYED[language][1:]:
        assert played not in found
    assert PLAYED[language][0] in found
    await exchange(services.turns, QUESTION[language], "…", session_id="later")
    assert QUESTION[language] in await _recalled(client, language), "the story is over"


@pytest.mark.parametrize("language", ["en", "zh"])
async def test_a_story_that_goes_on_holds_its_turns_as_they_come(
    services: Services, client: httpx.AsyncClient, model_server: ModelServer, language: str
) -> None:
    cat, begins, played, ends = PLAYED[language]
    turn = await exchange(services.turns, begins, "Good.")
    model_server.default = filed(story={"from": "u1", "to": ""})
    await file(services, turn)
    await exchange(services.turns, played, "Good.")
    await exchange(services.turns, cat, "Good.", session_id="another")
    found = await _recalled(client, language)
    assert (played in found, cat in found) == (False, True)
    model_server.default = filed(story=True)
    await file(services, turn)
    assert played not in await _recalled(client, language)
    after = await exchange(services.turns, ends, "Good.")
    await exchange(services.turns, QUESTION[language], "Well.")
    model_server.default = filed(add("x", "y"), story={"from": "", "to": "u1"})
    await file(services, after)
    found = await _recalled(client, language)
    assert (ends in found, played in found, QUESTION[language] in found) == (False, False, True)
    assert await human(services, turn) == {}


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("way", ["undo", "the model"])
async def test_it_comes_back(
    services: Services, client: httpx.AsyncClient, model_server: ModelServer, language: str, way: str
) -> None:
    turn = await _play(services, language)
    model_server.default = filed(story={"from": "u2", "to": ""})
    await file(services, turn)
    asked = await exchange(services.turns, QUESTION[language], "…", session_id="later")
    [told] = asked.told
    assert (told["kind"], told.get("made_by")) == ("do_not_remember", "filing")
    if way == "undo":
        undone = await client.post(f"/api/v1/users/u-1/memory-operations/{told['operation_id']}/undo")
        assert undone.status_code == 200, undone.text
    else:
        request = ChangeRequest.of_turn(asked, "user", None)
        [(_, operations), *_] = await services.memory.changes.left_out(request, PLAYED[language][2][:9])
        await services.memory.undo.undo(DEFAULT_TENANT, "u-1", operations[0])
    assert PLAYED[language][2] in await _recalled(client, language)
    next_turn = await exchange(services.turns, PLAYED[language][0] + " 2", "Good.")
    assert PLAYED[language][0] + " 2" in await _recalled(client, language), "no story goes on"
    assert next_turn.conversation_id == turn.conversation_id


@pytest.mark.parametrize(
    "story", [True, {"from": "", "to": "u4"}, {"from": "u9", "to": ""}, {"from": "u2", "to": "u9"}, []]
)
async def test_a_story_of_which_nobody_knows_where_it_is_holds_nothing(
    services: Services, client: httpx.AsyncClient, model_server: ModelServer, story: Any
) -> None:
    turn = await _play(services, "en")
    model_server.default = filed(story=story)
    await file(services, turn)
    found = await _recalled(client, "en")
    assert all(each in found for each in PLAYED["en"])


def test_every_way_of_saying_it_is_read() -> None:
    ranged = StoryTold("u2", "u5")
    for given in ({"from": "u2", "to": "u5"}, {"Start": "[u2]", "until": "U5"}, "u2-u5", "from u2 to u5"):
        assert story_of_answer(given) == ranged, given
    assert story_of_answer({"from": "u2", "to": ""}) == StoryTold("u2", goes_on=True) == story_of_answer("u2")
    assert story_of_answer(["u2", "u3"]) == StoryTold(only=("u2", "u3"))
    nothing: Any
    for nothing in (False, None, "", {}, [], {"from": "", "to": ""}, "none", 7):
        assert not story_of_answer(nothing).is_told, nothing
