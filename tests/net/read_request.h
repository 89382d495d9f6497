/* SPDX-License-Identifier: Apache-2.0 */
/* The reading half of the scripted HTTP servers that tests of this room run. */
#ifndef TESTS_NET_READ_REQUEST_H
#define TESTS_NET_READ_REQUEST_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Read one request: its head, and as much as content-length says. Returns false at the end. */
static inline bool read_request(int fd, char *text, size_t size)
{
    size_t len = 0, want = 0;

    memset(text, 0, size);
    while (want == 0 || len < want) {
        ssize_t n = read(fd, text + len, size - 1 - len);
        char *body;

        if (n <= 0)
            return false;
        len += (size_t)n;
        body = strstr(text, "\r\n\r\n");
        if (want == 0 && body) {
            const char *length = strcasestr(text, "\r\ncontent-length:");
            want = (size_t)(body + 4 - text);
            want += length && length < body ? strtoul(length + 17, NULL, 10) : 0;
        }
    }
    return true;
}

#endif
