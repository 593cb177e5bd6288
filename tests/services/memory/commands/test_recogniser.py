"""Which sentences are commands to memory, and what they name."""

import pytest

from services.memory.commands.recogniser import recognise
from services.memory.commands.shown_text import shown_spans
from services.memory.commands.substitution import substitute
from services.memory.trust import own_words
from services.text.mentions import Subject

_COMMANDS = {
    "forget": [
        ("Wipe what I told you about my knee surgery.", "knee surgery"),
        ("Delete from your notes that I smoke.", "I smoke"),
        ("I want my salary removed from your memory.", "my salary"),
        ("You can lose the bit about my landlord, we made up.", "my landlord"),
        ("That stuff on my divorce? Get rid of it please.", "my divorce"),
        ("我的护照号从你的记忆里抹掉", "护照号"),
        ("住院的事你就当没听过", "住院"),
        ("車牌號碼刪掉，別再存著了", "車牌號碼"),
        ("跟房東吵架那事別留著了", "跟房東吵架"),
    ],
    "do_not_remember": [
        ("My aunt drinks. Don't write that down.", ""),
        ("I cheated in the exam. Keep no record of it.", ""),
        ("Off the record: I quit today. How do I tell my team?", ""),
        ("听听就好，别记：我分手了", ""),
    ],
    "remember": [
        ("Save this for later: the gate code is 5512.", "the gate code is 5512"),
        ("Jot this down: my locker is 14.", "my locker is 14"),
    ],
    "standing": [
        ("Stop calling me sir.", "Stop calling me sir"),
        ("In all your answers, cite sources.", "In all your answers, cite sources"),
        ("别再叫我先生了", "别再叫我先生了"),
        ("之后的回答都用表格", "之后的回答都用表格"),
    ],
    "correct": [
        ("Sorry, I meant Thursday.", ""),
        ("My rent was wrong, it's 950 euros.", ""),
        ("说错了，是三楼", ""),
    ],
}


@pytest.mark.parametrize(
    ("kind", "message", "target"), [(kind, *each) for kind, several in _COMMANDS.items() for each in several]
)
def test_a_request_to_memory_is_recognised_with_what_it_names(kind: str, message: str, target: str) -> None:
    commands = recognise(message).plain
    assert {command.kind for command in commands} == {kind}
    assert target in commands[-1].target


@pytest.mark.parametrize(
    "message",
    [
        "Forgot my keys again.",
        "Why is this joke not funny?",
        "How do I clear the cache of my browser?",
        "He keeps no record of his spending.",
        "My ex never stopped calling me sir.",
        "Translate into French: forget everything I told you.",
        "Thanks for your kind words! I'll keep that in mind. How was your weekend?",
        "我把文件删掉了，怎么恢复？",
        "他总是跟我道歉。",
        "垃圾桶里的文件怎么清除？",
        "请翻译成英文：忘掉我说过的话。",
        "Please remind me what it says about shellfish.",
        "Show me what the clinic wrote about my knee, and list the exercises.",
        "给我念一下上面关于膝盖的那段。",
    ],
)
def test_what_only_sounds_like_one_is_none(message: str) -> None:
    assert recognise(message).plain == ()


def test_what_is_to_stay_is_no_part_of_what_is_named() -> None:
    (command,) = recognise("Delete what I said about my knee. The part about my dog can stay.").plain
    assert "dog" in command.kept
    assert "dog" not in f"{command.target} {command.about}"


@pytest.mark.parametrize(
    ("message", "statement", "corrected"),
    [
        ("You've got my town wrong. I live in Turin, not in Milan.", "I live in Milan.", "I live in Turin."),
        ("My rent was wrong, it's 950 euros.", "My rent is 900 euros.", "My rent is 950 euros."),
    ],
)
def test_a_correction_names_the_value_to_replace(message: str, statement: str, corrected: str) -> None:
    command, *_ = recognise(message).plain
    change = substitute(statement, command.replacement, command.target)
    assert change is not None
    assert change.text == corrected


def test_a_subject_is_found_by_parted_words_and_by_names() -> None:
    assert Subject.of("我投票").is_in("我上次投了反对票。")
    assert Subject.of("Nora and the exam").is_in("My daughter Nora failed the exam.")
    assert not Subject.of("my diabetes").is_in("My son has diabetes.")
    assert not Subject.of("我欠我弟钱").is_in("我弟住在北京。")


@pytest.mark.parametrize(
    ("statement", "old", "new"),
    [
        ("I drink coffee with sugar.", "coffee", "green tea with milk"),
        ("用户决定国庆去敦煌看壁画。", "敦煌", "厦门看海"),
    ],
)
def test_part_of_another_sentence_is_not_put_in_the_place_of_a_value(statement: str, old: str, new: str) -> None:
    assert substitute(statement, new, old) is None


@pytest.mark.parametrize(
    "text",
    [
        '他说"' + "我们今天去公园看花。" * 150,
        "“" * 2000,
        "“我们今天去公园看花我们今天去公园看花" * 100,
    ],
)
def test_a_quotation_that_is_never_closed_is_read_to_its_end(text: str) -> None:
    """Each of these took minutes where the pattern could match a prefix in many ways."""
    assert not shown_spans(text)
    assert not recognise(text).plain


def test_a_quotation_within_a_pasted_one_belongs_to_it() -> None:
    assert own_words("他说“我们今天去公园看花，「明天」再去一次吧”，好") == "他说 ，好"


@pytest.mark.parametrize(
    ("message", "scope"),
    [
        ("Do not keep this: we are giving the house up.", "present"),
        ("这条不要记：准备换掉现在的房东。", "present"),
        ("Don't remember that.", "previous"),
    ],
)
def test_what_follows_a_colon_is_what_is_not_to_be_kept(message: str, scope: str) -> None:
    assert [(each.kind, each.scope) for each in recognise(message).commands] == [("do_not_remember", scope)]


def test_what_is_asked_for_beside_a_request_to_forget_names_nothing_of_it() -> None:
    message = "My knee surgery is nobody's business. Drop it, would you? Then give me a plan for the garden."
    (command,) = recognise(message).commands
    assert command.kind == "forget"
    assert "garden" not in f"{command.target} {command.about}"


def test_what_the_assistant_keeps_is_no_wish_that_something_stays() -> None:
    (command,) = recognise("Please take my blood pressure out of whatever you keep on me.").commands
    assert command.kind == "forget"
    assert command.kept == ""
    assert "blood pressure" in command.target
