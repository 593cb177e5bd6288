"""The figures of an evaluation, for people and programs."""

from dataclasses import asdict
from typing import Any

from services.evaluation.dataset import Dataset
from services.evaluation.evaluation import Evaluated, summarise
from services.platform.settings import Settings


def report_of(settings: Settings, dataset: Dataset, found: Evaluated) -> dict[str, Any]:
    """Compute the figures of each system, by category."""
    systems: dict[str, Any] = {}
    for system, scores in found.scores.items():
        if scores:
            categories = sorted({each.category for each in scores})
            groups = {"all": scores, **{name: [s for s in scores if s.category == name] for name in categories}}
            systems[system] = {
                name: {
                    "questions": len(group),
                    **{key: asdict(value) for key, value in summarise(group).items()},
                }
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
