# SPDX-License-Identifier: Apache-2.0
"""
Attacks from a read-only view on the workspace, on its writer, and on the sandbox that it is a view
of; some with the help of the writer. Controls run the same attack beside the writer, where there is
no wall.
"""

import shutil
import subprocess

import pytest

from conftest import PYTHON, Range
from test_escape import NAMES


class Pair:
    """A workspace with a file in it, by itself or by an overlay, and who may attack it."""

    def __init__(self, field: Range, overlay: bool):
        self.field, self.overlay = field, overlay
        self.given = field.place / "seed" if overlay else field.workspace
        self.given.mkdir(exist_ok=True)
        (self.given / "kept").write_text("kept\n")
        field.give(self.given)

    def read(self) -> str:
        """What the file holds after an attack."""
        changed = self.field.workspace / "changes" / "kept"
        if changed.exists():
            assert (self.given / "kept").read_text() == "kept\n"
            return changed.read_text()
        return (self.given / "kept").read_text()

    def clear(self, *names: str) -> None:
        """Forget what an attack made; with an overlay the next one does."""
        if not self.overlay:
            for name in names:
                (self.given / name).unlink()

    def attack(self, reader: str, writer: str = "", control: bool = False):
        """Run READER in the view; both are Python."""
        if (self.field.workspace / "changes").exists():
            shutil.rmtree(self.field.workspace / "changes")
        for name, script in ("reader.py", reader), ("writer.py", writer):
            (self.given / name).write_text(script)
        words = [self.field.tools / "view_pair", self.field.workspace, f"{PYTHON} reader.py"]
        if writer:
            words.append(f"{PYTHON} writer.py")
        env = {"VIEW_PAIR_SEED": str(self.given)} if self.overlay else {}
        self.field.give(self.given)
        child = self.field.popen([str(word) for word in words],
                                 {**env, "VIEW_PAIR_CONTROL": "1"} if control else env)
        out, err = child.communicate(timeout=90)
        assert child.returncode not in (2, 125), err
        return subprocess.CompletedProcess(reader, child.returncode, out, err)


@pytest.fixture(params=["copy", "overlay"])
def pair(field: Range, request: pytest.FixtureRequest) -> Pair:
    return Pair(field, request.param == "overlay")


AWAIT = """
import os, time
def wait_for(path):
    for _ in range(1000):
        if os.path.exists(path):
            return
        time.sleep(0.01)
    raise SystemExit(f"{path} does not come")
"""

# The writer is an accomplice: it hands a descriptor that is open for writing to whoever connects.
HAND_OUT = """
import array, os, socket, threading, time
os.chdir("/workspace")
fd = os.open("kept", os.O_RDWR)
rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))]
def serve(server):
    while True:
        connection, _ = server.accept()
        connection.sendmsg([b"x"], rights)
for kind, name in (socket.SOCK_STREAM, "stream"), (socket.SOCK_SEQPACKET, "seqpacket"):
    server = socket.socket(socket.AF_UNIX, kind)
    server.bind(name)
    server.listen()
    threading.Thread(target=serve, args=[server], daemon=True).start()
mailbox = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
mailbox.bind("mailbox")
open("ready", "w").close()
while True:  # whoever sends us his end of a pair gets it by that
    data, sent, _, _ = socket.recv_fds(mailbox, 100, 1)
    if sent:
        socket.socket(fileno=sent[0]).sendmsg([b"x"], rights)
"""

CONNECT = AWAIT + """
import socket
wait_for("ready")
where = socket.socket(socket.AF_UNIX, socket.KIND)
where.connect("PATH")
_, fds, _, _ = socket.recv_fds(where, 100, 1)
os.write(fds[0], b"written by a reader")
print("written")
"""

MAIL = AWAIT + """
import socket
wait_for("ready")
mine, theirs = socket.socketpair()
# The datagram half of a pair, which may be connected anew.
letter, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
letter.connect("mailbox")
socket.send_fds(letter, [b"x"], [theirs.fileno()])
_, fds, _, _ = socket.recv_fds(mine, 100, 1)
os.write(fds[0], b"written by a reader")
print("written")
"""


@pytest.mark.parametrize("kind", ["stream", "seqpacket", "mailbox"])
def test_no_descriptor_is_handed_in_over_a_socket_in_the_workspace(pair: Pair, kind: str) -> None:
    reader = MAIL if kind == "mailbox" else \
        CONNECT.replace("KIND", f"SOCK_{kind.upper()}").replace("PATH", kind)
    done = pair.attack(reader, HAND_OUT)
    assert "written" not in done.stdout and done.returncode == 1
    assert "not supported" in done.stdout
    assert pair.read() == "kept\n"
    pair.clear("stream", "seqpacket", "mailbox", "ready")
    assert "written" in pair.attack(reader, HAND_OUT, control=True).stdout
    assert pair.read() == "written by a reader"


def test_a_connected_pair_stays_one(pair: Pair) -> None:
    done = pair.attack("""
import socket
for kind in "SOCK_STREAM", "SOCK_SEQPACKET":
    a, b = socket.socketpair(socket.AF_UNIX, getattr(socket, kind))
    a.send(b"works"); print(b.recv(5).decode())
    attempts = dict(connect=lambda: a.connect("stream"), listen=lambda: a.listen())
    if kind == "SOCK_STREAM":  # of packets the address is not even looked at
        attempts["sendto"] = lambda: a.sendto(b"x", "stream")
    for state in "whole", "half":
        for name, attempt in attempts.items():
            try: attempt(); print(name, "was done:", kind, state)
            except OSError: pass
        b.close()
""", HAND_OUT)
    assert done.stdout == "works\nworks\n" and done.returncode == 0, done


SPEAK = """
import os
for path, flags in ("kept", os.O_WRONLY), ("kept", os.O_RDWR), (".", os.O_TMPFILE | os.O_RDWR):
    for way in "/workspace", "/proc/self/cwd", "/proc/1/cwd", "/proc/1/root/workspace", \\
               "/proc/thread-self/root/workspace", f"/proc/{os.getppid()}/cwd", \\
               f"/proc/self/fd/{os.open('.', os.O_PATH)}", \\
               f"/proc/self/fd/{os.open('.', os.O_RDONLY)}":
        try: os.open(f"{way}/{path}", flags); print("open", way, path)
        except OSError: pass
held = os.open("kept", os.O_PATH)
try: os.open(f"/proc/self/fd/{held}", os.O_RDWR); print("open again")
except OSError: pass
for entry in os.listdir("/proc"):
    if entry.isdigit():
        for what in "cwd", "root", "exe", *(f"fd/{n}" for n in range(64)):
            try: os.open(f"/proc/{entry}/{what}/kept", os.O_RDWR); print("open by", entry, what)
            except OSError: pass
"""


def test_no_other_name_of_the_workspace_is_writable(pair: Pair) -> None:
    assert pair.attack(SPEAK).stdout == ""
    assert "open /workspace kept" in pair.attack(SPEAK, control=True).stdout
    assert pair.read() == "kept\n"


def test_no_mount_call_makes_it_writable(pair: Pair) -> None:
    """By its place and by a descriptor of it, from here and from namespaces of one's own."""
    script = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
REMOUNT, BIND, CLONE, EMPTY = 32, 4096, 1, 0x1000
held = os.open("/workspace", os.O_PATH)
writable = (ctypes.c_uint64 * 4)(0, 1, 0, 0)  # clear MOUNT_ATTR_RDONLY
def writes(path):
    try: os.open(path + "/kept", os.O_WRONLY); print("written by", path)
    except OSError: pass
def clone(at, path, flags):
    fd = libc.syscall(428, at, path, CLONE | flags)
    if fd >= 0 and libc.syscall(442, fd, b"", EMPTY, writable, 32) == 0: print("cloned", path)
    return fd
tries = dict(
    remount=lambda: libc.mount(None, b"/workspace", None, REMOUNT | BIND, None),
    remount_file_system=lambda: libc.mount(None, b"/workspace", None, REMOUNT, None),
    bind=lambda: libc.mount(b"/workspace", b"/tmp/here", None, BIND, None),
    attributes=lambda: libc.syscall(442, -100, b"/workspace", 0, writable, 32),
    attributes_of_descriptor=lambda: libc.syscall(442, held, b"", EMPTY, writable, 32),
    clone=lambda: clone(-100, b"/workspace", 0),
    clone_descriptor=lambda: clone(held, b"", EMPTY),
    pick=lambda: libc.syscall(433, held, b"", EMPTY),
    unmount=lambda: libc.umount2(b"/workspace", 2),
    namespaces=lambda: libc.unshare(0x10000000 | 0x20000),
    chroot=lambda: libc.chroot(b"/proc/1/root"),
)
os.mkdir("/tmp/here")
for name, attempt in tries.items():
    print(name, "was done" if attempt() >= 0 else "refused")
    for path in "/workspace", "/tmp/here", f"/proc/self/fd/{held}":
        writes(path)
"""
    said = pair.attack(script).stdout.splitlines()
    assert len(said) == 11 and all(line.endswith(" refused") for line in said), said
    assert pair.read() == "kept\n"


def test_memory_of_a_file_is_not_written(pair: Pair) -> None:
    script = """
import mmap, os
fd = os.open("kept", os.O_RDONLY)
for protection in mmap.PROT_WRITE, mmap.PROT_READ | mmap.PROT_WRITE:
    try: mmap.mmap(fd, 5, mmap.MAP_SHARED, protection); print("mapped")
    except PermissionError: pass
private = mmap.mmap(fd, 5, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE)
private[0:1] = b"X"
print(private[:4].decode())
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
shared = libc.mmap
shared.restype = ctypes.c_void_p
at = shared(None, ctypes.c_size_t(4096), 1, 1, fd, ctypes.c_long(0))
print("made writable" if libc.mprotect(ctypes.c_void_p(at), ctypes.c_size_t(4096), 3) == 0 else "no")
"""
    assert pair.attack(script).stdout == "Xept\nno\n"
    assert pair.read() == "kept\n"


def test_files_do_not_get_names_elsewhere(pair: Pair) -> None:
    script = """
import os
for target in "/tmp/l", "/dev/shm/l", "/home/agent/l", "l":
    for source in "kept", f"/proc/self/fd/{os.open('kept', os.O_RDONLY)}":
        try: os.link(source, target, follow_symlinks=True); print("linked", target)
        except OSError: pass
        try: os.rename("kept", target); print("moved", target)
        except OSError: pass
"""
    assert pair.attack(script).stdout == ""
    assert "linked l" in pair.attack(script, control=True).stdout


def test_the_writer_is_neither_seen_nor_signalled(pair: Pair) -> None:
    writer = """
import ctypes, mmap, os, socket, time
libc = ctypes.CDLL(None)
libc.shmget(4711, 4096, 0o1666)
open("/dev/shm/writers", "w").write("x")
abstract = socket.socket(socket.AF_UNIX); abstract.bind("\\0writers"); abstract.listen()
tcp = socket.create_server(("127.0.0.1", 4711))
open("ready", "w").close()
for i in range(3000):
    time.sleep(0.01)
    open("alive", "w").write(str(i))
"""
    reader = AWAIT + """
import ctypes, signal, socket
wait_for("alive")
libc = ctypes.CDLL(None, use_errno=True)
if libc.shmget(4711, 4096, 0) >= 0: print("found shared memory")
if os.path.exists("/dev/shm/writers"): print("found /dev/shm")
try: socket.create_connection(("127.0.0.1", 4711), 2); print("connected")
except OSError: pass
for pid in os.listdir("/proc"):
    if pid.isdigit() and b"writer.py" in open(f"/proc/{pid}/cmdline", "rb").read():
        print("found", pid)
        os.kill(int(pid), signal.SIGTERM)
before = open("alive").read()
for _ in range(500):
    time.sleep(0.01)
    if open("alive").read() not in (before, ""):
        raise SystemExit(0)
print("the writer has stopped")
"""
    assert pair.attack(reader, writer).stdout == ""
    pair.clear("ready", "alive")
    found = pair.attack(reader, writer, control=True).stdout
    for what in "found shared memory", "found /dev/shm", "connected", "has stopped":
        assert what in found


def test_no_system_call_opens_the_wall(pair: Pair) -> None:
    """All attacks of calls_*.c once more, in a view."""
    target = pair.given / "calls"
    target.write_bytes((pair.field.tools / "calls").read_bytes())
    target.chmod(0o755)
    said = pair.attack("import os; os.chdir('/tmp'); os.execv('/workspace/calls', ['calls'])").stdout
    lines = [line for line in said.splitlines() if line.split(" ")[0] in NAMES]
    assert len(lines) > 50
    assert [line for line in lines if "contained" not in line] == []


def test_links_that_the_writer_swaps_do_not_lead_a_reader_out(pair: Pair) -> None:
    secret = pair.field.secret
    writer = f"""
import os
while True:
    for name, target in ("a", "{secret}"), ("a", "kept"), ("d", "/etc"), ("d", "{secret.parent}"):
        try: os.unlink(name)
        except OSError: pass
        try: os.symlink(target, name)
        except OSError: pass
"""
    reader = AWAIT + """
wait_for("kept")
for _ in range(3000):
    for path in "a", "d/secret", "d/shadow":
        try: print(open(path).read())
        except OSError: pass
"""
    done = pair.attack(reader, writer)
    assert done.returncode == 0
    assert pair.field.token not in done.stdout
