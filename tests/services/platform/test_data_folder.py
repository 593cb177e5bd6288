"""One service holds a data folder at a time."""

from pathlib import Path

import pytest

from services.errors import ConfigurationError
from services.platform.data_folder import address_of_holder, held

ADDRESS = "http://127.0.0.1:8123"


def test_a_second_service_is_refused_and_told_who_holds_the_folder(tmp_path: Path) -> None:
    with (
        held(tmp_path, ADDRESS),
        pytest.raises(ConfigurationError, match=rf"{tmp_path} is in use .* \(process \d+\)"),
    ):
        held(tmp_path, ADDRESS).__enter__()
    with held(tmp_path, ADDRESS):
        pass


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(ConfigurationError, match=r"ANAMNESIS_DATA_DIR=.*taken cannot be used"):
        held(tmp_path / "taken", ADDRESS).__enter__()


def test_commands_find_the_service_that_holds_a_folder_and_no_service_that_has_ended(tmp_path: Path) -> None:
    assert address_of_holder(tmp_path / "none") is None
    with held(tmp_path, ADDRESS):
        assert address_of_holder(tmp_path) == ADDRESS
    assert address_of_holder(tmp_path) is None
