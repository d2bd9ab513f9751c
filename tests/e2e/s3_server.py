#!/usr/bin/env python3
"""s3_server.py DIR ACCESS_KEY SECRET_KEY [SESSION_TOKEN] - a small S3 for tests.

Serves DIR/BUCKET/KEY by path on a free loopback port, whose number is the first line of
output. Every request must carry an AWS4-HMAC-SHA256 signature, which is computed again
here from the bytes that came, by the text of AWS's description and by no library.
Some keys make it misbehave: slow/KEY, redirect/KEY, cut/KEY, plain/KEY (an error that is
no XML).
"""
import datetime
import hashlib
import hmac
import http.server
import os
import sys
import time
import urllib.parse

ROOT, ACCESS, SECRET = sys.argv[1:4]
TOKEN = sys.argv[4] if len(sys.argv) > 4 else None
UNRESERVED = "-._~"


def mac(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


class Refused(Exception):
    def __init__(self, status, code, message):
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


def parse_authorization(value):
    scheme, _, rest = (value or "").partition(" ")
    if scheme != "AWS4-HMAC-SHA256":
        raise Refused(403, "AccessDenied", "Access Denied")
    parts = dict(p.strip().split("=", 1) for p in rest.split(","))
    access, date, region, service, end = parts["Credential"].split("/")
    if service != "s3" or end != "aws4_request":
        raise Refused(400, "AuthorizationHeaderMalformed", "wrong scope")
    return access, date, region, parts["SignedHeaders"].split(";"), parts["Signature"]


def check(handler):
    headers = {k.lower(): " ".join(v.split()) for k, v in handler.headers.items()}
    access, date, region, signed, signature = parse_authorization(headers.get("authorization"))
    if access != ACCESS:
        raise Refused(403, "InvalidAccessKeyId", "The access key does not exist")
    for name in headers:
        if (name == "host" or name.startswith("x-amz-")) and name not in signed:
            raise Refused(403, "AccessDenied", f"header {name} is not signed")
    for name in ("host", "x-amz-date", "x-amz-content-sha256"):
        if name not in headers:
            raise Refused(400, "MissingSecurityHeader", f"no {name}")
    if TOKEN and headers.get("x-amz-security-token") != TOKEN:
        raise Refused(403, "InvalidToken", "The provided token is malformed or invalid")
    stamp = datetime.datetime.strptime(headers["x-amz-date"], "%Y%m%dT%H%M%SZ")
    age = abs((datetime.datetime.utcnow() - stamp).total_seconds())
    if age > 900 or not headers["x-amz-date"].startswith(date):
        raise Refused(403, "RequestTimeTooSkewed", "clock")
    if headers["x-amz-content-sha256"] != hashlib.sha256(b"").hexdigest():
        raise Refused(400, "XAmzContentSHA256Mismatch", "wrong hash of the body")

    path, _, query = handler.path.partition("?")
    # The path as S3 signs it: decoded once, encoded once, slashes kept.
    uri = urllib.parse.quote(urllib.parse.unquote_to_bytes(path), safe="/" + UNRESERVED)
    pairs = sorted(urllib.parse.parse_qsl(query, keep_blank_values=True))
    canonical_query = "&".join(
        urllib.parse.quote(k, safe=UNRESERVED) + "=" + urllib.parse.quote(v, safe=UNRESERVED)
        for k, v in pairs
    )
    canonical = "\n".join(
        [handler.command, uri, canonical_query]
        + [f"{name}:{headers.get(name, '')}" for name in signed]
        + ["", ";".join(signed), headers["x-amz-content-sha256"]]
    )
    scope = f"{date}/{region}/s3/aws4_request"
    to_sign = "\n".join(
        ["AWS4-HMAC-SHA256", headers["x-amz-date"], scope,
         hashlib.sha256(canonical.encode()).hexdigest()]
    )
    key = mac(mac(mac(mac(("AWS4" + SECRET).encode(), date), region), "s3"), "aws4_request")
    if signed != sorted(signed) or not hmac.compare_digest(mac(key, to_sign).hex(), signature):
        raise Refused(403, "SignatureDoesNotMatch",
                      "The request signature we calculated does not match")
    return urllib.parse.unquote(path)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def answer(self, status, body, kind="application/xml", location=None):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if location:
            self.send_header("Location", location)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def refuse(self, e):
        xml = (f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{e.code}</Code>'
               f"<Message>{e.message}</Message><RequestId>0</RequestId></Error>")
        self.answer(e.status, xml.encode())

    def read_object(self, path):
        bucket, _, key = path.lstrip("/").partition("/")
        if not os.path.isdir(os.path.join(ROOT, bucket)):
            raise Refused(404, "NoSuchBucket", "The specified bucket does not exist")
        # One file for each key: no slashes, so that no key leaves the directory.
        name = os.path.join(ROOT, bucket, urllib.parse.quote(key, safe=""))
        if not os.path.isfile(name):
            raise Refused(404, "NoSuchKey", "The specified key does not exist.")
        with open(name, "rb") as f:
            return f.read()

    def do_GET(self):
        try:
            path = check(self)
            if "/redirect/" in path:
                return self.answer(307, b"", location="http://127.0.0.1:1/elsewhere")
            if "/plain/" in path:
                return self.answer(502, b"bad gateway", "text/plain")
            if "/slow/" in path:
                time.sleep(120)
            body = self.read_object(path)
            if "/cut/" in path:
                self.send_response(200)
                self.send_header("Content-Length", str(len(body) + 10))
                self.end_headers()
                self.wfile.write(body)
                self.close_connection = True
                return None
            return self.answer(200, body, "application/octet-stream")
        except Refused as e:
            return self.refuse(e)
        except (KeyError, ValueError) as e:
            return self.refuse(Refused(400, "AuthorizationHeaderMalformed", repr(e)))

    do_HEAD = do_GET


def main():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    print(server.server_address[1], flush=True)
    server.serve_forever()


main()
