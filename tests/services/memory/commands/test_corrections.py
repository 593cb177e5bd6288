"""Which piece of memory a correction changes, and which messages change none."""

from datetime import UTC, datetime
from uuid import UUID, uuid4

import pytest

from services.memory.commands.corrections import Correction, correction_of
from services.memory.commands.holdings import Holdings, Place
from services.memory.commands.pieces import Stored, pieces
from services.memory.commands.recogniser import recognise
from services.memory.commands.substitution import substitute
from services.memory.commands.targets import sought_by

_UNRELATED = [
    "My sister plays the cello.",
    "I'm allergic to penicillin.",
    "We go camping with the scouts in Wales.",
    "The cat is called Pepper.",
    "I drive a forklift at the harbour.",
]
_UNRELATED_IN_CHINESE = ["我妹妹拉大提琴。", "我对青霉素过敏。", "猫叫胡椒。", "我在港口开叉车。"]


def _stored(text: str) -> Stored:
    return Stored("message", uuid4(), UUID(int=1), uuid4(), "user", text, datetime(2026, 11, 1, tzinfo=UTC))


def _corrected(message: str, told: list[str]) -> Correction | None:
    holdings = Holdings([_stored(text) for text in told], [])
    found = (
        correction_of(command, holdings.likely(sought_by(command, message)), [], message)
        for command in recognise(message).commands
        if command.kind == "correct"
    )
    return next((each for each in found if each is not None), None)


@pytest.mark.parametrize(
    ("message", "old", "left"),
    [
        (
            "The dentist moved it to Thursday at ten.",
            "Dentist on Tuesday at nine.",
            "Dentist on Thursday at ten.",
        ),
        ("My rent is now 950 euros.", "My rent is 900 euros.", "My rent is 950 euros."),
    ],
)
def test_news_takes_the_place_of_what_was_told_before(message: str, old: str, left: str) -> None:
    found = _corrected(message, [*_UNRELATED, old])
    assert found is not None
    assert found.change is not None
    assert found.change.text == left
    assert found.place.text == old


@pytest.mark.parametrize(
    "message",
    [
        "Actually the marathon is in September.",
        "What time is the dentist on Thursday?",
        "Please correct the mistakes: yesterday I goed to the bakery.",
        "If I moved to Leeds, would the rent be lower?",
        "My neighbour got a new dog on Thursday.",
        "Had soup for lunch, it was lovely.",
        "Canoe step 4: I sanded plank number 4.",
    ],
)
@pytest.mark.parametrize(
    "told",
    [
        ["I run a small bakery."],
        ["I run a small bakery.", *_UNRELATED],
        ["Canoe step 3: I sanded plank number 3."],
    ],
)
def test_what_is_about_something_else_changes_nothing(message: str, told: list[str]) -> None:
    assert _corrected(message, told) is None


@pytest.mark.parametrize("message", ["其实马拉松是九月。", "牙医周四几点开门？", "邻居周四买了条狗。"])
def test_what_is_about_something_else_changes_nothing_in_chinese(message: str) -> None:
    assert _corrected(message, ["我开了家小面包店。", *_UNRELATED_IN_CHINESE]) is None


@pytest.mark.parametrize("request_", ["Book the dentist for Tuesday at nine?", "What is on Tuesday at nine?"])
def test_a_request_is_never_corrected(request_: str) -> None:
    assert _corrected("Sorry, I meant Thursday for the dentist.", [request_]) is None


def test_what_follows_an_old_value_is_no_part_of_it() -> None:
    found = _corrected(
        "No, it's not maize on the big field, it's barley.", ["I sow maize on three acres.", *_UNRELATED]
    )
    assert found is not None
    assert found.change is not None
    assert found.change.text == "I sow barley on three acres."


def test_a_denied_name_in_latin_letters_is_found_within_chinese_words() -> None:
    found = _corrected("不是Lisa，是Nina，我打错了。", ["我同桌叫Lisa，坐窗边。", *_UNRELATED_IN_CHINESE])
    assert found is not None
    assert found.change is not None
    assert found.change.text.startswith("我同桌叫Nina")


@pytest.mark.parametrize(
    ("message", "told", "corrected"),
    [
        ("Correction, it is 640 euros.", "The deposit for the flat is 460 euros.", "640 euros"),
        ("我说错了，押金是六百四十块。", "这间房押金四百六十块。", "六百四十块"),
        ("I got that wrong: make that 110 people, not 85.", "The street party is for 85 people.", "110 people"),
        ("我说的86不对，奶奶今年88。", "奶奶今年86了。", "88"),
    ],
)
def test_a_sure_correction_replaces_the_only_value_of_its_kind(message: str, told: str, corrected: str) -> None:
    unrelated = _UNRELATED if told.isascii() else _UNRELATED_IN_CHINESE
    found = _corrected(message, [told, *unrelated])
    assert found is not None
    assert found.change is not None
    assert corrected in found.change.text


@pytest.mark.parametrize(("statement", "new"), [("边框要留5mm。", "第三版"), ("The strap is 20mm wide.", "35kg")])
def test_a_number_does_not_take_the_place_of_one_with_another_unit(statement: str, new: str) -> None:
    assert substitute(statement, new) is None


@pytest.mark.parametrize(
    ("statement", "new", "old", "left"),
    [
        ("每月最后一个周三盘点。", "第三个周五", "", "每月第三个周五盘点。"),
        ("The vet comes on the first Tuesday.", "third Friday", "", "The vet comes on the third Friday."),
        ("我跑宁波到温州的船。", "宁波到台州", "温州", "我跑宁波到台州的船。"),
        ("The ferry goes from Oban to Mull.", "Oban to Islay", "Mull", "The ferry goes from Oban to Islay."),
    ],
)
def test_a_value_is_replaced_as_a_whole_and_no_word_stands_twice(
    statement: str, new: str, old: str, left: str
) -> None:
    change = substitute(statement, new, old)
    assert change is not None
    assert change.text == left


def test_a_time_does_not_take_the_place_of_a_thing() -> None:
    assert substitute("The ladder is in the shed.", "Friday evening", "shed") is None


def test_a_doubtful_denial_of_a_common_word_changes_nothing() -> None:
    message = "Suggest a garden plant: not tall, not blue, not sold by a supermarket."
    assert _corrected(message, ["My tall cousin bakes bread.", *_UNRELATED]) is None


@pytest.mark.parametrize(
    ("statement", "denied", "left"),
    [
        ("We deliver to Ghent and to Liège.", "Ghent", "We deliver to Liège."),
        ("We deliver to Ghent and to Liège.", "Liège", "We deliver to Ghent."),
        ("I play with Ann, with Bob and with Cleo.", "Bob", "I play with Ann and with Cleo."),
    ],
)
def test_what_leads_to_each_member_of_a_list_goes_with_the_member(statement: str, denied: str, left: str) -> None:
    change = substitute(statement, "", denied)
    assert change is not None
    assert change.text == left


@pytest.mark.parametrize(
    ("message", "told", "left"),
    [
        (
            "Actually a ticket is $9.20, I gave you the old price.",
            ["Our museum opens at 8 and the ticket costs $7.50."],
            "and the ticket costs $9.20.",
        ),
        (
            "Sorry, I got that wrong, there are 41 of us in the orchestra.",
            ["I book rooms for the orchestra, we're 38 players.", "The hall is 60 a night."],
            "we're 41 players.",
        ),
        (
            "刚问了我爸，是5100",
            ["我爷爷退休金一个月4800，都存着。", "他想买一根鱼竿。"],
            "我爷爷退休金一个月5100，",
        ),
    ],
)
def test_of_several_values_that_is_replaced_which_has_the_same_form_or_stands_in_the_text_meant(
    message: str, told: list[str], left: str
) -> None:
    found = _corrected(message, told)
    assert found is not None
    assert found.change is not None
    assert found.change.text.strip() == left


def test_what_was_misspelt_just_before_is_replaced_wherever_else_the_message_points() -> None:
    message = "Sorry, she's a labradoodle, I always write it wrong."
    stored = _stored("The puppy's a labradodle, nine weeks old, called Juniper.")
    holdings = Holdings([_stored(text) for text in _UNRELATED] + [stored], [], [stored])
    said = [Place(stored, at, part) for at, part in enumerate(pieces(stored.content))]
    found = [
        correction_of(command, holdings.likely(sought_by(command, message)), said, message)
        for command in recognise(message).commands
    ]
    changes = [each.change.text.strip() for each in found if each and each.change]
    assert changes[0] == "The puppy's a labradoodle,"
