# SPDX-License-Identifier: Apache-2.0
"""
The Python of one session: what executeCode defines in one call is there in the next.

    kernel.py REQUESTS REPLIES    two descriptors; a line of JSON each way

A request is {"code", "clear"}, a reply {"stdout", "stderr", "exitCode"}. The code's descriptors 1
and 2 are caught, not only its sys.stdout, for what its children print.
"""

import json
import os
import sys
import traceback


def run(code: str, names: dict) -> int:
    try:
        exec(compile(code, "<code>", "exec"), names)
    except SystemExit as left:
        return left.code if isinstance(left.code, int) else int(left.code is not None)
    except BaseException as why:
        # Without the frame of this function.
        traceback.print_exception(type(why), why, why.__traceback__.tb_next)
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0


def caught(fd: int) -> str:
    os.lseek(fd, 0, os.SEEK_SET)
    with os.fdopen(fd, "rb") as printed:
        return printed.read().decode("utf-8", "replace")


def main(requests: int, replies: int) -> None:
    names: dict = {"__name__": "__main__"}
    for fd in (requests, replies):
        os.set_inheritable(fd, False)
    with os.fdopen(requests) as asked, os.fdopen(replies, "w") as answer:
        for line in asked:
            request = json.loads(line)
            if request["clear"]:
                names = {"__name__": "__main__"}
            files = [os.memfd_create("stdout"), os.memfd_create("stderr")]
            for fd, to in zip(files, (1, 2)):
                os.dup2(fd, to)
            status = run(request["code"], names)
            out, err = (caught(fd) for fd in files)
            print(json.dumps({"stdout": out, "stderr": err, "exitCode": status}), file=answer,
                  flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
