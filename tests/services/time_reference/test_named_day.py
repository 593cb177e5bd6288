from datetime import date

import pytest

from services.time_reference.parse import named_day

TODAY = date(2026, 11, 21)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("在5月2号我看了什么", date(2026, 5, 2)),
        ("十二月二十五號我在哪", date(2025, 12, 25)),
        ("On May 2nd, what did I read?", date(2026, 5, 2)),
        ("the 4th of July", date(2026, 7, 4)),
        ("5月2号和5月3号", None),
        ("2月30日", None),
        ("昨天说的5月2号那件事", date(2026, 5, 2)),
        ("今天 最近三天 上周三 12号", None),
        ("tomorrow, the 4th or last May", None),
        ("May I come at 5?", None),
        ("第2号楼", None),
    ],
)
def test_a_single_day_is_found(text: str, expected: date | None) -> None:
    assert named_day(text, TODAY) == expected
