"""No pattern takes exponential time for what a user can write: one such message would occupy a core for good."""

import gc
import re
import signal
import time
from re import _constants, _parser  # type: ignore[attr-defined]
from types import FrameType
from typing import Any

import pytest

from tests.support.product_patterns import product_patterns

_PIECES = (
    *"1aA一我，, \n.-\"'(忘月点",
    *("Ab ", "1,", "1.", "1 ", "a ", "a,", "我，", "not ", "and ", "the ", "12:", "my ", "was "),
)
_LENGTH = 60
_CPU_S = 5.0
"""Processor time for all pieces together; a pattern without this fault needs a thousandth of it."""


_RUNS = (
    *(" ", "\t", "\n", "\r\n", "\u3000", "a", "A", "1", "一", "我", "é", "_", "\u200b"),
    *(".", ",", "，", "。", "-", "—", "…", "'", '"', "“", "「", "(", "[", "<", ">", "/", "\\", ":", "?", "!"),
    *("www.a.", "http://", "12:30 ", "<a>", "</a>", "<!--", "```", "> a\n", "a: b\n", "|-|\n", "a,b\n", '{"a":'),
    *("#", "*", "=", "|", "~", "`", "@", "&", "$", " \n", "a ", "1,", "- ", "我 "),
)
"""A class of characters each, repeated."""
_LONG = 2_000
_HARMLESS_S = 0.001
"""Processor time for that many characters, beyond which its growth is looked at."""


_FEWEST_OF_A_MARK = 3


class _TooSlow(Exception):
    pass


def _give_up(_: int, __: FrameType | None) -> None:
    raise _TooSlow


def test_no_pattern_takes_exponential_time() -> None:
    patterns = product_patterns()
    assert len(patterns) >= 300
    slow = set()
    before = signal.signal(signal.SIGVTALRM, _give_up)
    try:
        for pattern, name in patterns.items():
            signal.setitimer(signal.ITIMER_VIRTUAL, _CPU_S)
            try:
                for piece in _PIECES:
                    text = (piece * _LENGTH)[:_LENGTH]
                    for whole in (text, f"{text}!x"):
                        pattern.findall(whole)
            except _TooSlow:
                slow.add(f"{name}: {pattern.pattern[:80]}")
            finally:
                signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    finally:
        signal.signal(signal.SIGVTALRM, before)
    assert slow == set()


def _grows_too_fast(pattern: re.Pattern[str], run: str) -> bool:
    """Whether four times the length takes more than eight times as long: the square would be sixteen times."""

    def seconds(length: int) -> float:
        text = f"x{(run * length)[:length]}y"
        gc.disable()  # many finds start collections, which take as long as this process is large
        try:
            begun = time.thread_time()
            pattern.findall(text)
            return time.thread_time() - begun
        finally:
            gc.enable()

    def least(length: int) -> float:  # other processes on the core only ever add
        return min(seconds(length) for _ in range(3))

    once = seconds(_LONG)
    if once <= _HARMLESS_S or seconds(4 * _LONG) < 6 * once:
        return False  # most patterns take four times as long
    return least(4 * _LONG) > 8 * least(_LONG)


def _own_marks(pattern: re.Pattern[str]) -> set[str]:
    """What a pattern looks for letter by letter, if it may then look through any number of characters."""
    found: set[str] = set()

    def within(part: Any) -> None:
        if isinstance(part, _parser.SubPattern):
            run = ""
            for each in [*part.data, (None, None)]:
                if each[0] is _constants.LITERAL:
                    run += chr(each[1])
                    continue
                if len(run) >= _FEWEST_OF_A_MARK:
                    found.add(f"{run} ")
                run = ""
                within(each)
        elif isinstance(part, (tuple, list)):
            for each in part:
                within(each)

    parsed = _parser.parse(pattern.pattern, pattern.flags & ~re.DEBUG)
    within(parsed)
    return found if parsed.getwidth()[1] >= _constants.MAXREPEAT else set()


def test_no_pattern_takes_the_square_of_the_length_of_a_run() -> None:
    slow = {
        f"{name}: {run!r}"
        for pattern, name in product_patterns().items()
        for run in (*_RUNS, *_own_marks(pattern))
        if _grows_too_fast(pattern, run)
    }
    assert slow == set()


@pytest.mark.parametrize("pattern", [r"(?s)<source\b[^>]*\bid=[^>]*>.*</source>", r"(?s)<details>.*?</details>"])
def test_a_pattern_that_looks_for_the_end_of_each_of_its_marks_is_seen(pattern: str) -> None:
    compiled = re.compile(pattern)
    assert any(_grows_too_fast(compiled, mark) for mark in _own_marks(compiled))


@pytest.mark.parametrize(
    ("pattern", "run"), [(r"a+b", "a"), (r"[ \t]*$", " "), (r"x?[，。]*!", "，"), (r"[a-z][a-z.-]*@", "www.a.")]
)
def test_a_pattern_that_takes_the_square_is_seen(pattern: str, run: str) -> None:
    assert _grows_too_fast(re.compile(pattern), run)


_SINGLE = {_constants.IN, _constants.LITERAL, _constants.NOT_LITERAL, _constants.ANY}


def _possessive_over_groups(pattern: re.Pattern[str]) -> bool:
    """Whether anything but a single character is repeated possessively, at any depth.

    Before Python 3.11.5, so on Debian 12, that could match wrongly or raise a SystemError (python/cpython#101955,
    #106052). An atomic group around a usual repetition, `(?>(?:…)*)`, does not.
    """

    def within(part: Any) -> bool:
        if isinstance(part, _parser.SubPattern):
            return any(within(each) for each in part.data)
        if isinstance(part, tuple) and part and part[0] is _constants.POSSESSIVE_REPEAT:
            repeated = part[1][2].data
            if len(repeated) != 1 or repeated[0][0] not in _SINGLE:
                return True
        return isinstance(part, (tuple, list)) and any(within(each) for each in part)

    return within(_parser.parse(pattern.pattern, pattern.flags & ~re.DEBUG))


def test_no_group_is_repeated_possessively() -> None:
    patterns = product_patterns()
    assert [name for pattern, name in patterns.items() if _possessive_over_groups(pattern)] == []
