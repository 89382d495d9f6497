/* SPDX-License-Identifier: Apache-2.0 */
/* Checks values against schemas: each line of stdin is a JSON array of the two, and each line of
 * stdout "valid", "invalid" or "refused", and why. */
#include <stdio.h>
#include <stdlib.h>

#include "agent/schema.h"

/* What is said of odd names may hold line ends of all kinds. */
static void say(const char *what, char *why)
{
    for (char *at = why; *at; at++)
        if ((unsigned char)*at < ' ')
            *at = ' ';
    printf("%s: %s\n", what, why);
}

static void answer(const char *line)
{
    json_t *pair = json_loads(line, JSON_ALLOW_NUL, NULL);
    const json_t *schema = json_array_get(pair, 0), *value = json_array_get(pair, 1);
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pf_buf wrong = PF_BUF_INIT(1024 * 1024);

    if (!value)
        printf("unreadable\n");
    else if (pf_schema_check(schema, &err) < 0)
        say("refused", err.msg);
    else if (pf_schema_validate(schema, value, false, &wrong) == 1)
        printf("valid\n");
    else
        say("invalid", wrong.data);
    fflush(stdout);
    pf_buf_done(&wrong);
    json_decref(pair);
}

int main(void)
{
    char *line = NULL;
    size_t size = 0;

    while (getline(&line, &size, stdin) > 0)
        answer(line);
    free(line);
    return 0;
}
