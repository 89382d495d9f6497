# SPDX-License-Identifier: Apache-2.0
"""A real server that speaks S3 and checks signatures, and the storage as a program."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Iterator

import pytest

BUILD = Path(os.environ.get("PINFOLD_BUILD", Path(__file__).parents[2] / "build"))
SERVER = "@20minutes/s3rver@5.0.0"
# What the server knows.
KEY = SECRET = "S3RVER"
INSTALL_SECONDS, RUN_SECONDS = 400, 300


def install() -> Path:
    """The server's modules, kept in the build directory from one run to the next."""
    kept = BUILD / "npm" / SERVER.replace("/", "-")
    modules = kept / "node_modules"
    if modules.exists():
        return modules
    if not shutil.which("npm"):
        pytest.skip("npm is not installed")
    kept.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=kept.parent) as place:
        fresh = Path(place) / "fresh"
        try:
            subprocess.run(["npm", "install", "--silent", "--no-audit", "--no-fund", "--no-save",
                            "--ignore-scripts", "--cache", f"{place}/cache", "--prefix", fresh,
                            SERVER], check=True, stdin=subprocess.DEVNULL, capture_output=True,
                           timeout=INSTALL_SECONDS)
            fresh.rename(kept)  # whole, or not at all
        except (subprocess.SubprocessError, OSError):
            if not modules.exists():  # else another run was quicker
                pytest.skip("the S3 server cannot be installed")
    return modules


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where a server with the bucket "bucket" listens."""
    process = subprocess.Popen(
        ["node", str(Path(__file__).with_name("server.js")), str(install()),
         str(tmp_path_factory.mktemp("s3"))],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin and process.stdout
    try:
        address = process.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:")
        yield address
    finally:
        process.stdin.close()
        process.stdout.close()
        assert process.wait(60) == 0


class Storage:
    """S3Storage, one program a call."""

    def __init__(self, endpoint: str, home: Path, **more: str):
        kept = {name: value for name, value in os.environ.items()
                if not name.startswith("AWS_") and "proxy" not in name.lower()}
        self.env = {**kept, "HOME": str(home), "ENDPOINT": endpoint, "BUCKET": "bucket",
                    "PREFIX": "offload/agent 1", "AWS_REGION": "eu-central-1",
                    "AWS_EC2_METADATA_DISABLED": "true", "AWS_ACCESS_KEY_ID": KEY,
                    "AWS_SECRET_ACCESS_KEY": SECRET, **more}

    def _run(self, *arguments: str, data: bytes = b"") -> bytes:
        done = subprocess.run([BUILD / "tests/s3/s3_storage", *arguments], env=self.env, input=data,
                              capture_output=True, timeout=RUN_SECONDS)
        if done.returncode:
            raise RuntimeError(done.stderr.decode())
        assert done.stderr == b""
        return done.stdout

    def store(self, key: str, data: bytes, content_type: str = "text/plain") -> str:
        return self._run("store", key, content_type, data=data).decode()

    def retrieve(self, reference: str) -> tuple[str, bytes]:
        content_type, data = self._run("retrieve", reference).split(b"\n", 1)
        return content_type.decode(), data


@pytest.fixture
def storage(server: str, tmp_path: Path) -> Storage:
    return Storage(server, tmp_path)
