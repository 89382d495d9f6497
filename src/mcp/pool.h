/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that run tasks, made when there is something to do, up to a bound; what is more waits. */
#ifndef PF_MCP_POOL_H
#define PF_MCP_POOL_H

#include <pinfold/error.h>

struct pf_mcp_pool;

/* Embedded in what is to be done. */
struct pf_mcp_task {
    void (*run)(struct pf_mcp_task *task); /* frees it if it wants to */
    struct pf_mcp_task *prev, *next;
};

int pf_mcp_pool_new(unsigned max_threads, struct pf_mcp_pool **ret, struct pinfold_error *err);

/* Have it run. Returns 0, or -PINFOLD_EOS when there is no thread and none can be made. */
int pf_mcp_pool_run(struct pf_mcp_pool *pool, struct pf_mcp_task *task);

/* Wait until every task has run, and the threads have ended. No more may come. */
void pf_mcp_pool_drain(struct pf_mcp_pool *pool);

/* The same, and free it. NULL is fine. */
void pf_mcp_pool_free(struct pf_mcp_pool *pool);

#endif
