"""The player can fail: every kind of expectation is named where it is wrong."""

import tomllib
from collections.abc import Iterator
from typing import Any

import pytest

from tests.scenarios.dialogue import EventExpected, Expected, PromptExpected
from tests.scenarios.loading import parse
from tests.scenarios.player import DialogueFailed, Player
from tests.scenarios.stage import Stage

HEAD = """
title = "A test"
language = "en"
themes = ["tests"]
[[small]]
when = "> I live in Oslo"
data.operations = []
"""
SAY = """
[[step]]
say = "What is the weather like in Paris today?"
model = "Grey, all of it."
"""
FAILS = """
[[step]]
say = "Hello?"
model = { status = 401 }
"""
LISTS = """
[[step]]
call = "GET /api/v1/conversations"
"""
TOLD = """
[[step]]
say = "I live in Oslo."
[[step]]
settle = "jobs"
"""
CHANNEL = """
[[step]]
past = "-2 20:00"
talk = [["Hello", "Hi"]]
"""
COUNTS = """
[[step]]
sql = "SELECT 1, 'one'"
"""

WRONG: dict[str, str] = {
    SAY: """
status = 404
answer = "Grey"
answer_has = ["all of", "blue"]
answer_lacks = "all of"
events = ["turn", "token", "done"]
events_lack = ["filler"]
body.usage.model_calls = 2
at."usage.model_calls" = 2
prompt_has = "submarine"
prompt_lacks = "long-term memory"
sections = ["recall"]
sections_lack = ["system"]
report.budget = 1
turn.status = "failed"
model_calls = 0
event = [
    { kind = "error" },
    { kind = "tool_call", has.arguments.city = "Oslo" },
    { kind = "tool_call", lacks = "Paris" },
]
prompt = [
    { part = "history", has = "the weather" },
    { call = 2 },
    { has = "submarine" },
    { lacks = "long-term memory" },
    { part = "after", messages = 0 },
]
""",
    FAILS: """
error = "llm_timeout"
""",
    LISTS: """
count.items = 1
absent = "items"
text_has = "things"
text_lacks = "items"
""",
    COUNTS: """
rows = [[1, "two"]]
""",
    TOLD: """
small_calls = 0
small_has = "> I live in Bergen."
""",
}
"""Expectations that do not hold, each named by the player, by the steps that they are about."""

UNASKED = """
[[step]]
say = "Hello"
model = ["One.", "Two."]
expect.answer = "One."
"""
UNKNOWN = """
[[step]]
say = "Hello {{nobody}}"
expect.status = 200
"""
AHEAD = """
[[step]]
past = "2999-01-01T00:00"
talk = [["Hello", "Hi"]]
expect.status = 200
"""
NOT_READ_ONLY = """
[[step]]
sql = "DELETE FROM turns"
expect.rows = []
"""


async def _play(stage: Stage, steps: str) -> None:
    dialogue = parse(HEAD + steps, "test.toml")
    await Player(dialogue, "test.toml", stage, await stage.house(dialogue)).play()


def _kinds(expected: dict[str, Any]) -> Iterator[str]:
    for name, value in expected.items():
        if name in {"event", "prompt"}:
            yield from (f"{name}.{each}" for one in value for each in one)
        else:
            yield name


def test_every_kind_of_expectation_is_tried() -> None:
    kinds = set(Expected.model_fields) - {"event", "prompt"}
    kinds |= {f"event.{name}" for name in EventExpected.model_fields}
    kinds |= {f"prompt.{name}" for name in PromptExpected.model_fields}
    assert {kind for wrong in WRONG.values() for kind in _kinds(tomllib.loads(wrong))} == kinds


@pytest.mark.parametrize("steps", WRONG)
async def test_each_expectation_that_is_wrong_is_named(stage: Stage, steps: str) -> None:
    wrong = tomllib.loads(WRONG[steps])
    with pytest.raises(DialogueFailed) as failed:
        await _play(stage, f"{steps}[step.expect]\n{WRONG[steps]}")
    first, *rest = str(failed.value).splitlines()
    assert first.startswith(f"test.toml, step {steps.count('[[step]]')} (")
    assert len(rest) == sum(len(value) if name in {"event", "prompt"} else 1 for name, value in wrong.items()), (
        rest
    )
    for name in wrong:
        assert any(line.strip().startswith(name.split("_")[0]) and "seen" in line for line in rest), name


@pytest.mark.parametrize(
    ("steps", "says"),
    [
        (FAILS + "expect.model_calls = 1", "it ended with llm_unauthorized"),
        (LISTS.replace("conversations", "nowhere") + 'expect.text_has = "404"', "it was answered 404"),
        (UNASKED, "was not asked for 1 of its answers"),
        (UNKNOWN, "there is no {{nobody}}"),
        (AHEAD, "lines were refused"),
        (NOT_READ_ONLY, "read-only"),
        (CHANNEL.replace("-2 20:00", "yesterday") + "expect.status = 200", "'yesterday' is no time"),
        ('[[step]]\nwait = "a while"\n[[step]]\nsql = "SELECT 1"\nexpect.rows = [[1]]', "'a while' is no time"),
        ('[[step]]\nrun = "no_such_task"\nexpect.at.job = "succeeded"', "no task no_such_task"),
    ],
)
async def test_what_nobody_expected_fails_too(stage: Stage, steps: str, says: str) -> None:
    with pytest.raises(DialogueFailed) as failed:
        await _play(stage, steps)
    assert says in str(failed.value)


async def test_files_share_a_service_and_nothing_else(stage: Stage) -> None:
    same = '[[step]]\nsay = "Remember that I am Una."\n' + LISTS + "expect.count.items = 1\n"
    await _play(stage, same)
    opened = list(stage.houses)
    await _play(stage, same)
    assert list(stage.houses) == opened
    await _play(stage, "[service]\ntools_quick = false\n" + same)
    assert len(stage.houses) == len(opened) + 1
