"""Estimates of tokens: near before anything is known, nearer once a model has reported, never absurd."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.prose import CHINESE, ENGLISH, MIXED, PARAGRAPHS
from benchmarks.stand_in_tokenizers import Tokenizer, by_rates
from services.llm.token_estimates import MESSAGE_OVERHEAD, TokenEstimator, TokenEstimators, count_tokens

pytestmark = pytest.mark.untraced

STATIC = TokenEstimator().rates


def teach(estimator: TokenEstimator, texts: list[str], tokenizer: Tokenizer) -> None:
    """One call of the model with these texts."""
    overhead = MESSAGE_OVERHEAD * len(texts)
    estimator.learn(texts, overhead, overhead + sum(map(tokenizer, texts)))


def error_of(estimator: TokenEstimator, texts: list[str], tokenizer: Tokenizer) -> float:
    """The relative error over all the texts."""
    return sum(map(estimator.count, texts)) / sum(map(tokenizer, texts)) - 1


SEEN = [[*CHINESE[::2], *MIXED[:4]], [*ENGLISH[::2], *MIXED[4:8]], [*CHINESE[1:5:2], *ENGLISH[1:5:2]]]
FRESH = [*CHINESE[5::2], *ENGLISH[5::2], *MIXED[8:]]


def test_before_anything_was_learned_english_and_chinese_are_estimated_nearly() -> None:
    # As o200k_base counts them.
    text = "Please remember that I am allergic to peanuts and that my flight leaves on Friday."
    assert 16 * 0.6 <= count_tokens(text) <= 16 * 1.6
    assert count_tokens("今天天气很好") == count_tokens("こんにちはね") == count_tokens("ＡＢＣＤＥＦ") == 5
    assert count_tokens("cafe " * 40) == count_tokens("café " * 40)


@given(st.floats(0.5, 1.5), st.floats(0.18, 0.4), st.floats(0, 0.3), st.permutations(SEEN))
def test_after_three_mixed_prompts_fresh_texts_are_estimated_within_a_tenth(
    of_cjk: float, of_other: float, noise: float, seen: list[list[str]]
) -> None:
    estimator, tokenizer = TokenEstimator(), by_rates(of_cjk, of_other, noise)
    for texts in seen:
        teach(estimator, texts, tokenizer)
    assert abs(error_of(estimator, FRESH, tokenizer)) < 0.1


def test_a_change_behind_a_models_name_is_followed() -> None:
    estimator = TokenEstimator()
    for tokenizer in (by_rates(0.6, 0.2), by_rates(1.3, 0.35)):
        for number in range(60):
            teach(estimator, list((CHINESE, ENGLISH, MIXED)[number % 3]), tokenizer)
        assert abs(error_of(estimator, list(PARAGRAPHS), tokenizer)) < 0.05


def test_half_a_surrogate_pair_is_counted() -> None:
    estimator = TokenEstimator()
    estimator.learn(["\ud83d" * 100], 4, 120)
    assert estimator.count("\ud83d") == 1


@pytest.mark.parametrize("reported", [-5, 0, 3, 40 + 20, 40 + 6000, math.nan, math.inf])
def test_what_cannot_be_true_is_ignored(reported: float) -> None:
    estimator = TokenEstimator()
    estimator.learn(["Nothing to see here." * 40], 40, reported)  # type: ignore[arg-type]
    assert estimator.rates == STATIC


TOOLS = '{"type": "function", "function": {"name": "remember", "description": "Save a lasting fact."}}' * 20
TALK = [[*CHINESE[: number + 1], *ENGLISH[: number + 1]] for number in range(8)]
"""A conversation that grows: first the tools are most of its prompts, at the end few of them."""


@pytest.mark.parametrize("counts_tools", [False, True])
def test_a_provider_that_counts_tools_or_does_not_teaches_the_rates_of_the_texts(counts_tools: bool) -> None:
    estimator, tokenizer = TokenEstimator(), by_rates(1.3, 0.35)
    for texts in TALK:
        counted = [TOOLS, *texts] if counts_tools else texts
        estimator.learn(texts, 0, sum(map(tokenizer, counted)), tools=TOOLS)
    assert abs(error_of(estimator, [*CHINESE[8:], *ENGLISH[8:]], tokenizer)) < 0.15
    assert estimator.count(TOOLS) > 0.5 * TokenEstimator().count(TOOLS)


@given(st.lists(st.tuples(st.sampled_from(TALK), st.integers(1, 20_000)), max_size=40))
def test_no_report_makes_a_text_cost_less_than_half_or_nothing(calls: list[tuple[list[str], int]]) -> None:
    estimator = TokenEstimator()
    for texts, reported in calls:
        estimator.learn(texts, 4 * len(texts), reported, tools=TOOLS)
    for text in (TOOLS, *PARAGRAPHS):
        assert estimator.count(text) >= 0.5 * TokenEstimator().count(text) - 1


def test_models_that_were_not_used_for_long_are_forgotten() -> None:
    estimators = TokenEstimators()
    used, unused = estimators.of("used"), estimators.of("unused")
    for number in range(1000):
        estimators.of(f"model-{number}")
        estimators.of("used")
    assert estimators.of("used") is used
    assert estimators.of("unused") is not unused
