"""An evaluation: conversations are imported for a tenant created for it, and every question is asked there."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, TypeVar
from uuid import uuid4

import numpy as np
import orjson

from services.errors import Unavailable
from services.evaluation.dataset import Dataset, Question
from services.identity.tenants import Tenants
from services.jobs.queue import JobQueue
from services.llm.embeddings import Embedder
from services.memory.episodes.episode import Scope
from services.memory.wiring import Memory
from services.platform.postgres import Database
from services.platform.settings import Settings
from services.search.legs import relative
from services.search.units import Mask, Values
from services.text.tokenizer import terms
from services.transfer.importer import Importer

CUTS = (5, 10, 20)
_RESAMPLES = 1000
_CONFIDENCE = 0.95


Scores = dict[str, float]
"""Scores of one question: `recall@k`, the share of its evidence among the first `k` messages shown; `hit@10`, 1
if any evidence is among the first 10, else 0; and `mrr`, 1 / place of the first evidence, or 0."""


@dataclass(frozen=True)
class Figure:
    """A mean and its 95 % interval (bootstrap over the questions)."""

    mean: float
    low: float
    high: float


def score(shown: Sequence[str], evidence: frozenset[str]) -> Scores:
    """Return the scores of one question.

    Args:
        shown: Ids of the messages, or of their sessions, in the order in which they are shown.
        evidence: Ids of those that answer it.
    """
    first = {found: place for place, found in reversed([*enumerate(shown, start=1)])}
    places = sorted(place for found, place in first.items() if found in evidence)
    recall = {f"recall@{cut}": sum(place <= cut for place in places) / len(evidence) for cut in CUTS}
    return {
        **recall,
        "hit@10": float(any(place <= CUTS[1] for place in places)),
        "mrr": 1 / places[0] if places else 0.0,
    }


def summarise(scores: Sequence[Scores]) -> dict[str, Figure]:
    """Return the means with their intervals, by the name of the score."""
    return {name: figure([each[name] for each in scores]) for name in scores[0]}


def figure(values: Sequence[float]) -> Figure:
    """Return a mean with its interval; equal values give equal intervals."""
    known = np.array(values, dtype=np.float64)
    draws = np.random.default_rng(0).integers(0, len(known), size=(_RESAMPLES, len(known)))
    means = known[draws].mean(axis=1)
    tail = (1 - _CONFIDENCE) / 2
    return Figure(float(known.mean()), float(np.quantile(means, tail)), float(np.quantile(means, 1 - tail)))


OURS = "recall"
BASELINES = ("BM25 only", "encoder only", "plain fusion")

_DEPTH = 100
_TOP_K = 20
_WAITS_S = (0.5, 2.0, 8.0)
"""Pauses before what did not answer is asked again."""

Found = TypeVar("Found")
OnStep = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is."""


@dataclass(frozen=True)
class Evaluated:
    """Result of an evaluation."""

    scores: dict[str, list[Scores]]
    """Scores by system, one for each question, in their order."""
    milliseconds: list[float]
    """Time that each recall took."""
    messages: int
    refused: int
    """Lines that could not be imported."""


class Evaluation:
    """Runs question sets through the recall that a turn uses."""

    def __init__(
        self, settings: Settings, database: Database, jobs: JobQueue, memory: Memory, embedder: Embedder
    ) -> None:
        """Take what it works with; the set is not summarised."""
        quiet = settings.model_copy(update={"memory_summaries": False, "memory_topics": False})
        self._tenants = Tenants(database)
        self._importer = Importer(quiet, database, jobs)
        self._memory = memory
        self._embedder = embedder

    async def run(self, dataset: Dataset, on_step: OnStep) -> Evaluated:
        """Import, index, ask, and remove everything again. Raises `Unavailable` if a store or the embedding
        endpoint does not answer."""
        tenant = await self._tenants.create(f"evaluation-{uuid4().hex}")
        users = sorted({line["user_id"] for line in dataset.lines})
        scopes: dict[str, Scope] = {}
        try:
            report = await self._importer.run(tenant.id, _chunks(dataset, on_step))
            on_step("indexing", 0, 1)
            await self._memory.indexing.index_waiting()
            on_step("indexing", 1, 1)
            scopes = {user: Scope.of(await self._memory.core.owner(tenant.id, user, "default")) for user in users}
            return await self._ask_all(dataset, scopes, report.refused, on_step)
        finally:
            for scope in scopes.values():
                await self._memory.index.forget(scope.user_id)
            await self._tenants.remove(tenant.id)

    async def _ask_all(
        self, dataset: Dataset, scopes: dict[str, Scope], refused: int, on_step: OnStep
    ) -> Evaluated:
        scores: dict[str, list[Scores]] = {name: [] for name in (OURS, *BASELINES)}
        milliseconds: list[float] = []
        sessions = {(line["user_id"], line["external_id"]): line["session_id"] for line in dataset.lines}

        def judged(shown: Sequence[str], question: Question) -> Scores:
            if question.sessions:
                shown = [sessions.get((question.user, each), "") for each in shown]
            return score(shown, question.wanted)

        for number, question in enumerate(dataset.questions, start=1):
            scope = scopes[question.user]
            shown, took = await _answered(partial(self._ours, scope, question))
            milliseconds.append(took)
            scores[OURS].append(judged(shown, question))
            others, _ = await _answered(partial(self._baselines, scope, question))
            for name, found in zip(BASELINES, others, strict=True):
                scores[name].append(judged(found, question))
            on_step("asking", number, len(dataset.questions))
        return Evaluated(scores, milliseconds, len(dataset.lines), refused)

    async def _ours(self, scope: Scope, question: Question) -> list[str]:
        # The dates of a set are taken for UTC.
        found = await self._memory.archive.search(
            scope,
            question.text,
            top_k=_TOP_K,
            now=question.asked_at,
            timezone="UTC",
            said=question.said,
            speaker=question.speaker,
        )
        if found.degraded:
            raise Unavailable(f"Without {', '.join(found.degraded)} the figures would be those of something else.")
        return [source.external_id or "" for item in found.items for source in item.sources]

    async def _baselines(self, scope: Scope, question: Question) -> list[list[str]]:
        text = "\n".join([*(said.text for said in question.said), question.text])
        vector = np.asarray([await self._embedder.embed_query(text)], dtype=np.float32)
        kept = await self._memory.working_sets.of(scope, None)
        if kept is None:
            raise Unavailable("A user of the set has more messages than are held for one.")
        units, mask = kept.units, kept.units.within(until=question.until)
        [words], _ = units.by_words([terms(text)], mask)
        [meaning] = np.nan_to_num(units.by_meaning(vector), nan=-1.0)
        found = []
        for values in (words, meaning, fusion(words, meaning, mask)):
            places = mask.nonzero()[0]
            best = places[np.argsort(-values[places], kind="stable")][:_DEPTH]
            found.append((units.unit_ids(best), units.episode_ids(best)))
        pairs = {pair for ids, episodes in found for pair in zip(ids, episodes, strict=True)}
        stored = await self._memory.episodes.found(scope, pairs)
        return [[stored[each].external_id or "" for each in ids if each in stored] for ids, _ in found]


def fusion(words: Values, meaning: Values, mask: Mask) -> Values:
    """Return the plain sum of BM25 and cosines, each as a share of its best among the units of the mask."""
    seen = meaning[mask]
    least, most = float(seen.min(initial=1.0)), float(seen.max(initial=-1.0))
    total: Values = relative(words) + (meaning - least) / max(most - least, 1e-9)
    return total


async def _answered(call: Callable[[], Awaitable[Found]]) -> tuple[Found, float]:
    """Return what a call finds, and the milliseconds that it took; one that fails is repeated. Raises
    `Unavailable` if it still did not answer."""
    for pause in (*_WAITS_S, None):
        begun = time.perf_counter()
        try:
            return await call(), (time.perf_counter() - begun) * 1000
        except Unavailable:
            if pause is None:
                raise
            await asyncio.sleep(pause)
    raise AssertionError("unreachable")


async def _chunks(dataset: Dataset, on_step: OnStep) -> AsyncIterator[bytes]:
    for number, line in enumerate(dataset.lines, start=1):
        yield orjson.dumps(line) + b"\n"
        on_step("importing", number, len(dataset.lines))


def report_of(settings: Settings, dataset: Dataset, found: Evaluated) -> dict[str, Any]:
    """Compute the figures of each system, by category."""
    systems: dict[str, Any] = {}
    for system, scores in found.scores.items() if dataset.questions else ():
        groups = {"all": scores}
        for question, each in sorted(zip(dataset.questions, scores, strict=True), key=lambda one: one[0].category):
            if question.category != "all":
                groups.setdefault(question.category, []).append(each)
        systems[system] = {
            name: {"questions": len(group), **{key: asdict(value) for key, value in summarise(group).items()}}
            for name, group in groups.items()
        }
    ordered = sorted(found.milliseconds)
    return {
        "set": dataset.name,
        "embedding": settings.embedding_model or "built-in sentence encoder",
        "messages": found.messages,
        "refused": found.refused,
        "questions": len(dataset.questions),
        "questions_without_evidence": dataset.skipped,
        "systems": systems,
        "recall_ms": {
            "p50": round(ordered[len(ordered) // 2], 1),
            "p95": round(ordered[int(len(ordered) * 0.95)], 1),
        }
        if ordered
        else None,
    }
