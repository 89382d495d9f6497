#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Compare what wordcount prints with what it should; exit 1 when something differs.
failed=0

check() {
    got=$(printf "$1" | ./wordcount)
    if [ "$got" = "$2" ]; then
        echo "ok      $3"
    else
        echo "FAILED  $3: expected '$2', got '$got'"
        failed=1
    fi
}

check '' '0 0 0' 'empty input'
check 'one line\n' '1 2 9' 'a line with two words'
check '  spaces   between\n' '1 2 19' 'runs of blanks'
check 'no newline at the end' '0 5 21' 'an unfinished line'
check 'a\n\nb\n' '3 2 5' 'an empty line'
exit $failed
