"""No pattern takes exponential time for what a user can write: one such message would occupy a core for good."""

import signal
from types import FrameType

from tests.support.product_patterns import product_patterns

_PIECES = [
    *(
        "1",
        "a",
        "A",
        "Ab ",
        "一",
        "我",
        "，",
        ",",
        " ",
        "\n",
        ".",
        "-",
        '"',
        "'",
        "(",
        "1,",
        "1.",
        "1 ",
        "a ",
        "a,",
    ),
    *("我，", "not ", "and ", "the ", "忘", "月", "点", "12:", "my ", "was "),
]
_LENGTH = 60
_CPU_S = 5.0
"""Processor time for all pieces together; a pattern without this fault needs a thousandth of it."""


class _TooSlow(Exception):
    pass


def _give_up(_: int, __: FrameType | None) -> None:
    raise _TooSlow


def test_no_pattern_takes_exponential_time() -> None:
    patterns = product_patterns()
    assert len(patterns) > 400
    slow = set()
    before = signal.signal(signal.SIGVTALRM, _give_up)
    try:
        for pattern, name in patterns.items():
            signal.setitimer(signal.ITIMER_VIRTUAL, _CPU_S)
            try:
                for piece in _PIECES:
                    text = (piece * _LENGTH)[:_LENGTH]
                    for whole in (text, f"{text}!x"):
                        pattern.search(whole)
                        pattern.match(whole)
                        len(pattern.findall(whole))
            except _TooSlow:
                slow.add(f"{name}: {pattern.pattern[:80]}")
            finally:
                signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    finally:
        signal.signal(signal.SIGVTALRM, before)
    assert slow == set()
