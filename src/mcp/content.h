/* SPDX-License-Identifier: Apache-2.0 */
/* Inside mcp/: bytes of files as the protocol carries them, and the names of files as URIs. */
#ifndef PF_MCP_CONTENT_H
#define PF_MCP_CONTENT_H

#include <pinfold/sandbox.h>

#include "mcp/json.h"

/* What every URI of a workspace file begins with. */
#define PF_MCP_FILE_URI "pinfold://workspace/"

/* Bytes in base64; NULL when out of memory. */
json_t *pf_mcp_base64(const void *data, size_t len);

/* The kind of an image that clients can show, by its first bytes: "image/png", say; NULL: none. */
const char *pf_mcp_image_type(const struct pinfold_bytes *bytes);

/* The URI of a file, whatever bytes its name has; NULL when out of memory. */
json_t *pf_mcp_uri(const char *path);

/* The path of a URI after its start, to free(): %XX decoded. NULL when it is malformed, has a NUL
 * byte, or memory is short. */
char *pf_mcp_decode(const char *text);

/* A whole file: text when it is UTF-8, *ret_text says which. Returns 0 or as
 * pinfold_sandbox_read_file(). */
int pf_mcp_read_whole(struct pinfold_sandbox *sandbox, const char *path, struct pinfold_bytes *ret,
                      bool *ret_text, struct pinfold_cancel *cancel, struct pinfold_error *err);

#endif
