#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Run a command beside a fake service of its own: with_fake.py COMMAND [ARGUMENT..]

The command gets PINFOLD_AGENTCORE_ENDPOINT; its exit status is this program's.
"""

import json
import os
import subprocess
import sys
from pathlib import Path


def main() -> int:
    fake = subprocess.Popen([sys.executable, str(Path(__file__).parent / "fake.py"), "--leash"],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with fake:
        endpoint = json.loads(fake.stdout.readline())["endpoint"]
        environ = os.environ | {"PINFOLD_AGENTCORE_ENDPOINT": endpoint, "no_proxy": "127.0.0.1"}
        return subprocess.run(sys.argv[1:], env=environ, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
