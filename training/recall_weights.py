"""Learn the weights of recall: `python -m training.recall_weights FOLDER ... [--left-out] [--halves]`.

Each folder holds `conversations.jsonl` and `questions.jsonl` as described in docs/evaluation.md; folders of one
family (the name up to the first `_`, `-` or `/`) are left out together. To them come facts told in one sentence,
preferences let slip in passing, and messages that need nothing of memory. What is learned is an order and, from
it, probabilities; both are written to `services/search/weights.json`, with embeddings and for words alone.
"""

import argparse
import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from uuid import UUID, uuid5

import numpy as np

from services.evaluation.dataset import Dataset, load
from services.evaluation.evaluation import figure
from services.llm.builtin_embeddings import NAME, BuiltinEncoder
from services.memory.recall.unit_arrays import ASKS, BY_ASSISTANT, STATES_NOTHING, KeptUnit, UnitContent
from services.memory.recall.working_set import WorkingSet
from services.search.legs import sought
from services.search.queries import Heads, MessageKind, Query, Utterance, make_query
from services.search.ranking import FEATURES, SHOWN, kind_of, score, shown_features
from services.search.units import Mask, Values, Vectors
from services.text.language import language_of
from services.text.questions import asks, states_something
from services.text.tokenizer import indexed_text, terms
from services.time_reference.local_days import bounds
from services.time_reference.parse import named_days
from training.matching import Pairs, learn_matching

OWN = Path(__file__).parent / "data"
_SEARCH = Path(__file__).parent.parent / "services" / "search"
WEIGHTS, MATCHING = _SEARCH / "weights.json", _SEARCH / "matching.npy"
_NAMES = UUID(int=0)
_RIDGE = 2.0
_STEPS = 15
_MOST = 220
_TYPICAL = 150
"""Questions of a family that count once each."""
_SHARE = {"facts": 0.5, "few": 0.5, "long": 0.7}
"""How much families of our own count."""
_FAMILIES = {"everyday": "everyday", "others": "everyday", "long_conversations": "long"}
"""Families of sets by the folder that holds their languages."""
_OF_ONE_USER = {"madial", "long"}
"""Families that are halved by their questions: a half of their users would be all of a language, or none."""
_ORDINARY_OF_FEW = 4.0
"""Weight of a message that needs nothing in a store of few units: in life most messages do not."""
_SIZES = (2, 3, 4, 6, 10, 15)
"""Units of stores that hold few."""
_WRITTEN = 1.0
"""How much better a written memory stands: no set holds any to learn it from."""
_LOOKED_AT = 20
"""The best units, among which it is chosen what is shown."""
_OWN_FAMILIES = {"facts", "few", "preferences"}
_OTHERS = 400
"""Units of a store that are set against those that bear on its messages."""
_WEIGHT_OF_A_FAMILY, _WEIGHT_OF_CHOICES = 0.8, 2.0
_FIRST_DAY = datetime(2026, 1, 1, 9, tzinfo=UTC)
_ENCODER = BuiltinEncoder()
_VECTORS: dict[str, list[float]] = {}


Group = tuple[Values, Values, float]
"""Rows of features, which of them are wanted, and a weight."""


@dataclass(frozen=True)
class Asked:
    """A message to search for, and the places of what bears on it."""

    family: str
    source: str
    units: WorkingSet
    query: Query
    vectors: Vectors
    mask: Mask
    relevant: frozenset[int]
    then: Mask | None = None
    weight: float = 1.0
    half: int | None = None
    """Of its set; None where it is always learned from."""


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
    """Which of them only ask or order: they are never shown."""
    found: int
    """How many units were looked at."""
    relevant: frozenset[int]
    """Places of all relevant units, found or not."""
    kind: dict[str, MessageKind]
    """What the message is like."""
    weight: float = 1.0

    def labels(self, kind: str) -> Values:
        """1 for each relevant candidate, else 0."""
        return np.array([place in self.relevant for place in self.places[kind]], dtype=np.float64)


@dataclass(frozen=True)
class Said:
    """A message of a store."""

    id: str
    text: str
    speaker: str
    role: str
    conversation: str
    at: datetime


def encode(texts: list[str]) -> list[list[float]]:
    """Return the embeddings of texts; they are kept."""
    missing = [text for text in dict.fromkeys(texts) if text not in _VECTORS]
    _VECTORS.update(zip(missing, _ENCODER.encode(missing) if missing else (), strict=True))
    return [_VECTORS[text] for text in texts]


def working_set(messages: Sequence[Said]) -> WorkingSet:
    """Return the messages as recall sees them, at the places of their order."""
    texts = [indexed_text(said.speaker, said.text) for said in messages]
    units = WorkingSet(512)
    units.replace(
        (),
        [
            KeptUnit(
                unit_id=uuid5(_NAMES, f"{number} {said.id}"),
                episode_id=uuid5(_NAMES, f"{number} {said.id}"),
                conversation_id=uuid5(_NAMES, said.conversation),
                episode_type="turn",
                said_at=said.at,
                waiting=False,
                text_hash=number,
                content=UnitContent(terms(text), _kinds(said)),
                vector=vector,
            )
            for number, (said, text, vector) in enumerate(zip(messages, texts, encode(texts), strict=True))
        ],
    )
    return units


def _kinds(said: Said) -> int:
    if said.role == "assistant" and said.speaker.lower() in {"", "assistant", "ai", "助理", "助手"}:
        return BY_ASSISTANT
    return ASKS * asks(said.text, language_of([said.text])) | STATES_NOTHING * (not states_something(said.text))


def ask(
    family: str,
    source: str,
    units: WorkingSet,
    message: str,
    relevant: Iterable[int],
    *,
    said: Sequence[Utterance] = (),
    speaker: str = "",
    until: datetime | None = None,
    today: date | None = None,
) -> Asked | None:
    """Return a message to search for; None for one without a letter."""
    query = make_query(message, said, speaker=speaker)
    if query is None:
        return None
    mask = units.within(until=until)
    then = said_then(units, query, message, today) if today else None
    return Asked(
        family, source, units, query, query.vectors(encode(list(query.embedded))), mask, frozenset(relevant), then
    )


def said_then(units: WorkingSet, query: Query, message: str, today: date) -> Mask | None:
    """Return the units said in the time that a question names, as recall does; None if it names none."""
    days = named_days(message, today) if query.asks else None
    if days is None or days[0] > today:
        return None
    since, until = bounds(*days, "UTC")
    return units.within(since=since, until=until)


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


def of_folder(folder: Path, name: str) -> Iterator[Asked]:
    """Observe the questions of a folder, and messages that need nothing on the stores of everyday talk."""
    dataset = load(folder)
    family = _FAMILIES.get(folder.parent.name.split("-")[0]) or re.split(r"[_\-/]", name)[0]
    said = stores_of(dataset)
    stores = {user: working_set(messages) for user, messages in said.items()}
    places = {(user, each.id): at for user, messages in said.items() for at, each in enumerate(messages)}
    users = list(stores)
    source = name if name.startswith(family) else f"{family}_{name}"
    for number, question in enumerate(dataset.questions):
        evidence = [places[question.user, each] for each in question.evidence if (question.user, each) in places]
        if not evidence:
            continue
        found = ask(
            family, source, stores[question.user], question.text, evidence,
            said=question.said, speaker=question.speaker, until=question.until,
            today=question.asked_at.date(),
        )  # fmt: skip
        if found:
            half = (number if family in _OF_ONE_USER else users.index(question.user)) % 2
            yield replace(found, half=half)
    if len(stores) > 2:  # noqa: PLR2004 — many small stores: everyday talk
        for units in list(stores.values())[:4]:
            for message in _ordinary(name):
                if found := ask(family, "ordinary", units, message, ()):
                    yield found


def stores_of(dataset: Dataset) -> dict[str, list[Said]]:
    stores: defaultdict[str, list[Said]] = defaultdict(list)
    for line in dataset.lines:
        stores[line["user_id"]].append(
            Said(
                line["external_id"],
                line["content"],
                line.get("speaker", ""),
                line["role"],
                line["session_id"],
                datetime.fromisoformat(line["created_at"]),
            )
        )
    return stores


def _ordinary(name: str) -> list[str]:
    language = "zh" if name.endswith("zh") else "en"
    return (OWN / f"ordinary_{language}.txt").read_text(encoding="utf-8").splitlines()


def of_own_data(language: str, *, stores: int = 7) -> Iterator[Asked]:
    """Observe facts and preferences among unrelated remarks."""
    chance = random.Random(1)  # noqa: S311 — a shuffle
    facts = _read(OWN / f"facts_{language}.jsonl")
    preferences = _read(OWN / f"preferences_{language}.jsonl")
    chance.shuffle(facts)
    chance.shuffle(preferences)
    for number in range(stores):
        some = facts[number::stores]
        liked = preferences[number::stores]
        said = [each[key] for each in some for key in ("told", "near")] + [each["told"] for each in liked]
        chance.shuffle(said)
        units = _remarks(said)
        for each in some:
            yield from _one("facts", units, each["question"], said.index(each["told"]))
        for each in liked:
            yield from _one("preferences", units, each["message"], said.index(each["told"]))
        for message in chance.sample(_ordinary(language), 20):
            if found := ask("facts", "ordinary", units, message, ()):
                yield found


def of_few(language: str) -> Iterator[Asked]:
    """Observe facts and preferences in stores of few units."""
    chance = random.Random(1)  # noqa: S311 — a shuffle
    facts = _read(OWN / f"facts_{language}.jsonl")
    preferences = _read(OWN / f"preferences_{language}.jsonl")
    chance.shuffle(facts)
    begin = 0
    while begin < len(facts):
        some = facts[begin : begin + chance.choice(_SIZES)]
        begin += len(some)
        liked = chance.sample(preferences, max(1, len(some) // 4))
        said = [each["told"] for each in some + liked]
        chance.shuffle(said)
        units = _remarks(said)
        asked = [(each["question"], each["told"]) for each in some[:4]]
        for message, told in asked + [(each["message"], each["told"]) for each in liked]:
            yield from _one("few", units, message, said.index(told))
        for message in chance.sample(_ordinary(language), 4):
            if found := ask("few", "ordinary", units, message, ()):
                yield replace(found, weight=_ORDINARY_OF_FEW)


def _remarks(texts: Sequence[str]) -> WorkingSet:
    return working_set(
        [
            Said(str(place), text, "", "user", str(place), _FIRST_DAY + timedelta(hours=5 * place))
            for place, text in enumerate(texts)
        ]
    )


def _one(source: str, units: WorkingSet, message: str, place: int) -> Iterator[Asked]:
    if found := ask(source, source, units, message, [place]):
        yield found


def _read(path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def sampled(messages: Sequence[Asked]) -> list[Asked]:
    """Return at most `_MOST` messages of each family and kind."""
    chance = random.Random(1)  # noqa: S311 — a sample
    kinds: defaultdict[tuple[str, bool], list[Asked]] = defaultdict(list)
    for each in messages:
        kinds[each.family, bool(each.relevant)].append(each)
    return [each for some in kinds.values() for each in chance.sample(some, min(len(some), _MOST))]


def pairs_of(asked: Sequence[Asked]) -> list[Pairs]:
    """Return the messages on which something bears, with what does and what else their stores hold."""
    chance = np.random.default_rng(1)
    stores: defaultdict[int, list[Asked]] = defaultdict(list)
    for each in asked:
        if each.relevant and each.family not in _OWN_FAMILIES:
            stores[id(each.units)].append(each)
    counts = Counter(each.family for each in asked if each.relevant)
    pairs = []
    for some in stores.values():
        wanted = sorted(frozenset[int]().union(*(each.relevant for each in some)))
        others = np.setdiff1d(some[0].mask.nonzero()[0], wanted)
        places = np.array([*wanted, *chance.permutation(others)[:_OTHERS]], dtype=np.intp)
        bears = np.array([[place in each.relevant for place in places.tolist()] for each in some])
        pairs.append(
            Pairs(
                np.array([sought(each.query, each.vectors)[0] for each in some]),
                some[0].units.embeddings(places),
                bears,
                _WEIGHT_OF_A_FAMILY * len(some) / counts[some[0].family],
            )
        )
    return [*pairs, *_own_pairs(facts="facts" in counts)]


def _own_pairs(*, facts: bool) -> Iterator[Pairs]:
    for language in ("en", "zh"):
        choices, told = (_read(OWN / f"{name}_{language}.jsonl") for name in ("choices", "facts"))
        remarks = (OWN / f"remarks_{language}.txt").read_text(encoding="utf-8").splitlines()
        other = [each["near"] for each in told] + remarks
        every = [each["told"] for each in told]
        yield _one_each(choices, "message", [*other, *every[::2]], _WEIGHT_OF_CHOICES)
        if facts:
            yield _one_each(told, "question", other, 1.0)


def _one_each(examples: Sequence[dict[str, str]], key: str, other: Sequence[str], weight: float) -> Pairs:
    messages, units = (
        np.array(encode(texts), dtype=np.float32)
        for texts in ([each[key] for each in examples], [*(each["told"] for each in examples), *other])
    )
    messages, units = (each / np.linalg.norm(each, axis=1, keepdims=True) for each in (messages, units))
    return Pairs(messages, units, np.eye(len(messages), len(units), dtype=np.bool_), weight)


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
        together = _OWN_FAMILIES if family in _OWN_FAMILIES else {family}
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
