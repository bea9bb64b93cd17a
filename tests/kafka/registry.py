"""A schema registry in memory, with the requests that clients make: what it was given, it gives."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class SchemaRegistry:
    """``url`` is its address. ``subjects``: the ids of each subject. ``refuses``: the status for new schemas."""

    def __init__(self) -> None:
        self.schemas: list[dict[str, Any]] = []
        self.subjects: dict[str, list[int]] = {}
        self.refuses: int | None = None
        self.url = ""

    def answer(self, method: str, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """The status and the answer to a request."""
        match path.partition("?")[0].strip("/").split("/"):
            case ["schemas", "ids", number] if int(number) <= len(self.schemas):
                return 200, self.schemas[int(number) - 1]
            case ["subjects", subject] if method == "POST":
                found = self._known(subject, body)
                said = {"subject": subject, "id": found, "version": 1, **body}
                return (200, said) if found else (404, {"error_code": 40403, "message": "Schema not found"})
            case ["subjects", subject, "versions"] if method == "POST" and self.refuses is None:
                return 200, {"id": self._known(subject, body) or self._added(subject, body)}
            case ["subjects", _, "versions"]:
                return self.refuses or 404, {"error_code": self.refuses, "message": "incompatible with an earlier one"}
        return 404, {"error_code": 40403, "message": "Schema not found"}

    def _known(self, subject: str, schema: dict[str, Any]) -> int | None:
        return next((n for n in self.subjects.get(subject, []) if self.schemas[n - 1] == schema), None)

    def _added(self, subject: str, schema: dict[str, Any]) -> int:
        self.schemas.append(schema)
        self.subjects.setdefault(subject, []).append(len(self.schemas))
        return len(self.schemas)


@contextmanager
def schema_registry() -> Iterator[SchemaRegistry]:
    """A registry that runs in this block."""
    registry = SchemaRegistry()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
            status, said = registry.answer(self.command, self.path, body)
            self.send_response(status)
            self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
            self.end_headers()
            self.wfile.write(json.dumps(said).encode())

        do_POST = do_GET

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    registry.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield registry
    finally:
        server.shutdown()
        server.server_close()
