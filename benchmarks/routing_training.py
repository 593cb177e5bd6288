"""Training of what decides which knowledge base a message is routed to: `services/knowledge/likelihood.json`.

`python -m benchmarks.routing_training [--check]`

The sets of `benchmarks.routing` are taken in, each message is compared with the bases of its set as a turn does
it, and the weights of `services.knowledge.likelihood` are learned: which base answers, or none. Sets named
`unseen…` are left out. With `--check` each set is left out in turn, and what is routed right there is printed;
nothing is written.
"""

import argparse
import asyncio
import json
import tempfile
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.conditional_logit import Choice, Model, train
from benchmarks.knowledge import bases, ingest_all, questions
from benchmarks.routing import DATA, Message, TakeIn, messages_of, rows_of, taking_in
from services.bootstrap import Services, open_services
from services.engines import migrate_if_owner, open_engines
from services.identity.tenants import DEFAULT_TENANT
from services.knowledge.decision import by_profile
from services.knowledge.likelihood import Observed, observe
from services.knowledge.message_intent import MessageIntent, manner_of, views_of
from services.knowledge.profile_match import ends_of
from services.platform.logs import configure_logs
from services.platform.settings import load_settings
from services.text.questions import is_small_talk

WEIGHTS = Path(__file__).parents[1] / "services" / "knowledge" / "likelihood.json"
_DECAY = 4e-2
_LEAST_MESSAGES, _LEAST_SETS = 12, 4
"""Words that fewer messages have, or that only fewer sets have, belong to a subject and say nothing of another."""
_SHARES = (0.3, 0.5, 0.75, 1.0)


@dataclass(frozen=True)
class Case:
    """A message beside the bases of its set."""

    source: str
    message: str
    expected: str | None
    prefixes: tuple[str, ...]
    by_keywords: str | None
    """The base that keywords name without doubt: then nothing else is asked."""
    observed: Observed


def sources() -> dict[str, tuple[list[Message], TakeIn]]:
    """The sets to learn from, by name: their messages, and what takes their bases in."""
    found = {
        folder.name: (messages_of(folder), taking_in(folder))
        for folder in sorted(DATA.iterdir())
        if folder.is_dir() and not folder.name.startswith("unseen")
    }
    four: list[Message] = [
        (row["text"], row["base"]) for name in ("dev", "test") for row in rows_of(DATA / f"{name}.jsonl")
    ]
    four += [(one["question"], new.prefix) for new in bases() for one in questions(new.prefix)]
    return found | {"four bases": (four, ingest_all)}


async def cases_of(source: str, messages: Sequence[Message], take_in: TakeIn) -> list[Case]:
    """Compare the messages of a set with its bases."""
    with tempfile.TemporaryDirectory() as folder:
        settings = load_settings(data_dir=Path(folder))
        async with open_engines(settings) as engines:
            await migrate_if_owner(engines)
            async with open_services(settings, engines) as services:
                await take_in(services)
                found = [await _case(services, source, text, expected) for text, expected in messages]
    return [case for case in found if case]


async def _case(services: Services, source: str, text: str, expected: str | None) -> Case | None:
    message = ends_of(text)
    manner = manner_of(message)
    if manner is MessageIntent.ELSEWHERE or is_small_talk(text):
        return None
    [vector] = await services.embedder.embed_documents([text])
    profiles, near = await services.routing.closeness(DEFAULT_TENANT, "1", text, vector)
    views = views_of(message, manner)
    certain = by_profile(profiles, views, manner)
    return Case(
        source,
        text,
        expected,
        tuple(profile.prefix for profile in profiles.all),
        certain.profile.prefix if certain else None,
        observe(profiles, views, manner, near),
    )


def words_of(cases: Sequence[Case]) -> list[str]:
    """The words and pairs that messages of several sets have."""
    messages, where = Counter[str](), defaultdict[str, set[str]](set)
    for case in cases:
        messages.update(case.observed.wording)
        for word in case.observed.wording:
            where[word].add(case.source)
    return sorted(word for word, n in messages.items() if n >= _LEAST_MESSAGES and len(where[word]) >= _LEAST_SETS)


def choice_of(case: Case, words: Sequence[str]) -> Choice:
    """A case as the logit reads it; the situation's own values, which end with the constant, come last."""
    return Choice(
        np.stack([*case.observed.bases.values()], axis=1),
        np.array(
            [float(word in case.observed.wording) for word in words] + list(case.observed.situation.values())
        ),
        np.array([float(prefix == case.expected) for prefix in case.prefixes]),
    )


def learn(cases: Sequence[Case], decay: float = _DECAY) -> tuple[Model, list[str]]:
    """The weights that the cases teach, and the words among them."""
    words = words_of(cases)
    return train([choice_of(case, words) for case in cases], decay=decay), words


def _check(cases: Sequence[Case], decay: float) -> None:
    for source in dict.fromkeys(case.source for case in cases):
        model, words = learn([case for case in cases if case.source != source], decay)
        own = [case for case in cases if case.source == source]
        judged = [(case, model.probabilities(choice_of(case, words))) for case in own]
        for share in _SHARES:
            went = [(case, _went(case, likely, share)) for case, likely in judged]
            asked = [(case.expected, base) for case, base in went if case.expected]
            others = [base for case, base in went if not case.expected]
            print(
                f"{source}, from {share} of none: {len(asked)} questions,"
                f" right {np.mean([expected == base for expected, base in asked]):.3f},"
                f" wrong {np.mean([base not in (None, expected) for expected, base in asked]):.3f};"
                f" {len(others)} of none, none to none {np.mean([base is None for base in others]):.3f}"
            )


def _went(case: Case, likely: np.ndarray, share: float) -> str | None:
    if case.by_keywords:
        return case.by_keywords
    best = int(likely.argmax())
    return case.prefixes[best] if likely[best] >= share * (1 - likely.sum()) else None


async def main() -> None:
    """Train and write the weights, or check."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="leave each set out in turn and print the figures")
    parser.add_argument("--decay", type=float, default=_DECAY, help="how strongly weights are kept small")
    options = parser.parse_args()
    configure_logs("console", "error")
    cases = [
        case
        for source, (messages, take_in) in sources().items()
        for case in await cases_of(source, messages, take_in)
    ]
    if options.check:
        _check(cases, options.decay)
        return
    model, words = learn(cases, options.decay)
    of_words, of_situation = np.split(model.situation, [len(words)])
    weights = {
        kind: {name: round(float(weight), 4) for name, weight in zip(names, values, strict=True)}
        for kind, names, values in (
            ("bases", cases[0].observed.bases, model.units),
            ("situation", cases[0].observed.situation, of_situation),
            ("wording", words, of_words),
        )
    }
    WEIGHTS.write_text(json.dumps(weights, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(main())
