# SPDX-License-Identifier: Apache-2.0
"""What else runs a command apart from the rest of a machine: how each is called here, or why not.

Peers tries each of them once. What it made, a running container say, close() removes.
"""
import json
import os
import pathlib
import resource
import shutil
import subprocess
import tempfile

from report import Grid

MASKED = ["/proc/kcore", "/proc/keys", "/proc/timer_list"]
NAMESPACES = ["pid", "network", "ipc", "uts", "cgroup", "mount"]
BWRAP_NAME = "bwrap --unshare-all"
BWRAP = ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
NSJAIL = ["nsjail", "-Mo", "-Q", "--rlimit_nofile", "soft", "--chroot", "/", "--"]
MINIJAIL = ["minijail0", *([] if os.geteuid() == 0 else ["-U", "-m", "-M"]),
            *"-p -v -r -e -l -N --uts -n --".split()]
CONTAINERS = "crun run", "podman run"
ULIMIT = 10_000
PACKAGES = {"bwrap": "bubblewrap", "crun": "crun", "podman": "podman"}

# The old hierarchies of control groups alone, of a machine that has both kinds, which crun refuses.
# The namespace lives until standard input ends.
OLD_GROUPS = r"""
set -eu
mount -t tmpfs tmpfs "$1"
sed -n 's|^[^ ]* /sys/fs/cgroup/\([^ ]*\) cgroup .*|\1|p' /proc/mounts | while read -r name; do
    mkdir "$1/$name"
    mount --bind "/sys/fs/cgroup/$name" "$1/$name"
done
mount --move "$1" /sys/fs/cgroup
echo ready
exec cat >/dev/null
"""


def inside(argv):
    """An argument vector of drivers.py as a command of its own."""
    if argv[0].startswith("@"):
        return ["nsenter", f"--mount={argv[0][1:]}", "--", *argv[1:]]
    return list(argv)


def failure(argv):
    """Run a program; return None, or what it said last."""
    with tempfile.TemporaryFile("w+", errors="replace") as output:  # a container keeps it open
        done = subprocess.run(inside(argv), stdin=subprocess.DEVNULL, stdout=output,
                              stderr=subprocess.STDOUT, check=False)
        if done.returncode == 0:
            return None
        output.seek(0)
        said = [line for line in output.read().splitlines() if line.strip()]
    return said[-1][:200] if said else f"ended with {done.returncode}"


class Peers:
    """starts: {name: argument vector} of a sandbox for one command, true. execs: of one
    command in a container that runs, the words of which are still to be added. absent: {name: why}."""

    def __init__(self, place):
        self.place = pathlib.Path(place)
        self.starts, self.execs, self.absent = {}, {}, {}
        self.views, self.undo = [], []
        self.try_sandbox(BWRAP_NAME, BWRAP)
        self.try_crun()
        self.try_podman()
        self.try_sandbox("nsjail", NSJAIL)
        self.try_sandbox("minijail0", MINIJAIL)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for argv in reversed(self.undo):
            failure(argv)
        for holder in self.views:
            holder.stdin.close()
            holder.wait()

    def missing(self):
        """What is not in the tables that follow, and why."""
        if self.absent:
            yield Grid("Not measured here", None, ["", "why"], self.absent.items())

    def beside_bwrap(self, promise):
        """The promise, if bwrap is there, which is what it is about; bwrap comes first then."""
        return promise if BWRAP_NAME in self.starts else None

    def is_missing(self, name, program):
        if shutil.which(program):
            return False
        package = PACKAGES.get(program)
        self.absent[name] = (f"not installed; tools/deps bench installs {package}" if package else
                             "not installed, and not a package of Debian 12")
        return True

    def try_sandbox(self, name, argv):
        if self.is_missing(name, argv[0]):
            return
        why = failure([*argv, "/bin/true"])
        if why:
            self.absent[name] = why
        else:
            self.starts[name] = [*argv, "true"]

    def old_groups(self):
        """The mount namespace with the old control groups alone: ["@FILE"]; [] without one."""
        if not self.views:
            mounts = self.place / "groups"
            mounts.mkdir()
            holder = subprocess.Popen(["unshare", "--mount", "sh", "-c", OLD_GROUPS, "sh", mounts],
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      stderr=subprocess.DEVNULL)
            if holder.stdout.readline() != b"ready\n":
                holder.wait()
                return []
            self.views.append(holder)
        return [f"@/proc/{self.views[0].pid}/ns/mnt"]

    def try_here_and_there(self, argv, words):
        """Try as it is, and with old control groups. Returns (argv, None) or (None, why)."""
        why = failure([*argv, *words])
        if not why:
            return argv, None
        view = self.old_groups()
        if not view:
            return None, why
        why = failure([*view, *argv, *words])
        return (None, why) if why else ([*view, *argv], None)

    def try_crun(self):
        if self.is_missing("crun", "crun"):
            return
        if os.geteuid() != 0:
            self.absent["crun"] = "without root it makes no control groups: not comparable"
            return
        once, resident = self.bundle("once", ["true"]), self.bundle("resident", ["sleep", "3600"])
        base, why = self.try_here_and_there(["crun", "--root", str(self.place / "crun")],
                                            ["run", "--bundle", str(once), f"try-{os.getpid()}"])
        if why:
            self.absent["crun"] = why
            return
        self.starts["crun run"] = [*base, "run", "--bundle", str(once), "bench-{}"]
        name = f"bench-resident-{os.getpid()}"
        why = failure([*base, "run", "--detach", "--bundle", str(resident), name])
        self.undo.append([*base, "delete", "--force", name])
        if why:
            self.absent["crun exec"] = why
        else:
            self.execs["crun exec"] = [*base, "exec", name]

    def bundle(self, name, args):
        """A container that shows the host's programs and no more; crun takes it from a directory.
        It cannot have the root that bwrap shows: crun cannot make "/" itself a root."""
        bundle = self.place / name
        bundle.mkdir()
        config = {
            "ociVersion": "1.0.0",
            "process": {"user": {"uid": 0, "gid": 0}, "args": args, "cwd": "/",
                        "env": ["PATH=/usr/bin:/bin"], "noNewPrivileges": True},
            "root": {"path": str(self.rootfs()), "readonly": True},
            "mounts": [{"destination": "/proc", "type": "proc", "source": "proc"},
                       {"destination": "/dev", "type": "tmpfs", "source": "tmpfs"},
                       {"destination": "/usr", "type": "bind", "source": "/usr",
                        "options": ["rbind", "ro"]}],
            "linux": {"namespaces": [{"type": kind} for kind in NAMESPACES],
                      "maskedPaths": MASKED},
        }
        (bundle / "config.json").write_text(json.dumps(config), encoding="ascii")
        return bundle

    def try_podman(self):
        if self.is_missing("podman", "podman"):
            return
        if os.geteuid() != 0:
            self.absent["podman"] = "without root its network and storage differ: not comparable"
            return
        store = self.place / "podman"
        podman = ["podman", "--root", str(store / "root"), "--runroot", str(store / "run"),
                  "--tmpdir", str(store / "tmp"), "--storage-driver", "vfs",
                  "--cgroup-manager", "cgroupfs", "--events-backend", "none"]
        run = ["run", "--network", "none", *self.limits(), "--volume", "/usr:/usr:ro"]
        rootfs = ["--rootfs", str(self.rootfs())]
        base, why = self.try_here_and_there(podman, [*run, "--rm", *rootfs, "true"])
        if why:
            self.absent["podman"] = why
            return
        self.starts["podman run"] = [*base, *run, "--rm", *rootfs, "true"]
        name = f"bench-resident-{os.getpid()}"
        why = failure([*base, *run, "--detach", "--name", name, *rootfs, "sleep", "3600"])
        self.undo.append([*base, "rm", "--force", "--time", "0", name])
        if why:
            self.absent["podman exec"] = why
        else:
            self.execs["podman exec"] = [*base, "exec", name]

    @staticmethod
    def limits():
        """podman raises these by default, which not even every root may; nor all that it has."""
        for name, kind in ("nofile", resource.RLIMIT_NOFILE), ("nproc", resource.RLIMIT_NPROC):
            hard = resource.getrlimit(kind)[1]
            limit = ULIMIT if hard == resource.RLIM_INFINITY else min(hard, ULIMIT)
            yield from ("--ulimit", f"{name}={limit}:{limit}")

    def rootfs(self):
        """A root that holds next to nothing: the host's /usr is mounted on it."""
        root = self.place / "rootfs"
        if root.exists():
            return root
        for name in "usr", "proc", "dev":
            (root / name).mkdir(parents=True)
        for name in "bin", "sbin", "lib", "lib64":
            link = pathlib.Path("/", name)
            if link.is_symlink():
                (root / name).symlink_to(os.readlink(link))
        return root
