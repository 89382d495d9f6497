/* SPDX-License-Identifier: Apache-2.0 */
/* The library's backends of services. */
#include "backend.h"

#include <stdlib.h>

#include "convert.h"
#include "errors.h"

/* ---- AgentCore ---- */

PyObject *pf_agentcore_template(PyObject *module, PyObject *given)
{
    struct pinfold_agentcore_options options = PINFOLD_AGENTCORE_OPTIONS_INIT;
    struct pf_call *call = pf_call_new(&pf_no_operation, NULL);
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pinfold_backend *backend = NULL;
    Py_ssize_t max_output_bytes;
    int long_commands, r = -1;
    PyObject *env;

    (void)module;
    if (!call)
        return NULL;
    if (PyArg_ParseTuple(given, "zzzzzzzzInOpd", &options.region, &options.access_key,
                         &options.secret_key, &options.session_token, &options.profile,
                         &options.identifier, &options.name, &options.endpoint,
                         &options.session_timeout_seconds, &max_output_bytes, &env, &long_commands,
                         &options.timeout_seconds) &&
        pf_call_strv(call, "env", env, &options.env) == 0) {
        options.max_output_bytes = (size_t)max_output_bytes;
        options.long_commands = long_commands;
        r = pinfold_agentcore_template_new(&options, &backend, &err);
    }
    return pf_backend_made(call, r, backend, &err);
}

/* (id, seconds left) of an AgentCore session. */
PyObject *pf_agentcore_session(PyObject *self, PyObject *unused)
{
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    double seconds;
    PyObject *pair;
    char *id;

    (void)unused;
    if (pinfold_agentcore_session(((struct pf_backend_object *)self)->backend, &id, &seconds,
                                  &err) < 0)
        return pf_raise(&err, NULL);
    pair = Py_BuildValue("Nd", pf_text_from(id), seconds);
    free(id);
    return pair;
}

/* ---- Daytona ---- */

static bool parse_daytona(struct pf_call *call, PyObject *given,
                          struct pinfold_daytona_options *options)
{
    Py_ssize_t max_output_bytes;
    PyObject *env, *labels;
    int block;

    if (!PyArg_ParseTuple(given, "zzzzzzzdiiIpzznOO", &options->api_key, &options->api_url,
                          &options->target, &options->jwt_token, &options->organization_id,
                          &options->snapshot, &options->image, &options->timeout_seconds,
                          &options->auto_stop_minutes, &options->auto_delete_minutes,
                          &options->create_timeout_seconds, &block, &options->network_allow_list,
                          &options->domain_allow_list, &max_output_bytes, &env, &labels) ||
        pf_call_strv(call, "env", env, &options->env) < 0 ||
        pf_call_strv(call, "labels", labels, &options->labels) < 0)
        return false;
    options->network_block_all = block;
    options->max_output_bytes = (size_t)max_output_bytes;
    return true;
}

PyObject *pf_daytona_template(PyObject *module, PyObject *given)
{
    struct pinfold_daytona_options options = PINFOLD_DAYTONA_OPTIONS_INIT;
    struct pf_call *call = pf_call_new(&pf_no_operation, NULL);
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pinfold_backend *backend = NULL;
    int r = -1;

    (void)module;
    if (!call)
        return NULL;
    if (parse_daytona(call, given, &options))
        r = pinfold_daytona_template_new(&options, &backend, &err);
    return pf_backend_made(call, r, backend, &err);
}

/* The id of its sandbox. */
PyObject *pf_daytona_sandbox(PyObject *self, PyObject *unused)
{
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    PyObject *text;
    char *id;

    (void)unused;
    if (pinfold_daytona_sandbox(((struct pf_backend_object *)self)->backend, &id, &err) < 0)
        return pf_raise(&err, NULL);
    text = pf_text_from(id);
    free(id);
    return text;
}
