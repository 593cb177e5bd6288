"""What holds for every day, every hour and every text."""

from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.time_reference.parse import parse
from services.time_reference.phrases import TimeRange

pytestmark = pytest.mark.untraced

NOWS = st.datetimes(datetime(1990, 1, 1), datetime(2100, 12, 31, 23))
PAST = (
    *(
        "昨天",
        "前天",
        "大前天",
        "昨晚",
        "上周",
        "上上周",
        "上周末",
        "上个月",
        "去年",
        "前年",
        "上个季度",
        "前两天",
    ),
    *(
        "三周前",
        "五个月前",
        "两年前",
        "半年前",
        "上两周",
        "前几天",
        "周三",
        "五月",
        "12号",
        "5月2号",
        "最近一周",
        "过去三个月",
    ),
    *(
        "yesterday",
        "last night",
        "last week",
        "last month",
        "last year",
        "last Monday",
        "two weeks ago",
        "on Friday",
    ),
    *("three months ago", "the past 3 days", "in May", "May 3rd", "the 4th", "last summer", "last quarter", "Q1"),
)
FUTURE = (
    *("明天", "后天", "大后天", "下周", "下个月", "明年", "三天后", "未来两周", "下周三", "下个季度"),
    *("tomorrow", "next week", "next month", "next year", "in 3 days", "two weeks from now", "the next 3 days"),
)
ENDS = (
    "昨天",
    "今天",
    "周一",
    "周五",
    "三月",
    "五月",
    "5号",
    "25号",
    "去年",
    "5月2号",
    "上周",
    "2019年",
    "上个月",
    "明天",
)
KNOWN = frozenset({"昨天", "今天", "去年", "上周", "2019年", "上个月", "明天"})
FRAGMENTS = (
    *(
        "今天",
        "昨天",
        "前",
        "后",
        "上",
        "下",
        "个",
        "月",
        "年",
        "周",
        "星期",
        "三",
        "十",
        "两",
        "号",
        "日",
        "到",
        "和",
        "之间",
    ),
    *(
        "第",
        "最后",
        "半",
        "季度",
        "初",
        "世纪",
        "年代",
        "民国",
        "2023",
        "12",
        "31",
        "29",
        "-",
        "/",
        ".",
        ":",
        "１２",
        "٣",
    ),
    *(
        "the",
        "of",
        "last",
        "next",
        "first",
        "second",
        "Monday",
        "May",
        "sun",
        "days",
        "week",
        "month",
        "year",
        "ago",
    ),
    *(
        "before",
        "between",
        "and",
        "to",
        "from",
        "end",
        "early",
        "3rd",
        "21st",
        "in",
        "half",
        "a",
        "couple",
        "since",
        "1990s",
    ),
)


def only(text: str, now: datetime) -> TimeRange:
    """The one range that is found, which is said by the whole text."""
    (found,) = parse(text, now)
    assert found.text
    return found


@given(NOWS, st.sampled_from(PAST))
def test_words_for_the_past_never_begin_after_today(now: datetime, text: str) -> None:
    assert only(text, now).start <= now.date()


@given(NOWS, st.sampled_from(FUTURE))
def test_words_for_the_future_never_end_before_today(now: datetime, text: str) -> None:
    assert only(text, now).end >= now.date()


@given(NOWS, st.sampled_from(["上周", "上个星期", "上禮拜", "last week", "a week ago", "一周前"]))
def test_last_week_is_monday_to_sunday_of_the_week_before(now: datetime, text: str) -> None:
    found = only(text, now)
    assert found.start.isoweekday() == 1
    assert found.end - found.start == timedelta(days=6)
    assert found.end < now.date() <= found.end + timedelta(days=7)


@given(NOWS, st.integers(1, 400))
def test_days_ago_are_exactly_so_many(now: datetime, days: int) -> None:
    for text in (f"{days}天前", f"{days}日之前", f"{days} days ago"):
        found = only(text, now)
        assert found.start == found.end == now.date() - timedelta(days=days)


@given(NOWS, st.integers(1, 60))
def test_months_ago_are_whole_months(now: datetime, months: int) -> None:
    for text in (f"{months}个月前", f"{months} months ago"):
        found = only(text, now)
        assert (found.start.year - now.year) * 12 + found.start.month - now.month == -months
        assert (found.start.day, (found.end + timedelta(days=1)).day) == (1, 1)


@given(NOWS, st.integers(0, 6))
def test_a_weekday_is_one_of_the_last_seven_days(now: datetime, number: int) -> None:
    english = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")[number]
    for text in (f"周{'一二三四五六日'[number]}", f"on {english}"):
        found = only(text, now)
        assert found.start.weekday() == number
        assert timedelta(0) <= now.date() - found.start < timedelta(days=7)


@given(NOWS, st.dates(date(1990, 1, 1), date(2100, 12, 31)))
def test_a_date_in_full_is_that_day(now: datetime, day: date) -> None:
    for text in (
        f"{day.year}年{day.month}月{day.day}日",
        f"{day.isoformat()}",
        f"{day.year}/{day.month}/{day.day}",
        f"{day:%B} {day.day}, {day.year}",
        f"{day.day} {day:%b} {day.year}",
    ):
        found = only(text, now)
        assert (found.start, found.end, found.text) == (day, day, text)


@given(NOWS, st.sampled_from(ENDS), st.sampled_from(ENDS))
def test_from_one_to_the_other_begins_and_ends_as_they_do(now: datetime, first: str, last: str) -> None:
    found = parse(f"{first}到{last}", now)
    if len(found) == 1:
        assert found[0].text == f"{first}到{last}"
        # One of many is the one that fits the end that is known.
        if first in KNOWN or last not in KNOWN:
            assert found[0].start == only(first, now).start
        if last in KNOWN:
            assert found[0].end == only(last, now).end
    else:
        assert [each.text for each in found] == [first, last]


def _sound(text: str, now: datetime) -> None:
    after = 0
    for found in parse(text, now):
        assert found.start <= found.end
        assert after <= found.begin < found.stop
        assert text[found.begin : found.stop] == found.text
        after = found.stop


@given(st.text(), NOWS)
def test_any_text_is_read(text: str, now: datetime) -> None:
    _sound(text, now)


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=12), st.sampled_from(["", " "]), st.datetimes())
def test_any_mixture_of_words_is_read(words: list[str], between: str, now: datetime) -> None:
    _sound(between.join(words), now)


@pytest.mark.parametrize("zone", [UTC, timezone(timedelta(hours=14)), None])
def test_only_the_local_date_counts(zone: timezone | None) -> None:
    for hour in (0, 12, 23):
        assert only("昨天", datetime(2026, 11, 21, hour, tzinfo=zone)).start == date(2026, 11, 20)


@pytest.mark.parametrize("text", ["end of " * 1000, "今天" + " " * 8000, "2月30日" * 200, "the day before " * 500])
def test_a_long_text_is_read_too(text: str) -> None:
    _sound(text, datetime(2026, 11, 21))
