"""Memory commands: how many are obeyed, and how many ordinary messages are taken for one.

`python -m benchmarks.memory_commands [FOLDER] [--misses] [--json]`
`python -m benchmarks.memory_commands FOLDER --questions FILE | --answers FILE`
`python -m benchmarks.memory_commands --talk FOLDER ... [--json]`

The folder holds `zh.jsonl` and `en.jsonl`, each line `{id, setup, message, expect, gone, kept, present}`, and
`ordinary_zh.jsonl` and `ordinary_en.jsonl`, each line `{id, message}` (docs/evaluation.md). Every line is played
through the service's own turns, with a model that calls no tool and without a small one; then memory is looked
through, and something is asked in a new conversation, whose prompt is examined.

`--questions` also writes what a small model is asked in the background about messages that may be commands, one
JSON object a line; `--answers` plays the lines with the answers of such a file, each in a field `answer`.

`--talk` plays the conversations of everyday facts (`conversations.jsonl`) instead and prints every change of
memory that a message causes there. Hardly any of them asks for one: what is printed is to be read.
"""

import argparse
import asyncio
import json
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from itertools import zip_longest
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.scripted_stores import scripted_stores
from graph.turns.requests import TurnRequest
from graph.turns.runner import TurnRunner
from services.bootstrap import Services, open_services
from services.identity.tenants import DEFAULT_TENANT
from services.memory.blocks import Owner
from services.memory.commands.recogniser import recognise
from services.memory.episodes.scope import Scope
from services.text.tokenizer import informative_terms, simplified_text
from state.conversation import TurnInput
from tests.support.application import running_turns
from tests.support.model_server import ModelServer, Reply

DATA = Path(__file__).parent / "data" / "memory_commands" / "dev"
_ANSWER = {"zh": "好的。", "en": "All right."}
_ASKS = {"zh": "关于{what}，你知道些什么？", "en": "What do you know about {what}?"}
_NONE = '{"command": "none", "memories": [], "message": ""}'
_PER_CONVERSATION = 10
"""Ordinary messages that one conversation holds."""


@dataclass(frozen=True)
class Line:
    """A command, what was said before it, and what has to come of it."""

    id: str
    language: str
    message: str
    expect: str
    setup: Sequence[dict[str, Any]] = ()
    gone: Sequence[str] = ()
    kept: Sequence[str] = ()
    present: Sequence[str] = ()


@dataclass
class Result:
    """What came of a line."""

    line: Line
    kinds: list[str]
    problems: list[str] = field(default_factory=list)
    in_other_words: list[str] = field(default_factory=list)
    """What is to be in memory and is, though not verbatim: one memory has all of its informative words."""

    @property
    def obeyed(self) -> bool:
        """Whether the right was done, and nothing else, to the letter."""
        return self.in_substance and not self.in_other_words

    @property
    def in_substance(self) -> bool:
        """The same, in whatever words."""
        return not self.problems


@dataclass
class _Reviews:
    """What a small model is asked about commands, and what it answers, by the lines' ids."""

    answers: dict[str, str] = field(default_factory=dict)
    questions: list[dict[str, str]] = field(default_factory=list)


@dataclass
class _Play:
    services: Services
    turns: TurnRunner
    model: ModelServer
    reviews: "_Reviews | None" = None

    async def say(
        self, user: str, session: str, text: str, answer: str, *, reviewed_as: str | None = None
    ) -> list[dict[str, Any]]:
        """Send a message; the changes of memory that its turn reports, after its review if it has one."""
        self.model.default = Reply([answer])
        request = TurnInput(user_id=user, session_id=session, message=text)
        turn_id = await self.turns.start(TurnRequest(DEFAULT_TENANT, request))
        changes: list[dict[str, Any]] = []
        async for events in self.turns.follow(DEFAULT_TENANT, turn_id):
            for event in events:
                if event.status == "done":
                    changes = event.content["memory_changes"]
        if self.reviews is None or reviewed_as is None or not recognise(text).may_ask:
            return changes
        self.model.default = Reply([self.reviews.answers.get(reviewed_as, _NONE)])
        self.model.requests.clear()
        await self.services.command_review.decide(DEFAULT_TENANT, turn_id)
        if self.model.requests:
            asked = dict(self.model.requests[0].prompt)
            self.reviews.questions.append({"id": reviewed_as, **asked})
        stored = await self.services.turns.get(DEFAULT_TENANT, turn_id)
        return list(stored.memory_changes)


def load(folder: Path, language: str) -> list[Line]:
    """Read the commands of a language.

    Raises:
        OSError: the file cannot be read.
        TypeError: a line lacks a field.
    """
    names = {each.name for each in fields(Line)}
    return [
        Line(language=language, **{name: line[name] for name in names & line.keys()})
        for line in _lines(folder / f"{language}.jsonl")
    ]


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    if not path.exists():
        return
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.strip():
            yield json.loads(line)


async def evaluate(
    folder: Path, language: str, reviews: _Reviews | None = None
) -> tuple[list[Result], list[Result]]:
    """Play the commands and the ordinary messages of a language."""
    async with _playing() as play:
        play.reviews = reviews
        commands = [await _play_line(play, line) for line in load(folder, language)]
        ordinary = [
            Line(language=language, expect="none", **line)
            for line in _lines(folder / f"ordinary_{language}.jsonl")
        ]
        alarms = []
        for number, line in enumerate(ordinary):
            session = f"ordinary-{number // _PER_CONVERSATION}"
            changes = await play.say(
                f"ordinary-{language}", session, line.message, _ANSWER[language], reviewed_as=line.id
            )
            problems = [f"{each['kind']}: {each['summary']}" for each in changes]
            alarms.append(Result(line, [each["kind"] for each in changes], problems))
    return commands, alarms


@asynccontextmanager
async def _playing() -> AsyncIterator[_Play]:
    async with (
        scripted_stores() as stores,
        open_services(stores.settings, stores.engines) as services,
        running_turns(services) as turns,
    ):
        yield _Play(services, turns, stores.model)


async def talk(folder: Path) -> tuple[int, list[Result]]:
    """Play the conversations of a folder: how many messages users sent, and those that changed memory."""
    said, changed = 0, []
    async with _playing() as play:
        lines = list(_lines(folder / "conversations.jsonl"))
        for line, following in zip_longest(lines, lines[1:], fillvalue=None):
            if line is None or line["role"] != "user":
                continue
            said += 1
            answered = following is not None and following["role"] == "assistant"
            answer = following["text"] if following is not None and answered else _ANSWER["en"]
            changes = await play.say(line["conversation_id"], line["session_id"], line["text"], answer)
            done = [f"{each['kind']}: {each['summary']}" for each in changes if each["operation_id"]]
            if done:
                message = Line(f"{line['conversation_id']} {line['turn_id']}", "", line["text"], "none")
                changed.append(Result(message, [each["kind"] for each in changes], done))
    return said, changed


async def _play_line(play: _Play, line: Line) -> Result:
    user = f"{line.language}-{line.id}"
    setup = list(line.setup)
    for place, message in enumerate(setup):
        if message["role"] != "user":
            continue
        following = setup[place + 1] if place + 1 < len(setup) else {}
        answer = following["text"] if following.get("role") == "assistant" else _ANSWER[line.language]
        session = "now" if message.get("same") else "earlier"
        await play.say(user, session, message["text"], answer, reviewed_as=f"{line.id}.{place}")
    changes = await play.say(user, "now", line.message, _ANSWER[line.language], reviewed_as=line.id)
    done = [each["kind"] for each in changes if each["operation_id"]]
    result = Result(line, done)
    if line.expect == "none":
        result.problems += [f"{each['kind']}: {each['summary']}" for each in changes]
    elif line.expect not in done:
        result.problems.append(f"{line.expect} was not done ({changes or 'nothing reported'})")
    await _look_through(play, line, user, result)
    return result


async def _look_through(play: _Play, line: Line, user: str, result: Result) -> None:
    """Note what stands in memory although it must not, or does not although it must."""
    problems = result.problems
    memory = [await _searched(play, user, each) for each in (*line.gone, *line.kept, *line.present)]
    prompts = [await _prompt_about(play, line, user, each) for each in line.gone]
    core = await _core(play, user)
    for text, found, prompt in zip(line.gone, memory, prompts, strict=False):
        for where, there in (("search", found), ("prompt", prompt), ("core memory", core)):
            if _folded(text) in _folded(there):
                problems.append(f"{text!r} is still in {where}")
    for text, found in zip((*line.kept, *line.present), memory[len(line.gone) :], strict=True):
        if _folded(text) in _folded(f"{found}\n{core}"):
            continue
        words = informative_terms(text)
        told = any(words <= informative_terms(each) for each in (*found.split("\n"), core))
        (result.in_other_words if told and words else problems).append(f"{text!r} is not in memory")


async def _searched(play: _Play, user: str, query: str) -> str:
    owner = await _owner(play, user)
    scope = Scope(owner.tenant_id, owner.user_id, owner.expert_id)
    found = await play.services.memory.archive.search(scope, query, top_k=20, now=datetime.now(UTC))
    return "\n".join(each.content for each in found.items)


async def _core(play: _Play, user: str) -> str:
    blocks = await play.services.memory.core.read(await _owner(play, user))
    return json.dumps([block.content for block in blocks], ensure_ascii=False)


async def _owner(play: _Play, user: str) -> Owner:
    return await play.services.memory.core.owner(DEFAULT_TENANT, user, "default")


async def _prompt_about(play: _Play, line: Line, user: str, what: str) -> str:
    """A prompt of a new conversation, without the question itself; the turn is off the record."""
    question = _ASKS[line.language].format(what=what)
    play.model.requests.clear()
    await play.say(user, f"later-{what}", question, _ANSWER[line.language])
    requests = [request for request in play.model.requests if request.body.get("model") == "scripted"]
    return "\n".join(said.replace(question, "") for _, said in requests[0].prompt) if requests else ""


def _folded(text: str) -> str:
    return " ".join(simplified_text(text).split())


def _report(language: str, commands: Sequence[Result], ordinary: Sequence[Result]) -> dict[str, Any]:
    by_kind: defaultdict[str, list[bool]] = defaultdict(list)
    for result in commands:
        by_kind[result.line.expect].append(result.obeyed)
    real = [result.obeyed for result in commands if result.line.expect != "none"]
    return {
        "language": language,
        "commands": len(real),
        "obeyed": _share(real),
        "obeyed_in_substance": _share(each.in_substance for each in commands if each.line.expect != "none"),
        "by_kind": {kind: f"{_share(values)} of {len(values)}" for kind, values in sorted(by_kind.items())},
        "ordinary": len(ordinary),
        "false_alarms": _share(not result.obeyed for result in ordinary),
    }


def _share(values: Iterable[bool]) -> float | None:
    known = list(values)
    return round(sum(known) / len(known), 4) if known else None


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=DATA)
    parser.add_argument("--language", choices=("zh", "en"), action="append")
    parser.add_argument("--misses", action="store_true", help="print what was not obeyed, and every false alarm")
    parser.add_argument("--json", action="store_true", help="print one JSON object for each language")
    parser.add_argument("--questions", type=Path, metavar="FILE", help="write what a small model is asked")
    parser.add_argument("--answers", type=Path, metavar="FILE", help="a small model's answers to such questions")
    parser.add_argument("--talk", nargs="+", type=Path, metavar="FOLDER", help="play conversations, print changes")
    options = parser.parse_args()
    console = Console(width=160)
    for folder in options.talk or ():
        said, changed = asyncio.run(talk(folder))
        print(json.dumps({"folder": str(folder), "messages": said, "changes": len(changed)}, ensure_ascii=False))
        _print_misses(console, changed)
    if options.talk:
        return
    reviews = _Reviews() if options.questions or options.answers else None
    if reviews and options.answers:
        reviews.answers = {each["id"]: each["answer"] for each in _lines(options.answers)}
    for language in options.language or ("zh", "en"):
        commands, ordinary = asyncio.run(evaluate(options.folder, language, reviews))
        report = _report(language, commands, ordinary)
        if options.json:
            print(json.dumps(report, ensure_ascii=False))
        else:
            table = Table("figure", "value", title=f"Memory commands: {language}")
            for name, value in report.items():
                table.add_row(name.replace("_", " "), json.dumps(value, ensure_ascii=False))
            console.print(table)
        _print_misses(console, (*commands, *ordinary) if options.misses else ())
    if reviews and options.questions:
        asked = (json.dumps(each, ensure_ascii=False) for each in reviews.questions)
        options.questions.write_text("\n".join(asked) + "\n", encoding="utf-8")


def _print_misses(console: Console, results: Iterable[Result]) -> None:
    for result in results:
        if not result.obeyed:
            line = result.line
            text = f"\n{line.id} ({line.expect}): {line.message}\n  " + "\n  ".join(
                [*result.problems, *result.in_other_words]
            )
            console.print(text, markup=False)


if __name__ == "__main__":
    main()
