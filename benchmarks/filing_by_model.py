"""Filing of talks by a real small model: what it gets right and wrong, and what it misses.

    python -m benchmarks.filing_by_model URL MODEL [--form some|well|unknown] [--language en|zh] [--every 1]

URL is that of an OpenAI-compatible endpoint, such as the server of llama.cpp. The talks are the lines of
`en.jsonl` and `zh.jsonl` in the folder: what the user has `said`, a word of each statement that it `keeps`, the
short ids of the memories that it may change (`touches`), and the assistant's `answer` before. Prompts, parser,
checks and questions are the service's own; nothing is stored. What is filed is printed, for a reader to judge: a
statement with one of the words counts as right, every other one as wrong.
"""

import argparse
import asyncio
import json
import logging
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal
from uuid import UUID, uuid4

import structlog

from services.errors import BadModelOutput, ModelFailed
from services.llm.chat_models import ChatModels
from services.memory.core.blocks import Owner
from services.memory.filing.checks import Evidence
from services.memory.filing.decision import Decided, decide
from services.memory.filing.prompt import Batch, Said
from services.memory.model import Memory
from services.memory.reading.foreign_words import foreign_text, own_text
from services.platform.setting_values import FilingGrade
from services.platform.settings import load_settings

_TALKS = Path(__file__).parent / "data" / "talks"
_NOW = datetime(2026, 11, 25, 20, 10, tzinfo=UTC)
_PATIENCE_S = 600.0
_KNOWN = {
    "en": (
        ("allergies", "allergic to peanuts"),
        ("work", "works at Northbank"),
        ("family", "sister Ada lives in Oslo"),
    ),
    "zh": (("allergies", "对花生过敏"), ("work", "在恒信银行上班"), ("family", "妹妹住在大连")),
}


@dataclass(frozen=True)
class Talk:
    """Messages of a user, and what is to become of memory."""

    language: str
    said: Sequence[str]
    keeps: Sequence[str] = ()
    """A word of each statement that is worth keeping."""
    touches: Sequence[str] = ()
    """Short ids of the memories that may change."""
    answer: str = ""
    """Words of the assistant just before."""


def talks_of(folder: Path, language: str) -> list[Talk]:
    """Read the talks of a language."""
    lines = (folder / f"{language}.jsonl").read_text(encoding="utf-8").splitlines()
    return [Talk(language, **json.loads(line)) for line in lines]


async def play(models: ChatModels, talk: Talk, form: FilingGrade | None) -> Counter[str]:
    """Have a talk filed; return how much of it came out how."""
    memories = {
        f"m{number}": Memory("value", f"v{number}", text, _NOW, "human", field)
        for number, (field, text) in enumerate(_KNOWN[talk.language], 1)
    }
    conversation = uuid4()
    messages = {f"u{number}": _said("user", text, conversation) for number, text in enumerate(talk.said, 1)}
    earlier = [_said("assistant", talk.answer, conversation)] if talk.answer else []
    batch = Batch(Owner(uuid4(), uuid4(), uuid4()), [], [conversation], messages, earlier, memories=memories)
    foreign = [text for text in map(foreign_text, talk.said) if text]
    known = [each.text for each in memories.values()]
    evidence = Evidence(
        batch.said,
        [own_text(each) for each in talk.said],
        [talk.answer],
        known,
        foreign,
        memories,
        beside=batch.beside,
    )
    try:
        decided = await decide(models, batch, evidence, form)
    except (BadModelOutput, ModelFailed) as error:
        print(f"         {error.message} {getattr(error, 'detail', '')}")
        return Counter(unusable=1, missed=len(talk.keeps))
    return _judged(talk, decided)


def _judged(talk: Talk, decided: Decided) -> Counter[str]:
    found = Counter(dropped=decided.dropped, asked=len(decided.asked))
    done = [each.operation for each in decided.done]
    for each in done:
        is_right = any(word in each.text for word in talk.keeps) and each.memory in {"", *talk.touches}
        found["right" if is_right else "wrong"] += 1
        print(f"         {'' if is_right else '?'} {each.kind} {each.memory} {each.text!r} on {each.quote!r}")
    found["missed"] = sum(not any(word in each.text for each in done) for word in talk.keeps)
    return +found


def _said(role: Literal["user", "assistant"], text: str, conversation: UUID) -> Said:
    return Said(uuid4(), None, conversation, role, text, _NOW, timezone="Europe/Brussels")


async def _main(options: argparse.Namespace) -> None:
    settings = load_settings(
        llm_model=options.model, llm_base_url=options.url, llm_api="chat", llm_timeout_s=_PATIENCE_S
    )
    models, sums = ChatModels(settings), Counter[str]()
    for language in [options.language] if options.language else ["en", "zh"]:
        for talk in talks_of(options.folder, language)[:: options.every]:
            begin = time.perf_counter()
            found = await play(models, talk, None if options.form == "unknown" else options.form)
            sums.update(found)
            sums["talks"] += 1
            seconds = time.perf_counter() - begin
            print(f"{seconds:5.0f} s  {dict(found)}  {' / '.join(talk.said)[:70]!r}", flush=True)
    await models.close()
    print(dict(sums))


def main() -> None:
    """Play the talks, print what comes of each, and the sums."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("model")
    parser.add_argument("--form", choices=["some", "well", "unknown"], default="some")
    parser.add_argument("--language", choices=["en", "zh"])
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=_TALKS)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    asyncio.run(_main(parser.parse_args()))


if __name__ == "__main__":
    main()
