#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Run a command beside a fake service of its own: with_fake.py COMMAND [ARGUMENT..]

The command gets DAYTONA_API_URL, DAYTONA_API_KEY, DAYTONA_TARGET and PINFOLD_DAYTONA_CONTROL, where
the fake is controlled; settings for the fake are in PINFOLD_FAKE_DAYTONA_CONFIG and _FAULTS. The
exit status is the command's, or 1 when that is 0 and the fake complains of a request.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

OTHERS = ("DAYTONA_SERVER_URL", "DAYTONA_JWT_TOKEN", "DAYTONA_ORGANIZATION_ID")


def main() -> int:
    fake = subprocess.Popen([sys.executable, str(Path(__file__).parent / "fake.py"), "--leash"],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with fake:
        told = json.loads(fake.stdout.readline())
        environ = os.environ | {
            "DAYTONA_API_URL": told["api"], "DAYTONA_API_KEY": told["key"], "DAYTONA_TARGET": "us",
            "DAYTONA_USE_DEPRECATED_POLLING": "true",
            "PINFOLD_DAYTONA_CONTROL": told["endpoint"] + "/_fake", "no_proxy": "127.0.0.1"}
        for name in OTHERS:
            environ.pop(name, None)
        code = subprocess.run(sys.argv[1:], env=environ, check=False).returncode
    return code or (1 if fake.returncode else 0)


if __name__ == "__main__":
    sys.exit(main())
