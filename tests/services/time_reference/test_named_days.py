from datetime import date

import pytest

from services.time_reference.parse import named_days

TODAY = date(2026, 11, 21)


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("在5月2号我看了什么", date(2026, 5, 2), date(2026, 5, 2)),
        ("十二月二十五號我在哪", date(2025, 12, 25), date(2025, 12, 25)),
        ("On May 2nd, what did I read?", date(2026, 5, 2), date(2026, 5, 2)),
        ("the 4th of July", date(2026, 7, 4), date(2026, 7, 4)),
        ("昨天说的5月2号那件事", date(2026, 5, 2), date(2026, 5, 2)),
        ("tomorrow, the 4th or in May", date(2026, 5, 1), date(2026, 5, 31)),
        ("What did I plant in the spring of 2025, on 3 April 2025?", date(2025, 4, 3), date(2025, 4, 3)),
        ("2月下旬我在忙什么", date(2026, 2, 21), date(2026, 2, 28)),
        ("Where was I in December?", date(2025, 12, 1), date(2025, 12, 31)),
    ],
)
def test_a_day_or_a_longer_time_is_found(text: str, first: date, last: date) -> None:
    assert named_days(text, TODAY) == (first, last)


@pytest.mark.parametrize(
    "text",
    [
        "5月2号和5月3号",
        "2月和3月",
        "2月30日",
        "今天 最近三天 上周三 12号",
        "上个月",
        "May I come at 5?",
        "第2号楼",
    ],
)
def test_several_times_or_those_counted_from_today_are_none(text: str) -> None:
    assert named_days(text, TODAY) is None
