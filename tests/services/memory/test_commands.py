"""Which sentences are commands to memory, and what they name."""

import pytest

from services.memory.commands import recognise
from services.memory.mentions import Subject
from services.memory.substitution import substitute

_COMMANDS = {
    "forget": [
        ("Wipe what I told you about my knee surgery.", "my knee surgery"),
        ("Delete from your notes that I smoke.", "I smoke"),
        ("Stop keeping track of my weight.", "my weight"),
        ("Don't hold on to my passport number any more.", "my passport number"),
        ("I want my salary removed from your memory.", "my salary"),
        ("Forget it, I shouldn't have told you my rent.", "my rent"),
        ("我的护照号从你的记忆里抹掉", "我的护照号"),
        ("住院的事你就当没听过", "住院"),
        ("車牌號碼刪掉，別再存著了", "車牌號碼"),
        ("贷款的事不算数了，帮我从记忆里去掉", "贷款"),
    ],
    "do_not_remember": [
        ("My aunt drinks. Don't write that down.", ""),
        ("I cheated in the exam. Keep no record of it.", ""),
        ("This stays here and out of your notes: I quit today.", ""),
        ("我被老板骂哭了，你别往记忆里写", ""),
        ("听听就好，别记：我分手了", ""),
    ],
    "remember": [
        ("Save this for later: the gate code is 5512.", "the gate code is 5512"),
        ("Jot this down: my locker is 14.", "my locker is 14"),
        ("備忘：房租每月五號交", "房租每月五號交"),
        ("我的鞋码你记好，39码", "我的鞋码你记好，39码"),
    ],
    "standing": [
        ("Stop calling me sir.", "Stop calling me sir"),
        ("In all your answers, cite sources.", "In all your answers, cite sources"),
        ("Don't ever bring up my divorce again.", "Don't ever bring up my divorce again"),
        ("别再叫我先生了", "别再叫我先生了"),
        ("之后的回答都用表格", "之后的回答都用表格"),
    ],
}


@pytest.mark.parametrize(
    ("kind", "message", "target"), [(kind, *each) for kind, several in _COMMANDS.items() for each in several]
)
def test_a_request_to_memory_is_recognised_with_what_it_names(kind: str, message: str, target: str) -> None:
    found = [(command.kind, command.target) for command in recognise(message).plain]
    assert (kind, target) in found


@pytest.mark.parametrize(
    "message",
    [
        "Forgot my keys again.",
        "Why is this joke not funny?",
        "How do I clear the cache of my browser?",
        "He keeps no record of his spending.",
        "My ex never stopped calling me sir.",
        "我把文件删掉了，怎么恢复？",
        "他总是跟我道歉。",
        "垃圾桶里的文件怎么清除？",
    ],
)
def test_what_only_sounds_like_one_is_none(message: str) -> None:
    assert recognise(message).plain == ()


@pytest.mark.parametrize(
    ("message", "statement", "corrected"),
    [
        ("I don't live in Oslo any more, I live in Bergen.", "I live in Oslo.", "I live in Bergen."),
        ("You've got my town wrong. I live in Turin, not in Milan.", "I live in Milan.", "I live in Turin."),
        (
            "I'm not allergic to eggs after all, only to nuts.",
            "I'm allergic to eggs and nuts.",
            "I'm allergic to nuts.",
        ),
        ("My rent was wrong, it's 950 euros.", "My rent is 900 euros.", "My rent is 950 euros."),
        ("我不在海尔了，在美的上班。", "我在海尔上班。", "我在美的上班。"),
        ("我对鸡蛋不过敏，只对花生过敏。", "我对鸡蛋和花生过敏。", "我对花生过敏。"),
        ("你把我住的地方记错了，我住大连。", "我住在青岛。", "我住在大连。"),
    ],
)
def test_a_correction_names_the_value_to_replace(message: str, statement: str, corrected: str) -> None:
    (command,) = recognise(message).plain
    old = command.target if command.scope == "stated" else ""
    change = substitute(statement, command.replacement, old, freely=command.explicit)
    assert change is not None
    assert change.text == corrected


def test_a_subject_is_found_by_parted_words_by_names_and_by_its_concept() -> None:
    assert Subject.of("我投票").is_in("我上次投了反对票。")
    assert Subject.of("Nora and the exam").is_in("My daughter Nora failed the exam.")
    assert not Subject.of("my diabetes").is_in("My son has diabetes.")
    assert Subject.of("my address").is_meant_in("I live at 12 Hill Road.")
    assert not Subject.of("我欠我弟钱").is_in("我弟住在北京。")


@pytest.mark.parametrize(
    ("statement", "old", "new"),
    [
        ("I drink coffee with sugar.", "coffee", "green tea with milk"),
        ("用户决定国庆去敦煌看壁画。", "敦煌", "厦门看海"),
    ],
)
def test_part_of_another_sentence_is_not_put_in_the_place_of_a_value(statement: str, old: str, new: str) -> None:
    assert substitute(statement, new, old, freely=False) is None
