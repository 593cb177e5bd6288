"""Memory commands planned over what was said before them, without the service around it: seconds for a set.

`python -m benchmarks.command_replay [SET ...] [--left-out | --talk]`

Plays the sets in `data/memory_commands` by the recogniser and the resolution alone, with messages held in a list
and no core memory but wishes; `benchmarks.memory_commands` plays them through the service. For experiments. With
`--left-out` each set is read by weights that were trained without it.
"""

import argparse
import asyncio
import contextlib
import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from benchmarks import command_training, target_training
from benchmarks.command_training import ordinary_of
from benchmarks.memory_commands import Line, load
from services.encryption.search import like_any
from services.memory.blocks import Owner
from services.memory.commands.holdings import CoreSections
from services.memory.commands.model import reading_by
from services.memory.commands.pieces import Stored
from services.memory.commands.reading import CommandReader, ResolutionRequest
from services.memory.commands.recogniser import recognise
from services.memory.commands.resolution import Resolution
from services.memory.commands.targets import weighing_by
from services.text.language import language_of
from services.text.tokenizer import simplified_text
from state.memory import PlannedChange, Recognised

DATA = Path(__file__).parent / "data"
SETS = ("dev", "others", *(f"others-{number}" for number in range(2, 11)), "targets-2")
_BEFORE = 8
_PER_CONVERSATION = 10
_OWNER = Owner(uuid4(), uuid4(), uuid4())


class Told(CommandReader):
    """What was told, in a list."""

    def __init__(self) -> None:
        self.messages: list[Stored] = []
        self.items: dict[str, dict[str, list[str]]] = {}

    async def core(self, asking: ResolutionRequest) -> CoreSections:
        """Only what the commands themselves filed."""
        return CoreSections(self.items, {})

    async def filed(self, asking: ResolutionRequest, messages: Sequence[UUID]) -> list[tuple[str, Any, Any]]:
        """Nothing."""
        return []

    async def answers(self, asking: ResolutionRequest, messages: Sequence[UUID]) -> list[tuple[UUID, str, UUID]]:
        """The answer of each message."""
        turns = {each.turn_id: each.id for each in self.messages if each.id in messages}
        said = [each for each in self.messages if each.role == "assistant" and each.turn_id in turns]
        return [(each.id, each.content, turns[each.turn_id]) for each in said]

    async def mentions(self, asking: ResolutionRequest, patterns: list[str], *, most: int = 300) -> list[Stored]:
        """What has any of these patterns, the newest first."""
        is_meant = like_any(patterns)
        return [each for each in reversed(self.messages) if is_meant(each.content)][:most]

    async def before(self, asking: ResolutionRequest) -> list[Stored]:
        """The messages before it in its conversation, the newest first."""
        own = [each for each in reversed(self.messages) if each.conversation_id == asking.conversation_id]
        return own[:_BEFORE]


class Replay:
    """The memory of one user."""

    def __init__(self) -> None:
        self.told = Told()
        self._resolution = Resolution(self.told)
        self._conversations: defaultdict[str, UUID] = defaultdict(uuid4)

    def add(self, conversation: str, user: str, answer: str = "") -> None:
        """Note an exchange."""
        turn = uuid4()
        for role, text in (("user", user), ("assistant", answer)):
            if text:
                at = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=len(self.told.messages))
                own = Stored("message", uuid4(), self._conversations[conversation], turn, role, text, at)  # type: ignore[arg-type]
                self.told.messages.append(own)

    def asking(self, conversation: str, message: str, recognised: Recognised | None = None) -> ResolutionRequest:
        """A message as the resolution reads it."""
        return ResolutionRequest(
            _OWNER,
            self._conversations[conversation],
            uuid4(),
            message,
            language_of([message]),
            recognised or recognise(message),
        )

    def plan(self, asking: ResolutionRequest) -> list[PlannedChange]:
        """What the commands of a message change."""
        return asyncio.run(self._resolution.plan(asking))

    def carry_out(self, planned: Sequence[PlannedChange], message: str) -> str:
        """Change what is held; what is kept of the message."""
        kept: str | None = message
        for each in planned:
            if each["change"]["operation_id"] is None:
                continue
            texts = {UUID(changed["message_id"]): changed["memory_text"] for changed in each["messages"]}
            now = [(held, texts.get(held.id, held.content)) for held in self.told.messages]
            self.told.messages = [replace(held, content=text) for held, text in now if text]
            kept = {"keep": kept, "leave out": each["own_text"], "off the record": None}[each["own"]]
            for item in each["items"]:
                if item["action"] == "add":
                    field = self.told.items.setdefault(item["section"], {}).setdefault(item["field"], [])
                    field.append(str(item["value"]))
        return kept or ""

    def say(self, conversation: str, message: str, answer: str = "") -> list[PlannedChange]:
        """Send a message; what it changes."""
        planned = self.plan(self.asking(conversation, message))
        kept = self.carry_out(planned, message)
        self.add(conversation, kept, answer if kept else "")
        return planned

    @property
    def memory(self) -> str:
        """All that is held."""
        texts = [each.content for each in self.told.messages]
        return " ".join(
            simplified_text("\n".join([*texts, json.dumps(self.told.items, ensure_ascii=False)])).split()
        )


def told_before(line: Line, *, obeying: bool = True) -> Replay:
    """A memory with what was told before a command, in which commands were obeyed."""
    found, setup = Replay(), list(line.setup)
    for place, message in enumerate(setup):
        if message["role"] == "user":
            following = setup[place + 1] if place + 1 < len(setup) else {}
            answer = following["text"] if following.get("role") == "assistant" else ""
            tell = found.say if obeying else found.add
            tell("now" if message.get("same") else "earlier", message["text"], answer)
    return found


def problems_of(line: Line, found: Replay) -> list[str]:
    """What is held although it must not be, or is not although it must."""
    memory = found.memory
    wrong = [f"{text!r} is still there" for text in line.gone if simplified_text(text) in memory]
    return wrong + [
        f"{text!r} is lost" for text in (*line.kept, *line.present) if simplified_text(text) not in memory
    ]


def play(line: Line) -> list[str]:
    """Give a command; what went wrong."""
    found = told_before(line)
    planned = found.say("now", line.message)
    kinds = [each["change"]["kind"] for each in planned if each["change"]["operation_id"]]
    if line.expect == "none":
        return [each["change"]["summary"] for each in planned]
    missed = [] if line.expect in kinds else [f"{line.expect} was not done"]
    return missed + problems_of(line, found)


def alarms(name: str, language: str) -> list[str]:
    """The ordinary messages of a set that change memory, or ask it to."""
    found, messages = Replay(), ordinary_of(DATA / "memory_commands" / name, language)
    said = [found.say(f"{number // _PER_CONVERSATION}", text) for number, text in enumerate(messages)]
    return [text for text, planned in zip(messages, said, strict=True) if planned]


def changes_in_talk() -> tuple[int, list[str]]:
    """How many messages users sent in the everyday conversations, and those that changed memory."""
    said, changed = 0, []
    for path in sorted((DATA / "everyday").glob("**/conversations.jsonl")):
        users: defaultdict[str, Replay] = defaultdict(Replay)
        for line in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
            if line["role"] == "user":
                said += 1
                planned = users[line["conversation_id"]].say(line["session_id"], line["text"])
                done = [each["change"]["summary"] for each in planned if each["change"]["operation_id"]]
                changed += [f"{line['text']}\n    {'; '.join(done)}"] if done else []
    return said, changed


def _report(name: str, *, with_misses: bool) -> None:
    for language in ("en", "zh"):
        lines = load(DATA / "memory_commands" / name, language)
        wrong = {line.id: (line, found) for line in lines if (found := play(line))}
        obeyed: defaultdict[str, list[bool]] = defaultdict(list)
        for line in lines:
            obeyed[line.expect].append(line.id not in wrong)
        shares = {kind: f"{sum(each)} of {len(each)}" for kind, each in sorted(obeyed.items())}
        print(name, language, shares, *(f"alarm: {each}" for each in alarms(name, language)), sep="\n  ")
        for line, found in wrong.values() if with_misses else ():
            print(f"  {line.id} ({line.expect}): {line.message}\n    {'; '.join(found)}")


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", default=SETS)
    parser.add_argument("--misses", action="store_true", help="print what was not obeyed")
    parser.add_argument("--left-out", action="store_true", help="leave each set out of the training")
    parser.add_argument("--talk", action="store_true", help="play the everyday conversations, and print changes")
    options = parser.parse_args()
    known = target_training.cases() if options.left_out and not options.talk else None
    for name in () if options.talk else options.sets:
        with contextlib.ExitStack() as weights:
            if known is not None:
                weights.enter_context(reading_by(command_training.weights_without(name)))
                own = target_training.weights_of([case for case in known if case.source != name])
                weights.enter_context(weighing_by(own))
            _report(name, with_misses=options.misses)
    if options.talk:
        said, changed = changes_in_talk()
        print(f"{len(changed)} of {said} messages", *changed, sep="\n")


if __name__ == "__main__":
    main()
