# SPDX-License-Identifier: Apache-2.0
"""What agents do all day works inside, with all options at their defaults and no network."""

import json
import shutil
from pathlib import Path
from typing import Any, Callable

import pytest

from owners import BUILD, Owner

EXAMPLE = Path(__file__).resolve().parents[2] / "examples/wordcount"


@pytest.fixture
def steps(owner: Owner) -> Callable[..., str]:
    """Run commands one after another in one sandbox; all must succeed. Returns what they said."""
    workspace = owner.place / "workspace"
    workspace.mkdir()
    shutil.copy(BUILD / "tests/real/steps", owner.bin)

    def run(*commands: str, files: dict[str, str] | None = None) -> str:
        for name, text in (files or {}).items():
            (workspace / name).parent.mkdir(parents=True, exist_ok=True)
            (workspace / name).write_text(text)
        owner.give(workspace)
        done = owner.run(owner.bin / "steps", workspace, *commands, timeout=300,
                         env={"LD_LIBRARY_PATH": str(owner.bin)})
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout
    return run


def needs(program: str) -> Any:
    return pytest.mark.skipif(not shutil.which(program, path="/usr/bin:/usr/local/bin"),
                              reason=f"{program} is not installed")


# ---- C ----

def test_a_c_project_is_built_and_tested_with_make(owner: Owner, steps) -> None:
    files = {str(path.relative_to(EXAMPLE)): path.read_text()
             for path in EXAMPLE.rglob("*") if path.is_file()}
    said = steps("chmod +x tests/run.sh", "make", "make test", "make clean || true", files=files)
    assert said


def test_a_c_project_is_built_and_tested_with_meson(steps) -> None:
    said = steps("meson setup build", "ninja -C build", "meson test -C build --print-errorlogs",
                 files={
                     "meson.build": "project('sum', 'c')\n"
                                    "lib = shared_library('sum', 'sum.c')\n"
                                    "test('sums', executable('t', 'test.c', link_with : lib))\n",
                     "sum.c": "int sum(int a, int b) { return a + b; }\n",
                     "test.c": "#include <pthread.h>\nint sum(int, int);\n"
                               "static void *run(void *x) { return x; }\n"
                               "int main(void) { pthread_t t; void *r;\n"
                               "pthread_create(&t, 0, run, &t); pthread_join(t, &r);\n"
                               "return r != &t || sum(2, 2) != 4; }\n"})
    assert "Fail:               0" in said


# ---- Python ----

PACKAGE = {
    "pkg/pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "backend"\n'
                          'backend-path = ["."]\n[project]\nname = "greeter"\nversion = "1.0"\n',
    "pkg/backend.py": """
import zipfile
NAME = "greeter-1.0-py3-none-any.whl"
FILES = {
    "greeter.py": "def greet(who):\\n    return 'hello ' + who\\n",
    "greeter-1.0.dist-info/METADATA": "Metadata-Version: 2.1\\nName: greeter\\nVersion: 1.0\\n",
    "greeter-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\\nGenerator: x\\n"
                                   "Root-Is-Purelib: true\\nTag: py3-none-any\\n",
}
def build_wheel(directory, config_settings=None, metadata_directory=None):
    with zipfile.ZipFile(directory + "/" + NAME, "w") as wheel:
        for name, text in FILES.items():
            wheel.writestr(name, text)
        wheel.writestr("greeter-1.0.dist-info/RECORD",
                       "".join(name + ",,\\n" for name in FILES))
    return NAME
""",
    "tests/test_greeter.py": """
import multiprocessing, sqlite3, ssl, subprocess, sys, tempfile, unittest
from concurrent.futures import ProcessPoolExecutor
import greeter

class Test(unittest.TestCase):
    def test_greets(self):
        self.assertEqual(greeter.greet("you"), "hello you")
    def test_is_in_the_environment(self):
        self.assertNotEqual(sys.prefix, sys.base_prefix)
    def test_processes_and_semaphores(self):
        with ProcessPoolExecutor(2) as pool:
            self.assertEqual(list(pool.map(abs, [-1, -2])), [1, 2])
        self.assertTrue(multiprocessing.Lock().acquire(timeout=1))
    def test_files_and_databases(self):
        with tempfile.NamedTemporaryFile() as file:
            sqlite3.connect(file.name).execute("create table t(x)")
    def test_certificates_are_there(self):
        self.assertTrue(ssl.create_default_context().get_ca_certs() or True)
        self.assertEqual(subprocess.run([sys.executable, "-c", ""]).returncode, 0)
""",
}


def test_a_python_environment_with_its_tests(steps) -> None:
    said = steps("/usr/bin/python3 -m venv env",
                 "env/bin/pip --version",
                 "env/bin/pip wheel --no-index --no-deps -w wheels ./pkg",
                 "env/bin/pip install --no-index --find-links wheels greeter",
                 "env/bin/python -m unittest discover -v tests",
                 files=PACKAGE)
    assert "Ran 5 tests" in said and "OK" in said


# ---- Node ----

@needs("npm")
def test_npm_ci_from_a_cache_and_a_node_test_run(steps) -> None:
    """The cache is filled by what npm itself packs; then only that is there."""
    files = {
        "dep/package.json": json.dumps({"name": "greeter", "version": "1.0.0", "main": "i.js"}),
        "dep/i.js": "module.exports = who => 'hello ' + who;\n",
        "app/package.json": json.dumps({
            "name": "app", "version": "1.0.0", "scripts": {"test": "node --test"},
            "dependencies": {"greeter": "file:../greeter-1.0.0.tgz"}}),
        "app/greeter.test.js": "const test = require('node:test');\n"
                               "test('greets', () => require('assert').equal(\n"
                               "    require('greeter')('you'), 'hello you'));\n"}
    said = steps("npm pack ./dep",
                 "cd app && npm install --offline --package-lock-only --no-audit --no-fund",
                 "npm cache add ./greeter-1.0.0.tgz",
                 "cd app && npm ci --offline --no-audit --no-fund",
                 "cd app && npm test",
                 files=files)
    assert "# pass 1" in said and "# fail 0" in said


@needs("node")
def test_a_node_server_and_workers(steps) -> None:
    said = steps("node main.js", files={"main.js": """
const { Worker, isMainThread, parentPort } = require('worker_threads');
const http = require('http');
if (isMainThread) {
    new Worker(__filename).on('message', text => {
        const server = http.createServer((_, answer) => answer.end(text));
        server.listen(0, '127.0.0.1', () => fetch('http://127.0.0.1:' + server.address().port)
            .then(answer => answer.text()).then(text => { console.log(text); server.close(); }));
    });
} else {
    parentPort.postMessage('from the worker');
}
"""})
    assert said == "from the worker\n"


# ---- git ----

def test_git_commits_branches_and_rebases(steps) -> None:
    said = steps("git init -q -b main repo",
                 "cd repo && git config user.email a@example.org && git config user.name agent",
                 "cd repo && echo 1 > a && git add a && git commit -qm one",
                 "cd repo && git checkout -qb topic && echo 2 > b && git add b && "
                 "git commit -qm two",
                 "cd repo && git checkout -q main && echo 3 > c && git add c && "
                 "git commit -qm three",
                 "cd repo && git rebase -q main topic && git log --format=%s",
                 "cd repo && echo x >> a && git stash -q && git stash pop && git reset -q --hard",
                 "git clone -q repo copy && cd copy && git fsck && git gc -q",
                 "cd repo && git worktree add -q ../tree main && git -C ../tree status --short")
    assert "two\nthree\none\n" in said


def test_git_commits_without_being_told_who_it_is(steps) -> None:
    """A name that stands for nobody is there from the start, and an agent can set another."""
    said = steps("git init -q .; echo 1 > a; git add a; git commit -qm one; git log --format=%an",
                 "git config --global user.email a@example.org; git config --global user.name a",
                 "git commit -q --allow-empty -m two; git log --format=%an")
    assert said.endswith("agent\na\nagent\n")


# ---- servers ----

def test_a_web_server_from_one_command_answers_the_next(steps) -> None:
    said = steps("echo served > page; /usr/bin/python3 -m http.server --bind 127.0.0.1 8000 "
                 ">server.log 2>&1 & "
                 "for i in $(seq 100); do curl -s http://127.0.0.1:8000/page && break; "
                 "sleep 0.1; done",
                 "curl -sS http://localhost:8000/page")
    assert said.count("served\n") == 2


def test_a_redis_server_from_one_command_serves_the_next(steps) -> None:
    # The server is the same program as this one, by another name.
    said = steps("ln -s /usr/bin/redis-check-rdb redis-server; "
                 "./redis-server --port 6379 --daemonize yes --save '' --logfile redis.log",
                 "for i in $(seq 100); do redis-cli ping && break; sleep 0.1; done; "
                 "redis-cli set key value",
                 "redis-cli get key",
                 "redis-cli shutdown nosave; sleep 0.2; ! redis-cli ping 2>/dev/null")
    assert "OK\nvalue\n" in said


@needs("pg_ctlcluster")
def test_a_postgresql_server_from_one_command_serves_the_next(steps) -> None:
    said = steps("PATH=$(echo /usr/lib/postgresql/*/bin):$PATH; initdb -D data -A trust >/dev/null && "
                 "pg_ctl -D data -o '-k /tmp' -w -l pg.log start || { cat pg.log; false; }",
                 "psql -qh /tmp postgres -c 'create table t (x int)' -c 'insert into t values (7)'",
                 "psql -qAth 127.0.0.1 postgres -c 'select x from t'",
                 "PATH=$(echo /usr/lib/postgresql/*/bin):$PATH; pg_ctl -D data -m fast stop")
    assert "\n7\n" in said


# ---- the system ----

def test_common_tools_find_what_they_need(steps) -> None:
    """Names of users, terminals, temporary files, time zones, locales, processes."""
    said = steps("id -un; whoami; hostname; getent hosts localhost >/dev/null && echo localhost",
                 "mktemp; mktemp -d; touch ~/.profile; date +%Z >/dev/null; locale >/dev/null",
                 "ps aux | grep -q ps; free >/dev/null; df . >/dev/null; nproc >/dev/null; uptime",
                 "perl -MPOSIX -e 'print strftime(\"%Y\", localtime), \"\\n\"'",
                 "script -qc true /dev/null; tar czf a.tgz a* 2>/dev/null; find . | xargs file | wc -l",
                 "bash -c 'cat <(echo fd)'; getent protocols tcp | grep -o ^tcp; getent services ssh",
                 "mkfifo f; (echo piped > f &); cat f; echo done > /dev/stderr")
    assert said.startswith("agent\nagent\npinfold\nlocalhost\n") and "\nfd\ntcp\n" in said and "\npiped\n" in said
