/* SPDX-License-Identifier: Apache-2.0 */
/* What libmicrohttpd calls: see its manual. ctx is a struct pf_http. */
#ifndef PF_MCP_HTTP_SERVE_H
#define PF_MCP_HTTP_SERVE_H

#include <microhttpd.h>

enum MHD_Result pf_http_handle(void *ctx, struct MHD_Connection *connection, const char *url,
                               const char *method, const char *version, const char *data,
                               size_t *len, void **slot);
void pf_http_completed(void *ctx, struct MHD_Connection *connection, void **slot,
                       enum MHD_RequestTerminationCode code);
void pf_http_connected(void *ctx, struct MHD_Connection *connection, void **slot,
                       enum MHD_ConnectionNotificationCode code);

#endif
