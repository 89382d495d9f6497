# SPDX-License-Identifier: Apache-2.0
"""
Attacks on the isolated backend: each is shown to work without a sandbox wherever that is safe, and
must come to nothing inside. docs/security.md lists the known holes of other sandboxes among them.
"""

import os
import pty
import re
import shutil
import signal
import socket
import stat
import threading
import time
from pathlib import Path

import pytest

from conftest import HERE, IS_ROOT, PYTHON, Range

# ---- system calls ----

NAMES = sorted({name for source in HERE.glob("calls_*.c")
                for name in re.findall(r"ATTACK\((\w+)\)", source.read_text())})
# What a kernel may be built or configured without, and how it says so; and, in the first lines, what
# namespaces of one's own do not give either, so that no machine shows it.
MAY_LACK = {
    "mount_overlay": "EINVAL EPERM ENODEV", "mount_proc": "EPERM", "setns_pid1": "EACCES EPERM",
    "kexec": "ENOSYS", "load_module": "ENOSYS", "x32_numbers": "ENOSYS",
    "crypto_socket": "EAFNOSUPPORT ENOENT", "high_family": "EAFNOSUPPORT ENOENT",
    "old_gate": "ENOSYS SIGSEGV", "fault_handler": "ENOSYS EPERM", "uring": "ENOSYS EPERM ENOMEM",
    "type_ahead": "EIO EPERM", "type_ahead_high": "EIO EPERM", "vsock": "EAFNOSUPPORT",
    "add_key": "ENOSYS EDQUOT", "session_keyring": "ENOSYS EDQUOT", "unshare_time": "EINVAL EPERM",
    "set_id_fchmodat2": "ENOSYS", "descriptor_table": "ENOSYS", "watch_all": "ENOSYS EPERM EMFILE",
    "load_bpf": "ENOSYS EPERM", "iptables": "ENOPROTOOPT EPERM", "quota": "ENOSYS",
    "compare_processes": "ENOSYS EPERM", "audit_log": "EPROTONOSUPPORT",
    "netfilter": "EPROTONOSUPPORT",
}
ONLY_ROOT = {"setns_pidfd", "make_block_device", "make_mem_device", "set_uid_root", "set_groups",
             "perf_event", "kernel_log", "file_handle", "packet", "raw_ip", "raw_ip6"}

answers: dict[tuple[int, str], dict[str, str]] = {}


def ask(field: Range, backend: str) -> dict[str, str]:
    """One run serves all tests of an owner."""
    if (field.uid, backend) not in answers:
        shutil.copy(field.tools / "calls", field.workspace)
        flag = "--control" if backend == "local" else ""
        result = field.run(f"./calls {flag}", backend=backend)
        assert result.returncode == 0, result.stderr
        answers[field.uid, backend] = dict(line.split(" ", 1)
                                           for line in result.stdout.splitlines())
    return answers[field.uid, backend]


@pytest.mark.parametrize("name", NAMES)
def test_a_system_call_is_contained(field: Range, name: str) -> None:
    said = ask(field, "isolated")
    assert name in said or "x86_64" not in os.uname().machine
    assert said.get(name, "contained").startswith("contained"), said[name]
    if field.uid == 0 or name not in ONLY_ROOT:
        # Some machines refuse namespaces to ordinary users: then there is nothing to show.
        loose = ask(field, "local").get(name, "escaped")
        assert loose == "escaped" or loose.split()[-1] in MAY_LACK.get(name, "").split(), \
            "the attack does nothing: " + loose


# ---- reading what is outside ----

READ_MEMORY = """
import re
for pid in PIDS:
    try:
        for line in open(f"/proc/{pid}/maps"):
            span, rights = line.split()[:2]
            if rights.startswith("rw"):
                start, end = (int(x, 16) for x in span.split("-"))
                with open(f"/proc/{pid}/mem", "rb") as memory:
                    memory.seek(start)
                    found = re.search(rb"HALF[0-9a-f]{16}", memory.read(end - start))
                    if found:
                        print(found[0].decode())
                        break
    except OSError as error:
        print(error)
"""

READERS = {
    "absolute path": "cat {secret}",
    "dots": "cat ../../../../../../../../..{secret}",
    "dots of the root of a process": "cat /proc/self/root//../../../..{secret}",
    "dots of the working directory": "cat /proc/self/cwd/../../../../../..{secret}",
    "symbolic link": "ln -s {secret} link; cat link; cat link/",
    "link to a directory": "ln -s {outside} link; cat link/secret",
    "link to the root": "ln -s / link; cat link{secret}",
    "hard link": "ln {secret} hard; cat hard",
    "hard link by descriptor": "exec 7<{secret}; ln -L /proc/self/fd/7 hard; cat hard",
    "copy": "cp {secret} stolen; cat stolen",
    "search of everything": "test {sandboxed} = no && exec cat {secret}; "
                            "timeout 20 grep -rIsh {half} /etc /home /root /run /srv /var /tmp "
                            "/mnt /media /opt /boot /sys /dev/shm . 2>/dev/null",
    "root of a process": "for p in {pids}; do cat /proc/$p/root{secret}; done",
    "directory of a process": "for p in {pids}; do cat /proc/$p/cwd/secret; done",
    "descriptors of a process": "for p in {pids}; do for f in /proc/$p/fd/*; do test -f $f && "
                                "cat $f; done; done",
    "threads of a process": "for p in {pids}; do cat /proc/$p/task/$p/root{secret}; done",
    "environment of a process": "for p in {pids}; do cat /proc/$p/environ; done",
    "variables of the owner": "printenv HOST_TOKEN",
    "variables of the owner by /proc": "cat /proc/1/environ /proc/$PPID/environ /proc/self/environ",
    "shell with another root": "unshare -r chroot / cat {secret}",
    "links of mapped files": "for p in {pids}; do cat /proc/$p/map_files/*; done",
}
LOOSE_READERS = {"hard link by descriptor", "variables of the owner by /proc",
                 "shell with another root", "links of mapped files"}


@pytest.mark.parametrize("name", READERS)
def test_a_secret_is_not_read_by(field: Range, name: str) -> None:
    pid = field.victim().pid
    words = {"secret": field.secret, "outside": field.outside, "half": field.token[:16]}
    env = {"HOST_TOKEN": field.token}
    if name not in LOOSE_READERS:
        loose = field.control(READERS[name].format(pids=pid, sandboxed="no", **words), env=env)
        assert field.token in loose.stdout, "the attack does nothing: " + loose.stderr
        for left in field.workspace.iterdir():
            left.unlink()
    result = field.run(READERS[name].format(pids=f"1 2 {pid}", sandboxed="yes", **words), env=env)
    assert field.token not in result.stdout + result.stderr
    # Nor by the host, when it reads what was left in the workspace.
    out = field.place / "results"
    result = field.run("true", "--include", "**", f"--sync={out}")
    for path in out.rglob("*"):
        assert not path.is_symlink() and field.token not in path.read_text(errors="replace")


def test_the_memory_of_others_is_not_read(field: Range) -> None:
    pid = field.victim().pid
    script = READ_MEMORY.replace("HALF", field.token[:16])
    loose = field.control_python(script.replace("PIDS", f"[{pid}]"))
    if loose.returncode == 0 and "ermission" not in loose.stdout:  # Yama may forbid it
        assert field.token in loose.stdout
    result = field.python(script.replace("PIDS", f"[1, 2, {pid}]"))
    assert field.token not in result.stdout
    assert len(result.stdout.splitlines()) == 3, result.stdout + result.stderr  # three refusals


def test_an_inherited_descriptor_is_no_way_out(field: Range) -> None:
    """CVE-2024-21626: runc leaked a directory of the host."""
    script = "for f in /proc/self/fd/*; do cat $f/secret $f/../outside/secret; done"
    directory = os.open(field.outside, os.O_RDONLY)
    try:
        loose = field.popen(["/bin/sh", "-c", script], pass_fds=[directory])
        assert field.token in loose.communicate(timeout=30)[0]
        result = field.run(script, pass_fds=[directory])
    finally:
        os.close(directory)
    assert field.token not in result.stdout


def test_a_command_has_three_descriptors_and_they_are_pipes(field: Range) -> None:
    result = field.python("""
import os
for name in sorted(os.listdir("/proc/self/fd")):
    try:
        print(name, os.readlink("/proc/self/fd/" + name))
    except OSError:
        pass
""")
    kinds = [line.split()[1] for line in result.stdout.splitlines()]
    assert len(kinds) == 3, result.stdout
    assert all(kind.startswith("pipe:") or kind == "/dev/null" for kind in kinds), kinds


def test_the_first_process_tells_nothing(field: Range) -> None:
    result = field.python("""
import os
for name in ("environ", "mem", "maps", "auxv", "stack", "syscall", "io", "smaps", "pagemap"):
    try:
        data = open("/proc/1/" + name, "rb").read(16)
        print(name, data)
    except OSError:
        pass
for name in ("root", "cwd", "exe"):
    try:
        print(name, os.readlink("/proc/1/" + name))
    except OSError:
        pass
for name in ("fd", "map_files", "ns"):
    try:
        print([os.readlink(f"/proc/1/{name}/{x}") for x in os.listdir("/proc/1/" + name)])
    except OSError:
        pass
print(open("/proc/1/cmdline").read())
""")
    assert result.stdout == "pinfold-init\0\n"


@pytest.mark.skipif(not IS_ROOT, reason="only root may read it outside")
def test_the_passwords_of_the_host_are_not_there(field: Range) -> None:
    if field.uid == 0:
        assert int(field.control("wc -c </etc/shadow").stdout) > 0
    result = field.run("cat /etc/shadow /etc/gshadow; ls /etc/ssl/private /root /etc/sudoers")
    assert result.stdout == ""


KERNEL_FILES = ("/dev/kmsg", "/proc/timer_list", "/proc/slabinfo", "/proc/vmallocinfo",
                "/dev/mem", "/dev/kmem", "/dev/port", "/proc/kcore", "/proc/kmsg", "/proc/keys",
                "/proc/sched_debug", "/proc/kpageflags", "/sys/kernel/notes", "/dev/fuse",
                "/dev/kvm", "/dev/net/tun", "/dev/vda", "/dev/sda", "/dev/vsock", "/dev/loop0")


def test_system_memory_and_logs_are_closed(field: Range) -> None:
    script = """
import os
for path in {paths!r}:
    try:
        data = os.read(os.open(path, os.O_RDONLY | os.O_NONBLOCK), 100)
    except OSError:
        continue
    if data:
        print(path)
"""
    if field.uid == 0:  # the first four are harmless to read
        assert field.control_python(script.format(paths=KERNEL_FILES[:4])).stdout
    result = field.python(script.format(paths=KERNEL_FILES))
    assert (result.stdout, result.returncode) == ("", 0), result.stderr


def test_only_harmless_devices_exist(field: Range) -> None:
    result = field.python("""
import os, stat
for directory, _, names in os.walk("/dev"):
    for name in names:
        st = os.lstat(os.path.join(directory, name))
        if stat.S_ISCHR(st.st_mode) or stat.S_ISBLK(st.st_mode):
            print(name)
""")
    assert sorted(result.stdout.split()) == sorted(
            ["full", "null", "ptmx", "random", "tty", "urandom", "zero"])


# ---- changing what is outside ----

WRITERS = ["/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe",
           "/proc/sys/kernel/hotplug", "/proc/sys/vm/overcommit_memory",
           "/proc/sys/kernel/randomize_va_space", "/proc/sys/fs/binfmt_misc/register",
           "/proc/sys/net/ipv4/ip_forward", "/proc/sys/user/max_user_namespaces",
           "/proc/sys/kernel/ns_last_pid", "/proc/sys/kernel/pid_max", "/proc/sysrq-trigger",
           "/proc/1/oom_score_adj", "/proc/1/mem", "/proc/1/uid_map", "/proc/1/timens_offsets",
           "/proc/1/loginuid", "/proc/1/attr/current", "/proc/2/oom_score_adj",
           "/proc/1/clear_refs", "/proc/irq/default_smp_affinity", "/proc/mtrr",
           "/proc/self/uid_map", "/proc/self/setgroups", "/sys/kernel/uevent_helper",
           "/sys/power/state", "/sys/fs/cgroup/release_agent", "/sys/fs/cgroup/cgroup.procs",
           "/etc/passwd", "/etc/ld.so.cache", "/etc/hosts", "/etc/ssl/certs/escaped",
           "/etc/escaped", "/usr/bin/env", "/usr/bin/escaped", "/usr/lib/escaped", "/bin/sh",
           "/lib/escaped", "/escaped", "/proc/escaped", "/run/escaped", "/home/escaped"]


def test_nothing_of_the_system_is_opened_for_writing(field: Range) -> None:
    """CVE-2022-0492 and the like end in a write of such a file."""
    script = """
import os
for path in {paths!r}:
    try:
        os.close(os.open(path, os.O_WRONLY | {more}, 0o600))
        print(path)
    except OSError:
        pass
"""
    if field.uid == 0:  # opening alone changes nothing
        loose = field.control_python(script.format(paths=WRITERS[:5], more=0))
        assert "/proc/sys/kernel/core_pattern\n" in loose.stdout
    result = field.python(script.format(paths=WRITERS, more="os.O_CREAT"))
    assert (result.stdout, result.returncode) == ("", 0), result.stderr


def test_system_files_are_not_removed_renamed_or_touched(field: Range) -> None:
    result = field.python("""
import os
attempts = [
    lambda: os.unlink("/usr/bin/env"), lambda: os.rename("/usr/bin", "/usr/nib"),
    lambda: os.chmod("/usr/bin/env", 0o755), lambda: os.utime("/usr/bin/env"),
    lambda: os.unlink("/etc/passwd"), lambda: os.rename("/etc", "/workspace/etc"),
    lambda: os.rmdir("/home/agent"), lambda: os.unlink("/bin"), lambda: os.mkdir("/new"),
    lambda: os.symlink("/", "/etc/link"), lambda: os.setxattr("/usr/bin/env", "user.x", b"x"),
    lambda: os.rmdir("/workspace"), lambda: os.rename("/workspace", "/tmp/workspace"),
    lambda: os.truncate("/usr/bin/env", 0), lambda: os.link("/usr/bin/env", "/usr/bin/env2"),
    lambda: os.link("/usr/bin/env", "/workspace/env"), lambda: os.unlink("/dev/null"),
    lambda: os.mknod("/dev/sda", 0o60600, 0x800), lambda: os.rename("/proc/1", "/proc/one"),
]
for number, attempt in enumerate(attempts):
    try:
        attempt()
        print(number)
    except OSError:
        pass
""")
    assert (result.stdout, result.returncode) == ("", 0), result.stderr


def test_the_nodes_of_devices_cannot_be_changed(field: Range) -> None:
    """They are the host's, and owned by an owner who is root: chmod 0 of /dev/null would have been
    the end of the host. Masked files are the same node."""
    script = """
import os
for path in {paths!r}:
    for change in (lambda: os.chmod(path, os.stat(path).st_mode & 0o7777),
                   lambda: os.utime(path), lambda: os.chown(path, -1, os.getgid())):
        try:
            change()
            print(path)
        except OSError:
            pass
"""
    names = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty",
             "/proc/keys", "/proc/kcore", "/proc/timer_list", "/proc/kmsg"]
    if field.uid == 0:
        assert "/dev/full" in field.control_python(script.format(paths=["/dev/full"])).stdout
    result = field.python(script.format(paths=names))
    assert (result.stdout, result.returncode) == ("", 0), result.stderr


def test_the_program_of_the_first_process_is_not_overwritten(field: Range) -> None:
    """CVE-2019-5736."""
    init = field.tools / "pinfold-init"
    before = init.read_bytes()
    victim = field.victim()  # outside, the program of another process can be opened
    assert field.control(f"head -c 4 /proc/{victim.pid}/exe").stdout[1:] == "ELF"
    result = field.python("""
import os
for pid in (1, os.getppid(), 2):
    for path in (f"/proc/{pid}/exe", f"/proc/{pid}/root/usr/bin/env"):
        for flags in (os.O_WRONLY, os.O_RDWR | os.O_TRUNC, os.O_PATH, os.O_RDONLY):
            try:
                fd = os.open(path, flags)
                if b"init" in os.readlink(f"/proc/self/fd/{fd}").encode():
                    print(path, flags)
            except OSError:
                pass
try:
    os.execv("/proc/1/exe", ["x"])
except OSError:
    pass
""")
    assert (result.stdout, result.returncode) == ("", 0), result.stderr
    assert init.read_bytes() == before


def test_the_name_of_the_host_stays(field: Range) -> None:
    before = os.uname().nodename
    result = field.run("hostname escaped; uname -n")
    assert result.stdout == "pinfold\n"
    assert os.uname().nodename == before


# ---- privilege ----

def test_no_capability_is_left_or_regained(field: Range) -> None:
    script = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
for call in (lambda: libc.prctl(47, 2, 21, 0, 0), lambda: libc.prctl(28, 0, 0, 0, 0),
             lambda: libc.prctl(38, 0, 0, 0, 0), lambda: libc.setresuid(0, 0, 0),
             lambda: libc.setresgid(0, 0, 0)):
    if call() >= 0:
        print("granted")
for line in open("/proc/self/status"):
    if line.startswith(("Cap", "NoNewPrivs", "Seccomp:")):
        print(line.split()[1])
print(os.getresuid(), os.getresgid(), os.getgroups())
"""
    if field.uid == 0:
        assert "granted" in field.control_python(script).stdout
    result = field.python(script)
    assert result.stdout.split("\n")[:7] == ["0000000000000000"] * 5 + ["1", "2"]
    assert "granted" not in result.stdout
    assert "(1000, 1000, 1000) (1000, 1000, 1000)" in result.stdout


@pytest.mark.skipif(not IS_ROOT, reason="takes root to make a program that is set-id root")
def test_a_set_id_program_gains_nothing(field: Range) -> None:
    """CVE-2021-4034 and every other hole in such a program."""
    place = field.outside / "bin"
    place.mkdir()
    shutil.copy("/usr/bin/id", place)
    os.chown(place / "id", 0, 0)
    (place / "id").chmod(0o4755)
    assert field.control(f"{place}/id -u").stdout == "0\n"  # which root gains nothing by
    assert field.run(f"{place}/id -u", "--ro", place).stdout == "1000\n"
    assert field.run(f"{place}/id -u", "--rw", place).stdout == "1000\n"


def test_the_set_id_programs_of_the_system_do_nothing(field: Range) -> None:
    loose = field.control("su -c id" if field.uid == 0 else "unshare -Ur id")
    assert "uid=0" in loose.stdout or "ermitted" in loose.stderr  # to users, on some machines
    result = field.run("for c in 'su -c id' 'mount -t tmpfs x /tmp' 'umount /proc' 'sudo -n id' "
                       "'newgrp root -c id' 'chroot / id' 'unshare -Ur id' 'pkexec id'; do "
                       "timeout 5 $c </dev/null && echo worked: $c; done 2>/dev/null; true")
    assert "worked" not in result.stdout and "uid=0" not in result.stdout


def test_results_come_home_without_set_id_bits(field: Range) -> None:
    """Made by every call that takes a mode, of a file and of a directory."""
    script = """
import ctypes, os
libc = ctypes.CDLL(None)
os.umask(0)
at = -100
def unnamed():
    fd = os.open(".", os.O_TMPFILE | os.O_RDWR, 0o6755)
    libc.linkat(at, b"/proc/self/fd/%d" % fd, at, b"a.md", 0x400)
def directory():
    os.mkdir("d", 0o7777)
    os.chmod("d", 0o6777)
for make in (lambda: open("b.md", "w"), lambda: os.chmod("b.md", 0o6755),
             lambda: os.open("c.md", os.O_CREAT | os.O_WRONLY, 0o6755), unnamed, directory,
             lambda: os.mknod("e.md", 0o106755),
             lambda: libc.syscall(452, at, b"b.md", 0o6755, 0),
             lambda: os.setxattr("b.md", "security.capability",
                                 bytes.fromhex("0100000200000020000000000000000000000000"))):
    try:
        make()
    except OSError:
        pass
"""
    def found() -> list[str]:
        return [path.name for path in field.workspace.rglob("*")
                if path.lstat().st_mode & (stat.S_ISUID | stat.S_ISGID)]

    field.control_python(script)
    assert len(found()) >= 4
    for path in field.workspace.iterdir():
        path.rmdir() if path.is_dir() else path.unlink()
    field.python(script, f"--sync={field.place}/results")
    assert found() == []
    assert (field.workspace / "b.md").exists()
    assert "security.capability" not in os.listxattr(field.workspace / "b.md")
    for path in (field.place / "results").rglob("*"):
        assert not path.lstat().st_mode & (stat.S_ISUID | stat.S_ISGID)


# ---- processes ----

def running(mark: str) -> list[int]:
    """Processes of the whole machine that have the word among their arguments."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and mark in (entry / "cmdline").read_text().split("\0"):
                found.append(int(entry.name))
        except OSError:
            pass
    return found


def gone(mark: str) -> bool:
    deadline = time.monotonic() + 10
    while running(mark):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def test_a_signal_reaches_nobody_outside(field: Range) -> None:
    loose = field.victim()
    field.control(f"kill -9 {loose.pid}")
    assert loose.wait(timeout=10) == -9
    victim = field.victim()
    field.run(f"kill -9 {victim.pid}; kill -9 -{victim.pid}; kill -9 -1")
    assert victim.poll() is None


def test_a_signal_to_its_own_group_stays_inside(field: Range) -> None:
    """Groups are the kernel's, not the namespace's: kill(0) of a sandbox that had stayed in its
    owner's group would reach outside."""
    victim = field.victim(group=0)
    result = field.run("kill -TERM 0; sleep 5", process_group=victim.pid)
    assert victim.poll() is None
    assert result.returncode == 128 + 15
    result = field.python("""
import os, signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for target in ((os.setpgid, 0, 1), (os.setpgid, 0, 2)):
    try:
        target[0](*target[1:])
    except OSError:
        pass
os.kill(0, signal.SIGTERM)
print("alive")
""", process_group=victim.pid)
    assert result.stdout == "alive\n" and victim.poll() is None


def test_the_first_process_does_not_die_or_stop(field: Range) -> None:
    result = field.run("for s in KILL STOP TERM INT HUP SEGV ABRT USR1 TSTP QUIT; do "
                       "kill -$s 1; done; sleep 0.1; grep State /proc/1/status")
    assert re.search(r"State:\s+S", result.stdout), result.stdout + result.stderr


@pytest.mark.parametrize("sig", ["KILL", "STOP", "SEGV"])
def test_whoever_ends_his_supervisor_ends_too(field: Range, sig: str) -> None:
    mark = f"{field.token}-{sig}"
    started = time.monotonic()
    result = field.python(f"""
import os, subprocess, sys, time
for _ in range(3):
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(50)", "{mark}"],
                     start_new_session=True, stdout=subprocess.DEVNULL,
                     stderr=subprocess.DEVNULL)
def parent(pid):
    with open(f"/proc/{{pid}}/stat") as stat:
        return int(stat.read().rpartition(")")[2].split()[1])
supervisor = os.getppid() # or a shell between
if parent(supervisor) != 1:
    supervisor = parent(supervisor)
os.system("kill -{sig} $PPID; kill -{sig} %d; kill -{sig} %d" % (supervisor, os.getppid()))
time.sleep(40)
print("outlived")
""")
    # Supervisors block SIGSEGV: it ends the attacker alone.
    assert "outlived" not in result.stdout and result.returncode == (139 if sig == "SEGV" else 137)
    assert time.monotonic() - started < 30
    assert gone(mark)


@pytest.mark.parametrize("how", ["setsid", "double fork", "ignored signals"])
def test_nothing_survives_the_end(field: Range, how: str) -> None:
    mark = f"{field.token}-{how.replace(' ', '-')}"
    sleeper = f"{PYTHON} -c 'import time; time.sleep(50)' {mark} </dev/null >/dev/null 2>&1"
    loose = field.popen(["/bin/sh", "-c", f"setsid {sleeper} & sleep 0.2"])
    assert loose.wait(timeout=30) == 0
    survivors = running(mark)
    for pid in survivors:
        os.kill(pid, signal.SIGKILL)
    assert survivors and gone(mark)
    result = field.run({
        "setsid": f"setsid {sleeper} & sleep 0.2",
        "double fork": f"( ( setsid {sleeper} & ) & ) ; sleep 0.2",
        "ignored signals": f"trap '' TERM HUP INT; setsid {sleeper} & sleep 0.2",
    }[how])
    assert result.returncode == 0
    assert gone(mark)


def test_nothing_survives_a_killed_owner(field: Range) -> None:
    mark = field.token
    owner = field.popen(field.arguments(
            f"setsid {PYTHON} -c 'import time; time.sleep(50)' {mark} & sleep 50"))
    deadline = time.monotonic() + 20
    while not running(mark):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    owner.kill()
    owner.wait()
    assert gone(mark)


def test_processes_of_the_host_are_not_seen(field: Range) -> None:
    mark = field.token
    sleeper = field.popen([PYTHON, "-c", "import time; time.sleep(50)", mark])
    script = f"cat /proc/[0-9]*/cmdline | tr '\\0' '\\n' | grep -x -- {mark[:-1]}[{mark[-1]}]"
    deadline = time.monotonic() + 20
    while not running(mark):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert field.control(script).stdout == mark + "\n"
    assert field.run(script).stdout == ""
    assert sleeper.poll() is None


def test_the_terminal_of_the_owner_is_out_of_reach(field: Range) -> None:
    """CVE-2017-5226: what is typed into it runs outside."""
    script = f"""{PYTHON} -c '
import fcntl, os
for path in ("/dev/tty", "/dev/console", "/dev/tty0", "/dev/pts/0", "/dev/pts/1",
             "/proc/self/fd/0", "/proc/self/fd/1", "/proc/self/fd/2"):
    try:
        fd = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
        if os.isatty(fd):
            print("terminal", path)
    except OSError:
        pass
print("done")
'"""
    def on_terminal(words: list[str]) -> str:
        pid, fd = pty.fork()
        if pid == 0:
            try:
                if field.uid != os.getuid():
                    os.setgroups([])
                    os.setresgid(field.uid, field.uid, field.uid)
                    os.setresuid(field.uid, field.uid, field.uid)
                os.environ["TMPDIR"] = str(field.tmp)
                os.chdir("/")
                os.execv(words[0], words)
            finally:
                os._exit(99)
        output = b""
        try:
            while data := os.read(fd, 4096):
                output += data
        except OSError:
            pass
        os.close(fd)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0, output
        return output.decode(errors="replace")

    assert "terminal /dev/tty" in on_terminal(["/bin/sh", "-c", script])
    said = on_terminal(field.arguments(script))
    assert "done" in said and "terminal" not in said


# ---- network and sockets ----

CONNECT = """
import socket, sys
for family, address in {targets!r}:
    with socket.socket(family, socket.SOCK_STREAM) as s:
        s.settimeout(3)
        try:
            s.connect(address)
            print(s.recv(100).decode())
        except OSError as error:
            print("no:", error)
"""


@pytest.fixture
def serve(field: Range):
    """Listeners of the host that tell their secret to whoever connects."""
    sockets: list[socket.socket] = []

    def listen(family: int, address) -> object:
        s = socket.socket(family, socket.SOCK_STREAM)
        s.bind(address)
        s.listen()
        sockets.append(s)

        def answer() -> None:
            while True:
                try:
                    client, _ = s.accept()
                except OSError:
                    return
                client.sendall(field.token.encode())
                client.close()
        threading.Thread(target=answer, daemon=True).start()
        return s.getsockname()
    yield listen
    for s in sockets:
        s.shutdown(socket.SHUT_RDWR)
        s.close()


def test_a_service_on_the_loopback_of_the_host_is_not_reached(field: Range, serve) -> None:
    port = serve(socket.AF_INET, ("127.0.0.1", 0))[1]
    wide = serve(socket.AF_INET, ("0.0.0.0", 0))[1]
    targets = [(int(socket.AF_INET), ("127.0.0.1", port))]
    assert field.token in field.control_python(CONNECT.format(targets=targets)).stdout
    targets += [(int(socket.AF_INET), (host, wide))
                for host in ("127.0.0.1", "127.1.2.3", "0.0.0.0", "10.0.2.2", "172.17.0.1")]
    targets += [(int(socket.AF_INET6), (host, wide)) for host in ("::1", "::ffff:127.0.0.1")]
    result = field.python(CONNECT.format(targets=targets))
    assert field.token not in result.stdout
    assert result.stdout.count("no:") == len(targets), result.stdout + result.stderr


@pytest.mark.parametrize("kind", ["file", "link", "abstract"])
def test_a_unix_socket_of_the_host_is_not_reached(field: Range, serve, kind: str) -> None:
    """A daemon's socket is root; abstract ones were CVE-2020-15257."""
    name = "\0pinfold-escape-" + field.token if kind == "abstract" else str(field.outside / "sock")
    serve(socket.AF_UNIX, name)
    if kind != "abstract":
        os.chmod(name, 0o777)
    if kind == "link":
        os.symlink(name, field.workspace / "sock")
        name = "sock"
    script = CONNECT.format(targets=[(int(socket.AF_UNIX), name)])
    assert field.token in field.control_python(script).stdout
    result = field.python(script)
    assert result.stdout.startswith("no:"), result.stdout + result.stderr


def test_the_network_is_a_loopback_and_nothing_else(field: Range) -> None:
    result = field.python("""
import errno, socket
print([name for _, name in socket.if_nameindex()])
for host in ("169.254.169.254", "192.0.2.1", "8.8.8.8", "255.255.255.255"):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        with socket.socket(socket.AF_INET, kind) as s:
            s.settimeout(3)
            try:
                s.connect((host, 53))
                print("reached", host)
            except OSError as error:
                if error.errno not in (errno.ENETUNREACH, errno.EACCES):
                    print(host, error)
for host in ("fd00:ec2::254", "2001:db8::1", "fe80::1"):
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as s:
        try:
            s.sendto(b"x", (host, 53))
            print("reached", host)
        except OSError:
            pass
try:
    print(socket.getaddrinfo("escape.example.org", 80))
except OSError:
    print("no names")
print(open("/proc/net/route").read().count("\\n"))
""")
    assert result.stdout == "['lo']\nno names\n1\n", result.stdout + result.stderr


def test_no_interface_or_route_is_made(field: Range) -> None:
    loose = field.popen(["unshare", "-Urn", "sh", "-c", "ip link set lo up && echo worked"])
    said = loose.communicate(timeout=30)
    assert "worked" in said[0] or "ermitted" in said[1], said
    result = field.run("for c in 'link add d type dummy' 'link set lo down' 'addr add 10.9.8.7/8 "
                       "dev lo' 'route add default dev lo' 'netns add x' 'tuntap add mode tun'; do "
                       "ip $c && echo worked: $c; done; true")
    assert "worked" not in result.stdout


# ---- limits ----

def test_a_fork_bomb_runs_into_the_limit(field: Range) -> None:
    script = """
import os, signal, time
count, most = 0, {most}
while count < most:
    try:
        if os.fork() == 0:
            time.sleep(30)
            os._exit(0)
        count += 1
    except OSError:
        break
print(count)
"""
    assert field.control_python(script.format(most=650)).stdout == "650\n"
    result = field.python(script.format(most=3000), "--processes", "100")
    assert 10 < int(result.stdout) < 600  # where root cannot be counted, 512 numbers in all


def test_memory_runs_into_the_limit(field: Range) -> None:
    script = "data = bytearray(256 << 20); print(len(data))"
    assert field.control_python(script).stdout == f"{256 << 20}\n"
    result = field.python(script, "--memory", "128M")
    assert result.stdout == "" and result.returncode != 0


@pytest.mark.parametrize("kind", ["shared", "memfd"])
def test_shared_memory_runs_into_the_limit(field: Range, kind: str) -> None:
    script = f"""
import mmap, os
fd = -1
if {kind!r} == "memfd":
    fd = os.memfd_create("x")
    os.truncate(fd, 192 << 20)
data = mmap.mmap(fd, 192 << 20)
for at in range(0, len(data), 4096):
    data[at] = 1
print("filled")
"""
    assert field.control_python(script).stdout == "filled\n"
    result = field.python(script, "--memory", "128M")
    if field.uid == 0:
        assert "filled" not in result.stdout
    else:  # it takes a control group, which a user does not have: docs/security.md says so
        assert result.stdout == "filled\n"


def test_file_systems_in_memory_are_small(field: Range) -> None:
    result = field.python("""
import errno, os
for path in ("/tmp", "/dev/shm", "/home/agent"):
    st = os.statvfs(path)
    print(st.f_blocks * st.f_frsize <= 1 << 30, 0 < st.f_files <= 1 << 18)
    fd = os.open(path + "/large", os.O_CREAT | os.O_RDWR)
    try:
        os.posix_fallocate(fd, 0, 2 << 30)
        print("filled")
    except OSError as error:
        print(error.errno == errno.ENOSPC)
    os.truncate(fd, 0)
""")
    assert result.stdout == "True True\nTrue\n" * 3, result.stdout + result.stderr


def test_inodes_run_out_before_memory(field: Range) -> None:
    result = field.python("""
import os
os.chdir("/tmp")
try:
    for number in range(400000):
        os.symlink("x", str(number))
    print("filled")
except OSError as error:
    print(error.strerror)
""")
    assert result.stdout == "No space left on device\n"


def test_the_root_and_dev_cannot_be_filled(field: Range) -> None:
    result = field.run("for d in / /dev /etc /etc/ssl /run /home /proc /usr /dev/pts; do "
                       "touch $d/x 2>/dev/null && echo $d; done; true")
    assert result.stdout == ""


def test_no_core_is_dumped(field: Range) -> None:
    result = field.run("ulimit -c unlimited 2>/dev/null; sh -c 'kill -SEGV $$'; ls")
    assert result.stdout == ""


def test_the_handler_of_core_dumps_is_not_started(field: Range) -> None:
    """CVE-2025-4598 and many before: a handler runs as root, outside. Only a limit of exactly 1
    keeps the kernel from starting it; 0 does not (core(5))."""
    result = field.python("""
import ctypes, resource
libc = ctypes.CDLL(None)
new = (ctypes.c_uint64 * 2)(0, 0)
print(resource.getrlimit(resource.RLIMIT_CORE))
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
libc.setrlimit(resource.RLIMIT_CORE, new)
libc.prlimit(0, resource.RLIMIT_CORE, new, None)
libc.syscall(%d, resource.RLIMIT_CORE | 1 << 32, new)
print(resource.getrlimit(resource.RLIMIT_CORE))
""" % (160 if os.uname().machine == "x86_64" else 164))
    assert result.stdout == "(1, 1)\n(1, 1)\n", result.stdout + result.stderr


def test_a_limit_is_not_raised(field: Range) -> None:
    result = field.python("""
import resource
for name in ("NPROC", "NOFILE", "DATA"):
    kind = getattr(resource, "RLIMIT_" + name)
    soft, hard = resource.getrlimit(kind)
    try:
        resource.setrlimit(kind, (hard, hard + 1))
        print(name)
    except (ValueError, OSError):
        pass
    if hard == resource.RLIM_INFINITY:
        print("unlimited", name)
""")
    # Where a control group counts memory, programs may reserve what they like.
    expected = "unlimited DATA\n" if field.uid == 0 else ""
    assert (result.stdout, result.returncode) == (expected, 0), result.stderr


# ---- the host's side of the workspace ----

def test_links_in_the_workspace_are_not_followed_home(field: Range) -> None:
    out = field.place / "results"
    field.run(f"ln -s {field.secret} secret.md; ln -s {field.outside} docs; ln -s / src; "
              f"mkdir tests; ln -s ../../outside/secret tests/secret.py; echo fine > fine.md",
              "--include", "**", f"--sync={out}")
    assert (out / "fine.md").read_text() == "fine\n"
    for path in out.rglob("*"):
        assert not path.is_file() or field.token not in path.read_text()
    naive = field.place / "naive"  # what copying without care brings home
    shutil.copytree(field.workspace, naive, ignore=shutil.ignore_patterns("src"))
    assert (naive / "secret.md").read_text() == field.token + "\n"


def test_a_link_at_the_destination_is_not_written_through(field: Range) -> None:
    """What an earlier run left there must not lead a later one out."""
    out = field.place / "results"
    decoy = field.place / "decoy"
    decoy.write_text("here\n")
    (field.place / "link").symlink_to(decoy)
    shutil.copy(field.secret, field.place / "link")  # copying without care goes through
    assert decoy.read_text() == field.token + "\n"
    out.mkdir()
    (out / "docs").symlink_to(field.outside)
    (out / "note.md").symlink_to(field.secret)
    field.give(out)
    field.run("mkdir docs; echo evil > docs/secret; echo evil > docs/new; echo evil > note.md",
              "--include", "**", f"--sync={out}")
    assert field.secret.read_text() == field.token + "\n"
    assert [path.name for path in field.outside.iterdir()] == ["secret"]


SWAP = """
import os, sys, time
end = time.monotonic() + {seconds}
os.makedirs("real", exist_ok=True)
open("real/secret", "w").write("decoy")
os.symlink("{outside}", "link")
print("ready", flush=True)
while time.monotonic() < end:
    for name in ("real", "link"):
        try:
            os.rename(name, "src")
            os.rename("src", name)
        except OSError:
            pass
"""


def test_links_swapped_under_the_host_lead_nowhere(field: Range) -> None:
    """CVE-2018-15664, CVE-2021-30465 and their kind: while the agent swaps a directory for a link to the host's, the
    host copies out of and into the same workspace."""
    out, seed = field.place / "results", field.place / "seed"
    (seed / "src").mkdir(parents=True)
    (seed / "src/secret").write_text("evil")
    (seed / "src/new").write_text("evil")
    field.give(seed)
    (field.workspace / "swap.py").write_text(SWAP.format(seconds=3, outside=field.outside))
    agent = field.popen(field.arguments(f"{PYTHON} swap.py"))
    deadline, rounds = time.monotonic() + 2, 0
    while time.monotonic() < deadline:
        field.run("true", "--seed", seed, "--include", "**", f"--sync={out}", backend="local")
        rounds += 1
        assert field.secret.read_text() == field.token + "\n"
        assert [path.name for path in field.outside.iterdir()] == ["secret"]
        for path in out.rglob("*"):
            assert path.is_symlink() or not path.is_file() or \
                   field.token not in path.read_text()
    assert agent.wait(timeout=30) == 0
    assert rounds > 3


def test_swapping_goes_on_while_the_results_are_taken(field: Range) -> None:
    """The same with one sandbox: what was started in the background may still be there."""
    out = field.place / "results"
    script = SWAP.format(seconds=2, outside=field.outside)
    for _ in range(5):
        (field.workspace / "swap.py").write_text(script)
        field.run(f"setsid {PYTHON} swap.py </dev/null >/dev/null 2>&1 & sleep 0.1",
                  "--include", "**", f"--sync={out}")
        for path in out.rglob("*"):
            assert path.is_symlink() or not path.is_file() or \
                   field.token not in path.read_text()
        (field.workspace / "link").unlink(missing_ok=True)


def test_fifos_sockets_and_odd_names_do_not_hold_the_host(field: Range) -> None:
    out = field.place / "results"
    result = field.python("""
import os, socket
os.mkfifo("fifo.md")
socket.socket(socket.AF_UNIX).bind("socket.md")
for name in (b"\\n.md", b"\\xff\\xfe.md", b"-rf.md", b"$(id).md", b" .md", b"a" * 250 + b".md"):
    open(name, "w").write("x")
os.symlink("loop.md", "loop.md")
open("fine.md", "w").write("fine")
""", f"--sync={out}", timeout=30)
    assert result.returncode in (0, 125), result.stderr
    assert (out / "fine.md").read_text() == "fine"
    assert not (out / "fifo.md").exists() and not (out / "socket.md").exists()


def test_a_huge_sparse_file_does_not_fill_the_host(field: Range) -> None:
    out = field.place / "results"
    (field.workspace / "make.py").write_text(
            "import os\nopen('big.md', 'w')\nos.truncate('big.md', 1 << 34)\n")
    started = time.monotonic()
    result = field.run(f"{PYTHON} make.py", f"--sync={out}", timeout=60)
    taken = sum(path.stat().st_blocks * 512 for path in out.rglob("*")) if out.exists() else 0
    assert taken < 1 << 20, result.stderr
    assert time.monotonic() - started < 60


@pytest.mark.parametrize("trick", ["mkdir -p a/b/c; touch a/b/c/f; chmod 0 a/b/c a/b a",
                                   "chmod 0 .", "chmod 0 /workspace; cd /; true",
                                   f"{PYTHON} -c 'import os\nfor _ in range(1000): os.mkdir(\"d\"), os.chdir(\"d\")'",
                                   "mkfifo x; ln -s / y; ln -s . z; touch -- -rf"])
def test_a_temporary_workspace_is_removed_whatever_was_done_to_it(field: Range,
                                                                  trick: str) -> None:
    """The fixture looks whether it is gone."""
    field.run(trick, workspace=False)
    assert field.secret.exists()


def test_a_directory_shown_read_only_is_not_written(field: Range) -> None:
    field.outside.chmod(0o777)
    script = (f"cd {field.outside}; echo x > new; rm secret; mv secret b; chmod 777 secret; "
              f"touch secret; ln secret /workspace/hard; cat secret")
    before = field.secret.stat()
    result = field.run(script, "--ro", field.outside)
    assert result.stdout.strip() == field.token  # it is shown
    assert [path.name for path in field.outside.iterdir()] == ["secret"]
    after = field.secret.stat()
    assert (before.st_mode, before.st_mtime_ns, before.st_nlink) == (
            after.st_mode, after.st_mtime_ns, after.st_nlink)
    field.run(script, "--rw", field.outside)  # what only that option opens
    assert sorted(path.name for path in field.outside.iterdir()) != ["secret"]


def test_a_shown_directory_does_not_show_its_neighbours(field: Range) -> None:
    shown = field.place / "shown"
    shown.mkdir()
    (shown / "up").symlink_to("../outside")
    field.give(shown)
    for option in "--ro", "--rw":
        result = field.run(f"cat {shown}/../outside/secret {shown}/up/secret {field.secret}; "
                           f"ls {field.place}", option, shown)
        assert result.stdout.split() == ["shown"]


def test_a_link_left_in_a_shown_directory_does_not_lead_a_later_mount(field: Range) -> None:
    """The first agent prepares the place where the second sandbox mounts."""
    shown = field.place / "shown"
    (shown / "inner").mkdir(parents=True)
    field.give(shown)
    field.run(f"rmdir {shown}/inner; ln -s /usr/bin {shown}/inner", "--rw", shown)
    result = field.run("cat /usr/bin/secret; ls /usr/bin | wc -l", "--rw", shown, "--ro",
                       shown / "inner")
    assert field.token not in result.stdout
    assert not result.stdout or int(result.stdout.split()[-1]) > 10


def test_with_the_network_of_the_host_all_else_holds(field: Range, serve) -> None:
    """An open network is not an open machine: signals, files and abstract sockets stay closed where
    Landlock can scope them (Linux 6.12)."""
    victim = field.victim()
    result = field.run(f"cat {field.secret}; kill -9 {victim.pid}; unshare -Ur id; "
                       f"ip link set lo down && echo down", "--net", "host")
    assert result.stdout == "" and victim.poll() is None
    if tuple(int(n) for n in re.findall(r"\d+", os.uname().release)[:2]) >= (6, 12):
        name = "\0pinfold-escape-" + field.token
        serve(socket.AF_UNIX, name)
        result = field.python(CONNECT.format(targets=[(int(socket.AF_UNIX), name)]), "--net",
                              "host")
        assert field.token not in result.stdout
