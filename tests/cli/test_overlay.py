# SPDX-License-Identifier: Apache-2.0
"""pinfold run --seed-mode overlay."""

import difflib
import json
import os
import random
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Iterator

import pytest

from overlay_oracle import LOOK, describe, make_script, make_tree
from owners import STRANGER, copy_programs, credentials

OVERLAY = ("--backend", "isolated", "--seed-mode", "overlay")
OWNERS = [STRANGER, 0] if os.getuid() == 0 else [os.getuid()]


class Owner:
    """Somebody with a directory, who runs the command."""

    def __init__(self, uid: int):
        self.uid = uid
        self.place = Path(tempfile.mkdtemp(prefix="pinfold-overlay-"))
        self.place.chmod(0o755)
        self.tmp = self.place / "tmp"
        self.tmp.mkdir()
        copy_programs(self.place)

    def give(self) -> None:
        if self.uid == os.getuid():
            return
        os.chown(self.place, self.uid, self.uid)
        for directory, names, files in os.walk(self.place):
            for name in names + files:
                os.chown(Path(directory, name), self.uid, self.uid, follow_symlinks=False)

    def run(self, *args: Any, before: tuple[str, ...] = (), **env: str) -> Any:
        who = credentials(self.uid)
        return subprocess.run([*before, self.place / "pinfold", "run", *map(str, args)],
                              capture_output=True, text=True, errors="surrogateescape",
                              timeout=120, cwd="/", umask=0o022,
                              env={**os.environ, "TMPDIR": str(self.tmp), **env}, **who)

    def forget_workspaces(self) -> None:
        subprocess.run(["chmod", "-R", "u+rwx", self.tmp], check=False)
        for work in self.tmp.iterdir():
            shutil.rmtree(work)

    def report(self, *args: Any, **env: str) -> dict[str, Any]:
        done = self.run("--json", *args, **env)
        assert done.stdout, done.stderr
        return json.loads(done.stdout)


@pytest.fixture(params=OWNERS, ids=lambda uid: "root" if uid == 0 else "user")
def owner(request: pytest.FixtureRequest) -> Iterator[Owner]:
    someone = Owner(request.param)
    yield someone
    left = list(someone.tmp.iterdir())
    subprocess.run(["chmod", "-R", "u+rwx", someone.place], check=False)
    shutil.rmtree(someone.place)
    assert left == [], "a temporary workspace was left behind"


@pytest.fixture
def seed(owner: Owner) -> Path:
    where = owner.place / "seed"
    (where / "src").mkdir(parents=True)
    (where / "node_modules").mkdir()
    (where / "src/a.py").write_text("a\n")
    (where / "README.md").write_text("readme\n")
    (where / ".env").write_text("SECRET\n")
    (where / "node_modules/big").write_text("x" * 1000)
    owner.give()
    return where


def test_a_seed_is_shown_and_its_changes_come_home(owner, seed):
    before = describe(seed)
    done = owner.report(*OVERLAY, "--seed", seed, "--sync", "--",
                        "ls -A; cat README.md src/a.py; rm src/a.py; echo b > src/b.py;"
                        " echo more >> README.md; cat README.md")
    assert done["seed"] == {"files_seeded": 2, "bytes_seeded": 9, "mode": "overlay",
                            "skipped_paths": [".env", "node_modules/"], "errors": []}
    assert done["execute"]["output"] == "README.md\nsrc\nreadme\na\nreadme\nmore\n"
    assert done["sync"] == {"files_synced": 2, "bytes_synced": 14, "errors": []}
    after = describe(seed)
    assert {entry[0] for entry in after} - {entry[0] for entry in before} == {"src/b.py"}
    assert (seed / "src/a.py").read_text() == "a\n"
    assert (seed / "README.md").read_text() == "readme\nmore\n"


def test_nothing_of_the_host_is_named_inside(owner, seed):
    done = owner.report(*OVERLAY, "--seed", seed, "--", "cat /proc/self/mountinfo")
    line = next(line for line in done["execute"]["output"].splitlines() if " /workspace " in line)
    assert " - overlay " in line
    assert str(owner.place) not in done["execute"]["output"]


@pytest.mark.parametrize("number", range(12))
def test_random_work_has_the_same_results_as_on_a_copy(owner, number):
    """The oracle is the copy: what is seen, what comes home, and the counts."""
    rand = random.Random(4200 + number)
    make_tree(owner.place / "plain", rand)
    shutil.copytree(owner.place / "plain", owner.place / "shown", symlinks=True,
                    copy_function=shutil.copy2, ignore=special_files)
    make_special(owner.place / "plain", owner.place / "shown")
    owner.give()
    script = f"{LOOK}\n{make_script(rand)}\n{LOOK}"
    answers = []
    for seed, options in ("plain", ("--backend", "isolated")), ("shown", OVERLAY):
        common = [*options, "--exclude", "lib", "--max-output", "4M", "--seed", owner.place / seed]
        out = owner.place / f"{seed}-out"
        home = owner.report(*common, "--sync", "--", script)
        away = owner.report(*common, f"--sync={out}", "--", script)
        for answer in home, away:
            assert answer["seed"].pop("mode") == ("copy" if seed == "plain" else "overlay")
            for measured in "duration_seconds", "cpu_seconds", "peak_bytes", "sandbox_peak_bytes":
                del answer["execute"][measured]
            answer.pop("kept_workspace", None)  # of a sync that met a link or a directory
        answers.append({"home": home, "away": away, "seed": describe(owner.place / seed),
                        "out": describe(out) if out.exists() else []})
    owner.forget_workspaces()
    differences = [key for key in answers[0] if answers[0][key] != answers[1][key]]
    lines = [json.dumps(answer, indent=1, default=repr).replace("\\n", "\n").splitlines()
             for answer in answers]
    assert not differences, "\n".join(difflib.unified_diff(*lines, "copy", "overlay", n=2))


def special_files(directory: str, names: list[str]) -> list[str]:
    return [name for name in names if Path(directory, name).is_fifo()]


def make_special(source: Path, target: Path) -> None:
    for directory, _, files in os.walk(source):
        for name in files:
            path = Path(directory, name)
            if path.is_fifo():
                place = target / path.relative_to(source)
                mode = place.parent.stat().st_mode
                place.parent.chmod(0o755)
                os.mkfifo(place)
                place.parent.chmod(mode)


def test_what_belongs_to_others_is_copied_and_that_is_said(owner, seed):
    if os.getuid() != 0:
        pytest.skip("only root can give a file away")
    os.chown(seed / "src/a.py", 12345, 12345)
    done = owner.run(*OVERLAY, "--seed", seed, "--json", "--", "cat src/a.py; ls -A")
    report = json.loads(done.stdout)
    assert report["execute"]["output"] == "a\nREADME.md\nsrc\n"
    assert report["seed"]["mode"] == "copy"
    assert "src/a.py" in report["seed"]["fallback"]
    assert "another user" in report["seed"]["fallback"]
    assert "is copied" in done.stderr


def test_a_workspace_that_is_not_empty_gets_a_copy(owner, seed):
    (owner.place / "work").mkdir()
    (owner.place / "work/kept").write_text("kept")
    owner.give()
    report = owner.report(*OVERLAY, "--seed", seed, "--workspace", owner.place / "work", "--",
                          "ls -A")
    assert report["execute"]["output"] == "README.md\nkept\nsrc\n"
    assert report["seed"]["fallback"] == "the workspace is not empty"


def test_a_named_workspace_keeps_what_was_changed(owner, seed):
    work = owner.place / "work"
    work.mkdir()
    owner.give()
    report = owner.report(*OVERLAY, "--seed", seed, "--workspace", work, "--",
                          "echo b > src/b.py; rm README.md")
    assert report["seed"]["mode"] == "overlay"
    assert sorted(str(path.relative_to(work)) for path in work.rglob("*")) == [
        "changes", "changes/README.md", "changes/src", "changes/src/b.py"]
    assert (work / "changes/README.md").is_char_device()


def test_a_sync_that_fails_keeps_the_changes(owner, seed):
    (owner.place / "file").write_text("in the way")
    owner.give()
    done = owner.run(*OVERLAY, "--seed", seed, f"--sync={owner.place / 'file'}", "--",
                     "echo b > src/b.py")
    (work,) = owner.tmp.iterdir()
    assert f"the results are kept in {work}/changes" in done.stderr
    assert (work / "changes/src/b.py").read_text() == "b\n"
    shutil.rmtree(work)


def test_layers_on_an_overlay_give_way_to_a_copy(owner, seed):
    """The kernel does not take an overlay for the upper layer of another."""
    mounted = owner.place / "mounted"
    for name in "lower", "upper", "work", "mounted":
        (owner.place / name).mkdir()
    owner.give()
    script = (f'cd {owner.place} && mount -t overlay none -o userxattr,lowerdir=lower,'
              f'upperdir=upper,workdir=work mounted && exec "$@"')
    done = owner.run(*OVERLAY, "--seed", seed, "--json", "--", "ls -A", TMPDIR=str(mounted),
                     before=("unshare", "-Urm", "sh", "-c", script, "sh"))
    report = json.loads(done.stdout)
    assert report["execute"]["output"] == "README.md\nsrc\n"
    assert report["seed"]["mode"] == "copy"
    assert report["seed"]["fallback"]
    assert "is copied" in done.stderr
    shutil.rmtree(owner.place / "work")


def test_a_file_system_inside_the_seed_gives_way_to_a_copy(owner, seed):
    script = f'mount -t tmpfs none {seed}/src && echo m > {seed}/src/m.py && exec "$@"'
    done = owner.run(*OVERLAY, "--seed", seed, "--json", "--", "cat src/m.py",
                     before=("unshare", "-Urm", "sh", "-c", script, "sh"))
    report = json.loads(done.stdout)
    assert report["execute"]["output"] == "m\n"
    assert "another file system" in report["seed"]["fallback"]


@pytest.mark.parametrize("options, complaint", [
    (("--backend", "local", "--seed-mode", "overlay", "--seed", "."), "needs --backend isolated"),
    (OVERLAY, "without --seed"),
    (("--seed-mode", "magic"), "none of: copy, overlay"),
])
def test_what_cannot_be_meant_is_refused(pinfold, options, complaint):
    done = pinfold("run", *options, "--", "true")
    assert done.returncode == 125
    assert complaint in done.stderr


def test_a_bad_seed_is_told_as_for_a_copy(owner, seed):
    for options in ("--backend", "isolated"), OVERLAY:
        done = owner.run(*options, "--seed", owner.place / "missing", "--", "true")
        assert done.returncode == 125
        assert "missing" in done.stderr and "No such file" in done.stderr
