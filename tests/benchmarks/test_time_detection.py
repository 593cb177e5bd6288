"""The sentences that ship with the repository, and the aims for them."""

import pytest

from benchmarks.time_detection import LANGUAGES, Language, judged, precision, recall, rightness, sentences, tasks

AIM = 0.95


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_aims_are_met(language: Language) -> None:
    verdicts = judged(sentences(language))
    assert precision(verdicts) >= AIM
    assert recall(verdicts) >= AIM
    assert rightness(verdicts, "range") >= AIM
    assert tasks(verdicts) == 1
