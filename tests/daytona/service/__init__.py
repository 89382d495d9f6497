# SPDX-License-Identifier: Apache-2.0
"""The parts of the fake Daytona; ../fake.py says what it is and how to run it."""
