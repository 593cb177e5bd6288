"""An evaluation: conversations are imported for a tenant created for it, and every question is asked there."""

import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any
from uuid import UUID, uuid4

import numpy as np
import orjson

from services.evaluation.dataset import Dataset, Question
from services.identity.tenants import Tenants
from services.jobs.queue import JobQueue
from services.llm.embeddings import Embedder
from services.memory.episodes.episode import Scope
from services.memory.episodes.index import UnitHit
from services.memory.wiring import Memory
from services.platform.postgres import Database
from services.platform.settings import Settings
from services.text.tokenizer import terms
from services.transfer.importer import Importer

CUTS = (5, 10, 20)
_RESAMPLES = 1000
_CONFIDENCE = 0.95


Scores = dict[str, float]
"""Scores of one question: `recall@k`, the share of its evidence among the first `k` messages shown; `hit@10`, 1 if
any of it is among the first 10; and `mrr`, 1 / place of the first of it, or 0."""


@dataclass(frozen=True)
class Figure:
    """A mean, and between what the mean would lie for 95 of 100 such sets (bootstrap over the questions)."""

    mean: float
    low: float
    high: float


def score(shown: Sequence[str], evidence: frozenset[str]) -> Scores:
    """The figures of one question.

    Args:
        shown: ids of the messages in the order in which they are shown.
        evidence: ids of those that answer it.
    """
    places = [place for place, message in enumerate(shown, start=1) if message in evidence]
    recall = {f"recall@{cut}": sum(place <= cut for place in places) / len(evidence) for cut in CUTS}
    return {
        **recall,
        "hit@10": float(any(place <= CUTS[1] for place in places)),
        "mrr": 1 / places[0] if places else 0.0,
    }


def summarise(scores: Sequence[Scores]) -> dict[str, Figure]:
    """Means with their intervals, by the name of the figure."""
    return {name: figure([each[name] for each in scores]) for name in scores[0]}


def figure(values: Sequence[float]) -> Figure:
    """A mean with its interval; the same values give the same interval."""
    known = np.array(values, dtype=np.float64)
    draws = np.random.default_rng(0).integers(0, len(known), size=(_RESAMPLES, len(known)))
    means = known[draws].mean(axis=1)
    tail = (1 - _CONFIDENCE) / 2
    return Figure(float(known.mean()), float(np.quantile(means, tail)), float(np.quantile(means, 1 - tail)))


OURS = "recall"
BASELINES = ("BM25 only", "dense only", "hybrid, RRF 60")

_DEPTH = 100
_TOP_K = 20
_RRF_K = 60

OnStep = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is."""


@dataclass(frozen=True)
class Evaluated:
    """What an evaluation found."""

    scores: dict[str, list[Scores]]
    """Scores by system, one for each question, in their order."""
    milliseconds: list[float]
    """That each recall took."""
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
        """Import, index, ask, and remove everything again.

        Raises:
            Unavailable: a store or the embedding endpoint does not answer.
        """
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
        for number, question in enumerate(dataset.questions, start=1):
            scope = scopes[question.user]
            begun = time.perf_counter()
            shown = await self._ours(scope, question)
            milliseconds.append((time.perf_counter() - begun) * 1000)
            scores[OURS].append(score(shown, question.evidence))
            for name, found in zip(BASELINES, await self._baselines(scope, question), strict=True):
                scores[name].append(score(found, question.evidence))
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
        return [source.external_id or "" for item in found.items for source in item.sources]

    async def _baselines(self, scope: Scope, question: Question) -> list[list[str]]:
        text = "\n".join([*(said.text for said in question.said), question.text])
        vectors = [await self._embedder.embed_query(text)]
        by_words, by_meaning = await self._memory.index.search(scope, [terms(text)], vectors, _DEPTH)
        words, meaning = by_words[0], by_meaning[0]
        ranked = [_ids(words), _ids(meaning), _fused(words, meaning)]
        ids = {(str(hit.unit_id), str(hit.episode_id)) for hit in (*words, *meaning)}
        units = await self._memory.episodes.found(scope, ids)
        return [[found.external_id or "" for each in order if (found := units.get(str(each)))] for order in ranked]


def _ids(hits: Sequence[UnitHit]) -> list[UUID]:
    return [hit.unit_id for hit in hits]


def _fused(*lists: Sequence[UnitHit]) -> list[UUID]:
    """Reciprocal rank fusion as in the textbook (Cormack et al., SIGIR 2009)."""
    totals: dict[UUID, float] = {}
    for hits in lists:
        for rank, hit in enumerate(hits, start=1):
            totals[hit.unit_id] = totals.get(hit.unit_id, 0.0) + 1 / (_RRF_K + rank)
    return sorted(totals, key=lambda each: -totals[each])


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
