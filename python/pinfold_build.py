# SPDX-License-Identifier: Apache-2.0
"""Makes the wheel: a build backend (PEP 517) that needs no other Python package.

The library and its programs are built by meson, in a directory of their own, and lie beside the
extension in the wheel: the library looks for its programs where it is itself.
"""

import base64
import gzip
import hashlib
import io
import os
import re
import shutil
import stat
import subprocess
import sysconfig
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("pinfold", "elsai", "elsai_tools")
# Beside the extension. The middle two start commands; the last is for programs inside a sandbox.
PROGRAMS = ("pinfold-init", "pinfold-launch", "pinfold-connect")
# Copied beside them: Debian's own Python brings the other libraries that they are linked with.
BUNDLED = ("libjansson.so.4", "libcares.so.2")
EXTENSION = "_pinfold.abi3.so"
LIBRARY = "libpinfold.so.0"
SOURCES = ("LICENSE", "README.md", "docs", "include", "meson.build", "meson_options.txt",
           "pyproject.toml", "python", "src", "tools", "completions", "man")


def _environment() -> dict:
    """Without what pip sets so that this backend sees no other packages: meson is one."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


def _run(*words) -> str:
    try:
        done = subprocess.run([str(word) for word in words], cwd=ROOT, env=_environment(),
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    except FileNotFoundError:
        raise SystemExit(f"{words[0]} is missing; on Debian, {ROOT}/tools/deps build installs "
                         "what the build needs") from None
    if done.returncode:
        raise SystemExit(f"{done.stdout}\n{words[0]} failed; on Debian, {ROOT}/tools/deps build "
                         "installs what the build needs")
    return done.stdout


def _version() -> str:
    return re.search(r"version : '([^']+)'", (ROOT / "meson.build").read_text())[1]


def _bundled(library: Path) -> list:
    """The paths of BUNDLED, as they were linked. Other systems have them where they are."""
    if not shutil.which("dpkg-query"):
        return []
    found = dict(re.findall(r"^\s*(\S+) => (\S+)", _run("ldd", library), re.MULTILINE))
    return [Path(found[name]) for name in BUNDLED]


def _terms(path: Path) -> tuple:
    """The name of a library's package, and its terms, which Debian keeps where it is installed."""
    real = path.resolve()
    owner = _run("dpkg-query", "--search", f"*/{real.name}").split(":")[0]
    return owner, Path(f"/usr/share/doc/{owner}/copyright").read_bytes()


def _build(place: Path) -> list:
    """Build what goes beside the package's modules; the paths of it."""
    build = place / "build"
    _run("meson", "setup", build, ROOT, "--prefix=/wheel", "-Dbuildtype=release", "-Dtests=false",
         "-Dpython=enabled", "-Dpython_dir=python",
         f"-Dpython_include={sysconfig.get_path('include')}")
    _run("ninja", "-C", build, f"libpinfold.so.{_version()}", *PROGRAMS,
         f"python/pinfold/{EXTENSION}")
    # Installing corrects where the extension looks for the library.
    _run("meson", "install", "-C", build, "--no-rebuild", "--tags", "python", "--destdir", place)
    return [place / "wheel" / "python" / EXTENSION, build / LIBRARY,
            *(build / name for name in PROGRAMS)]


class _Wheel:
    """A zip file that keeps the record which wheels have."""

    def __init__(self, path: Path, info: str):
        self.file = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED)
        self.info, self.record = info, []

    def add(self, name: str, data: bytes, mode: int = 0o644) -> None:
        entry = zipfile.ZipInfo(name)  # its time is always the same: equal sources, equal wheels
        entry.external_attr = (stat.S_IFREG | mode) << 16
        entry.compress_type = zipfile.ZIP_DEFLATED
        self.file.writestr(entry, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self.record.append(f"{name},sha256={digest},{len(data)}")

    def close(self) -> None:
        name = f"{self.info}/RECORD"
        self.add(name, "\n".join([*self.record, f"{name},,", ""]).encode())
        self.file.close()


def _metadata(version: str) -> bytes:
    text = (f"Metadata-Version: 2.1\nName: pinfold\nVersion: {version}\n"
            "Summary: Workspaces in which AI agents may run anything\nLicense: Apache-2.0\n"
            "Requires-Python: >=3.10\nDescription-Content-Type: text/markdown\n\n")
    return text.encode() + (ROOT / "docs/python.md").read_bytes()


def _tag() -> str:
    return f"cp310-abi3-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"


def _describe() -> dict:
    """The files of dist-info but the record."""
    return {
        "METADATA": _metadata(_version()),
        "LICENSE": (ROOT / "LICENSE").read_bytes(),
        "WHEEL": (f"Wheel-Version: 1.0\nGenerator: pinfold_build\nRoot-Is-Purelib: false\n"
                  f"Tag: {_tag()}\n").encode(),
    }


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    """PEP 517; without it everything would be built twice."""
    info = f"pinfold-{_version()}.dist-info"
    place = Path(metadata_directory) / info
    place.mkdir()
    for name, data in _describe().items():
        (place / name).write_bytes(data)
    return info


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """PEP 517."""
    version = _version()
    name = f"pinfold-{version}-{_tag()}.whl"
    wheel = _Wheel(Path(wheel_directory) / name, f"pinfold-{version}.dist-info")
    for package in PACKAGES:
        for path in sorted((ROOT / "python" / package).rglob("*")):
            if path.suffix in (".py", ".pyi", ".typed"):
                wheel.add(str(path.relative_to(ROOT / "python")), path.read_bytes())
    place = Path(tempfile.mkdtemp(prefix="pinfold-wheel-"))
    try:
        for path in _build(place):
            wheel.add(f"pinfold/{path.name}", path.read_bytes(), 0o755)
        for path in _bundled(place / "build" / LIBRARY):
            wheel.add(f"pinfold/{path.name}", path.read_bytes(), 0o755)
            owner, terms = _terms(path)
            wheel.add(f"{wheel.info}/licenses/{owner}", terms)
    finally:
        shutil.rmtree(place)
    for own, data in _describe().items():
        wheel.add(f"{wheel.info}/{own}", data)
    wheel.close()
    return name


def _sources() -> list:
    """Every file that a wheel is made of, sorted."""
    found = []
    for source in SOURCES:
        path = ROOT / source
        found += [path] if path.is_file() else [one for one in path.rglob("*") if one.is_file()]
    return sorted(one for one in found if "__pycache__" not in one.parts)


def _add(archive: tarfile.TarFile, name: str, data: bytes, executable: bool = False) -> None:
    entry = tarfile.TarInfo(name)  # of nobody, and of no time: equal sources, equal archives
    entry.size, entry.mode = len(data), 0o755 if executable else 0o644
    archive.addfile(entry, io.BytesIO(data))


def build_sdist(sdist_directory, config_settings=None):
    """PEP 517."""
    base = f"pinfold-{_version()}"
    name = f"{base}.tar.gz"
    with open(Path(sdist_directory) / name, "wb") as file, \
            gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed, \
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in _sources():
            _add(archive, f"{base}/{path.relative_to(ROOT)}", path.read_bytes(),
                 bool(path.stat().st_mode & stat.S_IXUSR))
        _add(archive, f"{base}/PKG-INFO", _metadata(_version()))
    return name
