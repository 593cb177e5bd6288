"""Learn the weights of recall: `python -m training.recall_weights FOLDER ... [--left-out] [--halves]`.

Each folder holds `conversations.jsonl` and `questions.jsonl` as described in docs/evaluation.md; folders of one
family (the name up to the first `_`, `-` or `/`) are left out together. To them come facts told in one sentence,
preferences let slip in passing, and messages that need nothing of memory. What is learned is an order and, from
it, probabilities; both are written to `services/search/weights.json`, with embeddings and for words alone.
"""

import argparse
import json
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from services.evaluation.evaluation import figure
from services.llm.builtin_embeddings import NAME
from services.search.queries import Heads, MessageKind, Query
from services.search.ranking import FEATURES, SHOWN, kind_of, score, shown_features
from services.search.units import Values
from training.asked_messages import OWN_FAMILIES, Asked, of_few, of_folder, of_own_data
from training.matching import learn_matching, pairs_of

_SEARCH = Path(__file__).parent.parent / "services" / "search"
WEIGHTS, MATCHING = _SEARCH / "weights.json", _SEARCH / "matching.npy"
_RIDGE = 2.0
_STEPS = 15
_MOST = 220
_TYPICAL = 150
"""Questions of a family that count once each."""
_SHARE = {"facts": 0.5, "few": 0.5, "long": 0.7}
"""How much families of our own count."""
_WRITTEN = 1.0
"""How much better a written memory stands: no set holds any to learn it from."""
_LOOKED_AT = 20
"""The best units, among which it is chosen what is shown."""


Group = tuple[Values, Values, float]
"""Rows of features, which of them are wanted, and a weight."""


@dataclass(frozen=True)
class Observation:
    """The best units for one message, and which of them bear on it."""

    family: str
    source: str
    query: Query
    features: dict[str, Values]
    """With embeddings (`meaning`) and without (`words`)."""
    places: dict[str, list[int]]
    states_nothing: dict[str, Values]
    """Places that only ask or order, by unit: they are never shown."""
    found: int
    """How many units were looked at."""
    relevant: frozenset[int]
    """Places of all relevant units, found or not."""
    kind: dict[str, MessageKind]
    """Kind of the message."""
    weight: float = 1.0

    def labels(self, kind: str) -> Values:
        """1 for each relevant candidate, else 0."""
        return np.array([place in self.relevant for place in self.places[kind]], dtype=np.float64)


def observe(asked: Asked, heads: Heads) -> Observation:
    """Search for a message with embeddings and without."""
    found = {
        "meaning": score(asked.query, asked.vectors, asked.units, asked.mask, heads, then=asked.then),
        "words": score(asked.query, (), asked.units, asked.mask, then=asked.then),
    }
    return Observation(
        asked.family,
        asked.source,
        asked.query,
        {kind: each.features for kind, each in found.items()},
        {kind: each.places.tolist() for kind, each in found.items()},
        {
            kind: asked.units.overview().states_nothing[each.places].astype(np.float64)
            for kind, each in found.items()
        },
        int(asked.mask.sum()),
        asked.relevant,
        {"meaning": kind_of(asked.vectors, heads), "words": MessageKind()},
        asked.weight,
    )


def sampled(messages: Sequence[Asked]) -> list[Asked]:
    """Return at most `_MOST` messages of each family and kind."""
    chance = random.Random(1)  # noqa: S311 — a sample
    kinds: defaultdict[tuple[str, bool], list[Asked]] = defaultdict(list)
    for each in messages:
        kinds[each.family, bool(each.relevant)].append(each)
    return [each for some in kinds.values() for each in chance.sample(some, min(len(some), _MOST))]


def learn(observations: Sequence[Observation], kind: str) -> tuple[Values, Values]:
    """Return the weights of `FEATURES`, and those of `SHOWN` with the constant.

    First the order is learned, by a conditional logit of what bears on a message among what was found; then, from
    its score and what the message is, the probabilities of the best.
    """
    counts = Counter(each.family for each in observations)
    seen = [each for each in observations if len(each.features[kind])]
    weights = [
        each.weight * _SHARE.get(each.family, 1.0) * (_TYPICAL / counts[each.family]) ** 0.5 for each in seen
    ]
    groups = [(each.features[kind], each.labels(kind), weight) for each, weight in zip(seen, weights, strict=True)]
    order = _order([group for group in groups if group[1].any()])
    shown = []
    for each, (rows, wanted, weight) in zip(seen, groups, strict=True):
        scores = rows @ order
        best = np.argsort(-scores)[:_LOOKED_AT]
        best = best[~each.states_nothing[kind][best].astype(bool)]
        shown.append(
            (shown_features(each.query, rows, scores, each.found, each.kind[kind])[best], wanted[best], weight)
        )
    return order, _probabilities(shown)


def _order(groups: Sequence[Group]) -> Values:
    weights = np.zeros(len(FEATURES))
    for _ in range(_STEPS):
        gradient, curvature = -_RIDGE * weights, _RIDGE * np.eye(len(weights))
        for rows, wanted, weight in groups:
            share = np.exp(rows @ weights - (rows @ weights).max())
            share /= share.sum()
            mean = share @ rows
            gradient += weight * ((wanted / wanted.sum()) @ rows - mean)
            curvature += weight * ((rows - mean).T * share) @ (rows - mean)
        weights += np.linalg.solve(curvature, gradient).clip(-2, 2)
    return weights


def _probabilities(groups: Sequence[Group]) -> Values:
    weights = np.zeros(groups[0][0].shape[1])
    for _ in range(_STEPS):
        gradient, curvature = -_RIDGE * weights, _RIDGE * np.eye(len(weights))
        for rows, wanted, weight in groups:
            likely = 1 / (1 + np.exp(-rows @ weights))
            gradient += weight * rows.T @ (wanted - likely)
            curvature += weight * (rows.T * (likely * (1 - likely))) @ rows
        weights += np.linalg.solve(curvature, gradient).clip(-2, 2)
    return weights


def recall_at(observations: Iterable[Observation], order: Values, kind: str, most: int = 10) -> list[float]:
    """Return for each message on which something bears the share of it among the first units."""
    shares = []
    for each in observations:
        if each.relevant:
            best = np.argsort(-(each.features[kind] @ order), kind="stable")[:most]
            shares.append(len({each.places[kind][at] for at in best} & each.relevant) / len(each.relevant))
    return shares


def _heads() -> Heads:
    heads = Heads.of(NAME)
    if heads is None:
        raise LookupError(f"heads.json was not learned with {NAME}")
    return heads


def _observed(asked: Sequence[Asked]) -> Iterator[Observation]:
    """Observe each family with a matching learned without it: with its own, meaning would seem to tell more."""
    heads = _heads()
    some = sampled(asked)
    for family in sorted({each.family for each in some}):
        together = OWN_FAMILIES if family in OWN_FAMILIES else {family}
        without = learn_matching(pairs_of([each for each in asked if each.family not in together]))
        for each in some:
            if each.family == family:
                yield observe(each, replace(heads, matching=without))


def _print_halves(asked: Sequence[Asked]) -> None:
    """Learn from one half of each set, and say how what bears on the other half is found, both ways."""
    shares: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for half in (0, 1):
        learned = [each for each in asked if each.half != half]
        heads = replace(_heads(), matching=learn_matching(pairs_of(learned)))
        known, other = [*_observed(learned)], [observe(each, heads) for each in asked if each.half == half]
        for kind in ("meaning", "words"):
            order = learn(known, kind)[0]
            for each in other:
                shares[each.source, kind] += recall_at([each], order, kind)
    for (source, kind), some in sorted(shares.items()):
        found = figure(some)
        print(f"{source:20} {kind:8} {len(some):4} {found.mean:.3f} ({found.low:.3f} to {found.high:.3f})")  # noqa: T201


def main() -> None:
    """Learn from the folders named, and write the weights."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--left-out", action="store_true", help="also say how each family is found by the others")
    parser.add_argument(
        "--halves", action="store_true", help="only say how a half of each set is found by the other"
    )
    given = parser.parse_args()
    asked = [each for language in ("en", "zh") for each in (*of_own_data(language), *of_few(language))]
    for folder in given.folders:
        asked += of_folder(folder, folder.name)
    if given.halves:
        _print_halves(asked)
        return
    np.save(MATCHING, learn_matching(pairs_of(asked)).astype(np.float16))
    observations = [*_observed(asked)]
    if given.left_out:
        for family in sorted({each.family for each in observations}):
            others = [each for each in observations if each.family != family]
            for kind in ("meaning", "words"):
                own = [each for each in observations if each.family == family]
                print(f"{family:14} {kind:8} {np.mean(recall_at(own, learn(others, kind)[0], kind)):.3f}")  # noqa: T201
    stored = {}
    for kind in ("meaning", "words"):
        order, shown = learn(observations, kind)
        order[FEATURES.index("written")] = _WRITTEN
        stored[kind] = {
            "order": dict(zip(FEATURES, np.round(order, 3).tolist(), strict=True)),
            "shown": dict(zip((*SHOWN, "constant"), np.round(shown, 3).tolist(), strict=True)),
        }
    WEIGHTS.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
