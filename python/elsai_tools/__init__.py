# SPDX-License-Identifier: Apache-2.0
"""The import paths of the specification; the package is pinfold."""
