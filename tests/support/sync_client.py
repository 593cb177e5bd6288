"""The synchronous client, made from the asynchronous one; run as a program, it writes the file."""

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import unasync  # type: ignore[import-untyped]

CLIENT = Path(__file__).parents[2] / "anamnesis_client"
_NAMES = {
    "AsyncAnamnesis": "Anamnesis",
    "AsyncClient": "Client",
    "AsyncIterable": "Iterable",
    "AsyncIterator": "Iterator",
    "asyncio": "time",
    "asynccontextmanager": "contextmanager",
    "aclose": "close",
    "aiter": "iter",
    "aread": "read",
    "aiter_bytes": "iter_bytes",
}
_FIRST = '"""The client for programs with an event loop; `synchronous.py` is the same without."""'
_FIRST_OF_SYNC = (
    '"""The client without an event loop: made from `asynchronous.py` by `make client`, not by hand."""'
)


def synchronous_client() -> str:
    with TemporaryDirectory() as folder:
        made = Path(folder) / "synchronous.py"
        source = Path(folder) / "source" / "synchronous.py"
        source.parent.mkdir()
        source.write_text((CLIENT / "asynchronous.py").read_text(encoding="utf-8"), encoding="utf-8")
        rule = unasync.Rule(f"{source.parent}/", f"{made.parent}/", additional_replacements=_NAMES)
        unasync.unasync_files([str(source)], [rule])
        text = made.read_text(encoding="utf-8").replace(_FIRST, _FIRST_OF_SYNC)
    project = CLIENT.parent / "pyproject.toml"
    ruff = [sys.executable, "-m", "ruff"]
    for arguments in (["check", "--select", "I,UP028", "--fix", "--unsafe-fixes", "--quiet"], ["format"]):
        command = [
            *ruff,
            *arguments,
            "--config",
            str(project),
            "--stdin-filename",
            "anamnesis_client/made.py",
            "-",
        ]
        text = subprocess.run(
            command, input=text, capture_output=True, text=True, check=True, cwd=project.parent
        ).stdout
    return text


if __name__ == "__main__":
    (CLIENT / "synchronous.py").write_text(synchronous_client(), encoding="utf-8")
