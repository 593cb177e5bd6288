"""Promises of dialogues that others have written: `python -m benchmarks.promises FILE… [--show]`.

A line has `id`, `kind`, `now`, `zone`, `messages`, the `calls` of `promise` that a good model makes in each turn,
the promises that are `expected` in the end, and whether the last message is in `plain` form. Every line is played
over HTTP against a service whose turns begin at `now`: with a model that makes exactly these calls, and plain lines,
and those that ask for `nothing`, once more with a model that calls nothing.

A promise is right if it is due at the expected minute (`at`), or on the expected `day`, in its `part`. What comes
`every` so often is right if its first moments are. For one that comes `after` an event of which no day is known,
it is right that nothing is promised and the model is told which words are missing; without a model it is not
counted. Wrong = it is due at another moment. Missed = there is none. Needless = it should not be there. `--show`
prints each line that is not right.
"""

import argparse
import json
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from itertools import zip_longest
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import httpx

from benchmarks.recurring import moments_of
from benchmarks.rig import service
from tests.support.model_server import ModelServer, Reply, ToolCall

_CLOCK = """
from datetime import datetime
from pathlib import Path
import graph.turns.run as run

class Clock(datetime):
    @classmethod
    def now(cls, tz=None):
        return datetime.fromisoformat(Path({path!r}).read_text()).astimezone(tz)

run.datetime = Clock
"""
"""Turns begin at the moment that a file names."""
_PARTS = {"morning": (5, 12), "afternoon": (12, 18), "evening": (17, 24)}
_MOMENTS = 5
"""First moments that are compared of what recurs."""


@dataclass
class Judged:
    """Outcome of a line."""

    right: int = 0
    wrong: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)
    needless: list[str] = field(default_factory=list)

    @property
    def faults(self) -> Sequence[str]:
        """Return what is not right, in words."""
        return [*self.wrong, *self.missed, *self.needless]


class Stage:
    """A running service, its model, and its clock."""

    def __init__(self, http: httpx.Client, model: ModelServer, clock: Path) -> None:
        self._http = http
        self._model = model
        self._clock = clock

    def play(self, line: Mapping[str, Any], *, calls: bool) -> tuple[list[dict[str, Any]], list[str]]:
        """Play a line with its calls or without; return the open promises, and what failed calls were told."""
        user, told, made = f"{line['id']}-{'model' if calls else 'plain'}", list[str](), list[str]()
        self._clock.write_text(
            datetime.fromisoformat(line["now"]).replace(tzinfo=ZoneInfo(line["zone"])).isoformat()
        )
        for message, asked in zip_longest(line["messages"], line["calls"], fillvalue=()):
            wanted = [_call(each, made) for each in asked] if calls else []
            replies = [Reply(tool_calls=[ToolCall("promise", each, f"call_{n}")]) for n, each in enumerate(wanted)]
            self._model.script(*replies, Reply(["OK."]), model="scripted")
            body = {"user_id": user, "session_id": user, "message": message, "timezone": line["zone"]}
            self._http.post("/api/v1/chat", json=body).raise_for_status()
            told += _results(self._model)
            for each in wanted:
                if not each.get("id"):
                    named = [p["id"] for p in self._listed(user) if p["text"] == each["text"]]
                    made.append(next((each for each in named if each not in made), ""))
        return [each for each in self._listed(user) if each["state"] == "open"], told

    def moments(self, line: Mapping[str, Any], promise: Mapping[str, Any], *, calls: bool) -> list[datetime]:
        """Return the first moments at which a promise is due, on its own clock."""
        zone = ZoneInfo(promise["timezone"])
        first = datetime.fromisoformat(promise["when"]).astimezone(zone)
        user = f"{line['id']}-{'model' if calls else 'plain'}"
        calendar = self._http.get(f"/api/v1/users/{user}/promises/calendar.ics").text.replace("\r\n ", "")
        event = next(each for each in calendar.split("BEGIN:VEVENT") if promise["id"] in each)
        found = re.search(r"^RDATE:(.+?)\r?$", event, re.MULTILINE)
        further = found[1].strip().split(",") if found else []
        read = [datetime.strptime(each, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC) for each in further]
        return [first, *(each.astimezone(zone) for each in read)][:_MOMENTS]

    def _listed(self, user: str) -> list[dict[str, Any]]:
        answer = self._http.get(f"/api/v1/users/{user}/promises", params={"limit": 100})
        return list(answer.json()["items"]) if answer.is_success else []


def _call(asked: Mapping[str, Any], made: Sequence[str]) -> dict[str, Any]:
    """Return the arguments of a call; `$1` is the first promise that was made."""
    given = {name: value for name, value in asked.items() if name != "tool" and value}
    if given.get("id", "").startswith("$"):
        place = int(given["id"][1:]) - 1
        given["id"] = made[place] if place < len(made) and made[place] else "none"
    return given


def _results(model: ModelServer) -> list[str]:
    """Return what calls were told that made no promise, and forget the requests."""
    asked = [json.dumps(each.body, ensure_ascii=False) for each in model.requests]
    model.requests.clear()
    return re.findall(r"Nothing was promised: [^\"\\]+", asked[-1]) if asked else []


def judge(stage: Stage, line: Mapping[str, Any], *, calls: bool) -> Judged:
    """Play a line and compare its promises with what is expected."""
    found, told = stage.play(line, calls=calls)
    judged = Judged()
    for each in _expected(line, calls=calls):
        wanted = json.dumps(each, ensure_ascii=False)
        # A plain form takes the words of its sentence, which may name the matter by “it”.
        fitting = [p for p in found if not calls or each["gist"].casefold() in p["text"].casefold()]
        if "after" in each and not fitting:
            judged.right += bool(told)
            judged.missed += [] if told else [wanted]
        elif not fitting:
            judged.missed.append(f"{wanted}; {told}")
        else:
            promise = next((p for p in fitting if _fits(each, stage.moments(line, p, calls=calls))), fitting[0])
            found.remove(promise)
            moments = stage.moments(line, promise, calls=calls)
            is_right = "after" not in each and _fits(each, moments)
            judged.right += is_right
            judged.wrong += [] if is_right else [f"{wanted}; is {_shown(moments)} by “{promise['said']}”"]
    judged.needless = [f"{p['text']} at {p['when']} by “{p['said']}”" for p in found]
    return judged


def _expected(line: Mapping[str, Any], *, calls: bool) -> Sequence[Mapping[str, Any]]:
    return [each for each in line["expected"] if calls or "after" not in each]


def _fits(expected: Mapping[str, Any], moments: Sequence[datetime]) -> bool:
    first = moments[0]
    if "every" in expected:
        known = [datetime.fromisoformat(expected["first"]), *moments_of(expected["every"], expected["first"])]
        timed = "T" in expected["first"]
        shown: list[datetime | date] = [each.replace(tzinfo=None) if timed else each.date() for each in moments]
        wanted = [each if timed else each.date() for each in dict.fromkeys(known)]
        return len(moments) == _MOMENTS and shown == wanted[:_MOMENTS] and _in_part(expected, first)
    if len(moments) > 1:
        return False
    if "at" in expected:
        return first.replace(tzinfo=None) == datetime.fromisoformat(expected["at"])
    return first.date().isoformat() == expected["day"] and _in_part(expected, first)


def _in_part(expected: Mapping[str, Any], moment: datetime) -> bool:
    named = expected.get("part") or expected.get("every", "").rpartition(" ")[2]
    begin, end = _PARTS.get(named, (0, 24))
    return begin <= moment.hour < end


def _shown(moments: Sequence[datetime]) -> str:
    return ", ".join(f"{each:%a %Y-%m-%d %H:%M}" for each in moments)


def _report(name: str, judged: Sequence[tuple[Mapping[str, Any], Judged]], *, shows: bool) -> None:
    counts = Counter[str]()
    for _, each in judged:
        counts["expected"] += each.right + len(each.wrong) + len(each.missed)
        counts["right"] += each.right
        counts["wrong"] += len(each.wrong)
        counts["missed"] += len(each.missed)
        counts["needless"] += len(each.needless)
    share = counts["right"] / counts["expected"] if counts["expected"] else 1.0
    details = ", ".join(f"{kind} {counts[kind]}" for kind in ("wrong", "missed", "needless"))
    right = f"right {counts['right']} of {counts['expected']} ({share:.3f})"
    print(f"{name}: {len(judged)} dialogues, {right}, {details}")
    for line, each in judged if shows else ():
        for fault in each.faults:
            print(f"  {line['id']} {line['now']} {line['messages']}\n      {fault}")


def main() -> None:
    """Play the files and print what was right."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--show", action="store_true", help="print each line that is not right")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, ModelServer() as model:
        clock = Path(folder) / "clock"
        clock.write_text(datetime.now(UTC).isoformat())
        settings = {
            "ANAMNESIS_LLM_MODEL": "scripted",
            "ANAMNESIS_SMALL_LLM_MODEL": "background",
            "ANAMNESIS_MEMORY_FILING": "off",
            "ANAMNESIS_MEMORY_TOPICS": "off",
        }
        with service(model.base_url, "chat", before=_CLOCK.format(path=str(clock)), **settings) as server:
            http = httpx.Client(base_url=f"http://127.0.0.1:{server.port}", timeout=60)
            for path in arguments.files:
                lines = [
                    json.loads(each) for each in path.read_text(encoding="utf-8").splitlines() if each.strip()
                ]
                stage = Stage(http, model, clock)
                for name, of, calls in (
                    ("with a good model", lines, True),
                    ("plain forms alone", [each for each in lines if each["plain"]], False),
                    ("nothing asked, no model", [each for each in lines if each["kind"] == "nothing"], False),
                ):
                    judged = [(line, judge(stage, line, calls=calls)) for line in of]
                    _report(f"{path.name}, {name}", judged, shows=arguments.show)
                    sys.stdout.flush()


if __name__ == "__main__":
    main()
