"""Stand-ins for models' tokenizers, whose vocabularies would have to be downloaded."""

import re
import zlib
from collections.abc import Callable

Tokenizer = Callable[[str], int]

_CJK = r"\u1100-\u11ff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef"
_PARTS = re.compile(rf"[{_CJK}]| ?[^\W{_CJK}]+|\s+|.", re.DOTALL)
_IS_CJK = re.compile(rf"[{_CJK}]")
_WORD_PIECES = re.compile(rf"(?P<cjk>[{_CJK}])|(?P<word>[^\W\d{_CJK}]+)|(?P<digits>\d+)|(?P<mark>[^\w\s])")


def by_rates(of_cjk: float, of_other: float, noise: float = 0.2) -> Tokenizer:
    """Tokens per CJK character and per other character; each word deviates a little."""

    def count(text: str) -> int:
        tokens = 0.0
        for part in _PARTS.findall(text):
            deviation = noise * (zlib.crc32(part.strip().encode("utf-8", "surrogatepass")) % 2001 / 1000 - 1)
            tokens += (of_cjk if _IS_CJK.match(part) else of_other * len(part)) * (1 + deviation)
        return round(tokens)

    return count


def by_word_pieces(of_cjk: float) -> Tokenizer:
    """One token for a word and one more for every six letters, for three digits, for a mark; spaces are free."""

    def count(text: str) -> int:
        tokens = 0.0
        for found in _WORD_PIECES.finditer(text):
            if found["cjk"]:
                tokens += of_cjk
            elif found["word"]:
                tokens += 1 + len(found["word"]) // 6
            elif found["digits"]:
                tokens += -(-len(found["digits"]) // 3)
            else:
                tokens += 1
        return round(tokens)

    return count


TOKENIZERS: dict[str, Tokenizer] = {
    "rates 0.50 / 0.18": by_rates(0.5, 0.18),
    "rates 0.50 / 0.40": by_rates(0.5, 0.4),
    "rates 0.75 / 0.25": by_rates(0.75, 0.25),
    "rates 1.00 / 0.22": by_rates(1.0, 0.22),
    "rates 1.50 / 0.18": by_rates(1.5, 0.18),
    "rates 1.50 / 0.40": by_rates(1.5, 0.4),
    "word pieces, CJK 0.6": by_word_pieces(0.6),
    "word pieces, CJK 1.0": by_word_pieces(1.0),
    "word pieces, CJK 1.3": by_word_pieces(1.3),
}
"""Rates are those of CJK and of other characters."""
