# SPDX-License-Identifier: Apache-2.0
"""What kind of programs are built: they start quickly, and nobody can know their addresses."""

import struct
import subprocess
from pathlib import Path

import pytest
from helpers import BUILD

ET_DYN, PT_INTERP = 3, 3


def program_headers(image: bytes) -> list[int]:
    """The types of an ELF file's program headers."""
    offset, = struct.unpack_from("<Q", image, 32)
    size, count = struct.unpack_from("<HH", image, 54)
    return [struct.unpack_from("<I", image, offset + number * size)[0] for number in range(count)]


@pytest.mark.plain
@pytest.mark.parametrize("name", ["pinfold", "pinfold-init", "pinfold-launch",
                                  "pinfold-connect"])
def test_small_programs_need_no_loader_and_can_be_anywhere_in_memory(name: str) -> None:
    image = Path(BUILD, name).read_bytes()
    assert image[:6] == b"\x7fELF\x02\x01"
    assert struct.unpack_from("<H", image, 16)[0] == ET_DYN, "it has fixed addresses"
    assert PT_INTERP not in program_headers(image), "it is not static"


@pytest.mark.parametrize("name", ["pinfold-init", "pinfold-launch"])
def test_programs_of_its_own_say_that_they_are_for_nobody_else(name: str) -> None:
    done = subprocess.run([BUILD / name], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"{name}: this program is started by pinfold itself\n"
