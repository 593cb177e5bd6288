"""The sentences that ship with the repository, and the aims for them."""

from datetime import date, datetime

import pytest

from benchmarks.time_detection import (
    LANGUAGES,
    SETS,
    Language,
    judged,
    main,
    precision,
    recall,
    rightness,
    sentences,
    tasks,
)

AIM = 0.95


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_aims_are_met(language: Language) -> None:
    verdicts = judged(sentences(language))
    assert precision(verdicts) >= AIM
    assert recall(verdicts) >= AIM
    assert rightness(verdicts, "range") >= AIM
    assert tasks(verdicts) == 1


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_sentences_are_well_formed(language: Language) -> None:
    of = sentences(language)
    assert len(of) == len({sentence["text"] for sentence in of})
    assert 0.55 < sum(sentence["refers"] for sentence in of) / len(of) < 0.65
    for sentence in of:
        assert datetime.fromisoformat(sentence["now"]).tzinfo is not None
        assert sentence["set"] in SETS
        assert sentence["refers"] == ("kind" in sentence)
        assert ("start" in sentence) == ("end" in sentence)
        if "start" in sentence:
            assert date.fromisoformat(sentence["start"]) <= date.fromisoformat(sentence["end"])


@pytest.mark.slow
def test_the_command_prints_every_set(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--misses"])
    printed = capsys.readouterr().out
    assert all(f"{language} {part}" in printed for language in LANGUAGES for part in ("set 7", "set 10", "all"))
