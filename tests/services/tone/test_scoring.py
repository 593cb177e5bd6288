import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.tone import LABELS, LANGUAGES, Language, judged, macro_f1, sentences
from services.tone.lexicon import EMOTIONS, chinese, english, signs
from services.tone.scoring import folded_units, scores_of
from services.tone.weighing import dominant_of


@pytest.mark.parametrize(
    ("text", "heard"),
    [
        ("我很担心明天的面试", "anxiety"),
        ("我很擔心明天的面試", "anxiety"),
        ("我不担心明天的面试", "neutral"),
        ("没那么着急", "neutral"),
        ("一点也不害怕", "neutral"),
        ("能不着急吗", "anxiety"),
        ("从来没这么开心过", "excitement"),
        ("我妈很担心", "neutral"),
        ("他说他很生气", "neutral"),
        ("焦虑症是什么", "neutral"),
        ("翻译：我很害怕", "neutral"),
        ("把“我很害怕”翻译成英文", "neutral"),
        ("I'm so worried about tomorrow", "anxiety"),
        ("I'm not worried about tomorrow", "neutral"),
        ("I don’t feel excited", "neutral"),
        ("I have never been so happy", "excitement"),
        ("How can I not worry?", "anxiety"),
        ("She is worried", "neutral"),
        ("Translate: I am furious", "neutral"),
        ('What does "I am terrified" mean in French', "neutral"),
        ("😡", "frustration"),
        ("We leave tomorrow 🎉", "excitement"),
        ("", "neutral"),
        ("担心，但是谢谢你，我放心多了", "trust"),
    ],
)
def test_what_is_heard(text: str, heard: str) -> None:
    assert dominant_of(scores_of(text)) == heard


@pytest.mark.parametrize(
    ("text", "heard"),
    [
        ("The deadline is urgent, there is pressure and an emergency", "neutral"),
        ("会不会赶紧，压力，危险吗", "neutral"),
        ("Thanks!", "trust"),
        ("Thanks, can you shorten it?", "neutral"),
        ("谢谢，那高铁呢", "neutral"),
        ("Thank you for saving my day, can I ask one more thing?", "trust"),
        ("Are cats happy alone?", "neutral"),
        ("兴奋对心脏好吗", "neutral"),
        ("Why am I so nervous?", "anxiety"),
        ("Who sang Crazy in Love?", "neutral"),
        ("害怕用英语怎么说", "neutral"),
        ("Suggest a game for nervous students", "neutral"),
        ("im sooo worried", "anxiety"),
        ("i dont understand", "confusion"),
        ("It was nerve-wracking", "anxiety"),
        ("My sister is angry", "neutral"),
        ("My boss is driving me up the wall", "frustration"),
        ("They refuse to refund the ticket", "frustration"),
        ("My sister can't really sleep", "neutral"),
        ("I can't really sleep", "anxiety"),
        ("没什么好激动的", "neutral"),
        ("We moved in!", "excitement"),
        ("I need it today!", "neutral"),
        ("Is it done!", "neutral"),
    ],
)
def test_where_a_word_stands_decides_whether_it_is_felt(text: str, heard: str) -> None:
    assert dominant_of(scores_of(text)) == heard


def test_hints_add_to_what_is_felt_but_colour_nothing_by_themselves() -> None:
    plain, with_hints = scores_of("I'm worried"), scores_of("I'm worried, the deadline is urgent")
    assert with_hints["anxiety"] > plain["anxiety"]
    many = " ".join(["deadline urgent debt pressure emergency insomnia"] * 5)
    assert scores_of(many)["anxiety"] == 0


def test_much_is_more_and_a_bit_is_less() -> None:
    for much, plain, little in (
        ("I'm very worried", "I'm worried", "I'm a bit worried"),
        ("我非常担心", "我担心", "我有点担心"),
    ):
        assert scores_of(much)["anxiety"] > scores_of(plain)["anxiety"] > scores_of(little)["anxiety"] > 0


def test_of_a_long_message_the_beginning_and_the_end_are_heard() -> None:
    filler = "word " * 6000
    assert scores_of(f"I'm terrified. {filler}")["anxiety"] > 0.5
    assert scores_of(f"{filler} I'm terrified.")["anxiety"] > 0.5
    assert scores_of(f"{filler} I'm terrified. {filler}")["anxiety"] == 0


@given(st.text(max_size=300))
def test_scores_are_between_0_and_1_whatever_is_said(text: str) -> None:
    scores = scores_of(text)
    assert set(scores) == set(EMOTIONS)
    assert all(0 <= score <= 1 for score in scores.values())


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_sentences_are_heard_as_they_are_labelled(language: Language) -> None:
    tuned, held_out = sentences(language, "tuning"), sentences(language, "held out")
    development = sentences(language, "development")
    unseen = sentences(language, "unseen")
    every = [*tuned, *development, *held_out, *unseen]
    assert len(every) >= 300
    assert {label for label, _ in every} == set(LABELS)
    assert sum(label == "neutral" for label, _ in every) * 4 >= len(every)
    assert macro_f1(judged(tuned)) >= 0.95
    assert macro_f1(judged(development)) >= 0.95
    assert macro_f1(judged(held_out)) >= 0.8
    assert macro_f1(judged(unseen)) >= 0.85
    assert macro_f1(judged(every)) >= 0.9


def test_the_files_hold_no_entry_that_can_never_be_found() -> None:
    for lexicon, joint in ((chinese(), ""), (english(), " ")):
        for phrase in lexicon.entries:
            bare = phrase.strip("^$!? " if joint else "^$!?")
            assert joint.join(folded_units(bare)) == bare, phrase
            assert "$" not in bare, f"{phrase} goes on behind the end of its clause"
        assert {emotion for entry in lexicon.entries.values() for emotion in entry.feelings} == set(EMOTIONS)
    assert {emotion for emotion, _ in signs().values()} == set(EMOTIONS)


def test_a_choice_stands_for_each_of_its_words_and_a_clause_has_a_beginning_and_an_end() -> None:
    entries = english().entries
    assert {"can't cope", "can't calm down"} <= entries.keys()
    assert not any(set(phrase) & set("{|}") for lexicon in (chinese(), english()) for phrase in lexicon.entries)
    assert dominant_of(scores_of("Wrong. Look at the second row")) == "frustration"
    assert dominant_of(scores_of("The wrong bus goes to the lake")) == "neutral"
