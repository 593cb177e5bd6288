"""Runs Alembic's migrations: `python -m services.platform.migration_run`, with the owner's address on its input.

The service runs it as a separate process, so that SQLAlchemy and Alembic do not stay in its memory.
"""

import sys
import time
from pathlib import Path
from typing import Any

import psycopg
from alembic import command
from alembic.config import Config
from sqlalchemy.exc import OperationalError

_FOLDER = Path(__file__).parent / "migrations"
_LOCK_TIMEOUT = "SET lock_timeout = '3s'"
_PAUSES_S = (1.0, 2.0, 4.0, 8.0)


def upgrade(owner_url: str) -> None:
    """Apply the migrations. One that cannot lock a table soon lets turns pass and tries again."""

    def connect() -> "psycopg.Connection[tuple[Any, ...]]":
        connection = psycopg.connect(owner_url)
        connection.execute(_LOCK_TIMEOUT)
        connection.commit()
        return connection

    for pause_s in (*_PAUSES_S, None):
        try:
            return run("head", connect=connect)
        except OperationalError as error:
            if pause_s is None or not isinstance(error.orig, psycopg.errors.LockNotAvailable):
                raise
        time.sleep(pause_s)
    return None


def run(revision: str, **attributes: object) -> None:
    """Apply the migrations up to a revision, or `head`; `attributes` are passed to `migrations/env.py`."""
    config = Config()
    config.set_main_option("script_location", str(_FOLDER))
    config.attributes.update(attributes)
    command.upgrade(config, revision)


if __name__ == "__main__":
    upgrade(sys.stdin.read())
