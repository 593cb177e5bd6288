"""The summary of a local day is written from the visits that began on it."""

import json
from collections.abc import AsyncIterator
from datetime import UTC, date, datetime, timedelta

import pytest

from services.bootstrap import Services, open_services
from services.engines import Engines
from services.errors import BadModelOutput
from services.identity.tenants import DEFAULT_TENANT
from services.memory.core.blocks import Owner
from services.platform.settings import Settings, load_settings
from tests.support.model_server import ModelServer, Reply
from tests.support.visits import days_of, import_lines, said, talk_at, visits_of

pytestmark = pytest.mark.untraced

SHANGHAI, NEW_YORK = "Asia/Shanghai", "America/New_York"
DAY = date(2026, 3, 10)
NOON = datetime(2026, 3, 10, 4, tzinfo=UTC)
"""In Shanghai."""


def written(summary: str, *topics: str) -> Reply:
    """A model's answer."""
    return Reply([json.dumps({"summary": summary, "key_topics": list(topics) or ["Topic"]}, ensure_ascii=False)])


async def _owner(services: Services, user: str = "u-1") -> Owner:
    return await services.memory.core.owner(DEFAULT_TENANT, user, "default")


async def test_a_day_of_several_visits_is_made_of_their_summaries(
    services: Services, model_server: ModelServer
) -> None:
    await import_lines(
        services,
        *talk_at(NOON, "skiing"),
        *talk_at(NOON + timedelta(hours=3), "cooking", session_id="s-2"),
        *talk_at(NOON + timedelta(days=1), "the day after"),
    )
    model_server.script(
        written("The user asked about skiing.", "Skiing"),
        written("The user asked about cooking.", "Cooking"),
        written("Skiing, then cooking.", "Skiing", "Cooking", "Snow"),
    )
    owner = await _owner(services)
    assert await services.daily.make(owner, DAY, SHANGHAI)
    assert await days_of(services.database) == [
        {
            "user": "u-1",
            "date": DAY,
            "timezone": SHANGHAI,
            "summary": "Skiing, then cooking.",
            "key_topics": ["Skiing", "Cooking", "Snow"],
            "session_count": 2,
            "message_count": 8,
        }
    ]
    first, second, day = model_server.requests
    assert "skiing" in str(first.prompt)
    assert "cooking" not in str(first.prompt)
    assert "cooking" in str(second.prompt)
    assert [text for _, text in day.prompt][
        -1
    ] == "1. The user asked about skiing.\n2. The user asked about cooking."
    assert [visit["summary"] for visit in await visits_of(services.database)][:2] == [
        "The user asked about skiing.",
        "The user asked about cooking.",
    ]


async def test_a_day_of_one_visit_is_told_by_its_summary_without_another_call(
    services: Services, model_server: ModelServer
) -> None:
    await import_lines(services, *talk_at(NOON, "skiing"))
    model_server.script(written("The user asked about skiing.", "Skiing"))
    await services.daily.make(await _owner(services), DAY, SHANGHAI)
    (day,) = await days_of(services.database)
    assert (day["summary"], day["key_topics"], day["session_count"]) == (
        "The user asked about skiing.", ["Skiing"], 1
    )  # fmt: skip
    assert len(model_server.requests) == 1


async def test_a_short_visit_is_told_in_the_users_own_words(services: Services, model_server: ModelServer) -> None:
    await import_lines(services, said(NOON, "My cat is called Miso."), said(NOON, "Nice.", role="assistant"))
    await services.daily.make(await _owner(services), DAY, SHANGHAI)
    (day,) = await days_of(services.database)
    assert day["summary"] == "My cat is called Miso."
    assert model_server.requests == []


@pytest.mark.traced
async def test_of_answers_that_broke_off_alone_there_is_no_summary(
    services: Services, model_server: ModelServer
) -> None:
    broken = [said(NOON, f"Half an ans {n}" * 9, role="assistant", completed=False) for n in range(4)]
    await import_lines(services, *broken)
    assert not await services.daily.make(await _owner(services), DAY, SHANGHAI)
    assert await days_of(services.database) == []
    assert model_server.requests == []


async def test_a_late_message_in_a_visit_has_it_summarised_anew(
    services: Services, model_server: ModelServer
) -> None:
    await import_lines(services, *talk_at(NOON, "skiing"))
    owner = await _owner(services)
    model_server.script(written("Skiing."), written("Skiing and a broken leg."))
    await services.daily.make(owner, DAY, SHANGHAI)
    await import_lines(services, said(NOON + timedelta(minutes=9), "I broke my leg."))
    assert await services.daily.make(owner, DAY, SHANGHAI)
    assert [day["summary"] for day in await days_of(services.database)] == ["Skiing and a broken leg."]
    assert "I broke my leg." in str(model_server.requests[-1].prompt)


@pytest.mark.parametrize(
    ("day", "hours"), [(date(2026, 3, 8), 23), (date(2026, 11, 1), 25), (date(2026, 7, 4), 24)]
)
async def test_a_day_is_as_long_as_the_clocks_make_it(services: Services, day: date, hours: int) -> None:
    midnight = datetime(day.year, day.month, day.day, 5 if day.month == 3 else 4, tzinfo=UTC)
    hourly = [midnight + timedelta(hours=hour) for hour in range(-1, 26)]
    await import_lines(services, *(said(at, f"At {at}") for at in hourly))
    (found,) = await services.daily.days(await _owner(services), day, day, NEW_YORK)
    assert len(found.visits) == hours
    assert found.visits[0].started_at == midnight


async def test_the_same_visits_fall_on_other_days_in_another_zone(services: Services) -> None:
    await import_lines(services, *talk_at(NOON, "skiing"), *talk_at(NOON + timedelta(hours=13), "sleep"))
    owner = await _owner(services)
    for zone, days in ((SHANGHAI, [DAY, date(2026, 3, 11)]), (NEW_YORK, [DAY]), ("Asia/Kathmandu", [DAY])):
        found = await services.daily.days(owner, date(2026, 3, 9), date(2026, 3, 12), zone)
        assert [day.date for day in found] == days


async def test_an_answer_that_is_no_summary_is_asked_for_again_then_given_up(
    services: Services, model_server: ModelServer
) -> None:
    await import_lines(services, *talk_at(NOON, "skiing"))
    owner = await _owner(services)
    answer = ""
    for answer in (
        "no JSON",
        '{"summary": ""}',
        '{"summary": "x"}',
        '{"summary": "x", "key_topics": []}',
        "x" * 3000,
    ):
        model_server.requests.clear()
        model_server.script(Reply([answer]), Reply([answer]))
        with pytest.raises(BadModelOutput):
            await services.daily.make(owner, DAY, SHANGHAI)
        assert len(model_server.requests) == 2
        assert await days_of(services.database) == []
    model_server.script(Reply([answer]), written("Skiing."))
    assert await services.daily.make(owner, DAY, SHANGHAI)


@pytest.fixture
async def offline(engines: Engines) -> AsyncIterator[Services]:
    """Services without a language model."""
    async with open_services(load_settings(), engines) as opened:
        yield opened


async def test_without_a_model_the_day_is_told_by_rules(offline: Services) -> None:
    await import_lines(
        offline,
        said(NOON, "我搬到了成都。"),
        said(NOON, "好的。", role="assistant"),
        said(NOON, "我养了一只猫叫团子。"),
        said(NOON + timedelta(hours=2), "今天学会了做麻婆豆腐。"),
        said(NOON + timedelta(hours=2), "真棒。", role="assistant"),
    )
    await offline.daily.make(await _owner(offline), DAY, SHANGHAI)
    (day,) = await days_of(offline.database)
    for fact in ("成都", "团子", "麻婆豆腐"):
        assert fact in day["summary"]
    assert day["key_topics"] == ["我搬到了成都。", "今天学会了做麻婆豆腐。"]


@pytest.mark.traced
async def test_a_long_visit_is_summarised_in_parts(
    settings: Settings, engines: Engines, model_server: ModelServer
) -> None:
    values = {**settings.model_dump(exclude_unset=True), "memory_summary_chunk_tokens": 500}
    async with open_services(load_settings(**values), engines) as services:
        lines = [said(NOON + timedelta(seconds=number), f"Fact {number}: {'word ' * 60}") for number in range(20)]
        await import_lines(services, *lines)
        model_server.default = lambda request: (
            written("All of it.") if "JSON" in str(request.prompt) else Reply(["A part."])
        )
        await services.daily.make(await _owner(services), DAY, SHANGHAI)
    shown = " ".join(str(request.prompt) for request in model_server.requests)
    assert all(f"Fact {number}:" in shown for number in range(20))
    assert len(model_server.requests) > 2
    assert "A part." in str(model_server.requests[-1].prompt)
