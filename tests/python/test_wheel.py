# SPDX-License-Identifier: Apache-2.0
"""The wheel: pip makes it offline, of the sources alone, and it needs nothing but Debian's
libraries."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
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


def source_archive(place: Path) -> Path:
    """What people get who build it themselves."""
    program = (f"import sys; sys.path.insert(0, {str(ROOT / 'python')!r}); import pinfold_build; "
               f"print(pinfold_build.build_sdist({str(place)!r}))")
    return place / run(sys.executable, "-B", "-c", program).split()[-1]


@pytest.fixture(scope="module")
def installed() -> Iterator[Path]:
    """A fresh environment, with the wheel in it that pip made of the sources' archive."""
    with tempfile.TemporaryDirectory(prefix="pinfold-wheel-test-") as path:
        place = Path(path)
        run(sys.executable, "-m", "venv", place / "venv")
        # Nothing of this machine's configuration, no index, no cache: it must do without.
        env = {**os.environ, "PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1",
               "PIP_NO_CACHE_DIR": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        env.pop("PYTHONPATH", None)
        run(place / "venv/bin/pip", "wheel", "--wheel-dir", place / "wheels",
            source_archive(place), env=env)
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


def test_archives_of_the_sources_are_whole_and_always_the_same(tmp_path: Path) -> None:
    paths = [source_archive(tmp_path / name) for name in ("a", "b") if not
             (tmp_path / name).mkdir()]
    assert paths[0].read_bytes() == paths[1].read_bytes()
    with tarfile.open(paths[0]) as archive:
        entries = {entry.name: entry for entry in archive}
    assert {name.split("/")[0] for name in entries} == {"pinfold-0.1.0"}
    assert {"meson.build", "python/src/call.c", "src/base/error.c", "pyproject.toml",
            "PKG-INFO", "tools/musl", "docs/python.md",
            "man/meson.build"} <= {name.split("/", 1)[1] for name in entries}
    assert {(entry.uid, entry.mtime, entry.isfile()) for entry in entries.values()} \
        == {(0, 0, True)}
    assert entries["pinfold-0.1.0/tools/musl"].mode == 0o755
    assert not any("__pycache__" in name or name.endswith(".o") for name in entries)


# ---- a system that has Debian's essential packages, its Python, and no more ----

LIBRARIES = Path("/usr/lib") / (sysconfig.get_config_var("MULTIARCH") or "")


def base_packages() -> set[str]:
    """What Debian has on every machine, and what its Python needs."""
    fields = "${Package}\t${Essential}\t${Provides}\t${Pre-Depends}, ${Depends}\n"
    needs: dict[str, list[list[str]]] = {}
    provided: dict[str, str] = {}
    wanted = ["python3", "python3-venv"]
    for line in run("dpkg-query", "-W", "-f", fields).splitlines():
        name, essential, provides, depends = line.split("\t")
        words = [[re.sub(r"[:( ].*", "", one.strip()) for one in group.split("|")]
                 for group in depends.split(",") if group.strip()]
        needs[name] = words
        for one in provides.split(","):
            provided.setdefault(re.sub(r"[:( ].*", "", one.strip()), name)
        if essential == "yes":
            wanted.append(name)
    found: set[str] = set()
    while wanted:
        name = wanted.pop()
        name = name if name in needs else provided.get(name, "")
        if name in needs and name not in found:
            found.add(name)
            wanted += [next((one for one in group if one in needs or one in provided), "")
                       for group in needs[name]]
    return found


def base_libraries(place: Path) -> Path:
    """A copy of LIBRARIES as that system has it."""
    for line in run("dpkg-query", "-L", *sorted(base_packages())).splitlines():
        path = Path("/usr" + line if line.startswith("/lib/") else line)
        if LIBRARIES in path.parents and (path.is_symlink() or path.is_file()):
            to = place / path.relative_to(LIBRARIES)
            to.parent.mkdir(parents=True, exist_ok=True)
            if not to.is_symlink() and not to.exists():
                shutil.copy2(path, to, follow_symlinks=False)
    return place


def test_wheel_runs_where_there_is_nothing_else(installed: Path) -> None:
    own = [] if os.getuid() == 0 else ["--map-root-user"]
    words = ["unshare", "--mount", "--propagation", "private", *own]
    if subprocess.run([*words, "mount", "-t", "tmpfs", "none", "/mnt"], check=False,
                      stderr=subprocess.DEVNULL).returncode:
        pytest.skip("needs the right to mount")
    base = base_libraries(installed / "base")
    assert (base / "libc.so.6").exists() and not list(base.glob("libjansson*"))
    package = next(installed.glob("venv/lib/*/site-packages/pinfold"))
    for path in package.iterdir():  # also what is loaded by programs that this test does not run
        if path.is_file() and path.read_bytes()[:4] == b"\x7fELF":
            needed = re.findall(r"NEEDED.*\[(.*)\]", run("readelf", "-d", path))
            assert [one for one in needed
                    if not (base / one).exists() and not (package / one).exists()] == []
    script = ('mount -t tmpfs none /usr/local/lib; mount --bind "$0" "$1"; '
              'exec "$2" -I -c "$3"')
    env = {"PATH": "/usr/bin:/bin", "TMPDIR": tempfile.gettempdir()}
    told = run(*words, "sh", "-ec", script, base, LIBRARIES, installed / "venv/bin/python",
               PROGRAM, env=env, cwd=installed)
    assert told.split()[0] == "agent" and str(installed) in told
