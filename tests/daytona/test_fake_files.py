# SPDX-License-Identifier: Apache-2.0
"""Files: one by one, in bulk, and what fails of it."""

import os
from pathlib import Path

import pytest

from daytona_client import Fake, form, parts


def read(fake: Fake, path: str) -> bytes:
    [part] = fake.download(path)
    assert part.name == "file" and part.path == path, part
    return part.data


def test_files_go_up_and_come_down(sandbox: Fake) -> None:
    data = bytes(range(256)) * 1000 + b"\r\n--DAYTONA-FILE-BOUNDARY--\r\n\r\n--b0un-"
    home = sandbox.home
    files = [("a.txt", b"hello\n"), (f"{home}/deep/er/b.bin", data), ("empty", b""),
             ('na\u00efve "q" \u6f22.txt', b"\r\n")]
    answer = sandbox.upload(*files)
    assert (answer.status, answer.json) == (200, {"files": [
        {"path": path, "bytes": len(content)} for path, content in files]})
    found = sandbox.download(*(path for path, _ in files))
    assert [(part.name, part.path, part.data) for part in found] == [
        ("file", path, content) for path, content in files]
    assert [part.headers["Content-Type"] for part in found] == [
        "text/plain; charset=utf-8", "application/octet-stream", "application/octet-stream",
        "text/plain; charset=utf-8"]
    assert (home / "a.txt").stat().st_mode & 0o777 == 0o644


def test_an_upload_fails_in_parts(sandbox: Fake) -> None:
    home = sandbox.home
    answer = sandbox.upload(("ok", b"x"), ("/proc/nope/x.txt", b"x"), (str(home), b"x"),
                            ("ok/below", b"x"), ("last", b"y"))
    assert answer.status == 400
    assert answer.json == {"errors": [
        "/proc/nope/x.txt: mkdir /proc/nope: mkdir /proc/nope: no such file or directory",
        f"{home}: create: open {home}: is a directory",
        f"ok/below: mkdir {home}/ok: mkdir {home}/ok: not a directory"],
        "files": [{"path": "ok", "bytes": 1}, {"path": "last", "bytes": 1}]}


@pytest.mark.parametrize("fields, errors", [
    ([("files[0].file", "x"), ("files[0].path", "late")], ["file[0]: missing .path metadata"]),
    ([("files[0].path", "  "), ("files[0].file", "x")],
     ["path[0]: empty path", "file[0]: missing .path metadata"])])
def test_a_path_comes_before_its_file(sandbox: Fake, fields: list, errors: list) -> None:
    body = "".join(f'--b\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
                   for name, value in fields) + "--b--\r\n"
    answer = sandbox.send("POST", f"/toolbox/{sandbox.sandbox}/files/bulk-upload", body.encode(),
                          {**sandbox.headers, "Content-Type": "multipart/form-data; boundary=b"})
    assert (answer.status, answer.json) == (400, {"errors": errors, "files": None})


def test_paths_are_trimmed_and_indices_are_names(sandbox: Fake) -> None:
    kind, body = form([("  trim.bin  ", b"abc"), ("~/tilde", b"1")])
    body = body.replace(b"files[0]", b"files[a]")
    answer = sandbox.send("POST", f"/toolbox/{sandbox.sandbox}/files/bulk-upload", body,
                          {**sandbox.headers, "Content-Type": kind})
    assert answer.json == {"files": [{"path": "trim.bin", "bytes": 3},
                                     {"path": "~/tilde", "bytes": 1}]}
    assert (sandbox.home / "~" / "tilde").read_bytes() == b"1"


def test_what_is_no_form_or_breaks_off(sandbox: Fake) -> None:
    target = f"/toolbox/{sandbox.sandbox}/files/bulk-upload"
    headers = {**sandbox.headers, "Content-Type": "application/json"}
    answer = sandbox.send("POST", target, b"{}", headers)
    assert (answer.status, answer.json) == (400, {"errors": ["invalid multipart form"]})
    assert sandbox.complaints() == ["invalid multipart form"]
    kind, body = form([("a", b"1" * 100), ("b", b"2" * 100)])
    headers["Content-Type"] = kind
    for cut in (20, 70, 140, len(body) - 60, len(body) - 5):
        broken = sandbox.send("POST", target, body[:cut], headers)
        assert broken.status == 400
        assert broken.json["errors"][-1] == "multipart: NextPart: EOF"
    inside = body.replace(b"1" * 100, b"\r\n--b0unD-x")
    assert sandbox.send("POST", target, inside, headers).json["errors"] == [
        "multipart: a line of the content begins like a boundary"]
    other = body.replace(b"files[", b"other[")
    assert sandbox.send("POST", target, other, headers).json == {"files": None}
    assert sorted(sandbox.complaints()) == [
        f"files.bulk-upload has no part other[{at}].{what}" for at in range(2)
        for what in ("file", "path")]


def test_uploads_may_be_chunked_and_large(sandbox: Fake) -> None:
    head = (b'--b\r\nContent-Disposition: form-data; name="files[0].path"\r\n\r\nlarge\r\n'
            b'--b\r\nContent-Disposition: form-data; name="files[0].file"; filename="f"\r\n\r\n')
    pieces = [head, *[b"\r\n--ax" * 10000] * 1000, b"\r\n--b--\r\n"]
    answer = sandbox.send("POST", f"/toolbox/{sandbox.sandbox}/files/bulk-upload", iter(pieces),
                          {**sandbox.headers, "Transfer-Encoding": "chunked",
                           "Content-Type": 'multipart/form-data; boundary="b"'})
    assert answer.json == {"files": [{"path": "large", "bytes": 60_000_000}]}
    assert (sandbox.home / "large").stat().st_size == 60_000_000
    status = Path(f"/proc/{sandbox.process.pid}/status").read_text()
    [peak] = [int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")]
    assert peak < 60_000, "the upload was held in memory"
    assert len(read(sandbox, "large")) == 60_000_000
    sandbox.control("config", {"sized_bodies": True})
    sandbox.send("POST", f"/toolbox/{sandbox.sandbox}/files/bulk-upload",
                 iter([head, b"\r\n--b--\r\n"]),
                 {**sandbox.headers, "Transfer-Encoding": "chunked",
                  "Content-Type": "multipart/form-data; boundary=b"})
    assert sandbox.complaints() == ["the body has no content-length"]


def test_a_download_fails_in_parts(sandbox: Fake) -> None:
    sandbox.upload(("d/f", b"data"))
    found = sandbox.download("d/f", "d/missing", "d", "d/f")
    assert [part.name for part in found] == ["file", "error", "error", "file"]
    assert [part.path for part in found] == ["d/f", "d/missing", "d", "d/f"]
    missing, directory = (part.data for part in found[1:3])
    assert b'"statusCode":404,"message":"file not found: d/missing","code":"FILE_NOT_FOUND"' \
        in missing and b'"path":"d/missing","method":"POST"}' in missing
    assert b'"message":"invalid file path: path points to a directory: d","code":' \
        b'"INVALID_FILE_PATH"' in directory
    assert "Content-Length" not in found[1].headers
    for nothing in ({"paths": []}, {}):
        answer = sandbox.tool("POST", "files/bulk-download", nothing)
        assert (answer.status, answer.json) == (
            400, {"error": 'request body must be {"paths": [ ... ]} and non-empty'})
    assert sandbox.complaints() == ["the member paths is missing"]


def test_one_file_comes_whole_or_in_part(sandbox: Fake) -> None:
    sandbox.upload(("f.bin", b"abcdefghij"))
    whole = sandbox.tool("GET", "files/download", path="f.bin")
    assert (whole.status, whole.body) == (200, b"abcdefghij")
    assert whole.headers["content-disposition"] == \
        "attachment; filename=\"f.bin\"; filename*=utf-8''f.bin"
    headers = {**sandbox.headers, "Range": "bytes=2-4"}
    part = sandbox.send("GET", f"/toolbox/{sandbox.sandbox}/files/download?path=f.bin",
                        headers=headers)
    assert (part.status, part.body) == (206, b"cde")
    assert part.headers["content-range"] == "bytes 2-4/10"
    for path, status in (("none", 404), (str(sandbox.home), 400)):
        answer = sandbox.tool("GET", "files/download", path=path)
        assert (answer.status, answer.body) == (status, b"")


def test_lists_and_infos(sandbox: Fake) -> None:
    sandbox.upload(("w/a.txt", b"hello\n"), ("w/sub dir/b", b""), ('w/na\u00efve "q"', b"x"))
    sandbox.execute("cd w; ln -s a.txt link; ln -s none dangling; chmod 4750 a.txt; "
                    "touch -d '2026-01-02 03:04:05.12Z' a.txt; touch \"$(printf 'b\\377')\"")
    found = sandbox.tool("GET", "files", path="w").json
    assert [one["name"] for one in found] == ["a.txt", "b\ufffd", "link", 'na\u00efve "q"',
                                              "sub dir"]
    assert found[0] == {
        "name": "a.txt", "size": 6, "mode": "urwxr-x---",
        "modTime": "2026-01-02 03:04:05.12 +0000 UTC", "modifiedAt": "2026-01-02T03:04:05.12Z",
        "isDir": False, "owner": str(os.getuid()), "group": str(os.getgid()),
        "permissions": "0750"}
    assert {**found[0], "name": "link"} == found[2]
    assert (found[4]["mode"], found[4]["isDir"], found[4]["permissions"]) == (
        "drwxr-xr-x", True, "0755")
    assert sandbox.tool("GET", "files/info", path="w/a.txt").json == found[0]
    assert sandbox.tool("GET", "files/", path="w").json == found
    sandbox.execute("mkdir nothing")
    assert sandbox.tool("GET", "files", path="nothing").body == b"[]"
    assert "w" in [one["name"] for one in sandbox.tool("GET", "files").json]


@pytest.mark.parametrize("method, path, query, status", [
    ("GET", "files", {"path": "none"}, 404), ("GET", "files", {"path": "f"}, 400),
    ("GET", "files/info", {"path": "none"}, 404), ("DELETE", "files", {"path": "none"}, 404),
    ("DELETE", "files", {"path": "d"}, 400),
    ("POST", "files/folder", {"path": "f", "mode": "755"}, 400),
    ("POST", "files/move", {"source": "none", "destination": "q"}, 404),
    ("POST", "files/move", {"source": "f", "destination": "none/q"}, 404),
    ("POST", "files/move", {"source": "f", "destination": "g"}, 409),
    ("POST", "files/permissions", {"path": "none", "mode": "644"}, 404),
    ("POST", "files/permissions", {"path": "f", "mode": "644", "owner": "no-such-user"}, 400)])
def test_errors_have_an_empty_body_before_0201(sandbox: Fake, method: str, path: str, query: dict,
                                               status: int) -> None:
    sandbox.upload(("f", b""), ("g", b""), ("d/x", b""))
    answer = sandbox.tool(method, path, **query)
    assert (answer.status, answer.body) == (status, b"")
    sandbox.control("config", {"daemon_version": "0.204.0"})
    newer = sandbox.tool(method, path, **query)
    assert newer.status == status and newer.json["code"] and newer.json["statusCode"] == status


def test_folders_moves_permissions_and_removal(sandbox: Fake) -> None:
    for _ in range(2):
        assert sandbox.tool("POST", "files/folder", path="a/b c", mode="700").status == 201
    assert (sandbox.home / "a/b c").stat().st_mode & 0o777 == 0o700
    sandbox.upload(("a/f", b"1"))
    assert sandbox.tool("POST", "files/move", source="a/f", destination="a/g").status == 200
    assert sandbox.tool("POST", "files/permissions", path="a/g", mode="600").status == 200
    assert sandbox.tool("GET", "files/info", path="a/g").json["permissions"] == "0600"
    assert sandbox.tool("POST", "files/move", source="a", destination="z").status == 200
    assert sandbox.tool("DELETE", "files", path="z/g").status == 204
    assert sandbox.tool("DELETE", "files", path="z", recursive="true").status == 204
    assert not (sandbox.home / "z").exists()
    assert sandbox.tool("POST", "files/folder", path="x", mode="755").status == 201


def test_single_uploads(sandbox: Fake) -> None:
    body = (b'--b\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\n'
            b'abc\r\n--b--\r\n')
    headers = {**sandbox.headers, "Content-Type": "multipart/form-data; boundary=b"}

    def upload(how: str, path: str) -> int:
        return sandbox.send("POST", f"/toolbox/{sandbox.sandbox}/files/{how}?path={path}", body,
                            headers).status
    assert upload("upload", "one") == 200 and read(sandbox, "one") == b"abc"
    assert upload("upload", "no/parent") == 400
    assert upload("upload-v2", "no/parent") == 404
    sandbox.control("config", {"daemon_version": "0.204.0"})
    assert upload("upload-v2", "no/parent") == 200 and read(sandbox, "no/parent") == b"abc"


def test_searching(sandbox: Fake) -> None:
    sandbox.upload(("w/a.txt", b"one\nhello you\n"), ("w/d/b.txt", b"hello"), ("w/c", b"\0hello"))
    assert sandbox.tool("GET", "files/search", path="w", pattern="*.txt").json == {
        "files": ["w/a.txt", "w/d/b.txt"]}
    assert sandbox.tool("GET", "files/search", path="/none", pattern="*").json == {"files": []}
    assert sandbox.tool("GET", "files/search", path="w", pattern="**/*.txt").json == {"files": []}
    assert sandbox.tool("GET", "files/find", path="w", pattern="hello").json == [
        {"file": "w/a.txt", "line": 2, "content": "hello you"},
        {"file": "w/d/b.txt", "line": 1, "content": "hello"}]
    assert sandbox.tool("POST", "files/replace", {
        "files": ["w/a.txt", "w/none"], "pattern": "hello", "newValue": "bye"}).json == [
        {"file": "w/a.txt", "success": True},
        {"file": "w/none", "success": False, "error": "open w/none: no such file or directory"}]
    assert read(sandbox, "w/a.txt") == b"one\nbye you\n"


def test_nothing_is_written_outside_of_the_sandbox(sandbox: Fake, tmp_path: Path) -> None:
    there = tmp_path / "f"
    there.write_bytes(b"mine")
    sandbox.execute(f"ln -s {tmp_path} out; ln -s {there} link")
    assert read(sandbox, str(there)) == b"mine"
    for path in (str(there), "out/f", "link", "out/new", f"../../../../../{there}"):
        assert sandbox.upload((path, b"x")).status == 400
    assert sandbox.tool("DELETE", "files", path=str(there)).status == 403
    assert sandbox.tool("POST", "files/folder", path=f"{tmp_path}/d", mode="755").status == 403
    sandbox.upload(("f", b""))
    assert sandbox.tool("POST", "files/move", source="f", destination=str(tmp_path / "g")).status \
        == 403
    assert sandbox.tool("DELETE", "files", path="link").status == 204
    assert [one.name for one in tmp_path.iterdir()] == ["f"] and there.read_bytes() == b"mine"
    complaints = sandbox.complaints()
    assert len(complaints) == 8 and all("outside of the sandbox" in one for one in complaints)


def test_old_daemons_want_a_slash(sandbox: Fake) -> None:
    sandbox.control("config", {"daemon_version": "0.177.0"})
    sandbox.upload(("w/f", b""))
    moved = sandbox.tool("GET", "files", path="w")
    assert moved.status == 301
    assert moved.headers["location"] == f"/toolbox/{sandbox.sandbox}/files/?path=w"
    assert len(sandbox.tool("GET", "files/", path="w").json) == 1
    assert sandbox.tool("DELETE", "files", path="w/f").status == 307
    sandbox.control("config", {"redirect_slash": False})
    page = sandbox.tool("GET", "files", path="w")
    assert (page.status, page.body) == (404, b"404 page not found")
    assert sandbox.tool("DELETE", "files/", path="w/f").status == 204
    assert parts(b"--DAYTONA-FILE-BOUNDARY--\r\n") == []
