"""When a statement holds, by the mark at its end."""

from datetime import date, datetime

import pytest

from services.time_reference.parse import Validity, timed

NOW = datetime(2026, 11, 22, 12)


@pytest.mark.parametrize(
    ("mark", "holds"),
    [
        (" (until 2026-06)", Validity(None, date(2026, 6, 30))),
        (" (until 2026-06-30)", Validity(None, date(2026, 6, 30))),
        (" (until June 2026).", Validity(None, date(2026, 6, 30))),
        ("（到2026-06为止）", Validity(None, date(2026, 6, 30))),
        ("（到2026年为止）", Validity(None, date(2026, 12, 31))),
        (" (since 2025)", Validity(date(2025, 1, 1), None)),
        ("（2025年起）", Validity(date(2025, 1, 1), None)),
        (" (2011 to 2014)", Validity(date(2011, 1, 1), date(2014, 12, 31))),
        (" (formerly)", Validity(ended=True)),
        ("（以前）", Validity(ended=True)),
    ],
)
@pytest.mark.parametrize("text", ["works at Acme", "在阿里上班"])
def test_the_mark_at_its_end_is_read(text: str, mark: str, holds: Validity) -> None:
    assert timed(text + mark, NOW) == holds


@pytest.mark.parametrize(
    "said",
    ["I rent this flat until March", "I used to keep bees", "keeps bees (and wasps)", "born in Ghent (2011)",
     "works (until 2019) and sings", "我以前养蜜蜂", "从去年起我在学校教书", "养蜜蜂（三箱）"],
)  # fmt: skip
def test_a_statement_without_a_mark_stays_as_it_is(said: str) -> None:
    assert timed(said, NOW) == Validity()


def test_what_has_ended_is_over_from_the_next_day_on() -> None:
    ended = timed("works at Acme (until 2026-06-30)", NOW)
    assert not ended.is_over(date(2026, 6, 30))
    assert ended.is_over(date(2026, 7, 1))
    assert timed("keeps bees (formerly)", NOW).is_over(date(1990, 1, 1))
