# SPDX-License-Identifier: Apache-2.0
"""The unit tests of a build as an ordinary user, for when root runs the tests."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import report
from report import Case

# What sandboxes are made of, and all rows on every backend.
SUITES = {"jail", "backend", "spec", "conformance"}
# Nobody's: higher than the users of a machine, and than those that tests make up for themselves.
UID = 1_100_000_000
# They talk to a service that is a program of the checkout, and are the same for everybody; but not
# those in which the fake service's commands run as that user, and are kept from something.
LEFT_OUT = ("agentcore", "daytona")
FAKE, WITH_FAKE = "tests/daytona", ("daytona_backend", "daytona_hostile")
FAKED = "tests/faked.py"  # what it shares with others
NOT_COPIED = ("*.p", "*.a", "meson-*", "*ninja*", "*.json", "bench", "fuzz", "musl-include",
              "counters")


def copy_of(path: Path, place: Path, build: Path) -> str:
    """Where a program of the build, or of the fake service, is in the copy."""
    fake = build.parent / FAKE
    if path.is_relative_to(fake):
        return str(place / FAKE / path.relative_to(fake))
    return str(place / path.relative_to(build))


def run_one(test: dict, place: Path, build: Path, tmp: Path, env: dict[str, str]) -> list[Case]:
    """One test program, from the copy of the build."""
    moved = {name: value.replace(str(build), str(place)) for name, value in test["env"].items()}
    command = [copy_of(build / word, place, build) for word in test["cmd"]]
    uid = UID + os.getpid()
    try:
        done = subprocess.run(command, cwd=tmp, env={**env, **moved}, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, errors="replace", user=uid,
                              group=uid, extra_groups=[], timeout=600, check=False)
        result = {"stdout": done.stdout, "stderr": done.stderr, "returncode": done.returncode,
                  "result": "ERROR" if done.returncode else "OK"}
    except subprocess.TimeoutExpired:
        result = {"result": "TIMEOUT"}
    return report.from_tap("unit, ordinary user", test["name"], result)


def run(build: Path, tmp: Path, env: dict[str, str]) -> list[Case]:
    """All of them. The checkout may lie where only its owner gets to: so it is a copy."""
    listing = subprocess.run(["meson", "introspect", "--tests", str(build)], capture_output=True,
                             text=True, check=True)
    tests = [test for test in json.loads(listing.stdout) if test["protocol"] == "tap"
             and test["suite"][0].split(":")[-1] in SUITES
             and (test["name"] in WITH_FAKE or not test["name"].startswith(LEFT_OUT))]
    place, own = tmp / "build", tmp / "tmp"
    cases = []
    try:
        shutil.copytree(build, place, symlinks=True, ignore=shutil.ignore_patterns(*NOT_COPIED))
        shutil.copytree(build.parent / FAKE, place / FAKE, dirs_exist_ok=True)
        shutil.copy(build.parent / FAKED, place / FAKED)
        own.mkdir()
        os.chown(own, UID + os.getpid(), UID + os.getpid())
        for test in tests:
            cases += run_one(test, place, build, own, {**env, "TMPDIR": str(own)})
        left = [str(path) for path in own.iterdir()]
        cases.append(Case("unit, ordinary user", "its TMPDIR is empty",
                          "failed" if left else "passed", "\n".join(left)))
    finally:
        shutil.rmtree(place, ignore_errors=True)
        shutil.rmtree(own, ignore_errors=True)
    return cases
