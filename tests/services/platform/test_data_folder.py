"""One service holds a data folder at a time."""

from pathlib import Path

import pytest

from services.errors import ConfigurationError
from services.platform.data_folder import held


def test_a_second_service_is_refused_and_told_who_holds_the_folder(tmp_path: Path) -> None:
    with held(tmp_path), pytest.raises(ConfigurationError, match=rf"{tmp_path} is in use .* \(process \d+\)"):
        held(tmp_path).__enter__()
    with held(tmp_path):
        pass


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(ConfigurationError, match=r"ANAMNESIS_DATA_DIR=.*taken cannot be used"):
        held(tmp_path / "taken").__enter__()
