"""What the benchmark of long conversations counts, and what its stand-in answers."""

import json

import pytest

from benchmarks.conversation_play import Played, Prompt, common_beginning, stable_part
from benchmarks.dialogue import ANSWER_CHARACTERS, MESSAGE_CHARACTERS, SMALL_MODEL, answer, answer_to, message_of
from tests.support.model_server import Received

SYSTEM, SUMMARY = ("system", "Be kind."), ("system", "They talked.")
HELLO, ANSWER, MORE = ("user", "Hello"), ("assistant", "Hi"), ("user", "And now?")
TAIL = ("system", "It is noon.")


@pytest.mark.parametrize(
    ("prompt", "stable"),
    [
        ([SYSTEM, HELLO], [SYSTEM]),
        ([SYSTEM, SUMMARY, HELLO], [SYSTEM, SUMMARY]),
        ([SYSTEM, HELLO, ANSWER, MORE], [SYSTEM, HELLO, ANSWER]),
        ([SYSTEM, HELLO, ANSWER, TAIL, MORE], [SYSTEM, HELLO, ANSWER]),
    ],
)
def test_the_tail_and_the_new_message_are_not_stable(prompt: Prompt, stable: Prompt) -> None:
    assert stable_part(prompt) == stable


def test_what_was_sent_the_turn_before_is_reused() -> None:
    before, prompt = [SYSTEM, HELLO], [SYSTEM, HELLO, ANSWER, MORE]
    assert common_beginning(stable_part(prompt), before) == before
    played = Played("window")
    played.add_prompt(before, [])
    played.add_prompt(prompt, before)
    assert 0.5 < played.shared(2) < 1


def test_texts_are_the_same_for_the_same_seed_and_of_the_lengths() -> None:
    for turn in range(200):
        message = message_of(1, turn)
        assert message == message_of(1, turn)
        assert MESSAGE_CHARACTERS[0] - 1 <= len(message) <= MESSAGE_CHARACTERS[1]
        assert ANSWER_CHARACTERS[0] - 1 <= len(answer_to(message)) <= ANSWER_CHARACTERS[1]


@pytest.mark.parametrize("messages", [0, 1, 9, 10, 19, 20, 34, 95])
def test_topics_cover_the_messages_in_order(messages: int) -> None:
    lines = "\n".join(f"[{number}] User: 12 [3] apples" for number in range(1, messages + 1))
    prompt = [{"role": "system", "content": 'Answer {"topics": []}'}, {"role": "user", "content": lines}]
    reply = answer(Received("/v1/responses", {"model": SMALL_MODEL, "input": prompt}, {}))
    ranges = [(topic["start"], topic["end"]) for topic in json.loads("".join(reply.pieces))["topics"]]
    assert all(end - start >= 9 for start, end in ranges)
    covered = [number for start, end in ranges for number in range(start, end + 1)]
    assert covered == (list(range(1, messages + 1)) if messages >= 10 else [])
