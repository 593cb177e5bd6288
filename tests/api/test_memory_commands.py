"""What users ask memory to do, over HTTP: done with the turn, told in its answer, and undone again."""

import json
from typing import Any
from uuid import UUID

import httpx
import pytest
from psycopg.rows import tuple_row
from services.memory.agent.store import PLAN, AgentStore
from services.memory.agent.triggers import REMEMBER

from services.bootstrap import Services
from services.identity.tenants import DEFAULT_TENANT
from services.memory.operations import Operation, Trigger
from tests.support.model_server import ModelServer, Reply
from tests.support.retracting import interrupted

pytestmark = pytest.mark.anyio

USER = "/api/v1/users/u-1"


async def _say(client: httpx.AsyncClient, message: str, session: str) -> dict[str, Any]:
    body = {"user_id": "u-1", "session_id": session, "message": message}
    answer = await client.post("/api/v1/chat", json=body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def _found(client: httpx.AsyncClient, query: str) -> str:
    answer = await client.post(f"{USER}/episodes/search", json={"query": query})
    return " ".join(item["content"] for item in answer.json()["items"])


async def _undo(client: httpx.AsyncClient, operation_id: str) -> httpx.Response:
    return await client.post(f"{USER}/memory-operations/{operation_id}/undo")


def _prompt(model_server: ModelServer) -> str:
    return "\n".join(text for _, text in model_server.requests[-1].prompt[:-1])


async def _core(services: Services, **content: Any) -> None:
    owner = await services.memory.core.owner(DEFAULT_TENANT, "u-1", "default")
    await services.memory.core.update(owner, "human", content, Trigger("user"))


async def test_what_is_forgotten_is_gone_from_memory_and_comes_back_when_that_is_undone(
    client: httpx.AsyncClient, services: Services, model_server: ModelServer
) -> None:
    await _say(client, "I have asthma. I live in Porto.", "s-1")
    await _core(services, health=["asthma", "bad knee"], home="Porto")
    answer = await _say(client, "Please forget that I have asthma.", "s-2")
    (change,) = answer["memory_changes"]
    assert change["kind"] == "forget"
    assert change["items"] == ["asthma"]
    assert "asthma" not in (await _found(client, "asthma")).casefold()
    assert "Porto" in await _found(client, "Porto")
    core = (await client.get(f"{USER}/core-memory")).json()["items"][0]["content"]
    assert core == {"health": ["bad knee"], "home": "Porto"}
    await _say(client, "What do you know about my health?", "s-3")
    assert "asthma" not in _prompt(model_server)

    assert (await _undo(client, change["operation_id"])).json()["already"] is False
    assert "asthma" in await _found(client, "asthma")
    core = (await client.get(f"{USER}/core-memory")).json()["items"][0]["content"]
    assert sorted(core["health"]) == ["asthma", "bad knee"]
    assert (await _undo(client, change["operation_id"])).json()["already"] is True


async def test_the_prompt_of_the_command_itself_shows_no_more_what_it_removes(
    client: httpx.AsyncClient, services: Services, model_server: ModelServer
) -> None:
    await _say(client, "我得过肺炎，现在好了。", "s-1")
    await _core(services, health=["得过肺炎", "对花生过敏"])
    await _say(client, "请忘掉我得过肺炎这件事。", "s-1")
    shown = [text for _, text in model_server.requests[-1].prompt[:-1]]
    beginning = "\n".join(shown[:-1]) if len(shown) > 1 else shown[0]
    assert "花生" in beginning
    assert "得过肺炎" not in beginning.split("<memory_changes>")[0]
    await _say(client, "今天天气不错。", "s-1")
    assert "肺炎" not in _prompt(model_server)


@pytest.mark.parametrize(
    ("told", "said_last", "order", "gone", "kept"),
    [
        (
            "The code for our bike shed is 5520.",
            "I painted the fence green on Sunday.",
            "You shouldn't be keeping the bike shed code I mentioned before, delete it.",
            "5520",
            "fence",
        ),
        ("我前室友叫冯璐。", "我周日刷了篱笆。", "以前跟你说过的那个前室友，别留着了，删掉。", "冯璐", "篱笆"),
    ],
)
async def test_what_is_named_goes_and_not_what_was_said_last(
    told: str, said_last: str, order: str, gone: str, kept: str, client: httpx.AsyncClient
) -> None:
    await _say(client, told, "s-1")
    await _say(client, said_last, "s-2")
    (change,) = (await _say(client, order, "s-2"))["memory_changes"]
    assert change["kind"] == "forget"
    assert gone not in await _found(client, gone)
    assert kept in await _found(client, kept)


async def test_a_conversation_keeps_its_text_whatever_memory_forgets(client: httpx.AsyncClient) -> None:
    told = await _say(client, "My PIN is 7741.", "s-1")
    await _say(client, "Forget what I just said.", "s-1")
    messages = (await client.get(f"/api/v1/conversations/{told['conversation_id']}/messages")).json()["items"]
    assert [message["content"] for message in messages if message["role"] == "user"] == [
        "My PIN is 7741.",
        "Forget what I just said.",
    ]
    assert "7741" not in await _found(client, "PIN")


async def test_what_is_off_the_record_is_known_in_its_conversation_and_nowhere_else(
    client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    answer = await _say(client, "Off the record: I am leaving the company in May.", "s-1")
    assert [change["kind"] for change in answer["memory_changes"]] == ["do_not_remember"]
    await _say(client, "How do I tell my team?", "s-1")
    assert "leaving the company" in _prompt(model_server)
    await _say(client, "What happens in May with the company?", "s-2")
    assert "leaving the company" not in _prompt(model_server)
    assert "leaving" not in await _found(client, "leaving the company")
    await _undo(client, answer["memory_changes"][0]["operation_id"])
    assert "leaving" in await _found(client, "leaving the company")


async def test_a_correction_replaces_what_was_said_and_undone_it_stands_again(client: httpx.AsyncClient) -> None:
    await _say(client, "My flight to Oslo leaves on Tuesday.", "s-1")
    answer = await _say(client, "Sorry, I meant Thursday.", "s-1")
    assert [change["kind"] for change in answer["memory_changes"]] == ["correct"]
    found = await _found(client, "flight to Oslo")
    assert "Thursday" in found
    assert "Tuesday" not in found
    await _undo(client, answer["memory_changes"][0]["operation_id"])
    assert "Tuesday" in await _found(client, "flight to Oslo")


async def test_a_standing_wish_and_a_fact_are_kept_and_can_be_taken_back(client: httpx.AsyncClient) -> None:
    wish = await _say(client, "以后用法语回答我。", "s-1")
    fact = await _say(client, "记住：备用钥匙在花盆底下。", "s-1")
    core = (await client.get(f"{USER}/core-memory")).json()["items"][0]["content"]
    assert core["wishes"] == ["以后用法语回答我"]
    assert core["facts"] == ["备用钥匙在花盆底下"]
    for answer in (wish, fact):
        assert (await _undo(client, answer["memory_changes"][0]["operation_id"])).status_code == 200
    assert (await client.get(f"{USER}/core-memory")).json()["items"][0]["content"] == {}


async def test_what_matches_nothing_is_said_and_changes_nothing(client: httpx.AsyncClient) -> None:
    await _say(client, "I live in Turin.", "s-1")
    answer = await _say(client, "Forget that I have a yacht.", "s-1")
    (change,) = answer["memory_changes"]
    assert change["operation_id"] is None
    assert "Nothing matching" in change["summary"]
    assert "Turin" in await _found(client, "Turin")


async def test_later_changes_of_a_message_are_undone_first(client: httpx.AsyncClient) -> None:
    await _say(client, "I have asthma. I play the tuba. I live in Porto.", "s-1")
    first = await _say(client, "Forget that I have asthma.", "s-2")
    second = await _say(client, "Forget that I play the tuba.", "s-2")
    earlier, later = (each["memory_changes"][0]["operation_id"] for each in (first, second))
    refused = await _undo(client, earlier)
    assert refused.status_code == 409
    assert later in refused.json()["detail"]
    assert (await _undo(client, later)).status_code == 200
    assert (await _undo(client, earlier)).status_code == 200
    assert "tuba" in await _found(client, "asthma tuba Porto")


async def test_what_cannot_be_undone_says_why(client: httpx.AsyncClient, services: Services) -> None:
    await _say(client, "Hello.", "s-1")
    await _core(services, home="Porto")
    await client.delete(f"{USER}/core-memory/human")
    operations = (await client.get(f"{USER}/memory-operations")).json()["items"]
    deleted = next(each for each in operations if each["type"] == "core_memory_delete")
    refused = await _undo(client, deleted["id"])
    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
    assert "not kept" in refused.json()["detail"]
    missing = await _undo(client, "00000000-0000-7000-8000-000000000009")
    assert missing.status_code == 404


async def test_a_change_of_core_memory_is_undone_item_by_item(
    client: httpx.AsyncClient, services: Services
) -> None:
    await _say(client, "Hello.", "s-1")
    await _core(services, allergies=["peanuts"])
    await _core(services, allergies=["cats"])
    await _core(services, home="Porto")
    operations = (await client.get(f"{USER}/memory-operations")).json()["items"]
    cats = next(
        each for each in operations if "cats" in str(each["new_value"]) and "home" not in each["new_value"]
    )
    assert (await _undo(client, cats["id"])).status_code == 200
    core = (await client.get(f"{USER}/core-memory")).json()["items"][0]["content"]
    assert core == {"allergies": ["peanuts"], "home": "Porto"}


@pytest.mark.parametrize(
    "message",
    ["I forgot my umbrella.", "别忘了带伞。", "Do you remember my name?", "从现在起的三天里天气如何？"],
)
async def test_a_mention_is_no_command(client: httpx.AsyncClient, message: str) -> None:
    assert (await _say(client, message, "s-1"))["memory_changes"] == []


async def test_what_may_be_a_command_is_held_until_a_model_has_decided(
    client: httpx.AsyncClient, services: Services, model_server: ModelServer
) -> None:
    answer = await _say(client, "I might sell the bakery. This is confidential.", "s-1")
    assert answer["memory_changes"] == []
    assert "bakery" not in await _found(client, "bakery")
    turn_id = UUID(answer["turn_id"])
    model_server.script(Reply(['{"command": "none"}']))
    assert await services.command_review.decide(DEFAULT_TENANT, turn_id) == "none"
    assert "bakery" in await _found(client, "bakery")


async def test_a_held_turn_is_left_out_where_a_model_says_so(
    client: httpx.AsyncClient, services: Services, model_server: ModelServer
) -> None:
    answer = await _say(client, "我可能要卖掉面包店，你心里有数就行。", "s-1")
    model_server.script(Reply(['{"command": "leave_out"}']))
    assert await services.command_review.decide(DEFAULT_TENANT, UUID(answer["turn_id"])) == "leave_out"
    assert "面包店" not in await _found(client, "面包店")
    operations = (await client.get(f"{USER}/memory-operations")).json()["items"]
    change = next(each for each in operations if each["type"] == "memory_command")
    await _undo(client, change["id"])
    assert "面包店" in await _found(client, "面包店")


@pytest.mark.parametrize(
    ("told", "said", "holds", "gone"),
    [
        (
            "I'm allergic to peanuts and cats.",
            "Turns out I'm not allergic to cats after all.",
            "peanuts",
            "and cats",
        ),
        ("我对花生和虾过敏。", "更正一下，我对虾不过敏。", "花生", "花生和虾"),
        ("My cat Biscuit is nine.", "You have the wrong age for Biscuit, it's eleven.", "eleven", "is nine"),
        ("I live in Oslo.", "I moved, I'm in Bergen now, please correct that.", "Bergen", "in Oslo"),
    ],
)
async def test_what_is_corrected_holds_and_the_old_value_is_gone(
    client: httpx.AsyncClient, told: str, said: str, holds: str, gone: str
) -> None:
    await _say(client, told, "s-1")
    answer = await _say(client, said, "s-2")
    assert [change["kind"] for change in answer["memory_changes"]] == ["correct"]
    found = await _found(client, told)
    assert holds in found
    assert gone not in found


async def test_a_correction_of_what_is_not_held_changes_nothing(client: httpx.AsyncClient) -> None:
    await _say(client, "I live in Turin.", "s-1")
    answer = await _say(client, "Correction: the yacht is called Iris, not Isis.", "s-2")
    assert [change for change in answer["memory_changes"] if change["operation_id"]] == []
    assert "I live in Turin." in await _found(client, "Turin")


async def test_an_export_keeps_the_mark_and_an_import_honours_it(client: httpx.AsyncClient) -> None:
    await _say(client, "My PIN is 7741.", "s-1")
    await _say(client, "Forget what I just said.", "s-1")
    exported = (await client.get(f"{USER}/export")).text
    lines = [json.loads(line) for line in exported.splitlines()]
    assert [line["retracted"] for line in lines if "7741" in line.get("content", "")] == [True]
    await client.delete(USER)
    headers = {"Content-Type": "application/x-ndjson"}
    taken_in = await client.post("/api/v1/import", content=exported, headers=headers)
    assert taken_in.status_code == 200, taken_in.text
    assert "7741" not in await _found(client, "PIN 7741")


async def test_of_two_things_told_together_the_other_stays_known(
    client: httpx.AsyncClient, services: Services
) -> None:
    await _say(client, "I'm allergic to peanuts and cats.", "s-1")
    await _core(services, allergies=["peanuts and cats"])
    answer = await _say(client, "Please forget the cats.", "s-1")
    (change,) = answer["memory_changes"]
    assert change["items"] == ["the cats"]
    found = await _found(client, "allergic to peanuts")
    assert "peanuts" in found
    assert "cats" not in found
    core = (await client.get(f"{USER}/core-memory")).json()["items"][0]["content"]
    assert core == {"allergies": ["peanuts"]}
    assert (await _undo(client, change["operation_id"])).status_code == 200
    assert "cats" in await _found(client, "allergic to peanuts")
    core = (await client.get(f"{USER}/core-memory")).json()["items"][0]["content"]
    assert core == {"allergies": ["peanuts and cats"]}


@pytest.mark.parametrize("item", ["虾", "对虾过敏"])
async def test_an_item_is_found_by_its_field_and_its_characters(
    client: httpx.AsyncClient, services: Services, item: str
) -> None:
    await _say(client, "我对虾过敏。", "s-1")
    await _core(services, allergies=[item, "花生"], hobbies=["钓虾"])
    answer = await _say(client, "请忘掉我对虾过敏这件事。", "s-2")
    assert [change["items"] for change in answer["memory_changes"]] == [[item]]
    core = (await client.get(f"{USER}/core-memory")).json()["items"][0]["content"]
    assert core == {"allergies": ["花生"], "hobbies": ["钓虾"]}


async def test_plain_news_replaces_what_was_told_before_and_undone_it_stands_again(
    client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    await _say(client, "I have the dentist on Tuesday at 9. My sister plays the tuba.", "s-1")
    answer = await _say(client, "The dentist rang, it's Thursday at 4 then. What can I eat before?", "s-2")
    (change,) = answer["memory_changes"]
    assert change["kind"] == "correct"
    found = await _found(client, "dentist")
    assert "Thursday" in found
    assert "Tuesday" not in found
    assert "tuba" in await _found(client, "tuba")
    await _say(client, "When is the dentist?", "s-3")
    assert "Tuesday at 9" not in _prompt(model_server)
    assert (await _undo(client, change["operation_id"])).status_code == 200
    assert "Tuesday" in await _found(client, "dentist")


async def test_what_is_forgotten_may_be_named_in_other_words(client: httpx.AsyncClient) -> None:
    await _say(client, "I'm on sertraline since March.", "s-1")
    await _say(client, "I live out near Hexham.", "s-1")
    answer = await _say(client, "Please forget about my medication.", "s-2")
    assert [change["kind"] for change in answer["memory_changes"]] == ["forget"]
    assert "sertraline" not in await _found(client, "sertraline")
    assert "Hexham" in await _found(client, "Hexham")


@pytest.mark.parametrize(
    ("told", "correction", "holds", "gone"),
    [
        ("My appointment with the vet is at eight on Monday.", "Sorry, I meant nine.", "nine on Monday", "eight"),
        ("我周三下午两点去看牙。", "说错了，是三点。", "周三下午三点", "两点"),
        ("The choir meets on Tuesday at 9.", "They moved it to Thursday at 4.", "Thursday at 4", "Tuesday"),
    ],
)
async def test_a_slip_in_what_was_said_last_is_corrected(
    client: httpx.AsyncClient, told: str, correction: str, holds: str, gone: str
) -> None:
    await _say(client, told, "s-1")
    (change,) = (await _say(client, correction, "s-1"))["memory_changes"]
    assert change["kind"] == "correct"
    found = await _found(client, told)
    assert holds in found
    assert gone not in found


@pytest.mark.parametrize(
    ("told", "items", "denial", "left"),
    [
        (
            "I'm allergic to peanuts, shellfish and kiwi.",
            ["peanuts", "shellfish", "kiwi"],
            "I'm not allergic to kiwi any more.",
            ["peanuts", "shellfish"],
        ),
        ("我对花生、虾和芒果过敏。", ["花生", "虾", "芒果"], "我现在对虾不过敏了。", ["花生", "芒果"]),
    ],
)
async def test_what_is_denied_of_a_list_leaves_the_rest_of_it(
    client: httpx.AsyncClient, services: Services, told: str, items: list[str], denial: str, left: list[str]
) -> None:
    await _say(client, told, "s-1")
    await _core(services, allergies=items)
    (change,) = (await _say(client, denial, "s-1"))["memory_changes"]
    assert change["kind"] == "correct"
    core = (await client.get(f"{USER}/core-memory")).json()["items"][0]["content"]
    assert core == {"allergies": left}


async def test_a_date_that_was_worked_out_from_a_corrected_value_goes(
    client: httpx.AsyncClient, services: Services
) -> None:
    told = await _say(client, "We are flying to Rome in May. I bake bread.", "s-1")
    await services.memory_agent.remember(DEFAULT_TENANT, UUID(told["turn_id"]))
    await _say(client, "No, we are flying to Rome in June.", "s-1")
    core = (await client.get(f"{USER}/core-memory")).json()["items"][0]["content"]
    assert "-05" not in str(core)


_JOBS = "SELECT count(*) FROM procrastinate_jobs WHERE task_name = %(task)s AND args->>'turn_id' = %(turn_id)s"


@pytest.mark.parametrize(
    ("command", "left"),
    [("sorry, I meant York", {"home": "York"}), ("Please forget that I moved to Leeds.", {})],
    ids=["corrected", "forgotten"],
)
async def test_what_is_filed_while_a_command_changes_it_is_filed_again(
    client: httpx.AsyncClient, services: Services, model_server: ModelServer, command: str, left: dict[str, str]
) -> None:
    turn = UUID((await _say(client, "I moved to Leeds.", "s-1"))["turn_id"])
    store = AgentStore(services.database, services.memory.operations)
    exchange = await store.exchange(DEFAULT_TENANT, turn)
    assert exchange is not None
    trigger = Trigger("filing", exchange.message_id, exchange.conversation_id, turn, details={"call": "1"})

    async def file() -> None:
        """What the agent does about the first message, after the command was understood."""
        async with services.database.tenant(DEFAULT_TENANT) as connection:
            await services.memory.operations.append(
                connection,
                tenant_id=DEFAULT_TENANT,
                user_id=exchange.user_id,
                operation=Operation(PLAN, results={"by": "rules", "operations": 1}),
                trigger=trigger,
            )
        await services.memory.core.update(exchange.owner, "human", {"home": "Leeds"}, trigger)

    model_server.default = interrupted(file, lambda _: Reply(["All right."]))
    (change,) = (await _say(client, command, "s-1"))["memory_changes"]
    assert change["operation_id"]
    core = (await client.get(f"{USER}/core-memory")).json()["items"]
    assert core[0]["content"] == {"home": "Leeds"}
    values = {"task": REMEMBER, "turn_id": str(turn)}
    assert await services.database.fetch(DEFAULT_TENANT, _JOBS, values, tuple_row) == [(2,)]
    filed = {"operations": [{"op": "add", "field": "home", "text": "York"}]}
    model_server.default = Reply([json.dumps(filed)])
    await services.memory_agent.remember(DEFAULT_TENANT, turn)
    (section,) = (await client.get(f"{USER}/core-memory")).json()["items"]
    assert section["content"] == left
    assert await services.memory_agent.remember(DEFAULT_TENANT, turn) == 0


async def test_what_does_not_hold_today_stays_known(client: httpx.AsyncClient, services: Services) -> None:
    await _say(client, "I live in London.", "s-1")
    await _core(services, home="London")
    assert (await _say(client, "I'm not in London this week, what should I pack for Oslo?", "s-1"))[
        "memory_changes"
    ] == []
    assert "London" in str((await client.get(f"{USER}/core-memory")).json())
