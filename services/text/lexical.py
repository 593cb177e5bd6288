"""Words of Chinese and English text."""

import re
import unicodedata

_RUN = re.compile(r"[a-z0-9]+(?:'[a-z]+)?|[\u3400-\u9fff\uf900-\ufaff]+")

_ENGLISH_STOP_WORDS = """
a an and are as at be been but by can could did do does for from had has have he her his how i i'm if in is it
it's its me my of on or our she so that the their them then there they this to was we were what when where
which who why will with would you your
"""
_CHINESE_STOP_WORDS = "的了是我你他她它们吗呢吧啊在和也都就不有这那个上下来去说要会很到着与及或把被让给对从"

STOP_WORDS = frozenset([*_ENGLISH_STOP_WORDS.split(), *_CHINESE_STOP_WORDS])


def words(text: str) -> list[str]:
    """Lower-case words, and for Chinese the pairs of neighbouring characters (a lone character as it is).

    Full-width forms are folded to their usual ones; stop words are left out.
    """
    found: list[str] = []
    folded = unicodedata.normalize("NFKC", text).lower()
    if folded.isascii():
        return [run for run in _RUN.findall(folded) if run not in STOP_WORDS]
    for run in _RUN.findall(folded):
        if not run[0].isascii() and len(run) > 1:
            found.extend(run[i : i + 2] for i in range(len(run) - 1))
        elif run not in STOP_WORDS:
            found.append(run)
    return found


def stems(text: str) -> list[str]:
    """Words without the commonest English endings, so that `lives` meets `live`."""
    return [re.sub(r"(?<=\w{3})(ing|ed|es|s|e)$", "", word) for word in words(text)]
