"""Quiet hours: when the assistant says nothing that was not asked for."""

from datetime import datetime

from services.time_reference.local_days import time_zone


def is_quiet(hours: str, now: datetime, timezone: str) -> bool:
    """Return whether a moment lies within quiet hours on the clock of a zone."""
    if hours in {"always", "never"}:
        return hours == "always"
    begin, end = hours.split("-")
    clock = f"{now.astimezone(time_zone(timezone)):%H:%M}"
    return begin <= clock < end if begin <= end else clock >= begin or clock < end
