/* SPDX-License-Identifier: Apache-2.0 */
/* Single files, by small scripts with the tools that are there; what those say of an error ends in
 * the system's words, from which the number of the error is had again. */
#include "backend/agentcore.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/agentcore_tree.h"
#include "backend/remote_output.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "tree/file.h"
#include "tree/place.h"

#define SCRIPT_MAX ((size_t)64 << 20)
#define LISTING_MAX ((size_t)32 << 20)
#define TYPED_MAX ((size_t)30000) /* bytes of a file that go with their script */
enum { STATUS_LARGE = 8, STATUS_NO_ROOT = 10, STATUS_TOO_LARGE = 11 };

/* w fails for a path that leaves the root; m makes the directory of a path. */
static const char prelude[] =
        "export LC_ALL=C; f() { echo \"pinfold: $1\" >&2; exit 9; }; "
        "cd \"$R\" 2>/dev/null || exit 10; "
        "w() { case \"$(readlink -m -- \"$1\")/\" in \"$R\"/*) ;; "
        "*) f 'Invalid cross-device link';; esac; }; "
        "m() { w \"${1%/*}\"; if [ -e \"${1%/*}\" ] && [ ! -d \"${1%/*}\" ]; then "
        "f 'Not a directory'; fi; mkdir -p -- \"${1%/*}\" || exit 9; }; set --";

int pf_ac_script(struct pf_ac_box *box, const char *script, const char *const *words,
                 const char *operation, const char *path, struct pf_ac_output *ret,
                 struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    PF_CLEANUP(pf_buf_done) struct pf_buf text = PF_BUF_INIT(SCRIPT_MAX);
    int r;

    if (!box->root)
        return pf_fail(err, PINFOLD_ESTART, "AgentCore: no session: the sandbox is not started");
    r = pf_buf_printf(&text, "export R='%s'; %s", box->root, prelude);
    for (size_t i = 0; r == 0 && words[i]; i++) {
        r = pf_buf_append(&text, " ", 1);
        if (r == 0)
            r = pf_buf_append_word(&text, words[i]);
    }
    if (r == 0)
        r = pf_buf_printf(&text, "; %s", script);
    if (r < 0)
        return pf_fail_nomem(err);
    r = pf_ac_run(box, text.data, text.len, LISTING_MAX, false, NULL, ret, cancel, err);
    if (r < 0)
        return pf_wrap(err, r, "%s \"%s\"", operation, PF_QUOTE(path));
    if (ret->status == 0 || ret->status == STATUS_LARGE)
        return 0;
    if (ret->status == STATUS_NO_ROOT)
        r = pf_fail_os(err, ENOENT, "%s \"%s\": workspace root is gone: workspace %s", operation,
                       PF_QUOTE(path), PF_QUOTE(box->root));
    else if (ret->status == STATUS_TOO_LARGE)
        r = pf_file_too_large(path, PINFOLD_READ_MAX_BYTES, err);
    else
        r = pf_fail_at(err, pf_remote_errno_of(ret->merged ? ret->out.data : ret->errs.data),
                       operation, path);
    pf_ac_output_done(ret);
    return r;
}

/* A path as a word that no command takes for an option. */
static char *word(const char *path)
{
    char *text;

    return asprintf(&text, "./%s", path) < 0 ? NULL : text;
}

/* ---- reading ---- */

static int read_whole(int fd, uint64_t limit, struct pinfold_bytes *ret, struct pinfold_error *err)
{
    PF_CLEANUP(pf_buf_done) struct pf_buf buf = PF_BUF_INIT((size_t)limit);
    off_t size = lseek(fd, 0, SEEK_END);
    ssize_t n;

    if (size < 0 || pf_buf_reserve(&buf, (size_t)size) < 0)
        return pf_fail_nomem(err);
    while (buf.len < (size_t)size) {
        n = pread(fd, buf.data + buf.len, (size_t)size - buf.len, (off_t)buf.len);
        if (n <= 0)
            return pf_fail_os(err, n < 0 ? errno : EIO, "read what was fetched");
        buf.len += (size_t)n;
    }
    return pf_buf_take(&buf, ret) < 0 ? pf_fail_nomem(err) : 0;
}

static int read_large(struct pf_ac_box *box, const char *path, struct pinfold_bytes *ret,
                      struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    PF_CLEANUP(pf_buf_done) struct pf_buf script = PF_BUF_INIT(SCRIPT_MAX);
    _cleanup_close_ int fd = pf_remote_unnamed(err);
    int r;

    if (fd < 0)
        return fd;
    r = pf_buf_printf(&script, "cat -- '%s'/", box->root);
    if (r == 0)
        r = pf_buf_append_word(&script, path);
    if (r < 0)
        return pf_fail_nomem(err);
    r = pf_ac_fetch(box, script.data, PINFOLD_READ_MAX_BYTES, fd, cancel, err);
    if (r < 0)
        return pf_wrap(err, r, "read \"%s\"", PF_QUOTE(path));
    return read_whole(fd, PINFOLD_READ_MAX_BYTES, ret, err);
}

int pf_ac_read_file(void *state, const char *path, struct pinfold_bytes *ret_content,
                    struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    static const char script[] =
            "w \"$1\"; s=$(stat -Lc '%s' -- \"$1\") || exit 9; [ ! -d \"$1\" ] || "
            "f 'Is a directory'; [ -f \"$1\" ] || f 'No such device'; "
            "[ \"$s\" -le \"$2\" ] || exit 11; [ \"$s\" -le \"$3\" ] || exit 8; "
            "exec cat -- \"$1\"";
    _cleanup_free_ char *name = word(path);
    struct pf_ac_output output;
    char most[24], inlined[24];
    int r;

    if (!name)
        return pf_fail_nomem(err);
    snprintf(most, sizeof(most), "%zu", PINFOLD_READ_MAX_BYTES);
    snprintf(inlined, sizeof(inlined), "%zu", 4 * PF_AC_INLINE);
    r = pf_ac_script(state, script, (const char *const[]){ name, most, inlined, NULL }, "read",
                     path, &output, cancel, err);
    if (r < 0)
        return r;
    if (output.status == STATUS_LARGE)
        r = read_large(state, path, ret_content, cancel, err);
    else if (output.merged || output.out.len != output.out_size)
        r = pf_fail(err, PINFOLD_EBACKEND, "read \"%s\": it did not come back whole",
                    PF_QUOTE(path));
    else
        r = pf_buf_take(&output.out, ret_content) < 0 ? pf_fail_nomem(err) : 0;
    pf_ac_output_done(&output);
    return r;
}

/* ---- writing ---- */

/* $1 the path, $2 1 to create it, $3 what gives the bytes, $4 the mode. */
static const char write_script[] =
        "m \"$1\"; p=$1; if [ -L \"$p\" ] && [ \"$2\" = 0 ]; then p=$(readlink -m -- \"$1\"); "
        "w \"$p\"; m \"$p\"; fi; if [ \"$2\" = 1 ]; then [ ! -e \"$p\" ] && [ ! -L \"$p\" ] || "
        "f 'File exists'; fi; [ ! -d \"$p\" ] || f 'Is a directory'; "
        "[ ! -e \"$p\" ] || [ -f \"$p\" ] || f 'No such device'; "
        "t=$(mktemp -- \"${p%/*}/.pinfold-XXXXXXXX\") || exit 9; trap 'rm -f -- \"$t\"' EXIT; "
        "eval \"$3\" >\"$t\" || f 'Input/output error'; "
        "if [ -e \"$p\" ]; then chmod --reference=\"$p\" -- \"$t\"; "
        "else chmod \"${4:-$(printf %o $((0644 & ~$(umask))))}\" -- \"$t\"; fi; "
        "if [ \"$2\" = 1 ]; then ln -T -- \"$t\" \"$p\" || exit 9; "
        "else mv -fT -- \"$t\" \"$p\" || exit 9; fi";

/* source prints the bytes; mode, in octal digits, is that of a new file, or "". */
static int place_there(void *state, const char *path, const char *source, bool exclusive,
                       const char *mode, struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    _cleanup_free_ char *name = word(path);
    struct pf_ac_output output;
    int r;

    if (!name)
        return pf_fail_nomem(err);
    if (strcmp(path, ".") == 0)
        return pf_fail_at(err, EISDIR, "write", path);
    r = pf_ac_script(state, write_script,
                     (const char *const[]){ name, exclusive ? "1" : "0", source, mode, NULL },
                     "write", path, &output, cancel, err);
    if (r == 0)
        pf_ac_output_done(&output);
    return r;
}

/* The bytes are in the scratch directory already. */
static int place_parts(struct pf_ac_box *box, const char *path, const char *id, bool exclusive,
                       const char *mode, struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    char source[400];
    int r;

    snprintf(source, sizeof(source), "cat %s/" PF_AC_SCRATCH "/%s.*", box->home, id);
    r = place_there(box, path, source, exclusive, mode, cancel, err);
    pf_ac_forget(box, id);
    return r;
}

int pf_ac_write_file(void *state, const char *path, const void *data, size_t len, bool exclusive,
                     struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    PF_CLEANUP(pf_buf_done) struct pf_buf source = PF_BUF_INIT(4 * TYPED_MAX);
    char id[PF_AC_ID_MAX] = "";
    int r;

    if (len > TYPED_MAX) {
        r = pf_ac_put_bytes(state, data, len, id, cancel, err);
        return r < 0 ? r : place_parts(state, path, id, exclusive, "", cancel, err);
    }
    if (pf_remote_type(data ? data : "", len, &source) < 0)
        return pf_fail_nomem(err);
    return place_there(state, path, source.data, exclusive, "", cancel, err);
}

int pf_ac_write_from(struct pf_ac_box *box, const char *path, int fd, uint64_t size, mode_t mode,
                     bool exclusive, struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    char id[PF_AC_ID_MAX], digits[8];
    int r = pf_ac_put(box, fd, size, id, cancel, err);

    snprintf(digits, sizeof(digits), "%o", mode & 0777);
    return r < 0 ? r : place_parts(box, path, id, exclusive, digits, cancel, err);
}

/* ---- names ---- */

static int run_names(void *state, const char *script, const char *a, const char *b,
                     const char *operation, struct pinfold_cancel *cancel,
                     struct pinfold_error *err)
{
    _cleanup_free_ char *first = word(a), *second = b ? word(b) : NULL;
    struct pf_ac_output output;
    int r;

    if (!first || (b && !second))
        return pf_fail_nomem(err);
    r = pf_ac_script(state, script, (const char *const[]){ first, second, NULL }, operation, a,
                     &output, cancel, err);
    if (r == 0)
        pf_ac_output_done(&output);
    return r;
}

int pf_ac_remove_file(void *state, const char *path, struct pinfold_cancel *cancel,
                      struct pinfold_error *err)
{
    static const char script[] = "w \"${1%/*}\"; if [ -d \"$1\" ] && [ ! -L \"$1\" ]; then "
                                 "f 'Is a directory'; fi; unlink -- \"$1\" || exit 9";

    return run_names(state, script, path, NULL, "delete", cancel, err);
}

int pf_ac_move_file(void *state, const char *src, const char *dest, struct pinfold_cancel *cancel,
                    struct pinfold_error *err)
{
    static const char script[] =
            "w \"${1%/*}\"; stat -- \"$1\" >/dev/null || exit 9; "
            "if [ -d \"$1\" ] && [ ! -L \"$1\" ]; then f 'Is a directory'; fi; m \"$2\"; "
            "if [ -d \"$2\" ] && [ ! -L \"$2\" ]; then f 'Is a directory'; fi; "
            "if [ ! -L \"$1\" ] && [ ! -L \"$2\" ] && [ \"$1\" -ef \"$2\" ]; then exit 0; fi; "
            "mv -fT -- \"$1\" \"$2\" || exit 9";

    return run_names(state, script, src, dest, "move", cancel, err);
}

/* ---- listing ---- */

/* One record, "TYPE SIZE NAME" and a NUL. */
static int take_entry(const char *record, const char *dir, struct pinfold_file_info *ret)
{
    const char *name = strlen(record) > 2 ? strchr(record + 2, ' ') : NULL;
    bool top = strcmp(dir, ".") == 0;

    if (!name || name[1] == '\0' || strchr(name, '/'))
        return -PINFOLD_EBACKEND;
    *ret = (struct pinfold_file_info){ .is_dir = record[0] == 'd', .size = -1 };
    if (record[0] == 'f')
        ret->size = strtoll(record + 2, NULL, 10);
    if (asprintf(&ret->path, "%s%s%s", top ? "" : dir, top ? "" : "/", name + 1) < 0)
        return -PINFOLD_ENOMEM;
    return 0;
}

static int take_listing(const struct pf_buf *text, const char *dir,
                        struct pinfold_file_infos *infos)
{
    size_t count = 0;
    int r = 0;

    for (size_t i = 0; i < text->len; i++)
        count += text->data[i] == '\0';
    infos->items = calloc(count + 1, sizeof(*infos->items));
    if (!infos->items)
        return -PINFOLD_ENOMEM;
    for (size_t at = 0; r == 0 && infos->count < count; at += strlen(text->data + at) + 1) {
        r = take_entry(text->data + at, dir, &infos->items[infos->count]);
        infos->count += r == 0;
    }
    pf_infos_sort(infos);
    return r;
}

int pf_ac_list_dir(void *state, const char *path, struct pinfold_file_infos *ret_infos,
                   struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    static const char script[] =
            "w \"$1\"; stat -- \"$1/.\" >/dev/null || exit 9; [ -r \"$1\" ] && [ -x \"$1\" ] || "
            "f 'Permission denied'; cd -- \"$1\" || exit 9; "
            "find . -mindepth 1 -maxdepth 1 ! -type l -printf '%y %s %f\\0'; "
            "find . -mindepth 1 -maxdepth 1 -type l -exec /bin/sh -c 'for p; do "
            "q=$(readlink -m -- \"$p\"); t=l; s=0; case \"$q/\" in \"$R\"/*) "
            "if [ -d \"$p\" ]; then t=d; elif [ -f \"$p\" ]; then t=f; "
            "s=$(stat -Lc %s -- \"$p\"); fi;; esac; printf \"%s %s %s\\0\" \"$t\" \"$s\" "
            "\"${p#./}\"; done' sh {} +";
    PF_CLEANUP(pinfold_file_infos_done) struct pinfold_file_infos infos = { 0 };
    _cleanup_free_ char *name = word(path);
    struct pf_ac_output output;
    int r;

    if (!name)
        return pf_fail_nomem(err);
    r = pf_ac_script(state, script, (const char *const[]){ name, NULL }, "list", path, &output,
                     cancel, err);
    if (r < 0)
        return r;
    r = output.out.len == output.out_size && !output.merged
                ? take_listing(&output.out, path, &infos)
                : -PINFOLD_EBACKEND;
    pf_ac_output_done(&output);
    if (r == -PINFOLD_ENOMEM)
        return pf_fail_nomem(err);
    if (r < 0)
        return pf_fail(err, PINFOLD_EBACKEND, "list \"%s\": it did not come back whole",
                       PF_QUOTE(path));
    *ret_infos = infos;
    infos = (struct pinfold_file_infos){ 0 };
    return 0;
}
