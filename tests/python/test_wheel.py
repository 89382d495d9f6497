# SPDX-License-Identifier: Apache-2.0
"""The wheel: pip makes it offline, and it needs nothing but Debian's libraries."""

import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path
from typing import Any, Iterator

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """if True:
    import asyncio
    from elsai.execution import Sandbox, workspace_id_for_run
    import pinfold
    async def main():
        async with Sandbox(workspace_id_for_run("wheel"), pinfold.IsolatedSandboxBackend(),
                           ttl_seconds=60) as sandbox:
            print((await sandbox.execute("id -un")).output, end="")
        print(pinfold.__file__, pinfold.__version__)
    asyncio.run(main())"""


def run(*words: Any, **options: Any) -> str:
    done = subprocess.run([str(word) for word in words], text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                          timeout=1800, **options)
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def installed() -> Iterator[Path]:
    """A fresh environment, with the wheel that pip made of the checkout in it."""
    with tempfile.TemporaryDirectory(prefix="pinfold-wheel-test-") as path:
        place = Path(path)
        run(sys.executable, "-m", "venv", place / "venv")
        # Nothing of this machine's configuration, no index, no cache: it must do without.
        env = {**os.environ, "PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1",
               "PIP_NO_CACHE_DIR": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        env.pop("PYTHONPATH", None)
        run(place / "venv/bin/pip", "wheel", "--wheel-dir", place / "wheels", ROOT, env=env)
        wheel, = (place / "wheels").iterdir()
        run(place / "venv/bin/pip", "install", wheel, env=env)
        yield place


def test_wheel_runs_in_a_fresh_environment(installed: Path) -> None:
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    user, where, version = run(installed / "venv/bin/python", "-c", PROGRAM, env=env,
                               cwd=installed).split()
    assert user == "agent" and where.startswith(str(installed)) and version == "0.1.0"


def test_wheel_has_everything_in_it(installed: Path) -> None:
    path, = (installed / "wheels").iterdir()
    assert path.name.startswith("pinfold-0.1.0-cp310-abi3-linux_")
    with zipfile.ZipFile(path) as wheel:
        names = set(wheel.namelist())
        info = wheel.read("pinfold-0.1.0.dist-info/METADATA").decode()
    assert {"pinfold/__init__.py", "pinfold/py.typed", "pinfold/_pinfold.pyi",
            "pinfold/_pinfold.abi3.so", "pinfold/libpinfold.so.0", "pinfold/pinfold-init",
            "pinfold/integrations/deepagents.py",
            "pinfold/pinfold-launch", "pinfold/pinfold-connect", "elsai/execution.py",
            "elsai_tools/sandbox.py"} <= names
    assert "Requires-Dist" not in info
    for module in (ROOT / "python").glob("*/**/*.py"):
        assert str(module.relative_to(ROOT / "python")) in names


MAPPED = """if True:
    import asyncio, bz2, ctypes, lzma, ssl, zlib  # what of Python has libraries of its own
    {}
    print(*sorted({{line.split()[-1] for line in open("/proc/self/maps") if ".so" in line}}))"""
USED = """import pinfold
    async def main():
        async with pinfold.Sandbox("wheel", pinfold.IsolatedSandboxBackend(), 60) as sandbox:
            assert (await sandbox.execute("true")).success
    asyncio.run(main())"""
# As on a machine that has no libcurl.
NO_LIBCURL = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
void *dlopen(const char *name, int flags)
{
    void *(*real)(const char *, int) = dlsym(RTLD_NEXT, "dlopen");
    return real(name && strstr(name, "libcurl") ? "libcurl-that-is-not-here.so.4" : name, flags);
}
"""


def plain(installed: Path, text: str, **more: str) -> str:
    """What a program prints that the fresh environment runs."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return run(installed / "venv/bin/python", "-c", text, env={**env, **more}, cwd=installed)


def test_wheel_needs_no_library_that_python_does_not_bring(installed: Path) -> None:
    own = set(plain(installed, MAPPED.format("pass")).split())
    used = set(plain(installed, MAPPED.format(USED)).split())
    more = {path for path in used - own if "/lib-dynload/" not in path}
    assert {Path(path).name for path in more} >= {"libjansson.so.4", "libcares.so.2"}
    # Debian's essential packages bring this one.
    assert {Path(path).name.split(".so")[0] for path in more
            if not path.startswith(str(installed))} <= {"libpcre2-8"}
    info = next(installed.glob("venv/lib/*/site-packages/pinfold-*.dist-info"))
    assert {path.name for path in (info / "licenses").iterdir()} == {"libjansson4", "libc-ares2"}


def test_services_say_what_they_need(installed: Path) -> None:
    (installed / "none.c").write_text(NO_LIBCURL)
    run("gcc", "-shared", "-fPIC", "-o", installed / "none.so", installed / "none.c")
    text = """if True:
        import pinfold
        try:
            pinfold.DaytonaSandboxTemplate(api_key="key")
        except NotImplementedError as error:
            print(error)"""
    assert plain(installed, text) == ""
    told = plain(installed, text, LD_PRELOAD=str(installed / "none.so"))
    assert "apt-get install libcurl4 ca-certificates" in told


def test_wheel_uses_the_stable_interface_alone(installed: Path) -> None:
    library = next(installed.glob("venv/lib/*/site-packages/pinfold/_pinfold.abi3.so"))
    needed = run("nm", "-D", "--undefined-only", library)
    assert "PyObject_CallObject" in needed
    private = [line.split()[-1] for line in needed.splitlines() if " _Py" in line]
    # These stand behind macros of the limited API.
    assert set(private) <= {"_Py_Dealloc", "_PyObject_New", "_Py_NoneStruct", "_Py_TrueStruct",
                            "_Py_FalseStruct", "_PyArg_ParseTuple_SizeT", "_Py_BuildValue_SizeT",
                            "_PyArg_ParseTupleAndKeywords_SizeT", "_PyObject_CallFunction_SizeT"}
    assert "$ORIGIN]" in run("readelf", "-d", library)


def test_sources_are_enough_for_a_wheel(tmp_path: Path) -> None:
    program = (f"import sys; sys.path.insert(0, {str(ROOT / 'python')!r}); import pinfold_build; "
               f"print(pinfold_build.build_sdist({str(tmp_path)!r}))")
    name = run(sys.executable, "-c", program).split()[-1]
    with tarfile.open(tmp_path / name) as archive:
        names = {entry.split("/", 1)[1] for entry in archive.getnames() if "/" in entry}
    assert {"meson.build", "python/src/call.c", "src/base/error.c", "pyproject.toml",
            "PKG-INFO", "tools/musl", "docs/python.md", "man/meson.build"} <= names
