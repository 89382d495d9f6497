/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/verdict.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "jail/limits.h"

void pf_verdict_init(struct pf_verdict *verdict, const struct pf_jail *jail,
                     const struct pinfold_limits *limits)
{
    verdict->jail = jail;
    verdict->limits = *limits;
    pf_limits_resolve(&verdict->limits);
    memcpy(verdict->holders, pf_jail_holders(jail), sizeof(verdict->holders));
    verdict->kills = verdict->refused = 0;
    verdict->lingering = false;
}

uint64_t pf_verdict_begin(struct pf_verdict *verdict)
{
    struct pf_cgroup_counts counts;

    if (!verdict->lingering)
        return verdict->kills;
    pf_jail_count(verdict->jail, false, &counts);
    return counts.memory_kills;
}

static bool is_held(const struct pf_verdict *verdict, enum pinfold_limit limit,
                    enum pinfold_holder holder)
{
    return verdict->holders[limit] == holder;
}

/* A shell that runs the command gives a signal on as an exit code. */
static bool died_of(const struct pinfold_execute_result *result, int sig)
{
    return result->exit_code == 128 + sig;
}

static bool used_up_cpu(const struct pf_verdict *verdict,
                        const struct pinfold_execute_result *result)
{
    if (!is_held(verdict, PINFOLD_LIMIT_CPU_TIME, PINFOLD_HOLDER_RLIMIT))
        return false;
    /* A process that ignores SIGXCPU is killed a second later. */
    return died_of(result, SIGXCPU) ||
           (died_of(result, SIGKILL) &&
            (uint64_t)(result->cpu_ns / PF_NS_PER_SEC) >= verdict->limits.cpu_seconds);
}

/* The kernel leaves no trace of a refusal of memory: this is a guess. */
static bool came_near_memory(const struct pf_verdict *verdict,
                             const struct pinfold_execute_result *result)
{
    uint64_t limit = verdict->limits.memory_bytes;

    return is_held(verdict, PINFOLD_LIMIT_MEMORY, PINFOLD_HOLDER_RLIMIT) &&
           result->peak_bytes >= limit - limit / 4;
}

enum pinfold_limit pf_verdict_judge(const struct pf_verdict *verdict,
                                    const struct pf_evidence *evidence,
                                    const struct pinfold_execute_result *result)
{
    if (result->timed_out)
        return PINFOLD_LIMIT_TIME;
    if (evidence->stopped != PINFOLD_LIMIT_NONE)
        return evidence->stopped;
    if (result->exit_code == 0)
        return PINFOLD_LIMIT_NONE;
    if (evidence->kills > 0)
        return PINFOLD_LIMIT_MEMORY;
    if (used_up_cpu(verdict, result))
        return PINFOLD_LIMIT_CPU_TIME;
    if (died_of(result, SIGXFSZ) &&
        is_held(verdict, PINFOLD_LIMIT_FILE_SIZE, PINFOLD_HOLDER_RLIMIT))
        return PINFOLD_LIMIT_FILE_SIZE;
    if (evidence->refused > 0)
        return PINFOLD_LIMIT_PROCESSES;
    return came_near_memory(verdict, result) ? PINFOLD_LIMIT_MEMORY : PINFOLD_LIMIT_NONE;
}

/* ---- saying it ---- */

static const char *format_size(uint64_t bytes, char buffer[static 32])
{
    static const char *const units[] = { "bytes", "KiB", "MiB", "GiB", "TiB" };
    size_t unit = 0;

    while (bytes > 0 && bytes % 1024 == 0 && unit + 1 < PF_COUNT(units)) {
        bytes /= 1024;
        unit++;
    }
    snprintf(buffer, 32, "%" PRIu64 " %s", bytes, units[unit]);
    return buffer;
}

static int note_memory(const struct pf_verdict *verdict, uint64_t kills, struct pf_buf *out)
{
    char size[32];

    format_size(verdict->limits.memory_bytes, size);
    if (is_held(verdict, PINFOLD_LIMIT_MEMORY, PINFOLD_HOLDER_RLIMIT))
        return pf_buf_printf(out, "[probably out of memory: a process came near its limit of %s]\n",
                             size);
    return pf_buf_printf(out,
                         "[out of memory: the sandbox reached its limit of %s, and %" PRIu64
                         " process%s in it %s killed]\n",
                         size, kills, kills == 1 ? "" : "es", kills == 1 ? "was" : "were");
}

static int note_workspace(const struct pf_verdict *verdict, enum pinfold_limit limit,
                          struct pf_buf *out)
{
    char size[32];

    if (limit == PINFOLD_LIMIT_DISK)
        return pf_buf_printf(out, "[stopped: the disk of the workspace is nearly full]\n");
    return pf_buf_printf(out, "[stopped: the workspace reached its size limit of %s]\n",
                         format_size(verdict->limits.workspace_bytes, size));
}

/* Limits that were met, this one having ended the command. */
static int write_notes(const struct pf_verdict *verdict, const struct pf_evidence *since_last,
                       enum pinfold_limit limit, struct pf_buf *out)
{
    char size[32];
    int r = 0;

    if (since_last->kills > 0 || limit == PINFOLD_LIMIT_MEMORY)
        r = note_memory(verdict, since_last->kills, out);
    if (r == 0 && since_last->refused > 0)
        r = pf_buf_printf(out,
                          "[processes: the sandbox reached its limit of %" PRIu64 ", and %" PRIu64
                          " could not be started]\n",
                          verdict->limits.processes, since_last->refused);
    if (r == 0 && limit == PINFOLD_LIMIT_CPU_TIME)
        r = pf_buf_printf(out,
                          "[out of processor time: the limit of each process is %" PRIu64 " s]\n",
                          verdict->limits.cpu_seconds);
    if (r == 0 && limit == PINFOLD_LIMIT_FILE_SIZE)
        r = pf_buf_printf(out, "[a file reached the size limit of %s]\n",
                          format_size(verdict->limits.file_bytes, size));
    if (r == 0 && (limit == PINFOLD_LIMIT_WORKSPACE || limit == PINFOLD_LIMIT_DISK))
        r = note_workspace(verdict, limit, out);
    return r;
}

static int append_notes(struct pinfold_execute_result *result, const char *notes, size_t len)
{
    bool line = result->output_len > 0 && result->output[result->output_len - 1] != '\n';
    char *output = realloc(result->output, result->output_len + line + len + 1);

    if (!output)
        return -PINFOLD_ENOMEM;
    if (line)
        output[result->output_len++] = '\n';
    memcpy(output + result->output_len, notes, len);
    result->output = output;
    result->output_len += len;
    output[result->output_len] = '\0';
    return 0;
}

/* How far a count has come; other commands may have looked at it meanwhile. */
static uint64_t advance(_Atomic uint64_t *seen, uint64_t now)
{
    uint64_t before = *seen;

    while (now > before)
        if (atomic_compare_exchange_weak(seen, &before, now))
            return now - before;
    return 0;
}

int pf_verdict_end(struct pf_verdict *verdict, uint64_t kills_before, enum pinfold_limit stopped,
                   struct pinfold_execute_result *result, struct pinfold_error *err)
{
    PF_CLEANUP(pf_buf_done) struct pf_buf notes = PF_BUF_INIT(1024);
    struct pf_evidence during = { .stopped = stopped }, since_last;
    struct pf_cgroup_counts counts;
    int r;

    /* A fork that is refused makes a command fail, nearly always; one that succeeded is not asked
     * about, which saves a read. */
    pf_jail_count(verdict->jail, result->exit_code != 0, &counts);
    since_last.stopped = stopped;
    since_last.kills = advance(&verdict->kills, counts.memory_kills);
    since_last.refused = advance(&verdict->refused, counts.refused_forks);
    during.kills = counts.memory_kills - kills_before;
    during.refused = since_last.refused;
    verdict->lingering = verdict->lingering || result->background > 0;

    memcpy(result->holders, verdict->holders, sizeof(result->holders));
    result->sandbox_peak_bytes = counts.peak_bytes;
    result->limit = pf_verdict_judge(verdict, &during, result);
    result->limits_hit = (result->limit ? 1U << result->limit : 0) |
                         (since_last.kills ? 1U << PINFOLD_LIMIT_MEMORY : 0) |
                         (since_last.refused ? 1U << PINFOLD_LIMIT_PROCESSES : 0);
    r = write_notes(verdict, &since_last, result->limit, &notes);
    if (r == 0 && notes.len > 0)
        r = append_notes(result, notes.data, notes.len);
    return r < 0 ? pf_fail_nomem(err) : 0;
}

uint64_t pf_verdict_begin_terminal(struct pf_verdict *verdict)
{
    verdict->lingering = true;
    return pf_verdict_begin(verdict);
}

enum pinfold_limit pf_verdict_end_terminal(const struct pf_verdict *verdict, uint64_t kills_before,
                                           enum pinfold_limit stopped,
                                           const struct pinfold_terminal_exit *end)
{
    const struct pinfold_execute_result result = { .exit_code = end->exit_code,
                                                   .timed_out = end->timed_out,
                                                   .cpu_ns = end->cpu_ns };
    struct pf_evidence evidence = { .stopped = stopped };
    struct pf_cgroup_counts counts;

    if (end->killed && !stopped)
        return PINFOLD_LIMIT_NONE;
    if (died_of(&result, SIGKILL)) {
        pf_jail_count(verdict->jail, false, &counts);
        evidence.kills = counts.memory_kills - kills_before;
    }
    return pf_verdict_judge(verdict, &evidence, &result);
}
