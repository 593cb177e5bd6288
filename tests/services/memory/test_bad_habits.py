"""Seventeen turns of a model with bad habits, which nobody has graded: what becomes memory, and what is asked."""

import json
from dataclasses import dataclass
from typing import Any

import pytest

from services.bootstrap import Services
from tests.support.filing import Operation, add, file, filed, human, remove, replace, waiting, written
from tests.support.model_server import ModelServer, Received, Reply
from tests.support.turns import exchange

pytestmark = pytest.mark.settings(llm_model="large", small_llm_model="small")


@dataclass(frozen=True)
class Habit:
    """A turn, and what the model makes of it."""

    said: str
    made: Reply
    is_told: bool = False
    """Whether the user tells what the model keeps."""
    answer: str = "I see."


def _habit(said: str, *made: Operation, **more: Any) -> Habit:
    return Habit(said, filed(*made), **more)


_SLOPPY = """Sure! ```json
{'operations': [{'op': 'ADD', 'text': 'lives in Dover', 'field': 'home', 'quote': 'I live in Dover',},], // done
}```"""
_LETTER = "My landlord wrote:\n> The rent rises to 900 in May."
HABITS = (
    Habit("I live in Dover.", Reply([_SLOPPY]), is_told=True),
    _habit("I drive a blue Skoda.", replace("m1", "drives a blue Skoda", "I drive a blue Skoda"), is_told=True),
    _habit("We visited Ruth.", add("Ruth is six", "Ruth is six years old")),
    Habit("What a long week.", Reply(["You keep an assistant's memory of a user: short statements"])),
    _habit("recommend a film for tonight", add("watches a film every night", "recommend a film for tonight")),
    _habit("I love black coffee.", add("喜欢喝红茶", "I love black coffee")),
    _habit("I'm thinking about a dog.", add("has a dog called Bruno", "thinking about a dog", "pets")),
    _habit("If I were rich I'd buy a boat.", add("owns a boat", "I'd buy a boat")),
    _habit("my wife Ann is vegetarian", add("is vegetarian", "my wife Ann is vegetarian")),
    _habit(
        "thanks, you're great", remove("m1", "thanks, you're great"), remove("m2", "thanks, you're great"),
        answer="You should take 1000 IU daily.",
    ),
    _habit("Thanks, I'll ask.", add("takes 1000 IU daily", "You should take 1000 IU daily")),
    _habit(_LETTER, add("the rent is 900 from May", "The rent rises to 900 in May")),
    _habit("I moved last year.", replace("m1", "lives in London", "I moved last year")),
    _habit("ok", {"op": "leave_out", "message": "u1", "quote": "off the record"}, remove("m1", "ok")),
    _habit("I wish I had a boat.", add("has a boat", "I wish I had a boat")),
    _habit("What a day it was.", add("drives a Skoda to Dover", "What a day it was")),
    _habit("Do I need a visa for Peru?", add("needs a visa for Peru", "Do I need a visa for Peru")),
)  # fmt: skip


@pytest.mark.parametrize(("looks", "false"), [("honestly", 0), ("as carelessly", 4)])
async def test_bad_habits_become_neither_memories_nor_senseless_questions(
    services: Services, model_server: ModelServer, looks: str, false: int
) -> None:
    """A model that is careless once more too keeps four: nothing but the meaning of the words tells them apart."""
    model_server.agrees, asked_again = False, list[str]()
    right = {"lives in Dover", "drives a blue Skoda"}
    for habit in HABITS:
        turn = await exchange(services.turns, habit.said, habit.answer)

        def answer(received: Received, habit: Habit = habit) -> Reply:
            if '"answers"' not in received.prompt[0][1]:
                return habit.made
            asked_again.append(received.prompt[-1][1])
            honest = Reply([json.dumps({"answers": ["yes" if habit.is_told else "no"]})])
            return honest if looks == "honestly" else habit.made

        model_server.default = answer
        await file(services, turn)
    known = await human(services, turn)
    kept = {text for value in known.values() for text in ([value] if isinstance(value, str) else value)}
    kept |= set(await written(services))
    assert right <= kept
    assert len(kept - right) <= false, kept - right
    assert {each.text for each in await waiting(services)} == {"takes 1000 IU daily", "the rent is 900 from May"}
    assert any("If I were rich I'd buy a boat" in each for each in asked_again), "the whole sentence is shown"
