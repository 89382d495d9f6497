# SPDX-License-Identifier: Apache-2.0
"""Sandboxes for the agents of others. Each module needs the package that it is named after, and
nothing of it is imported before its module is: deepagents, strands, openai_agents."""
