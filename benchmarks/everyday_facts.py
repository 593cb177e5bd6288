"""Everyday facts: how many of the facts that users told in earlier conversations reach the prompt.

`python -m benchmarks.everyday_facts [FOLDER ...] [--misses] [--json]`

Each folder holds `conversations.jsonl` and `questions.jsonl` in the form described in docs/evaluation.md. Every
conversation belongs to one user. Its sessions are played through the service's own turns (the answers are those of
the file), the memory agent files by rules, without a model, and the stored times are set back to the days of the
sessions. Then each question is asked in a new conversation and the prompt that the model received is examined. A
question is removed again before the next one is asked. The stores and the embedder are the built-in ones.
"""

import argparse
import asyncio
import json
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
from rich.console import Console
from rich.table import Table

from benchmarks.scripted_stores import scripted_stores
from graph.turns.requests import TurnRequest
from graph.turns.runner import TurnRunner
from services.bootstrap import Services, open_services
from services.engines import Engines
from services.identity.tenants import DEFAULT_TENANT
from services.platform.embedded_postgres import EmbeddedPostgres
from services.platform.settings import Settings
from state.conversation import TurnInput
from tests.scenarios.passing import let_pass
from tests.support.application import running_turns
from tests.support.model_server import ModelServer, Reply

DATA = Path(__file__).parent / "data" / "everyday"
_NEVER = 1_000
_ASKING = "question"
_STRANGER = "stranger"
_UNFINISHED = """
SELECT count(*) FROM procrastinate_jobs
WHERE status = 'doing' OR status = 'todo' AND coalesce(scheduled_at, now()) <= now()
"""
_REPORT = """
SELECT t.context_report FROM turns t JOIN conversations c ON c.id = t.conversation_id
WHERE c.session_key = %s ORDER BY t.started_at DESC LIMIT 1
"""
_ITEMS = """
SELECT e.source_message_ids, CASE WHEN e.content IS NULL
    THEN (SELECT jsonb_object_agg(m.id, m.content) FROM messages m WHERE m.id = ANY(e.source_message_ids))
    ELSE jsonb_build_object(e.id, e.content) END
FROM episodes e WHERE e.id = ANY(%s::uuid[])
"""
_FORGET_QUESTION = "DELETE FROM {} WHERE conversation_id IN (SELECT id FROM conversations WHERE session_key = %s)"


@dataclass(frozen=True)
class Told:
    """A message of a set."""

    user: str
    session: str
    at: datetime
    turn: str
    """Its id, with that of its conversation: in itself it is one only within that."""
    role: str
    text: str


@dataclass(frozen=True)
class Asked:
    """A question of a set."""

    id: str
    user: str
    text: str
    category: str
    evidence: frozenset[str]
    terms: tuple[str, ...]
    answerable: bool
    at: datetime


@dataclass(frozen=True)
class Result:
    """What the prompt of a question held."""

    asked: Asked
    reached: bool
    """Whether the evidence, or the answer from core memory, was in the prompt."""
    shown: int
    """Recalled items in the prompt."""
    with_evidence: int
    """Those of them that carry evidence."""
    ranked: int | None
    """Place of the first evidence in the ranking, from 1."""
    memory: str = ""


@dataclass
class _Play:
    """The services over one set of stores, and the ids that messages have there."""

    told: Services
    turns: TurnRunner
    model: ModelServer
    superuser: str
    message_ids: dict[str, UUID] = field(default_factory=dict)

    async def say(self, user: str, session: str, text: str) -> UUID:
        """Send a message; the id of its turn once that has ended."""
        request = TurnInput(user_id=user, session_id=session, message=text)
        turn_id = await self.turns.start(TurnRequest(DEFAULT_TENANT, request))
        async for _ in self.turns.follow(DEFAULT_TENANT, turn_id):
            pass
        return turn_id

    async def settle(self) -> None:
        """Wait until the jobs that turns caused are done."""
        async with await psycopg.AsyncConnection.connect(self.superuser, autocommit=True) as connection:
            while True:
                row = await (await connection.execute(_UNFINISHED)).fetchone()
                if row == (0,):
                    return
                await asyncio.sleep(0.05)

    async def forget_question(self) -> None:
        """Remove the conversation of the last question: the next one is asked as if it had not been."""
        async with await psycopg.AsyncConnection.connect(self.superuser, autocommit=True) as connection:
            await connection.execute("SET session_replication_role = replica")
            for table in ("episodes", "messages", "turns", "visits", "context_epochs", "memory_operations"):
                await connection.execute(_FORGET_QUESTION.format(table).encode(), [_ASKING])
            await connection.execute("DELETE FROM conversations WHERE session_key = %s", [_ASKING])


def folders() -> list[Path]:
    """The sets of the repository."""
    return sorted(path.parent for path in DATA.rglob("questions.jsonl"))


def load(folder: Path) -> tuple[list[Told], list[Asked]]:
    """Read a set.

    Raises:
        OSError: a file cannot be read.
        KeyError: a line lacks a field.
    """
    told = [
        Told(
            user=f"{folder.name}-{line['conversation_id']}",
            session=f"{folder.name}-{line['session_id']}",
            at=datetime.fromisoformat(line["session_time"]),
            turn=f"{line['conversation_id']} {line['turn_id']}",
            role=line["role"],
            text=line["text"],
        )
        for line in _lines(folder / "conversations.jsonl")
    ]
    asked = [
        Asked(
            id=line["question_id"],
            user=f"{folder.name}-{line['conversation_id']}",
            text=line["question"],
            category=line.get("category", "all"),
            evidence=frozenset(f"{line['conversation_id']} {turn}" for turn in line.get("evidence_turn_ids", ())),
            terms=tuple(line.get("answer_terms", ())),
            answerable=not line.get("unanswerable", False),
            at=datetime.fromisoformat(line["asked_at"]),
        )
        for line in _lines(folder / "questions.jsonl")
    ]
    return told, asked


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.strip():
            yield json.loads(line)


async def evaluate(folder: Path) -> list[Result]:
    """Tell everything, then ask everything."""
    told, asked = load(folder)
    async with _playing() as play:
        await _tell(play, told, asked)
        stranger = await _prompt_of(play, _STRANGER, "hello")
        return [await _ask(play, question, set(stranger.splitlines())) for question in asked]


@asynccontextmanager
async def _playing() -> AsyncIterator[_Play]:
    async with AsyncExitStack() as stack:
        stores = await stack.enter_async_context(scripted_stores())
        told = await stack.enter_async_context(_working(stores.offline, stores.engines))
        services = await stack.enter_async_context(open_services(stores.settings, stores.engines))
        turns = await stack.enter_async_context(running_turns(services))
        yield _Play(told, turns, stores.model, EmbeddedPostgres(stores.folder).url("postgres"))


@asynccontextmanager
async def _working(settings: Settings, engines: Engines) -> AsyncIterator[Services]:
    """Services that work through the jobs."""
    async with open_services(settings, engines) as services:
        services.jobs.start_worker()
        yield services


async def _tell(play: _Play, told: Sequence[Told], asked: Sequence[Asked]) -> None:
    asked_at: dict[str, datetime] = {}
    for question in asked:
        asked_at[question.user] = max(question.at, asked_at.get(question.user, question.at))
    begun: dict[tuple[str, str], datetime] = {}
    by_age: defaultdict[int, list[Told]] = defaultdict(list)
    for message in told:
        begin = begun.setdefault((message.user, message.session), message.at)
        by_age[max(0, (asked_at[message.user].date() - begin.date()).days)].append(message)
    ages = [*sorted(by_age, reverse=True), 0]
    for age, next_age in pairwise(ages):
        for _, session in groupby(by_age[age], key=lambda message: (message.user, message.session)):
            await _play_session(play, list(session))
        await play.settle()
        await let_pass(play.superuser, DEFAULT_TENANT, timedelta(days=age - next_age))
    await play.told.memory.indexing.index_waiting()


async def _play_session(play: _Play, session: Sequence[Told]) -> None:
    answer: Told | None
    for place, message in enumerate(session):
        if message.role != "user":
            continue
        following = session[place + 1 : place + 2]
        answer = following[0] if following and following[0].role == "assistant" else None
        play.model.default = Reply([answer.text if answer else "OK."])
        turn_id = await play.say(message.user, message.session, message.text)
        turn = await play.told.turns.get(DEFAULT_TENANT, turn_id)
        if turn.user_message_id:
            play.message_ids[message.turn] = turn.user_message_id
        if answer and turn.assistant_message_id:
            play.message_ids[answer.turn] = turn.assistant_message_id


async def _prompt_of(play: _Play, user: str, text: str) -> str:
    play.model.default = Reply(["OK."])
    play.model.requests.clear()
    await play.say(user, _ASKING, text)
    requests = [request for request in play.model.requests if request.body.get("model") == "scripted"]
    return "\n".join(said.replace(text, "") for _, said in requests[0].prompt) if requests else ""


async def _ask(play: _Play, asked: Asked, usual: set[str]) -> Result:
    prompt = await _prompt_of(play, asked.user, asked.text)
    memory = "\n".join(line for line in prompt.splitlines() if line not in usual)
    evidence = {play.message_ids[turn] for turn in asked.evidence if turn in play.message_ids}
    async with await psycopg.AsyncConnection.connect(play.superuser) as connection:
        row = await (await connection.execute(_REPORT, [_ASKING])).fetchone()
        recall = (row[0] or {}).get("recall") or {} if row else {}
        items = await (await connection.execute(_ITEMS, [recall.get("shown", [])])).fetchall()
    await play.settle()
    await play.forget_question()
    carrying = [_carries(sources, texts, evidence, asked.terms, memory) for sources, texts in items]
    hits = [hit["unit_id"] for hit in recall.get("hits", [])]
    return Result(
        asked=asked,
        reached=asked.answerable and (any(carrying) or _holds(memory, asked.terms)),
        shown=len(items),
        with_evidence=sum(carrying),
        ranked=next((place for place, hit in enumerate(hits, 1) if hit in {str(each) for each in evidence}), None),
        memory=memory,
    )


def _carries(
    sources: Sequence[UUID], texts: dict[str, str], evidence: set[UUID], terms: Sequence[str], memory: str
) -> bool:
    """Whether an item that the prompt shows holds evidence: an evidence message of it, or the answer's terms."""
    prompt = " ".join(memory.split())
    in_prompt = {each: " ".join(text.split()) for each, text in texts.items()}
    whole = any(in_prompt.get(str(each), "\0") in prompt for each in evidence)
    part = not evidence.isdisjoint(sources) and _holds(prompt, terms)
    return whole or part or _holds("\n".join(text for text in in_prompt.values() if text in prompt), terms)


def _holds(text: str, terms: Sequence[str]) -> bool:
    folded = text.casefold()
    return bool(terms) and all(term.casefold() in folded for term in terms)


def _report(name: str, results: Sequence[Result]) -> dict[str, Any]:
    fair = [each for each in results if each.asked.answerable]
    unfair = [each for each in results if not each.asked.answerable]
    shown = sum(each.shown for each in fair)
    categories = sorted({each.asked.category for each in fair})
    return {
        "set": name,
        "questions": len(fair),
        "reached": _share(each.reached for each in fair),
        "ranked_first": _share(each.ranked == 1 for each in fair),
        "among_first_5": _share((each.ranked or _NEVER) <= 5 for each in fair),
        "precision": round(sum(each.with_evidence for each in fair) / shown, 3) if shown else None,
        "items_per_question": round(shown / len(fair), 2) if fair else None,
        "unanswerable": len(unfair),
        "unanswerable_with_nothing": _share(each.shown == 0 for each in unfair),
        "by_category": {
            name: _share(each.reached for each in fair if each.asked.category == name) for name in categories
        },
    }


def _share(values: Iterable[bool]) -> float | None:
    known = list(values)
    return round(sum(known) / len(known), 3) if known else None


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, default=folders())
    parser.add_argument("--misses", action="store_true", help="print what was missed, and what was shown wrongly")
    parser.add_argument("--json", action="store_true", help="print one JSON object for each set")
    options = parser.parse_args()
    console = Console(width=160)
    for folder in options.folders:
        results = asyncio.run(evaluate(folder))
        report = _report(folder.name, results)
        if options.json:
            print(json.dumps(report, ensure_ascii=False))
        else:
            _show(console, report)
        for each in results if options.misses else ():
            if each.reached != each.asked.answerable or each.shown > each.with_evidence:
                verdict = "reached" if each.reached else "MISSED" if each.asked.answerable else "unanswerable"
                counts = f"rank {each.ranked}, {each.with_evidence} of {each.shown} items"
                text = f"\n{verdict} {each.asked.id} ({counts}): {each.asked.text}\n{each.memory}"
                console.print(text, markup=False)


def _show(console: Console, report: dict[str, Any]) -> None:
    table = Table("figure", "value", title=f"Everyday facts: {report['set']}")
    for name, value in report.items():
        if name not in ("set", "by_category"):
            table.add_row(name.replace("_", " "), str(value))
    for category, share in report["by_category"].items():
        table.add_row(f"reached: {category}", str(share))
    console.print(table)


if __name__ == "__main__":
    main()
