#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Two agents on one workspace: one writes, the other reviews and can change nothing. Offline, with
# models that are scripts; name others to have it done:
#
#   WRITER=anthropic:NAME REVIEWER=openai:NAME examples/agent/review.sh
set -eu

pinfold=$(realpath "${1:-build/pinfold}")
here=$(realpath "$(dirname "$0")")
project=$(realpath "$here/../wordcount")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r "$project" "$work/copy"

echo "== the writer, in a workspace that is kept; nothing is written back yet"
"$pinfold" agent --model "${WRITER:-scripted:$here/demo.json}" --seed "$work/copy" \
    --workspace "$work/workspace" --no-sync \
    "Add an option -l to wordcount, with which it prints the number of lines alone."

echo "== the reviewer, in the same workspace, read-only"
"$pinfold" agent --model "${REVIEWER:-scripted:$here/review.json}" --workspace "$work/workspace" \
    --read-only "Review the new option -l of wordcount. Is it right, and is it tested?"

echo "== and home, since the review found nothing that is in the way"
"$pinfold" run --quiet --workspace "$work/workspace" --sync="$work/copy" true
diff -ru "$project" "$work/copy" | sed "s|$work/||; s|$project|original|" || true
