# SPDX-License-Identifier: Apache-2.0
"""What the tools do."""

import base64
import json
from pathlib import Path

import pytest

from client import Failure


# ---- execute and read_output ----


def test_runs_a_command_and_tells_everything_of_it(client) -> None:
    result = client.call("execute", command="echo out; echo err >&2; exit 3")
    assert not result.is_error
    assert result.text == "exit code: 3\nout\n[stderr] err\n"
    assert (result.data["exit_code"], result.data["stdout"], result.data["stderr"]) == (
        3, "out\n", "err\n")
    assert (result.data["truncated"], result.data["timed_out"]) == (False, False)


def test_a_command_sees_the_workspace_and_nothing_of_the_host(start, project) -> None:
    client = start("--seed", project, env={"PATH": "/usr/bin:/bin", "SECRET": "hidden"})
    result = client.call("execute", command="pwd; ls -A; env; ls /home /root; cat .env")
    assert "/workspace\n" in result.text and "logo.png" in result.text
    assert "hidden" not in result.text and "TOKEN" not in result.text
    assert client.call("execute", command="ls", cwd="src").data["stdout"] == "main.c\n"
    assert client.call("execute", command="ls", cwd="/workspace/src").data["stdout"] == "main.c\n"


def test_files_are_kept_from_call_to_call_and_nothing_else(client) -> None:
    client.call("execute", command="export A=1; cd /tmp; echo x > /workspace/kept")
    assert client.call("execute", command="pwd; cat kept; echo $A").data["stdout"] == (
        "/workspace\nx\n\n")


def test_a_command_has_no_input(client) -> None:
    assert client.call("execute", command="cat; echo done").data["stdout"] == "done\n"


def test_a_command_that_takes_too_long_is_killed(client, mark, gone) -> None:
    result = client.call("execute", command=f"echo begun; sleep {mark}", timeout_seconds=0.5)
    assert not result.is_error and result.data["timed_out"]
    assert (result.data["exit_code"], result.data["stdout"].splitlines()[0]) == (124, "begun")
    gone(mark)


@pytest.mark.parametrize("options, told", [
    ([], "120"), (["--timeout", "2.5"], "2.5"), (["--timeout", "100000"], "100000"),
    (["--backend", "local"], "120"), (["--backend", "daytona"], "120"),
    (["--backend", "agentcore"], "120"), (["--backend", "agentcore", "--timeout", "30"], "30")])
def test_a_model_is_told_how_long_a_command_may_take(start, options, told) -> None:
    """It plans by that: a description of another time than the one that holds leads it astray."""
    [text] = [tool["description"] for tool in start(*options).request("tools/list")["tools"]
              if tool["name"] == "execute"]
    assert f"longer than timeout_seconds (by default {told}) is killed" in text


def test_output_that_is_cut_can_be_read_in_full(client) -> None:
    result = client.call("execute", command="seq 1 30000; seq 1 9000 >&2")
    whole = "".join(f"{n}\n" for n in range(1, 30001))
    assert result.data["truncated"] and result.data["stdout_bytes"] == len(whole)
    assert result.text.startswith("exit code: 0\n1\n2\n") and len(result.text) < 50000
    assert "29999\n30000\n" in result.data["stdout"]
    assert result.data["output_id"] in result.text
    pages, offset = [], 0
    while offset is not None:
        page = client.call("read_output", id=result.data["output_id"], offset=offset)
        assert page.data["total_bytes"] == len(whole)
        pages.append(page.data["text"])
        offset = page.data["next_offset"]
    assert "".join(pages) == whole and len(pages) > 3
    errors = client.call("read_output", id=result.data["output_id"], stream="stderr", offset=38000)
    assert errors.data["text"] == "".join(f"{n}\n" for n in range(1, 9001))[38000:]
    past = client.call("read_output", id=result.data["output_id"], offset=10**9)
    assert past.data["text"] == "" and past.data["next_offset"] is None


def test_the_user_says_how_much_is_shown(start) -> None:
    client = start("--max-output", "2000")
    result = client.call("execute", command="seq 1 1000")
    assert result.data["truncated"] and len(result.data["stdout"]) < 2500


def test_only_so_many_outputs_are_kept(client) -> None:
    ids = [client.call("execute", command="seq 1 10000").data["output_id"] for _ in range(18)]
    assert client.call("read_output", id=ids[0]).is_error
    assert client.call("read_output", id=ids[1]).is_error
    assert not client.call("read_output", id=ids[2]).is_error
    assert not client.call("read_output", id=ids[17]).is_error


def test_a_flood_is_kept_to_its_end(client) -> None:
    result = client.call("execute", command="head -c 40000000 /dev/zero | tr '\\0' x; echo; echo end")
    page = client.call("read_output", id=result.data["output_id"], offset=39999900)
    assert page.data["text"].endswith("x\nend\n")
    first = client.call("read_output", id=result.data["output_id"])
    assert first.data["offset"] == 40000005 - 16 * 2**20


@pytest.mark.parametrize("raw, shown", [
    (b"\xff\xfe ok", "\ufffd\ufffd ok"), (b"\xc3\xa9", "\u00e9"), (b"\xed\xa0\x80", "\ufffd\ufffd\ufffd"),
    (b"a\0b", "a\0b"), (b"\x1b[2J\x07", "\x1b[2J\x07"), (b"\r\n", "\r\n"),
    (b'"}]}\\u0000', '"}]}\\u0000'),
])
def test_output_of_any_bytes_is_a_valid_message(client, raw: bytes, shown: str) -> None:
    octal = "".join(f"\\{byte:03o}" for byte in raw)
    assert client.call("execute", command=f"printf '{octal}'").data["stdout"] == shown


def test_a_limit_of_the_sandbox_is_named(start) -> None:
    client = start("--file-size", "1M")
    result = client.call("execute", command="head -c 3000000 /dev/zero > big")
    assert result.data["limit"] == "file size" and "file size" in result.text


def test_processes_left_in_the_background_are_told(client, mark) -> None:
    result = client.call("execute", command=f"sleep {mark} & echo done")
    assert result.data["background_processes"] == 1
    assert "still running" in result.text


# ---- files ----


def test_what_is_written_is_read_exactly(client) -> None:
    for text in "", "x", "a\nb", "a\r\nb\r\n", "\u00e9\U0001f600\u2028", "\0\x01\x1b":
        written = client.call("write_file", path="dir/file.txt", content=text)
        assert written.data == {"path": "dir/file.txt", "bytes": len(text.encode())}
        result = client.call("read_file", path="dir/file.txt")
        assert result.data["content"] == text and result.data["next_offset"] is None


def test_a_file_is_read_in_parts(client) -> None:
    lines = [f"line {n}\n" for n in range(10000)]
    client.call("write_file", path="long", content="".join(lines))
    parts, offset = [], 0
    while offset is not None:
        part = client.call("read_file", path="long", offset=offset)
        assert part.data["total_lines"] == 10000 and len(part.data["content"]) <= 30000
        parts.append(part.data["content"])
        offset = part.data["next_offset"]
    assert "".join(parts) == "".join(lines) and len(parts) > 2
    some = client.call("read_file", path="long", offset=17, limit=2)
    assert some.data["content"] == "line 17\nline 18\n" and some.data["next_offset"] == 19
    assert "offset=19" in some.text
    past = client.call("read_file", path="long", offset=10001)
    assert past.data["content"] == "" and "past its end" in past.text


def test_a_line_that_is_too_long_is_cut_between_characters(client) -> None:
    client.call("write_file", path="long", content="\u20ac" * 20000 + "\nnext\n")
    part = client.call("read_file", path="long")
    assert part.data["content"] == "\u20ac" * 10000 and part.data["next_offset"] == 1
    assert "cut" in part.text
    assert client.call("read_file", path="long", offset=1).data["content"] == "next\n"


@pytest.mark.parametrize("start, kind", [
    (b"\x89PNG\r\n\x1a\n", "image/png"), (b"RIFF\xff\xff\0\0WEBPVP8 ", "image/webp")])
def test_an_image_is_an_image(client, start: bytes, kind: str) -> None:
    image = start + bytes(range(256)) * 4
    client.call("execute", command="base64 -d > a.png <<END\n"
                + base64.b64encode(image).decode() + "\nEND")
    result = client.call("read_file", path="a.png")
    (block,) = result.content
    assert (block["type"], block["mimeType"]) == ("image", kind)
    assert base64.b64decode(block["data"]) == image
    assert result.data == {"kind": "image", "bytes": len(image)}


@pytest.mark.parametrize("size", [1, 2, 3, 256 * 1024])
def test_other_bytes_come_in_base64(client, size: int) -> None:
    client.call("execute", command=f"head -c {size} /dev/zero | tr '\\0' '\\377' > 'b%?#.bin'")
    (block,) = client.call("read_file", path="b%?#.bin").content
    assert base64.b64decode(block["resource"]["blob"]) == b"\xff" * size
    assert block["resource"]["uri"] == "pinfold://workspace/b%25%3F%23.bin"


def test_bytes_that_are_too_many_are_refused_with_a_way_out(client) -> None:
    client.call("execute", command="head -c 300000 /dev/zero | tr '\\0' '\\377' > big.bin")
    result = client.call("read_file", path="big.bin")
    assert result.is_error and "head -c" in result.text


def test_a_directory_is_listed(client) -> None:
    client.call("execute", command="mkdir -p d/e; echo hello > d/f; ln -s e d/link; "
                                   "touch \"d/$(printf 'g\\033[2J\\377')\"")
    result = client.call("list_dir", path="d")
    assert result.data["entries"] == [
        {"path": "d/e", "type": "directory"}, {"path": "d/f", "type": "file", "size": 6},
        {"path": "d/g\\x1b[2J\\xff", "type": "file", "size": 0},
        {"path": "d/link", "type": "directory"}]
    assert result.text.splitlines()[:2] == ["d/e/", "d/f  6 bytes"]
    assert client.call("list_dir").data["total"] == 1
    assert "empty" in client.call("list_dir", path="d/e").text


def test_a_directory_of_very_many_is_cut(client) -> None:
    client.call("execute", command="mkdir many; cd many; seq -f 'a-file-with-a-long-name-%g' 1 5000 "
                                   "| xargs touch")
    result = client.call("list_dir", path="many")
    assert result.data["total"] == 5000 and 500 < len(result.data["entries"]) < 5000
    assert "of 5000 entries" in result.text


def test_an_edit_replaces_what_is_there_once(client) -> None:
    client.call("write_file", path="a.c", content="one two two\n")
    result = client.call("edit_file", path="a.c", old_text="one", new_text="1")
    assert (result.data["replaced"], result.data["line"]) == (1, 1)
    several = client.call("edit_file", path="a.c", old_text="two", new_text="2")
    assert several.is_error and "2" in several.text
    missing = client.call("edit_file", path="a.c", old_text="three", new_text="3")
    assert missing.is_error
    assert client.call("edit_file", path="a.c", old_text="two", new_text="",
                       replace_all=True).data["replaced"] == 2
    assert client.call("read_file", path="a.c").data["content"] == "1  \n"


def test_files_are_moved_and_deleted(client) -> None:
    for name in "a", "b", "dir/c":
        client.call("write_file", path=name, content=name)
    assert client.call("move_file", source="a", destination="b").is_error
    assert not client.call("move_file", source="a", destination="new/place").is_error
    assert not client.call("move_file", source="b", destination="new/place", overwrite=True).is_error
    assert client.call("read_file", path="new/place").data["content"] == "b"
    assert client.call("delete_file", path="dir").is_error
    assert not client.call("delete_file", path="dir", recursive=True).is_error
    assert not client.call("delete_file", path="new/place").is_error
    assert client.call("execute", command="find . -type f").data["stdout"] == ""


def test_links_lead_nowhere_outside(client) -> None:
    client.call("execute", command="ln -s /etc/passwd out; ln -s ../../etc up; ln -s loop loop")
    for path in "out", "up/passwd", "loop":
        assert client.call("read_file", path=path).is_error
        assert client.call("write_file", path=f"{path}/x", content="").is_error
    assert client.call("list_dir", path="up").is_error
    assert not client.call("delete_file", path="out").is_error
    assert Path("/etc/passwd").exists()


def test_a_search_finds_names_and_lines(client) -> None:
    client.call("write_file", path="src/a.c", content="int one;\nint Two;\n")
    client.call("write_file", path="src/b.py", content="one = 1\n")
    client.call("write_file", path="node_modules/x.c", content="one\n")
    found = client.call("search", text="one")
    assert [(one["path"], one["line"]) for one in found.data["matches"]] == [
        ("src/a.c", 1), ("src/b.py", 1)]
    assert found.text.startswith("src/a.c:1: int one;\n")
    assert len(client.call("search", text="one", names=["*.c"]).data["matches"]) == 1
    assert len(client.call("search", text="one", everything=True).data["matches"]) == 3
    assert client.call("search", text="two").data["matches"] == []
    assert "Nothing" in client.call("search", text="two").text
    assert len(client.call("search", text="two", ignore_case=True).data["matches"]) == 1
    assert len(client.call("search", text="^int \\w+;$", regex=True).data["matches"]) == 2
    around = client.call("search", text="Two", context_lines=1).data["matches"]
    assert [one.get("context", False) for one in around] == [True, False]
    assert [one["path"] for one in client.call("search", names=["*.py"]).data["matches"]] == [
        "src/b.py"]
    assert client.call("search", text="one", path="src/b.py").data["files_searched"] == 1
    assert client.call("search", text="o", max_results=1).data["truncated"]


def test_a_search_says_what_it_did_not_look_into(client) -> None:
    client.call("execute", command="truncate -s 100M large; echo one > small; echo two > b")
    found = client.call("search", text="one")
    assert [one["path"] for one in found.data["matches"]] == ["small"]
    assert "[Not searched: 1 files that are too large, 0 " in found.text


def test_numbers_may_be_written_as_fractions_and_arguments_left_out(client) -> None:
    client.call("write_file", path="a", content="1\n2\n3\n")
    assert client.call("read_file", path="a", offset=1.0, limit=1.0).data["content"] == "2\n"
    assert "error" not in client.reply_to(client.begin("tools/call", name="list_dir"))


# ---- diff and sync ----


@pytest.mark.parametrize("mode", ["copy", "overlay"])
def test_changes_are_shown_and_taken_home(start, project: Path, mode: str) -> None:
    client = start("--seed", project, "--seed-mode", mode)
    assert "Nothing has changed" in client.call("diff").text
    client.call("edit_file", path="src/main.c", old_text="main", new_text="changed")
    client.call("write_file", path="docs/new.md", content="new\n")
    client.call("write_file", path="Makefile", content="all:\n")
    diff = client.call("diff")
    assert [(one["path"], one["change"]) for one in diff.data["changes"]] == [
        ("docs/new.md", "added"), ("src/main.c", "modified")]
    assert "-int main;\n+int changed;\n" in diff.data["diff"]
    assert diff.data["left_out"] == ["Makefile"]
    assert "Makefile" in client.call("diff", everything=True).data["diff"]
    assert client.call("diff", path="docs").data["count"] == 1
    assert client.call("diff", list_only=True).data["diff"] == ""
    plan = client.call("sync", dry_run=True)
    assert plan.data["files"] == 2 and "overwrite src/main.c" in plan.text
    assert (project / "src/main.c").read_text() == "int main;\n"
    assert client.call("sync").data["files"] == 2
    assert (project / "src/main.c").read_text() == "int changed;\n"
    assert (project / "docs/new.md").read_text() == "new\n"
    assert not (project / "Makefile").exists()
    assert client.call("sync").data["files"] == 0


SETTINGS = [".claude/settings.json", ".mcp.json", ".vscode/tasks.json", "src/.cursor/mcp.json"]


def write_settings(client) -> None:
    for path in SETTINGS:
        client.call("write_file", path=path, content='{"hooks": "touch here"}')


def test_settings_of_programs_outside_do_not_come_home(start, project: Path) -> None:
    (project / ".vscode").mkdir()
    (project / ".vscode/tasks.json").write_text("{}")
    client = start("--seed", project, "--include", "**")
    assert client.call("read_file", path=".vscode/tasks.json").text == "{}"
    write_settings(client)
    client.call("write_file", path="claude.json", content="{}")
    diff = client.call("diff").data
    assert [one["path"] for one in diff["changes"]] == ["claude.json"]
    assert sorted(diff["left_out"]) == SETTINGS
    assert client.call("sync").data["files"] == 1
    assert (project / ".vscode/tasks.json").read_text() == "{}"
    assert not any((project / path).exists() for path in SETTINGS if path[1:3] != "vs")


def test_settings_come_home_when_the_user_names_them(start, project: Path) -> None:
    client = start("--seed", project, "--include", "**", "--include", ".vscode/**")
    write_settings(client)
    assert client.call("sync").data["files"] == 1
    assert [path for path in SETTINGS if (project / path).exists()] == [".vscode/tasks.json"]


def test_changes_that_are_very_many_are_counted(start, project: Path) -> None:
    client = start("--seed", project)
    client.call("execute", command="seq -f n%05g.md 1 1200 | xargs touch")
    changes = client.call("diff")
    assert changes.data["count"] == 1200 and len(changes.data["changes"]) < 1200
    assert f"[{len(changes.data['changes'])} of 1200 changes are listed.]" in changes.text


def test_a_diff_that_is_long_can_be_read_in_full(start, project: Path) -> None:
    client = start("--seed", project)
    client.call("execute", command="seq 1 20000 > src/many.c")
    diff = client.call("diff")
    assert diff.data["truncated"] and len(diff.data["diff"]) <= 30000
    page = client.call("read_output", id=diff.data["output_id"], offset=len(diff.data["diff"]))
    assert f'{diff.data["diff"]}{page.data["text"]}'.endswith("\n") or page.data["next_offset"]
    lines = (diff.data["diff"] + page.data["text"]).splitlines()
    assert lines[6:1000] == [f"+{n}" for n in range(2, 996)], lines[:9]


def test_sync_goes_where_the_user_says(start, project: Path, tmp_path: Path) -> None:
    client = start("--seed", project, f"--sync={tmp_path / 'home'}", "--include", "*.txt")
    client.call("write_file", path="a.txt", content="a")
    client.call("write_file", path="b.md", content="b")
    assert client.call("sync").data["files"] == 1
    assert [path.name for path in (tmp_path / "home").iterdir()] == ["a.txt"]


def test_there_is_no_sync_without_a_place_for_it(start, project: Path) -> None:
    for options in [], ["--seed", project, "--no-sync"], ["--seed", project, "--read-only"]:
        with pytest.raises(Failure) as failure:
            start(*options).call("sync")
        assert failure.value.code == -32602


# ---- resources ----


def test_files_are_resources(client) -> None:
    client.call("write_file", path="a b.txt", content="text \u00e9")
    client.call("execute", command="printf '\\377' > bin; printf x > \"$(printf 'n\\377')\"")
    listed = client.request("resources/list")["resources"]
    assert [one["uri"] for one in listed] == [
        "pinfold://audit", "pinfold://workspace/a%20b.txt", "pinfold://workspace/bin",
        "pinfold://workspace/n%FF"]
    (content,) = client.request("resources/read", uri=listed[1]["uri"])["contents"]
    assert content == {"uri": listed[1]["uri"], "mimeType": "text/plain", "text": "text \u00e9"}
    (content,) = client.request("resources/read", uri=listed[2]["uri"])["contents"]
    assert base64.b64decode(content["blob"]) == b"\xff"
    (content,) = client.request("resources/read", uri=listed[3]["uri"])["contents"]
    assert content["text"] == "x"
    (template,) = client.request("resources/templates/list")["resourceTemplates"]
    assert template["uriTemplate"] == "pinfold://workspace/{+path}"


def test_very_many_files_come_on_pages(client) -> None:
    client.call("execute", command="mkdir many; seq -f 'many/%05g' 1 450 | xargs touch; "
                                   "ln -s . many/loop")
    uris, cursor, pages = [], {}, 0
    while True:
        page = client.request("resources/list", **cursor)
        uris += [one["uri"] for one in page["resources"]]
        pages += 1
        if "nextCursor" not in page:
            break
        cursor = {"cursor": page["nextCursor"]}
    assert pages == 3 and len(uris) == len(set(uris)) == 452  # the link, not what is behind it


@pytest.mark.parametrize("uri", [
    "pinfold://workspace/no", "pinfold://workspace/", "pinfold://workspace/../etc/passwd",
    "pinfold://workspace/%2e%2e/%2e%2e/etc/passwd", "pinfold://workspace//etc/passwd",
    "pinfold://workspace/a%00b", "pinfold://workspace/%zz", "pinfold://workspace/%", "file:///etc",
    "pinfold://other", "", "x",
])
def test_a_resource_that_is_not_there_is_told(client, uri: str) -> None:
    with pytest.raises(Failure) as failure:
        client.request("resources/read", uri=uri)
    assert failure.value.code == -32002


def test_a_file_that_is_no_resource_by_its_size_is_told(client) -> None:
    client.call("execute", command="truncate -s 5M large")
    with pytest.raises(Failure, match="too many for a resource: read it in parts") as failure:
        client.request("resources/read", uri="pinfold://workspace/large")
    assert failure.value.code == -32603


@pytest.mark.parametrize("uri", [None, 5, "pinfold://workspace/a\0b"])
def test_a_resource_is_named_by_a_string(client, uri) -> None:
    with pytest.raises(Failure) as failure:
        client.request("resources/read", uri=uri)
    assert failure.value.code == -32602


def test_the_audit_is_a_resource_and_a_file(start, tmp_path: Path) -> None:
    client = start("--audit", tmp_path / "audit.jsonl")
    client.call("write_file", path="a", content="secret words")
    client.call("execute", command="echo private")
    (content,) = client.request("resources/read", uri="pinfold://audit")["contents"]
    events = [json.loads(line) for line in content["text"].splitlines()]
    assert [event["event"] for event in events] == [
        "sandbox.start", "attach", "sandbox.write_file", "sandbox.execute"]
    assert events[1]["mode"] == "read_write" and events[1]["agent_id"] == "stdio"
    assert "secret" not in content["text"] and "private" not in content["text"]
    assert (tmp_path / "audit.jsonl").read_text() == content["text"]
