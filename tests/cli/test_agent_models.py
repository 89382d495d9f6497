# SPDX-License-Identifier: Apache-2.0
"""pinfold agent and the services of models: keys, failures, and what a user is told of them."""

import json
import subprocess
from typing import Iterator

import pytest

from agent_run import KEY, Agent, Service

AWS = {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_REGION": "us-west-2",
       "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
       "AWS_SESSION_TOKEN": "session/token==", "AWS_EC2_METADATA_DISABLED": "true"}
KEYS = {"anthropic": {"ANTHROPIC_API_KEY": KEY}, "openai": {"OPENAI_API_KEY": KEY}, "bedrock": AWS}
PATHS = {"anthropic": "", "openai": "/v1", "bedrock": ""}
PROVIDERS = sorted(KEYS)


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    made = Service()
    yield made
    made.close()


def ask(agent: Agent, service: Service, provider: str, model: str, switches: str = "",
        *args: str) -> "subprocess.CompletedProcess[str]":
    agent.env |= KEYS[provider]
    return agent(f"{provider}:{model}", "--base-url", service.url(switches, PATHS[provider]), *args)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_reply_is_shown_and_its_tokens_are_counted(agent: Agent, service: Service,
                                                     provider: str) -> None:
    done = ask(agent, service, provider, "text")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "Hello, wörld! \U0001f600 Bye.\n"
    assert "1 replies, 0 calls" in done.stderr and "15 out" in done.stderr
    assert KEY not in done.stderr


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_model_that_calls_the_same_tool_for_ever_ends_with_the_turns(
        agent: Agent, service: Service, provider: str) -> None:
    done = ask(agent, service, provider, "tool", "", "--max-turns", "3")
    assert done.returncode == 2, done.stderr
    assert "[3] read_file: " in done.stderr and "stopped after 3 replies" in done.stderr


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_wrong_key_is_an_error_that_says_so_and_does_not_repeat_it(
        agent: Agent, service: Service, provider: str) -> None:
    agent.env |= KEYS[provider]
    wrong = "wrong-key-0123456789"
    agent.env |= {name: wrong for name in KEYS[provider] if "KEY" in name}
    done = agent(f"{provider}:text", "--base-url", service.url("", PATHS[provider]))
    assert (done.returncode, done.stdout) == (125, "")
    assert "40" in done.stderr and "the service refused the key" in done.stderr
    assert wrong not in done.stderr


def test_a_service_that_repeats_the_key_does_not_get_it_shown(agent: Agent,
                                                              service: Service) -> None:
    done = ask(agent, service, "openai", "text", "fail=400,echo=1")
    assert done.returncode == 125 and "Wrong key" in done.stderr
    assert KEY not in done.stderr


def test_an_overloaded_service_is_waited_for_and_told(agent: Agent, service: Service) -> None:
    done = ask(agent, service, "anthropic", "text", f"id=over{id(agent)},fail=529,times=2,after_ms=10")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("trying again in ") == 2


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_service_that_dies_in_the_middle_is_asked_again_and_then_given_up(
        agent: Agent, service: Service, provider: str) -> None:
    token = f"dies{provider}{id(agent)}"
    done = ask(agent, service, provider, "long", f"id={token},cut=300000")
    assert done.returncode == 125, done.stderr
    assert done.stderr.count("the reply broke off") == 3
    assert done.stdout.startswith("0123456789abcdef")


def test_replies_that_broke_off_are_told_in_json(agent: Agent, service: Service) -> None:
    """Whoever reads the events has to take back what the reply had said so far."""
    done = ask(agent, service, "anthropic", "long", f"id=json{id(agent)},cut=300000", "--json")
    assert done.returncode == 125, done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines()]
    retries = [event for event in events if event["event"] == "retry"]
    assert len(retries) == 3 and all(event["error"]["message"] for event in retries)
    assert [event["event"] for event in events if event["event"] != "text"] == [
        "start", "seed", *["retry"] * 3, "error", "end"]


def test_a_service_that_is_not_there_is_an_error(agent: Agent) -> None:
    agent.env |= KEYS["openai"]
    done = agent("openai:text", "--base-url", "http://127.0.0.1:1/v1", "--json")
    assert done.returncode == 125
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert [event["event"] for event in events[-2:]] == ["error", "end"]
    assert events[-1]["status"] == 125


def test_the_key_goes_to_no_other_machine_in_plain_text(agent: Agent) -> None:
    agent.env |= KEYS["openai"]
    done = agent("openai:text", "--base-url", "http://192.0.2.1/v1")
    assert done.returncode == 125 and "plain text" in done.stderr and KEY not in done.stderr


@pytest.mark.parametrize("model, status, words", [("length", 2, "was cut"), ("refusal", 2, "refused"),
                                                  ("empty", 0, "has changed nothing")])
def test_how_a_reply_ended_is_told(agent: Agent, service: Service, model: str, status: int,
                                   words: str) -> None:
    done = ask(agent, service, "anthropic", model)
    assert done.returncode == status and words in done.stderr


def test_a_key_is_in_no_process_that_others_can_list(agent: Agent, service: Service) -> None:
    """There is no option for one."""
    text = subprocess.run([agent.words()[0], "help", "agent"], capture_output=True, text=True,
                          check=True).stdout
    assert not [line for line in text.splitlines() if line.startswith("  --") and "key" in line]
