"""The dates that a text names, as the tests write them."""

from datetime import datetime

from services.time_reference.parse import parse

NOW = datetime(2026, 11, 21, 10, 30)
"""A Saturday."""


def said(text: str, now: datetime = NOW) -> list[str]:
    """Return what a text names, each as 2026-11-09..2026-11-15, or as one date."""
    return [
        f"{found.start}" if found.start == found.end else f"{found.start}..{found.end}"
        for found in parse(text, now)
    ]
