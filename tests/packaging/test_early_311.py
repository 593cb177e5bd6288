"""Debian 12's Python 3.11.2 matches as later ones do.

Before 3.11.5 a possessive repetition of a group (`(…)*+`) could match wrongly, or raise a SystemError
(python/cpython#101955, #106052). An atomic group around a usual repetition, `(?>(?:…)*)`, does not.
"""

import re
from re import _constants, _parser  # type: ignore[attr-defined]
from typing import Any

from tests.support.product_patterns import product_patterns

_SINGLE = {_constants.IN, _constants.LITERAL, _constants.NOT_LITERAL, _constants.ANY}


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


def test_no_group_is_repeated_possessively() -> None:
    patterns = product_patterns()
    assert len(patterns) > 300
    assert [name for pattern, name in patterns.items() if _possessive_over_groups(pattern)] == []
