from datetime import datetime, timedelta

import pytest

from services.time_reference.local_days import BadTimeZone, time_zone

NOON = datetime(2026, 7, 1, 12)


@pytest.mark.parametrize(
    ("name", "hours"),
    [("Asia/Shanghai", 8), ("+08:00", 8), ("-03:30", -3.5), ("+0545", 5.75), ("UTC+2", 2)],
)
def test_names_and_offsets_are_understood(name: str, hours: float) -> None:
    assert NOON.replace(tzinfo=time_zone(name)).utcoffset() == timedelta(hours=hours)


@pytest.mark.parametrize(
    "name",
    ["", "Mars", "+25:00", "+8:99", "../etc/passwd", "a\x00b"],
)
def test_anything_else_is_refused_by_name(name: str) -> None:
    with pytest.raises(BadTimeZone, match="is no time zone"):
        time_zone(name)
