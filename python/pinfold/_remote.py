# SPDX-License-Identifier: Apache-2.0
"""Backends of services. Nothing is asked of a service before a sandbox is started."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from . import _check as check
from . import _pinfold
from ._backends import CLASSES, Backend, expose
from ._check import environment


class AgentCoreSandboxBackend(Backend):
    """A session in AWS Bedrock AgentCore; AgentCoreSandboxTemplate makes it."""

    def __init__(self) -> None:
        raise TypeError("AgentCoreSandboxTemplate.build_for_session() makes these")

    @property
    def session(self) -> tuple[str, float]:
        """The id of the session, and for how many seconds it lives at least."""
        return self._core.session()


class AgentCoreSandboxTemplate:
    """Makes one session of AWS Bedrock AgentCore's code interpreter for each workspace. Keys come
    from where AWS's own tools look for them, unless they or a profile are given."""

    def __init__(self, region: str | None = None, session_timeout_seconds: int = 900, *,
                 profile: str | None = None, access_key: str | None = None,
                 secret_key: str | None = None, session_token: str | None = None,
                 identifier: str | None = None, name: str | None = None,
                 endpoint: str | None = None, max_output_bytes: int = 100_000,
                 env: Mapping[str, str] | None = None, long_commands: bool = False,
                 timeout: float | None = None):
        """long_commands: run commands as tasks of the service, which may take as long as the
        session lives, and can be cancelled. timeout: seconds for a command that is given none,
        with long_commands alone; None: no limit."""
        check.texts(region=region, profile=profile, access_key=access_key, secret_key=secret_key,
                    session_token=session_token, identifier=identifier, name=name,
                    endpoint=endpoint)
        self._region = region
        self._core = _pinfold.agentcore_template(
            region, access_key, secret_key, session_token, profile, identifier, name, endpoint,
            check.whole("session_timeout_seconds", session_timeout_seconds, 1, check.UINT32_MAX),
            check.whole("max_output_bytes", max_output_bytes, 1, check.INT64_MAX),
            environment(env), check.flag("long_commands", long_commands),
            0.0 if timeout is None else check.positive("timeout", timeout))

    def build_for_session(self, workspace_id: str) -> Any:
        """The backend of one workspace."""
        return expose(self._core.build_for_session(workspace_id))

    def __repr__(self) -> str:
        return f"AgentCoreSandboxTemplate(region={self._region!r})"


class DaytonaSandboxBackend(Backend):
    """A sandbox of Daytona; DaytonaSandboxTemplate makes it."""

    def __init__(self) -> None:
        raise TypeError("DaytonaSandboxTemplate.build_for_session() makes these")

    @property
    def sandbox_id(self) -> str:
        """The service's id of the sandbox. SandboxStartError before create() and after close()."""
        return self._core.daytona_sandbox()


class DaytonaSandboxTemplate:
    """Makes one sandbox of Daytona for each workspace. What is None comes from the environment
    (DAYTONA_API_KEY, DAYTONA_API_URL, DAYTONA_TARGET, DAYTONA_JWT_TOKEN, DAYTONA_ORGANIZATION_ID),
    else, except for the address, from .env.local and .env in the current directory."""

    def __init__(self, api_key: str | None = None, api_url: str | None = None,
                 target: str | None = None, default_timeout: float = 900, *,
                 jwt_token: str | None = None, organization_id: str | None = None,
                 snapshot: str | None = None, image: str | None = None,
                 env: Mapping[str, str] | None = None, labels: Mapping[str, str] | None = None,
                 auto_stop_minutes: int | None = 15, auto_delete_minutes: int | None = 1440,
                 create_timeout_seconds: int | None = None, network_block_all: bool = False,
                 network_allow_list: Iterable[str] | None = None,
                 domain_allow_list: Iterable[str] | None = None,
                 max_output_bytes: int = 100_000):
        """api_key, or jwt_token with organization_id; without any, ValueError.

        api_url: None without DAYTONA_API_URL is Daytona's own. target: the region.
        default_timeout: seconds for a command that is given no timeout; 0: no limit.
        snapshot: its id or name; image: instead of it, of a registry, "debian:12" say.
        env: of all that runs there. labels: of the sandbox; a start deletes what runs that died
        have left with the same workspace and labels. auto_stop_minutes: without use, until the
        service stops it; auto_delete_minutes: after that, until it deletes it; None: never.
        create_timeout_seconds: None is 60, or 600 with an image, which must be built.
        network_allow_list: networks, "10.0.0.0/8" say, and no others; domain_allow_list: names,
        of newer services. max_output_bytes: kept of a command's output."""
        if check.number("default_timeout", default_timeout) < 0:
            raise ValueError(f"default_timeout must be at least 0, not {default_timeout!r}")
        check.texts(api_key=api_key, api_url=api_url, target=target, jwt_token=jwt_token,
                    organization_id=organization_id, snapshot=snapshot, image=image)
        self._target = target
        self._core = _pinfold.daytona_template(
            api_key, api_url, target, jwt_token, organization_id, snapshot, image,
            default_timeout or math.inf, _minutes("auto_stop_minutes", auto_stop_minutes),
            _minutes("auto_delete_minutes", auto_delete_minutes),
            check.count("create_timeout_seconds", create_timeout_seconds, check.UINT32_MAX),
            check.flag("network_block_all", network_block_all),
            _listed("network_allow_list", network_allow_list),
            _listed("domain_allow_list", domain_allow_list),
            check.whole("max_output_bytes", max_output_bytes, 1, check.INT64_MAX),
            environment(env), environment(labels, "labels"))

    def build_for_session(self, workspace_id: str) -> Any:
        """The backend of one workspace."""
        return expose(self._core.build_for_session(workspace_id))

    def __repr__(self) -> str:
        return f"DaytonaSandboxTemplate(target={self._target!r})"


def _minutes(name: str, value: int | None) -> int:
    return -1 if value is None else check.whole(name, value, 1, check.INT32_MAX)


def _listed(name: str, values: Iterable[str] | None) -> str | None:
    return None if values is None else ",".join(check.strings(name, values))


CLASSES["AgentCoreSandboxBackend"] = AgentCoreSandboxBackend
CLASSES["DaytonaSandboxBackend"] = DaytonaSandboxBackend
