#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measure isolated sandboxes beside bwrap, crun and plain posix_spawn, where these are installed.

    isolated.py BUILD_DIR [--rounds N]

times() returns rows as output.py does: (title, goal, {contender: [seconds, ...]}). density()
returns (title, goal, {name: value}, {promise: value}). Contenders run in turns.
"""
import argparse
import collections
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import tempfile

from output import processes

DENSITY = 1000
BWRAP = ["--unshare-all", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "true"]
MASKED = ["/proc/kcore", "/proc/keys", "/proc/timer_list"]


def driver(build, *words):
    """Run bench/sandboxes; return {name: [seconds, ...]} of the lines it prints."""
    argv = [str(pathlib.Path(build).resolve() / "bench" / "sandboxes"), *map(str, words)]
    run = subprocess.run(argv, stdout=subprocess.PIPE, check=True, text=True)
    times = collections.defaultdict(list)
    for line in run.stdout.splitlines():
        name, nanoseconds = line.split()
        times[name].append(int(nanoseconds) / 1e9)
    return times


def crun_bundle(place):
    """A container that does what bwrap does above; crun takes it from a directory."""
    bundle = pathlib.Path(place) / "bundle"
    (bundle / "rootfs").mkdir(parents=True)
    kinds = ["pid", "network", "ipc", "uts", "cgroup", "mount"]
    config = {
        "ociVersion": "1.0.0",
        "process": {"user": {"uid": 0, "gid": 0}, "args": ["true"], "cwd": "/",
                    "env": ["PATH=/usr/bin:/bin"], "noNewPrivileges": True},
        "root": {"path": "/", "readonly": True},
        "mounts": [{"destination": "/proc", "type": "proc", "source": "proc"},
                   {"destination": "/dev", "type": "tmpfs", "source": "tmpfs"}],
        "linux": {"namespaces": [{"type": kind} for kind in kinds], "maskedPaths": MASKED},
    }
    (bundle / "config.json").write_text(json.dumps(config), encoding="ascii")
    return bundle


def crun(place):
    """The argument vector, or None where crun is missing or refuses this machine."""
    if not shutil.which("crun") or os.geteuid() != 0:
        return None
    argv = ["crun", "--root", f"{place}/state", "run", "--bundle", str(crun_bundle(place)),
            f"bench-{os.getpid()}"]
    works = subprocess.run(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                           check=False).returncode == 0
    return [shutil.which("crun"), *argv[1:]] if works else None


def commands(build, rounds):
    for words in (["/bin/true"], ["/bin/sh", "-c", "true"]):
        times = driver(build, "command", rounds, *words)
        yield (f"{' '.join(words)}, in a live sandbox", "at most 1.15 x of posix_spawn and wait",
               {"in a sandbox": times["sandbox"], "posix_spawn and wait": times["spawn"]})


def starts(build, rounds, others):
    goal = "at most 0.4 x of bwrap"
    found = {}
    for name, argv in others.items():
        times = driver(build, "start", rounds, *argv)
        found.setdefault("open a sandbox, run true", times["start"])
        found[name] = times["contender"]
        found.setdefault("then close it", times["stop"])
    if not others:
        times = driver(build, "start", rounds)
        found = {"open a sandbox, run true": times["start"], "then close it": times["stop"]}
    return "From nothing to the first finished command, through the library", goal, found


def whole(build, rounds, others):
    pinfold = str(pathlib.Path(build).resolve() / "pinfold")
    contenders = {"pinfold run --backend isolated":
                  [pinfold, "run", "--backend", "isolated", "--", "true"], **others}
    return "The whole process", "at most 0.5 x of bwrap", processes(build, contenders, rounds)


def times(build, rounds=7):
    rounds *= 20
    found = list(commands(build, rounds))
    with tempfile.TemporaryDirectory(prefix="pinfold-bench-") as place:
        others = {}
        if shutil.which("bwrap"):
            others["bwrap --unshare-all"] = [shutil.which("bwrap"), *BWRAP]
        argv = crun(place)
        if argv:
            others["crun run"] = argv
        found.append(starts(build, rounds, others))
        found.append(whole(build, rounds, others))
    return found


def density(build, count=DENSITY):
    argv = [str(pathlib.Path(build).resolve() / "bench" / "sandboxes"), "idle", str(count)]
    run = subprocess.run(argv, stdout=subprocess.PIPE, check=True, text=True)
    facts = dict(line.rsplit(" ", 1) for line in run.stdout.splitlines())
    return (f"{count:,} idle sandboxes at once", "at most 1 MiB of memory each, nothing left after",
            facts, {"isolated-memory": float(facts["pss_kib_each"]),
                    "isolated-left": left_behind(facts)})


def left_behind(facts):
    """How many objects. The kernel's caches keep some of what is freed: of those, what is above a
    tenth of what there was."""
    left = 0
    for name in [name.removeprefix("before ") for name in facts if name.startswith("before ")]:
        before, during, after = (int(facts[f"{when} {name}"])
                                 for when in ("before", "during", "after"))
        if name == "memory_available_mib":
            continue
        exact = name in ("descriptors", "mounts", "groups_of_pids", "groups_of_memory")
        left += max(0, after - before - (0 if exact else max(0, during - before) // 10))
    return left


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build")
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    for title, goal, found in times(args.build, args.rounds):
        print(f"{title}\n  goal: {goal}")
        base = list(found.values())[1]
        for name, seconds in found.items():
            print(f"  {statistics.median(seconds) * 1000:9.2f} ms, at best "
                  f"{min(seconds) * 1000:6.2f}  {name}  "
                  f"({statistics.median(seconds) / statistics.median(base):.2f} x, at best "
                  f"{min(seconds) / min(base):.2f})")
    title, goal, facts, _ = density(args.build)
    print(f"{title}\n  goal: {goal}")
    for name, value in facts.items():
        print(f"  {value:>12}  {name}")


if __name__ == "__main__":
    main()
