# SPDX-License-Identifier: Apache-2.0
"""What `make build` and `make install` ask of meson, with scripts in its place and ninja's."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from owners import IS_ROOT, STRANGER

ROOT = Path(__file__).resolve().parents[2]
MESON = """#!/bin/sh
case $1 in
setup) mkdir -p build && : >build/build.ninja ;;
configure) shift; printf '%s|' "$@" >asked ;;
install) mkdir -p build/meson-logs && : >build/meson-logs/install-log.txt; printf %s "$DESTDIR" >where ;;
esac
"""
NINJA = """#!/bin/sh
: >build/pinfold
test ! -e broken
"""


class Checkout:
    """One of somebody else's, when we are root."""

    def __init__(self, root: Path):
        self.path = root / "some checkout"
        for name, text in ("bin/meson", MESON), ("bin/ninja", NINJA), ("tools/deps", "#!/bin/sh\n"):
            script = self.path / name
            script.parent.mkdir(parents=True, exist_ok=True)
            script.write_text(text)
            script.chmod(0o755)
        shutil.copy(ROOT / "Makefile", self.path)
        self.owner = STRANGER if IS_ROOT else os.getuid()
        if IS_ROOT:
            for path in self.path, *self.path.rglob("*"):
                os.chown(path, STRANGER, STRANGER)

    def make(self, *args: Any) -> subprocess.CompletedProcess:
        env = {name: value for name, value in os.environ.items()
               if name not in ("DESTDIR", "PREFIX", "MAKEFLAGS", "MAKELEVEL")}
        return subprocess.run(["make", *map(str, args)], cwd=self.path, capture_output=True,
                              text=True, timeout=60, stdin=subprocess.DEVNULL,
                              env={**env, "PATH": f"{self.path / 'bin'}:{env['PATH']}"})

    def belongs_to_its_owner(self) -> bool:
        built = [self.path / "build", *(self.path / "build").rglob("*")]
        return len(built) > 2 and all(path.lstat().st_uid == self.owner for path in built)


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


@pytest.mark.parametrize("where", ["relative", "two words", "/absolute", "/two words/more", "a'b$c"])
def test_a_root_to_install_into_is_a_directory_seen_from_here(checkout: Checkout, where: str):
    done = checkout.make("install", "DESTDIR=" + where.replace("$", "$$"), "PREFIX=/opt/two words")
    assert (done.returncode, done.stderr) == (0, "")
    assert (checkout.path / "where").read_text() == str(checkout.path / where)
    assert (checkout.path / "asked").read_text() == "build|-Dprefix=/opt/two words|"


def test_what_root_builds_in_a_checkout_belongs_to_whose_it_is(checkout: Checkout):
    """`make build` and then `sudo make install`, as the quick start has it, and then on."""
    assert checkout.make("build").returncode == 0
    assert checkout.belongs_to_its_owner()
    assert checkout.make("install", "DESTDIR=root").returncode == 0
    assert checkout.belongs_to_its_owner()


def test_a_build_that_fails_is_told_and_belongs_to_whose_it_is(checkout: Checkout):
    (checkout.path / "broken").touch()
    for target in "build", "install":
        done = checkout.make(target, "DESTDIR=root")
        assert done.returncode != 0 and not (checkout.path / "where").exists()
        assert checkout.belongs_to_its_owner()
