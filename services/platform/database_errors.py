"""Errors of PostgreSQL's driver as advice: why a database cannot be reached, and what an operator can do."""

import re
from contextlib import suppress

import psycopg
from psycopg.conninfo import conninfo_to_dict

_PATIENCE_S = 5
# Servers say it in the language of their `lc_messages`.
_PASSWORD = re.compile(r"password authentication failed|no password supplied|密码|口令", re.IGNORECASE)
_NO_DATABASE = re.compile(r"database \"?[^\"\n]{1,80}\"? does not exist|数据库.{0,80}不存在", re.IGNORECASE)
_NO_ROLE = re.compile(r"role \"?[^\"\n]{1,80}\"? does not exist|角色.{0,80}不存在", re.IGNORECASE)
_NOT_ADMITTED = re.compile(r"pg_hba\.conf", re.IGNORECASE)
_NO_HOST = re.compile(r"resolve host|translate host name|name or service not known|getaddrinfo", re.IGNORECASE)
_REFUSED = re.compile(r"connection refused|no such file or directory", re.IGNORECASE)
_SLOW = re.compile(r"timeout|timed out", re.IGNORECASE)


def why_away(url: str, setting: str) -> str | None:
    """Connect once more and return why that fails; None if it works. It blocks for at most five seconds."""
    try:
        psycopg.connect(url, connect_timeout=_PATIENCE_S).close()
    except psycopg.Error as error:
        return sentence(str(error), url, setting)
    return None


def sentence(said: str, url: str, setting: str) -> str:
    """Return what the operator can do about the driver's message."""
    parts: dict[str, object] = {}
    with suppress(psycopg.Error):
        parts = dict(conninfo_to_dict(url))
    user, database = parts.get("user", ""), parts.get("dbname") or parts.get("user", "")
    where = f"{parts.get('host') or 'localhost'}:{parts.get('port') or 5432}"
    for pattern, what in (
        (_NO_DATABASE, f"there is no database {database!r} at {where}; create it, or name another one"),
        (_NO_ROLE, f"there is no role {user!r} at {where}; create it, or name another one"),
        (_PASSWORD, f"{where} refuses the password of the role {user!r}"),
        (_NOT_ADMITTED, f"{where} does not admit the role {user!r} from here (pg_hba.conf)"),
        (_NO_HOST, f"the host {parts.get('host')!r} is not known"),
        (_REFUSED, f"nothing listens at {where}; is PostgreSQL running there?"),
        (_SLOW, f"{where} does not answer within {_PATIENCE_S} seconds"),
    ):
        if pattern.search(said):
            return f"{setting}: {what}{'' if what.endswith('?') else '.'}"
    return f"{setting}: {said.strip().splitlines()[-1]}"
