import subprocess
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.text.tokenizer import embedded_text, shared_terms, terms


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("He was travelling with friends", ["travel", "friend"]),
        ("Anna’s dog", ["anna", "dog"]),
        ("ＡＢＣ iPhone15", ["abc", "iphone15"]),
        ("on 2026-04-05", ["20260405", "2026", "04", "05"]),
        ("I don't!", []),
        ("茶", ["茶"]),
        ("我", []),
        ("", []),
    ],
)
def test_a_text_has_these_terms(text: str, expected: list[str]) -> None:
    assert terms(text) == expected


def test_chinese_is_found_by_its_words_and_by_its_pairs() -> None:
    found = terms("中国科学院")
    assert {"中国", "国科", "科学", "学院", "科学院", "中国科学院"} <= set(found)


def test_a_run_that_is_longer_than_any_sentence_gives_words_throughout_and_takes_no_time() -> None:
    found = terms("北京大学图书馆" * 20)
    assert found.count("图书馆") >= 18  # one that is cut in two is still found by its pairs
    assert found.count("书馆") >= 20
    begun = time.thread_time()
    terms("我" * 100_000)
    assert time.thread_time() - begun < 1


def test_traditional_characters_find_simplified_ones() -> None:
    assert terms("我的下屬喜歡編程") == terms("我的下属喜欢编程")


@given(st.text(max_size=200))
def test_any_text_gives_terms_that_no_index_would_split(text: str) -> None:
    for term in terms(text):
        assert term
        assert all(character.isalnum() or not character.isascii() for character in term)
        assert len(term) <= 64 or not term.isascii()


def test_the_first_calls_may_come_from_several_threads_and_say_nothing() -> None:
    code = (
        "from concurrent.futures import ThreadPoolExecutor as P\n"
        "from services.text.tokenizer import shared_terms, terms, terms\n"
        "with P(4) as p: print(len(set(map(tuple, p.map(terms, ['我喜欢喝茶 running'] * 8)))))"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("1\n", "")


def test_the_terms_that_texts_share_with_a_question_are_counted() -> None:
    asked = terms("布鲁诺喜欢巧克力冰淇淋吗？Does Bruno like walking in 2024-05?")
    texts = ["布鲁诺今天吃了巧克力", "他喜欢冰", "Bruno walked there in 2024-05.", "诺", "Nothing of it, 没有"]
    assert shared_terms(texts, asked) == [len({*terms(text)} & {*asked}) for text in texts]
    assert shared_terms(texts, asked)[-1] == 0 < shared_terms(texts, asked)[3]


@pytest.mark.parametrize(
    ("role", "speaker", "text", "embedded"),
    [
        ("user", None, "tea " * 100, "tea " * 100),
        ("assistant", None, "tea " * 100, "tea " * 60),
        ("assistant", None, "茶" * 100, "茶" * 80),
        ("assistant", "Mel", "tea " * 100, "Mel: " + "tea " * 100),
    ],
)
def test_of_an_answer_the_beginning(role: str, speaker: str | None, text: str, embedded: str) -> None:
    assert embedded_text(role, speaker, text) == embedded
