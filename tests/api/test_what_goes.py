"""What goes along when memory changes, over HTTP with a model that calls tools: only what was named."""

from typing import Any

import httpx
import pytest

from tests.support.model_server import ModelServer, Received, Reply, ToolCall
from tests.support.talk import USER, Talk


@pytest.fixture
async def talk(client: httpx.AsyncClient, model_server: ModelServer) -> Talk:
    """The user u-1, of whom nothing is known yet."""
    return Talk(client, model_server)


async def _told(talk: Talk, told: str, *, saved: bool) -> None:
    if saved:
        talk.calls(("remember", {"text": told}))
    await talk.say(told, "told")


_TWO_FACTS = (
    ("My dog is called Rex and my sister Ada lives in Oslo.", "my dog is called Rex", ["Ada", "Oslo"], ["Rex"]),
    (
        "I live in Leipzig, and my daughter Mila is seven.",
        "that I live in Leipzig",
        ["Mila", "seven"],
        ["Leipzig"],
    ),
    ("The wifi password is hunter2 and the router is in the attic.", "the wifi password", ["attic"], ["hunter2"]),
    ("My daughter Mila is seven and is allergic to cat hair.", "allergic to cat hair", ["Mila"], ["cat hair"]),
    ("I work as a nurse. My brother Tom plays the tuba.", "my work as a nurse", ["Tom", "tuba"], ["nurse"]),
    ("My flight is on 3 May; my hotel is the Crown.", "my flight on 3 May", ["Crown"], ["3 May"]),
    ("I like tea, but my wife hates coffee.", "that I like tea", ["coffee"], ["like tea"]),
    (
        "Met up with Priya yesterday; she's expecting twins in June.",
        "that Priya is expecting twins",
        ["Met up"],
        ["twins"],
    ),
    (
        "We've got a cat called Miso, and Ada has a tortoise called Tank.",
        "a tortoise called Tank",
        ["Miso"],
        ["Tank"],
    ),
    ("我儿子在读高三，女儿刚上幼儿园。", "儿子读高三", ["幼儿园"], ["高三"]),
    ("我女儿米拉七岁，对猫毛过敏。", "女儿对猫毛过敏", ["米拉"], ["猫毛"]),
    ("我住在杭州，我女儿叫小米。", "我住在杭州", ["小米"], ["杭州"]),
    ("我姐姐在成都当护士，我对花生过敏。", "我对花生过敏", ["成都"], ["花生"]),
    ("我养了一只狗叫旺财。下周去北京出差。", "狗叫旺财", ["北京"], ["旺财"]),
    ("我周一下象棋，还在练马拉松。", "周一下象棋", ["马拉松"], ["象棋"]),
    ("门锁密码是4711，备用钥匙在花盆下面。", "门锁密码", ["花盆"], ["4711"]),
)


@pytest.mark.parametrize("saved", [False, True])
@pytest.mark.parametrize(("told", "what", "stay", "go"), _TWO_FACTS)
async def test_of_two_facts_of_a_message_only_the_named_one_goes(
    talk: Talk, told: str, what: str, stay: list[str], go: list[str], saved: bool
) -> None:
    await _told(talk, told, saved=saved)
    talk.calls(("forget", {"what": what}))
    [change] = (await talk.say(f"Forget {what}.", "asks"))["memory_changes"]
    assert change["operation_id"], change
    for session in ("told", "new"):
        await talk.say("Hello again.", session)
        assert [each for each in go if each in talk.prompt] == []
    found = await talk.found(" ".join([*stay, *go]))
    assert [each for each in stay if each not in found] == []
    assert [each for each in go if each in found] == []


_SHARED = "I'm allergic to peanuts and cats."


@pytest.mark.parametrize(
    ("again", "known", "prompt_has"),
    [({"keep": "I'm allergic to cats"}, {"facts": ["I'm allergic to cats"]}, "cats"), ({"all": True}, {}, "")],
)
async def test_what_shares_a_sentence_is_told_to_the_model_which_decides(
    talk: Talk, again: dict[str, Any], known: dict[str, Any], prompt_has: str
) -> None:
    await _told(talk, _SHARED, saved=True)
    seen: list[str] = []

    def decide(received: Received) -> Reply:
        outputs = [str(each["output"]) for each in received.body["input"] if "output" in each]
        seen[:] = outputs
        call = {"what": "the peanut allergy", **(again if outputs else {})}
        return (
            Reply(["Done."])
            if len(outputs) > 1
            else Reply(tool_calls=[ToolCall("forget", call, f"c{len(outputs)}")])
        )

    talk.model.default = decide
    await talk.say("Forget the peanut allergy.", "asks")
    assert "I'm allergic to peanuts and cats" in seen[0]
    assert "all=true" in seen[0]
    assert seen[1].startswith("Removed from memory: ")
    assert await talk.core() == known
    talk.model.default = Reply(["Hello."])
    await talk.say("Hello again.", "told")
    assert "peanut" not in talk.prompt
    assert prompt_has in talk.prompt


@pytest.mark.parametrize(
    ("told", "what", "clause", "stays"),
    [
        (
            "I take metformin for my diabetes and I swim every Tuesday.",
            "my diabetes medication",
            "I take metformin for my diabetes",
            "I swim every Tuesday",
        ),
        ("我的车牌是京A12345，停在地下二层。", "我的车牌号", "我的车牌是京A12345", "停在地下二层"),
    ],
)
async def test_a_clause_that_may_be_meant_is_offered_by_its_words_and_goes_alone(
    talk: Talk, told: str, what: str, clause: str, stays: str
) -> None:
    await _told(talk, told, saved=False)
    seen: list[str] = []

    def decide(received: Received) -> Reply:
        seen[:] = [str(each["output"]) for each in received.body["input"] if "output" in each]
        named = (what, clause)[len(seen)] if len(seen) < 2 else ""
        return (
            Reply(tool_calls=[ToolCall("forget", {"what": named}, f"c{len(seen)}")]) if named else Reply(["OK."])
        )

    talk.model.default = decide
    await talk.say(f"Forget {what}.", "asks")
    assert f"“{clause}”" in seen[0]
    assert stays not in seen[0], "the nearest clause of the message, not the last"
    talk.model.default = Reply(["Hello."])
    await talk.say("Hello again.", "told")
    assert (clause in talk.prompt, stays in talk.prompt) == (False, True)


@pytest.mark.parametrize(
    ("told", "what", "goes", "stays"),
    [
        (("I like tea.", "My wife likes tea."), "I like tea", "I like tea", "My wife likes tea"),
        (("我背上有颗痣。", "背上的痣有点痒。"), "背上的痣", "背上的痣有点痒", "我背上有颗痣"),
    ],
)
async def test_what_has_the_words_too_and_stays_is_told_and_goes_when_all_is_meant(
    talk: Talk, told: tuple[str, str], what: str, goes: str, stays: str
) -> None:
    for each in told:
        await talk.say(each, "s-1")
    talk.calls(("forget", {"what": what}))
    [change] = (await talk.say("Forget it, please.", "s-1"))["memory_changes"]
    assert change["items"] == [goes]
    assert f"“{stays}”" in talk.result.removeprefix(change["summary"])
    assert stays in await talk.found(stays)


async def test_everything_that_has_a_name_goes_when_all_is_meant(talk: Talk) -> None:
    await talk.say("My ex Tim owes me money. My dog is Rex.", "s-1")
    await talk.say("Tim called again.", "s-1")
    talk.calls(("forget", {"what": "Tim"}))
    assert (await talk.say("Nothing of Tim should stay with you.", "s-1"))["memory_changes"] == []
    talk.calls(("forget", {"what": "Tim", "all": True}))
    [change] = (await talk.say("All of it.", "s-1"))["memory_changes"]
    assert {"My ex Tim owes me money", "Tim called again"} < {*change["items"]}, "and the message that asks"
    assert "Rex" in await talk.found("Rex")


_FORGETS_AND_TELLS = (
    (
        "I live in Oslo.",
        "I live in Oslo",
        "Please forget that I live in Oslo. I live in Bergen now, and my dog is called Bruno.",
        ["Bergen", "Bruno"],
        "Oslo",
    ),
    (
        "My dog is called Rex.",
        "my dog is called Rex",
        "Forget that my dog is called Rex. My dog loves the sea and my sister is a nurse.",
        ["sea", "nurse"],
        "Rex",
    ),
    (
        "I work at Holm bakery.",
        "my work at Holm bakery",
        "Forget my work at Holm bakery. From May on I work at Siemens in Bergen.",
        ["Siemens", "Bergen"],
        "Holm",
    ),
    ("我住在杭州。", "我住在杭州", "请忘记我住在杭州。我现在住在上海，女儿叫小米。", ["上海", "小米"], "杭州"),
    ("I like tea.", "I like tea", "Please forget that I like tea. I am allergic to peanuts.", ["peanuts"], "tea"),
)


_NO_PLAIN_FORM = (
    (
        "I'm training for the Berlin marathon.",
        "training for the Berlin marathon",
        "Forget about the Berlin marathon, I'm doing the one in Porto instead.",
        ["Porto"],
        "Berlin",
    ),
)


@pytest.mark.parametrize(
    ("told", "what", "order", "stay", "gone", "with_tools"),
    [
        *((*each, True) for each in (*_FORGETS_AND_TELLS, *_NO_PLAIN_FORM)),
        *((*each, False) for each in _FORGETS_AND_TELLS),
    ],
)
async def test_who_forgets_and_tells_in_one_message_is_remembered_telling(
    talk: Talk, told: str, what: str, order: str, stay: list[str], gone: str, with_tools: bool
) -> None:
    await talk.say(told, "s-1")
    if with_tools:
        talk.calls(("forget", {"what": what}))
    else:
        talk.model.script(Reply(["All right."]))
    [change] = (await talk.say(order, "s-1"))["memory_changes"]
    assert change["kind"] == "forget"
    await talk.say("Hello again.", "s-1")
    assert [each for each in stay if each not in talk.prompt] == []
    assert gone not in talk.prompt
    found = await talk.found(" ".join([*stay, gone]))
    assert [each for each in stay if each not in found] == []
    assert gone not in found


@pytest.mark.parametrize(
    ("told", "detail", "replaces", "text", "stay"),
    [
        (
            "We're looking at a house in Ilkley, it's near my sister Joan.",
            "Viewing it on Saturday, it has 3 beds and a tiny garden.",
            "looking at a house in Ilkley",
            "is looking at a house in Ilkley with 3 beds, viewing on 2026-12-05",
            ["near my sister Joan", "We're looking at a house in Ilkley"],
        ),
        (
            "你好，我叫王岚，在苏州开花店，对芒果过敏。",
            "我之前说对芒果过敏，其实是对猕猴桃。",
            "对芒果过敏",
            "对猕猴桃过敏",
            ["我叫王岚", "在苏州开花店", "对芒果过敏"],
        ),
    ],
)
async def test_what_is_replaced_leaves_what_was_said_and_the_prompts_beginning(
    talk: Talk, told: str, detail: str, replaces: str, text: str, stay: list[str]
) -> None:
    talk.calls(("remember", {"text": replaces}))
    await talk.say(told, "s-1")
    await talk.say("Go on.", "s-1")
    before = talk.model.requests[-1].prompt
    talk.calls(("remember", {"text": text, "replaces": replaces}))
    [change] = (await talk.say(detail, "s-1"))["memory_changes"]
    assert change["kind"] == "correct"
    await talk.say("Hello again.", "s-1")
    assert [each for each in stay if each not in talk.prompt] == []
    assert text in talk.prompt
    said = [each for each in before if each[0] in {"user", "assistant"}][:3]
    after = talk.model.requests[-1].prompt
    assert after[: after.index(said[-1]) + 1][:2] == before[:2]
    assert all(each in after for each in said)
    found = await talk.found(told)
    assert [each for each in stay if each not in found] == []


async def test_what_holds_no_more_is_recalled_with_its_last_day(talk: Talk) -> None:
    talk.calls(("remember", {"text": "lives in Porto, close to the river"}))
    await talk.say("I live in Porto, close to the river.", "told")
    await talk.say("Where in Porto do I live, close to the river?", "asks")
    assert ", until " not in talk.prompt
    talk.calls(("remember", {"text": "lives in Faro", "replaces": "lives in Porto, close to the river"}))
    change = (await talk.say("I moved to Faro.", "moved"))["memory_changes"][0]
    await talk.say("Where do I live, in Porto close to the river?", "asks-2")
    until = next(line for line in talk.prompt.splitlines() if "I live in Porto" in line)
    assert ", until 20" in until
    await talk.say("I am hungry, and Porto is close to the river.", "tells")
    assert "I live in Porto" not in talk.prompt
    await talk.http.post(f"{USER}/memory-operations/{change['operation_id']}/undo")
    asked = await talk.say("Where do I live, in Porto close to the river?", "asks-4")
    assert "lives in Porto" in talk.prompt
    assert "I live in Porto" not in talk.prompt
    why = (await talk.http.get(f"/api/v1/turns/{asked['turn_id']}/why")).json()
    reasons = {each["text"]: each["reason"] for each in why["recall"]["items"]}
    assert reasons["I live in Porto, close to the river."] == "the prompt says it already"
    likely = [each["likelihood"] for each in why["recall"]["items"]]
    assert likely == sorted(likely, reverse=True)


@pytest.mark.parametrize(
    ("secret", "quote", "follow_up"),
    [
        (
            "off the record哈：我其实在interview一家Amsterdam的公司，Amy还不知道",
            "interview一家Amsterdam的公司",
            "final round下周二",
        ),
        ("Keep this between us please, ok? I'm interviewing in Amsterdam.", "", "The final round is on Tuesday."),
        ("我怀孕了，先别往外说啊", "我怀孕了", "预产期是五月"),
    ],
)
async def test_what_is_off_the_record_is_shown_in_its_conversation_and_nowhere_else(
    talk: Talk, secret: str, quote: str, follow_up: str
) -> None:
    await talk.say("Hello.", "s-1")
    talk.calls(("leave_out", {"quote": quote} if quote else {}))
    [change] = (await talk.say(secret, "s-1"))["memory_changes"]
    assert change["kind"] == "do_not_remember"
    talk.calls(("leave_out", {}))
    await talk.say(follow_up, "s-1")
    await talk.say("Hm.", "s-1")
    assert secret in talk.prompt
    assert follow_up in talk.prompt
    found = await talk.found(f"{secret} {follow_up}")
    assert [each for each in (secret[-12:], follow_up) if each in found] == []
    await talk.say("Amsterdam, 怀孕: what did I say of it, and of the final round, 预产期?", "s-2")
    assert [each for each in (secret[-12:], follow_up) if each in talk.prompt] == []
    talk.calls(("leave_out", {"quote": secret[-10:], "release": True}))
    await talk.say("You may remember it now.", "s-1")
    assert secret[-12:] in talk.result
    assert secret[-12:] in await talk.found(secret)
    assert follow_up not in await talk.found(secret)


async def test_an_earlier_message_is_left_out_by_words_of_it(talk: Talk) -> None:
    await talk.say("I am thinking of leaving Tom. My flight is at ten.", "s-1")
    talk.calls(("leave_out", {"quote": "thinking of leaving Tom"}))
    await talk.say("What I said about Tom stays here.", "s-1")
    assert "leaving Tom" not in await talk.found("Tom flight")
    await talk.say("Hm.", "s-1")
    assert "I am thinking of leaving Tom. My flight is at ten." in talk.prompt
    talk.calls(("leave_out", {"quote": "something never said"}))
    await talk.say("And that.", "s-1")
    assert talk.result.startswith("Nothing matching")


async def test_a_model_that_finds_nothing_off_the_record_is_told_so(talk: Talk) -> None:
    talk.calls(("leave_out", {"release": True}))
    await talk.say("You may remember it now.", "s-1")
    assert talk.result == "Nothing is off the record here; nothing was changed."


async def test_what_cannot_be_released_any_more_is_told(talk: Talk) -> None:
    talk.calls(("remember", {"text": "Lives in Ghent", "field": "home"}))
    await talk.say("I live in Ghent.", "s-1")
    talk.calls(("leave_out", {"quote": "live in Ghent"}))
    await talk.say("Keep what I said of Ghent between us.", "s-1")
    talk.calls(("remember", {"text": "Lives in Bruges", "field": "home"}))
    await talk.say("I live in Bruges.", "s-1")
    talk.calls(("leave_out", {"quote": "live in Ghent", "release": True}))
    await talk.say("You may remember it now.", "s-1")
    assert talk.result == ("Memory was changed otherwise since, so this stays off the record: “I live in Ghent.”.")
    assert "I live in Ghent" not in await talk.found("Ghent")


async def test_a_fact_at_the_end_of_a_long_message_is_forgotten(talk: Talk) -> None:
    long = " ".join(f"I walked past house {number}." for number in range(700))
    await talk.say(f"{long} I am allergic to peanuts. I like figs.", "s-1")
    talk.calls(("forget", {"what": "allergic to peanuts"}))
    await talk.say("Forget that.", "s-2")
    found = await talk.found("peanuts figs")
    assert "figs" in found
    assert "peanuts" not in found


async def test_a_name_shared_by_two_things_of_a_clause_does_not_take_both(talk: Talk) -> None:
    await _told(talk, "We've got a cat called Miso and a tortoise called Tank now.", saved=False)
    talk.calls(("forget", {"what": "a tortoise called Tank"}))
    await talk.say("Forget the tortoise.", "asks")
    assert "all=true" in talk.result
    assert "Miso" in await talk.found("Miso the cat")


async def test_whoever_names_all_of_a_memory_replaces_all_of_it(talk: Talk) -> None:
    told = "对花生过敏，推荐吃的不能带花生"
    await _told(talk, told, saved=True)
    talk.calls(("remember", {"text": "对腰果过敏，对花生不过敏", "replaces": told}))
    await talk.say("我对花生不过敏，是腰果。", "asks")
    assert await talk.core() == {"facts": ["对腰果过敏，对花生不过敏"]}


async def test_an_answer_from_before_repeats_nothing(talk: Talk) -> None:
    talk.model.script(Reply(["Poor Isla, that is a hard start. Ask her teacher."]))
    await talk.say("My daughter Isla hates her new school.", "told")
    talk.calls(("leave_out", {}))
    await talk.say("I just don't know how to tell Isla.", "told")
    assert "Poor Isla" in await talk.found("Isla hard start school teacher")
