"""A user's local days: the instants between which one lies, and the day on which an instant falls."""

from datetime import UTC, date, datetime, time, timedelta

from services.time_reference.zones import time_zone


def bounds(start: date, end: date, timezone: str) -> tuple[datetime, datetime]:
    """The instants in UTC at which the local day `start` begins and at which the day `end` is over.

    Where a clock change skips midnight, a day begins at the first instant that there is.
    """
    return _beginning(start, timezone), _beginning(end + timedelta(days=1), timezone)


def local_day(instant: datetime, timezone: str) -> date:
    """The day that it is at an instant in that zone."""
    return instant.astimezone(time_zone(timezone)).date()


def _beginning(day: date, timezone: str) -> datetime:
    return datetime.combine(day, time.min, time_zone(timezone)).astimezone(UTC)
