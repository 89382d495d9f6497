/* SPDX-License-Identifier: Apache-2.0 */
#include "jail/egress_socks.h"

#include <string.h>

enum { VERSION = 5, NO_LOGIN = 0, PASSWORD = 2, NONE_ACCEPTABLE = 0xff };
enum { CONNECT = 1, IPV4 = 1, NAME = 3, IPV6 = 4 };

static ssize_t answer_with(const uint8_t *bytes, size_t len, uint8_t *answer, size_t *ret_len)
{
    memcpy(answer, bytes, len);
    *ret_len = len;
    return (ssize_t)len;
}

/* VERSION, number of methods, methods. */
static ssize_t take_greeting(struct pf_egress_socks *socks, const uint8_t *data, size_t len,
                             uint8_t *answer, size_t *ret_len)
{
    size_t whole = len < 2 ? 2 : (size_t)2 + data[1];
    uint8_t method = NONE_ACCEPTABLE;

    if (len < whole)
        return 0;
    if (memchr(data + 2, NO_LOGIN, data[1]))
        method = NO_LOGIN;
    else if (memchr(data + 2, PASSWORD, data[1]))
        method = PASSWORD;
    answer_with((const uint8_t[]){ VERSION, method }, 2, answer, ret_len);
    if (method == NONE_ACCEPTABLE) {
        socks->fault = "no way to log in that this proxy knows";
        return -1;
    }
    socks->stage = method == PASSWORD ? PF_SOCKS_LOGIN : PF_SOCKS_REQUEST;
    return (ssize_t)whole;
}

/* 1, length and bytes of a user name, length and bytes of a password: any will do. */
static ssize_t take_login(struct pf_egress_socks *socks, const uint8_t *data, size_t len,
                          uint8_t *answer, size_t *ret_len)
{
    size_t user = len < 2 ? 0 : data[1];
    size_t whole = len < 3 + user ? 3 + user : 3 + user + data[2 + user];

    if (data[0] != 1) {
        socks->fault = "a login of another version";
        return -1;
    }
    if (len < whole)
        return 0;
    answer_with((const uint8_t[]){ 1, 0 }, 2, answer, ret_len);
    socks->stage = PF_SOCKS_REQUEST;
    return (ssize_t)whole;
}

static ssize_t refuse(struct pf_egress_socks *socks, enum pf_egress_socks_reply reply,
                      const char *fault, uint8_t *answer, size_t *ret_len)
{
    *ret_len = pf_egress_socks_answer(reply, answer);
    socks->fault = fault;
    return -1;
}

/* VERSION, command, 0, kind of address, address, port. */
static ssize_t take_request(struct pf_egress_socks *socks, const uint8_t *data, size_t len,
                            uint8_t *answer, size_t *ret_len)
{
    const uint8_t *at = data + 4;
    const char *fault = NULL;
    size_t size;

    if (len < 5)
        return 0;
    if (data[0] != VERSION || data[2] != 0)
        return refuse(socks, PF_SOCKS_NO_COMMAND, "a malformed request", answer, ret_len);
    if (data[1] != CONNECT)
        return refuse(socks, PF_SOCKS_NO_COMMAND, "only CONNECT is here", answer, ret_len);
    if (data[3] != IPV4 && data[3] != IPV6 && data[3] != NAME)
        return refuse(socks, PF_SOCKS_NO_ADDRESS, "an unknown kind of address", answer, ret_len);
    size = data[3] == IPV4 ? 4 : data[3] == IPV6 ? 16 : (size_t)1 + data[4];
    if (len < 4 + size + 2)
        return 0;
    if (data[3] != NAME) {
        pf_egress_ip_from_bytes(at, size, &socks->host.ip);
        socks->host.is_ip = true;
        pf_egress_ip_format(&socks->host.ip, socks->host.text);
    } else if (!pf_egress_host_parse((const char *)at + 1, size - 1, &socks->host, &fault)) {
        return refuse(socks, PF_SOCKS_REFUSED, fault, answer, ret_len);
    }
    socks->port = (uint16_t)(at[size] << 8 | at[size + 1]);
    if (socks->port == 0)
        return refuse(socks, PF_SOCKS_REFUSED, "port 0", answer, ret_len);
    socks->stage = PF_SOCKS_READY;
    return (ssize_t)(4 + size + 2);
}

ssize_t pf_egress_socks_take(struct pf_egress_socks *socks, const uint8_t *data, size_t len,
                             uint8_t answer[static PF_SOCKS_ANSWER_MAX], size_t *ret_answer_len)
{
    *ret_answer_len = 0;
    if (len == 0)
        return 0;
    switch (socks->stage) {
    case PF_SOCKS_GREETING:
        return take_greeting(socks, data, len, answer, ret_answer_len);
    case PF_SOCKS_LOGIN:
        return take_login(socks, data, len, answer, ret_answer_len);
    case PF_SOCKS_REQUEST:
        return take_request(socks, data, len, answer, ret_answer_len);
    case PF_SOCKS_READY:
        break;
    }
    return 0;
}

size_t pf_egress_socks_answer(enum pf_egress_socks_reply reply,
                              uint8_t answer[static PF_SOCKS_ANSWER_MAX])
{
    /* The address that it would be bound to is of no use to a client: zeroes. */
    const uint8_t bytes[10] = { VERSION, (uint8_t)reply, 0, IPV4 };

    memcpy(answer, bytes, sizeof bytes);
    return sizeof bytes;
}
