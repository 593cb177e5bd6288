"""The memory agent over real stores: what it files of a turn, once, and what it leaves alone."""

import re
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from psycopg.rows import tuple_row

from services.bootstrap import Services
from services.conversations.turn import OpenTurn
from services.memory.agent.agent import MemoryAgent
from services.memory.agent.consent import Consent
from services.memory.agent.decisions import DecisionMaker
from services.memory.agent.plan import CoreChange, NewMemory, Plan, dump
from services.memory.agent.store import AgentStore
from services.memory.agent.triggers import REMEMBER
from services.memory.episodes.episode import NewEpisode
from services.memory.items import ItemChange
from services.memory.operations import Trigger
from services.platform.settings import Settings
from tests.support.archiving import with_small_model
from tests.support.filing import core, count, episode, human, logged, owner, remember, reply, written
from tests.support.jobs import defer, hurried_queue, statuses, until
from tests.support.model_server import ModelServer, Received, Reply
from tests.support.turns import exchange

pytestmark = pytest.mark.anyio

_EARLIER = Trigger("user", UUID(int=1))
"""Its id is that of a message before all others."""


@pytest.fixture
def settings(model_server: ModelServer) -> Settings:
    return with_small_model(model_server)


async def test_operations_are_done_in_order_and_logged_with_what_triggered_them(
    services: Services, model_server: ModelServer
) -> None:
    turn = await exchange(services.turns, "I moved to Lisbon. I decided to learn Portuguese.", "Great!")
    model_server.script(
        reply(
            core(home="lives in Lisbon"), episode("The user decided to learn Portuguese."), {"operation": "none"}
        )
    )
    assert await remember(services, turn) == 2
    assert await human(services, turn) == {"home": "lives in Lisbon"}
    assert [each.content for each in await written(services, turn)] == ["The user decided to learn Portuguese."]
    plan, update, insert = await logged(services)
    assert [plan.type, update.type, insert.type] == ["memory_agent", "core_memory_change", "episode_insert"]
    assert (plan.new_value, plan.results) == (None, {"by": "model", "operations": 2})
    why = {"actor": "memory_agent", "message_id": str(turn.user_message_id)}
    assert (update.trigger, insert.trigger) == ({**why, "call": "1"}, {**why, "call": "2"})
    assert {each.turn_id for each in (plan, update, insert)} == {turn.turn_id}
    sources = [str(turn.user_message_id), str(turn.answer_message_id)]
    assert insert.new_value["source_message_ids"] == sources
    (change,) = await services.memory.core.history(owner(turn), "human", limit=5)
    assert (change.actor, change.trigger_message_id) == ("memory_agent", turn.user_message_id)


async def test_the_model_sees_the_exchange_core_memory_and_the_nearest_episodes(
    services: Services, model_server: ModelServer
) -> None:
    await exchange(services.turns, "My garden has three lemon trees.", "How nice!", session_key="s-1")
    turn = await exchange(
        services.turns, "I want to sell my lemon trees in the garden.", "A pity.", session_key="s-2"
    )
    await services.memory.core.update(owner(turn), "human", {"name": "Ann"}, Trigger("user"))
    await exchange(services.turns, "My lemon trees died.", "Sorry.", session_key="s-1", external_user_id="u-2")
    model_server.script(reply())
    assert await remember(services, turn) == 0
    (asked,) = [request for request in model_server.requests if request.body["model"] == "small"]
    prompt = asked.prompt[-1][1]
    assert "> I want to sell my lemon trees in the garden." in prompt
    assert "> A pity." in prompt
    assert "[c1] name: Ann" in prompt
    assert "user: My garden has three lemon trees." in prompt
    assert prompt.count("I want to sell my lemon trees") == 1  # its own episode is none of the nearest
    assert "died" not in prompt


async def test_run_again_it_asks_nobody_and_doubles_nothing(services: Services, model_server: ModelServer) -> None:
    turn = await exchange(services.turns, "I decided to learn Portuguese. I like tea.", "Great!")
    model_server.default = reply(episode("The user decided to learn Portuguese."), core(preferences=["likes tea"]))
    assert await remember(services, turn) == 2
    before, asked = await logged(services), len(model_server.requests)
    for _ in range(3):
        assert await remember(services, turn) == 0
    assert await logged(services) == before
    assert len(model_server.requests) == asked
    nothing = await exchange(services.turns, "I have a garden with tall trees.", "Nice.")
    model_server.default = reply()
    assert [await remember(services, nothing) for _ in range(2)] == [0, 0]
    assert len(model_server.requests) == asked + 1


async def test_a_stored_plan_is_carried_out_without_asking_again_and_what_was_done_is_not_done_twice(
    services: Services, model_server: ModelServer
) -> None:
    turn = await exchange(services.turns, "I decided to learn Portuguese. I like tea.", "Great!")
    store = AgentStore(services.database, services.memory.operations)
    looked_at = await store.exchange(turn.tenant_id, turn.turn_id)
    assert looked_at
    why = {"message_id": turn.user_message_id, "conversation_id": turn.conversation_id, "turn_id": turn.turn_id}

    def trigger(_: Any, **details: Any) -> Trigger:
        return Trigger("memory_agent", **why, details=details)

    plan: Plan = [
        NewMemory(episode_type="decision", content="The user decided to learn Portuguese.", importance=0.9),
        CoreChange(action="add", field="preferences", value="likes tea"),
    ]
    await store.note_plan(looked_at, [], dump(plan), "model", trigger)
    decided = NewEpisode("The user decided to learn Portuguese.", "decision", 0.9, "derived")
    await services.memory.archive.insert(owner(turn), decided, trigger(None, call="1"))  # and then it was killed
    model_server.default = Reply(status=500)
    assert await remember(services, turn) == 2
    assert model_server.requests == []
    types = [each.type for each in await logged(services)]
    assert types == ["memory_agent", "episode_insert", "core_memory_change"]
    assert await human(services, turn) == {"preferences": ["likes tea"]}
    assert (await logged(services))[0].new_value is None


async def test_turns_that_wait_share_one_call_and_none_is_lost_or_filed_twice(
    services: Services, model_server: ModelServer
) -> None:
    said = ["I moved to Bergen.", "My brother lives there, too.", "Sorry, I meant my cousin."]
    turns = [await exchange(services.turns, text, "I see.") for text in said]
    elsewhere = await exchange(services.turns, "I like tea.", "Fine.", external_user_id="u-2")
    lock = f"{REMEMBER}:{turns[0].user_id}"
    async with services.database.tenant(turns[0].tenant_id) as connection:
        for turn in turns:
            await services.jobs.defer(
                connection, REMEMBER, tenant_id=turn.tenant_id, lock=lock, turn_id=turn.turn_id
            )
        lock = f"{REMEMBER}:{elsewhere.user_id}"
        await services.jobs.defer(
            connection, REMEMBER, tenant_id=elsewhere.tenant_id, lock=lock, turn_id=elsewhere.turn_id
        )
    model_server.default = reply(
        {"op": "add", "field": "home", "text": "lives in Bergen"},
        {"op": "add", "field": "family", "text": "cousin lives in Bergen"},
    )
    assert [await remember(services, turn) for turn in turns] == [2, 0, 0]
    (asked,) = model_server.requests
    prompt = asked.prompt[-1][1]
    assert [prompt.index(f"> {text}") for text in said] == sorted(prompt.index(f"> {text}") for text in said)
    assert "I like tea" not in prompt
    assert await human(services, turns[0]) == {"home": "lives in Bergen", "family": ["cousin lives in Bergen"]}


async def test_what_a_later_turn_of_the_same_call_changed_itself_keeps_nothing_from_being_filed(
    services: Services, model_server: ModelServer
) -> None:
    first = await exchange(services.turns, "I work at a bakery.", "I see.")
    last = await exchange(services.turns, "I work at a dairy now. Always be brief.", "I see.")
    lock = f"{REMEMBER}:{first.user_id}"
    async with services.database.tenant(first.tenant_id) as connection:
        for turn in (first, last):
            await services.jobs.defer(
                connection, REMEMBER, tenant_id=turn.tenant_id, lock=lock, turn_id=turn.turn_id
            )
    before = ItemChange("add", "human", "work", "works at a bakery", None)
    await services.memory.core.change_items(owner(first), [before], Trigger("user", first.user_message_id))
    wish = ItemChange("add", "human", "wishes", "be brief", None)
    await services.memory.core.change_items(owner(first), [wish], Trigger("user", last.user_message_id))
    model_server.default = reply({"op": "replace", "id": "c1", "text": "works at a dairy"})
    assert await remember(services, first) == 1
    assert await human(services, first) == {"work": "works at a dairy", "wishes": ["be brief"]}


async def test_a_second_call_about_the_user_within_the_pause_is_put_off_and_then_made(
    services: Services, model_server: ModelServer
) -> None:
    memory = services.memory
    turns = [await exchange(services.turns, text, "OK.") for text in ("I moved to Bergen.", "I like tea.")]
    model_server.script(reply(core(home="lives in Bergen")), reply(core(preferences=["likes tea"])))
    async with hurried_queue(services.database) as jobs:
        store = AgentStore(services.database, memory.operations)
        deciding = DecisionMaker(
            services.models, store, memory.episodes, memory.core, memory.archive, memory.foreign_origins
        )
        MemoryAgent(
            store, deciding, jobs, consent=Consent(store, memory.proposals),
            episodes=memory.episodes, core_memory=memory.core, archive=memory.archive,
            resolution=memory.resolution, retraction=memory.retraction, pause_s=2.0,
        )  # fmt: skip
        await remember(services, turns[0])
        jobs.start_worker()
        await defer(services.database, jobs, REMEMBER, turn_id=turns[1].turn_id)
        await until(lambda: _prefers_tea(services, turns[1]))
    assert len(await statuses(services.database, REMEMBER)) == 2  # one put it off
    first, second = [each for each in await logged(services) if each.type == "memory_agent"]
    assert second.at - first.at >= timedelta(seconds=2)


async def _prefers_tea(services: Services, turn: OpenTurn) -> bool:
    return (await human(services, turn)).get("preferences") == ["likes tea"]


async def test_a_correction_reaches_core_memory_with_the_messages_before_it_in_view(
    services: Services, model_server: ModelServer
) -> None:
    first = await exchange(services.turns, "My son Emil is 7.", "How sweet!")
    model_server.script(reply({"op": "add", "field": "family", "text": "son Emil is 7 years old"}))
    await remember(services, first)
    second = await exchange(services.turns, "Sorry, I meant nine.", "Noted.")
    model_server.script(reply({"op": "CORRECT", "id": "c1", "text": "son Emil is 9 years old"}))
    assert await remember(services, second) == 1
    prompt = model_server.requests[-1].prompt[-1][1]
    assert "user: My son Emil is 7." in prompt
    assert "assistant: How sweet!" in prompt
    assert "[c1] family: son Emil is 7 years old" in prompt
    assert await human(services, first) == {"family": ["son Emil is 9 years old"]}


async def test_one_item_of_a_list_is_removed_and_the_others_stay(
    services: Services, model_server: ModelServer
) -> None:
    turn = await exchange(services.turns, "I'm not allergic to peanuts after all.", "Good news!")
    await services.memory.core.update(owner(turn), "human", {"allergies": ["peanuts", "cats"]}, _EARLIER)
    model_server.script(reply({"operation": "delete", "patch": {"allergies": ["peanuts"]}}))
    assert await remember(services, turn) == 1
    assert await human(services, turn) == {"allergies": ["cats"]}


async def test_what_the_user_asks_to_forget_is_retracted_and_nothing_without_their_asking(
    services: Services, model_server: ModelServer
) -> None:
    told = await exchange(services.turns, "I have diabetes and take metformin.", "Take care.", session_key="s-1")
    await services.memory.core.update(owner(told), "human", {"health": ["diabetes", "asthma"]}, _EARLIER)
    model_server.script(reply({"op": "forget", "text": "diabetes"}))
    other = await exchange(services.turns, "My diabetes is a nuisance.", "I see.", session_key="s-2")
    assert await remember(services, other) == 1
    assert await human(services, told) == {"health": ["asthma"]}
    assert await count(services, "retracted_at IS NOT NULL") == 0

    asked = await exchange(
        services.turns, "I want my diabetes dropped from your files.", "Yes.", session_key="s-3"
    )
    model_server.script(reply({"op": "forget", "text": "diabetes"}))
    await services.memory_agent.remember(asked.tenant_id, asked.turn_id)
    assert await count(services, "retracted_at IS NOT NULL AND episode_type = 'turn'") == 1
    statement = "SELECT content FROM remembered_messages WHERE role = 'user' ORDER BY created_at"
    rows = await services.database.fetch(told.tenant_id, statement, {}, tuple_row)
    assert [content for (content,) in rows if "diabetes" in content.lower()] == [
        "I want my diabetes dropped from your files."
    ]
    assert [content for (content,) in rows if "metformin" in content] != []


async def test_relative_dates_are_stored_as_dates(services: Services, model_server: ModelServer) -> None:
    turn = await exchange(
        services.turns, "I fly to Oslo tomorrow. I decided to sell the car next week.", "Bon voyage!"
    )
    model_server.script(
        reply(
            {"op": "add", "field": "plans", "text": "flies to Oslo tomorrow"}, episode("Sells the car next week.")
        )
    )
    await remember(services, turn)
    (plan,) = (await human(services, turn))["plans"]
    assert re.fullmatch(r"flies to Oslo \d{4}-\d\d-\d\d", plan)
    (sold,) = await written(services, turn)
    assert re.fullmatch(r"Sells the car \d{4}-\d\d-\d\d to \d{4}-\d\d-\d\d\.", sold.content)


async def test_a_full_section_loses_its_least_useful_items_and_not_the_new_one(
    services: Services, model_server: ModelServer
) -> None:
    turn = await exchange(services.turns, "I'm allergic to bee stings.", "I'll remember.")
    likes = [f"likes thing number {number} of a very long list of things" for number in range(72)]
    full = {"name": "Ann", "health": ["has asthma"], "preferences": likes}
    await services.memory.core.replace(owner(turn), "human", full, _EARLIER)
    model_server.script(reply({"op": "add", "field": "allergies", "text": "bee stings " + "x" * 200}))
    assert await remember(services, turn) == 1
    kept = await human(services, turn)
    assert (kept["name"], kept["health"], len(kept["allergies"])) == ("Ann", ["has asthma"], 1)
    assert kept["preferences"] == likes[-len(kept["preferences"]) :]
    assert 50 < len(kept["preferences"]) < 72


async def test_what_is_known_already_is_not_stored_again(services: Services, model_server: ModelServer) -> None:
    first = await exchange(services.turns, "I decided to learn Portuguese. I like tea.", "Great!")
    model_server.script(reply(episode("The user decided to learn Portuguese."), core(preferences=["likes tea"])))
    await remember(services, first)
    again = await exchange(services.turns, "As I said, I like tea and decided to learn Portuguese.", "Right.")
    model_server.script(
        reply(
            episode("The user has decided to learn Portuguese!"),
            core(preferences=["Likes tea."]),
            core(drinks=["likes tea"]),
        )
    )
    assert await remember(services, again) == 0
    assert len(await written(services, first)) == 1
    assert await human(services, first) == {"preferences": ["likes tea"]}


async def test_what_the_answer_repeats_from_memory_is_not_filed(
    services: Services, model_server: ModelServer
) -> None:
    await exchange(services.turns, "I adore comedies from Denmark.", "Noted.", session_key="s-1")
    answer = "Since you adore Danish comedies and live in Lisbon, watch Italian for Beginners."
    turn = await exchange(services.turns, "I have decided: tonight is film night.", answer, session_key="s-2")
    model_server.script(
        reply(
            core(preferences=["adores Danish comedies"], home="lives in Lisbon"),
            episode("The user adores Danish comedies.", "preference"),
            episode("The user lives in Lisbon.", "context"),
            episode("The user decided on a film night.", "decision"),
        )
    )
    assert await remember(services, turn) == 1
    assert await human(services, turn) == {}
    assert [each.content for each in await written(services, turn)] == ["The user decided on a film night."]


async def test_rules_read_nothing_but_the_users_own_words(services: Services, model_server: ModelServer) -> None:
    model_server.default = Reply(status=500)
    answer = "I like comedies. I live in Lisbon. 我喜欢喜剧。I've booked the tickets for you."
    turn = await exchange(services.turns, "Which film is on tonight? Thanks!", answer)
    await remember(services, turn)
    assert (await human(services, turn), await written(services, turn)) == ({}, [])


@pytest.mark.parametrize("by_model", [False, True], ids=["rules", "model"])
@pytest.mark.parametrize(
    ("said", "told", "field", "kept"),
    [
        ("I work at Zephyr until June.", {"work": "works at Zephyr until June"}, "work",
         r"works at Zephyr \(until \d{4}-06\)"),
        ("I used to live in Bergen.", {"home": "used to live in Bergen"}, "facts",
         r"lives? in Bergen \(formerly\)"),
        ("From next month I work at Borealis.", {"work": "works at Borealis from next month"}, "plans",
         r"works at Borealis \(from \d{4}-\d\d\)"),
        ("到六月为止我在海风工作。", {"work": "在海风工作到六月为止"}, "work", r"在海风工作（到\d{4}-06为止）"),
        ("我以前住在卑尔根。", {"home": "住在卑尔根（以前）"}, "facts", r"住在卑尔根（以前）"),
        ("我从下个月开始在北极光工作。", {"work": "从下个月开始在北极光工作"}, "plans",
         r"在北极光工作（\d{4}-\d\d起）"),
    ],
)  # fmt: skip
async def test_a_fact_is_filed_with_when_it_holds_and_leaves_what_holds_now(
    services: Services,
    model_server: ModelServer,
    said: str,
    told: dict[str, str],
    field: str,
    kept: str,
    by_model: bool,
) -> None:
    turn = await exchange(services.turns, said, "Noted.")
    now = {"home": "lives in Ghent"}
    await services.memory.core.update(owner(turn), "human", now, _EARLIER)
    model_server.default = reply(core(**told)) if by_model else Reply(status=500)
    assert await remember(services, turn) == 1
    filed = await human(services, turn)
    assert filed["home"] == "lives in Ghent"
    text = filed[field] if field == "work" else filed[field][0]
    assert re.fullmatch(kept, text)


async def test_a_contradicted_memory_is_superseded_and_stays(
    services: Services, model_server: ModelServer
) -> None:
    first = await exchange(services.turns, "I like horror films. I prefer tea.", "Fine.")
    model_server.script(
        reply(episode("The user likes horror films.", "preference"), episode("Prefers tea.", "preference"))
    )
    await remember(services, first)
    second = await exchange(services.turns, "I no longer like horror films.", "I see.", session_key="s-2")
    model_server.script(reply(core(preferences=["no longer likes horror films"])))
    await remember(services, second)
    assert [each.content for each in await written(services, first)] == ["Prefers tea."]
    (gone,) = [each for each in await logged(services) if each.type == "episode_supersede"]
    assert gone.old_value == {"content": "The user likes horror films."}
    assert gone.trigger["actor"] == "memory_agent"
    assert await count(services, "content IS NOT NULL") == 2
    assert await count(services, "superseded_by IS NOT NULL") == 1
    assert await count(services, "episode_type = 'turn' AND superseded_by IS NOT NULL") == 0


async def test_an_update_takes_the_place_of_the_episode_that_it_names(
    services: Services, model_server: ModelServer
) -> None:
    first = await exchange(services.turns, "I plan a trip to Norway in May.", "Fine.")
    model_server.script(reply(episode("The user plans a trip to Norway in May.", "context")))
    await remember(services, first)
    second = await exchange(
        services.turns, "I changed my mind: the Norway trip is in June.", "OK.", session_key="s-2"
    )
    model_server.default = _naming("The user plans a trip to Norway in May.")
    await remember(services, second)
    assert [each.content for each in await written(services, first)] == ["The Norway trip is in June."]
    assert await count(services, "superseded_by IS NOT NULL") == 1


def _naming(content: str) -> Any:
    """Answer with an update of the episode that says so, by the number that it has in the prompt."""

    def answer(request: Received) -> Reply:
        line = next(line for line in request.prompt[-1][1].splitlines() if line.endswith(content))
        number = line[1 : line.index("]")]
        return reply(episode("The Norway trip is in June.", "context", operation="update", episode=number))

    return answer
