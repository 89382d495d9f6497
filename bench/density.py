# SPDX-License-Identifier: Apache-2.0
"""What a sandbox holds that does nothing: memory, processes, objects of the kernel.

Counted on the whole machine, since it is not known beforehand what a sandbox is made of: what others
do meanwhile shows. Of Pinfold's there are many, of the others fewer, which start `sleep`, as they
must start something; a Pinfold sandbox starts no command, but two processes of its own.
"""
import collections
import contextlib
import os
import pathlib
import subprocess
import time

import drivers
import peers as peer
from report import Grid

OURS, OTHERS = 1000, 100
SLEEP = ["sleep", "3600"]
SETTLE = 3  # seconds in which the kernel clears away what it does in its own time

# Objects in the kernel's own allocator. Some of its caches are merged with others, or not to be
# read; these are left out.
SLABS = {"mnt_cache": "mounts", "task_struct": "tasks", "shmem_inode_cache": "inodes of tmpfs",
         "sock_inode_cache": "sockets"}
PROCESSES, MEMORY, DESCRIPTORS, NAMESPACES, MOUNTS = (
    "processes", "private memory, KiB (PSS)", "descriptors", "namespaces",
    "mounts that everybody sees")
GROUPS = {"memory": "control groups (memory)", "pids": "control groups (pids)",
          "": "control groups (second kind)"}
EXACT = [PROCESSES, DESCRIPTORS, NAMESPACES, MOUNTS, *GROUPS.values()]
KERNEL_MEMORY = ["Slab", "KernelStack", "PageTables", "Percpu"]


def fields(path):
    """{first word: second word} of a file's lines."""
    try:
        text = pathlib.Path(path).read_text(encoding="ascii", errors="replace")
    except OSError:
        return {}
    pairs = (line.split()[:2] for line in text.splitlines())
    return {pair[0].rstrip(":"): pair[1] for pair in pairs if len(pair) == 2}


def processes():
    return {int(name) for name in os.listdir("/proc") if name.isdigit()}


def pss(pids):
    """A keeper has no memory of its own, but its owner's."""
    return sum(int(fields(f"/proc/{pid}/smaps_rollup").get("Pss", 0)) for pid in pids
               if fields(f"/proc/{pid}/status").get("Name") != "pinfold-keeper")


def groups():
    """{controller: how many control groups} of the old kind, and of the new one where that is."""
    found = {}
    for line in pathlib.Path("/proc/cgroups").read_text(encoding="ascii").splitlines()[1:]:
        name, hierarchy, count, _ = line.split()
        if hierarchy != "0" and name in GROUPS:
            found[GROUPS[name]] = int(count)
    for place in "/sys/fs/cgroup/unified", "/sys/fs/cgroup":
        stat = fields(f"{place}/cgroup.stat")
        if stat:
            found[GROUPS[""]] = int(stat["nr_descendants"])
            break
    return found


def snapshot():
    memory, slabs = fields("/proc/meminfo"), fields("/proc/slabinfo")
    found = {MOUNTS: len(pathlib.Path("/proc/self/mountinfo").read_text().splitlines())}
    found.update({label: int(slabs[name]) for name, label in SLABS.items() if name in slabs})
    found.update(groups())
    found["memory of the kernel, KiB"] = sum(int(memory.get(name, 0)) for name in KERNEL_MEMORY)
    return found


Held = collections.namedtuple("Held", "count before during after started stopped")


def holding(count, start, stop, find):
    """Start so many sandboxes and stop them. find(): the processes that they are made of, and that
    own them."""
    seen = set()

    def look():
        pids = find()
        found = {PROCESSES: len(pids), MEMORY: pss(pids), DESCRIPTORS: descriptors(pids)}
        seen.update(namespaces(pids) - mine)
        found[NAMESPACES] = len(seen & namespaces(processes()))
        return found | snapshot()

    mine = namespaces([os.getpid()])
    before = look()
    started = start()
    during = look()
    stopped = stop()
    time.sleep(SETTLE)
    return Held(count, before, during, look(), started, stopped)


def namespaces(pids):
    """What the links in /proc/PID/ns lead to."""
    found = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            for name in os.listdir(f"/proc/{pid}/ns"):
                found.add(os.readlink(f"/proc/{pid}/ns/{name}"))
    return found


def descriptors(pids):
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            total += len(os.listdir(f"/proc/{pid}/fd"))
    return total


def descendants(roots):
    """With the roots themselves."""
    children = collections.defaultdict(set)
    for pid in processes():
        parent = fields(f"/proc/{pid}/status").get("PPid")
        if parent:
            children[int(parent)].add(pid)
    found = set(roots)
    new = found
    while new:
        new = set().union(*(children[pid] for pid in new)) - found
        found |= new
    return found


def named(prefix):
    return {pid for pid in processes() if fields(f"/proc/{pid}/status").get("Name", "").startswith(
        prefix)}


def ours(build, count):
    argv = [str(build / "bench" / "sandboxes"), "hold", str(count)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as held:
        held.stdout.readline()

        def go_on():
            held.stdin.write("\n")
            held.stdin.flush()
            return int(held.stdout.readline().split()[1]) / 1e9

        others = named("pinfold-")
        found = holding(count, go_on, go_on, lambda: {held.pid} | (named("pinfold-") - others))
        held.stdin.write("\n")
    return found


def timed(work):
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def bwrap(count):
    held = []

    def start():
        for _ in range(count):
            held.append(subprocess.Popen([*peer.BWRAP, "--die-with-parent", *SLEEP]))
        wait_for(lambda: len(find() & named("sleep")) == count)

    def stop():
        for process in held:
            process.kill()
        for process in held:
            process.wait()

    def find():
        return descendants(process.pid for process in held if process.poll() is None)

    return holding(count, lambda: timed(start), lambda: timed(stop), find)


def crun(count, peers):
    """In containers that run on, as they do without a program that waits for them."""
    base = peers.execs["crun exec"][:-2]
    bundle, pids = peers.place / "resident", set()
    names = [f"bench-idle-{os.getpid()}-{number}" for number in range(count)]

    def start():
        for name in names:
            pid_file = peers.place / name
            argv = [*base, "run", "--detach", "--pid-file", str(pid_file), "--bundle", str(bundle),
                    name]
            subprocess.run(peer.inside(argv), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                           check=True)
            pids.add(int(pid_file.read_text(encoding="ascii")))

    def stop():
        for name in names:
            peer.failure([*base, "delete", "--force", name])
        pids.clear()

    return holding(count, lambda: timed(start), lambda: timed(stop), lambda: descendants(pids))


def wait_for(condition, seconds=30):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError("sandboxes have not started")
        time.sleep(0.1)


def table(held):
    for name, before in held.before.items():
        during, after = held.during[name], held.after[name]
        yield [name, f"{before:,}", f"{during:,}", each(held, name), f"{after:,}"]


def each(held, name):
    return f"{(held.during[name] - held.before[name]) / held.count:,.2f}"


def left_behind(held):
    """How many objects. The kernel's caches keep some of what is freed, and its memory is not
    counted in objects: of the former, what is above a tenth of what there was."""
    left = 0
    for name in {*SLABS.values(), *EXACT} & set(held.before):
        before, during, after = held.before[name], held.during[name], held.after[name]
        kept = 0 if name in EXACT else max(0, during - before) // 10
        left += max(0, after - before - kept)
    return left


def section(bench):
    with peer.Peers(bench.workdir(None)) as peers:
        found = {"Pinfold": ours(bench.build, OURS)}
        if peer.BWRAP_NAME in peers.starts:
            found["bwrap"] = bwrap(OTHERS)
        if "crun exec" in peers.execs:
            found["crun"] = crun(OTHERS, peers)
        yield from peers.missing()
    held = found["Pinfold"]
    yield Grid(f"{OURS:,} idle sandboxes at once", "at most 1 MiB of memory each, nothing left",
               ["", "before", "during", "for each", "after"], table(held),
               {"isolated-memory": (held.during[MEMORY] - held.before[MEMORY]) / held.count,
                "isolated-left": left_behind(held)})
    rows = [[name, *(each(held, name) for held in found.values())] for name in held.before]
    rows.append(["ms to start it", *(f"{one.started / one.count * 1e3:.2f}"
                                     for one in found.values())])
    rows.append(["ms to stop it", *(f"{one.stopped / one.count * 1e3:.2f}"
                                    for one in found.values())])
    yield Grid(f"What one idle sandbox holds: of {OURS:,} of Pinfold's, of {OTHERS} of the others",
               None, ["", *found], rows)
