"""Learn what messages are like: `python -m training.heads`, before `python -m training.recall_weights`.

Four logistic regressions over embeddings of the built-in encoder: of requests on which a preference bears
(`training/data/choices_*.jsonl`), of messages that need nothing of memory (`needs_nothing_*.txt`), of questions
that documents answer (`documents.jsonl`, `benchmarks/data/routing/everyday`), and of what states a preference
(`likes_*.txt`); each against facts, questions after them, and other messages. They are written to
`services/search/heads.json`. The preferences from which `recall_weights` learns are others, so that it weighs what
the heads know and not what they have seen.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from services.llm.builtin_embeddings import NAME, BuiltinEncoder

_ROOT = Path(__file__).parent.parent
_OWN, _EVERYDAY = _ROOT / "training" / "data", _ROOT / "benchmarks" / "data" / "routing" / "everyday"
_RIDGES = {"leaves_choice": 3.0, "needs_nothing": 3.0, "asks_documents": 0.3, "prefers": 0.3}
_STEPS = 30

Texts = Sequence[str]


def main() -> None:
    """Learn the heads and write them."""
    examples = _examples()
    stored: dict[str, Any] = {"encoder": NAME}
    for name, (wanted, *others) in examples.items():
        head = learn(wanted, others, _RIDGES[name])
        stored[name] = {"weights": np.round(head[:-1], 3).tolist(), "constant": [round(float(head[-1]), 3)]}
    (_ROOT / "services" / "search" / "heads.json").write_text(json.dumps(stored) + "\n", encoding="utf-8")


def _examples() -> Mapping[str, Sequence[Texts]]:
    """Return for each head the texts of which it is true, and one or two kinds of others."""
    choices = [*_read(_OWN, "choices_*.jsonl")]
    facts = [*_read(_OWN, "facts_*.jsonl")][::2]
    nothing = [*_lines("ordinary_*.txt"), *_lines("questions_*.txt")]
    asked = [each["question"] for each in facts]
    stated = [*(each["told"] for each in facts), *_lines("remarks_*.txt")]
    requests = [each["message"] for each in choices]
    routed = [*_routed()]
    return {
        "leaves_choice": (requests, [*asked, *nothing], [each["text"] for each in _read(_OWN, "documents.jsonl")]),
        "needs_nothing": ([*_lines("needs_nothing_*.txt")], [*asked, *stated, *requests]),
        "prefers": (
            [*_lines("likes_*.txt")],
            [*stated, *(each["near"] for each in facts)],
            [*asked, *requests, *nothing, *_lines("needs_nothing_*.txt")],
        ),
        "asks_documents": (
            [text for text, base in routed if base],
            [text for text, base in routed if not base],
            [
                *nothing,
                *asked,
                *stated,
                *(each[key] for each in choices[::2] for key in ("told", "message")),
            ],
        ),
    }


def _routed() -> Iterator[tuple[str, str | None]]:
    yield from ((each["message"], each["expect"]) for each in _read(_EVERYDAY, "questions.jsonl"))
    yield from ((each["text"], each["base"]) for each in _read(_OWN, "documents.jsonl"))


def learn(wanted: Texts, others: Sequence[Texts], ridge: float) -> NDArray[np.float64]:
    """Return the weights and the constant of a logistic regression.

    The texts of which it is true count as much as all others, of which each kind counts the same.
    """
    rows = BuiltinEncoder().encode([*wanted, *chain.from_iterable(others)])
    rows = np.column_stack([rows / np.linalg.norm(rows, axis=1, keepdims=True), np.ones(len(rows))])
    is_wanted = np.arange(len(rows)) < len(wanted)
    sizes = [len(wanted), *map(len, others)]
    share = np.repeat([len(rows) / 2 / size / (len(others) if at else 1) for at, size in enumerate(sizes)], sizes)
    damping = ridge * np.eye(rows.shape[1])
    damping[-1, -1] = 1e-3
    weights = np.zeros(rows.shape[1])
    for _ in range(_STEPS):
        likely = 1 / (1 + np.exp(-rows @ weights))
        gradient = rows.T @ (share * (is_wanted - likely)) - damping @ weights
        curvature = (rows * (share * likely * (1 - likely))[:, None]).T @ rows + damping
        weights += np.linalg.solve(curvature, gradient)
    return weights


def _read(folder: Path, pattern: str) -> Iterable[dict[str, Any]]:
    for file in sorted(folder.glob(pattern)):
        yield from map(json.loads, file.read_text(encoding="utf-8").splitlines())


def _lines(pattern: str) -> Iterable[str]:
    for file in sorted(_OWN.glob(pattern)):
        yield from file.read_text(encoding="utf-8").splitlines()


if __name__ == "__main__":
    main()
