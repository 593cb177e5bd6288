"""How a user feels is heard in their own words, told in the next days, and goes with its message."""

from typing import Any

import httpx
import pytest
from psycopg.rows import tuple_row

from services.bootstrap import Services
from services.conversations.turns import Turns
from services.identity.tenants import DEFAULT_TENANT
from services.memory.reading.mood import felt
from tests.support.filing import asked, file, filed, human
from tests.support.model_server import DEFAULT, ModelServer, Reply
from tests.support.talk import Talk
from tests.support.turns import exchange

pytestmark = pytest.mark.settings(llm_model="large", small_llm_model="small")

_SAID = {
    "en": "The surgery is on Thursday. I'm so scared of it, honestly.",
    "zh": "周四要做手术，我真的很害怕，睡不着。",
}
_QUOTES = {"en": "I'm so scared of it", "zh": "我真的很害怕"}


def _mood(language: str, feeling: str = "anxious") -> dict[str, str]:
    return {"feeling": feeling, "about": "the surgery", "quote": _QUOTES[language]}


async def _felt(turns: Turns, services: Services, model: ModelServer, language: str = "en") -> None:
    turn = await exchange(turns, _SAID[language], "I see.")
    model.script(filed(mood=_mood(language)))
    assert await file(services, turn) == 0
    assert await human(services, turn) == {}, "a feeling is no fact"


@pytest.mark.parametrize(
    ("language", "line"),
    [
        ("en", "Earlier today the user was anxious, in their own words: “I'm so scared of it”"),
        ("zh", "今天早些时候用户感到焦虑不安，原话是：“我真的很害怕”"),
    ],
)
async def test_it_is_told_in_another_conversation_and_not_beside_its_message(
    services: Services, client: httpx.AsyncClient, model_server: ModelServer, language: str, line: str
) -> None:
    await _felt(services.turns, services, model_server, language)
    assert "mood" in asked(model_server)[-1].prompt[0][1]
    assert (await client.get("/api/v1/users/u-1/visits")).json()["items"][0]["feelings"] == ["anxious"]
    talk, hello = Talk(client, model_server), {"en": "Hello again.", "zh": "你好，我又来了。"}[language]
    await talk.say(hello, "another")
    assert line in talk.prompt
    await talk.say(hello)
    assert line not in talk.prompt


async def test_it_fades_with_the_visits_that_follow(
    services: Services, client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    await _felt(services.turns, services, model_server)
    talk = Talk(client, model_server)
    shown = []
    for visit in range(5):
        await talk.say("Hello again.", f"visit-{visit}")
        shown.append("anxious" in talk.prompt)
    assert shown == [True, True, True, False, False]


@pytest.mark.parametrize("how", ["forgotten", "off the record", "switched off"])
async def test_it_goes_with_its_message(
    services: Services, client: httpx.AsyncClient, model_server: ModelServer, how: str
) -> None:
    await _felt(services.turns, services, model_server)
    talk = Talk(client, model_server)
    if how == "switched off":
        put = await client.patch("/api/v1/experts/default", json={"parts_off": ["mood"]})
        assert put.status_code == 200, put.text
    else:
        tool = (
            ("forget", {"what": "I'm so scared of it, honestly", "all": True})
            if how == "forgotten"
            else ("leave_out", {"quote": _QUOTES["en"]})
        )
        talk.calls(tool)
        await talk.say(
            "Forget what I said about the surgery." if how == "forgotten" else "Keep that off the record."
        )
    await talk.say("Hello again.", "another")
    assert "scared" not in talk.prompt


@pytest.mark.parametrize(
    ("given", "messages", "fiction"),
    [
        ({"feeling": "hungry", "quote": "I am so very hungry"}, {"u1": "I am so very hungry"}, []),
        ({"feeling": "sad", "quote": "I am sad"}, {"u1": "What a day."}, []),
        ({"feeling": "sad", "quote": "I am very sad"}, {"u1": "My sister wrote: “I am very sad”"}, []),
        ({"feeling": "sad", "quote": "I am very sad"}, {"u1": "I am very sad, says the knight."}, ["u1"]),
        ({"feeling": "", "quote": ""}, {"u1": "I am fine."}, []),
        ("sad", {"u1": "I am very sad"}, []),
    ],
    ids=["unknown", "guessed", "another's", "fiction", "none", "no object"],
)
def test_it_needs_words_of_the_user(given: Any, messages: dict[str, str], fiction: list[str]) -> None:
    assert felt(given, messages, fiction) is None


async def test_where_its_words_stand_is_stored_and_not_the_words(
    services: Services, model_server: ModelServer
) -> None:
    await _felt(services.turns, services, model_server)
    query = "SELECT feeling, feeling_span FROM messages WHERE feeling IS NOT NULL"
    begin = _SAID["en"].index(_QUOTES["en"])
    span = [begin, begin + len(_QUOTES["en"])]
    assert await services.database.fetch(DEFAULT_TENANT, query, {}, tuple_row) == [("anxious", span)]


@pytest.mark.parametrize(
    ("off", "on"),
    [
        ("Please don't keep track of how I feel.", "You may note how I feel again."),
        ("别再记我的情绪了，谢谢。", "以后可以再记我的情绪。"),
    ],
    ids=["en", "zh"],
)
async def test_a_sentence_of_the_user_switches_it_off_and_on_again(
    services: Services, client: httpx.AsyncClient, model_server: ModelServer, off: str, on: str
) -> None:
    await _felt(services.turns, services, model_server)
    talk, user = Talk(client, model_server), "/api/v1/users/u-1"
    for said, is_on in ((off, False), (on, True)):
        turn = await exchange(services.turns, said, "All right.", session_id="switch")
        model_server.script(filed(mood={"feeling": "on" if is_on else "off", "about": "", "quote": said}))
        await file(services, turn)
        assert (await client.get(user)).json()["mood"] is is_on
        feelings = [each["feelings"] for each in (await client.get(f"{user}/visits")).json()["items"]]
        assert (["anxious"] in feelings) is is_on
        model_server.default = DEFAULT
        await talk.say("Hello again.", f"after {is_on}")
        assert ("scared" in talk.prompt) is is_on


async def test_nothing_is_noted_of_a_user_who_has_switched_it_off(
    services: Services, client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    await exchange(services.turns, "Hello.", "Hi.")
    changed = await client.patch("/api/v1/users/u-1", json={"mood": False})
    assert changed.json()["mood"] is False
    await _felt(services.turns, services, model_server)
    query = "SELECT feeling FROM messages WHERE feeling IS NOT NULL"
    assert not await services.database.fetch(DEFAULT_TENANT, query, {}, tuple_row)


@pytest.mark.settings(memory_filing_grade=None)
async def test_a_model_of_unknown_grade_is_asked_once_more_whether_it_is_felt(
    services: Services, model_server: ModelServer
) -> None:
    model_server.agrees = False
    turn = await exchange(services.turns, "If they sacked me I'd be furious, I'm telling you.", "I see.")
    mood = {"feeling": "angry", "about": "a job", "quote": "I'd be furious"}
    model_server.script(filed(mood=mood), Reply(['{"answers": ["no"]}']))
    await file(services, turn)
    query = "SELECT feeling FROM messages WHERE feeling IS NOT NULL"
    assert await services.database.fetch(DEFAULT_TENANT, query, {}, tuple_row) == []


def test_one_word_may_say_it_but_no_part_of_one() -> None:
    given = {"feeling": "sad", "about": "a friend moves away", "quote": "gutted"}
    assert felt(given, {"u1": "leo is moving to perth. gutted"}) is not None
    assert felt(given, {"u1": "the house was being gutteded"}) is None
    assert felt({"feeling": "tired", "quote": "心累"}, {"u1": "改到第十二版，心累"}) is not None
