"""Texts that repeat one thing, to find patterns and loops that go over a text too often."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress

FAMILIES: Mapping[str, str] = {
    "a passage with an id": "<source id=a ",
    "a passage": "<source id=a>x</source>",
    "an opening mark": "<context>",
    "another opening mark": "<sources>",
    "a mark with a passage": "<context><source id=1>",
    "a list of files": "<attached_files>",
    "a question in marks": "<user_query>",
    "Cherry's heading": "\n## My question is:\n",
    "a task": "### Task:\n",
    "what is folded away": "<details>",
    "a mark without an end": "<details ",
    "a thought": "<think>",
    "a mark of the prompt": "<memory>",
    "a comment": "<!--",
    "blanks": " ",
    "tabs": "\t",
    "line breaks": "\n",
    "wide blanks": "\u3000",
    "square brackets": "[",
    "braces": "{",
    "brackets and braces": '[{"a":',
    "operations": '{"op":"add"},',
    "round brackets": "(",
    "quotes": '"',
    "single quotes": "'",
    "typographic quotes": "“",
    "Chinese quotes": "「",
    "fences": "```",
    "quoted lines": "> a\n",
    "addresses": "https://a.b/c?d=e ",
    "parts of a mail address": "www.a.",
    "hyphens": "sk-",
    "Han characters": "我",
    "Han sentences": "我吃素。",
    "Han commas": "，",
    "Han numbers": "三月",
    "digits": "12",
    "dates": "2026-11-21 ",
    "days": "11/21 ",
    "times of the day": "a 12:30 ",
    "articles": "a ",
    "a plain form": "don't remember this ",
    "another plain form": "忘掉",
    "headers of a mail": "From: a\n",
    "speakers": "a: b\n",
    "rows": "|a|b|\n",
    "rules of a table": "|-|\n",
    "rows of a file": "a,b\n",
    "commas": ", ",
    "list items": "- ",
    "backslashes": "\\",
    "a title that is asked for": "generate a title ",
    "invisible characters": "\u200b",
}
USUAL = (
    *("a passage with an id", "an opening mark", "another opening mark", "a list of files", "Cherry's heading"),
    *("what is folded away", "a mark without an end", "a mark of the prompt", "blanks", "wide blanks"),
    *("square brackets", "brackets and braces", "operations", "quotes", "typographic quotes", "fences"),
    *("quoted lines", "addresses", "parts of a mail address", "Han characters", "Han numbers", "digits", "dates"),
    *("articles", "a plain form", "rules of a table", "backslashes"),
)
"""Families that represent the others when time is short."""
PLAIN = "My cat Minka is well, and I like tea in the morning. We live in Bern. "
SIZES = (2_048, 4_096, 8_192, 16_384)
_ROUNDS = 3


def repeated(family: str, size: int, number: int = 0) -> str:
    """Return a text of a family; texts with different numbers differ, because some results are cached."""
    piece = FAMILIES.get(family, PLAIN)
    end = f" {number}" if number else ""
    return (piece * (size // len(piece) + 1))[: size - len(end)] + end


def grows_too_fast(work: Callable[[str], object], family: str, *, harmless_s: float = 0.004) -> str | None:
    """Compare the processor's time for several sizes; return what is wrong. Quadratic work takes sixteen times
    as long for four times the length; the limit of eight leaves room for noise."""
    number = 0

    def least(size: int, rounds: int) -> float:  # other processes and garbage collection only add time
        nonlocal number
        found = []
        for _ in range(rounds):
            number += 1
            text, begun = repeated(family, size, number), time.thread_time()
            work(text)
            found.append(time.thread_time() - begun)
        return min(found)

    once = {size: least(size, 1) for size in reversed(SIZES)}
    for short, long in zip(SIZES, SIZES[2:], strict=False):
        if once[long] <= max(8 * once[short], harmless_s):
            continue
        before, after = least(short, _ROUNDS), least(long, _ROUNDS)
        if after > max(8 * before, harmless_s):
            return f"{family}: {before * 1000:.1f} ms for {short} characters, {after * 1000:.1f} ms for {long}"
    return None


class Pauses:
    """Longest time in which the loop did nothing else, measured as processor time of its thread."""

    def __init__(self) -> None:
        self.longest_s = 0.0

    async def watch(self) -> None:
        """Look at the clock in each round of the loop, until cancelled."""
        before = time.thread_time()
        while True:
            await asyncio.sleep(0)
            now = time.thread_time()
            self.longest_s, before = max(self.longest_s, now - before), now


@asynccontextmanager
async def pauses() -> AsyncIterator[Pauses]:
    """Watch the loop during the block."""
    found = Pauses()
    watching = asyncio.create_task(found.watch())
    try:
        yield found
    finally:
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching
