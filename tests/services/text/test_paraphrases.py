"""Statements say the same in other words where no word that tells something is apart, and none is swapped."""

import pytest

from services.text.paraphrases import differ_in_sense, say_the_same

SAME = [
    ("Goes to the gym on Mondays", "On Mondays attends the gym"),
    ("Mother is from Chile", "Mum is from Chile"),
    ("Owns a blue tent", "Has a blue tent"),
    ("周末喜欢去钓鱼", "喜欢周末去钓鱼"),
    ("星期一去健身房", "周一上健身房"),
]
OTHER = [
    ("Likes green tea", "Likes black tea"),
    ("Prefers tea over coffee", "Prefers coffee over tea"),
    ("Paul likes Maria", "Maria likes Paul"),
    ("Taught Peter to drive", "Was taught to drive by Peter"),
    ("Was in Peru", "Is in Peru"),
    ("Is a teacher", "Has a teacher"),
    ("Has her car", "Has his car"),
    ("妻子的生日是5月4日", "儿子的生日是5月4日"),
    ("因为头痛吃药", "妈妈因为头痛吃药"),
    ("小王喜欢小李", "小李喜欢小王"),
    ("吃肉", "不吃肉"),
    ("Likes tea", "喜欢茶"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_the_same_in_other_words(one: str, other: str) -> None:
    assert say_the_same(one, other)
    assert say_the_same(other, one)
    assert not differ_in_sense(one, other)


@pytest.mark.parametrize(("one", "other"), OTHER)
def test_something_else_in_nearly_the_same_words(one: str, other: str) -> None:
    assert not say_the_same(one, other)
    assert not say_the_same(other, one)
