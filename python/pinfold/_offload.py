# SPDX-License-Identifier: Apache-2.0
"""Where results of tools go that are too long for a conversation."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol, Union, runtime_checkable

from . import _check as check
from . import _pinfold
from ._bridge import finish
from ._check import StrPath
from ._policy import SANDBOX_OFFLOAD_TOOL_NAMES


@runtime_checkable
class Storage(Protocol):
    """A storage of your own. Both methods may be coroutines, and are called from several threads at
    once."""

    def store(self, key: str, content: bytes, content_type: str = "text/plain") -> Any:
        """Keep it; returns a reference to it, which holds for ever. key is not unique."""

    def retrieve(self, reference: str) -> Any:
        """(content, content_type); KeyError for what is not there."""


class _LibraryStorage:
    _core: _pinfold.Storage

    def store(self, key: str, content: bytes, content_type: str = "text/plain") -> str:
        """Keep it; returns a reference to it."""
        if not isinstance(content, (bytes, bytearray, memoryview)):
            raise TypeError(f"content must be bytes, not {type(content).__name__}")
        return self._core.store(check.text("key", key), bytes(content),
                                check.text("content_type", content_type))

    def retrieve(self, reference: str) -> tuple[bytes, str]:
        """(content, content_type); KeyError for what is not there."""
        check.path("reference", reference)
        try:
            return self._core.retrieve(reference)
        except ValueError as error:
            raise KeyError(str(error)) from None


class InMemoryStorage(_LibraryStorage):
    """Gone with the process."""

    def __init__(self) -> None:
        self._core = _pinfold.memory_storage()

    def __repr__(self) -> str:
        return "InMemoryStorage()"


class FileStorage(_LibraryStorage):
    """A file of each result in one directory of the host. References are the paths of the files.
    """

    def __init__(self, artifact_dir: StrPath = "./artifacts"):
        self._directory = check.path("artifact_dir", artifact_dir)
        self._core = _pinfold.file_storage(self._directory)

    def __repr__(self) -> str:
        return f"FileStorage({self._directory!r})"


class S3Storage(_LibraryStorage):
    """An object of each result in a bucket of Amazon S3, or of another service that speaks its
    language. Keys come from where AWS's own tools look for them, unless they or a profile are
    given. What is stored is never deleted: the bucket should have a rule for that."""

    def __init__(self, bucket: str, prefix: str = "", *, region: str | None = None,
                 endpoint: str | None = None, profile: str | None = None,
                 access_key: str | None = None, secret_key: str | None = None,
                 session_token: str | None = None, allow_plain_http: bool = False,
                 attempts: int | None = None, timeout: float | None = None):
        check.text("bucket", bucket)
        check.text("prefix", prefix)
        check.texts(region=region, endpoint=endpoint, profile=profile, access_key=access_key,
                    secret_key=secret_key, session_token=session_token)
        self._place = f"s3://{bucket}/{prefix}"
        self._core = _pinfold.s3_storage(
            bucket, prefix or None, region, endpoint, profile, access_key, secret_key,
            session_token, check.flag("allow_plain_http", allow_plain_http),
            check.count("attempts", attempts, check.UINT32_MAX),
            0.0 if timeout is None else check.positive("timeout", timeout))

    def __repr__(self) -> str:
        return f"S3Storage({self._place!r})"


OffloadStorage = Union[InMemoryStorage, FileStorage, S3Storage, Storage]
RawPolicy = tuple[Any, int, int, bool, Union[list[str], None]]


def _called_by(storage: Storage) -> Callable[..., Any]:
    """A storage of a user's as the library calls it."""
    def call(operation: str, *args: Any) -> Any:
        if operation == "store":
            return str(finish(storage.store(*args)))
        try:
            content, content_type = finish(storage.retrieve(*args))
        except KeyError as error:
            raise ValueError(f"there is no {args[0]}") from error
        return bytes(content), content_type

    return call


def raw_policy(storage: OffloadStorage, max_result_tokens: int, preview_tokens: int,
               include_retrieval_tool: bool, tool_names: Iterable[str] | None) -> RawPolicy:
    """A policy as the library wants it."""
    check.whole("max_result_tokens", max_result_tokens, 1, check.UINT32_MAX)
    check.whole("preview_tokens", preview_tokens, 0, max_result_tokens - 1)
    check.flag("include_retrieval_tool", include_retrieval_tool)
    core: Any
    if isinstance(storage, _LibraryStorage):
        core = storage._core
    elif isinstance(storage, Storage) and not isinstance(storage, type):
        core = _called_by(storage)
    else:
        raise TypeError(f"storage: an object with store() and retrieve() is required, "
                        f"not {storage!r}")
    return (core, max_result_tokens, preview_tokens, include_retrieval_tool,
            None if tool_names is None else check.strings("tool_names", tool_names))


@dataclass
class SandboxOutputOffloadPolicy:
    """Which results of workspace tools are offloaded."""

    storage: OffloadStorage
    #: Longer ones are. A token is 4 characters of text.
    max_result_tokens: int = 2500
    #: Kept of them.
    preview_tokens: int = 1000
    #: Give the agent retrieve_offloaded_content.
    include_retrieval_tool: bool = True
    tool_names: Iterable[str] = SANDBOX_OFFLOAD_TOOL_NAMES

    def __post_init__(self) -> None:
        self._raw()

    def _raw(self) -> RawPolicy:
        return raw_policy(self.storage, self.max_result_tokens, self.preview_tokens,
                          self.include_retrieval_tool, self.tool_names)
