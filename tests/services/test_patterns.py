"""No pattern takes exponential time for what a user can write: one such message would occupy a core for good."""

import importlib
import pkgutil
import re
import signal
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from types import FrameType
from typing import Any

import services

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


def _patterns() -> dict[re.Pattern[str], str]:
    found: dict[re.Pattern[str], str] = {}
    for module in pkgutil.walk_packages(services.__path__, "services."):
        if ".migrations." not in module.name and not module.name.endswith("__main__"):
            for name, value in vars(importlib.import_module(module.name)).items():
                found |= dict.fromkeys(_within(value), f"{module.name}.{name}")
    return found


def _within(value: Any, depth: int = 0) -> Iterator[re.Pattern[str]]:
    if isinstance(value, re.Pattern):
        if isinstance(value.pattern, str):
            yield value
    elif depth < 3 and not isinstance(value, type):
        if is_dataclass(value):
            inner = [getattr(value, field.name, None) for field in fields(value)]
        elif isinstance(value, dict):
            inner = list(value.values())
        else:
            inner = list(value) if isinstance(value, (list, tuple, set, frozenset)) else []
        for each in inner:
            yield from _within(each, depth + 1)


class _TooSlow(Exception):
    pass


def _give_up(_: int, __: FrameType | None) -> None:
    raise _TooSlow


def test_no_pattern_takes_exponential_time() -> None:
    patterns = _patterns()
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
