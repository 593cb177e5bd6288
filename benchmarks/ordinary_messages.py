"""Ordinary messages that change memory, though nobody asked for it, while the filing model answers nonsense.

    python -m benchmarks.ordinary_messages FOLDER [--most 20000] [--seed 1]

Reads `text` of the lines of every `*.jsonl` below the folder; where lines have a `role`, those of users. Each
message is looked at for plain forms, which are obeyed without a model, and is filed with the service's own parser
and checks by a model whose answers are nonsense: prose, broken JSON, unknown ids, and operations that look right
and rest on words that the user has not said in the message. Nothing is stored. Every change is printed: some may
be what somebody did ask for.
"""

import argparse
import json
import logging
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import structlog

from services.errors import BadModelOutput
from services.memory.filing.answer import FilingOperation, filing_of_answer
from services.memory.filing.checks import Evidence, Verdict, checked
from services.memory.model import Memory
from services.memory.reading.foreign_words import foreign_text, own_text
from services.memory.reading.plain_forms import plain_forms
from services.promises.plain_forms import plain_promise

_NOW = datetime(2026, 11, 25, 20, 10, tzinfo=UTC)
_KNOWN = (
    ("allergies", "allergic to peanuts"),
    ("work", "works at Northbank"),
    ("family", "妹妹住在大连"),
    ("home", "住在厦门"),
)
_MEMORIES = {
    f"m{number}": Memory("value", f"v{number}", text, _NOW, "human", field)
    for number, (field, text) in enumerate(_KNOWN, 1)
}
_EXAMPLES = ("we've got a dog, bruno", "我家狗叫布鲁诺", "quote", "words of the user", "…", "u1", "user", "")
"""Phrases of the prompt's own examples, which a model may repeat."""
_ANSWER = "That sounds lovely, tell me more."
_KINDS = ("add", "replace", "end", "remove", "leave_out")
_UNKNOWN = ("m17", "v3", "", "u4", "none", "item 2", "m1, m2")


class Nonsense:
    """A model that answers nonsense about a message, of each kind once in a while."""

    def __init__(self, texts: Sequence[str], seed: int) -> None:
        """Take what others have said."""
        self._texts = texts
        self._random = random.Random(seed)
        self.kinds: dict[str, Callable[[str], str]] = {
            "prose": lambda message: f"I would add {message[:40]!r} to m1 and remove m2, shall I?",
            "broken JSON": lambda message: self._json(message, message)[: self._random.randint(5, 40)],
            "unknown ids": lambda message: self._operations(message, ids=_UNKNOWN, kinds=_KINDS[1:]),
            "another's words": lambda message: self._json(self._part(self._other()), message),
            "another's words, short": lambda message: self._json(self._part(self._other(), most=3), message),
            "words in another order": lambda message: self._json(self._shuffled(message), message),
            "a word too many": lambda message: self._json(self._with_a_word(message), message),
            "a memory's words": lambda message: self._json(self._random.choice(_KNOWN)[1], message),
            "the prompt's words": lambda message: self._json(self._random.choice(_EXAMPLES), message),
            "the answer's words": lambda message: self._json(_ANSWER, message),
        }

    def _other(self) -> str:
        return self._random.choice(self._texts)

    def _part(self, text: str, *, most: int = 12) -> str:
        words = _words(text)
        size = self._random.randint(1, most)
        begin = self._random.randint(0, max(len(words) - size, 0))
        return "".join(words[begin : begin + size]).strip()

    def _shuffled(self, message: str) -> str:
        words = _words(message)
        self._random.shuffle(words)
        return "".join(words) if words != _words(message) else ""

    def _with_a_word(self, message: str) -> str:
        words = _words(message)
        words.insert(self._random.randint(0, len(words)), "forget " if message.isascii() else "忘掉")
        return "".join(words)

    def _json(self, quote: str, message: str) -> str:
        return self._operations(message, quote=quote)

    def _operations(
        self, message: str, *, quote: str | None = None, ids: Sequence[str] = (), kinds: Sequence[str] = _KINDS
    ) -> str:
        made = []
        for kind in kinds:
            operation = {
                "op": kind,
                "text": self._part(self._other()),
                "quote": message if quote is None else quote,
            }
            operation["id"] = self._random.choice(ids or tuple(_MEMORIES)) if kind != "add" else ""
            operation["message"] = self._random.choice(ids) if ids else "u1"
            made.append(operation)
        return json.dumps({"operations": made}, ensure_ascii=False)


def _words(text: str) -> list[str]:
    """Return what a text consists of: words with their blanks, Chinese by characters."""
    return [f"{each} " for each in text.split()] if text.isascii() else list(text.strip())


def texts_in(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the set's name and the text of each line."""
    for path in sorted(folder.rglob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line) if line.startswith("{") else {}
            text = row.get("text")
            if isinstance(text, str) and text.strip() and row.get("role", "user") == "user":
                yield path.parent.name, text


def verdicts_on(message: str, answer: str) -> list[tuple[str, Verdict]]:
    """Return the operations of a model's answer about a message, each with what becomes of it."""
    try:
        answered = filing_of_answer(answer, _MEMORIES, ["u1"])
    except BadModelOutput:
        return []
    foreign = [text for text in [foreign_text(message)] if text]
    evidence = Evidence({"u1": message}, [own_text(message)], [_ANSWER], (), foreign, _MEMORIES)
    found = checked(answered.operations, evidence)
    return [(_told(each.operation), each.verdict) for each in found]


def _told(operation: FilingOperation) -> str:
    return f"{operation.kind} {operation.memory} {operation.text!r} on {operation.quote!r}"


def changes_of(message: str, answer: str) -> list[str]:
    """Return the operations of a model's answer about a message that would change memory."""
    return [told for told, verdict in verdicts_on(message, answer) if verdict == "do"]


def main() -> None:
    """Print every change, and the share of messages with one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--most", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    messages = list(texts_in(options.folder))
    random.Random(options.seed).shuffle(messages)
    messages = messages[: options.most]
    model = Nonsense([text for _, text in messages], options.seed)
    changed: Counter[str] = Counter()
    asked: Counter[str] = Counter()
    begun = time.process_time()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    for name, text in messages:
        for form in plain_forms(text):
            changed["a plain form"] += 1
            print(f"{name}\tplain form {form.kind}\t{' '.join(text.split())[-160:]}")
        if promised := plain_promise(text, _NOW, "Asia/Shanghai"):
            changed["a plain promise"] += 1
            print(f"{name}\tplain promise {promised.when}\t{' '.join(text.split())[-160:]}")
        for kind, answer in model.kinds.items():
            verdicts = verdicts_on(text, answer(text))
            asked[kind] += any(verdict == "ask" for _, verdict in verdicts)
            if found := [told for told, verdict in verdicts if verdict == "do"]:
                changed[kind] += 1
                print(f"{name}\t{kind}\t{found[0]}\t{' '.join(text.split())[-100:]}")
    seconds = time.process_time() - begun
    total = max(len(messages), 1)
    for kind in ("a plain form", "a plain promise", *model.kinds):
        share = changed[kind] / total
        print(f"{kind}: {changed[kind]} of {len(messages)} ({share:.3%}), {asked[kind]} would be asked about")
    filed = sum(changed[kind] for kind in model.kinds)
    share = filed / len(model.kinds) / total
    print(f"nonsense, all kinds: {filed} of {len(model.kinds) * total} answers changed memory ({share:.4%})")
    print(f"{1e6 * seconds / total:.0f} µs of CPU a message")


if __name__ == "__main__":
    main()
