# SPDX-License-Identifier: Apache-2.0
"""The reference of the library: every declaration of every header is in it, and reads well."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from owners import BUILD

from manual import ROOT, lint, needs_mandoc, read, sections

GENERATOR = ROOT / "tools/api-reference"
HEADERS = sorted((ROOT / "include/pinfold").glob("*.h"))


def generate(place: Path, root: Path = ROOT) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-B", root / "tools/api-reference", place],
                          capture_output=True, text=True, timeout=60)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory):
    place = tmp_path_factory.mktemp("reference")
    done = generate(place)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    yield place
    shutil.rmtree(place)


def exported() -> set[str]:
    command = ["nm", "-D", "--defined-only", "--format=posix", BUILD / "libpinfold.so"]
    listing = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return {line.split()[0] for line in listing.splitlines() if line.split()[1] == "T"}


def test_every_function_that_is_exported_can_be_asked_for(pages):
    functions = exported()
    assert len(functions) > 150
    for name in functions:
        text = (pages / f"{name}.3").read_text()
        if text.startswith(".so "):
            text = (pages.parent / pages.name / Path(text.split()[1]).name).read_text()
        assert f".Ss {name}\n" in text and f"\n.Nm {name}" in text


@pytest.mark.parametrize("header", HEADERS, ids=lambda path: path.name)
def test_nothing_of_a_header_is_lost(header, pages):
    """Every word of its comments, and every name that it declares."""
    name = "pinfold_version" if header.stem == "pinfold" else f"pinfold_{header.stem}"
    if not (pages / f"{name}.3").exists():
        assert "PINFOLD_API " not in header.read_text().replace("#define PINFOLD_API ", "")
        return
    page = (pages / f"{name}.3").read_text().replace("\\e", "\\").replace("\\&", "")
    words = set(re.findall(r"[A-Za-z_]{2,}", header.read_text()))
    frame = {"SPDX", "License", "Identifier", "Apache", "PINFOLD_BEGIN_DECLS",
             "PINFOLD_END_DECLS", "PINFOLD_API", f"PINFOLD_{header.stem.upper()}_H", "ifndef",
             "define", "endif", "include", "stdbool", "stddef", "stdint", "sys", "types"}
    includes = set(re.findall(r"#include <pinfold/(\w+)\.h>", header.read_text()))
    assert {word for word in words - frame - includes if word not in page} == set()


@needs_mandoc
def test_mandoc_finds_nothing_wrong(pages):
    for page in sorted(pages.glob("*.3")):
        if not page.read_text().startswith(".so "):
            assert lint(page) == "", page.name


def test_pages_that_refer_to_others_find_them(pages):
    names = {path.name for path in pages.iterdir()}
    for page in pages.glob("*.3"):
        text = page.read_text()
        if text.startswith(".so "):
            assert text.split()[1].removeprefix("man3/") in names


@needs_mandoc
def test_links_of_a_browser_lead_somewhere(tmp_path):
    subprocess.run([sys.executable, "-B", GENERATOR, "--html", tmp_path], check=True, timeout=60)
    pages = {path.name: path.read_text() for path in tmp_path.glob("*.html")}
    seen = 0
    for name, text in pages.items():
        for link in re.findall(r'href="([^"]+)"', text):
            target, _, place = link.partition("#")
            assert target in pages or not target, f"{name}: {link}"
            assert not place or f'id="{place}"' in pages[target or name], f"{name}: {link}"
            seen += bool(target)
    assert seen > 100
    assert "ssh(1)" in pages["pinfold-run.1.html"]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """What the generator reads, to be spoilt."""
    for name in ("include", "man"):
        shutil.copytree(ROOT / name, tmp_path / name)
    (tmp_path / "tools").mkdir()
    shutil.copy(GENERATOR, tmp_path / "tools")
    return tmp_path


def test_a_function_without_a_comment_is_refused(tree):
    path = tree / "include/pinfold/log.h"
    path.write_text(path.read_text().replace(
        "PINFOLD_END_DECLS", "PINFOLD_API int pinfold_untold(void);\n\nPINFOLD_END_DECLS"))
    done = generate(tree / "out", tree)
    assert done.returncode == 1 and "without a comment" in done.stderr


def test_a_header_that_the_overview_does_not_list_is_refused(tree):
    (tree / "include/pinfold/more.h").write_text(
        "/* More. */\n#ifndef PINFOLD_MORE_H\n#define PINFOLD_MORE_H\n\n"
        "/** Do it.\n *\n * Threads: any. */\nPINFOLD_API void pinfold_more(void);\n\n#endif\n")
    done = generate(tree / "out", tree)
    assert done.returncode == 1 and "does not list pinfold_more" in done.stderr


def test_it_is_installed_below_destdir(tmp_path):
    env = {**os.environ, "MESON_INSTALL_PREFIX": "/usr",
           "MESON_INSTALL_DESTDIR_PREFIX": f"{tmp_path}/usr"}
    subprocess.run([sys.executable, "-B", GENERATOR, "/usr/share/man/man3"], check=True, env=env,
                   timeout=60)
    assert (tmp_path / "usr/share/man/man3/pinfold_sandbox.3").exists()


def test_the_program_in_the_overview_compiles(tmp_path):
    example = re.search(r"^\.Bd .*?\n(.*?)^\.Ed", sections(read("pinfold.3"))["EXAMPLES"],
                        re.MULTILINE | re.DOTALL)[1]
    source = tmp_path / "example.c"
    source.write_text(example.replace("\\e", "\\"))
    subprocess.run(["gcc", "-Wall", "-Wextra", "-Werror", "-I", ROOT / "include", source, "-o",
                    tmp_path / "example", "-L", BUILD, "-lpinfold", "-Wl,-rpath," + str(BUILD)],
                   check=True, timeout=60)
    (tmp_path / "project").mkdir()
    (tmp_path / "project/Makefile").write_text("test:\n\t@echo it passes | tee report.md\n")
    done = subprocess.run([tmp_path / "example"], cwd=tmp_path, capture_output=True, text=True,
                          timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert "it passes" in done.stdout
    assert (tmp_path / "results/report.md").read_text() == "it passes\n"
