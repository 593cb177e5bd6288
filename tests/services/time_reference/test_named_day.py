from datetime import date

import pytest

from services.time_reference.parse import named_day

TODAY = date(2026, 11, 21)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("在5月2号我看了什么", date(2026, 5, 2)),
        ("5月2日提到过什么", date(2026, 5, 2)),
        ("五月二号", date(2026, 5, 2)),
        ("十二月二十五號我在哪", date(2025, 12, 25)),
        ("2024年2月29日", date(2024, 2, 29)),
        ("On May 2nd, what did I read?", date(2026, 5, 2)),
        ("Why on April 30th?", date(2026, 4, 30)),
        ("on 3 Sept 2025", date(2025, 9, 3)),
        ("the 4th of July", date(2026, 7, 4)),
        ("December 24", date(2025, 12, 24)),
        ("what was said on 2026-01-05?", date(2026, 1, 5)),
        ("Nov 21", TODAY),
        ("5月2号和5月3号", None),
        ("2月30日", None),
        ("February 29", date(2024, 2, 29)),
        ("what did we say yesterday, or on Monday?", None),
        ("昨天说的5月2号那件事", date(2026, 5, 2)),
        ("今天 最近三天 上周三 12号", None),
        ("5月2号到5月5号", None),
        ("tomorrow, the 4th or last May", None),
        ("I may 3 times", None),
        ("可以走吗", None),
        ("May I come at 5?", None),
        ("第2号楼", None),
    ],
)
def test_a_single_day_is_found(text: str, expected: date | None) -> None:
    assert named_day(text, TODAY) == expected
