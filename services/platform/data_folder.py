"""The data folder of the embedded engines: one service holds it at a time, and says where it listens."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from services.errors import ConfigurationError

_LOCK = "service.lock"
_TRIES, _LOOK_S = 5, 0.02
"""Attempts and seconds between them; a command that looks for the service also holds the file for a moment."""


@contextmanager
def held(data_dir: Path, address: str) -> Iterator[None]:
    """Hold the folder; the kernel releases it when the process ends, however it ends.

    Args:
        data_dir: The folder.
        address: Where the service listens, for commands that look for it.

    Raises:
        ConfigurationError: Another service holds the folder, or it cannot be written to.
    """
    folder = data_dir.resolve()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / _LOCK).open("a+")
    except OSError as error:
        raise unusable(data_dir, error) from None
    with lock:
        if not _taken(lock):
            lock.seek(0)
            process = lock.readline().strip()
            raise ConfigurationError(
                f"ANAMNESIS_DATA_DIR={folder} is in use by another service (process {process}). "
                f"Stop that one, or give this one another folder; several processes start with --workers."
            )
        lock.truncate(0)
        lock.write(f"{os.getpid()}\n{address}\n")
        lock.flush()
        yield


def address_of_holder(data_dir: Path) -> str | None:
    """Return where the service listens that holds the folder; None if none does."""
    try:
        lock = (data_dir / _LOCK).open()
    except OSError:
        return None
    with lock:
        if _locked(lock, fcntl.LOCK_SH):
            return None
        return lock.read().partition("\n")[2].strip() or None


def _taken(lock: TextIO) -> bool:
    """Hold the file for good; return whether that was possible."""
    for _ in range(_TRIES):
        if _locked(lock, fcntl.LOCK_EX):
            return True
        time.sleep(_LOOK_S)
    return False


def _locked(lock: TextIO, how: int) -> bool:
    """Take a lock unless somebody has one that excludes it; return whether that was possible."""
    try:
        fcntl.flock(lock, how | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def unusable(data_dir: Path, error: OSError) -> ConfigurationError:
    """Return the error for a folder that the system refuses to let the service use."""
    return ConfigurationError(
        f"ANAMNESIS_DATA_DIR={data_dir.resolve()} cannot be used: {error.strerror}. Make it writable and see that "
        f"there is space, or set another folder."
    )
