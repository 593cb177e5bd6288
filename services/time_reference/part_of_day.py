"""Which hours of a day a message means: this morning, yesterday evening, 昨天下午, 昨晚."""

import re

Hours = tuple[int, int]
"""First and last local hour; one beyond 24 belongs to the night that follows."""

_CHINESE: tuple[tuple[str, Hours], ...] = (
    ("凌晨|半夜|后半夜", (0, 6)),
    ("清晨|早晨|早上|今早|一早|清早", (4, 12)),
    ("上午", (6, 13)),
    ("中午|午饭", (11, 15)),
    ("下午|午后", (12, 19)),
    ("傍晚|黄昏", (16, 21)),
    ("晚上|夜里|夜晚|深夜|睡前|临睡前|[昨今前当]晚|晚饭", (17, 28)),
)
_ENGLISH: tuple[tuple[str, Hours], ...] = (
    ("early hours|small hours", (0, 6)),
    ("morning|breakfast", (4, 13)),
    ("noon|midday|lunch(?:time)?", (11, 15)),
    ("afternoon", (12, 19)),
    ("evening|dinner(?:time)?", (16, 28)),
    ("night|tonight|bedtime", (17, 28)),
)
_PARTS = {f"p{number}": hours for number, (_, hours) in enumerate((*_CHINESE, *_ENGLISH))}
_NAMED = re.compile(
    "|".join(
        [f"(?P<p{number}>{words})" for number, (words, _) in enumerate(_CHINESE)]
        + [rf"\b(?P<p{len(_CHINESE) + number}>{words})\b" for number, (words, _) in enumerate(_ENGLISH)]
    ),
    re.IGNORECASE,
)
_BESIDE = re.compile(r"(?:的|那天|,)?\s?(?:in the |at |during )?(?=[a-z\u3400-\u9fff])", re.IGNORECASE)


def hours_named(text: str, begin: int, stop: int) -> Hours | None:
    """The part of a day that the words of a time name, or those right behind them; None where neither names one.

    Args:
        text: the message.
        begin: where the words of the time begin in it.
        stop: where they end.
    """
    within = _NAMED.search(text, begin, stop)
    if within is None:
        beside = _BESIDE.match(text, stop)
        within = _NAMED.match(text, beside.end() if beside else stop)
    return _PARTS[within.lastgroup] if within and within.lastgroup else None
