# SPDX-License-Identifier: Apache-2.0
"""Links between the documents lead somewhere, to the section that they name."""

import re
import subprocess
from pathlib import Path

import pytest

from manual import ROOT

DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
LINK = re.compile(r"\[[^\]\[]*\]\(([^)\s]+)\)")
CODE = re.compile(r"^```.*?^```|^(?: {4,}|\t).*?$|`[^`\n]+`", re.DOTALL | re.MULTILINE)
# A word that is a file of the tree, or of a pattern that some are of.
FOLDERS = "src|include|tests|tools|docs|examples|bench|python|completions|man|packaging"
FILE = re.compile(rf"`((?:{FOLDERS})/[^`\s]*)`")


def anchor(heading: str) -> str:
    """What a heading is linked by: lower case, without punctuation, blanks as hyphens."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
    return re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")


def anchors(path: Path) -> list[str]:
    """Those of a document; a second heading of the same words has -1 behind it."""
    text = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.DOTALL | re.MULTILINE)
    made: list[str] = []
    for heading in re.findall(r"^#+ (.*?)\s*$", text, re.MULTILINE):
        name = anchor(heading)
        count = sum(re.fullmatch(rf"{re.escape(name)}(-\d+)?", other) is not None for other in made)
        made.append(f"{name}-{count}" if count else name)
    return made


def links(text: str) -> list[str]:
    return LINK.findall(CODE.sub("", text))


def wrong(path: Path, link: str) -> str | None:
    """What is wrong with a link of a document, or None."""
    if re.match(r"[a-z]+:", link):
        return None if link.startswith("https://") else "neither https nor of this tree"
    name, _, section = link.partition("#")
    target = (path.parent / name).resolve() if name else path
    if not target.exists() or not target.is_relative_to(ROOT):
        return "no such file"
    if section and section not in anchors(target):
        return f"no such section; there are {', '.join(anchors(target))}"
    return None


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path):
    found = {link: wrong(path, link) for link in links(path.read_text())}
    assert {link: what for link, what in found.items() if what} == {}


def test_wrong_links_are_noticed(tmp_path):
    page = ROOT / "docs/policy.md"
    assert wrong(page, "none.md") == "no such file"
    assert wrong(page, "../../none") == "no such file"
    assert wrong(page, "mcp.md#none").startswith("no such section")
    assert wrong(page, "http://example.org") == "neither https nor of this tree"
    assert wrong(page, "mcp.md#the-tools") is None and wrong(page, "https://example.org") is None
    twice = tmp_path / "twice.md"
    twice.write_text("# `One` thing: a\n## One thing, a\n```\n# no heading\n```\n")
    assert anchors(twice) == ["one-thing-a", "one-thing-a-1"]
    assert links("[a](b.md) `[c](d.md)`\n\n    [e](f.md)\n") == ["b.md"]


def test_the_index_has_every_document():
    index = set(links((ROOT / "docs/README.md").read_text()))
    assert {link for link in index if "/" not in link and "#" not in link} == {
        path.name for path in ROOT.glob("docs/*.md") if path.name != "README.md"}


def tracked() -> set[str]:
    """The files of the tree; what is built beside them is none."""
    done = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"],
                          cwd=ROOT, capture_output=True, text=True)
    if done.returncode == 0:
        return set(done.stdout.splitlines())
    return {str(path.relative_to(ROOT)) for path in ROOT.rglob("*")}


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_that_a_document_names_are_there(path):
    files = tracked()
    for name in FILE.findall(path.read_text()):
        if "<" in name:  # a place for any name
            continue
        pattern = re.escape(name).replace(r"\*", "[^/]*")
        assert any(re.match(rf"{pattern}", file) for file in files), name
