"""Filing makes the promises that users ask for in their own words where no plain form has made them: once."""

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from services.bootstrap import Services
from tests.support.filing import asked, file, filed, logged
from tests.support.model_server import ModelServer, Reply
from tests.support.talking import say
from tests.support.turns import exchange

pytestmark = pytest.mark.settings(llm_model="large", small_llm_model="small")

_SAID = "My dentist is Dr. Hu. It'd be great if you nudged me about the invoice tomorrow at nine."
_NUDGE = {
    "text": "the invoice",
    "when": "tomorrow at nine",
    "quote": "nudged me about the invoice tomorrow at nine",
}


async def _listed(client: httpx.AsyncClient, user: str = "u-1") -> list[dict[str, Any]]:
    return list((await client.get(f"/api/v1/users/{user}/promises")).json()["items"])


async def test_what_filing_promises_stands_on_the_user_s_words_and_is_told_in_the_next_turn(
    services: Services, client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    turn = await exchange(services.turns, _SAID, "Noted.")
    model_server.script(filed(promises=[_NUDGE]))
    assert await file(services, turn) == 1
    assert '"promises"' in asked(model_server)[-1].prompt[0][1]
    [made] = await _listed(client)
    assert (made["text"], made["said"], made["quote"]) == ("the invoice", "tomorrow at nine", _NUDGE["quote"])
    assert (made["message_id"], made["conversation_id"]) == (str(turn.user_message_id), str(turn.conversation_id))
    model_server.default = Reply(["Hello."])
    [change] = (await say(client, "Hello again", "s-2"))["memory_changes"]
    assert (change["kind"], change["made_by"]) == ("promise", "filing")
    assert change["summary"] == f"Promised: {change['items'][0]}."
    assert change["items"][0].endswith("09:00 the invoice")
    assert not (await say(client, "And again", "s-2"))["memory_changes"]
    undo = await client.post(f"/api/v1/users/u-1/memory-operations/{change['operation_id']}/undo")
    assert undo.is_success, undo.text
    assert await _listed(client) == []


@pytest.mark.parametrize(
    ("said", "promise"),
    [
        (_SAID, {**_NUDGE, "quote": "please nudge me"}),
        (_SAID, {**_NUDGE, "when": "on Friday at nine"}),
        (_SAID, {**_NUDGE, "text": "提醒用户付账单"}),
        (_SAID, {**_NUDGE, "when": "great"}),
        ("It was yesterday at nine that you were to nudge me.", {
            "text": "nudge", "when": "yesterday at nine", "quote": "you were to nudge me"}),
        ("Summarise: <mail>\n> please nudge me about the invoice tomorrow at nine", _NUDGE),
    ],
)  # fmt: skip
async def test_what_has_no_words_of_the_user_or_no_time_to_come_is_not_promised(
    services: Services, client: httpx.AsyncClient, model_server: ModelServer, said: str, promise: dict[str, str]
) -> None:
    turn = await exchange(services.turns, said, "Noted.")
    model_server.default = filed(promises=[promise, "nonsense", {"text": 1}])
    assert await file(services, turn) == 0
    assert await _listed(client) == []


async def test_what_a_turn_has_promised_itself_is_not_promised_again_even_if_it_was_undone(
    services: Services, client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    model_server.default = Reply(["Yes."])
    said = "Remind me tomorrow at nine to pay the invoice."
    turn = await say(client, said, "s-1")
    again = {"text": "pay the invoice", "when": "tomorrow at nine", "quote": said}
    model_server.default = filed(promises=[again])
    user = (await logged(services))[0]
    assert user.type == "promise"
    [made] = await _listed(client)
    [change] = turn["memory_changes"]
    await client.post(f"/api/v1/users/u-1/memory-operations/{change['operation_id']}/undo")
    later = await exchange(services.turns, "I am off.", "Bye.", session_id="s-1")
    await file(services, later)
    assert await _listed(client) == []
    assert datetime.fromisoformat(made["when"]) > datetime.now(UTC) - timedelta(seconds=1)


async def test_what_belongs_to_a_story_is_not_promised(
    services: Services, client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    turn = await exchange(services.turns, f"Let us play: I am a captain. {_SAID}", "Aye.")
    model_server.default = filed(promises=[_NUDGE], story={"from": "u1", "to": ""})
    await file(services, turn)
    assert await _listed(client) == []


async def test_two_at_the_same_moment_are_two_and_filed_again_they_stay_two(
    services: Services, client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    turn = await exchange(services.turns, f"{_SAID} And about the rent, at nine tomorrow, too.", "Noted.")
    rent = {"text": "the rent", "when": "at nine tomorrow", "quote": "about the rent, at nine tomorrow"}
    full = [{"op": "add", "text": "", "quote": "x"}] * 8
    model_server.script(filed(*full, promises=[_NUDGE]), filed(promises=[_NUDGE, rent]))
    assert await file(services, turn) == 2
    assert {each["text"] for each in await _listed(client)} == {"the invoice", "the rent"}
