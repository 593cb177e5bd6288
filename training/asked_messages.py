"""Messages to search for, and what bears on them: from folders of sets, and from our own data."""

import json
import random
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from pathlib import Path

from services.evaluation.dataset import load
from services.memory.recall.working_set import WorkingSet
from services.search.queries import Query, Utterance, make_query
from services.search.units import Mask, Vectors
from services.time_reference.local_days import bounds
from services.time_reference.parse import named_days
from training.stores import encode, places_of, remarks, stores_of, working_set

OWN = Path(__file__).parent / "data"
_FAMILIES = {"everyday": "everyday", "others": "everyday", "long_conversations": "long"}
"""Families of sets by the folder that holds their languages."""
_OF_ONE_USER = {"madial", "long"}
"""Families that are halved by their questions: a half of their users would be all of a language, or none."""
_ORDINARY_OF_FEW = 4.0
"""Weight of a message that needs nothing in a store of few units: in life most messages do not."""
_SIZES = (2, 3, 4, 6, 10, 15)
"""Units of stores that hold few."""
OWN_FAMILIES = {"facts", "few", "preferences"}


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
    """Half of its set; None where it is always learned from."""


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


def of_folder(folder: Path, name: str) -> Iterator[Asked]:
    """Return the questions of a folder, and messages that need nothing on the stores of everyday talk."""
    dataset = load(folder)
    family = _FAMILIES.get(folder.parent.name.split("-")[0]) or re.split(r"[_\-/]", name)[0]
    said = stores_of(dataset)
    stores = {user: working_set(messages) for user, messages in said.items()}
    places = {
        (user, each.id): at
        for user, messages in said.items()
        for each, at in zip(messages, places_of(messages), strict=True)
    }
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


def _ordinary(name: str) -> list[str]:
    language = "zh" if name.endswith("zh") else "en"
    return (OWN / f"ordinary_{language}.txt").read_text(encoding="utf-8").splitlines()


def of_own_data(language: str, *, stores: int = 7) -> Iterator[Asked]:
    """Return questions for facts and preferences among unrelated remarks."""
    chance = random.Random(1)  # noqa: S311 — a shuffle
    facts = read(OWN / f"facts_{language}.jsonl")
    preferences = read(OWN / f"preferences_{language}.jsonl")
    chance.shuffle(facts)
    chance.shuffle(preferences)
    for number in range(stores):
        some = facts[number::stores]
        liked = preferences[number::stores]
        said = [each[key] for each in some for key in ("told", "near")] + [each["told"] for each in liked]
        chance.shuffle(said)
        units = remarks(said)
        for each in some:
            yield from _one("facts", units, each["question"], said.index(each["told"]))
        for each in liked:
            yield from _one("preferences", units, each["message"], said.index(each["told"]))
        for message in chance.sample(_ordinary(language), 20):
            if found := ask("facts", "ordinary", units, message, ()):
                yield found


def of_few(language: str) -> Iterator[Asked]:
    """Return questions for facts and preferences in stores of few units."""
    chance = random.Random(1)  # noqa: S311 — a shuffle
    facts = read(OWN / f"facts_{language}.jsonl")
    preferences = read(OWN / f"preferences_{language}.jsonl")
    chance.shuffle(facts)
    begin = 0
    while begin < len(facts):
        some = facts[begin : begin + chance.choice(_SIZES)]
        begin += len(some)
        liked = chance.sample(preferences, max(1, len(some) // 4))
        said = [each["told"] for each in some + liked]
        chance.shuffle(said)
        units = remarks(said)
        asked = [(each["question"], each["told"]) for each in some[:4]]
        for message, told in asked + [(each["message"], each["told"]) for each in liked]:
            yield from _one("few", units, message, said.index(told))
        for message in chance.sample(_ordinary(language), 4):
            if found := ask("few", "ordinary", units, message, ()):
                yield replace(found, weight=_ORDINARY_OF_FEW)


def _one(source: str, units: WorkingSet, message: str, place: int) -> Iterator[Asked]:
    if found := ask(source, source, units, message, [place]):
        yield found


def read(path: Path) -> list[dict[str, str]]:
    """Return the lines of a file of JSON Lines."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
