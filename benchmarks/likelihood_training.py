"""Training of what decides whether recall shows something: the weights of `services/search/likelihood.json`.

`python -m benchmarks.likelihood_training [--check]`

Questions are asked of stores of messages, ranked by the service's own ranking, and the weights of
`services.search.likelihood` are learned: which messages carry the answer, and when none does. The sets are those
of `benchmarks/data/everyday`: conversations with questions, and single facts, each with a question and with a
remark that is near to it and answers nothing, which are mixed into stores. Requests of other users
stand for tasks on which nothing bears. With `--check` each source is left out in turn, and what is reached there,
and how precisely, is printed; no weights are written.
"""

import argparse
import json
import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from benchmarks.conditional_logit import Choice, Model, train
from benchmarks.everyday_facts import DATA, Asked, Told, folders, load
from services.search.columns import Columns
from services.search.hits import Unit
from services.search.index_terms import indexed_terms, marked
from services.search.queries import make_queries
from services.search.ranking import score
from services.text.language import language_of

Values = NDArray[Any]

WEIGHTS = Path(__file__).parents[1] / "services" / "search" / "likelihood.json"
_DECAY = 1e-3
_MIXES = 2
"""Times that the single facts are mixed into stores."""
_UNTOLD = 0.12
"""Share of the single facts that are asked for without having been told."""
_DAYS = 60
_TASK = "task"
_BESIDE_ANOTHER = 0.7
_CLOSE = 0.25
"""As in `services.search.selection`."""
_STANDING = ("met", "by_meaning", "likeness", "meant_around", "score")
_UNSOLVED = frozenset(["paraphrase", "indirect"])
"""Of the single facts: beside a remark that shares the words of the question, nothing known here tells them."""
_CANDIDATES = 24
"""Units of a store that are learned from, and looked at by the check: the nearest."""


@dataclass(frozen=True)
class Case:
    """A question with what was observed of each unit (columns as `services.search.likelihood` names them)."""

    source: str
    language: str
    choice: Choice
    """Right is each unit that carries the answer."""
    category: str
    names: tuple[tuple[str, ...], tuple[str, ...]]
    """Of the columns of the units, and of the situation."""


def cases() -> list[Case]:
    """All of the sets."""
    chance = random.Random(7)
    found: list[Case] = []
    chatter: dict[str, list[Unit]] = {}
    for folder in folders():
        told, asked = load(folder)
        stores = _stores(told)
        language = folder.name
        source = "own" if folder.parent == DATA else folder.parent.name
        found.extend(case for question in asked if (case := _of_set(source, question, stores[question.user])))
        found.extend(_tasks(source, stores, max(at.at for at in asked), chance))
        chatter.setdefault(language, []).extend(_chatter(stores))
    for path in sorted((DATA / "training").glob("facts-*.jsonl")):
        facts = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        language = path.stem.removeprefix("facts-")
        for _ in range(_MIXES):
            found.extend(_of_facts(facts, chatter[language], chance))
    return found


def _unit(name: str, text: str, at: datetime, *, by_assistant: bool = False, **known: Any) -> Unit:
    role: Literal["user", "assistant"] = "assistant" if by_assistant else "user"
    seen = marked(indexed_terms(text, None, role), text, None, role)
    return Unit(
        id=name,
        episode_id=name,
        conversation_id=known.get("conversation_id", name),
        created_at=at,
        text=text,
        terms=seen.terms,
        previous=known.get("previous"),
        message_id=name,
        by_assistant=by_assistant,
        concepts=seen.concepts,
        features=seen.features,
    )


def _stores(told: Sequence[Told]) -> dict[str, list[Unit]]:
    stores: defaultdict[str, list[Unit]] = defaultdict(list)
    last: dict[tuple[str, str], str] = {}
    for place, message in enumerate(told):
        unit = _unit(
            message.turn,
            message.text,
            _utc(message.at) + timedelta(seconds=place),
            by_assistant=message.role == "assistant",
            conversation_id=f"{message.user} {message.session}",
            previous=last.get((message.user, message.session)),
        )
        last[message.user, message.session] = message.turn
        if unit.terms:
            stores[message.user].append(unit)
    return stores


def _utc(at: datetime) -> datetime:
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def _of_set(source: str, asked: Asked, store: Sequence[Unit]) -> Case | None:
    def carries(unit: Unit) -> bool:
        text = unit.text.casefold()
        holds = bool(asked.terms) and all(term.casefold() in text for term in asked.terms)
        return unit.id in asked.evidence or holds

    right = {unit.id for unit in store if carries(unit)} if asked.answerable else set()
    return _case(source, asked.text, store, right, _utc(asked.at), asked.category)


def _tasks(source: str, stores: dict[str, list[Unit]], now: datetime, chance: random.Random) -> Iterator[Case]:
    """Requests and general questions of one user, put to the store of another."""
    for user, store in stores.items():
        others = [unit for other, units in stores.items() if other != user for unit in units]
        idle = [unit for unit in others if not unit.by_assistant and "states" not in unit.features]
        for unit in chance.sample(idle, min(20, len(idle))):
            if case := _case(source, unit.text, store, set(), _utc(now), _TASK):
                yield case


def _chatter(stores: dict[str, list[Unit]]) -> list[Unit]:
    """Requests with their answers, which tell nothing of the one who asks."""
    found = []
    for store in stores.values():
        by_name = {unit.id: unit for unit in store}
        for unit in store:
            before = by_name.get(unit.previous or "")
            if unit.by_assistant and before and "states" not in before.features:
                found.extend([replace(before, previous=None), unit])
    return found


def _of_facts(facts: Sequence[dict[str, Any]], chatter: Sequence[Unit], chance: random.Random) -> Iterator[Case]:
    now = datetime(2026, 11, 20, 12, tzinfo=UTC)
    mixed = list(facts)
    chance.shuffle(mixed)
    while mixed:
        size = chance.choice([12, 20, 30, 45])
        told, mixed = mixed[:size], mixed[size:]
        store: list[Unit] = []
        right: list[tuple[dict[str, Any], set[str]]] = []
        for place, fact in enumerate(told):
            days = sorted(chance.uniform(1, _DAYS) for _ in range(2))
            older, newer = now - timedelta(days=days[1]), now - timedelta(days=days[0])
            if fact["category"] != "updated" and chance.random() < 0.5:
                older, newer = newer, older
            untold = chance.random() < _UNTOLD and fact["category"] != "updated"
            names: set[str] = set()
            parts = [("near", older)] if untold else [("near", older), ("told", newer), ("also", newer)]
            for part, at in parts:
                if part in fact:
                    by_assistant = part == "told" and fact["category"] == "assistant"
                    store.append(_unit(f"{part} {place}", fact[part], at, by_assistant=by_assistant))
                    if part != "near":
                        names.add(f"{part} {place}")
            right.append((fact, names))
        begins = chance.randrange(0, max(1, len(chatter) - 2 * size), 2)
        store.extend(replace(unit, id=f"chat {unit.id}") for unit in _linked(chatter[begins : begins + size]))
        store.sort(key=lambda unit: unit.created_at)
        for fact, names in right:
            case = _case("facts", fact["question"], store, names, now, fact["category"])
            if case:
                yield case


def _linked(units: Sequence[Unit]) -> Iterator[Unit]:
    for unit in units:
        yield replace(unit, previous=f"chat {unit.previous}" if unit.previous else None)


def _case(
    source: str, question: str, store: Sequence[Unit], right: set[str], now: datetime, category: str
) -> Case | None:
    queries = make_queries(question)
    if not queries:
        return None
    cosines = np.full((len(queries), len(store)), np.nan)
    observed = score(queries, cosines, Columns.of(store), now=now, quality={}).observed
    of_units, of_situation = observed.units, observed.situation
    carrying: Values = np.array([unit.id in right for unit in store], dtype=np.float32)
    carrying[~observed.eligible] = 0.0
    if right and not carrying.any():
        return None
    near = sum((of_units[name] for name in _STANDING), start=np.zeros(len(store)))
    # The rest teaches nothing: it is like none of what is asked.
    standing = np.lexsort((-near, -carrying, ~observed.eligible))[: min(_CANDIDATES, observed.eligible.sum())]
    if not len(standing):
        return None
    return Case(
        source,
        language_of([question]),
        Choice(
            np.stack([*of_units.values()], axis=1)[standing].astype(np.float32),
            np.array([*of_situation.values()]),
            carrying[standing],
            _weight(source, category),
        ),
        category,
        (tuple(of_units), tuple(of_situation)),
    )


def _learn(known: Sequence[Case]) -> Model:
    """The weights that the cases teach."""
    return train([case.choice for case in known], decay=_DECAY)


def _weight(source: str, category: str) -> float:
    if category == _TASK:
        return 0.6
    if source != "facts":
        return 1.0
    return 0.0 if category in _UNSOLVED else 0.6 / _MIXES


_SHOWN_MOST = 4


def _check(found: Sequence[Case]) -> None:
    """Print for each source what is reached and how precisely, learned from the others."""
    for source in sorted({case.source for case in found}):
        model = _learn([case for case in found if case.source != source])
        for language in ("en", "zh"):
            seen = [case for case in found if (case.source, case.language) == (source, language)]
            _report(f"{source} {language}", [(case, model.probabilities(case.choice)) for case in seen])


def _report(name: str, judged: Sequence[tuple[Case, Values]]) -> None:
    fair = [(case, likely) for case, likely in judged if case.choice.right.any()]
    for threshold in (0.05, 0.1, 0.2):
        shown = [_shown(likely, threshold) for _, likely in fair]
        carrying = [float(case.choice.right[at].sum()) for (case, _), at in zip(fair, shown, strict=True)]
        silent = {
            kind: [not len(_shown(likely, threshold)) for case, likely in judged if _kind(case) == kind]
            for kind in ("unanswerable", _TASK)
        }
        print(
            f"{name}, from {threshold}: {len(fair)} questions,"
            f" reached {np.mean([each > 0 for each in carrying]):.3f},"
            f" precision {sum(carrying) / max(sum(map(len, shown)), 1):.3f},"
            f" items {np.mean([len(at) for at in shown]):.2f},"
            + ",".join(f" nothing for {kind} {np.mean(of):.2f}" for kind, of in silent.items() if of)
        )


def _kind(case: Case) -> str:
    return _TASK if case.category == _TASK else "question" if case.choice.right.any() else "unanswerable"


def _shown(likely: Values, threshold: float) -> Values:
    best = np.argsort(-likely)[:_SHOWN_MOST]
    if likely.max() < threshold:
        return best[:0]
    return best[likely[best] >= max(_BESIDE_ANOTHER * threshold, _CLOSE * float(likely.max()))]


def main() -> None:
    """Train and write the weights, or check."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="leave each source out in turn and print the figures")
    options = parser.parse_args()
    found = cases()
    if options.check:
        _check(found)
        return
    model = _learn(found)
    weights = {
        kind: {name: round(float(weight), 4) for name, weight in zip(names, values, strict=True)}
        for kind, names, values in zip(
            ("units", "situation"), found[0].names, (model.units, model.situation), strict=True
        )
    }
    WEIGHTS.write_text(json.dumps(weights, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
