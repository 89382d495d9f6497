/* SPDX-License-Identifier: Apache-2.0 */
/* Looking at many files there, and putting many in place: one script for all, and a line of its
 * answer for each. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/daytona.h"
#include "backend/remote_output.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/number.h"

#define ANSWER_MAX ((size_t)64 << 20)

/* What stands in front of each argument of the script. */
static char *join(const char *text)
{
    char *word;

    return asprintf(&word, "./%s", text) < 0 ? NULL : word;
}

/* "SIZE MODE", of a line that is all there is to it. */
static bool take_found(const char *at, struct pf_dt_verdict *verdict)
{
    unsigned long mode;
    char *end;

    if (!pf_take_number(&at, INT64_MAX, &verdict->size) || *at++ != ' ' || *at < '0' || *at > '7')
        return false;
    mode = strtoul(at, &end, 8);
    verdict->mode = mode & 0777;
    return *end == '\0' && mode <= 07777;
}

/* Lines "+ SIZE MODE" and "- REASON". */
static int take_answer(struct pf_buf *text, struct pf_dt_verdict *verdicts, size_t count)
{
    char *line = text->data;

    for (size_t i = 0; i < count; i++) {
        char *end = line ? strchr(line, '\n') : NULL;
        struct pf_dt_verdict *verdict = &verdicts[i];
        if (!end)
            return -PINFOLD_EBACKEND;
        *end = '\0';
        *verdict = (struct pf_dt_verdict){ 0 };
        if (line[0] == '+') {
            if (line[1] != ' ' || !take_found(line + 2, verdict))
                return -PINFOLD_EBACKEND;
        } else {
            char reason[200];
            snprintf(reason, sizeof(reason), "pinfold: %s", line[0] == '-' ? line + 2 : "");
            verdict->sys_errno = pf_remote_errno_of(reason);
        }
        line = end + 1;
    }
    return 0;
}

static int run_for_all(struct pf_dt_box *box, const char *script, const char *const *words,
                       bool again, const char *operation, const char *path,
                       struct pf_dt_verdict *verdicts, size_t count, struct pinfold_cancel *cancel,
                       struct pinfold_error *err)
{
    PF_CLEANUP(pf_buf_done) struct pf_buf text = PF_BUF_INIT(ANSWER_MAX);
    int r = pf_dt_script(box, script, words, again, operation, path, &text, cancel, err);

    if (r < 0)
        return r;
    return take_answer(&text, verdicts, count) < 0
                   ? pf_fail(err, PINFOLD_EBACKEND, "%s \"%s\": the answer is not whole", operation,
                             PF_QUOTE(path))
                   : 0;
}

static void words_free(char **words, size_t count)
{
    for (size_t i = 0; words && i < count; i++)
        free(words[i]);
    free(words);
}

int pf_dt_look(struct pf_dt_box *box, const char *const *paths, size_t count,
               struct pf_dt_verdict *verdicts, struct pinfold_cancel *cancel,
               struct pinfold_error *err)
{
    static const char script[] =
            "for p; do case \"$(readlink -m -- \"$p\")/\" in \"$R\"/*) ;; "
            "*) echo '- Invalid cross-device link'; continue;; esac; "
            "s=$(stat -Lc '%s %a' -- \"$p\" 2>&1) || { echo \"- ${s##*: }\"; continue; }; "
            "if [ -d \"$p\" ]; then echo '- Is a directory'; "
            "elif [ ! -f \"$p\" ]; then echo '- No such device'; "
            "elif [ ! -r \"$p\" ]; then echo '- Permission denied'; "
            "else echo \"+ $s\"; fi; done";
    char **words = calloc(count + 1, sizeof(*words));
    int r = words ? 0 : -PINFOLD_ENOMEM;

    for (size_t i = 0; r == 0 && i < count; i++)
        r = (words[i] = join(paths[i])) ? 0 : -PINFOLD_ENOMEM;
    r = r < 0 ? pf_fail_nomem(err)
              : run_for_all(box, script, (const char *const *)words, true, "read", paths[0],
                            verdicts, count, cancel, err);
    words_free(words, count);
    return r;
}

/* A new file gets its mode, or that of any new file; one that is replaced keeps its own. It has a
 * temporary name beside its place first, so that it is there whole or not at all. */
int pf_dt_place(struct pf_dt_box *box, const char *const *paths, const char *const *sources,
                const char *const *modes, size_t count, bool exclusive,
                struct pf_dt_verdict *verdicts, struct pinfold_cancel *cancel,
                struct pinfold_error *err)
{
    static const char script[] =
            "x=$1; shift\n"
            "place() {\n"
            "m \"$1\"; p=$1\n"
            "if [ -L \"$p\" ] && [ \"$x\" = 0 ]; then "
            "p=$(readlink -m -- \"$1\"); w \"$p\"; m \"$p\"; fi\n"
            "if [ \"$x\" = 1 ] && { [ -e \"$p\" ] || [ -L \"$p\" ]; }; then f 'File exists'; fi\n"
            "[ ! -d \"$p\" ] || f 'Is a directory'\n"
            "[ ! -e \"$p\" ] || [ -f \"$p\" ] || f 'No such device'\n"
            "t=${p%/*}/.pinfold-${2##*/}; trap 'rm -f -- \"$t\"' EXIT\n"
            "mv -fT -- \"$2\" \"$t\" || exit 9\n"
            "if [ -e \"$p\" ]; then chmod --reference=\"$p\" -- \"$t\"; "
            "else chmod -- \"${3:-=rw}\" \"$t\"; fi\n"
            "if [ \"$x\" = 1 ]; then ln -T -- \"$t\" \"$p\" || exit 9; "
            "else mv -fT -- \"$t\" \"$p\" || exit 9; fi\n"
            "}\n"
            "while [ $# -gt 0 ]; do\n"
            "if e=$( (place \"$1\" \"$2\" \"$3\") 2>&1 ); then echo '+ 0 0'; "
            "else echo \"- ${e##*: }\"; fi; shift 3\n"
            "done";
    char **words = calloc(3 * count + 2, sizeof(*words));
    int r = words ? 0 : -PINFOLD_ENOMEM;

    if (r == 0)
        r = (words[0] = strdup(exclusive ? "1" : "0")) ? 0 : -PINFOLD_ENOMEM;
    for (size_t i = 0; r == 0 && i < count; i++) {
        char **three = &words[3 * i + 1];
        three[0] = join(paths[i]);
        three[1] = strdup(sources[i]);
        three[2] = strdup(modes[i]);
        r = three[0] && three[1] && three[2] ? 0 : -PINFOLD_ENOMEM;
    }
    r = r < 0 ? pf_fail_nomem(err)
              : run_for_all(box, script, (const char *const *)words, false, "write", paths[0],
                            verdicts, count, cancel, err);
    words_free(words, 3 * count + 1);
    return r;
}
