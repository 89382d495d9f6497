/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever a service that says it is Daytona answers. The first byte chooses what it was asked. */
#include "base/clock.h"
#include "net/daytona.h"
#include "replies.h"

static int take_bytes(void *ctx, const void *data, size_t len, struct pinfold_error *err)
{
    (void)data;
    (void)err;
    *(size_t *)ctx += len;
    return 0;
}

static int find_toolbox(struct pf_daytona *client, const struct pf_daytona_call *call,
                        struct pinfold_error *err)
{
    struct pf_daytona_toolbox toolbox = { .base = NULL };
    json_auto_t *sandbox = NULL;
    char *dir = NULL;
    int r = pf_daytona_get(client, "id", call, &sandbox, err);

    if (r == 0)
        r = pf_daytona_toolbox_find(client, sandbox, call, &toolbox, err);
    if (r == 0) {
        demand(!strpbrk(toolbox.base, "?#@ \t\r\n\\"));
        r = pf_daytona_dir(&toolbox, "work-dir", call, &dir, err);
    }
    demand(r < 0 || *dir);
    free(dir);
    pf_daytona_toolbox_done(&toolbox);
    return r;
}

static int run_command(struct pf_daytona_toolbox *toolbox, const struct pf_daytona_call *call,
                       struct pinfold_error *err)
{
    PF_CLEANUP(pf_buf_done) struct pf_buf text = PF_BUF_INIT(4096);
    int status = -2, r = pf_daytona_execute(toolbox, "true", 1, call, &status, &text, err);

    demand(r < 0 || (status >= -1 && status <= 255));
    return r;
}

static int run_session(struct pf_daytona_toolbox *toolbox, const struct pf_daytona_call *call,
                       struct pinfold_error *err)
{
    PF_CLEANUP(pf_buf_done) struct pf_buf out = PF_BUF_INIT(PF_BUF_UNLIMITED);
    PF_CLEANUP(pf_buf_done) struct pf_buf errs = PF_BUF_INIT(PF_BUF_UNLIMITED);
    _cleanup_free_ char *id = NULL;
    bool done = false;
    int status = -2, r = pf_daytona_session_exec(toolbox, "s", "true", call, &id, err);

    if (r == 0)
        r = pf_daytona_session_poll(toolbox, "s", id, call, &done, &status, err);
    demand(r < 0 || !done || (status >= -1 && status <= 255));
    return r < 0 ? r : pf_daytona_session_logs(toolbox, "s", id, call, &out, &errs, err);
}

static int fetch_files(struct pf_daytona_toolbox *toolbox, const struct pf_daytona_call *call,
                       struct pinfold_error *err)
{
    size_t sizes[2] = { 0 };
    struct pf_daytona_fetch files[] = { { .path = "/w/a", .fn = take_bytes, .ctx = &sizes[0] },
                                        { .path = "/w/b", .fn = take_bytes, .ctx = &sizes[1] } };
    int r = pf_daytona_files_fetch(toolbox, files, 2, call, err);

    for (int i = 0; r == 0 && i < 2; i++) {
        demand(files[i].came == (files[i].error.code == 0));
        check_outcome(-files[i].error.code, &files[i].error);
    }
    return r;
}

static int ask_for_files(struct pf_daytona_toolbox *toolbox, const struct pf_daytona_call *call,
                         struct pinfold_error *err)
{
    json_auto_t *list = NULL, *info = NULL;
    size_t size = 0;
    int r = pf_daytona_files_list(toolbox, "/w", call, &list, err);

    demand(r < 0 || json_is_array(list));
    if (r == 0)
        r = pf_daytona_file_info(toolbox, "/w/a", call, &info, err);
    demand(r < 0 || json_is_object(info));
    return r < 0 ? r : pf_daytona_file_get(toolbox, "/w/a", 1000, call, take_bytes, &size, err);
}

static int list_sandboxes(struct pf_daytona *client, const struct pf_daytona_call *call,
                          struct pinfold_error *err)
{
    json_auto_t *labels = json_object(), *list = NULL;
    int r = pf_daytona_list(client, labels, call, &list, err);

    demand(r < 0 || json_is_array(list));
    return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char url[] = "https://api.example", token[] = FUZZ_SECRET,
                base[] = "https://t.example/1";
    static const struct pf_daytona_config config = { .api_url = url, .token = token };
    const struct pf_daytona_call call = { .deadline = pf_clock_now() };
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pf_daytona_toolbox toolbox = { .base = base };
    struct pf_daytona *client = NULL;
    int r;

    if (size < 1)
        return 0;
    demand(pf_daytona_new(&config, NULL, &client, &err) == 0);
    toolbox.client = client;
    replies.at = data + 1;
    replies.end = data + size;
    switch (data[0] % 6) {
    case 0:
        r = find_toolbox(client, &call, &err);
        break;
    case 1:
        r = run_command(&toolbox, &call, &err);
        break;
    case 2:
        r = run_session(&toolbox, &call, &err);
        break;
    case 3:
        r = fetch_files(&toolbox, &call, &err);
        break;
    case 4:
        r = ask_for_files(&toolbox, &call, &err);
        break;
    default:
        r = list_sandboxes(client, &call, &err);
    }
    check_outcome(r, &err);
    pf_daytona_free(client);
    return 0;
}
