# SPDX-License-Identifier: Apache-2.0
"""The adapters against the packages that they are for, each in an environment of its own."""

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from owners import BUILD

ADAPTERS = Path(__file__).with_name("integrations")
# What is installed stays in the build directory, for the next run.
PACKAGES = {
    "deepagents": ["deepagents==0.7.32", "langchain-tests==1.1.9"],
    "openai_agents": ["openai-agents==0.24.0"],
    "strands": ["strands-agents==1.62.0"],
}
INSTALL_SECONDS, RUN_SECONDS = 600, 600


def install(place: Path, packages: list[str]) -> None:
    """Make an environment. Nobody uses one that is half made."""
    shutil.rmtree(place, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", place], check=True, capture_output=True,
                   timeout=INSTALL_SECONDS)
    subprocess.run([place / "bin/python", "-m", "pip", "install", "--quiet", "--retries", "1",
                    *packages, "pytest", "pytest-asyncio"], check=True, capture_output=True,
                   timeout=INSTALL_SECONDS)
    (place / "packages").write_text(repr(packages))


def environment(name: str) -> Path:
    """The Python that has the packages."""
    folder = BUILD / "environments"
    folder.mkdir(exist_ok=True)
    place, packages = folder / name, PACKAGES[name]
    with open(folder / f"{name}.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        made = place / "packages"
        if not made.exists() or made.read_text() != repr(packages):
            try:
                install(place, packages)
            except (subprocess.SubprocessError, OSError):
                shutil.rmtree(place, ignore_errors=True)
                pytest.skip(f"{packages[0].split('==')[0]} cannot be installed")
    return place / "bin/python"


@pytest.mark.parametrize("name", PACKAGES)
def test_adapter_does_what_its_package_wants(name: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [environment(name), "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "ignore",
         "-o", "asyncio_mode=auto", "--basetemp", tmp_path / "basetemp", "--rootdir", ADAPTERS,
         "--confcutdir", ADAPTERS, ADAPTERS / f"{name}_tests.py"], cwd=tmp_path, text=True, timeout=RUN_SECONDS,
        env={**os.environ, "PYTHONPATH": str(BUILD / "python"), "TMPDIR": str(tmp_path)},
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    last = done.stdout.rstrip().splitlines()[-1]
    assert done.returncode == 0 and " passed" in last and "skipped" not in last, done.stdout


def test_adapters_load_nothing_before_they_are_asked_for() -> None:
    """And say which package is missing."""
    assert sorted(path.stem.removesuffix("_tests") for path in ADAPTERS.glob("*_tests.py")) == \
        sorted(PACKAGES)
    for module in PACKAGES:
        text = f"""if True:
            import sys
            class Missing:
                def find_spec(self, name, path=None, target=None):
                    if name.split(".")[0] in ("deepagents", "strands", "agents"):
                        raise ModuleNotFoundError(name)
            sys.meta_path.insert(0, Missing())
            import pinfold
            import pinfold.integrations
            try:
                import pinfold.integrations.{module}
            except ModuleNotFoundError as error:
                print(error)"""
        done = subprocess.run([sys.executable, "-c", text], text=True, capture_output=True,
                              check=False, env={**os.environ, "PYTHONPATH": str(BUILD / "python")})
        assert (done.returncode, done.stderr) == (0, "") and done.stdout, module
