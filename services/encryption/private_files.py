"""Files that their owner alone may read, such as keys: written durably, and whole or not at all."""

import os
import secrets
from pathlib import Path


def replace_file(path: Path, content: bytes) -> None:
    """Write a file in the place of what is there."""
    _draft(path, content).replace(path)


def make_file(path: Path, content: bytes) -> None:
    """Write a file unless there is one; of two processes at once, one file holds."""
    draft = _draft(path, content)
    try:
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        draft.unlink()


def _draft(path: Path, content: bytes) -> Path:
    draft = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    return draft
