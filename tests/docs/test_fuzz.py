# SPDX-License-Identifier: Apache-2.0
"""What CONTRIBUTING.md says of the fuzzers: every target is run, and what it finds is told."""

import importlib.machinery
import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from manual import ROOT

FUZZ = ROOT / "fuzz"
# As libFuzzer does it: what is found is named by its bytes, and written over what was there.
TARGET = """#!/bin/sh
for word; do case $word in -artifact_prefix=*) place=${word#*=}; esac; done
echo "stat::number_of_executed_units: 7"
[ -z "$FOUND" ] || printf x >"$place$FOUND"
exit "$STATUS"
"""


def names(pattern: str) -> set[str]:
    return {path.stem for path in FUZZ.glob(pattern)}


def test_every_target_has_a_source_inputs_and_a_line_in_the_build() -> None:
    built = set(re.findall(r"^  '(\w+)' : \{", (FUZZ / "meson.build").read_text(), re.MULTILINE))
    assert built == names("*.c") - {"replay"} == names("corpus/*")
    assert names("words/*") <= built
    assert all(any(corpus.iterdir()) for corpus in FUZZ.glob("corpus/*"))


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """tools/fuzz, with a single target that finds and ends as it is told to."""
    loader = importlib.machinery.SourceFileLoader("fuzz_tool", str(ROOT / "tools/fuzz"))
    spec = importlib.util.spec_from_loader("fuzz_tool", loader)
    assert spec
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    loader.exec_module(module)
    (tmp_path / "fuzz/corpus/one").mkdir(parents=True)
    program = tmp_path / "build-fuzz/fuzz/fuzz_one"
    program.parent.mkdir(parents=True)
    program.write_text(TARGET)
    program.chmod(0o755)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "BUILD", tmp_path / "build-fuzz")
    monkeypatch.setattr(module, "build", lambda: True)
    monkeypatch.setattr("sys.argv", ["fuzz", "--seconds", "1"])
    return module


@pytest.mark.parametrize("found, status, line, result", [
    ("", 0, "1 targets, 0 findings\n", 0), ("slow-unit-1", 0, "1 targets, 0 findings\n", 0),
    ("crash-1", 1, "1 targets, 1 findings\n", 1), ("leak-1", 0, "1 targets, 1 findings\n", 1),
    ("", 1, "1 targets, 0 findings, 1 broken\n", 1)])
def test_what_is_found_is_told_each_time(
        tool: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
        found: str, status: int, line: str, result: int) -> None:
    monkeypatch.setenv("FOUND", found)
    monkeypatch.setenv("STATUS", str(status))
    for _ in range(2):
        assert tool.main() == result
        said = capsys.readouterr().out
        assert "7 runs" in said and said.endswith(line)


@pytest.mark.parametrize("words", [["--seconds", "0"], ["--seconds", "-1"], ["--jobs", "0"],
                                   ["--seconds", "1", "two"]])
def test_what_cannot_be_run_is_refused(tool: ModuleType, monkeypatch: pytest.MonkeyPatch,
                                       words: list[str]) -> None:
    monkeypatch.setattr("sys.argv", ["fuzz", *words])
    with pytest.raises(SystemExit) as end:
        tool.main()
    assert end.value.code == 2
