/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "net/aws_sources.h"

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Copy what is up to the closing mark, and return where it goes on; NULL: it is not closed. */
static char *take_quoted(char *from, char mark, char **to)
{
    while (*from && *from != mark) {
        if (mark == '"' && *from == '\\' && (from[1] == '"' || from[1] == '\\'))
            from++;
        *(*to)++ = *from++;
    }
    return *from ? from + 1 : NULL;
}

/* Move one word to the front of its own text. */
static char *take_word(char *from, char **to, const char **ret_wrong)
{
    while (from && *from && !is_space(*from)) {
        if (*from == '\'' || *from == '"') {
            from = take_quoted(from + 1, *from, to);
            *ret_wrong = "a quote is not closed";
        } else if (*from != '\\') {
            *(*to)++ = *from++;
        } else if (from[1]) {
            *(*to)++ = from[1];
            from += 2;
        } else {
            *ret_wrong = "it ends in a backslash";
            return NULL;
        }
    }
    return from;
}

int pf_aws_split(char *text, const char *words[static PF_AWS_WORDS_MAX + 1], const char **ret_wrong)
{
    int count = 0;

    for (;;) {
        char *to, *next;

        while (is_space(*text))
            text++;
        if (!*text)
            break;
        if (count == PF_AWS_WORDS_MAX) {
            *ret_wrong = "too many words";
            return -PINFOLD_EVALUE;
        }
        to = text;
        words[count++] = text;
        next = take_word(text, &to, ret_wrong);
        if (!next)
            return -PINFOLD_EVALUE;
        text = *next ? next + 1 : next;
        *to = '\0'; /* at next at the latest */
    }
    words[count] = NULL;
    return count;
}
