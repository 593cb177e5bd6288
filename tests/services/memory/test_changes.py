"""Memory changes as it is asked to, and in nothing else; what was changed comes back when that is undone."""

import asyncio
from typing import Any
from uuid import UUID, uuid4

import pytest
from psycopg.rows import class_row

from services.bootstrap import Services, open_services
from services.encryption.marks import all_words
from services.engines import Engines
from services.errors import InvalidInput
from services.identity.tenants import DEFAULT_TENANT
from services.memory.core.blocks import Owner
from services.memory.core.content import MAX_SECTION_BYTES
from services.memory.episodes.episode import NewEpisode
from services.memory.finding.sql import MENTIONS
from services.memory.model import ChangeRequest, Memory
from services.memory.operations import Trigger
from services.platform.settings import Settings
from state.memory import MemoryChange
from tests.support.core_memory import know
from tests.support.turns import exchange, owner_of

pytestmark = pytest.mark.untraced


class Rig:
    """A user, what they have told, and what memory keeps of it."""

    def __init__(self, services: Services, owner: Owner, user: str = "u-1") -> None:
        self.services = services
        self.user = user
        self.owner = owner
        self.changes = services.memory.changes
        self.request = ChangeRequest.outside_of_turns(owner, Trigger("user"))

    @classmethod
    async def of(
        cls, services: Services, *told: str, answer: str = "Noted.", user: str = "u-1", **values: Any
    ) -> "Rig":
        """Tell these messages, each answered alike."""
        for message in told or ("Hello.",):
            turn = await exchange(services.turns, message, answer, user_id=user, **values)
        return cls(services, Owner(turn.tenant_id, turn.user_id, turn.expert_id, turn.space_id), user)

    async def know(self, **content: Any) -> None:
        """Keep values in the section about the user."""
        await know(self.services, self.owner, "human", content, Trigger("user"))

    async def core(self) -> dict[str, Any]:
        """Return that section."""
        blocks = await self.services.memory.core.read(self.owner)
        return next((dict(each.content) for each in blocks if each.section == "human"), {})

    async def messages(self) -> list[str]:
        """Return what memory keeps of all messages, oldest first."""
        values = {
            **vars(self.owner),
            "patterns": ["%"],
            "most": 100,
            "message_id": uuid4(),
            "reaches_shared": True,
            "roles": ["user", "assistant"],
        }
        found = await self.services.database.fetch(DEFAULT_TENANT, MENTIONS, values, class_row(Memory))
        return [each.text for each in reversed(found) if each.kind == "said"]

    async def everything(self) -> tuple[list[str], dict[str, Any], list[str]]:
        """Return all that can be remembered."""
        known = await self.services.memory.known.list(DEFAULT_TENANT, self.user, limit=50)
        core = {
            name: sorted(value) if isinstance(value, list) else value
            for name, value in (await self.core()).items()
        }
        return await self.messages(), core, sorted(each.text for each in known if each.kind == "written")

    async def undo(self, change: MemoryChange) -> None:
        await self.services.memory.undo.undo(DEFAULT_TENANT, self.user, UUID(change["operation_id"] or ""))


def _no_change(change: MemoryChange) -> bool:
    return change["operation_id"] is None and change["items"] == []


async def test_what_is_not_there_removes_nothing(services: Services) -> None:
    rig = await Rig.of(services, "I like tea. I have asthma.", "我喜欢喝茶，我对花生过敏。")
    await rig.know(wishes=["From now on keep your answers short"], allergies=["peanuts"])
    before = await rig.everything()
    for what in (
        *("Henrik", "the boat", "that I have a yacht", "Berlin", "亨里克", "我的游艇", "v0123456789ab"),
        *("0190a000-0000-7000-8000-000000000001", "   ", "the", "的", "\x00"),
    ):
        assert _no_change(await rig.changes.forget(rig.request, what)), what
        assert _no_change(await rig.changes.correct(rig.request, what, "I own a lighthouse.")), what
        assert await rig.everything() == before, what


@pytest.mark.parametrize(
    ("told", "what", "candidates"),
    [
        (
            ("My sister lives in Oslo.", "My sister plays the tuba."),
            "my sister",
            {"My sister lives in Oslo", "My sister plays the tuba"},
        ),
        (("我妹妹住在北京。", "我妹妹会拉小提琴。"), "我妹妹", {"我妹妹住在北京", "我妹妹会拉小提琴"}),
    ],
)
async def test_of_several_that_may_be_meant_none_is_changed_and_all_are_offered(
    services: Services, told: tuple[str, ...], what: str, candidates: set[str]
) -> None:
    rig = await Rig.of(services, *told)
    before = await rig.everything()
    change = await rig.changes.forget(rig.request, what)
    assert _no_change(change)
    offered = change.get("candidates", [])
    assert {each["text"] for each in offered} == candidates
    assert all(each["id"] in change["summary"] for each in offered)
    assert _no_change(await rig.changes.correct(rig.request, what, "Something else."))
    assert _no_change(await rig.changes.remember(rig.request, "Something else.", replaces=what))
    assert await rig.everything() == before
    chosen = await rig.changes.forget(rig.request, ids=[offered[0]["id"]])
    assert chosen["operation_id"]
    await rig.undo(chosen)
    assert await rig.everything() == before


async def test_what_is_only_likely_is_offered(services: Services) -> None:
    rig = await Rig.of(services, "我周日刷了篱笆。")
    change = await rig.changes.forget(rig.request, "周日修篱笆")
    assert _no_change(change)
    assert change["summary"].startswith("“周日修篱笆”可能指“我周日刷了篱笆”（")
    assert [each["text"] for each in change.get("candidates", [])] == ["我周日刷了篱笆"]
    assert "我周日刷了篱笆。" in await rig.messages()


async def test_what_is_clearly_meant_is_found_in_other_words(services: Services) -> None:
    rig = await Rig.of(services, "I am allergic to peanuts.", "I painted the fence on Sunday.")
    change = await rig.changes.forget(rig.request, "the peanut allergy")
    assert change["items"] == ["I am allergic to peanuts"]
    assert "I painted the fence on Sunday." in await rig.messages()


async def test_a_value_that_was_set_by_hand_goes_as_a_user_states_it(services: Services) -> None:
    rig = await Rig.of(services)
    await rig.know(hobbies=["钓虾"])
    values: tuple[tuple[str, Any, str], ...] = (
        ("home", "Lyon", "that I live in Lyon"),
        ("work", "Siemens", "I work at Siemens"),
        ("home", "里昂", "我住在里昂"),
        ("allergies", ["花生"], "我对花生过敏"),
        ("allergies", ["对虾过敏"], "我对虾过敏这件事"),
        ("allergies", ["虾"], "我对虾过敏这件事"),
        ("pets", ["dog called Bo"], "I have a dog called Bo"),
        ("name", "Ada", "that I am called Ada"),
        ("languages", ["Dutch"], "that I speak Dutch"),
    )
    for field, value, what in values:
        await rig.know(**{field: value})
        assert (await rig.changes.forget(rig.request, what))["operation_id"], what
        assert await rig.core() == {"hobbies": ["钓虾"]}, what


async def test_what_another_does_is_not_what_the_user_does(services: Services) -> None:
    for told, what in (
        ("I like tea.", "that she lives in Lyon"),
        ("I live in Lyon.", "she lives in Lyon"),
        ("我住在里昂。", "她住在里昂"),
        ("I like tea.", "that my sister lives in Lyon"),
        ("他住在里昂。", "我住里昂以外的地方"),
    ):
        rig = await Rig.of(services, told, user=what)
        await rig.know(home="Lyon")
        before = await rig.everything()
        assert _no_change(await rig.changes.forget(rig.request, what)), what
        assert await rig.everything() == before, what


async def test_what_says_the_same_in_fewer_words_goes_and_what_says_more_stays(services: Services) -> None:
    rig = await Rig.of(services, "I have asthma.", "My wife has asthma, too.")
    await rig.know(health=["asthma", "bad knee"])
    change = await rig.changes.forget(rig.request, "I have asthma")
    assert change["items"] == ["I have asthma"]
    assert await rig.core() == {"health": ["bad knee"]}
    assert "My wife has asthma, too." in await rig.messages()
    assert "I have asthma." not in await rig.messages()


async def test_a_value_a_written_memory_and_a_message_go_by_their_ids(services: Services) -> None:
    rig = await Rig.of(services, "I keep bees.", "I play the tuba.")
    await rig.know(hobbies=["chess", "rowing"])
    written = await services.memory.archive.insert(
        rig.owner, NewEpisode("Collects stamps.", "context", 0.5, "user_said"), Trigger("user")
    )
    before = await rig.everything()
    [message] = [
        each for each in await rig.changes.finder.nearest(rig.request, ["chess"], limit=12) if each.text == "chess"
    ]
    assert message.id.startswith("v")
    change = await rig.changes.forget(rig.request, ids=[message.id, str(written)])
    assert set(change["items"]) == {"chess", "Collects stamps."}
    messages, core, memories = await rig.everything()
    assert (core, memories) == ({"hobbies": ["rowing"]}, [])
    assert messages == before[0]
    await rig.undo(change)
    assert await rig.everything() == before


async def test_a_message_that_is_named_by_its_id_goes_with_its_answer(services: Services) -> None:
    turn = await exchange(services.turns, "I keep bees. I live in Porto.", "Bees, how lovely. Porto is, too.")
    rig = await Rig.of(services, "I play the tuba.")
    change = await rig.changes.forget(rig.request, ids=[str(turn.user_message_id)])
    assert change["operation_id"]
    assert await rig.messages() == ["I play the tuba.", "Noted."]
    await rig.undo(change)
    assert len(await rig.messages()) == 4


async def test_what_is_known_is_said_to_be(services: Services) -> None:
    rig = await Rig.of(services)
    pairs = [
        ("I keep bees.", " i keep  BEES "),
        ("我养蜂。", "我养蜂"),
        ("我养了一只橘猫，名字叫年糕。", "我养了一只橘猫,名字叫年糕"),
        ("My cat, Rice Cake, is orange.", "my cat “Rice Cake” is orange"),
    ]
    for text, again in pairs:
        assert (await rig.changes.remember(rig.request, text))["operation_id"]
        known = await rig.changes.remember(rig.request, again)
        assert known["operation_id"] is None
        assert known["summary"].startswith(("Memory holds this already", "记忆里已经有了"))
    assert len((await rig.core())["facts"]) == len(pairs)


async def test_an_empty_text_is_refused_with_the_reason(services: Services) -> None:
    rig = await Rig.of(services)
    with pytest.raises(InvalidInput, match="is empty: there is nothing to remember"):
        await rig.changes.remember(rig.request, " . ")


@pytest.mark.parametrize("by", ["id", "words"])
async def test_what_is_replaced_is_closed_wherever_it_stands(services: Services, by: str) -> None:
    rig = await Rig.of(services, "I live in Turin. I play the tuba.")
    await rig.know(facts=["I live in Turin"], home="Turin")
    before = await rig.everything()
    [value] = [
        each
        for each in await rig.changes.finder.nearest(rig.request, ["I live in Turin"], limit=12)
        if each.field == "facts"
    ]
    replaces = value.id if by == "id" else "I live in Turin"
    change = await rig.changes.remember(rig.request, "I live in Bath.", replaces=replaces)
    assert (change["kind"], change["summary"]) == ("correct", "Corrected in memory: I live in Bath.")
    assert (await rig.core())["facts"] == ["I live in Bath"]
    assert await rig.messages() == ["I live in Turin. I play the tuba.", "Noted."]
    await rig.undo(change)
    assert await rig.everything() == before


async def test_what_replaces_nothing_is_kept_all_the_same(services: Services) -> None:
    rig = await Rig.of(services)
    change = await rig.changes.remember(rig.request, "I live in Bath.", replaces="my old flat in Turin")
    assert change["kind"] == "remember"
    assert await rig.core() == {"facts": ["I live in Bath"]}


async def test_of_parallel_corrections_by_two_processes_one_value_is_left(
    services: Services, settings: Settings, engines: Engines
) -> None:
    rig = await Rig.of(services)
    await rig.changes.remember(rig.request, "My locker is number 100.")
    async with open_services(settings, engines) as others:
        both = (services, others)
        made = await asyncio.gather(
            *(
                both[number % 2].memory.changes.correct(
                    ChangeRequest.outside_of_turns(rig.owner, Trigger("user")),
                    "my locker is number",
                    f"My locker is number {200 + number}.",
                )
                for number in range(10)
            )
        )
    assert len((await rig.core())["facts"]) == 1
    assert all(each["operation_id"] for each in made)


async def test_a_value_goes_with_the_clause_it_was_filed_from_and_the_answers_words(services: Services) -> None:
    turn = await exchange(
        services.turns,
        "My dog is called Bruno and I am allergic to peanuts.",
        "Peanuts, I see. Bruno is a fine name.",
    )
    owner = owner_of(turn)
    filed = Trigger("user", turn.user_message_id, turn.conversation_id, turn.turn_id)
    await know(services, owner, "human", {"allergies": ["peanuts"], "pets": ["dog Bruno"]}, filed)
    rig = Rig(services, owner)
    before = await rig.everything()
    change = await rig.changes.forget(rig.request, "peanuts")
    assert await rig.messages() == ["My dog is called Bruno.", "Bruno is a fine name."]
    assert await rig.core() == {"pets": ["dog Bruno"]}
    assert change["items"] == ["I am allergic to peanuts"]
    await rig.undo(change)
    assert await rig.everything() == before


_SHARED = "I play chess on Mondays and train for a marathon"


async def test_what_shares_its_subject_is_asked_about(services: Services) -> None:
    rig = await Rig.of(services, f"{_SHARED}.")
    before = await rig.everything()
    change = await rig.changes.forget(rig.request, "that I play chess on Mondays")
    assert (change["operation_id"], change.get("also_said")) == (None, [_SHARED])
    assert "train for a marathon" in change["summary"]
    assert await rig.everything() == before


async def test_what_shares_its_subject_goes_if_the_caller_agrees(services: Services) -> None:
    rig = await Rig.of(services, f"{_SHARED}.")
    before = await rig.everything()
    change = await rig.changes.forget(rig.request, "that I play chess on Mondays", takes_all=True)
    assert await rig.messages() == []
    await rig.undo(change)
    assert await rig.everything() == before


async def test_of_what_shares_its_subject_the_sentence_that_is_to_stay_is_kept(services: Services) -> None:
    rig = await Rig.of(services, f"{_SHARED}.")
    before = await rig.everything()
    with pytest.raises(InvalidInput, match="may only have words of what stands there"):
        await rig.changes.forget(rig.request, "that I play chess on Mondays", keep="I train for the Olympics")
    change = await rig.changes.forget(rig.request, "that I play chess on Mondays", keep="I train for a marathon.")
    assert await rig.messages() == []
    assert await rig.core() == {"facts": ["I train for a marathon"]}
    await rig.undo(change)
    assert await rig.everything() == before


@pytest.mark.parametrize(
    ("known", "what", "stays"),
    [
        (
            "the wifi password is hunter2 and the router is in the attic",
            "the wifi password",
            "the router is in the attic",
        ),
        ("女儿米拉七岁，对猫毛过敏", "女儿对猫毛过敏", "女儿米拉七岁"),
    ],
)
async def test_of_a_statement_that_says_two_things_the_other_stays(
    services: Services, known: str, what: str, stays: str
) -> None:
    rig = await Rig.of(services)
    await rig.know(facts=[known, "plays the tuba"])
    before = await rig.everything()
    change = await rig.changes.forget(rig.request, what)
    assert await rig.core() == {"facts": [stays, "plays the tuba"]}
    assert stays not in change["summary"]
    await rig.undo(change)
    assert await rig.everything() == before


async def test_a_statement_that_names_two_things_is_offered_and_not_removed_by_one(services: Services) -> None:
    rig = await Rig.of(services)
    await rig.know(plans=["moved the search for a house from Otley to Ilkley"])
    before = await rig.everything()
    change = await rig.changes.forget(rig.request, "Otley")
    assert change["operation_id"] is None
    [candidate] = change["candidates"]
    assert await rig.everything() == before
    assert (await rig.changes.forget(rig.request, ids=[candidate["id"]]))["operation_id"]
    assert await rig.core() == {}


_TWO_FACTS = (
    (
        "My dog is called Bruno and my sister Ada lives in Oslo.",
        "that my dog is called Bruno",
        "my sister Ada lives in Oslo.",
    ),
    ("My dog is called Bruno, and I am allergic to peanuts.", "about the peanuts", "My dog is called Bruno."),
    ("I live in Leipzig and work as a nurse.", "that I work as a nurse", "I live in Leipzig."),
    ("我老婆是兽医，我们儿子叫乐乐。", "我老婆是兽医", "我们儿子叫乐乐。"),
    ("我姐姐住在成都，我对花生过敏。", "我对花生过敏这件事", "我姐姐住在成都。"),
    ("我周一下象棋，还在练马拉松。", "我在练马拉松", "我周一下象棋。"),
)
"""What was said, what of it is to be forgotten, and what stays."""


async def test_of_two_facts_one_is_forgotten_and_the_other_stays_whole(services: Services) -> None:
    for number, (message, forgotten, stays) in enumerate(_TWO_FACTS):
        rig = await Rig.of(services, message, user=f"u-{number}")
        change = await rig.changes.forget(rig.request, forgotten)
        assert change["operation_id"], change
        assert (await rig.messages())[0] == stays
        await rig.undo(change)
        assert (await rig.messages())[0] == message


async def test_where_core_memory_is_full_a_memory_is_written(services: Services) -> None:
    rig = await Rig.of(services)
    await rig.know(facts=["x" * (MAX_SECTION_BYTES - 60)])
    text = "Keeps the spare key of the allotment behind the third pot from the left."
    change = await rig.changes.remember(rig.request, text)
    assert (await rig.everything())[2] == [text.rstrip(".")]
    gone = await rig.changes.forget(rig.request, "the spare key of the allotment")
    assert gone["operation_id"]
    assert (await rig.everything())[2] == []
    await rig.undo(gone)
    assert (await rig.everything())[2] == [text.rstrip(".")]
    await rig.undo(change)
    assert (await rig.everything())[2] == []


_SAID_AFTERWARDS = """
INSERT INTO messages (id, tenant_id, conversation_id, turn_id, role, content, completed, token_count)
SELECT gen_random_uuid(), m.tenant_id, m.conversation_id, m.turn_id, said.role, said.text, true, 4
FROM messages m, generate_series(1, 310), unnest(%(roles)s::text[], %(texts)s::text[]) AS said (role, text)
WHERE m.role = 'user'
"""


@pytest.mark.parametrize("settings", [{}, {"encryption": True}], indirect=True, ids=["clear", "encrypted"])
async def test_what_was_said_long_ago_is_found_among_much_with_a_word_of_it(services: Services) -> None:
    rig = await Rig.of(services, "I keep my canoe at the lake in Bath.")
    async with services.database.tenant(DEFAULT_TENANT) as connection:
        texts = all_words(["The canoe is wet.", "What a canoe!"])
        values = {**vars(rig.owner), "roles": ["user", "assistant"], "texts": texts}
        await connection.execute(_SAID_AFTERWARDS, values)
    change = await rig.changes.forget(rig.request, "I keep my canoe at the lake in Bath")
    assert change["items"] == ["I keep my canoe at the lake in Bath"]


_HELD = {"allergies": ["peanuts"], "facts": ["My boat is called Isis"], "wishes": ["Keep your answers short"]}
_SAID = (
    *("My sister Ada plays the tuba.", "I'm allergic to milk.", "My cat is called Minka.", "我对虾过敏。"),
    *("我妹妹在北京读书。", "我养了一只猫叫团子。", "My boss Ingrid is on leave until June."),
)


_UNKNOWN = (
    "my brother",
    "my address in Leeds",
    "my blood type",
    "my dog's name",
    "my neighbour's cat Tom",
    "我的狗",
    "我妹妹的生日",
    "my trip to Japan",
    "我对猕猴桃过敏",
    "我养的乌龟",
)


async def test_unknown_things_lose_nothing_else(services: Services) -> None:
    rig = await Rig.of(services, *_SAID)
    await rig.know(**_HELD)
    before = await rig.everything()
    for what in _UNKNOWN:
        change = await rig.changes.forget(rig.request, what)
        assert change["operation_id"] is None, change
        assert await rig.everything() == before, what
