"""Debian 12's Python 3.11.2 matches as later ones do.

Before 3.11.5 a possessive repetition of a group (`(…)*+`) could match wrongly, or raise a SystemError
(python/cpython#101955, #106052). An atomic group around a usual repetition, `(?>(?:…)*)`, does not.
"""

import json
import re
import subprocess
from pathlib import Path
from re import _constants, _parser  # type: ignore[attr-defined]
from typing import Any

import pytest

from tests.support.product_patterns import product_patterns

DEBIANS = Path("/usr/bin/python3.11")
_FIRST_RIGHT = (3, 11, 5)
_SINGLE = {_constants.IN, _constants.LITERAL, _constants.NOT_LITERAL, _constants.ANY}
TEXTS = (
    "hello",
    "Hi, what did we talk about yesterday, and last Monday at 9:30? Thanks!",
    "Please remember: my flight is at 9, not 7 -> see https://example.org/a?b=c; ok?",
    "From: anna@example.org\nTo: me\n\nDear Sir,\nforget the boat — and the car.\n> quoted\n",
    "好的，那请问我们昨天晚上聊了什么？前天呢？谢谢你！",
    "请帮我翻译一下这段话：你好，世界。以后回答简短一点，别记这个。",
    "我对花生过敏；我住在上海，是一名护士。上周三你说过的那件事怎么样了？",
    "1,234.5 + 12 * 3 = ? from 3 May until 2026-11-25, every 2nd Monday (twice)",
    "The cat, the dog, and so but then now please, please!!! ... “quoted” ‘text’ 「引用」",
    "what what what what and and and so so that that like like then",
    "a" * 50 + " " * 50 + "。" * 20,
)
_SPANS = """
import json, re, sys
patterns, texts = json.load(sys.stdin)
found = []
for written, flags in patterns:
    pattern, row = re.compile(written, flags), []
    for text in texts:
        for find in (pattern.search, pattern.match, pattern.fullmatch):
            try:
                row.append([list(each) for each in m.regs] if (m := find(text)) else None)
            except SystemError as error:
                row.append(str(error))
        row.append([m.span() for m in pattern.finditer(text)])
    found.append(row)
json.dump(found, sys.stdout)
"""


def _possessive_over_groups(pattern: re.Pattern[str]) -> bool:
    """Whether anything but a single character is repeated possessively, at any depth."""

    def within(part: Any) -> bool:
        if isinstance(part, _parser.SubPattern):
            return any(within(each) for each in part.data)
        if isinstance(part, tuple) and part and part[0] is _constants.POSSESSIVE_REPEAT:
            repeated = part[1][2].data
            if len(repeated) != 1 or repeated[0][0] not in _SINGLE:
                return True
        return isinstance(part, (tuple, list)) and any(within(each) for each in part)

    return within(_parser.parse(pattern.pattern, pattern.flags & ~re.DEBUG))


@pytest.mark.parametrize(
    ("written", "wrong"),
    [("(?:ab)*+", True), ("(?:a|bc)?+x", True), ("(?=(a|bb)++)", True), ("[ab]*+", False), ("a++", False)],
)
def test_the_check_finds_what_early_versions_get_wrong(written: str, wrong: bool) -> None:
    assert _possessive_over_groups(re.compile(written)) is wrong


def test_no_group_is_repeated_possessively() -> None:
    patterns = product_patterns()
    assert len(patterns) > 300
    assert [name for pattern, name in patterns.items() if _possessive_over_groups(pattern)] == []


@pytest.mark.process
def test_debians_python_matches_the_same() -> None:
    if not DEBIANS.exists():
        pytest.skip("no /usr/bin/python3.11 on this machine")
    asked = "import sys; print(*sys.version_info[:3])"
    version = subprocess.run([DEBIANS, "-c", asked], capture_output=True, text=True, check=True).stdout
    if tuple(int(part) for part in version.split()) >= _FIRST_RIGHT:
        pytest.skip("its Python is a later one")
    patterns = list(product_patterns())
    given = json.dumps([[[each.pattern, each.flags] for each in patterns], TEXTS])
    ran = subprocess.run([DEBIANS, "-c", _SPANS], input=given, capture_output=True, text=True, check=True)
    for pattern, row in zip(patterns, json.loads(ran.stdout), strict=True):
        assert row == json.loads(json.dumps(_spans(pattern))), product_patterns()[pattern]


def _spans(pattern: re.Pattern[str]) -> list[Any]:
    found: list[Any] = []
    for text in TEXTS:
        matches = (pattern.search(text), pattern.match(text), pattern.fullmatch(text))
        found += [list(match.regs) if match else None for match in matches]
        found.append([match.span() for match in pattern.finditer(text)])
    return found
