/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running scripts in a session. The service runs commands on a terminal, which merges the streams
 * and changes line ends. So a wrapper has both streams go to files, and then prints them in base64
 * between marks, which a terminal leaves as they are.
 */
#include "backend/agentcore.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/cancel.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"
#include "base/utf8.h"

#define WRAPPED_MAX ((size_t)200 << 20)
#define TEXT_MAX ((size_t)512 << 20)
enum { MARK_DIGITS = 16 };

int pf_ac_quote(struct pf_buf *to, const char *text)
{
    int r = pf_buf_append(to, "'", 1);

    for (; r == 0 && *text; text++)
        r = *text == '\'' ? pf_buf_append_text(to, "'\\''") : pf_buf_append(to, text, 1);
    return r == 0 ? pf_buf_append(to, "'", 1) : r;
}

void pf_ac_output_done(struct pf_ac_output *output)
{
    pf_buf_done(&output->out);
    pf_buf_done(&output->errs);
}

/* ---- calls ---- */

/* Wait for a turn. Cancellation counts at the next turn that becomes free, or within a second. */
static int begin_call(struct pf_ac_box *box, struct pinfold_cancel *cancel,
                      struct pinfold_error *err)
{
    int r = pf_cancel_check(cancel, err);

    pthread_mutex_lock(&box->lock);
    while (r == 0 && box->in_flight >= PF_AC_IN_FLIGHT) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec++;
        pthread_cond_timedwait(&box->fewer, &box->lock, &until);
        r = pf_cancel_check(cancel, err);
    }
    if (r == 0 && !box->session)
        r = pf_fail(err, PINFOLD_ESTART, "AgentCore: no session: the sandbox is not started");
    if (r == 0)
        box->in_flight++;
    pthread_mutex_unlock(&box->lock);
    return r;
}

static void end_call(struct pf_ac_box *box, bool gone)
{
    pthread_mutex_lock(&box->lock);
    box->in_flight--;
    box->lost = box->lost || gone;
    pthread_cond_signal(&box->fewer);
    pthread_mutex_unlock(&box->lock);
}

static int fail_lost(const struct pf_ac_box *box, struct pinfold_error *err)
{
    int status = err ? err->http_status : 0;
    bool late = pf_clock_now() >= box->ends;

    pf_fail(err, PINFOLD_EBACKEND,
            "AgentCore: session %s has ended%s: its files and processes are lost, start another",
            PF_QUOTE(box->session),
            late ? ", its time is up (session_timeout_seconds)" : " before its time");
    if (err)
        err->http_status = status;
    return -PINFOLD_EBACKEND;
}

int pf_ac_invoke(struct pf_ac_box *box, const char *tool, json_t *arguments,
                 struct pinfold_cancel *stop, struct pf_agentcore_result *ret,
                 struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    bool gone = false;
    struct pf_agentcore_call call = {
        .deadline = pf_clock_deadline(PF_AGENTCORE_CALL_NS),
        .cancel = cancel,
        .also_cancel = stop,
        .session_gone = &gone,
    };
    int r = begin_call(box, cancel, err);

    if (r < 0)
        return r;
    r = pf_agentcore_invoke(box->client, box->session, tool, arguments, &call, ret, err);
    end_call(box, gone);
    if (gone)
        return fail_lost(box, err);
    if (r == 0 && ret->events == 0) {
        pf_agentcore_result_done(ret);
        r = pf_fail(err, PINFOLD_EBACKEND, "AgentCore %s: the service sent no result", tool);
    }
    return r;
}

/* ---- the wrapper ---- */

/* Whether text can be typed into a terminal: no control characters, and not too much of it. */
static bool can_be_typed(const char *text, size_t len)
{
    if (len > PF_AC_COMMAND_MAX || !pf_utf8_valid(text, len, NULL))
        return false;
    for (size_t i = 0; i < len; i++)
        if (((unsigned char)text[i] < 0x20 && text[i] != '\n') || text[i] == 0x7f)
            return false;
    return true;
}

/* The script is $c, or in the file that it names. */
static int write_wrapper(struct pf_buf *to, const char *mark, const char *run, size_t limit,
                         bool keep, const char *forget)
{
    return pf_buf_printf(
            to,
            "m=%s; T=/tmp/pinfold-$m; c() { exec %s; }; b() { head -c %zu \"$1\" | base64; }; "
            "if mkdir -m 700 \"$T\" 2>/dev/null && : | base64 >/dev/null 2>&1; then "
            "(c) </dev/null >\"$T/o\" 2>\"$T/e\"; r=$?; "
            "o=$(wc -c <\"$T/o\"); e=$(wc -c <\"$T/e\"); "
            "printf '\\npf-%%s-r:%%d:%%d:%%d\\n' \"$m\" \"$r\" \"$o\" \"$e\"; b \"$T/o\"; "
            "printf '\\npf-%%s-e\\n' \"$m\"; b \"$T/e\"; printf '\\npf-%%s-x\\n' \"$m\"; "
            "if %s && [ \"$o\" -gt %zu -o \"$e\" -gt %zu ]; then :; else rm -rf \"$T\"; fi; "
            "else printf '\\npf-%%s-m\\n' \"$m\"; (c) </dev/null; r=$?; "
            "printf '\\npf-%%s-n:%%d\\n' \"$m\" \"$r\"; fi; %s",
            mark, run, limit, keep ? "true" : "false", limit, limit, forget);
}

static const char *find_mark(const char *text, const char *mark, const char *kind)
{
    char wanted[64];

    snprintf(wanted, sizeof(wanted), "pf-%s-%s", mark, kind);
    return text ? strstr(text, wanted) : NULL;
}

/* The base64 between two marks: from the line after start, until end. */
static int decode_between(const char *start, const char *end, struct pf_buf *ret)
{
    start = strchr(start, '\n');
    if (!start || start >= end)
        return -PINFOLD_EBACKEND;
    while (end > start && end[-1] != '\n')
        end--;
    return pf_base64_decode(start, (size_t)(end - start), ret);
}

/* What was printed without the terminal's line ends. */
static int take_merged(const char *start, const char *end, struct pf_buf *ret)
{
    start = strchr(start, '\n');
    for (const char *at = start ? start + 1 : end; at < end; at++)
        if (*at != '\r' || at[1] != '\n')
            if (pf_buf_append(ret, at, 1) < 0)
                return -PINFOLD_ENOMEM;
    if (ret->len > 0 && ret->data[ret->len - 1] == '\n')
        ret->len--; /* that of the mark */
    return 0;
}

static int read_output(const char *text, const char *mark, struct pf_ac_output *ret)
{
    const char *first = find_mark(text, mark, "r:"), *second, *end;
    unsigned long long out_size, err_size;
    int r;

    if (!first) {
        first = find_mark(text, mark, "m");
        end = first ? find_mark(first, mark, "n:") : NULL;
        if (!end || sscanf(strchr(end, ':') + 1, "%d", &ret->status) != 1)
            return -PINFOLD_EBACKEND;
        ret->merged = true;
        r = take_merged(first, end, &ret->out);
        ret->out_size = ret->out.len;
        return r;
    }
    second = find_mark(first, mark, "e");
    end = second ? find_mark(second, mark, "x") : NULL;
    if (!end ||
        sscanf(strchr(first, ':') + 1, "%d:%llu:%llu", &ret->status, &out_size, &err_size) != 3)
        return -PINFOLD_EBACKEND;
    ret->out_size = out_size;
    ret->err_size = err_size;
    r = decode_between(first, second, &ret->out);
    return r < 0 ? r : decode_between(second, end, &ret->errs);
}

/* Everything that a result says, wherever the service put it. */
static int join_result(const struct pf_agentcore_result *result, struct pf_buf *text)
{
    int r;

    if (!result->has_output)
        return pf_agentcore_result_text(result, text);
    r = pf_buf_append(text, result->out.data ? result->out.data : "", result->out.len);
    if (r == 0)
        r = pf_buf_append(text, "\n", 1);
    return r < 0 ? r
                 : pf_buf_append(text, result->errs.data ? result->errs.data : "",
                                 result->errs.len);
}

static int understand(const struct pf_agentcore_result *result, const char *mark, bool keep,
                      size_t limit, struct pf_ac_output *ret, struct pinfold_error *err)
{
    PF_CLEANUP(pf_buf_done) struct pf_buf text = PF_BUF_INIT(TEXT_MAX);
    int r = join_result(result, &text);

    /* A NUL would hide what follows it; none of ours is one. */
    for (size_t i = 0; r == 0 && i < text.len; i++)
        if (text.data[i] == '\0')
            text.data[i] = '?';
    if (r == 0)
        r = read_output(text.data, mark, ret);
    if (r == -PINFOLD_ENOMEM)
        return pf_fail_nomem(err);
    if (r < 0)
        return pf_fail(err, PINFOLD_EBACKEND,
                       "AgentCore executeCommand: what came back is not whole (%zu bytes): \"%s\"",
                       text.len, PF_QUOTE(text.data ? text.data : ""));
    if (keep && (ret->out_size > limit || ret->err_size > limit))
        snprintf(ret->kept, sizeof(ret->kept), "/tmp/pinfold-%s", mark);
    return 0;
}

static int call_wrapper(struct pf_ac_box *box, const char *wrapper, const char *mark, size_t limit,
                        bool keep, struct pinfold_cancel *stop, struct pf_ac_output *ret,
                        struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    json_auto_t *arguments = json_pack("{s:s}", "command", wrapper);
    struct pf_agentcore_result result = { 0 };
    int r;

    if (!arguments)
        return pf_fail_nomem(err);
    r = pf_ac_invoke(box, "executeCommand", arguments, stop, &result, cancel, err);
    if (r == 0)
        r = understand(&result, mark, keep, limit, ret, err);
    pf_agentcore_result_done(&result);
    return r;
}

int pf_ac_run(struct pf_ac_box *box, const char *script, size_t len, size_t limit, bool keep,
              struct pinfold_cancel *stop, struct pf_ac_output *ret, struct pinfold_cancel *cancel,
              struct pinfold_error *err)
{
    PF_CLEANUP(pf_buf_done) struct pf_buf run = PF_BUF_INIT(WRAPPED_MAX);
    PF_CLEANUP(pf_buf_done) struct pf_buf wrapper = PF_BUF_INIT(WRAPPED_MAX);
    char mark[MARK_DIGITS + 1], id[PF_AC_ID_MAX] = "", forget[400] = "true";
    int r = 0;

    *ret = (struct pf_ac_output){ .out = PF_BUF_INIT(TEXT_MAX), .errs = PF_BUF_INIT(TEXT_MAX) };
    pf_random_hex(mark, MARK_DIGITS);
    if (len > PF_AC_PART)
        return pf_fail(err, PINFOLD_EVALUE, "the command is too long: %zu bytes", len);
    if (can_be_typed(script, len)) {
        r = pf_buf_append_text(&run, "/bin/sh -c ");
        if (r == 0)
            r = pf_ac_quote(&run, script);
    }
    if (r == 0 && (run.len == 0 || run.len > PF_AC_COMMAND_MAX)) {
        r = pf_ac_put_bytes(box, script, len, id, cancel, err);
        if (r < 0)
            return r;
        run.len = 0;
        r = pf_buf_printf(&run, "/bin/sh %s/" PF_AC_SCRATCH "/%s.0000", box->home, id);
        snprintf(forget, sizeof(forget), "rm -f %s/" PF_AC_SCRATCH "/%s.0000", box->home, id);
    }
    if (r == 0)
        r = write_wrapper(&wrapper, mark, run.data, limit, keep, forget);
    if (r < 0)
        return r == -PINFOLD_ENOMEM ? pf_fail_nomem(err)
                                    : pf_fail(err, PINFOLD_EVALUE, "the command is too long");
    r = call_wrapper(box, wrapper.data, mark, limit, keep, stop, ret, cancel, err);
    if (r < 0)
        pf_ac_output_done(ret);
    return r;
}
