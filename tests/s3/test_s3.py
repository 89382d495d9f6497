# SPDX-License-Identifier: Apache-2.0
"""S3Storage with a real server, and its signatures computed once more by AWS's own code."""

import os
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, Iterator

import pytest

from conftest import KEY, SECRET, Storage

ALL_BYTES = bytes(range(256))


@pytest.mark.parametrize("data", [b"", b"text\n", ALL_BYTES, os.urandom(5_000_000)],
                         ids=["nothing", "text", "every byte", "much"])
def test_what_was_stored_is_found(storage: Storage, data: bytes) -> None:
    reference = storage.store("call_0", data, "image/png")
    assert reference.startswith("s3://bucket/offload/agent 1/")
    assert reference.endswith("_call_0")
    assert storage.retrieve(reference) == ("image/png", data)


@pytest.mark.parametrize("key", ["../../etc/passwd", "a b+c&d=e?f#g%2Fh", "\u20ac\U0001f600",
                                 "x" * 3000, "~!*'()", ".", "..", "", "a\tb\nc"])
def test_any_key_is_stored(storage: Storage, key: str) -> None:
    reference = storage.store(key, b"kept")
    assert ".." not in reference
    assert storage.retrieve(reference)[1] == b"kept"


@pytest.mark.parametrize("prefix", ["", "a+b", "caf\u00e9/\u65e5\u672c", "a=b&c", "%41", "~'!()*",
                                    "a;b,c:d@e$f"])
def test_any_prefix_is_signed_right(storage: Storage, prefix: str) -> None:
    storage.env["PREFIX"] = prefix
    reference = storage.store("k", b"kept")
    assert reference.startswith(f"s3://bucket/{prefix}{'/' if prefix else ''}")
    assert storage.retrieve(reference)[1] == b"kept"


def test_the_server_checks_signatures(storage: Storage) -> None:
    storage.env["AWS_SECRET_ACCESS_KEY"] = "wrong"
    with pytest.raises(RuntimeError, match="3: S3 put .*HTTP 403 SignatureDoesNotMatch"):
        storage.store("k", b"x")
    storage.env["AWS_ACCESS_KEY_ID"] = "nobody"
    with pytest.raises(RuntimeError, match="3: S3 put .*HTTP 403 InvalidAccessKeyId"):
        storage.store("k", b"x")


def test_what_is_not_there_is_said(storage: Storage) -> None:
    with pytest.raises(RuntimeError, match="1: there is no reference"):
        storage.retrieve("s3://bucket/offload/agent 1/1_1_none")
    storage.env["BUCKET"] = "missing-bucket"
    with pytest.raises(RuntimeError, match="1: S3 put .*missing-bucket: HTTP 404 NoSuchBucket"):
        storage.store("k", b"x")
    storage.env["ENDPOINT"] = "http://127.0.0.1:1"
    with pytest.raises(RuntimeError, match="3: S3 put: PUT http://127.0.0.1:1/.*connect"):
        storage.store("k", b"x")


def client(endpoint: str) -> Any:
    """AWS's own client of S3."""
    session = pytest.importorskip("botocore.session").Session()
    config = pytest.importorskip("botocore.config").Config(s3={"addressing_style": "path"})
    return session.create_client("s3", region_name="eu-central-1", endpoint_url=endpoint,
                                 aws_access_key_id=KEY, aws_secret_access_key=SECRET,
                                 config=config)


def test_aws_s_own_client_reads_what_we_store_and_we_what_it_does(storage: Storage) -> None:
    aws = client(storage.env["ENDPOINT"])
    key = storage.store("k", ALL_BYTES, "image/webp").removeprefix("s3://bucket/")
    got = aws.get_object(Bucket="bucket", Key=key)
    assert (got["ContentType"], got["Body"].read()) == ("image/webp", ALL_BYTES)
    aws.put_object(Bucket="bucket", Key="offload/agent 1/1_1_x", Body=b"theirs",
                   ContentType="application/json")
    assert storage.retrieve("s3://bucket/offload/agent 1/1_1_x") == ("application/json", b"theirs")


class Recorder(BaseHTTPRequestHandler):
    """Takes whatever comes, and remembers the last of it."""

    last: dict[str, Any] = {}

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        Recorder.last = {"method": self.command, "path": self.path, "body": body,
                         "headers": dict(self.headers.items())}
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    do_GET = do_PUT

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def recorder() -> Iterator[str]:
    http = HTTPServer(("127.0.0.1", 0), Recorder)
    thread = threading.Thread(target=http.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{http.server_port}"
    http.shutdown()
    thread.join()
    http.server_close()


@pytest.mark.parametrize("token", [None, "a/session+token=="])
@pytest.mark.parametrize("prefix", ["", "caf\u00e9/a b+c", "%41;x,y:z@w$v!*'()~"])
def test_botocore_computes_the_same_signature(recorder: str, tmp_path: Path, prefix: str,
                                              token: str | None, monkeypatch: Any) -> None:
    auth = pytest.importorskip("botocore.auth")
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials

    more = {"AWS_SESSION_TOKEN": token} if token else {}
    secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
    Storage(recorder, tmp_path, PREFIX=prefix, AWS_ACCESS_KEY_ID="AKID",
            AWS_SECRET_ACCESS_KEY=secret, **more).store("k", ALL_BYTES)
    last = Recorder.last
    ours = last["headers"].pop("authorization")
    signed = {name: value for name, value in last["headers"].items()
              if name.lower() in ours.split("SignedHeaders=")[1].split(",")[0].split(";")}
    request = AWSRequest(last["method"], recorder + last["path"], headers=signed,
                         data=last["body"])
    request.context["timestamp"] = signed["x-amz-date"]
    request.context["client_config"] = type("C", (), {"s3": {"payload_signing_enabled": True}})()
    signer = auth.S3SigV4Auth(Credentials("AKID", secret, token), "s3", "eu-central-1")
    canonical = signer.canonical_request(request)
    # The payload's hash is that of what arrived, whatever the header says.
    assert canonical.endswith("\n" + signer.payload(request))
    theirs = signer.signature(signer.string_to_sign(request, canonical), request)
    assert ours.endswith(f"Signature={theirs}")
