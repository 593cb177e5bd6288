"""An issuer of tokens that publishes its keys."""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

ISSUER = "https://login.example/"
AUDIENCE = "anamnesis"

PRIVATE: dict[str, Any] = {
    "rsa": rsa.generate_private_key(65537, 2048),
    "ec": ec.generate_private_key(ec.SECP256R1()),
    "ed": ed25519.Ed25519PrivateKey.generate(),
    "stranger": rsa.generate_private_key(65537, 2048),
    "short": rsa.generate_private_key(65537, 1024),
}
_WRITERS: dict[str, Any] = {
    "rsa": jwt.algorithms.RSAAlgorithm,
    "ec": jwt.algorithms.ECAlgorithm,
    "ed": jwt.algorithms.OKPAlgorithm,
    "stranger": jwt.algorithms.RSAAlgorithm,
    "short": jwt.algorithms.RSAAlgorithm,
}
_ALGORITHMS = {"rsa": "RS256", "ec": "ES256", "ed": "EdDSA", "stranger": "RS256", "short": "RS256"}


def jwk(name: str, **values: Any) -> dict[str, Any]:
    """A public key as a JWKS has it; its id is its name."""
    public = _WRITERS[name].to_jwk(PRIVATE[name].public_key(), as_dict=True)
    return {**public, "kid": name, **values}


def jwks(*names: str) -> str:
    """A JWKS of these keys."""
    return json.dumps({"keys": [jwk(name) for name in names or ("rsa", "ec", "ed")]})


def public_pem(name: str) -> bytes:
    """A public key as text."""
    written: bytes = PRIVATE[name].public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return written


def claims(**changes: Any) -> dict[str, Any]:
    """Return the claims of a valid token; a change to None removes a claim."""
    now = int(time.time())
    good = {"iss": ISSUER, "aud": AUDIENCE, "sub": "u-1", "exp": now + 60, "scope": "chat memory:read"}
    return {name: value for name, value in {**good, **changes}.items() if value is not None}


def token(key: str = "rsa", *, kid: str | None = "", algorithm: str | None = None, **changes: Any) -> str:
    """Return a token signed with the key; with `kid` None it does not name the key."""
    headers = {} if kid is None else {"kid": kid or key}
    return jwt.encode(claims(**changes), PRIVATE[key], algorithm or _ALGORITHMS[key], headers)


def bearer(credential: str) -> dict[str, str]:
    """The header that carries a key or a token."""
    return {"Authorization": f"Bearer {credential}"}


def key_file(folder: Path, *names: str) -> Path:
    """A file with a JWKS."""
    path = folder / "jwks.json"
    path.write_text(jwks(*names))
    return path


class KeyServer:
    """The address of a JWKS; it counts requests, and can fail or hang."""

    def __init__(self) -> None:
        self.document = jwks()
        self.status = 200
        self.delay_s = 0.0
        self.asked = 0
        ours = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                ours.asked += 1
                status, document = ours.status, ours.document.encode()
                time.sleep(ours.delay_s)
                self.send_response(status)
                self.send_header("Location", "/elsewhere")
                self.send_header("Content-Length", str(len(document)))
                self.end_headers()
                self.wfile.write(document)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/jwks.json"

    def __enter__(self) -> "KeyServer":
        threading.Thread(target=self._server.serve_forever, args=[0.01], daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
