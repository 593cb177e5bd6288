"""The dictionary in its file holds what jieba's own way of loading it does."""

import re
import warnings
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
