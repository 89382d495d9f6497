# SPDX-License-Identifier: Apache-2.0
"""The import paths of the specification; the package is pinfold."""

from pinfold import Agent, tool

__all__ = ["Agent", "tool"]
