"""The wheel: what it holds, and that it runs beside packages whose names are those of the service's own."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder
from packaging.metadata import Metadata

ROOT = Path(__file__).parents[2]
SERVICE = ("anamnesis_client", "api", "graph", "nodes", "services", "state")
MOST_BYTES = 5_000_000
DECOY = 'raise ImportError("a package of another distribution was imported")\n'


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    (built,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path_factory.mktemp("wheel")))
    return Path(built)


def test_it_holds_every_file_of_the_service_under_one_package(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as opened:
        names = {name for name in opened.namelist() if ".dist-info/" not in name}
    expected = {
        f"anamnesis_agent/{'_root/' if package in SERVICE else ''}{file.relative_to(ROOT / parent).as_posix()}"
        for package, parent in (*((each, "") for each in SERVICE), ("anamnesis_agent", "anamnesis_agent"))
        for file in (ROOT / package).rglob("*")
        if file.is_file() and file.suffix != ".pyc"
    }
    assert names == expected
    assert wheel.stat().st_size <= MOST_BYTES


@pytest.mark.process
def test_the_command_ignores_packages_with_the_same_names(wheel: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    with zipfile.ZipFile(wheel) as opened:
        opened.extractall(site)
    for folder in (site, tmp_path):  # in site-packages, and where the command is typed
        _add_decoys(folder)
    ran = subprocess.run(
        [sys.executable, "-m", "anamnesis_agent", "config"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(site)},
    )
    assert ran.returncode == 0, ran.stderr
    assert "ANAMNESIS_PORT" in ran.stdout


@pytest.mark.parametrize(
    ("package", "needed", "used"),
    [
        ("anamnesis_client", ["httpx"], "anamnesis_client.Anamnesis"),
        (
            "langchain_anamnesis",
            ["anamnesis-client", "langchain-core", "langgraph"],
            "langchain_anamnesis.AnamnesisStore",
        ),
    ],
)
def test_clients_are_wheels_of_their_own_that_need_little(
    package: str, needed: list[str], used: str, tmp_path: Path
) -> None:
    (built,) = WheelBuilder(str(ROOT / package)).build(directory=str(tmp_path))
    with zipfile.ZipFile(built) as opened:
        names = {name for name in opened.namelist() if ".dist-info/" not in name}
        (info,) = {name.split("/")[0] for name in opened.namelist() if ".dist-info/" in name}
        metadata = Metadata.from_email(opened.read(f"{info}/METADATA"), validate=False)
        opened.extractall(tmp_path / "site")
    files = {file.name for file in (ROOT / package).iterdir() if file.is_file()}
    assert names == {f"{package}/{each}" for each in files - {"pyproject.toml", "README.md", "LICENSE"}}
    assert [each.name for each in metadata.requires_dist or () if each.marker is None] == needed
    _add_decoys(tmp_path)
    if package != "anamnesis_client":
        shutil.copytree(ROOT / "anamnesis_client", tmp_path / "site" / "anamnesis_client")
    ran = subprocess.run(
        [sys.executable, "-c", f"import {package}; print({used}.__name__)"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path / "site",
        env={**os.environ, "PYTHONPATH": str(tmp_path / "site")},
    )
    assert ran.stdout.strip() == used.split(".")[1], ran.stderr


def _add_decoys(folder: Path) -> None:
    for name in (*SERVICE, "anamnesis"):  # the last is the package of another distribution on PyPI
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text(DECOY)
