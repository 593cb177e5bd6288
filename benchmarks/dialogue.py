"""A long conversation's text, the same for the same seed; and a language model that keeps it going."""

import json
import re
import time
import zlib
from random import Random

from benchmarks.prose import PARAGRAPHS
from benchmarks.stand_in_tokenizers import by_word_pieces
from services.llm.token_estimates import MESSAGE_OVERHEAD
from tests.support.model_server import Received, Reply

CHAT_MODEL = "stand-in"
SMALL_MODEL = "stand-in-small"
MESSAGE_CHARACTERS = (30, 400)
ANSWER_CHARACTERS = (80, 800)

count = by_word_pieces(1.0)
"""The stand-in's tokenizer."""

_SENTENCES = [
    sentence.strip()
    for paragraph in PARAGRAPHS
    for sentence in re.split(r"(?<=[。？！])|(?<=[.?!]) ", paragraph)
    if sentence.strip()
]
_NUMBER = re.compile(r"^\[(\d+)\] ", re.MULTILINE)
_TOPIC_MESSAGES = 10
"""Messages that a topic has at least."""


def message_of(seed: int, turn: int, scale: float = 1.0) -> str:
    """The user's message of a turn, counted from 1; `scale` makes it shorter or longer."""
    return _text(Random(f"{seed} {turn}"), MESSAGE_CHARACTERS, scale)


def answer_to(message: str, scale: float = 1.0) -> str:
    """The model's answer to a message."""
    return _text(Random(zlib.crc32(message.encode())), ANSWER_CHARACTERS, scale)


def _text(random: Random, characters: tuple[int, int], scale: float) -> str:
    length = round(random.randint(*characters) * scale)
    text = random.choice(_SENTENCES)
    while len(text) < length:
        text = f"{text} {random.choice(_SENTENCES)}"
    return text[:length].strip()


def prompt_tokens(prompt: list[tuple[str, str]]) -> int:
    """Tokens of messages by the stand-in's tokenizer."""
    return sum(count(text) + MESSAGE_OVERHEAD for _, text in prompt)


def reported_tokens(received: Received) -> int:
    """Return the token count that the stand-in reports of a prompt, tools included."""
    tools = received.body.get("tools")
    return prompt_tokens(received.prompt) + (count(json.dumps(tools, ensure_ascii=False)) if tools else 0)


def answer(received: Received, scale: float = 1.0) -> Reply:
    """The stand-in's answer: of the conversation, or of the work behind it."""
    if received.body.get("model") != SMALL_MODEL:
        return Reply([answer_to(received.prompt[-1][1], scale)])
    asked = "\n".join(text for _, text in received.prompt)
    return Reply([_topics(asked) if '"topics"' in asked else _summary(asked)])


def slow_background(received: Received) -> Reply:
    """A dialogue whose background work takes a while."""
    reply = answer(received)
    if received.body.get("model") == SMALL_MODEL:
        return Reply(reply.pieces, delay_s=0.3)
    return reply


def _summary(asked: str) -> str:
    random = Random(zlib.crc32(asked.encode()))
    return " ".join(random.sample(_SENTENCES, random.randint(2, 3)))


def _topics(asked: str) -> str:
    """Cut the messages that stand numbered in the prompt into topics; the last one takes the rest."""
    numbers = sorted({int(number) for number in _NUMBER.findall(asked)})
    random = Random(zlib.crc32(asked.encode()))
    topics = []
    for start in numbers[: -_TOPIC_MESSAGES + 1 or None : _TOPIC_MESSAGES]:
        rest = len(numbers) - start + 1
        end = numbers[-1] if rest < 2 * _TOPIC_MESSAGES else start + _TOPIC_MESSAGES - 1
        topic = {"title": f"Messages {start} to {end}", "summary": " ".join(random.sample(_SENTENCES, 2))}
        topics.append({**topic, "start": start, "end": end, "keywords": ["家", "work", "food"]})
    told = {"topics": topics, "user_information": {"allergies": "peanuts", "city": "杭州"}}
    return json.dumps(told, ensure_ascii=False)


def milliseconds_since(begun: float) -> float:
    """Since a reading of `time.perf_counter`."""
    return (time.perf_counter() - begun) * 1000
