"""A file that says something wrong is refused with its name and the place; the page on the format is true."""

from collections import Counter
from pathlib import Path

import pytest

from tests.scenarios import dialogue as format_of
from tests.scenarios.dialogue import KINDS, Strict
from tests.scenarios.loading import FOLDER, BadDialogue, dialogue_files, load, parse

PAGE = Path(__file__).parent / "README.md"
HEAD = 'title = "T"\nlanguage = "en"\nthemes = ["t"]\n'
STEP = '[[step]]\nsay = "Hi"\n'
RIGHT = f'{HEAD}{STEP}expect.answer = "Hi"\n'


def test_a_right_file_is_read() -> None:
    assert parse(RIGHT, "right.toml").step[0].expect.answer == "Hi"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (RIGHT.replace("title", "titel"), "titel"),
        (RIGHT.replace('"en"', '"fr"'), "language"),
        (RIGHT.replace('["t"]', "[]"), "themes"),
        (RIGHT.replace("say", "says"), "step 1: a step has exactly one of"),
        (f'{RIGHT}sql = "SELECT 1"\n', "step 1: a step has exactly one of"),
        (f'{RIGHT}mode = "x"\n', "step 1: mode"),
        (RIGHT.replace("expect.answer", "expect.anwser"), "step 1: expect.anwser"),
        (f'{HEAD}{STEP}expect.prompt = [{{ part = "middle" }}]\n', "step 1: expect.prompt.0.part"),
        (f'{HEAD}{STEP}model = {{ txt = "Hi" }}\n{STEP}expect.answer = "Hi"\n', "step 1: model.0.txt"),
        (f"{HEAD}{STEP}", "could not fail"),
        (f"{HEAD}{STEP}[step.expect]\n", "step 1: its expectations are empty"),
        (f"{RIGHT}within_s = 3\n", "step 1: within_s"),
        (f'{HEAD}[[small]]\ntext = "x"\n{STEP}expect.answer = "Hi"\n', "small.0.when"),
        (HEAD, "step: List should have at least 1"),
        (f'{HEAD}step = "none"\n', "[[step]]"),
        (f"{HEAD}[[step\n", "bad.toml"),
    ],
)
def test_a_wrong_file_is_refused_with_its_place(text: str, says: str) -> None:
    with pytest.raises(BadDialogue) as refused:
        parse(text, "bad.toml")
    assert str(refused.value).startswith("bad.toml")
    assert says in str(refused.value)


def test_every_file_is_found_once_and_says_its_language() -> None:
    files = dialogue_files()
    assert len(files) == len(list(FOLDER.rglob("*.*")))
    assert [name for name, count in Counter(path.stem for path in files).items() if count > 1] == []
    for path in files:
        assert path.stem.endswith(f"-{load(path).language}"), path


def test_the_page_names_every_key() -> None:
    page = PAGE.read_text(encoding="utf-8")
    tables = [each for each in vars(format_of).values() if isinstance(each, type) and issubclass(each, Strict)]
    keys = {field.alias or name for table in tables for name, field in table.model_fields.items()}
    assert sorted(key for key in keys | set(KINDS) if f"`{key}`" not in page) == []


def test_the_example_of_the_page_is_a_file() -> None:
    example = PAGE.read_text(encoding="utf-8").split("```toml\n")[1].split("```")[0]
    assert example in [path.read_text(encoding="utf-8") for path in dialogue_files()]
