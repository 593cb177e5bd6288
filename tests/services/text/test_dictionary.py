"""The dictionary in its file holds what jieba's own way of loading it does."""

import re
import warnings
from pathlib import Path
from typing import Any

import pytest

from services.text.dictionary import TOTAL, dictionary

pytestmark = pytest.mark.untraced

_EVERY = 23
_RUN = re.compile("[\u3400-\u9fff]+")


@pytest.fixture(scope="module")
def jieba_tokenizer() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import jieba
    tokenizer = jieba.Tokenizer()
    tokenizer.FREQ, tokenizer.total = tokenizer.gen_pfdict(tokenizer.get_dict_file())
    tokenizer.initialized = True
    return tokenizer


def test_words_beginnings_and_frequencies_are_those_of_jieba(jieba_tokenizer: Any) -> None:
    words = [word for word in jieba_tokenizer.FREQ if _RUN.fullmatch(word)]
    known = dictionary()
    assert jieba_tokenizer.total == TOTAL
    assert len(words) > 490_000
    for word in words[::_EVERY]:
        assert known.get(word) == jieba_tokenizer.FREQ[word], word


@pytest.mark.parametrize("absent", ["龘龘", "我今天去", "㐀", "啊哈哈呀呀", "A座", "é", ""])
def test_what_no_word_begins_with_is_absent(absent: str) -> None:
    known = dictionary()
    assert known.get(absent) == 0


def test_the_first_and_the_last_line_are_found() -> None:
    known = dictionary()
    assert known.get("一") == 217_830
    assert known.get("龢") == 732


def test_texts_are_cut_as_with_jieba_itself(jieba_tokenizer: Any) -> None:
    from services.text import tokenizer as terms

    folder = Path(__file__).parents[3] / "benchmarks" / "questions" / "zh"
    texts = "\n".join(path.read_text(encoding="utf-8") for path in sorted(folder.iterdir()))
    runs = sorted(set(_RUN.findall(texts)))
    assert len(runs) > 100
    for run in runs:
        assert list(terms._segment(run)) == list(jieba_tokenizer.cut_for_search(run))
