# SPDX-License-Identifier: Apache-2.0
"""What is installed is enough to build against, and the examples work."""

import os
import subprocess

import pytest

from helpers import BUILD, ROOT

pytestmark = pytest.mark.plain


def output_of(*command, **options):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True,
                          text=True, timeout=120, **options).stdout


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """An installation below a directory of our own."""
    place = tmp_path_factory.mktemp("root")
    output_of("/usr/bin/meson", "install", "-C", BUILD, "--no-rebuild", "--destdir", place)
    return place


@pytest.fixture(scope="module")
def prefix(root):
    found = [path.parent.parent for path in root.glob("**/bin/pinfold")]
    assert len(found) == 1
    return found[0]


@pytest.fixture
def config(root, prefix):
    """Ask pkg-config about the installation, where it finds nothing else: to build against it takes
    none of what it was made of."""
    pcs = list(prefix.glob("lib/**/pinfold.pc"))
    assert len(pcs) == 1
    env = {**os.environ, "PKG_CONFIG_LIBDIR": str(pcs[0].parent),
           "PKG_CONFIG_SYSROOT_DIR": str(root)}
    return lambda *args: output_of("pkg-config", *args, "pinfold", env=env).split()


def test_the_manual_is_installed(prefix):
    for page in (ROOT / "man").glob("*.[1-9]"):
        place = prefix / f"share/man/man{page.suffix[1:]}" / page.name
        assert place.read_bytes() == page.read_bytes()
    function = (prefix / "share/man/man3/pinfold_sandbox_new.3").read_text()
    assert function == ".so man3/pinfold_sandbox.3\n"
    assert ".Ss pinfold_sandbox_new\n" in (prefix / "share/man/man3/pinfold_sandbox.3").read_text()


@pytest.mark.parametrize("compiler, language", [("gcc", "c"), ("clang++", "c++")])
def test_a_program_builds_against_the_installation_and_runs(tmp_path, prefix, config, compiler,
                                                            language):
    source = tmp_path / "program"
    source.write_text('#include <pinfold/pinfold.h>\n#include <stdio.h>\n'
                      'int main() { puts(pinfold_version()); return 0; }\n')
    output_of(compiler, "-x", language, source, "-o", tmp_path / "a.out", "-Wall", "-Werror",
              *config("--cflags", "--libs"))
    library = next(prefix.glob("lib/**/libpinfold.so"))
    env = {**os.environ, "LD_LIBRARY_PATH": str(library.parent)}
    done = output_of(tmp_path / "a.out", env=env)
    assert done.split() == config("--modversion")


def test_the_embedding_example_does_what_it_says(tmp_path, prefix, config):
    output_of("gcc", ROOT / "examples/embed.c", "-o", tmp_path / "embed", "-Wall", "-Wextra",
              "-Werror", *config("--cflags", "--libs"))
    library = next(prefix.glob("lib/**/libpinfold.so"))
    env = {**os.environ, "LD_LIBRARY_PATH": str(library.parent)}
    work, results = tmp_path / "work", tmp_path / "results"
    done = output_of(tmp_path / "embed", work, results, env=env)
    assert done == "exit code 0, output:\na\nb\n"
    assert [path.name for path in results.iterdir()] == ["sorted.md"]
    assert (results / "sorted.md").read_text() == "a\nb\n"


def test_the_example_of_two_agents_does_what_it_says(tmp_path, prefix, config):
    output_of("gcc", ROOT / "examples/two_agents.c", "-o", tmp_path / "two_agents", "-Wall",
              "-Wextra", "-Werror", *config("--cflags", "--libs"))
    library = next(prefix.glob("lib/**/libpinfold.so"))
    env = {**os.environ, "LD_LIBRARY_PATH": str(library.parent)}
    talks = [f"scripted:{ROOT}/examples/agent/{name}.json" for name in ("demo", "review")]
    done = output_of(tmp_path / "two_agents", tmp_path / "work", ROOT / "examples/wordcount", *talks,
                     env=env)
    assert "writer calls execute\n" in done and "reviewer calls write_file\n" in done
    assert "reviewer: I may not, and need not." in done
    assert "+    if (only_lines)\n" in done and done.count("diff --git") == 1


def test_the_script_of_two_agents_tells_the_same_story():
    done = output_of(ROOT / "examples/agent/review.sh", BUILD / "pinfold", stdin=subprocess.DEVNULL)
    assert "Its tests pass. Now the option." in done and "I may not, and need not." in done
    assert done.count("+    if (only_lines)\n") == 2  # the agent's diff, and what came home
    assert "only_lines" not in (ROOT / "examples/wordcount/src/wordcount.c").read_text()


def test_the_installed_command_runs_and_completes(prefix):
    assert output_of(prefix / "bin/pinfold", "run", "-q", "echo it works") == "it works\n"
    completion = prefix / "share/bash-completion/completions/pinfold"
    assert completion.read_text() == (ROOT / "completions/pinfold.bash").read_text()


def test_the_programs_behind_the_command_are_installed(prefix):
    built = {path.name for path in BUILD.glob("pinfold-*") if path.is_file()}
    assert {"pinfold-init", "pinfold-launch", "pinfold-connect"} <= built
    found = {path.name for path in (prefix / "libexec/pinfold").iterdir()}
    assert found == built


def test_every_public_header_is_installed_and_no_other(prefix):
    ours = {path.name for path in (ROOT / "include/pinfold").iterdir()}
    assert {path.name for path in (prefix / "include/pinfold").iterdir()} == ours


def test_the_example_of_make_run_tells_its_story():
    text = output_of(ROOT / "examples/run.sh", BUILD / "pinfold")
    assert "ok      a line with two words" in text
    assert "FAILED  a line with two words" in text
    assert "-        lines += c == '\\n';" in text
    assert "+        lines -= c == '\\n';" in text
    assert "synced 2 files" in text
    assert not (ROOT / "examples/wordcount/wordcount").exists()
