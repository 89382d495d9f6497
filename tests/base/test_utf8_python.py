# SPDX-License-Identifier: Apache-2.0
"""The streaming decoder gives what Python's errors="replace" gives, however the bytes arrive."""
import itertools
import os
import random
import struct
import subprocess

# One of each class of table 3-7 of the Unicode standard, and its edges.
EDGES = bytes.fromhex("00417f808f909fa0bfc0c1c2dfe0e1ecedeeeff0f1f3f4f5ff")


def decode_all(cases):
    """What the program under test makes of each case: (text, offset of the first bad byte)."""
    sent = b"".join(struct.pack("<H", len(case)) + case for case in cases)
    done = subprocess.run([os.environ["PINFOLD_UTF8_PIPE"]], input=sent, stdout=subprocess.PIPE,
                          timeout=100, check=True)
    out, at, answers = done.stdout, 0, []
    while at < len(out):
        (length,) = struct.unpack_from("<H", out, at)
        (bad,) = struct.unpack_from("<H", out, at + 2 + length)
        answers.append((out[at + 2:at + 2 + length], bad))
        at += 4 + length
    assert len(answers) == len(cases)
    return answers


def expected(case):
    try:
        return case.decode("utf-8").encode(), 0xFFFF
    except UnicodeDecodeError as error:
        return case.decode("utf-8", "replace").encode(), error.start


def check(cases):
    for case, answer in zip(cases, decode_all(cases)):
        assert answer == expected(case), case


def test_every_sequence_of_up_to_two_bytes():
    check([b""] + [bytes([a]) for a in range(256)] +
          [bytes(pair) for pair in itertools.product(range(256), repeat=2)])


def test_every_third_byte_after_each_lead_that_takes_three():
    check([bytes([lead, second, third]) for lead in (0xE0, 0xE1, 0xED, 0xEF, 0xF0, 0xF4)
           for second in range(0x7F, 0xC1) for third in range(0x7E, 0xC2)])


def test_sequences_of_the_edges_of_each_class():
    check([bytes(case) for length in (3, 4)
           for case in itertools.product(EDGES[::1 if length == 3 else 2], repeat=length)])


def test_every_character_survives():
    text = [chr(c) for c in itertools.chain(range(0xD800), range(0xE000, 0x110000, 17))]
    check(["".join(text[i:i + 40]).encode() for i in range(0, len(text), 40)])


def test_random_bytes_and_damaged_text():
    rng = random.Random(20240229)
    alphabet = "a\u00e9\u20ac\U0001f600\uffff\x00"
    cases = [rng.randbytes(rng.randrange(40)) for _ in range(4000)]
    for _ in range(4000):
        text = bytearray("".join(rng.choices(alphabet, k=rng.randrange(1, 12))).encode())
        for _ in range(rng.randrange(3)):
            text[rng.randrange(len(text))] = rng.choice(EDGES)
        cases.append(bytes(text))
    check(cases)
