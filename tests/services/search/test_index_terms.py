from services.search.index_terms import indexed_terms, marked, sought_terms
from services.text.tokenizer import terms

TEXT = "My physician moved to Porto on Friday"


def test_what_is_indexed_comes_back_as_words_concepts_and_features() -> None:
    known = marked(indexed_terms(TEXT, "Ana", "user"), "another text", None, "assistant")
    assert known.terms == tuple(terms(f"Ana: {TEXT}"))
    assert known.concepts["doctor"] == 1.0
    assert {"states", "oneself", "time", "place"} <= known.features


def test_a_row_of_an_older_version_is_read_from_its_text() -> None:
    assert marked(terms(TEXT), TEXT, None, "user") == marked(indexed_terms(TEXT, None, "user"), "", None, "user")


def test_a_question_seeks_the_concept_and_what_is_a_kind_of_it() -> None:
    indexed = set(indexed_terms("We have a beagle", None, "user"))
    assert indexed & set(sought_terms("Which pet do we own?"))
    assert indexed & set(sought_terms("我家的狗几岁了？"))
    assert not indexed & set(sought_terms("What is the capital of Mongolia?"))


def test_digits_in_a_text_stay_words() -> None:
    known = marked(indexed_terms("my code is 0042 and 0b1", None, "user"), "", None, "user")
    assert {"0042", "0b1"} <= set(known.terms)


def test_a_text_without_a_word_is_not_indexed() -> None:
    assert not indexed_terms("?!", None, "user")


def test_a_question_of_oneself_seeks_statements_with_the_kind_of_value_it_asks_for() -> None:
    assert {"0fstates", "0ftime"} <= set(sought_terms("When does my course begin?"))
    assert not any(term.startswith("0f") for term in sought_terms("How do I boil rice?"))
