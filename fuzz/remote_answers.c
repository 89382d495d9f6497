/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What scripts that run on another machine, beside whatever an agent runs there, print for us:
 * lists of files, verdicts on them, what tar complains of, streams. The first byte chooses the
 * reader. What is named lies where it was asked for, and nowhere else.
 */
#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "backend/agentcore_tree.h"
#include "backend/daytona.h"
#include "backend/remote_output.h"
#include "backend/remote_tree.h"
#include "base/cleanup.h"
#include "fuzz.h"

enum { FILES = 3 };

int __wrap_pf_ac_get(struct pf_ac_box *box, const char *id, uint64_t size, int fd,
                     struct pinfold_cancel *cancel, struct pinfold_error *err);
int __wrap_pf_ac_run(struct pf_ac_box *box, const char *script, size_t len, size_t limit, bool keep,
                     struct pinfold_cancel *stop, struct pf_ac_output *ret,
                     struct pinfold_cancel *cancel, struct pinfold_error *err);
int __wrap_pf_ac_script(struct pf_ac_box *box, const char *script, const char *const *words,
                        const char *operation, const char *path, struct pf_ac_output *ret,
                        struct pinfold_cancel *cancel, struct pinfold_error *err);
int __wrap_pf_daytona_files_list(struct pf_daytona_toolbox *toolbox, const char *path,
                                 const struct pf_daytona_call *call, json_t **ret,
                                 struct pinfold_error *err);
int __wrap_pf_dt_script(struct pf_dt_box *box, const char *script, const char *const *words,
                        bool again, const char *operation, const char *path, struct pf_buf *text,
                        struct pinfold_cancel *cancel, struct pinfold_error *err);

static struct {
    const char *data;
    size_t size;
} printed;

/* ---- in place of what runs there ---- */

static void fill_output(struct pf_ac_output *ret)
{
    *ret = (struct pf_ac_output){ .out = PF_BUF_INIT(PF_BUF_UNLIMITED),
                                  .errs = PF_BUF_INIT(PF_BUF_UNLIMITED),
                                  .out_size = printed.size };
    demand(pf_buf_append(&ret->out, printed.data, printed.size) == 0);
}

int __wrap_pf_ac_run(struct pf_ac_box *box, const char *script, size_t len, size_t limit, bool keep,
                     struct pinfold_cancel *stop, struct pf_ac_output *ret,
                     struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    (void)box;
    (void)script;
    (void)len;
    (void)limit;
    (void)keep;
    (void)stop;
    (void)cancel;
    (void)err;
    fill_output(ret);
    return 0;
}

int __wrap_pf_ac_script(struct pf_ac_box *box, const char *script, const char *const *words,
                        const char *operation, const char *path, struct pf_ac_output *ret,
                        struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    (void)box;
    (void)script;
    (void)words;
    (void)operation;
    (void)path;
    (void)cancel;
    (void)err;
    fill_output(ret);
    return 0;
}

int __wrap_pf_dt_script(struct pf_dt_box *box, const char *script, const char *const *words,
                        bool again, const char *operation, const char *path, struct pf_buf *text,
                        struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    (void)box;
    (void)script;
    (void)words;
    (void)again;
    (void)operation;
    (void)path;
    (void)cancel;
    (void)err;
    return pf_buf_append(text, printed.data, printed.size);
}

/* Of what does not come at once nothing comes. */
int __wrap_pf_ac_get(struct pf_ac_box *box, const char *id, uint64_t size, int fd,
                     struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    (void)box;
    (void)id;
    (void)size;
    (void)fd;
    (void)cancel;
    (void)err;
    return 0;
}

/* The list of the service is what stands behind the first line. */
int __wrap_pf_daytona_files_list(struct pf_daytona_toolbox *toolbox, const char *path,
                                 const struct pf_daytona_call *call, json_t **ret,
                                 struct pinfold_error *err)
{
    const char *line = memchr(printed.data, '\n', printed.size);
    size_t left = line ? printed.size - (size_t)(line - printed.data) : 0;

    (void)toolbox;
    (void)path;
    (void)call;
    (void)err;
    *ret = json_loadb(line ? line : "", left, 0, NULL);
    if (!json_is_array(*ret)) {
        json_decref(*ret);
        *ret = json_array();
    }
    return 0;
}

/* ---- the readers ---- */

static void check_infos(const struct pinfold_file_infos *infos)
{
    for (size_t i = 0; i < infos->count; i++) {
        const char *path = infos->items[i].path;
        demand(strncmp(path, "d/", 2) == 0 && path[2] && !strchr(path + 2, '/'));
        demand(i == 0 || strcmp(infos->items[i - 1].path, path) <= 0);
    }
}

static void fuzz_list(bool daytona)
{
    PF_CLEANUP(pinfold_file_infos_done) struct pinfold_file_infos infos = { 0 };
    char root[] = "/w";
    struct pf_dt_box dt = { .root = root };
    struct pf_ac_box ac = { .root = root };
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    int r = daytona ? pf_dt_list_dir(&dt, "d", &infos, NULL, &err)
                    : pf_ac_list_dir(&ac, "d", &infos, NULL, &err);

    demand(r == 0 || (err.code == -r && err.msg[0] && infos.count == 0));
    check_infos(&infos);
}

static void fuzz_look(void)
{
    static const char *const paths[FILES] = { "a", "b", "c" };
    struct pf_dt_verdict verdicts[FILES];
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pf_dt_box box = { .root = NULL };
    int r = pf_dt_look(&box, paths, FILES, verdicts, NULL, &err);

    demand(r == 0 || r == -PINFOLD_EBACKEND);
    for (int i = 0; r == 0 && i < FILES; i++)
        demand(verdicts[i].sys_errno >= 0 && !(verdicts[i].mode & ~0777U));
}

static void fuzz_choose(const struct pf_buf *text)
{
    static const char *const include[] = { "*", NULL }, *const exclude[] = { "*.o", ".git/", NULL };
    const struct pinfold_sync_request request = { .include = include, .exclude = exclude };
    PF_CLEANUP(pf_remote_wanted_done)
    struct pf_remote_wanted wanted = PF_REMOTE_WANTED_INIT;
    struct pinfold_error err = PINFOLD_ERROR_INIT;

    demand(pf_remote_choose(text, &request, &wanted, &err) == 0);
    demand(wanted.names.len + wanted.large.len + wanted.closed.len <= text->len + 1);
    demand(wanted.bytes < UINT64_C(1) << 40);
    for (size_t at = 0; at < wanted.names.len; at += strlen(wanted.names.data + at) + 1) {
        const char *name = wanted.names.data + at;
        _cleanup_free_ char *path = NULL;
        demand(pinfold_path_normalize(name, strlen(name), NULL, &path, NULL) < 0 ||
               strcmp(name, path) == 0);
        demand(path || strlen(name) >= PATH_MAX);
    }
}

static void fuzz_complaints(char *text)
{
    PF_CLEANUP(pinfold_seed_result_done)
    struct pinfold_seed_result result = { .files_seeded = 2, .bytes_seeded = 10 };
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    _cleanup_close_ int dir = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    demand(pf_remote_note_unpacking(dir, text, 2, &result, &err) == 0);
    demand(result.errors.count > 0 && result.files_seeded <= 2 && result.bytes_seeded <= 10);
    demand(pf_remote_errno_of(text) > 0);
}

static void fuzz_fetch(void)
{
    char home[] = "/home/x";
    struct pf_ac_box box = { .home = home };
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    _cleanup_close_ int fd = memfd_create("fuzz", MFD_CLOEXEC);
    struct stat st;
    int r = pf_ac_fetch(&box, "true", 1 << 16, fd, NULL, &err);

    demand((r == 0) == (err.code == 0));
    demand(fstat(fd, &st) == 0 && (r < 0 || st.st_size <= 1 << 16));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    PF_CLEANUP(pf_buf_done) struct pf_buf text = PF_BUF_INIT(PF_BUF_UNLIMITED);

    if (size < 1)
        return 0;
    demand(pf_buf_append(&text, data + 1, size - 1) == 0 && pf_buf_reserve(&text, 1) == 0);
    printed.data = text.data;
    printed.size = text.len;
    switch (data[0] % 6) {
    case 0:
        fuzz_choose(&text);
        break;
    case 1:
        fuzz_complaints(text.data);
        break;
    case 2:
        fuzz_list(false);
        break;
    case 3:
        fuzz_list(true);
        break;
    case 4:
        fuzz_look();
        break;
    default:
        fuzz_fetch();
    }
    return 0;
}
