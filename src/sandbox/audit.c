/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/audit.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/strings.h"

/* A vector with each entry escaped; NULL for NULL, or when out of memory. */
static char **escape_all(const char *const *paths)
{
    char **escaped;

    if (!paths)
        return NULL;
    escaped = calloc(pf_strv_count(paths) + 1, sizeof(*escaped));
    for (size_t i = 0; escaped && paths[i]; i++) {
        escaped[i] = pf_escape(paths[i]);
        if (!escaped[i]) {
            pf_strv_free(escaped);
            return NULL;
        }
    }
    return escaped;
}

void pf_audit_emit(const struct pinfold_audit_sink *sink, struct pinfold_audit_event *event, int r,
                   const struct pinfold_error *err)
{
    _cleanup_free_ char *path = NULL, *dest = NULL, *cwd = NULL, *view = NULL;
    _cleanup_strv_ char **paths = NULL;
    struct timespec now;

    if (!sink->emit)
        return;
    clock_gettime(CLOCK_REALTIME, &now);
    event->time_ns = (int64_t)now.tv_sec * PF_NS_PER_SEC + now.tv_nsec;
    /* Out of memory loses a path, never the event. */
    event->path = path = event->path ? pf_escape(event->path) : NULL;
    event->dest = dest = event->dest ? pf_escape(event->dest) : NULL;
    event->view = view = event->view ? pf_escape(event->view) : NULL;
    event->cwd = cwd = event->cwd ? pf_escape(event->cwd) : NULL;
    paths = escape_all(event->paths);
    event->paths = (const char *const *)paths;
    if (r < 0) {
        event->error = pinfold_code_name(r);
        event->error_message = err ? err->msg : NULL;
    }
    sink->emit(sink->ctx, event);
}

void pf_audit_hash(const char *command, size_t len, char hex[static PF_AUDIT_HASH_DIGITS + 1])
{
    char whole[PF_SHA256_HEX + 1];

    pf_sha256_hex(command, len, whole);
    memcpy(hex, whole, PF_AUDIT_HASH_DIGITS);
    hex[PF_AUDIT_HASH_DIGITS] = '\0';
}

static const struct {
    const char *words; /* separated and enclosed by blanks */
    const char *label;
} operations[] = {
    { " rm rmdir unlink shred ", "shell_delete" },
    { " mv rename ", "shell_move" },
    { " cp install rsync scp ln ", "shell_copy" },
    { " mkdir touch tee truncate dd ", "shell_write" },
    { " chmod chown chgrp setfacl ", "shell_permissions" },
    { " ls cat head tail less more stat file find tree wc grep rg diff pwd du df ", "shell_read" },
    { " curl wget nc ncat ssh ftp sftp ", "shell_network" },
    { " apt apt-get apk dnf yum pip pip3 npm pnpm yarn cargo gem ", "shell_package" },
    { " git hg svn ", "shell_vcs" },
    { " kill pkill killall ", "shell_kill" },
    { " make ninja cmake meson gcc g++ clang cc go mvn gradle ", "shell_build" },
    { " pytest tox nosetests ctest ", "shell_test" },
    { " sh bash dash zsh python python3 node ruby perl ", "shell_script" },
};

const char *pf_audit_infer(const char *command, size_t len)
{
    char word[32] = " ";
    size_t start = 0, used = 1;

    while (start < len && strchr(" \t\n", command[start]) && command[start] != '\0')
        start++;
    while (start < len && used < sizeof(word) - 2) {
        char c = command[start++];
        if (c == '/') { /* the last component of a path */
            used = 1;
            continue;
        }
        if (c == '\0' || strchr(" \t\n;|&<>()", c))
            break;
        word[used++] = c;
    }
    if (used == 1)
        return NULL;
    word[used++] = ' ';
    word[used] = '\0';
    for (size_t i = 0; i < PF_COUNT(operations); i++)
        if (strstr(operations[i].words, word))
            return operations[i].label;
    return NULL;
}
