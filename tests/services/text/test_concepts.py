import re

from services.text.concepts import concepts, facets, telling_concepts, word_pattern


def test_words_in_either_language_stand_for_the_same_concept() -> None:
    assert concepts("my physician")["doctor"] == concepts("我的大夫")["doctor"] == 1.0


def test_a_kind_of_something_speaks_of_the_broader_concept_as_well() -> None:
    assert concepts("We have a beagle") == {"dog": 1.0, "pet": 0.5}


def test_the_longest_phrase_counts_and_not_the_words_within_it() -> None:
    assert "mother" not in concepts("my mother-in-law called")
    assert concepts("my mother-in-law called")["inlaws"] == 1.0
    assert concepts("大家好") == {}


def test_traditional_characters_are_folded() -> None:
    assert concepts("我養了一隻貓") == concepts("我养了一只猫")


def test_who_does_something_is_not_what_they_do_it_with() -> None:
    assert "occupation" in concepts("She is a gardener")
    assert "occupation" not in concepts("the garden is lovely")


def test_what_is_asked_of_a_subject_weighs_less_than_the_subject() -> None:
    weights = {facet.terms: facet.weight for facet in facets("What is my puppy called?")}
    assert weights["puppi",] > weights["call",]
    assert telling_concepts("What is my puppy called?") == ["dog"]


def test_a_word_of_many_sentences_weighs_little() -> None:
    weights = {facet.terms: facet.weight for facet in facets("Is the lighthouse always lit?")}
    assert weights["alway",] < weights["lighthous",]


def test_a_text_without_words_is_about_nothing() -> None:
    assert concepts("?!") == {}
    assert facets("…") == ()


def test_a_pattern_matches_the_longest_word_for_a_concept_or_a_kind_of_it() -> None:
    found = re.match(word_pattern("en", "instrument"), "bass guitar in a band")
    assert found
    assert found.group() == "bass guitar"
    assert re.fullmatch(word_pattern("en", "pet"), "beagle")
    assert re.fullmatch(word_pattern("zh", "pet"), "柯基")
    assert not re.match(word_pattern("zh", "pet"), "钢琴")
