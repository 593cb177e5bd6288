"""What models answer that file badly becomes no memory, and small questions keep what they can tell."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from services.bootstrap import Services
from services.memory.filing.grade import grade_filing
from services.memory.operations import Trigger
from tests.support.core_memory import know
from tests.support.filing import add, asked, file, filed, human, logged, owner, remove, replace, waiting
from tests.support.model_server import ModelServer, Received, Reply
from tests.support.turns import exchange

pytestmark = pytest.mark.settings(llm_model="large", small_llm_model="small")


@pytest.fixture(autouse=True)
def _asked_once_more(model_server: ModelServer) -> None:
    """What a model says that is asked once more is scripted here."""
    model_server.agrees = False


_SOME = pytest.mark.settings(llm_model="large", small_llm_model="small", memory_filing_grade="some")


@pytest.mark.parametrize(
    ("said", "operation"),
    [
        ("I love black coffee.", add("喜欢喝红茶", "I love black coffee")),
        ("我特别喜欢喝黑咖啡。", add("likes black tea", "我特别喜欢喝黑咖啡")),
        ("I'm thinking about a dog.", add("has a dog called Bruno", "thinking about a dog", "pets")),
        ("我在考虑养狗。", add("养了一只狗叫布鲁诺", "我在考虑养狗")),
        ("I moved last year.", replace("m1", "resides near London", "I moved last year")),
        ("thanks, you're great", remove("m1", "thanks, you're great")),
        ("好的，谢谢你", remove("m1", "好的，谢谢你")),
        ("I like long walks at night.", add("owns a motorbike", "I like long walks")),
    ],
    ids=[
        "script en",
        "script zh",
        "example en",
        "example zh",
        "invented",
        "senseless en",
        "senseless zh",
        "unsaid",
    ],
)
async def test_a_statement_that_shows_no_understanding_is_neither_kept_nor_asked_about(
    services: Services, model_server: ModelServer, said: str, operation: dict[str, Any]
) -> None:
    turn = await exchange(services.turns, said, "OK.")
    await know(services, owner(turn), "human", {"home": "lives in Dover"}, Trigger("user"))
    model_server.default = filed(operation)
    assert await file(services, turn) == 0
    assert await human(services, turn) == {"home": "lives in Dover"}
    assert not await waiting(services)


async def test_an_example_that_the_user_really_tells_is_kept(
    services: Services, model_server: ModelServer
) -> None:
    turn = await exchange(services.turns, "We've got a dog, his name is Bruno.", "OK.")
    model_server.default = filed(add("has a dog called Bruno", "We've got a dog, his name is Bruno", "pets"))
    assert await file(services, turn) == 1


@pytest.mark.settings(llm_model="large", small_llm_model="small", memory_filing_grade="well")
async def test_a_model_that_files_well_may_use_other_words(services: Services, model_server: ModelServer) -> None:
    turn = await exchange(services.turns, "Anything with milk in it makes me ill for days.", "OK.")
    model_server.default = filed(add("lactose intolerant", "Anything with milk in it makes me ill", "health"))
    assert await file(services, turn) == 1


def _plainly(facts: Sequence[tuple[str, str]], sure: Sequence[str] = (), relation: str = "new") -> Any:
    """A model that answers the small questions."""

    def answer(received: Received) -> Reply:
        prompt = received.prompt[0][1]
        found: dict[str, Any] = {"answer": relation}
        if '"facts"' in prompt:
            found = {"facts": [{"quote": quote, "text": text} for quote, text in facts]}
        elif '"answers"' in prompt:
            found = {"answers": list(sure)}
        return Reply([json.dumps(found, ensure_ascii=False)])

    return answer


@_SOME
@pytest.mark.parametrize(
    ("said", "facts", "sure", "relation", "known"),
    [
        (
            "I live in Ghent now. If I were rich I'd buy a boat. My wife Ann is vegetarian. Is Ghent rainy ?",
            [
                ("I live in Ghent now", "The user lives in Ghent."),
                ("I'd buy a boat", "The user owns a boat."),
                ("My wife Ann is vegetarian", "The user is vegetarian."),
                ("I adore jazz", "The user adores jazz."),
                ("Is Ghent rainy", "Ghent is rainy."),
                ("My wife Ann is vegetarian", "You could cook vegetarian dishes for her guests."),
            ],
            ["yes", "no", "no"],
            "instead",
            {"home": "The user lives in Ghent"},
        ),
        (
            "我住在根特，女儿叫小满。",
            [("我住在根特", "用户住在根特"), ("女儿叫小满", "用户的女儿叫小满")],
            ["yes", "yes"],
            "new",
            {"home": "The user lives in Dover.", "facts": ["用户住在根特", "用户的女儿叫小满"]},
        ),
        (
            "I have moved to Ghent. Is it rainy there? 我换工作了，你觉得远吗？",
            [
                ("I have moved to Ghent. Is it rainy there?", "The user has moved to Ghent."),
                ("I have moved to Ghent. Is it rainy there?", "It is rainy there."),
                ("我换工作了，你觉得远吗？", "用户觉得远"),
            ],
            ["yes"],
            "new",
            {"home": "The user lives in Dover.", "facts": ["The user has moved to Ghent"]},
        ),
        (
            "The user lives in Dover, I said.",
            [("lives in Dover", "The user lives in Dover.")],
            ["yes"],
            "new",
            None,
        ),
    ],
    ids=["en", "zh", "asked", "known"],
)
async def test_small_questions_keep_what_is_surely_said(
    services: Services,
    model_server: ModelServer,
    said: str,
    facts: list[tuple[str, str]],
    sure: list[str],
    relation: str,
    known: dict[str, Any] | None,
) -> None:
    turn = await exchange(services.turns, said, "OK.")
    before = {"home": "The user lives in Dover."}
    await know(services, owner(turn), "human", before, Trigger("user"))
    model_server.default = _plainly(facts, sure, relation)
    await file(services, turn)
    assert await human(services, turn) == (known or before)
    assert not await waiting(services)
    [recorded] = [each.results for each in await logged(services) if each.type == "memory_filing"]
    assert recorded["dropped"] == len(facts) - sure.count("yes"), "what fails a check is counted"


@_SOME
@pytest.mark.parametrize("answer", ["I cannot.", '{"facts": "none"}', '{"facts": [1, {"quote": "x"}]}'])
async def test_what_is_no_list_of_facts_keeps_nothing(
    services: Services, model_server: ModelServer, answer: str
) -> None:
    turn = await exchange(services.turns, "I live in Ghent.", "OK.")
    model_server.default = Reply([answer])
    assert await file(services, turn) == 0


@pytest.mark.settings(llm_model="large", small_llm_model="small", memory_filing_grade="none")
async def test_a_model_that_only_answers_is_not_asked(services: Services, model_server: ModelServer) -> None:
    turn = await exchange(services.turns, "I live in Ghent.", "OK.")
    assert await file(services, turn) == 0
    assert not asked(model_server)


def _knows(received: Received, *, well: bool) -> Reply:
    """A model that tells what the made-up talks say, in one answer or only in small questions."""
    system, said = received.prompt[0][1], received.prompt[-1][1]
    if "heliotrope" in system:
        return Reply(["heliotrope"])
    facts = [
        ("I moved to Ghent last week", "lives in Ghent", ""),
        ("my cat Minka likes it", "has a cat called Minka", ""),
        ("现在在海风上班", "在海风上班", "m1"),
        ("My brother Nils is allergic to cashews", "brother Nils is allergic to cashews", ""),
    ]
    told = [each for each in facts if each[0] in said]
    if '"facts"' in system:
        return Reply([json.dumps({"facts": [{"quote": quote, "text": text} for quote, text, _ in told]})])
    if '"answers"' in system:
        return Reply([json.dumps({"answers": ["yes"] * sum(text in said for _, text, _ in facts)})])
    if '"answer"' in said:
        return Reply(['{"answer": "instead"}'])
    return (
        filed(*(replace(m, text, quote) if m else add(text, quote) for quote, text, m in told))
        if well
        else Reply(["?"])
    )


@pytest.mark.parametrize(("model", "grade"), [("well", "well"), ("some", "some"), ("chat", "none")])
async def test_the_grade_is_what_the_model_can_do(
    services: Services, model_server: ModelServer, model: str, grade: str
) -> None:
    model_server.default = Reply(["Hello!"]) if model == "chat" else lambda it: _knows(it, well=model == "well")
    found = await grade_filing(services.models)
    assert found is not None
    assert (found.grade, found.cuts_prompts) == (grade, model == "chat")
    assert {each.result for each in found.tried[-5:-1]} <= (
        {"right"} if grade != "none" else {"wrong", "no answer", "right"}
    )
