"""“After the exam”: a time that names an event of the user, of which memory knows the day."""

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, time

from services.errors import InvalidInput
from services.memory.core.blocks import Owner
from services.memory.core.values import CoreValues
from services.memory.reading.words import Words
from services.time_reference.local_days import time_zone
from services.time_reference.normalisation import folded, lowered
from services.time_reference.occasions import Occasion, fixed_day

_AFTER = re.compile(
    r"after (?:the |my |our )?(?P<english>[^\u3400-\u9fff]{2,80})"
    r"|(?:我的?)?(?P<chinese>.{1,40}?)(?:结束)?(?:以后|之后|后)"
)
_EVENING = time(19, 0)
"""When an event of a day is over."""


async def after_event(
    values: CoreValues, owner: Owner, said: str, now: datetime, timezone: str
) -> Occasion | None:
    """Return the evening of the day of the event that a text names; None = it names none. Raises `InvalidInput`
    if no day is known of the event, or several are, or its evening is past."""
    event = event_of(said)
    if event is None:
        return None
    days = await days_of(event, values, owner, now.astimezone(time_zone(timezone)).date())
    if not days:
        raise InvalidInput("when", f"names “{event}”, of which no day is known; ask the user for the day")
    if len(days) > 1:
        raise InvalidInput("when", f"names “{event}”, which may be on {' or '.join(map(str, days))}; ask which")
    moment = evening_of(days[0], timezone)
    if moment <= now:
        raise InvalidInput("when", f"names “{event}”, which is over")
    return Occasion(moment, follows=True)


def event_of(said: str) -> str | None:
    """Return the words for the event that a text names; None = it names none."""
    found = _AFTER.fullmatch(lowered(folded(said.strip())))
    return (found["english"] or found["chinese"]) if found else None


async def days_of(event: str, values: CoreValues, owner: Owner, today: date) -> Sequence[date]:
    """Return the days, from `today` on, that memory knows of an event."""
    words = Words.of(event)
    known = [
        fixed_day(each.text, today)
        for each in await values.read(owner.tenant_id, owner.user_id)
        if each.holds
        and (each.expert_id, each.space_id or owner.space_id) == (owner.expert_id, owner.space_id)
        and words.covered_by(Words.of(each.text))
    ]
    return sorted({day for day in known if day})


def evening_of(day: date, timezone: str) -> datetime:
    """Return the moment at which an event of a day is over, by the clock of a time zone."""
    return datetime.combine(day, _EVENING, time_zone(timezone)).astimezone(UTC)
