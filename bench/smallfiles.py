# SPDX-License-Identifier: Apache-2.0
"""Reading and writing one small file through the library, beside open, read and close."""
import drivers
from report import Table

ROUNDS = 2000


def section(bench):
    for size in 1024, 65536:
        work = bench.workdir(None)
        times = drivers.run(bench.build, "files", ROUNDS, size, work)
        yield Table(f"Read a file of {size >> 10} KiB", None,
                    {"read_file, isolated": times["read-isolated"],
                     "open, fstat, malloc, read, close": times["read-plain"],
                     "read_file, local": times["read-local"]})
        yield Table(f"Write a file of {size >> 10} KiB", None,
                    {"write_file, isolated": times["write-isolated"],
                     "open, write, close, rename": times["write-replace"],
                     "write_file, local": times["write-local"],
                     "open, write, close of one that is there": times["write-plain"]})
