"""Plain forms filled with other people's words: how many are obeyed, and each that is not.

    python -m benchmarks.filled_forms FOLDER en 40 --seed 1

Takes every listed form so many times, with one of its variants drawn by chance, and puts a statement or an object
from messages of the folder's `*.jsonl` where the form names something.
"""

import argparse
import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from services.memory import plain_forms as module
from services.memory.plain_forms import plain_forms

_UNIT = re.compile(r"(\[[^\[\]]*\]|\([^()]*\)|\{what[^{}]*\}|[^ \[\](){}]+)")
_SENTENCE_ENDS = re.compile(r"[。！？!?\n]|\.(?:\s|$)")
_STATEMENT = {
    "en": re.compile(r"(?:I|I'm|I've|My|We)\b[^?\"“”:;\[\]<>]{8,88}"),
    "zh": re.compile("我[^吗呢?“”:：;；什怎哪谁几]{3,38}"),
}
_OBJECT = {
    "en": re.compile(r"\b(?:my|our|the) (?:[a-z]+ )?[a-z]{3,12}(?=[.,!]| (?:is|was|and|in|at)\b)"),
    "zh": re.compile(r"(?:我的|我们的|他的|她的|我妈的|我爸的)[\u4e00-\u9fff]{2,4}(?=[，。、！是在很])"),
}  # fmt: skip
_STATES_BEFORE = ("that", "fact")
_ENDS = {"en": [".", "", "!", " please."], "zh": ["。", "", "！"]}


@dataclass(frozen=True)
class Words:
    """What other people wrote."""

    statements: Sequence[str]
    objects: Sequence[str]

    @classmethod
    def of(cls, folder: Path, language: str) -> "Words":
        """Read the user's messages of a folder in a language."""
        texts = list(_texts(folder, language))
        sentences = {each.strip() for text in texts for each in _SENTENCE_ENDS.split(text)}
        statements = sorted(each for each in sentences if _STATEMENT[language].fullmatch(each))
        return cls(statements, sorted({each for text in texts for each in _OBJECT[language].findall(text)}))

    def drawn(self, kind: str, before: str, starts: str, language: str, chance: Random) -> str:
        """Return what a person would put into a form of a kind behind some words."""
        states = kind in {"remember", "off_record", "leave_out"} or before in _STATES_BEFORE
        if kind in {"forget_everything", "standing"} or (not states and language == "en"):
            return chance.choice(self.objects)
        if not states and chance.random() < 0.4:
            return chance.choice(self.objects)
        fitting = [each for each in self.statements if re.match(rf"(?:{starts})\b", each)] if starts else None
        return chance.choice(fitting or self.statements)


def _texts(folder: Path, language: str) -> Iterator[str]:
    for path in sorted(folder.rglob("*.jsonl")):
        is_chinese = "zh" in path.parent.name.split("_") or "zh" in path.stem.split("_")
        for line in path.read_text(encoding="utf-8").splitlines() if is_chinese == (language == "zh") else ():
            row = json.loads(line)
            if row.get("role", "user") == "user" and isinstance(row.get("text"), str):
                yield row["text"]


def filled(form: str, kind: str, words: Words, language: str, chance: Random) -> str:
    """Return a message in a listed form."""
    parts: list[str] = []
    for unit in _UNIT.findall(form):
        if unit[0] == "{":
            before = parts[-1].split()[-1].lower() if parts else ""
            parts.append(words.drawn(kind, before, unit[6:-1], language, chance))
        elif unit[0] == "(" or (unit[0] == "[" and chance.random() < 0.5):
            parts.append(chance.choice(unit[1:-1].split("|")))
        elif unit[0] != "[":
            parts.append(unit)
    text = "".join(parts) if language == "zh" else " ".join(parts).replace(" :", ":").replace(" ,", ",")
    return text[0].upper() + text[1:] + chance.choice(_ENDS[language])


def main() -> None:
    """Print what is not obeyed, and the shares."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("language", choices=["en", "zh"])
    parser.add_argument("times", type=int)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    words, chance = Words.of(given.folder, given.language), Random(given.seed)
    listed = tomllib.loads((Path(module.__file__).parent / "forms" / f"{given.language}.toml").read_text("utf-8"))
    tried, obeyed = Counter[str](), Counter[str]()
    for kind, table in listed.items():
        for form in table["forms"] if isinstance(table, dict) else ():
            for _ in range(given.times):
                message = filled(form, kind, words, given.language, chance)
                found = [each.kind for each in plain_forms(message)]
                tried[kind] += 1
                obeyed[kind] += found == [kind]
                if found != [kind]:
                    print(f"{kind}\t{found}\t{message}")
    for kind, count in tried.items():
        print(f"{kind}: {obeyed[kind]} of {count}")
    print(f"{obeyed.total()} of {tried.total()} messages, {obeyed.total() / tried.total():.4f}")


if __name__ == "__main__":
    main()
