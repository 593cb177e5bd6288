"""A proxy that cuts one connection in the middle of an answer, and may be away afterwards."""

import socket
import socketserver
import threading
from typing import Any


class CuttingProxy(socketserver.ThreadingTCPServer):
    """Passes on what comes to its own port; the first connection ends after the word `cut_at`."""

    daemon_threads = True

    def __init__(self, port: int, cut_at: bytes, *, goes_away: bool = False) -> None:
        """Take the port to pass on to, and whether all connections fail after the cut until `is_away` is
        cleared."""
        self._target = ("127.0.0.1", port)
        self._cut_at = cut_at
        self._goes_away = goes_away
        self.cuts = 0
        self.is_away = False
        super().__init__(("127.0.0.1", 0), _Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def pass_on(self, client: socket.socket) -> None:
        """Serve one connection."""
        if self.is_away:
            return
        with socket.create_connection(self._target) as service:
            threading.Thread(target=_copy, args=[client, service], daemon=True).start()
            heard = b""
            while (data := service.recv(4096)) and not self.is_away:
                client.sendall(data)
                heard += data
                if self._cut_at in heard and not self.cuts:
                    self.cuts += 1
                    self.is_away = self._goes_away
                    return


class _Handler(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        server: Any = self.server
        server.pass_on(self.request)


def _copy(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(4096):
            target.sendall(data)
    except OSError:  # it was cut
        pass
