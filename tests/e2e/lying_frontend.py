#!/usr/bin/env python3
"""lying_frontend.py serve MODEL ... --port N - looks like a frontend to `vtwin conform`
and answers with tokens of its own. LIE says how: tokens, refuse, cut, crash, mute."""
import http.server
import json
import os
import sys

LIE = os.environ["LIE"]


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *args):
        pass

    def do_GET(self):
        self.send_response(503 if LIE == "mute" else 200)
        self.end_headers()

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if LIE == "refuse":
            self.send_response(400)
            self.end_headers()
            self.wfile.write(b'{"error":{"message":"I do not like it"}}')
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        ids = [1] * body["max_tokens"]
        for chunk in ({"token_ids": ids[:1]}, {"token_ids": ids[1:], "finish_reason": "length"}):
            self.wfile.write(b"data: " + json.dumps({"choices": [chunk]}).encode() + b"\n\n")
            if LIE == "cut":
                return
        self.wfile.write(b"data: [DONE]\n\n")


if LIE == "crash":
    sys.exit("cannot go on")
port = int(sys.argv[sys.argv.index("--port") + 1])
http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
