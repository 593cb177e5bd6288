"""What a model says about the user when it archives topics is filed once, and nothing removed comes back."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from psycopg.rows import tuple_row

from services.bootstrap import Services
from services.conversations.turn import OpenTurn
from services.identity.tenants import DEFAULT_TENANT, Tenants
from services.jobs.queue import JobQueue
from services.memory.agent.user_information import Stretch, UserInformation
from services.memory.agent.user_information_answer import ToldItem, UserMessage, told_items
from services.memory.operations import Trigger
from services.platform.settings import Settings
from services.summaries.topic_store import NewTopic
from services.summaries.wiring import make_summaries
from tests.support.archiving import answer, archived, topic, with_small_model
from tests.support.filing import human, logged, owner
from tests.support.model_server import ModelServer, Reply
from tests.support.retracting import forget
from tests.support.talks import new_expert
from tests.support.turns import exchange, some_uuid

pytestmark = pytest.mark.anyio

_USER = Trigger("user")


@pytest.fixture
def settings(model_server: ModelServer) -> Settings:
    return with_small_model(model_server)


async def told(
    services: Services, *said: str, answers: str = "I see.", tenant_id: UUID = DEFAULT_TENANT, **expert: Any
) -> list[OpenTurn]:
    """Fifteen exchanges, of which twelve may be archived; they begin with these messages."""
    await services.experts.create(tenant_id, new_expert("archivist", context_strategy="topics", **expert))
    messages = [*said, *(f"The weather report number {number} is long." for number in range(15 - len(said)))]
    return [
        await exchange(services.turns, text, answers, expert="archivist", tenant_id=tenant_id) for text in messages
    ]


def names(information: Any, start: int = 1, end: int = 24) -> Reply:
    """The small model finds one topic, and this of the user."""
    return Reply([answer(topic(start, end), user_information=information)])


async def archive(services: Services, turns: list[OpenTurn]) -> int:
    """Archive a conversation; return how many topics."""
    return await services.topics.archive(turns[0].tenant_id, turns[0].conversation_id)


async def filed(services: Services) -> list[str]:
    """Of each operation of the archiving, the message that it names."""
    return [each.trigger["message_id"] for each in await logged(services) if each.trigger["actor"] == "topics"]


async def test_what_the_user_said_is_filed_once_and_names_the_messages(
    services: Services, model_server: ModelServer
) -> None:
    turns = await told(services, "I live in Lisbon and work as a nurse.", "I'm allergic to peanuts.")
    model_server.default = names({"home": "lives in Lisbon", "work": "nurse", "allergies": ["peanuts"]})
    assert await archive(services, turns) == 1
    content = {"home": "lives in Lisbon", "work": "nurse", "allergies": ["peanuts"]}
    assert await human(services, turns[0]) == content
    operations = await logged(services)
    assert [each.type for each in operations] == ["core_memory_change"] * 3
    assert [each.conversation_id for each in operations] == [turns[0].conversation_id] * 3
    stretch = {
        "first_message_id": str(turns[0].user_message_id),
        "last_message_id": str(turns[11].answer_message_id),
    }
    assert [each.trigger for each in operations] == [
        {"actor": "topics", "message_id": str(turns[number].user_message_id), **stretch} for number in (0, 0, 1)
    ]
    last, *_ = await services.memory.core.history(owner(turns[0]), "human", limit=1)
    assert (last.actor, last.trigger_message_id) == ("topics", turns[1].user_message_id)
    assert await archive(services, turns) == 0
    assert await logged(services) == operations


async def test_two_archivings_at_once_file_once(services: Services, model_server: ModelServer) -> None:
    turns = await told(services, "我住在杭州，养了一只猫叫团子。")
    model_server.default = Reply(
        [answer(topic(1, 24), user_information={"城市": "杭州", "宠物": {"猫": "团子"}})], delay_s=0.3
    )
    assert sorted(await asyncio.gather(*(archive(services, turns) for _ in range(2)))) == [0, 1]
    assert await human(services, turns[0]) == {"home": "杭州", "pets": ["猫: 团子"]}
    assert len(await filed(services)) == 2


async def test_what_is_known_is_not_repeated_and_what_holds_is_not_overwritten(
    services: Services, model_server: ModelServer
) -> None:
    turns = await told(
        services, "I live in Lisbon and work as a nurse.", "I'm allergic to peanuts and walnuts.", "I like tea."
    )
    known = {"home": "lives in Porto", "allergies": ["peanuts"], "preferences": ["no longer likes tea"]}
    await services.memory.core.update(owner(turns[0]), "human", known, _USER)
    model_server.script(
        names(
            {
                "city": "Lisbon",
                "home": "lives in Lisbon",
                "allergies": ["Peanuts", "walnuts"],
                "preferences": ["likes tea"],
            }
        )
    )
    assert await archive(services, turns) == 1
    assert await human(services, turns[0]) == {**known, "allergies": ["peanuts", "walnuts"]}


async def test_only_what_the_user_stated_is_filed(services: Services, model_server: ModelServer) -> None:
    turns = await told(
        services,
        "Is Oslo a good city to live in?",
        "Translate into German: my sister lives in Rome.",
        "I turned thirty this year, and I play the cello.",
        answers="As you love horses, go to the stables.",
    )
    model_server.script(
        names(
            {
                "home": "lives in Oslo",
                "family": ["a sister who lives in Rome"],
                "preferences": ["loves horses"],
                "age": 30,
                "studies": "medicine",
                "hobbies": "plays the cello",
            }
        )
    )
    assert await archive(services, turns) == 1
    assert await human(services, turns[0]) == {"hobbies": ["plays the cello"]}


async def test_what_is_said_behind_the_topics_is_left_for_the_next_time(
    services: Services, model_server: ModelServer
) -> None:
    filler = [f"The report on page {number} is dull." for number in range(8)]
    turns = await told(services, *filler, "I play the cello.")
    model_server.script(names({"hobbies": ["plays the cello"]}, end=12))
    assert await archive(services, turns) == 1
    assert await human(services, turns[0]) == {}
    model_server.script(names({"hobbies": ["plays the cello"]}, end=12))
    assert await archive(services, turns) == 1
    assert await human(services, turns[0]) == {"hobbies": ["plays the cello"]}


GARBAGE: dict[str, Any] = {
    "none": {},
    "null": None,
    "a list": ["lives in Lisbon"],
    "a text": "lives in Lisbon",
    "a number": 7,
    "nothing of use": {
        "home": None,
        "work": "",
        "pets": [],
        "family": {},
        "is_kind": True,
        "": "Lisbon",
        "!": "Lisbon",
    },
    "what cannot be stored": {"home": "Lisbon\x00", "x" * 65: "Lisbon", "work": "Lisbon " * 60},
    "nesting": {"home": [[["Lisbon"]]], "work": {"a": {"b": None}}},
}


@pytest.mark.parametrize("information", GARBAGE.values(), ids=GARBAGE.keys())
async def test_garbage_files_nothing_and_topics_are_archived_at_once(
    services: Services, model_server: ModelServer, information: Any
) -> None:
    turns = await told(services, "I live in Lisbon.")
    model_server.default = names(information)
    assert await archive(services, turns) == 1
    assert len(model_server.requests) == 1
    assert await human(services, turns[0]) == {}
    assert await logged(services) == []


async def test_of_many_items_eight_are_filed(services: Services, model_server: ModelServer) -> None:
    birds = ["robin", "heron", "osprey", "falcon", "puffin", "raven", "magpie", "pelican", "toucan", "ostrich"]
    turns = await told(services, f"I keep photographs of a {', a '.join(birds)}.")
    model_server.script(names({"possessions": [f"photographs of a {bird}" for bird in birds]}))
    assert await archive(services, turns) == 1
    assert (await human(services, turns[0]))["possessions"] == [f"photographs of a {bird}" for bird in birds[:8]]


@pytest.mark.parametrize("switch", ["memory_agent", "memory_core"])
async def test_switched_off_it_is_neither_asked_for_nor_filed(
    services: Services, model_server: ModelServer, switch: str
) -> None:
    turns = await told(services, "I live in Lisbon.")
    off = services.settings.model_copy(update={switch: False})
    summaries = make_summaries(
        off, services.database, services.models, JobQueue(services.database), services.memory.core
    )
    model_server.script(names({"home": "lives in Lisbon"}))
    assert await summaries.topics.archive(DEFAULT_TENANT, turns[0].conversation_id) == 1
    assert await human(services, turns[0]) == {}
    [(_, rules), _] = model_server.requests[0].prompt
    assert "user_information" not in rules


@pytest.mark.parametrize("feature", ["memory_agent", "core_memory"])
async def test_an_expert_without_memory_files_nothing(
    services: Services, model_server: ModelServer, feature: str
) -> None:
    turns = await told(services, "I live in Lisbon.", parts_off=[feature])
    model_server.script(names({"home": "lives in Lisbon"}))
    assert await archive(services, turns) == 1
    assert await human(services, turns[0]) == {}
    assert "user_information" not in model_server.requests[0].prompt[0][1]


async def test_turns_whose_variant_has_no_memory_agent_are_left_out(
    services: Services, model_server: ModelServer
) -> None:
    turns = await told(services, "I live in Lisbon.", "I play the cello.")
    variants = '[{"name": "a", "settings": {}}, {"name": "b", "settings": {"parts_off": ["memory_agent"]}}]'
    async with services.database.tenant(DEFAULT_TENANT) as connection:
        await connection.execute(
            "INSERT INTO experiments (id, tenant_id, name, variants) VALUES (%s, %s, 'x', %s)",
            [some_uuid(1), DEFAULT_TENANT, variants],
        )
        for turn, variant in zip(turns[:2], "ba", strict=True):
            await connection.execute(
                "UPDATE turns SET experiments = jsonb_build_object(%s::text, %s::text) WHERE id = %s",
                [str(some_uuid(1)), variant, turn.turn_id],
            )
    model_server.script(names({"home": "lives in Lisbon", "hobbies": ["plays the cello"]}))
    assert await archive(services, turns) == 1
    assert await human(services, turns[0]) == {"hobbies": ["plays the cello"]}


async def test_what_the_user_asked_to_forget_stays_forgotten(
    services: Services, model_server: ModelServer
) -> None:
    turns = await told(services, "I'm allergic to peanuts.", "I live in Lisbon.", "Peanuts grow underground.")
    await forget(services, owner(turns[0]), "that I'm allergic to peanuts")
    information = {"allergies": ["peanuts"], "health": "a peanut allergy", "home": "lives in Lisbon"}
    model_server.default = names(information, end=20)
    assert await archive(services, turns) == 1
    assert "[1] User: I live in Lisbon." in model_server.requests[0].prompt[1][1]
    assert await human(services, turns[0]) == {"home": "lives in Lisbon"}


async def test_what_is_said_again_after_it_was_forgotten_is_filed(
    services: Services, model_server: ModelServer
) -> None:
    turns = await told(services, "I'm allergic to peanuts.", "I live in Lisbon.")
    await forget(services, owner(turns[0]), "that I'm allergic to peanuts")
    later = ["It is true, I am allergic to peanuts.", *(f"Report {number} is dull." for number in range(14))]
    for text in later:
        await exchange(services.turns, text, "I see.")
    model_server.script(names({"allergies": ["peanuts"]}, end=40))
    assert await archive(services, turns) == 1
    assert await human(services, turns[0]) == {"allergies": ["peanuts"]}


async def test_what_was_removed_or_undone_since_does_not_come_back(
    services: Services, model_server: ModelServer
) -> None:
    turns = await told(services, "I live in Lisbon.", "I play the cello.", "I collect stamps.", "My cat died.")
    whose = owner(turns[0])
    await services.memory.core.replace(whose, "human", {"home": "lives in Lisbon"}, _USER)
    await services.memory.core.replace(whose, "human", {}, _USER)
    model_server.default = names({"home": "Lisbon", "hobbies": ["plays the cello", "collects stamps"]}, end=20)
    assert await archive(services, turns) == 1
    assert await human(services, turns[0]) == {"hobbies": ["plays the cello", "collects stamps"]}
    cello = next(each for each in await logged(services) if each.trigger["actor"] == "topics")
    await services.memory.undo.undo(DEFAULT_TENANT, "u-1", cello.id)
    assert await human(services, turns[0]) == {"hobbies": ["collects stamps"]}
    # Topics without what is forgotten are made again.
    await forget(services, whose, "the cat that died")
    assert await archived(services, turns[0].conversation_id) == []
    assert await archive(services, turns) == 1
    assert await human(services, turns[0]) == {"hobbies": ["collects stamps"]}


async def test_after_its_section_was_removed_nothing_older_is_filed(
    services: Services, model_server: ModelServer
) -> None:
    turns = await told(services, "I live in Lisbon.")
    await services.memory.core.replace(owner(turns[0]), "human", {"name": "Ann"}, _USER)
    await services.memory.core.forget(owner(turns[0]), "human", _USER)
    model_server.script(names({"home": "lives in Lisbon"}))
    assert await archive(services, turns) == 1
    assert await human(services, turns[0]) == {}


async def test_a_held_message_is_left_out(services: Services, model_server: ModelServer) -> None:
    turns = await told(services, "I live in Lisbon.", "I play the cello.")
    async with services.database.tenant(DEFAULT_TENANT) as connection:
        held = "UPDATE episodes SET held_at = now() WHERE %s = ANY(source_message_ids)"
        assert (await connection.execute(held, [turns[0].user_message_id])).rowcount == 1
    model_server.script(names({"home": "lives in Lisbon", "hobbies": ["plays the cello"]}))
    assert await archive(services, turns) == 1
    assert await human(services, turns[0]) == {"hobbies": ["plays the cello"]}


async def test_relative_dates_are_stored_as_dates_of_the_day_on_which_they_were_said(
    services: Services, model_server: ModelServer
) -> None:
    turns = await told(services, "My sister gets married tomorrow.")
    async with services.database.tenant(DEFAULT_TENANT) as connection:
        moved = "UPDATE messages SET created_at = '2026-02-27T12:00Z' WHERE id = %s"
        await connection.execute(moved, [turns[0].user_message_id])
    model_server.script(names({"family": ["sister gets married tomorrow"]}))
    assert await archive(services, turns) == 1
    assert await human(services, turns[0]) == {"family": ["sister gets married 2026-02-28"]}


async def test_a_full_section_makes_no_way_for_what_is_old(services: Services, model_server: ModelServer) -> None:
    turns = await told(services, "I live in Lisbon.")
    full = {"facts": ["x" * 4075]}
    await services.memory.core.replace(owner(turns[0]), "human", full, _USER)
    model_server.script(names({"home": "lives in Lisbon"}))
    assert await archive(services, turns) == 1
    assert await human(services, turns[0]) == full


@pytest.mark.parametrize("gone", ["user_id", "expert_id"])
async def test_what_cannot_be_filed_costs_the_topics_nothing(services: Services, gone: str) -> None:
    turns = await told(services, "I live in Lisbon.")
    store, conversation = services.topics.store, turns[0].conversation_id
    found = await store.unarchived(DEFAULT_TENANT, conversation)
    assert found
    first, last = found.messages[0], found.messages[23]
    whose = replace(owner(turns[0]), **{gone: some_uuid(9)})
    items = [ToldItem("home", "lives in Lisbon", UserMessage(first.id, first.content, first.created_at))]
    stretch = Stretch(whose, conversation, "UTC", first.id, last.id)
    information = UserInformation(services.memory.core)
    new = [NewTopic("Home", "Lisbon.", [], found.messages[:24])]
    assert await store.archive(
        DEFAULT_TENANT, conversation, new, then=lambda connection: information.file(connection, stretch, items)
    )
    assert len(await archived(services, conversation)) == 1
    assert await human(services, turns[0]) == {}


async def test_a_user_of_the_same_name_with_another_tenant_is_somebody_else(
    services: Services, model_server: ModelServer
) -> None:
    turns = await told(services, "I live in Lisbon.")
    other = await Tenants(services.database).create("other")
    theirs = await told(services, "I live in Oslo.", tenant_id=other.id)
    model_server.default = names({"home": ["Lisbon", "Oslo"]})
    assert await archive(services, theirs) == 1
    assert await human(services, theirs[0]) == {"home": "Oslo"}
    assert await human(services, turns[0]) == {}
    rows = await services.database.fetch(other.id, "SELECT tenant_id FROM memory_operations", {}, tuple_row)
    assert {row[0] for row in rows} == {other.id}


def test_an_item_comes_from_the_newest_message_that_says_most_of_it() -> None:
    at = [datetime(2026, 1, day, tzinfo=UTC) for day in (1, 2, 3)]
    texts = ("I like jazz.", "I like jazz from New Orleans.", "I like New Orleans.")
    said = [UserMessage(some_uuid(day.day), text, day) for text, day in zip(texts, at, strict=True)]
    found = told_items({"preferences": ["jazz from New Orleans", "jazz", "New Orleans"]}, said)
    assert [each.source.at.day for each in found] == [2, 2, 3]


async def test_what_was_imported_never_becomes_a_standing_wish(
    services: Services, model_server: ModelServer
) -> None:
    wish, fact = "From now on always answer in rhymes.", "I live in Berlin."
    model_server.script(names({"wishes": [wish], "notes": ["always answer in rhymes"], "home": "Berlin"}))
    turns = await told(services, wish, fact)
    async with services.database.tenant(DEFAULT_TENANT) as connection:
        await connection.execute("UPDATE messages SET import_key = 'external:' || id")

    assert await archive(services, turns) == 1

    assert await human(services, turns[0]) == {"home": "Berlin"}
