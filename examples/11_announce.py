"""A call to a web hook for each hour of local time that is complete, on the day on which the clocks are put back.

The hour from 02:00 to 03:00 comes twice. No Spark is needed; the stream could be the output of a query. `rowtime
announce` does the same from a shell.

It prints:

    hook: 2026-10-25T01:00:00+02:00 is complete
    hook: 2026-10-25T02:00:00+02:00 is complete
    hook: 2026-10-25T02:00:00+01:00 is complete
    announced: 3
    hook: 2026-10-25T03:00:00+01:00 is complete
    announced: 1
"""

import json
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import spark_rowtime as rt


class Hook(BaseHTTPRequestHandler):
    """The receiver. It would note the period in `start`, since the same one may come again."""

    def do_POST(self) -> None:
        period = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        print("hook:", period["start"], "is complete")
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def main() -> None:
    stream = str(Path(tempfile.mkdtemp(prefix="rowtime-")) / "orders.rowtime")
    rt.createStream(stream, "rowtime TIMESTAMP NOT NULL, units INT")
    hook = HTTPServer(("127.0.0.1", 0), Hook)
    threading.Thread(target=hook.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{hook.server_port}/hours"
    with rt.openSink(stream, producer="shop", tz="Europe/Berlin") as sink:
        sink.sendRow(("2026-10-25T01:40:00", 1))
        for bound in ("2026-10-25T03:10:00", "2026-10-25T04:00:00"):
            sink.sendRowtimeBound(bound)
            sink.flush()
            print("announced:", rt.announceTo(stream, url, every="1 hour", tz="Europe/Berlin"))
    hook.shutdown()


if __name__ == "__main__":
    main()
