# SPDX-License-Identifier: Apache-2.0
"""The manual says what the command says of itself, neither less nor more."""

import re
import subprocess

import pytest

from owners import BUILD

from manual import (MAN, ROOT, Item, items, lint, needs_mandoc, options, read, sections, shown,
                    typed)

COMMANDS = ["run", "shell", "agent", "plan", "mcp", "mcp install", "config", "doctor", "version",
            "help"]
PAGES = sorted(path.name for path in MAN.glob("*.[1-9]"))
# Of others: an option in an example, and variables that commands find inside.
OTHERS_OPTIONS = {"silent", "cflags", "libs"}
INSIDE = {"USER", "LOGNAME", "LANG", "LC_ALL", "http_proxy", "https_proxy", "all_proxy", "no_proxy"}


def page_of(command: str) -> str:
    return read(f"pinfold-{command.replace(' ', '-')}.1")


def told_options(text: str) -> dict[str, tuple[str, str]]:
    """Of each option in a help text, what stands behind its name, and what it says."""
    found = re.findall(r"^  --([a-z-]+)(\S*(?: [A-Z][A-Z_:=]*)?)(.*)$", text, re.MULTILINE)
    return {name: (argument.strip(" ,"), says) for name, argument, says in found}


def test_every_command_has_a_page_and_every_page_is_listed(told):
    commands = re.findall(r"^  ([a-z]+)  +\S", told(), re.MULTILINE)
    assert sorted([*commands, "mcp install"]) == sorted(COMMANDS)
    described = {item.head.removeprefix("Cm "): item.text
                 for item in items(sections(read("pinfold.1"))["DESCRIPTION"])}
    for command in COMMANDS:
        name = f"pinfold-{command.replace(' ', '-')}"
        assert f".Xr {name} 1" in described[command.split()[0]]
    pages = {f"pinfold-{command.replace(' ', '-')}.1" for command in COMMANDS}
    assert pages | {"pinfold.1", "pinfold.3", "pinfold.toml.5",
                    "pinfold-environment.7"} == set(PAGES)
    installed = set(re.findall(r"'(pinfold[^']*\.[1-9])'", (MAN / "meson.build").read_text()))
    assert installed == set(PAGES)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_page_begins_with_what_the_command_says_of_itself(command, told):
    usage, summary = told(*command.split()).split("\n")[:2]
    page = page_of(command)
    assert f".Nd {summary}\n" in page
    assert usage.startswith(f"usage: pinfold {command}")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_page_has_the_options_of_its_command_and_no_other(command, told):
    known = told_options(told(*command.split()))
    described = options(page_of(command))
    assert sorted(described) == sorted(known)
    for name, (argument, _) in known.items():
        head = described[name].head
        assert (" Ar " in head) == bool(argument), head
        assert ("Op = " in head) == argument.startswith("[="), head


@pytest.mark.parametrize("command", COMMANDS)
def test_letters_are_those_that_work(command):
    for name, item in options(page_of(command)).items():
        letter = {"help": ", h", "quiet": ", q", "tty": ", t"}.get(name, "")
        assert item.head.endswith(letter) and (", " in item.head) == bool(letter), item.head


def says(item: Item, value: str) -> bool:
    text = re.sub(r"\s+", " ", re.sub(r"^\.[A-Z][a-z] ", "", item.text, flags=re.MULTILINE))
    return re.search(rf"(?<![\w.]){re.escape(value)}(?![\w])", text.replace(",", "")) is not None


@pytest.mark.parametrize("command", COMMANDS)
def test_defaults_are_told_alike(command, told):
    """With the command, or with 'run' or 'mcp', to which its page sends the reader."""
    others = [options(page_of(page)) for page in (command, "run", "mcp")]
    for name, (_, text) in told_options(told(*command.split())).items():
        found = re.search(r"\(default:? ([^\s;,)]+)|(\w+) \(default\)", text)
        if not found or found[1] in ("see", "the", "a"):  # words, which say it in another way
            continue
        value = (found[1] or found[2]).replace("(", "")
        pages = [page[name] for page in others if name in page]
        assert any(says(item, value) for item in pages), f"--{name}: {value}"


def statuses(text: str) -> set[str]:
    return set(re.findall(r"(?<![\w.:])(12[4-8](?:\+n)?|[0-2])(?![\w.+])", text))


@pytest.mark.parametrize("command", COMMANDS)
def test_exit_statuses_are_those_that_the_help_names(command, told):
    described = {item.head for item in items(sections(page_of(command))["EXIT STATUS"])}
    help_text = told(*command.split())
    found = re.search(r"[Ee]xit status[^\n]*(?:\n[^\n]+)*", help_text)
    assert all(re.fullmatch(r"\d+|128\+n", status) for status in described)
    assert {"125"} <= described  # every command can be called wrongly
    assert statuses(found[0] if found else "") <= described


@pytest.mark.parametrize("name", PAGES)
def test_a_page_names_no_option_that_does_not_exist(name, told):
    known = {"version"}.union(*(told_options(told(*command.split())) for command in COMMANDS))
    text = read(name)
    assert set(re.findall(r"\bFl -([a-z-]+)", text)) <= known
    assert set(re.findall(r"(?<!\S)--([a-z][a-z-]*)", text)) <= known | OTHERS_OPTIONS


@pytest.mark.parametrize("name", PAGES)
def test_references_lead_to_pages(name):
    known = {tuple(page.rsplit(".", 1)) for page in PAGES}
    for page, section in re.findall(r"^\.Xr (\S+) (\d)", read(name), re.MULTILINE):
        if page.startswith("pinfold_"):
            assert section == "3" and name == "pinfold.3"  # test_reference.py has those
        elif page.startswith("pinfold"):
            assert (page, section) in known
    lines = sections(read(name))["SEE ALSO"].split("\n")
    others = [line for line in lines if line.startswith(".Xr")]
    assert others
    assert f".Xr {name.rsplit('.', 1)[0]} {name[-1]}" not in [line.rstrip(" ,") for line in others]


def read_variables() -> set[str]:
    """The variables that the sources read."""
    names: set[str] = set()
    services = "AWS|DAYTONA|ANTHROPIC|OPENAI|CODEX|XDG"
    for path in [*ROOT.glob("src/**/*.[ch]"), *ROOT.glob("python/src/*.c"),
                 *ROOT.glob("python/**/*.py")]:
        text = path.read_text()
        names |= set(re.findall(r'(?:getenv|environ\.get|pf_host_switch|read_variable)\("(\w+)"', text))
        names |= set(re.findall(rf'"((?:{services})_[A-Z0-9_]*[A-Z0-9])"', text))
    keys = re.findall(r'^    \{ "[a-z.-]+", "([a-z-]+)", (?:"[^"]*"),\s+PF_(\w+)',
                      (ROOT / "src/cli/policy_keys.c").read_text(), re.MULTILINE)
    assert len(keys) > 30
    names |= {f"PINFOLD_{option.upper().replace('-', '_')}" for option, form in keys
              if form not in ("LIST", "PATHS")}
    return {name for name in names if name.lower() not in INSIDE}


def test_every_variable_that_is_read_is_in_the_manual_and_no_other():
    page = read("pinfold-environment.7")
    named = set(re.findall(r"\bEv (\w+)|, (\w+)(?=[ ,\n]|$)", "\n".join(
        item.head for item in items(page))))
    described = {one or other for one, other in named}
    wanted = read_variables()
    assert wanted - described == set()
    endpoints = {name for name in described if name.startswith("AWS_ENDPOINT_URL_")}
    assert described - wanted - endpoints - INSIDE - {"SHELL"} == set()
    # Built from the names of services.
    source = "".join(path.read_text() for path in ROOT.glob("src/**/*.c"))
    for name in endpoints:
        service = name.removeprefix("AWS_ENDPOINT_URL_").lower()
        assert f'"{service}"' in source or f'"{service.replace("_", "-")}"' in source, name


@pytest.mark.parametrize("name", PAGES)
def test_a_page_names_no_variable_that_is_not_in_the_list(name):
    heads = " ".join(item.head for item in items(read("pinfold-environment.7")))
    listed = set(re.findall(r"\w{2,}", heads))
    assert set(re.findall(r"\bEv (\w+)", read(name))) <= listed | INSIDE


def test_members_of_json_are_told():
    """Those that are put into an object, neither less nor more."""
    put = {"run": set(), "plan": set()}
    for function in re.split(r"(?m)^}\n", (ROOT / "src/cli/json.c").read_text()):
        members = re.findall(r'pf_json_set\(\s*object,\s*"(\w+)"', function)
        put["plan" if "plan" in function.split("{")[0] else "run"].update(members)
    put["run"].update(re.findall(r'put\(report, "(\w+)"', (ROOT / "src/cli/report.c").read_text()))
    put["plan"] |= {"seed", "sync"}
    assert len(put["run"]) > 25 and len(put["plan"]) > 6
    section = read("pinfold-run.1").split(".Ss JSON\n")[1].split(".Sh ")[0]
    assert set(re.findall(r"\bCm (\w+)", section)) == put["run"]
    section = read("pinfold-plan.1").split(".Fl -json\nit is one object")[1].split(".Sh ")[0]
    assert set(re.findall(r"\bCm (\w+)", section)) == put["plan"]


def test_settings_of_a_policy_are_those_that_are_known():
    keys = re.findall(r'^    \{ "([a-z.-]+)", "([a-z-]+)",',
                      (ROOT / "src/cli/policy_keys.c").read_text(), re.MULTILINE)
    described = [item.head for item in items(sections(read("pinfold.toml.5"))["SETTINGS"])]
    assert sorted(described) == sorted(f"Cm {key} Pq Fl -{option}" for key, option in keys)


def test_the_policy_in_the_manual_can_be_used(tmp_path):
    example = re.search(r"^\.Bd .*?\n(.*?)^\.Ed", sections(read("pinfold.toml.5"))["EXAMPLES"],
                        re.MULTILINE | re.DOTALL)[1]
    policy = tmp_path / "policy.toml"
    policy.write_text(example)
    done = subprocess.run([BUILD / "pinfold", "config", "check", "--config", policy],
                          capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_examples_are_understood(told):
    """Each line that begins with pinfold names a command, and options that it knows."""
    seen = 0
    for name in PAGES:
        for line in re.findall(r"^(?:\.Dl )?\$ pinfold (.*)$", read(name), re.MULTILINE):
            words = line.split()
            command = "mcp install" if words[:2] == ["mcp", "install"] else words[0]
            known = told_options(told(*command.split()))
            for word in words[1:]:
                if word == "--":
                    known = told_options(told("mcp"))
                if word == "--" or not word.startswith("-"):
                    continue
                assert word.removeprefix("--").split("=")[0] in known, line
            seen += 1
    assert seen >= 15


@needs_mandoc
@pytest.mark.parametrize("name", PAGES)
def test_examples_are_shown_as_they_are_to_be_typed(name):
    """A dot that is a word of its own is punctuation to mdoc, which joins it to the word before."""
    lines = shown(MAN / name)
    for line in typed(read(name)):
        assert line in lines


@needs_mandoc
@pytest.mark.parametrize("name", PAGES)
def test_mandoc_finds_nothing_wrong(name):
    assert lint(MAN / name) == ""


@needs_mandoc
def test_mandoc_finds_what_is_wrong(tmp_path):
    page = tmp_path / "bad.1"
    page.write_text(read("pinfold.1").replace(".El\n", "", 1))
    assert "WARNING" in lint(page) or "ERROR" in lint(page)
