"""How far estimates of tokens are off, before and after three calls of a model.

`python -m benchmarks.token_estimates [--draws N]`

Stand-ins for tokenizers count prompts of Chinese, English and mixed messages. In every draw an estimator learns
from three prompts and estimates three others with no text in common. The three that it learns from differ in
their mixture of languages, or are alike, which leaves the rates of Chinese and of English harder to tell apart.
"""

import argparse
import statistics
from random import Random

from rich.console import Console
from rich.table import Table

from benchmarks.prose import draw_prompts
from benchmarks.stand_in_tokenizers import TOKENIZERS, Tokenizer
from services.llm.token_estimates import MESSAGE_OVERHEAD, TokenEstimator

_CASES = {"after 0 calls": (0, True), "after 1": (1, True), "after 3": (3, True), "after 3, alike": (3, False)}
"""Calls learned from, and whether their mixtures differ."""
_JUDGED = "after 3"
_AIM = 0.10
_NEAR = 0.95


def errors_of(tokenizer: Tokenizer, draws: int, calls: int, differing: bool) -> list[float]:
    """Absolute relative errors on the fresh prompts."""
    errors = []
    for seed in range(draws):
        seen, fresh = draw_prompts(Random(seed), differing=differing)
        estimator = TokenEstimator()
        for prompt in Random(seed).sample(seen, calls):
            overhead = MESSAGE_OVERHEAD * len(prompt)
            estimator.learn(prompt, overhead, overhead + sum(map(tokenizer, prompt)))
        errors += [abs(sum(map(estimator.count, prompt)) / sum(map(tokenizer, prompt)) - 1) for prompt in fresh]
    return errors


def _near(errors: list[float]) -> float:
    return sorted(errors)[int(len(errors) * _NEAR)]


def _cell(errors: list[float]) -> str:
    return f"{statistics.mean(errors):.1%} / {_near(errors):.1%} / {max(errors):.1%}"


def main() -> None:
    """Read the options, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=300, help="how often prompts are drawn")
    draws = parser.parse_args().draws
    table = Table(title="Error on fresh mixed prompts: mean / 95th percentile / most")
    table.add_column("stand-in tokenizer")
    for heading in _CASES:
        table.add_column(heading, justify="right")
    table.add_column(f"{_JUDGED}: 95 % within {_AIM:.0%}")
    for name, tokenizer in TOKENIZERS.items():
        errors = {heading: errors_of(tokenizer, draws, *case) for heading, case in _CASES.items()}
        verdict = "met" if _near(errors[_JUDGED]) <= _AIM else "MISSED"
        table.add_row(name, *map(_cell, errors.values()), verdict)
    Console(width=150).print(table)


if __name__ == "__main__":
    main()
