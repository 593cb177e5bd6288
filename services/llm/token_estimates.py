"""Estimates of tokens: from fixed rates, and from rates that learn, model by model, what providers report.

No tokenizer tables are needed, which would have to be downloaded.
"""

import math
import re
from collections.abc import Iterable

_CJK = re.compile(r"[\u1100-\u11ff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]+")

TOKENS_PER_CJK = 0.75
TOKENS_PER_OTHER = 0.25
MESSAGE_OVERHEAD = 4
"""Tokens for a message's role and delimiters."""
IMAGE_TOKENS = 765
"""A 1024 by 1024 image at high detail, as OpenAI counts it."""


def count_tokens(text: str) -> int:
    """Estimate the tokens of a text, with separate rates for Chinese and other scripts.

    Vocabularies of some 200,000 entries hold most common two-character Chinese words, hence less than a
    token a character; English runs at about four characters a token.
    """
    if text.isascii():
        return round(len(text) * TOKENS_PER_OTHER) + 1 if text else 0
    other = len(_CJK.sub("", text))  # a list of the characters would take a hundred times the text's memory
    return round((len(text) - other) * TOKENS_PER_CJK + other * TOKENS_PER_OTHER) + 1


_KEEP = 0.95
"""Share of its weight that an observation keeps after each newer one, so that the estimate follows a changed
model."""
_DOUBT = (0.002, 0.004)
"""Weight of the initial rates of wide and other characters. Vocabularies differ most in Chinese."""
_UNSURE_TOKENS = 100
"""A prompt of this many tokens weighs half as much as a long one, because the overhead of messages is a guess."""
_PLAUSIBLE = (0.55, 2.5)
"""Plausible bounds of a report, in multiples of the static estimate."""
_BOUNDS = ((0.4, 3.0), (0.15, 3.0))
"""Lowest and highest rate of wide characters and of others: at most one token for each byte, at least that of long
common words."""
_MODELS_KEPT = 256

Rates = tuple[float, float]
"""Tokens of a wide character, and of another one."""


def _measure(text: str) -> tuple[float, float]:
    """Count the wide characters and the others. In UTF-8 a CJK character takes two more bytes than characters.
    Others count in proportion: an accented letter is half a wide one, an emoji is one and a half."""
    if text.isascii():
        return 0.0, float(len(text))
    characters = len(text)
    wide = min(characters, (len(text.encode("utf-8", "surrogatepass")) - characters) / 2)
    return wide, characters - wide


class TokenEstimator:
    """Estimates how many tokens one model counts in a text, from its wide and its other characters.

    The two rates minimise the relative errors over the reported prompts, newer ones weighing more, with the static
    rates as regulariser: one prompt corrects prompts with the same mixture of scripts, prompts with different
    mixtures separate the rates, and a script that never occurs keeps the static rate.
    """

    def __init__(self) -> None:
        self._rates: Rates = (TOKENS_PER_CJK, TOKENS_PER_OTHER)
        # The decayed sums of the normal equations, in multiples of the static rates
        self._wide_wide = self._wide_other = self._other_other = 0.0
        self._wide = self._other = 0.0
        self._counts_tools = True

    @property
    def rates(self) -> Rates:
        """Return the current rates."""
        return self._rates

    def count(self, text: str) -> int:
        """Estimate the tokens of a text with the learned rates; an empty one has none, any other at least one."""
        if not text:
            return 0
        wide, other = _measure(text)
        of_wide, of_other = self._rates
        return max(1, round(wide * of_wide + other * of_other))

    def learn(self, texts: Iterable[str], overhead: int, reported: int, *, tools: str = "") -> None:
        """Learn from one call of the model.

        Some providers do not count the descriptions of tools. Prompts that consist mostly of tools show whether
        they do, because only one of the two readings is plausible.

        Args:
            texts: The texts of the prompt, without the tools.
            overhead: Tokens of the prompt that are not text: message overhead and images.
            reported: The tokens of the whole prompt as the provider reported them. Ignored if implausible: not
                more than the overhead, or far from any tokenizer's count.
        """
        without = _expected(texts)
        of_tools = _expected([tools])
        with_tools = without[0] + of_tools[0], without[1] + of_tools[1]
        tokens = reported - overhead
        if not math.isfinite(tokens) or tokens <= 0:
            return
        if tools and _is_plausible(tokens, without) != _is_plausible(tokens, with_tools):
            self._counts_tools = _is_plausible(tokens, with_tools)
        expected_wide, expected_other = with_tools if self._counts_tools else without
        expected = expected_wide + expected_other
        # The static estimate is the measure: after a false report, a learned one could reject true reports.
        if not _is_plausible(tokens, (expected_wide, expected_other)):
            return
        weight = expected / (expected + _UNSURE_TOKENS)
        # Relative to the static estimate: relative to the report, reports that are too low would weigh most.
        of_wide, of_other, ratio = expected_wide / expected, expected_other / expected, tokens / expected
        self._wide_wide = _KEEP * self._wide_wide + weight * of_wide * of_wide
        self._wide_other = _KEEP * self._wide_other + weight * of_wide * of_other
        self._other_other = _KEEP * self._other_other + weight * of_other * of_other
        self._wide = _KEEP * self._wide + weight * of_wide * ratio
        self._other = _KEEP * self._other + weight * of_other * ratio
        self._rates = self._solve()

    def _solve(self) -> Rates:
        """Return the rates with the least error within the bounds; the regulariser does not decay."""
        doubt_wide, doubt_other = _DOUBT
        wide_wide, other_other = self._wide_wide + doubt_wide, self._other_other + doubt_other
        wide, other = self._wide + doubt_wide, self._other + doubt_other
        mixed = self._wide_other
        factor_wide = (wide * other_other - other * mixed) / (wide_wide * other_other - mixed * mixed)
        of_wide = _bounded(factor_wide * TOKENS_PER_CJK, _BOUNDS[0])
        # First find the best second rate for the bounded first one, then the best first rate for that second.
        of_other = _bounded(
            (other - mixed * of_wide / TOKENS_PER_CJK) / other_other * TOKENS_PER_OTHER, _BOUNDS[1]
        )
        of_wide = _bounded((wide - mixed * of_other / TOKENS_PER_OTHER) / wide_wide * TOKENS_PER_CJK, _BOUNDS[0])
        return of_wide, of_other


def _expected(texts: Iterable[str]) -> Rates:
    """Return the static estimate of the tokens in the texts: those of wide characters, and those of others."""
    wide = other = 0.0
    for text in texts:
        of_text = _measure(text)
        wide, other = wide + of_text[0], other + of_text[1]
    return wide * TOKENS_PER_CJK, other * TOKENS_PER_OTHER


def _is_plausible(tokens: float, expected: Rates) -> bool:
    lowest, highest = _PLAUSIBLE
    return lowest * sum(expected) <= tokens <= highest * sum(expected)


def _bounded(rate: float, bounds: tuple[float, float]) -> float:
    return min(bounds[1], max(bounds[0], rate))


class TokenEstimators:
    """The estimators of the models that this process has used recently."""

    def __init__(self) -> None:
        self._by_model: dict[str, TokenEstimator] = {}

    def of(self, model: str) -> TokenEstimator:
        """Return the estimator of a model; callers may name any number of models, so the oldest is dropped."""
        found = self._by_model.pop(model, None)
        if found is None:
            found = TokenEstimator()
            if len(self._by_model) >= _MODELS_KEPT:
                del self._by_model[next(iter(self._by_model))]
        self._by_model[model] = found
        return found
