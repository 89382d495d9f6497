/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever a service that says it is AgentCore answers. The first byte chooses what it was asked;
 * what its event streams say is another target's. */
#include "base/clock.h"
#include "net/agentcore.h"
#include "replies.h"

static struct pf_agentcore *make_client(void)
{
    static const struct pf_aws_options keys = { .access_key = "AKIDEXAMPLE",
                                                .secret_key = FUZZ_SECRET,
                                                .session_token = FUZZ_SECRET "-token",
                                                .region = "us-west-2" };
    struct pf_agentcore_options options = { .region = "us-west-2",
                                            .identifier = "i",
                                            .endpoint = "https://agentcore.example" };
    struct pf_agentcore *client = NULL;

    demand(pf_aws_provider_new(&keys, NULL, &options.provider, NULL) == 0);
    demand(pf_agentcore_new(&options, &client, NULL) == 0);
    return client;
}

static int invoke(struct pf_agentcore *client, const struct pf_agentcore_call *call,
                  struct pinfold_error *err)
{
    struct pf_agentcore_result result = { 0 };
    int r = pf_agentcore_invoke(client, "s", "executeCommand", NULL, call, &result, err);

    if (r == 0)
        pf_agentcore_result_done(&result);
    return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct pf_agentcore *client;
    bool gone = false;
    struct pf_agentcore_call call = { .deadline = pf_clock_deadline(PF_NS_PER_MS),
                                      .session_gone = &gone };
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    json_auto_t *reply = NULL;
    int r;

    if (size < 1)
        return 0;
    if (!client)
        client = make_client();
    replies.at = data + 1;
    replies.end = data + size;
    switch (data[0] % 5) {
    case 0:
        r = pf_agentcore_start(client, NULL, &call, &reply, &err);
        break;
    case 1:
        r = pf_agentcore_stop(client, "s", NULL, &call, &reply, &err);
        break;
    case 2:
        r = pf_agentcore_get(client, "s", &call, &reply, &err);
        break;
    case 3:
        r = pf_agentcore_list(client, NULL, &call, &reply, &err);
        break;
    default:
        r = invoke(client, &call, &err);
    }
    check_outcome(r, &err);
    demand(data[0] % 5 == 4 || (r == 0) == (reply != NULL));
    demand(!reply || json_is_object(reply));
    return 0;
}
