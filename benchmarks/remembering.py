"""Users who have said much and ask about it: what first tokens cost, and whether prompts had the evidence."""

import json
import statistics
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from benchmarks.dialogue import answer_to, message_of
from benchmarks.processes import weigh

QUESTIONS = (
    "What is the code of my bicycle lock?",
    "Do you remember the code of my bicycle lock?",
    "I forgot it again: which code does my bicycle lock have?",
)
_SCALE = 0.4
_BEGUN = datetime(2025, 1, 1, tzinfo=UTC)
_TURNS_OF_A_SESSION = 20
_AT_ONCE = 4_000
"""Lines of one import."""
_QUIET_S, _QUIET_SHARE = 2.0, 0.1
_LONGEST_S = 600.0


@dataclass(frozen=True)
class Group:
    """Users who have said as much as one another."""

    units: int
    """Messages of each, their own and the answers."""
    users: int

    def name(self, number: int) -> str:
        """A user's name."""
        return f"knows-{self.units}-{number % self.users}"

    def code(self, number: int) -> str:
        """What the user once said of the lock."""
        return f"lock-{self.units}-{number % self.users}"


@dataclass(frozen=True)
class Remembered:
    """What was measured of a group, the model's own time not counted."""

    mode: str
    concurrency: int
    units: int
    turns: int
    floor_first_ms: float
    first_ms: float
    """Medians."""
    first_p95_ms: float
    cpu_ratio: float
    with_evidence: int
    """Turns of whose prompts the evidence was a part."""

    @property
    def more_ms(self) -> float:
        """How much later than the floor's the first token comes."""
        return self.first_ms - self.floor_first_ms


def import_group(port: int, group: Group) -> None:
    """Store what the users of a group have said."""
    lines: list[bytes] = []
    for line in _lines(group):
        lines.append(line)
        if len(lines) == _AT_ONCE:
            _send(port, lines)
            lines = []
    _send(port, lines)


def wait_until_quiet(pid: int) -> None:
    """Wait until a server has done what it does behind an import.

    Raises:
        RuntimeError: it goes on for ten minutes.
    """
    ends = time.monotonic() + _LONGEST_S
    while time.monotonic() < ends:
        before = weigh(pid).cpu_s
        time.sleep(_QUIET_S)
        if weigh(pid).cpu_s - before < _QUIET_SHARE * _QUIET_S:
            return
    raise RuntimeError("the server is not quiet")


def codes_seen(llm_port: int) -> dict[str, int]:
    """How many prompts had which code."""
    with urllib.request.urlopen(f"http://127.0.0.1:{llm_port}/seen", timeout=5) as answer:
        found: dict[str, int] = json.loads(answer.read())
    return found


def remembered(
    mode: str,
    concurrency: int,
    group: Group,
    first_ms: dict[str, list[float]],
    cpu_s: dict[str, float],
    with_evidence: int,
) -> Remembered:
    """Put figures together; those of `floor` and of `ours`."""
    ours = sorted(first_ms["ours"])
    return Remembered(
        mode=mode,
        concurrency=concurrency,
        units=group.units,
        turns=len(ours),
        floor_first_ms=statistics.median(first_ms["floor"]),
        first_ms=statistics.median(ours),
        first_p95_ms=ours[min(len(ours) - 1, round(len(ours) * 0.95))],
        cpu_ratio=cpu_s["ours"] / cpu_s["floor"],
        with_evidence=with_evidence,
    )


def _lines(group: Group) -> Iterator[bytes]:
    for user in range(group.users):
        told = group.units // 6
        for turn in range(group.units // 2):
            asked = message_of(user, turn, _SCALE)
            answer = answer_to(asked, _SCALE)
            if turn == told:
                asked, answer = f"The code of my bicycle lock is {group.code(user)}.", "I will keep it in mind."
            at = _BEGUN + timedelta(minutes=7 * turn)
            for role, content, second in (("user", asked, 0), ("assistant", answer, 20)):
                line = {
                    "user_id": group.name(user),
                    "session_id": f"s-{turn // _TURNS_OF_A_SESSION}",
                    "role": role,
                    "content": content,
                    "created_at": (at + timedelta(seconds=second)).isoformat(),
                }
                yield json.dumps(line, ensure_ascii=False).encode() + b"\n"


def _send(port: int, lines: list[bytes]) -> None:
    if not lines:
        return
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/api/v1/import",
        data=b"".join(lines),
        headers={"Content-Type": "application/x-ndjson"},
    )
    with urllib.request.urlopen(request, timeout=_LONGEST_S) as answer:
        report = json.loads(answer.read())
    if report["refused"]:
        raise RuntimeError(f"an import was refused: {report['errors'][:1]}")
