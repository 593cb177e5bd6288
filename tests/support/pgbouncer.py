"""PgBouncer in transaction mode in front of a PostgreSQL of the tests."""

import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from services.platform.embedded_postgres import OWNER_ROLE, SERVICE_ROLE, EmbeddedPostgres
from tests.support.folders import new_folder
from tests.support.ports import free_port, wait_for_port

PROGRAM = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")

_CONFIGURATION = """
[databases]
* = host={sockets}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = trust
auth_file = {folder}/users
pool_mode = transaction
default_pool_size = {sessions}
max_client_conn = 500
"""


@contextmanager
def pgbouncer(postgres: EmbeddedPostgres, *, sessions: int = 3) -> Iterator[int]:
    """Run it with this many sessions of the server for each role and database; yield its port."""
    assert PROGRAM is not None
    port = free_port()
    with new_folder() as folder:
        users, configuration = Path(folder) / "users", Path(folder) / "pgbouncer.ini"
        users.write_text("".join(f'"{role}" ""\n' for role in (SERVICE_ROLE, OWNER_ROLE)))
        sockets = postgres.sockets
        configuration.write_text(
            _CONFIGURATION.format(folder=folder, port=port, sockets=sockets, sessions=sessions)
        )
        Path(folder).chmod(0o755)
        # It refuses to run as root, and the folder of the sockets admits only the server's account.
        account = ["-u", pwd.getpwuid(sockets.stat().st_uid).pw_name] if os.getuid() == 0 else []
        process = subprocess.Popen([PROGRAM, "-q", *account, str(configuration)], stderr=subprocess.DEVNULL)
        try:
            wait_for_port(port)
            yield port
        finally:
            process.terminate()
            process.wait(60)
