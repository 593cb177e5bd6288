"""An authorization server of OAuth 2.1 with one user who always agrees: metadata, registration, codes with
PKCE."""

import base64
import hashlib
import json
import secrets
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from tests.support.issuer import jwks, token


class AuthorizationServer:
    """The server, in its own thread; it records what it was asked."""

    def __init__(self, user: str) -> None:
        self.user = user
        self.asked: list[tuple[str, dict[str, str]]] = []
        """Paths and parameters."""
        self._codes: dict[str, dict[str, str]] = {}
        self._refreshing: dict[str, dict[str, str]] = {}
        """Grants by the tokens that renew them."""
        self.lasts_s = 60
        """Seconds for which a token is said to be valid."""
        ours = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer(*ours.read(*self._place()))

            def do_POST(self) -> None:
                path, _ = self._place()
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if path == "/register":
                    self._answer(*ours.register(json.loads(body)))
                else:
                    self._answer(*ours.token({**_parameters(body.decode()), **self._client()}))

            def _client(self) -> dict[str, str]:
                """Return how a program identifies itself in the header."""
                scheme, _, coded = self.headers.get("Authorization", "").partition(" ")
                if scheme != "Basic":
                    return {}
                name, _, secret = base64.b64decode(coded).decode().partition(":")
                return {"client_id": name, "client_secret": secret}

            def _place(self) -> tuple[str, dict[str, str]]:
                parts = urlsplit(self.path)
                return parts.path, _parameters(parts.query)

            def _answer(self, status: int, content: Any) -> None:
                self.send_response(status)
                if status == 302:
                    self.send_header("Location", content)
                body = b"" if status == 302 else json.dumps(content).encode()
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.issuer = f"http://127.0.0.1:{self._server.server_port}"
        self.keys = f"{self.issuer}/jwks.json"

    def __enter__(self) -> "AuthorizationServer":
        threading.Thread(target=self._server.serve_forever, args=[0.01], daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def read(self, path: str, parameters: dict[str, str]) -> tuple[int, Any]:
        """Answer a GET."""
        self.asked.append((path, parameters))
        match path:
            case "/jwks.json":
                return 200, json.loads(jwks())
            case "/.well-known/oauth-authorization-server":
                return 200, {
                    "issuer": self.issuer,
                    "authorization_endpoint": f"{self.issuer}/authorize",
                    "token_endpoint": f"{self.issuer}/token",
                    "registration_endpoint": f"{self.issuer}/register",
                    "response_types_supported": ["code"],
                    "code_challenge_methods_supported": ["S256"],
                }
            case "/authorize":
                code = secrets.token_urlsafe()
                self._codes[code] = parameters
                back = urlencode({"code": code, "state": parameters["state"], "iss": self.issuer})
                return 302, f"{parameters['redirect_uri']}?{back}"
        return 404, {}

    def register(self, client: dict[str, Any]) -> tuple[int, Any]:
        """Register a client that keeps no secret."""
        self.asked.append(("/register", {}))
        return 201, {**client, "client_id": secrets.token_urlsafe(), "token_endpoint_auth_method": "none"}

    def _of_client(self, parameters: dict[str, str]) -> tuple[int, Any]:
        """Check that a program identifies itself with its secret."""
        if (parameters.get("client_id"), parameters.get("client_secret")) != ("desk", "s3cret"):
            return 401, {"error": "invalid_client"}
        granted = token(iss=self.issuer, sub=self.user, scope=parameters["scope"])
        return 200, {"access_token": granted, "token_type": "Bearer", "scope": parameters["scope"]}

    def token(self, parameters: dict[str, str]) -> tuple[int, Any]:
        """Exchange a code once, for a program that knows its verifier."""
        self.asked.append(("/token", parameters))
        if parameters.get("grant_type") == "client_credentials":
            return self._of_client(parameters)
        if parameters.get("grant_type") == "refresh_token":
            return self._granted(self._refreshing.pop(parameters.get("refresh_token", ""), None))
        asked = self._codes.pop(parameters.get("code", ""), None)
        digest = hashlib.sha256(parameters.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        if asked is None or asked["code_challenge"] != challenge:
            return 400, {"error": "invalid_grant"}
        return self._granted({"user": self.user, "scope": asked["scope"]})

    def _granted(self, grant: dict[str, str] | None) -> tuple[int, Any]:
        """Grant something, and a token that renews the grant once."""
        if grant is None:
            return 400, {"error": "invalid_grant"}
        renews = secrets.token_urlsafe()
        self._refreshing[renews] = grant
        granted = token(iss=self.issuer, sub=grant["user"], scope=grant["scope"])
        answer = {
            "access_token": granted,
            "refresh_token": renews,
            "token_type": "Bearer",
            "scope": grant["scope"],
        }
        return 200, {**answer, "expires_in": self.lasts_s}

    def forget_grants(self) -> None:
        """Stop renewing what was granted."""
        self._refreshing.clear()


def _parameters(text: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(text).items()}
