#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The main job, on a small real project: seed it into a workspace, run its tests there, let a
# command change a file, and bring the results home to a copy. The original is not touched.
set -eu
exec 2>&1 # messages stay where they belong when the output goes to a file

pinfold=$(realpath "${1:-build/pinfold}")
project=$(realpath "$(dirname "$0")/wordcount")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r "$project" "$work/copy"

step() {
    printf '\n== %s\n' "$1"
}

step "the project: what would travel into a workspace"
"$pinfold" plan --seed "$project"

step "its tests, run in a workspace (seeded, thrown away afterwards)"
"$pinfold" run --quiet --seed "$project" 'make --silent test'

step "a command breaks the program: the tests in the workspace notice it"
"$pinfold" run --quiet --seed "$project" --workspace "$work/workspace" \
    "sed -i 's/lines += /lines -= /' src/wordcount.c && make --silent test" &&
    status=0 || status=$?
echo "exit status: $status"
[ "$status" != 0 ] # or the example proves nothing

step "another one writes a report, and the results come home to a copy"
"$pinfold" run --workspace "$work/workspace" --sync="$work/copy" \
    'make --silent test > REPORT.md || true'

step "what the workspace changed in the copy"
diff -ruN "$project" "$work/copy" | sed "s|$work/||; s|$project|original|" || true

step "the project itself is untouched: no program was built in it"
ls -l "$project" | sed 1d
