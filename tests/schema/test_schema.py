# SPDX-License-Identifier: Apache-2.0
"""Our checks of JSON Schema beside those of others: the official test suite, and a validator in
Python with schemas and values made at random."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from conftest import Check

# What tools do not use, and we do not do: other documents, anchors, unevaluated members.
LEFT_OUT = {
    "anchor.json", "dynamicRef.json", "id.json", "refRemote.json", "unevaluatedItems.json",
    "unevaluatedProperties.json", "vocabulary.json", "definitions.json", "defs.json",
}
FORMATS = ["date-time", "date", "time", "duration", "email", "hostname", "ipv4", "ipv6", "uri",
           "uri-reference", "uuid", "json-pointer", "regex", "unknown"]
# Where we differ from the suite, and why.
DIFFER = {
    "is only an annotation by default": "formats are checked",
    "even if collection is disabled: unevaluated property": "unevaluatedProperties",
    "referenced subschema doesn't see annotations from properties": "unevaluatedProperties",
    "a quoted string with a": "e-mail addresses with quotes are refused",
    "matches whitespace: ": "\\s is that of ASCII",
    "matches everything but whitespace: ": "\\S is that of ASCII",
    "patterns always use unicode semantics with": "\\p{Letter} is written \\p{L}",
    "with non-ASCII digits: ": "\\p{digit} is written \\p{Nd}",
    "valid if optional overflow handling is implemented": "integers have 64 bits",
    "ref valid, maxItems ignored": "siblings of $ref count in draft 7 as well",
}


def needs_others(schema: Any) -> bool:
    """Whether a schema refers to other documents, or by names."""
    if isinstance(schema, list):
        return any(map(needs_others, schema))
    if not isinstance(schema, dict):
        return False
    reference = schema.get("$ref")
    if isinstance(reference, str) and not (reference == "#" or reference.startswith("#/")):
        return True
    return any(key in ("$id", "$anchor", "$dynamicRef", "$dynamicAnchor") or needs_others(value)
               for key, value in schema.items())


def cases(folder: Path, draft: str) -> list[tuple[str, Any, Any, bool]]:
    """(what it is, schema, value, whether that is valid) of all files that are used."""
    found = []
    files = [path for path in sorted(folder.glob("*.json")) if path.name not in LEFT_OUT]
    files += [folder / "optional/format" / f"{name}.json" for name in FORMATS]
    files += [folder / "optional" / name for name in
              ("ecmascript-regex.json", "float-overflow.json", "non-bmp-regex.json")]
    for path in files:
        for group in json.loads(path.read_text("utf-8")) if path.exists() else []:
            if needs_others(group["schema"]):
                continue
            found += [(f"{draft} {path.stem}: {group['description']}: {test['description']}",
                       group["schema"], test["data"], test["valid"]) for test in group["tests"]]
    return found


def reason(name: str) -> str | None:
    """Why a case may differ."""
    return next((part for part in DIFFER if part in name), None)


def test_the_official_suite_passes(suite: Path, check: Check) -> None:
    wrong, reasons, done = [], set(), 0
    for draft in "draft2020-12", "draft7":
        for name, schema, value, valid in cases(suite / draft, draft):
            said = check(schema, value)
            done += 1
            if said.split(":")[0] == ("valid" if valid else "invalid"):
                continue
            if reason(name):
                reasons.add(reason(name))
            else:
                wrong.append(f"{name}: {json.dumps(schema)} {json.dumps(value)} {valid}: {said}")
    assert wrong == []
    assert reasons == set(DIFFER)  # none is out of date
    assert done > 2500


# ---- schemas and values at random ----

WORDS = ["", "a", "ab", "abc", "2026-01-02", "a@b.example", "127.0.0.1", "\u20ac", "0"]
PATTERNS = ["a", "^a", "b$", "^[a-c]+$", "^\\d", ".", "(a|b)c?", "^.{2}$"]


class Maker:
    """Makes schemas, and values that have a chance to fit."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)

    def value(self, depth: int = 0) -> Any:
        kind = self.random.randrange(9 if depth < 3 else 6)
        if kind < 2:
            return self.random.choice([-1, 0, 1, 2, 3, 10])
        if kind == 2:
            return self.random.choice([0.5, 1.0, 2.5, -3.0])
        if kind == 3:
            return self.random.choice([True, False, None])
        if kind < 6:
            return self.random.choice(WORDS)
        if kind == 6:
            return [self.value(depth + 1) for _ in range(self.random.randrange(4))]
        return {self.random.choice("abc"): self.value(depth + 1)
                for _ in range(self.random.randrange(4))}

    def schemas(self, depth: int) -> list[Any]:
        return [self.schema(depth + 1) for _ in range(self.random.randint(1, 3))]

    def keyword(self, name: str, depth: int) -> Any:
        pick = self.random
        if name == "type":
            types = ["string", "integer", "number", "boolean", "object", "array", "null"]
            return pick.choice([pick.choice(types), pick.sample(types, 3)])
        if name in ("enum", "const"):
            return [self.value(2) for _ in range(3)] if name == "enum" else self.value(2)
        if name in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"):
            return pick.choice([-1, 0, 1, 2.5, 3])
        if name == "multipleOf":
            return pick.choice([1, 2, 0.5, 3])
        if name.startswith(("min", "max")):
            return pick.choice([0, 1, 2, 2.0])
        if name == "uniqueItems":
            return pick.choice([True, False])
        if name == "pattern":
            return pick.choice(PATTERNS)
        if name == "required":
            return pick.sample("abc", pick.randint(1, 2))
        if name == "dependentRequired":
            return {pick.choice("abc"): [pick.choice("abc")]}
        if name in ("properties", "dependentSchemas"):
            return {key: self.schema(depth + 1) for key in pick.sample("abc", 2)}
        if name == "patternProperties":
            return {pick.choice(PATTERNS): self.schema(depth + 1)}
        if name in ("anyOf", "oneOf", "allOf", "prefixItems"):
            return self.schemas(depth)
        if name == "$ref":
            return pick.choice(["#/$defs/x", "#/$defs/y~1z"])
        return self.schema(depth + 1)

    def schema(self, depth: int = 0) -> Any:
        names = ["type", "enum", "const", "minimum", "maximum", "exclusiveMinimum",
                 "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "minItems",
                 "maxItems", "minProperties", "maxProperties", "uniqueItems", "pattern",
                 "required", "dependentRequired"]
        if depth < 3:
            names += 2 * ["properties", "dependentSchemas", "patternProperties", "anyOf", "oneOf",
                          "allOf", "prefixItems", "items", "additionalProperties", "contains",
                          "propertyNames", "not", "if", "then", "else", "$ref"]
        elif self.random.random() < 0.2:
            return self.random.choice([True, False])
        return {name: self.keyword(name, depth)
                for name in self.random.sample(names, self.random.randint(0, 4))}

    def whole(self) -> Any:
        return {**self.schema(), "$defs": {"x": self.schema(3), "y/z": self.schema(3)}}


def test_a_validator_in_python_says_the_same(check: Check) -> None:
    validator = pytest.importorskip("jsonschema").Draft202012Validator
    verdicts = {"valid": 0, "invalid": 0}
    for seed in range(1500):
        maker = Maker(seed)
        schema = maker.whole()
        theirs = validator(schema)
        for value in [maker.value() for _ in range(6)]:
            wanted = "valid" if theirs.is_valid(value) else "invalid"
            said = check(schema, value)
            verdicts[wanted] += 1
            assert said.split(":")[0] == wanted, (seed, schema, value, said)
    assert min(verdicts.values()) > 1000  # both are there
