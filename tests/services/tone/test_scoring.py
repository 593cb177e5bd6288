import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.tone.lexicon import EMOTIONS, chinese, english, signs
from services.tone.scoring import folded_units, scores_of
from services.tone.turn_tone import dominant_of


@pytest.mark.parametrize(
    ("text", "heard"),
    [
        ("我很担心明天的面试", "anxiety"),
        ("我很擔心明天的面試", "anxiety"),
        ("我不担心明天的面试", "neutral"),
        ("没那么着急", "neutral"),
        ("一点也不害怕", "neutral"),
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
        ("会有危险吗", "neutral"),
        ("Thanks!", "neutral"),
        ("Thanks, can you shorten it?", "neutral"),
        ("谢谢，那高铁呢", "neutral"),
        ("Thank you so much, can I ask one more thing?", "neutral"),
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
        ("They refuse to refund the ticket, I am so annoyed", "frustration"),
        ("My sister can't sleep", "neutral"),
        ("I can't sleep", "anxiety"),
        ("没什么好激动的", "neutral"),
        ("We moved in!", "neutral"),
        ("I need it today!", "neutral"),
        ("Is it done!", "neutral"),
    ],
)
def test_where_a_word_stands_decides_whether_it_is_felt(text: str, heard: str) -> None:
    assert dominant_of(scores_of(text)) == heard


@pytest.mark.parametrize(
    "task",
    [
        "Write a complaint about a hotel room that was disgusting. I was furious!",
        "Classify the review as positive or negative.\nThe worst film ever, I hated it!",
        "Please translate into German: I am so excited, I can't wait!",
        "What is the difference between fear and anxiety?",
        "How do I hide the sidebar in my editor?",
        "Are cats afraid of water?",
        "写一封投诉信，说我对服务非常失望，太气人了！",
        "把下面的话翻译成英文：我好害怕",
        "请判断这条评论的情感：太差劲了，再也不来了！",
        "恐惧和焦虑的区别是什么？",
        "函数崩溃了，怎么定位",
        "為什麼貓會害怕黃瓜？",
    ],
)
def test_a_task_and_its_material_are_no_feeling(task: str) -> None:
    assert dominant_of(scores_of(task)) == "neutral"


@pytest.mark.parametrize(
    ("text", "heard"),
    [
        ("I'm so stressed about the move. Write me a packing list.", "anxiety"),
        ("Why am I so anxious before every flight?", "anxiety"),
        ("压力好大，帮我列个复习计划", "anxiety"),
        ("为什么我总是这么焦虑", "anxiety"),
        ("This is so annoying! Explain it again.", "frustration"),
    ],
)
def test_a_feeling_told_before_a_task_or_asked_about_oneself_is_heard(text: str, heard: str) -> None:
    assert dominant_of(scores_of(text)) == heard


@pytest.mark.parametrize(
    "question",
    [
        "What am I afraid of?",
        "Which vegetable do I hate?",
        "ten days ago we spoke about Lisbon, what were my worries?",
        "remind me what I told you last Friday",
        "我害怕什么动物",
        "哪种菜我最讨厌？",
        "谁让我很失望",
        "打印机卡纸怎么办",
    ],
)
def test_a_question_for_a_fact_is_no_feeling_even_if_the_fact_is_one(question: str) -> None:
    assert dominant_of(scores_of(question)) == "neutral"


@pytest.mark.parametrize("text", ["我一个月一万一", "空气炸锅多少钱", "我信用卡还了", "我押金交了多少来着"])
def test_part_of_a_longer_word_is_no_feeling(text: str) -> None:
    assert dominant_of(scores_of(text)) == "neutral"


def test_what_others_feel_adds_to_a_feeling_and_makes_none() -> None:
    assert scores_of("I'm worried, and my mother is worried too")["anxiety"] > scores_of("I'm worried")["anxiety"]
    assert scores_of("My mother is worried sick, and they are all scared")["anxiety"] == 0


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


def test_the_files_hold_no_entry_that_can_never_be_found() -> None:
    for lexicon, joint in ((chinese(), ""), (english(), " ")):
        for phrase in lexicon.entries:
            bare = phrase.strip("^$!? " if joint else "^$!?")
            assert joint.join(folded_units(bare)) == bare, phrase
            assert "$" not in bare, f"{phrase} goes on behind the end of its clause"
        assert {emotion for entry in lexicon.entries.values() for emotion in entry.feelings} == set(EMOTIONS)
    assert {emotion for emotion, _ in signs().values()} == set(EMOTIONS)


def test_a_choice_stands_for_each_of_its_words() -> None:
    entries = english().entries
    assert {"can't cope", "can't calm down"} <= entries.keys()
    assert not any(set(phrase) & set("{|}") for lexicon in (chinese(), english()) for phrase in lexicon.entries)
