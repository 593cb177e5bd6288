"""How a message is worded: its words and pairs of words, and characters in Chinese. Pure.

Whether somebody asks an organisation for something or tells a friend about it shows in small words more than in
the subject: "do you", "am I allowed", 你们, 怎么收费, against "should I", "my sister", 帮我想.
"""

import re

from services.text.tokenizer import simplified

_WORD = re.compile(r"[a-z]+(?:'[a-z]+)?")
_RUN = re.compile("[\u4e00-\u9fff]+")
_BEGIN, _END = "^", "$"


def wordings(message: str) -> frozenset[str]:
    """The words of a message and their pairs, with `^` and `$` at its ends; `?` where it has a question mark."""
    text = simplified(message).lower().replace("’", "'")
    words = _WORD.findall(text)
    found = set(words)
    if words:
        found.update(f"{one} {next_}" for one, next_ in zip([_BEGIN, *words], [*words, _END], strict=True))
    for run in _RUN.findall(text):
        found.update(run)
        found.update(run[at : at + 2] for at in range(len(run) - 1))
        found.update((_BEGIN + run[:1], _BEGIN + run[:2]))
    if "?" in text or "？" in text:
        found.add("?")
    return frozenset(found)
