"""The player can fail: every kind of expectation holds where it is right, and is named where it is wrong."""

import pytest

from tests.scenarios.dialogue import EventExpected, Expected, PromptExpected
from tests.scenarios.loading import parse
from tests.scenarios.player import DialogueFailed, Player
from tests.scenarios.stage import Stage

pytestmark = pytest.mark.anyio

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

Case = tuple[str, str, str, str]
"""What is expected of, the steps, and what is right and wrong of them."""

CASES: list[Case] = [
    ("status", SAY, "status = 200", "status = 404"),
    ("error", FAILS, 'error = "llm_unauthorized"', 'error = "llm_timeout"'),
    ("answer", SAY, 'answer = "Grey, all of it."', 'answer = "Grey"'),
    ("answer_has", SAY, 'answer_has = "all of"', 'answer_has = ["all of", "blue"]'),
    ("answer_lacks", SAY, 'answer_lacks = "blue"', 'answer_lacks = "all of"'),
    (
        "events",
        SAY,
        'events = ["turn", "route_decision", "filler", "tool_call", "tool_result", "token", "done"]',
        'events = ["turn", "token", "done"]',
    ),
    ("events_have", SAY, 'events_have = ["tool_call", "done"]', 'events_have = ["done", "tool_call"]'),
    ("events_lack", SAY, 'events_lack = ["error"]', 'events_lack = ["filler"]'),
    ("event.kind", SAY, 'event = [{ kind = "filler" }]', 'event = [{ kind = "error" }]'),
    (
        "event.has",
        SAY,
        'event = [{ kind = "tool_call", has.arguments.city = "Paris" }]',
        'event = [{ kind = "tool_call", has.arguments.city = "Oslo" }]',
    ),
    (
        "event.lacks",
        SAY,
        'event = [{ kind = "tool_call", lacks = "Oslo" }]',
        'event = [{ kind = "tool_call", lacks = "Paris" }]',
    ),
    ("body", SAY, "body.usage.model_calls = 1", "body.usage.model_calls = 2"),
    ("at", SAY, 'at."usage.model_calls" = 1', 'at."usage.model_calls" = 2'),
    ("count", LISTS, "count.items = 0", "count.items = 1"),
    ("absent", LISTS, 'absent = "next"', 'absent = "items"'),
    ("text_has", LISTS, 'text_has = "items"', 'text_has = "things"'),
    ("text_lacks", LISTS, 'text_lacks = "things"', 'text_lacks = "items"'),
    ("rows", COUNTS, 'rows = [[1, "one"]]', 'rows = [[1, "two"]]'),
    (
        "prompt.part",
        SAY,
        'prompt = [{ part = "message", has = "the weather" }]',
        'prompt = [{ part = "history", has = "the weather" }]',
    ),
    ("prompt.call", SAY, "prompt = [{ call = 1 }]", "prompt = [{ call = 2 }]"),
    ("prompt.has", SAY, 'prompt = [{ has = "long-term memory" }]', 'prompt = [{ has = "submarine" }]'),
    ("prompt.lacks", SAY, 'prompt = [{ lacks = "submarine" }]', 'prompt = [{ lacks = "long-term memory" }]'),
    (
        "prompt.messages",
        SAY,
        'prompt = [{ part = "message", messages = 1 }]',
        'prompt = [{ part = "after", messages = 0 }]',
    ),
    ("prompt_has", SAY, 'prompt_has = "long-term memory"', 'prompt_has = "submarine"'),
    ("prompt_lacks", SAY, 'prompt_lacks = "submarine"', 'prompt_lacks = "long-term memory"'),
    ("sections", SAY, 'sections = ["system"]', 'sections = ["recall"]'),
    ("sections_lack", SAY, 'sections_lack = ["recall"]', 'sections_lack = ["system"]'),
    ("report", SAY, "report.budget = 4000", "report.budget = 1"),
    ("turn", SAY, 'turn.status = "completed"', 'turn.status = "failed"'),
    ("model_calls", SAY, "model_calls = 1", "model_calls = 0"),
    ("small_calls", TOLD, "small_calls = 1", "small_calls = 0"),
    ("small_has", TOLD, 'small_has = "> I live in Oslo."', 'small_has = "> I live in Bergen."'),
    ("small_lacks", TOLD, 'small_lacks = "Bergen"', 'small_lacks = "Oslo"'),
    ("weather_asked", SAY, 'weather_asked = ["Paris"]', 'weather_asked = ["Oslo"]'),
]

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
NOT_HELD = """
[[step]]
read = "nothing"
expect.answer = ""
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


def test_every_kind_of_expectation_is_tried() -> None:
    kinds = set(Expected.model_fields) - {"event", "prompt"}
    kinds |= {f"event.{name}" for name in EventExpected.model_fields}
    kinds |= {f"prompt.{name}" for name in PromptExpected.model_fields}
    assert {case[0] for case in CASES} == kinds


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
async def test_what_is_right_passes_and_what_is_wrong_is_named(case: Case, stage: Stage) -> None:
    kind, steps, right, wrong = case
    await _play(stage, f"{steps}[step.expect]\n{right}\n")
    number = steps.count("[[step]]")
    with pytest.raises(DialogueFailed) as failed:
        await _play(stage, f"{steps}[step.expect]\n{wrong}\n")
    first, *rest = str(failed.value).splitlines()
    assert first.startswith(f"test.toml, step {number} (")
    assert len(rest) == 1, rest
    assert rest[0].strip().startswith(kind.split(".")[0].split("_")[0])
    assert "seen" in rest[0]


@pytest.mark.parametrize(
    ("steps", "says"),
    [
        (FAILS + "expect.model_calls = 1", "it ended with llm_unauthorized"),
        (LISTS.replace("conversations", "nowhere") + 'expect.text_has = "404"', "it was answered 404"),
        (UNASKED, "was not asked for 1 of its answers"),
        (UNKNOWN, "there is no {{nobody}}"),
        (NOT_HELD, "KeyError: 'nothing'"),
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


async def test_what_is_expected_may_take_its_time(stage: Stage) -> None:
    await _play(stage, TOLD.replace('settle = "jobs"', 'sql = "SELECT 1"\nwithin_s = 10\nexpect.small_calls = 1'))
    with pytest.raises(DialogueFailed):
        await _play(stage, COUNTS + "within_s = 0.2\nexpect.rows = []\n")
