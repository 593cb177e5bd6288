"""Filing over real stores: what a model wants remembered, checked by the user's own words and carried out once."""

import asyncio
import json
import threading
from datetime import UTC, datetime

import httpx
import pytest

from services.bootstrap import Services
from services.context.sources.already_said import AlreadySaid
from services.errors import ModelFailed
from services.identity.tenants import DEFAULT_TENANT
from services.memory.episodes.episode import Scope
from services.memory.model import ChangeRequest
from services.memory.operations import Trigger
from services.memory.waiting import FILE_MEMORY
from tests.support.core_memory import know
from tests.support.filing import (
    add,
    asked,
    file,
    filed,
    filing_for,
    human,
    logged,
    owner,
    remove,
    replace,
    waiting,
    written,
)
from tests.support.jobs import defer, hurried_queue, statuses, until
from tests.support.model_server import ModelServer, Received, Reply
from tests.support.talks import new_expert
from tests.support.turns import exchange
from tests.support.upkeep import change

pytestmark = pytest.mark.settings(llm_model="large", small_llm_model="small")


async def test_one_call_covers_all_that_was_said_and_names_the_message_of_each_statement(
    services: Services, model_server: ModelServer
) -> None:
    first = await exchange(services.turns, "I moved to Lisbon last week.", "How exciting!")
    second = await exchange(services.turns, "And I decided to learn Portuguese.", "Good luck!")
    model_server.script(
        filed(
            add("lives in Lisbon", "I moved to Lisbon", "home"),
            add("decided to learn Portuguese", "I decided to learn Portuguese", "events"),
        )
    )
    assert await file(services, first) == 2
    assert await human(services, first) == {"home": "lives in Lisbon"}
    assert await written(services) == ["decided to learn Portuguese"]
    assert len(asked(model_server)) == 1
    assert await file(services, first) == 0
    assert len(asked(model_server)) == 1, "what is filed is not read again"
    of_message = {
        each.trigger.get("message_id") for each in await logged(services) if each.type == "memory_command"
    }
    assert of_message == {str(first.user_message_id), str(second.user_message_id)}
    [record] = [each for each in await logged(services) if each.type == "memory_filing"]
    assert record.results["operations"] == 2
    assert record.results["turns"] == [str(first.turn_id), str(second.turn_id)]


async def test_a_recall_knows_what_core_memory_was_made_of_a_message(
    services: Services, model_server: ModelServer
) -> None:
    turn = await exchange(services.turns, "I moved to Lisbon last week.", "How exciting!")
    model_server.script(filed(add("lives in Lisbon", "I moved to Lisbon", "home")))
    assert await file(services, turn) == 1
    scope = Scope(turn.tenant_id, turn.user_id, turn.expert_id)
    found = await services.memory.recall.search(scope, "Where do I live?", now=datetime.now(UTC))
    said, answer = (found.units[str(each)] for each in (turn.user_message_id, turn.answer_message_id))
    assert AlreadySaid(["- home: lives in Lisbon"]).has_filed(said)
    assert not AlreadySaid(["- home: lives in Porto"]).has_filed(said)
    assert not AlreadySaid(["- home: lives in Lisbon"]).has_filed(answer)


async def test_the_model_sees_the_messages_what_came_before_what_was_done_and_the_nearest_memories(
    services: Services, model_server: ModelServer
) -> None:
    model_server.default = filed()
    first = await exchange(services.turns, "Anna is visiting us.", "How nice, when?")
    assert await file(services, first) == 0
    await know(services, owner(first), "human", {"family": ["sister Anna, 30"]}, Trigger("user"))
    await exchange(services.turns, "My lemon trees died.", "Sorry.", user_id="u-2", session_id="other")
    turn = await exchange(services.turns, "On Sunday. She is 31 now.\n> She is rich, forget her.", "Lovely.")
    assert await file(services, turn) == 0
    system, prompt = (text for _, text in asked(model_server)[-1].prompt)
    assert "quote" in system
    assert "[m1] (family, " in prompt
    assert "sister Anna, 30" in prompt
    assert "user: Anna is visiting us." in prompt
    assert "> On Sunday. She is 31 now." in prompt
    assert "> […]" in prompt
    assert "rich" not in prompt, "what others wrote is not shown"
    assert "lemon" not in prompt


FOUNDED = [
    ("粘，我下夜班它就趴我胸口睡。对了我对青霉素过敏，你记一下", "对青霉素过敏", "我对青霉素过敏"),
    (
        "not till the new year I think, for the house",
        "Buying a house in Otley, exchange not before 2027",
        "not till the new year",
    ),
    ("最近想学German", "Wants to learn German", "想学German"),
]


async def test_translations_resolved_names_and_dates_pass(services: Services, model_server: ModelServer) -> None:
    for number, (said, text, quote) in enumerate(FOUNDED):
        user = f"u-{number}"
        model_server.script(filed(add(text, quote, "facts")))
        turn = await exchange(services.turns, said, "Noted. / 好的。", user_id=user, session_id=user)
        assert await file(services, turn) == 1, text
        assert await human(services, turn) == {"facts": [text]}
        assert not await waiting(services, user), text


UNFOUNDED: list[object] = [
    [add("Loves opera", "I love opera")],
    [remove("m1", "she is gone")],
    [{"op": "leave_out", "message": "u1", "quote": "keep this between us"}],
    [remove("m1", "I drink tea")],
    [{"op": "end", "id": "m1", "date": "2026-01-01", "quote": "since January"}],
    [{"op": "remove", "id": "m7", "quote": "I drink tea"}],
    "no JSON at all",
    {"operations": "none"},
]


async def test_what_rests_on_nothing_that_was_said_changes_nothing_and_is_not_asked(
    services: Services, model_server: ModelServer
) -> None:
    for number, operations in enumerate(UNFOUNDED):
        user = f"u-{number}"
        turn = await exchange(services.turns, "I drink tea.", "Nice.", user_id=user, session_id=user)
        await know(services, owner(turn), "human", {"family": ["sister Anna"]}, Trigger("user"))
        text = operations if isinstance(operations, str) else json.dumps({"operations": operations})
        model_server.default = Reply([text])
        earlier = len(asked(model_server))
        assert await file(services, turn) == 0, text
        assert await human(services, turn) == {"family": ["sister Anna"]}, text
        assert not await waiting(services, user), text
        before = len(asked(model_server))
        assert before - earlier <= 2, "an unusable answer is asked for once more"
        assert await file(services, turn) == 0
        assert len(asked(model_server)) == before, "the turn counts as filed"


async def test_a_model_that_fails_leaves_the_turns_for_later(
    services: Services, model_server: ModelServer
) -> None:
    turn = await exchange(services.turns, "I drink tea.", "Nice.")
    model_server.default = Reply(status=500)
    with pytest.raises(ModelFailed):
        await file(services, turn)
    model_server.default = filed(add("Drinks tea", "I drink tea", "preferences"))
    assert await file(services, turn) == 1


async def test_a_memory_is_replaced_and_ended_by_its_short_id_and_asked_about_where_it_is_to_be_forgotten(
    services: Services, model_server: ModelServer
) -> None:
    turn = await exchange(
        services.turns, "My dentist moved to Bath, I left Zephyr, and forget my old phone.", "Done."
    )
    content = {"facts": ["dentist in Leeds", "phone is a Nokia", "works at Zephyr"]}
    await know(services, owner(turn), "human", content, Trigger("user"))

    def answer(request: Received) -> Reply:
        lines = request.prompt[-1][1].splitlines()

        def key(word: str) -> str:
            return next(line[1 : line.index("]")] for line in lines if line.startswith("[m") and word in line)

        end = {"op": "end", "id": key("Zephyr"), "date": "2026-11-20", "quote": "I left Zephyr"}
        gone = remove(key("Nokia"), "forget my old phone")
        return filed(replace(key("Leeds"), "dentist in Bath", "My dentist moved to Bath"), gone, end)

    model_server.default = answer
    assert await file(services, turn) == 2
    assert set((await human(services, turn))["facts"]) == {"phone is a Nokia", "dentist in Bath"}
    assert [each.text for each in await services.memory.changes.finder.written(owner(turn))] == [
        "works at Zephyr (until 2026-11-20)"
    ]
    assert [(each.kind, each.text) for each in await waiting(services)] == [("forget", "phone is a Nokia")]


async def test_a_statement_about_something_else_replaces_nothing(
    services: Services, model_server: ModelServer
) -> None:
    turn = await exchange(services.turns, "Tom's birthday is 2 December.", "Noted.")
    content = {"allergies": ["allergic to peanuts"], "facts": ["works at Northbank"]}
    await know(services, owner(turn), "human", content, Trigger("user"))
    quote = "Tom's birthday is 2 December"
    model_server.default = filed(
        replace("m1", "Tom's birthday is on 2 December", quote),
        {"op": "end", "id": "m2", "date": "2026-12-02", "quote": quote},
    )
    assert await file(services, turn) == 1
    facts = ["works at Northbank", "Tom's birthday is on 2 December"]
    assert await human(services, turn) == {"allergies": ["allergic to peanuts"], "facts": facts}
    # Told otherwise in another language, nobody can tell whether it is the same.
    other = await exchange(services.turns, "我在海风公司上班", "好。")
    model_server.default = filed(replace("m1", "在海风公司上班", "我在海风公司上班"))
    assert await file(services, other) == 0
    assert [each.text for each in await waiting(services)] == ["在海风公司上班"]


async def test_a_pinned_memory_stays(services: Services, model_server: ModelServer) -> None:
    turn = await exchange(services.turns, "Forget my allergy.", "Gone.")
    await know(services, owner(turn), "human", {"allergies": ["allergic to peanuts"]}, Trigger("user"))
    await services.memory.pins.set_on_value(owner(turn), "human", "allergies", "allergic to peanuts", pinned=True)
    model_server.default = filed(remove("m1", "Forget my allergy"))
    assert await file(services, turn) == 0
    assert await human(services, turn) == {"allergies": ["allergic to peanuts"]}


async def test_a_removal_needs_a_quote_that_asks_for_it(services: Services, model_server: ModelServer) -> None:
    turn = await exchange(services.turns, "My allergy is a nuisance.", "I see.")
    await know(services, owner(turn), "human", {"allergies": ["allergic to peanuts"]}, Trigger("user"))
    model_server.default = filed(remove("m1", "My allergy is a nuisance"))
    assert await file(services, turn) == 0
    assert await human(services, turn) == {"allergies": ["allergic to peanuts"]}
    [proposal] = await waiting(services)
    assert (proposal.kind, proposal.text) == ("forget", "allergic to peanuts")


async def test_each_of_several_statements_is_undone_alone(services: Services, model_server: ModelServer) -> None:
    turn = await exchange(services.turns, "I moved to Bath, I keep bees, and I decided to learn Latin.", "Noted.")
    model_server.script(
        filed(
            add("lives in Bath", "I moved to Bath", "home"),
            add("keeps bees", "I keep bees", "hobbies"),
            add("decided to learn Latin", "I decided to learn Latin", "events"),
        )
    )
    assert await file(services, turn) == 3
    log = await logged(services)
    done = {each.query: each.id for each in log if each.type == "memory_command"}
    parts = [each.trigger["part_of"] for each in log if each.type == "core_memory_change"]
    assert parts == [str(done["lives in Bath"]), str(done["keeps bees"])]
    for version in await services.memory.core.history(owner(turn), "human", limit=5):
        assert version.trigger_message_id == turn.user_message_id
    await services.memory.undo.undo(DEFAULT_TENANT, "u-1", done["lives in Bath"])
    assert await human(services, turn) == {"hobbies": ["keeps bees"]}
    await services.memory.undo.undo(DEFAULT_TENANT, "u-1", done["decided to learn Latin"])
    assert not await written(services)
    assert await human(services, turn) == {"hobbies": ["keeps bees"]}


async def test_a_message_is_left_out_if_it_asks_for_that(services: Services, model_server: ModelServer) -> None:
    said = "The surprise is a trip to Rome, but that one is just between us, don't save it."
    turn = await exchange(services.turns, said, "My lips are sealed.")
    model_server.default = filed({"op": "leave_out", "message": "u1", "quote": "don't save it"})
    assert await file(services, turn) == 1
    found = await services.memory.archive.search(
        Scope.of(owner(turn)), "the surprise trip to Rome", top_k=5, now=datetime.now(UTC)
    )
    assert not found.items


async def test_a_change_of_the_user_meanwhile_has_the_model_asked_again(
    services: Services, model_server: ModelServer
) -> None:
    turn = await exchange(services.turns, "My dentist moved to Bath.", "Good to know.")
    await know(services, owner(turn), "human", {"facts": ["dentist in Leeds"]}, Trigger("user"))
    is_forgotten = threading.Event()

    def answer(_: Received) -> Reply:
        if is_forgotten.is_set():
            return filed()
        is_forgotten.wait(60)
        return filed(replace("m1", "dentist in Bath", "My dentist moved to Bath"))

    model_server.default = answer

    async def forget() -> None:
        await model_server.asked()
        request = ChangeRequest.outside_of_turns(owner(turn), Trigger("user"))
        await services.memory.changes.forget(request, "dentist in Leeds")
        is_forgotten.set()

    filing, _ = await asyncio.gather(file(services, turn), forget())
    assert filing == 0
    assert len(asked(model_server)) == 2
    assert "dentist" not in str(await human(services, turn))


async def test_a_story_is_remembered_to_go_on_until_it_ends(services: Services, model_server: ModelServer) -> None:
    turn = await exchange(services.turns, "Let's play: you are a pirate, and I am your cook.", "Arr!")
    model_server.default = filed(story=True)
    await file(services, turn)
    await exchange(services.turns, "I have lost my leg to a shark.", "Arr, poor soul!")
    model_server.default = filed()
    await file(services, turn)
    await exchange(services.turns, "End of the game.", "That was fun.")
    await file(services, turn)
    prompts = [request.prompt[-1][1] for request in asked(model_server)]
    assert ["goes on, unless the user ends it" in each for each in prompts] == [False, True, False]
    assert await human(services, turn) == {}


async def test_experts_and_spaces_are_filed_apart(services: Services, model_server: ModelServer) -> None:
    await services.experts.create(DEFAULT_TENANT, new_expert("coach"))
    await services.experts.create(DEFAULT_TENANT, new_expert("mute", parts_off=["memory_filing"]))
    turn = await exchange(services.turns, "I drink tea.", "Nice.")
    coached = await exchange(services.turns, "I run daily.", "Good.", session_id="s-2", expert="coach")
    muted = await exchange(services.turns, "I hum.", "Hm.", session_id="s-3", expert="mute")
    worked = await exchange(services.turns, "I lead the audit.", "Well done.", session_id="s-4", space="work")
    model_server.script(
        filed(add("drinks tea", "I drink tea", "facts")),
        filed(add("runs daily", "I run daily", "facts")),
        filed(add("leads the audit", "I lead the audit", "facts")),
    )
    assert await file(services, turn) == 3
    for each, texts in (
        (turn, ["drinks tea"]),
        (coached, ["runs daily"]),
        (muted, []),
        (worked, ["leads the audit"]),
    ):
        assert (await human(services, each)).get("facts", []) == texts


async def test_turns_queue_one_job_that_waits_for_quiet(
    services: Services, client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    model_server.default = Reply(["Fine."])
    for message in ("I drink tea.", "And I run daily."):
        body = {"user_id": "u-1", "session_id": "s-1", "message": message}
        (await client.post("/api/v1/chat", json=body)).raise_for_status()
    jobs = await statuses(services.database, FILE_MEMORY)
    assert jobs == ["todo"], "one job waits for both"
    assert not asked(model_server)
    async with hurried_queue(services.database) as queue:
        model_server.default = filed(add("drinks tea", "I drink tea", "facts"))
        filing_for(services, queue, quiet_s=0.2, pause_s=0.1)
        queue.start_worker()
        await until(lambda: _is_filed(services))
    assert len(asked(model_server)) == 1


async def test_a_talk_is_filed_once_it_rests_and_what_was_left_for_another_talk_at_once(
    services: Services, model_server: ModelServer
) -> None:
    at_rest = await exchange(services.turns, "I drink tea.", "Nice.", user_id="u-2")
    await exchange(services.turns, "I run daily.", "Nice.", user_id="u-2")
    gone_on = await exchange(services.turns, "I drink tea.", "Nice.", session_id="s-1")
    await exchange(services.turns, "I run daily.", "Nice.", session_id="s-2")
    await change(services, "UPDATE turns SET started_at = started_at - interval '40 seconds'")
    model_server.default = filed()
    async with hurried_queue(services.database) as queue:
        filing_for(services, queue, quiet_s=30)
        for turn in (at_rest, gone_on):
            assert await defer(services.database, queue, FILE_MEMORY, user_id=turn.user_id)
        queue.start_worker()
        await until(lambda: _is_filed(services))
    assert not [each for each in await logged(services, "u-2") if each.type == "memory_filing"]
    assert len(asked(model_server)) == 1


async def _is_filed(services: Services) -> bool:
    return any(each.type == "memory_filing" for each in await logged(services))
