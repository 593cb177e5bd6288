"""Training of what finds the target of a command, and what news replaces: `services/memory/commands/targets.json`.

`python -m benchmarks.target_training [--check]`

Each line of the sets in `data/memory_commands` names what has to be gone; the pieces of the messages before it
that hold these words are right, in stores of these messages alone and among those of other lines. By ordinary
messages, by facts told after a remark that is only near to them, and by commands whose target was
never told, nothing is meant. `extents.jsonl` names the other clauses of a text that go with what is forgotten.
Each set is read by a recogniser of commands that was trained without it. `--check` writes nothing: it leaves each
set out in turn and prints what is found there.
"""

import argparse
import json
import random
import sys
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import command_training
from benchmarks.conditional_logit import Choice, train
from services.memory.commands.model import reading_by
from services.memory.commands.piece_index import Held, Values
from services.memory.commands.pieces import pieces, within
from services.memory.commands.recogniser import news, recognise
from services.memory.commands.removal import beside
from services.memory.commands.targets import Sought, observe, sought_by
from services.text.tokenizer import simplified_text
from state.memory import Command

_DATA = Path(__file__).parent / "data"
WEIGHTS = Path(__file__).parents[1] / "services" / "memory" / "commands" / "targets.json"
_SEED = 49
_AMONG = (0, 12, 60)
"""Messages of other lines in the store."""
_WEIGHT_UNTOLD = 0.2
_BEFORE = 60
_LEAST = (0.3, 0.6)
_LITTLE = 1e-3
_DECAY = {"forget": 1e-2, "change": 1e-2, "beside": 3e-2}


@dataclass(frozen=True)
class Case:
    """A message with the pieces that it may mean."""

    source: str
    kind: str
    group: str
    """`forget`, `correct`, `news`, `beside`, or, where nothing is meant, `untold`, `none`, `ordinary`."""
    choice: Choice
    columns: tuple[tuple[str, ...], tuple[str, ...]]


@dataclass(frozen=True)
class _Told:
    """What was said before a message."""

    texts: Sequence[str]
    own: frozenset[str] = frozenset()
    """Those of the message's own line."""
    just_before: int = 0
    """How many of the last were said in the same conversation."""


def cases() -> list[Case]:
    """All of them, always the same."""
    chance = random.Random(_SEED)
    found: list[Case] = []
    for name in command_training.SETS:
        with reading_by(command_training.weights_without(name)):
            found.extend(_of_set(name, chance))
            found.extend(_of_extents(name))
            if name == command_training.SETS[-1]:
                found.extend(_of_facts(chance))
                found.extend(_of_conversations())
    return found


def _case(
    source: str, group: str, sought: Sought, told: _Told, gone: Sequence[str] = (), weight: float = 1.0
) -> Case | None:
    parts, of = within(told.texts)
    right = np.zeros(len(parts))
    for each in gone:
        own = [at for at in range(len(parts)) if told.texts[of[at]] in told.own]
        whole = [at for at in own if _folded(each) in _folded(parts[at])]
        words = [at for at in own if any(word in _folded(parts[at]) for word in _folded(each).split())]
        right[whole or words] = 1.0
    if not parts or (gone and not right.any()):
        return None
    just_before = np.isin(of, np.arange(len(told.texts) - told.just_before, len(told.texts)))
    of_pieces, of_situation = observe(sought, Held(parts, of, just_before))
    choice = Choice(np.stack([*of_pieces.values()], axis=1), np.array([*of_situation.values()]), right, weight)
    return Case(source, sought.kind, group, choice, (tuple(of_pieces), tuple(of_situation)))


def _of_set(name: str, chance: random.Random) -> Iterator[Case]:
    folder = _DATA / "memory_commands" / name
    for language in ("en", "zh"):
        lines = [line for line in _lines(folder / f"{language}.jsonl") if line["setup"]]
        others = [each["text"] for line in lines for each in _said_by_user(line)]
        for line in lines:
            yield from _of_line(name, line, others, chance)
        ordinary = command_training.ordinary_of(folder, language)
        for number, message in enumerate(ordinary):
            before = ordinary[max(0, number - _BEFORE) : number]
            told = _Told([*others[number % 7 : _BEFORE : 3], *before], just_before=min(2, number % 10))
            yield from _some(_case(name, "ordinary", _of_news(message), told))


def _of_line(name: str, line: dict[str, Any], others: Sequence[str], chance: random.Random) -> Iterator[Case]:
    message, expected = line["message"], line["expect"]
    if expected not in {"forget", "do_not_remember", "correct", "none"}:
        return
    command = _command(message, {"correct"} if expected == "correct" else {"forget", "do_not_remember"})
    if command is None and expected in {"forget", "do_not_remember"}:
        return
    group = "none" if expected == "do_not_remember" else expected
    group = "news" if command is None and expected == "correct" else group
    sought = sought_by(command, message) if command else _of_news(message)
    own = [each["text"] for each in _said_by_user(line)]
    last = 0
    for each in reversed(_said_by_user(line)[-2:]):
        if not each.get("same"):
            break
        last += 1
    gone = line["gone"] if group != "none" else []
    foreign = [each for each in others if each not in own]
    for among in _AMONG:
        store = chance.sample(foreign, min(among, len(foreign)))
        earlier = len(own) - last
        mixed = list(store)
        for place, text in zip(sorted(chance.sample(range(len(store) + earlier), earlier)), own, strict=False):
            mixed.insert(place, text)
        told = _Told([*mixed, *own[earlier:]], frozenset(own), last)
        yield from _some(_case(name, group, sought, told, gone, 1 / len(_AMONG)))
        if gone:
            texts = store or chance.sample(foreign, min(len(own), len(foreign)))
            untold = _Told(texts, just_before=chance.randrange(3))
            yield from _some(_case(name, "untold", sought, untold, weight=_WEIGHT_UNTOLD))


def _of_facts(chance: random.Random) -> Iterator[Case]:
    """Facts told after a remark about the same, which holds no more or is only near."""
    for path in sorted((_DATA / "everyday" / "training").glob("facts-*.jsonl")):
        facts = [each for each in _lines(path) if each["category"] != "assistant"]
        for fact in facts:
            texts = [each["near"] for each in chance.sample(facts, 20) if each is not fact]
            texts.insert(chance.randrange(len(texts) + 1), fact["near"])
            updated = fact["category"] == "updated"
            told = _Told(texts, frozenset([fact["near"]]))
            group, gone = ("news", [fact["near"]]) if updated else ("ordinary", [])
            yield from _some(_case("facts", group, _of_news(fact["told"]), told, gone))


def _of_conversations() -> Iterator[Case]:
    """What users told one after the other; what tells the newest of several states is left out."""
    for folder in sorted(path.parent for path in (_DATA / "everyday").glob("**/conversations.jsonl")):
        asked = [each for each in _lines(folder / "questions.jsonl") if each["category"] == "updated"]
        doubtful = {turn for each in asked for turn in each["evidence_turn_ids"]}
        said: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
        for line in _lines(folder / "conversations.jsonl"):
            if line["role"] == "user":
                said[line["conversation_id"]].append(line)
        for lines in said.values():
            for number, line in enumerate(lines):
                if number and line["turn_id"] not in doubtful:
                    told = _Told(
                        [each["text"] for each in lines[max(0, number - _BEFORE) : number]], just_before=2
                    )
                    source = folder.relative_to(_DATA).parent.as_posix()
                    yield from _some(_case(source, "ordinary", _of_news(line["text"]), told, weight=0.5))


def _of_extents(name: str) -> Iterator[Case]:
    """Which of the other clauses of a text go with the one that is forgotten."""
    for line in _lines(_DATA / "memory_commands" / "extents.jsonl"):
        if line["set"] == name:
            yield from _beside(name, line["message"], line["text"], line["goes"], line["stays"])
    for language in ("en", "zh"):
        for line in _lines(_DATA / "memory_commands" / name / f"{language}.jsonl"):
            for said in _said_by_user(line) if line["expect"] == "forget" else ():
                text = said["text"]
                goes, kept = (
                    [p for p in pieces(text) if _has_any(p, line.get(each, ()))] for each in ("gone", "kept")
                )
                yield from _beside(name, line["message"], text, goes, [each for each in kept if each not in goes])


def _has_any(piece: str, words: Sequence[str]) -> bool:
    return any(_folded(each) in _folded(piece) for each in words)


def _beside(name: str, message: str, text: str, goes: Sequence[str], stays: Sequence[str]) -> Iterator[Case]:
    """The clauses of a text beside the one that is most likely meant of those that go."""
    command, parts = _command(message, {"forget", "do_not_remember"}), pieces(text)
    if command is None or not goes or len(parts) == 1:
        return
    sought = sought_by(command, message)
    held = Held(parts, np.zeros(len(parts), dtype=np.intp), np.zeros(len(parts), dtype=bool))
    shares = np.array([part in goes for part in parts]) * _shares(sought, held)
    gone = {int(shares.argmax())}
    columns = beside(parts, gone, sought)
    for at, part in enumerate(parts):
        if at not in gone and part in (*goes, *stays):
            values = np.array([[values[at] for values in columns.values()]])
            choice = Choice(values, np.ones(1), np.array([float(part in goes)]))
            yield Case(name, "beside", "beside", choice, (tuple(columns), ("always",)))


def _shares(sought: Sought, held: Held) -> Values:
    """How far each piece meets what is named."""
    return observe(sought, held)[0]["met"] + _LITTLE


def _command(message: str, kinds: Collection[str]) -> Command | None:
    found = recognise(message).commands
    return next((each for each in found if each.kind in kinds and not each.is_news), None)


def _of_news(message: str) -> Sought:
    return sought_by(news(message), message)


def _said_by_user(line: dict[str, Any]) -> list[dict[str, Any]]:
    return [each for each in line["setup"] if each["role"] == "user"]


def _some(case: Case | None) -> Iterator[Case]:
    if case is not None:
        yield case


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def _folded(text: str) -> str:
    return " ".join(simplified_text(text).split())


def weights_of(found: Sequence[Case]) -> dict[str, dict[str, dict[str, float]]]:
    """The weights of both models by the names of their columns."""
    weights = {}
    for kind in ("forget", "change", "beside"):
        own = [case for case in found if case.kind == kind]
        model = train([case.choice for case in own], decay=_DECAY[kind])
        weights[kind] = {
            part: {name: round(float(weight), 4) for name, weight in zip(names, values, strict=True)}
            for part, names, values in zip(
                ("pieces", "situation"), own[0].columns, (model.units, model.situation), strict=True
            )
        }
    return weights


def _check(found: Sequence[Case]) -> None:
    """Print for each set what is found there, learned from the others."""
    for kind in ("forget", "change"):
        own = [case for case in found if case.kind == kind]
        for source in sorted({case.source for case in own}):
            model = train([case.choice for case in own if case.source != source], decay=_DECAY[kind])
            groups: defaultdict[str, list[tuple[bool, float]]] = defaultdict(list)
            for case in own:
                if case.source == source:
                    likely = model.probabilities(case.choice)
                    groups[case.group].append((bool(case.choice.right[likely.argmax()]), float(likely.max())))
            for group, judged in sorted(groups.items()):
                shares = [
                    f"from {least}: right {np.mean([right and share >= least for right, share in judged]):.3f},"
                    f" wrong {np.mean([not right and share >= least for right, share in judged]):.4f}"
                    for least in _LEAST
                ]
                first = np.mean([right for right, _ in judged])
                print(kind, source, group, len(judged), f"first {first:.3f}", *shares, sep="  ")


def main() -> None:
    """Train and write the weights, or check."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="leave each set out in turn and print the figures")
    options = parser.parse_args()
    found = cases()
    if options.check:
        _check(found)
        return
    WEIGHTS.write_text(json.dumps(weights_of(found), indent=1) + "\n", encoding="utf-8")
    sys.stdout.write(f"{len(found)} cases\n")


if __name__ == "__main__":
    main()
