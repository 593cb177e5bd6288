import math
from itertools import pairwise
from random import Random
from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.llm.token_estimates import MESSAGE_OVERHEAD, TokenEstimator, TokenEstimators, count_tokens
from tests.support.prose import CHINESE, ENGLISH, MIXED, PARAGRAPHS, draw_prompts
from tests.support.stand_in_tokenizers import TOKENIZERS, Tokenizer, by_rates, by_word_pieces

pytestmark = pytest.mark.untraced

STATIC = TokenEstimator().rates


def teach(estimator: TokenEstimator, texts: list[str], tokenizer: Tokenizer, *, times: float = 1.0) -> None:
    """One call of the model with these texts."""
    overhead = MESSAGE_OVERHEAD * len(texts)
    estimator.learn(texts, overhead, overhead + round(times * sum(map(tokenizer, texts))))


def error_of(estimator: TokenEstimator, texts: list[str], tokenizer: Tokenizer) -> float:
    """The relative error over all the texts."""
    return sum(map(estimator.count, texts)) / sum(map(tokenizer, texts)) - 1


SEEN = [[*CHINESE[::2], *MIXED[:4]], [*ENGLISH[::2], *MIXED[4:8]], [*CHINESE[1:5:2], *ENGLISH[1:5:2]]]
FRESH = [*CHINESE[5::2], *ENGLISH[5::2], *MIXED[8:]]


@given(st.floats(0.5, 1.5), st.floats(0.18, 0.4), st.floats(0, 0.3), st.permutations(SEEN))
def test_after_three_mixed_prompts_fresh_texts_are_estimated_within_a_tenth(
    of_cjk: float, of_other: float, noise: float, seen: list[list[str]]
) -> None:
    estimator, tokenizer = TokenEstimator(), by_rates(of_cjk, of_other, noise)
    for texts in seen:
        teach(estimator, texts, tokenizer)
    assert abs(error_of(estimator, FRESH, tokenizer)) < 0.1


@pytest.mark.parametrize("tokenizer", TOKENIZERS.values(), ids=TOKENIZERS)
@pytest.mark.parametrize("differing", [True, False])
def test_so_are_nearly_all_prompts_for_every_stand_in(tokenizer: Tokenizer, differing: bool) -> None:
    errors = []
    for seed in range(50):
        estimator = TokenEstimator()
        seen, fresh = draw_prompts(Random(seed), differing=differing)
        for texts in seen:
            teach(estimator, texts, tokenizer)
        errors += [abs(error_of(estimator, texts, tokenizer)) for texts in fresh]
    assert sorted(errors)[len(errors) * 19 // 20] < 0.1


@pytest.mark.parametrize("tokenizer", [by_rates(1.5, 0.18), by_rates(0.5, 0.4), by_word_pieces(1.3)])
def test_prompts_of_different_mixtures_tell_the_rates_apart(tokenizer: Tokenizer) -> None:
    estimator = TokenEstimator()
    for texts in (CHINESE, ENGLISH, MIXED):
        teach(estimator, list(texts), tokenizer)
    for texts in (CHINESE, ENGLISH):
        assert abs(error_of(estimator, list(texts), tokenizer)) < 0.1


def test_one_prompt_corrects_prompts_of_its_mixture() -> None:
    estimator, tokenizer = TokenEstimator(), by_rates(1.3, 0.35)
    assert error_of(estimator, list(PARAGRAPHS), tokenizer) < -0.3
    teach(estimator, list(PARAGRAPHS[::2]), tokenizer)
    assert abs(error_of(estimator, list(PARAGRAPHS[1::2]), tokenizer)) < 0.1


def test_a_script_that_was_never_seen_keeps_its_rate() -> None:
    estimator = TokenEstimator()
    for _ in range(500):
        estimator.learn(["So be it. " * 100], 4, 404)
    assert estimator.rates == pytest.approx((STATIC[0], 0.4), rel=0.01)


def test_a_change_behind_a_models_name_is_followed() -> None:
    estimator = TokenEstimator()
    for tokenizer in (by_rates(0.6, 0.2), by_rates(1.3, 0.35)):
        for number in range(60):
            teach(estimator, list((CHINESE, ENGLISH, MIXED)[number % 3]), tokenizer)
        assert abs(error_of(estimator, list(PARAGRAPHS), tokenizer)) < 0.05


def test_before_anything_was_learned_the_static_estimate_holds() -> None:
    for text in PARAGRAPHS:
        assert TokenEstimator().count(text) == pytest.approx(count_tokens(text), abs=5, rel=0.05)


@given(st.text(st.characters(), max_size=200))
def test_any_text_is_counted(text: str) -> None:
    assert TokenEstimator().count(text) >= (1 if text else 0)
    assert TokenEstimator().count(text) <= len(text) + 1


def test_half_a_surrogate_pair_is_counted() -> None:
    estimator = TokenEstimator()
    estimator.learn(["\ud83d" * 100], 4, 120)
    assert estimator.count("\ud83d") == 1


@pytest.mark.parametrize("reported", [-5, 0, 3, 40, 40 + 20, 40 + 6000, math.nan, math.inf, -math.inf])
def test_what_cannot_be_true_is_ignored(reported: float) -> None:
    estimator = TokenEstimator()
    estimator.learn(["Nothing to see here." * 40], 40, reported)  # type: ignore[arg-type]
    assert estimator.rates == STATIC


@pytest.mark.parametrize("texts", [[], [""]])
def test_a_prompt_without_text_teaches_nothing(texts: list[str]) -> None:
    estimator = TokenEstimator()
    estimator.learn(texts, 4, 5)
    assert estimator.rates == STATIC


TOOLS = '{"type": "function", "function": {"name": "remember", "description": "Save a lasting fact."}}' * 20
TALK = [[*CHINESE[: number + 1], *ENGLISH[: number + 1]] for number in range(8)]
"""A conversation that grows: first the tools are most of its prompts, at the end few of them."""


@pytest.mark.parametrize("tokenizer", [by_rates(0.6, 0.2), by_rates(1.0, 0.25), by_rates(1.3, 0.35)])
def test_a_provider_that_does_not_count_tools_teaches_the_rates_of_the_rest(tokenizer: Tokenizer) -> None:
    estimator = TokenEstimator()
    for texts in TALK:
        estimator.learn(texts, 0, sum(map(tokenizer, texts)), tools=TOOLS)
    assert abs(error_of(estimator, [*CHINESE[8:], *ENGLISH[8:]], tokenizer)) < 0.15
    assert estimator.count(TOOLS) > 0.5 * TokenEstimator().count(TOOLS)


@pytest.mark.parametrize("tokenizer", [by_rates(0.6, 0.2), by_rates(1.0, 0.25), by_rates(1.3, 0.35)])
def test_a_provider_that_counts_tools_teaches_with_them(tokenizer: Tokenizer) -> None:
    estimator = TokenEstimator()
    for texts in TALK:
        estimator.learn(texts, 0, sum(map(tokenizer, [TOOLS, *texts])), tools=TOOLS)
    assert abs(error_of(estimator, [*CHINESE[8:], *ENGLISH[8:]], tokenizer)) < 0.15


@given(st.lists(st.tuples(st.sampled_from(TALK), st.integers(1, 20_000)), max_size=40))
def test_no_report_makes_a_text_cost_less_than_half_or_nothing(calls: list[tuple[list[str], int]]) -> None:
    estimator = TokenEstimator()
    for texts, reported in calls:
        estimator.learn(texts, 4 * len(texts), reported, tools=TOOLS)
    for text in (TOOLS, *PARAGRAPHS):
        assert estimator.count(text) >= 0.5 * TokenEstimator().count(text) - 1


@pytest.mark.parametrize("reported", [60, 100, 195, 250])
def test_a_provider_that_reports_one_number_for_all_prompts_teaches_little(reported: int) -> None:
    estimator = TokenEstimator()
    for _ in range(10):
        for texts in TALK:
            estimator.learn(texts, 4 * len(texts), reported, tools=TOOLS)
    assert estimator.count(TOOLS) >= 0.55 * TokenEstimator().count(TOOLS)


@given(
    st.lists(
        st.tuples(st.lists(st.sampled_from(PARAGRAPHS), min_size=1, max_size=6), st.floats(0.01, 100)), max_size=20
    )
)
def test_whatever_is_reported_the_rates_stay_sane(calls: list[tuple[list[str], float]]) -> None:
    estimator = TokenEstimator()
    for texts, times in calls:
        teach(estimator, texts, count_tokens, times=times)
    assert all(0.05 <= rate <= 3 for rate in estimator.rates)


def test_after_false_reports_true_ones_are_still_taken() -> None:
    estimator, tokenizer = TokenEstimator(), by_rates(0.8, 0.25)
    for times in (4.5, 0.22):
        for _ in range(50):
            teach(estimator, list(PARAGRAPHS), tokenizer, times=times)
        for number in range(90):
            teach(estimator, list((CHINESE, ENGLISH, MIXED)[number % 3]), tokenizer)
        assert abs(error_of(estimator, list(PARAGRAPHS), tokenizer)) < 0.1


def test_one_short_prompt_moves_little_that_was_learned_from_long_ones() -> None:
    estimator, tokenizer = TokenEstimator(), by_rates(1.0, 0.25)
    for texts in (CHINESE, ENGLISH, MIXED):
        teach(estimator, list(texts), tokenizer)
    before = estimator.rates
    estimator.learn(["好的，谢谢！"], 4, 4 + 15)
    assert estimator.rates == pytest.approx(before, rel=0.1)


def test_every_model_has_an_estimator_of_its_own() -> None:
    estimators = TokenEstimators()
    teach(estimators.of("one"), list(PARAGRAPHS), by_rates(1.5, 0.4))
    assert estimators.of("one").rates != STATIC
    assert estimators.of("other").rates == STATIC
    assert estimators.of("one") is estimators.of("one")


def test_models_that_were_not_used_for_long_are_forgotten() -> None:
    estimators = TokenEstimators()
    used, unused = estimators.of("used"), estimators.of("unused")
    for number in range(1000):
        estimators.of(f"model-{number}")
        estimators.of("used")
    assert estimators.of("used") is used
    assert estimators.of("unused") is not unused


@pytest.mark.parametrize("text", ["word " * 200, "今天天气很好" * 166 + "good"])
def test_counting_is_fast(text: str) -> None:
    estimator = TokenEstimator()
    marks = []
    for _ in range(200):
        marks.append(perf_counter())
        estimator.count(text)
    assert min(later - earlier for earlier, later in pairwise(marks)) < 100e-6


def test_the_paragraphs_are_what_they_say() -> None:
    assert len(PARAGRAPHS) == len(set(PARAGRAPHS)) >= 40
    assert all(10 <= len(text) <= 620 for text in PARAGRAPHS)
    assert all(text.isascii() or text.count("é") for text in ENGLISH)
