"""Parties that must not learn of each other: tenants, or users of one tenant; and what a hostile one sends."""

import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Protocol
from uuid import UUID

CANARY = re.compile(r"canary-[0-9a-f]{16}")

SHARED_USERS = ("u-1", "u-2")
SHARED_SESSIONS = ("s-1", "s-2")


class Names(Protocol):
    """Where an operation takes its names and ids from."""

    def pick(self, kind: str, chance: Random) -> str:
        """One of a kind."""
        ...


@dataclass
class Party:
    """One of those, and what it has: lists of names and ids by kind."""

    tenant_id: UUID
    headers: dict[str, str]
    canary: str
    """Stands in every text of this party and in none of another's."""
    user: str | None = None
    """The one user that it is; None = the whole tenant."""
    things: dict[str, list[str]] = field(default_factory=dict)

    def pick(self, kind: str, chance: Random) -> str:
        """One of its things."""
        return chance.choice(self.things[kind])

    def add(self, kind: str, *names: str) -> None:
        """It has these as well."""
        self.things.setdefault(kind, []).extend(names)


def _place(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


_NO_ID = "0190a000-0000-7000-8000-000000000000"

# None is a name that users and sessions may have: what was stored under one would be its own answer.
_STRINGS: Sequence[str] = (
    "' OR 1=1 --",
    "'; DROP TABLE messages; --",
    "\" UNION SELECT content FROM messages WHERE ''='",
    "../../../../etc/passwd",
    "..\\..\\secret",
    "a/../../turns",
    "\x00",
    "a\x00b",
    "%00%2e%2e%2f",
    "%s %(tenant_id)s {tenant_id} ${x} {{7*7}}",
    "\u202e\U0001f98a\u0000",
    "\ufeffu-1",
    "ｕ－１",
    "u-1 ",
    "u-1\n",
    "\r\nX-Tenant: other",
    "<script>alert(1)</script>",
    "*",
    "A" * 10_000,
    "🦊" * 500,
)

_HOSTILE: dict[str, Sequence[str]] = {
    "conversation": (_NO_ID, "00000000-0000-0000-0000-000000000000", "{" + _NO_ID + "}", "g" * 36, "-1"),
    "turn": (_NO_ID, f"urn:uuid:{_NO_ID}", "ffffffff-ffff-ffff-ffff-ffffffffffff", "0"),
    "cursor": (
        _place(f"0001-01-01T00:00:00+14:00 {_NO_ID}"),
        _place(f"9999-12-31T23:59:59-14:00 {_NO_ID}"),
        _place(f"2026-01-01T00:00:00 {_NO_ID}"),
        _place(f"2026-01-01T00:00:00+00:00 {_NO_ID}' OR 1=1"),
        _place("infinity x"),
        "=" * 200,
    ),
    "phrase": ("\ud800", "\udc80\x00", "\x7f\x1b[2J", "\u0085\u2028", "word " * 6_000),
    "job": ("0", "-1", "9223372036854775808", "9" * 400, "1e3", "١"),
    "event": ("-1", "1e3", "999999999", "9999999999", "²"),
    "limit": ("0", "-1", "201", "1e9", "NaN", "9" * 5000),
}


class Hostile:
    """What nobody has."""

    def pick(self, kind: str, chance: Random) -> str:
        """One that is meant to break something."""
        return chance.choice((*_HOSTILE.get(kind, ()), *_STRINGS))


class Mixed:
    """One's own things with hostile ones among them, so that a request fails in each of its places."""

    def __init__(self, own: Party) -> None:
        self._own = own
        self._hostile = Hostile()

    def pick(self, kind: str, chance: Random) -> str:
        """One or the other."""
        return (self._own if chance.random() < 0.5 else self._hostile).pick(kind, chance)


@dataclass(frozen=True)
class Ask:
    """What an operation puts into the places of its endpoint."""

    path: dict[str, str] = field(default_factory=dict)
    query: dict[str, str] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    body: dict[str, Any] | None = None


def header_safe(text: str) -> str:
    """What HTTP lets stand in a header; clients refuse to send the rest."""
    return "".join(c for c in text if c.isprintable() and ord(c) < 256)[:6000].strip() or "x"
