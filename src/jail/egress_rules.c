/* SPDX-License-Identifier: Apache-2.0 */
#include "jail/egress_rules.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"

struct rule {
    enum { NAME, BELOW, NETWORK } kind;
    struct pf_egress_host host; /* the name, the name that others are below ("" for "*"), the net */
    int bits;
    uint16_t port; /* 0: the web's ports */
};

struct pf_egress_rules {
    struct rule *rules;
    size_t count;
    struct pf_egress_tuning tuning;
    char *dns_servers;
};

static bool port_matches(const struct rule *rule, uint16_t port)
{
    return rule->port ? rule->port == port : port == 80 || port == 443;
}

/* Split "what:port" and "[what]:port". More than one colon without brackets is IPv6. */
static const char *split_port(const char **text, size_t *len, uint16_t *ret_port)
{
    const char *end = *text + *len;
    const char *colon = memchr(*text, ':', *len);

    *ret_port = 0;
    if (**text == '[') {
        const char *close = memchr(*text, ']', *len);

        if (!close)
            return "no ']' after '['";
        colon = close + 1 < end ? close + 1 : NULL;
        (*text)++;
        *len = (size_t)(close - *text);
        if (!memchr(*text, ':', *len))
            return "no IPv6 address between the brackets";
    } else if (colon && memchr(colon + 1, ':', (size_t)(end - colon - 1))) {
        return NULL;
    } else if (colon) {
        *len = (size_t)(colon - *text);
    }
    if (!colon)
        return NULL;
    if (*colon != ':' || !pf_egress_port_parse(colon + 1, (size_t)(end - colon - 1), ret_port))
        return "no port from 1 to 65535 after the ':'";
    return NULL;
}

static const char *parse_network(const char *text, size_t len, const char *slash, struct rule *rule)
{
    size_t digits = (size_t)(text + len - slash - 1);
    uint16_t bits = 0;
    struct pf_egress_ip *ip = &rule->host.ip;

    rule->kind = NETWORK;
    if (memchr(slash, ':', digits + 1))
        return "an IPv6 network with a port needs brackets, as in [fd00::/8]:443";
    if (!pf_egress_ip_parse(text, (size_t)(slash - text), ip))
        return "no address before the '/'; a path cannot be allowed, only all of a host";
    if (digits != 1 || slash[1] != '0') {
        if (!pf_egress_port_parse(slash + 1, digits, &bits) || bits > ip->len * 8)
            return "no prefix length after the '/'";
    }
    rule->bits = bits;
    for (int i = bits; i < ip->len * 8; i++) {
        if (ip->bytes[i / 8] >> (7 - i % 8) & 1)
            return "the address has bits beyond the prefix length";
    }
    return NULL;
}

static const char *parse_rule(const char *text, size_t len, struct rule *rule)
{
    const char *fault = NULL;
    const char *slash;

    if (len == 0)
        return "it is empty";
    if (memmem(text, len, "://", 3))
        return "a URL; name the host alone, without its scheme";
    fault = split_port(&text, &len, &rule->port);
    if (fault)
        return fault;
    slash = memchr(text, '/', len);
    if (slash)
        return parse_network(text, len, slash, rule);
    if (len == 1 && text[0] == '*') {
        rule->kind = BELOW;
        return NULL;
    }
    if (len > 2 && text[0] == '*' && text[1] == '.') {
        rule->kind = BELOW;
        text += 2;
        len -= 2;
    }
    if (!pf_egress_host_parse(text, len, &rule->host, &fault))
        return fault;
    if (rule->host.is_ip) {
        if (rule->kind == BELOW)
            return "there are no names below an address";
        rule->kind = NETWORK;
        rule->bits = rule->host.ip.len * 8;
    }
    return NULL;
}

static size_t count_entries(const char *list)
{
    size_t count = 1;

    while ((list = strchr(list, ',')) != NULL) {
        count++;
        list++;
    }
    return count;
}

/* Add the entries of a list with commas; there is room for them. */
static int add_list(struct pf_egress_rules *rules, const char *list, struct pinfold_error *err)
{
    for (;;) {
        size_t len = strcspn(list, ",");
        const char *fault = parse_rule(list, len, &rules->rules[rules->count]);
        char entry[PF_QUOTE_MAX];

        if (fault) {
            snprintf(entry, sizeof entry, "%.*s", len < sizeof entry ? (int)len : PF_QUOTE_MAX - 1,
                     list);
            return pf_fail(err, PINFOLD_EVALUE, "allow entry \"%s\": %s", PF_QUOTE(entry), fault);
        }
        rules->count++;
        if (list[len] == '\0')
            return 0;
        list += len + 1;
    }
}

int pf_egress_rules_new(const char *const *allow, struct pf_egress_rules **ret_rules,
                        struct pinfold_error *err)
{
    struct pf_egress_rules *rules = calloc(1, sizeof *rules);
    size_t count = 0;
    int r = 0;

    for (const char *const *list = allow; list && *list; list++)
        count += count_entries(*list);
    if (rules)
        rules->rules = calloc(count + 1, sizeof *rules->rules);
    if (!rules || !rules->rules) {
        pf_egress_rules_free(rules);
        return pf_fail_nomem(err);
    }
    for (const char *const *list = allow; r == 0 && list && *list; list++)
        r = add_list(rules, *list, err);
    if (r < 0) {
        pf_egress_rules_free(rules);
        return r;
    }
    pf_egress_rules_tune(rules, &(struct pf_egress_tuning){ 0 }, NULL);
    *ret_rules = rules;
    return 0;
}

void pf_egress_rules_free(struct pf_egress_rules *rules)
{
    if (!rules)
        return;
    free(rules->rules);
    free(rules->dns_servers);
    free(rules);
}

int pf_egress_rules_tune(struct pf_egress_rules *rules, const struct pf_egress_tuning *tuning,
                         struct pinfold_error *err)
{
    struct pf_egress_tuning *to = &rules->tuning;
    char *servers = tuning->dns_servers ? strdup(tuning->dns_servers) : NULL;

    if (tuning->dns_servers && !servers)
        return pf_fail_nomem(err);
    free(rules->dns_servers);
    rules->dns_servers = servers;
    *to = *tuning;
    to->dns_servers = servers;
    if (to->handshake_ns == 0)
        to->handshake_ns = 10 * PF_NS_PER_SEC;
    if (to->connect_ns == 0)
        to->connect_ns = 30 * PF_NS_PER_SEC;
    if (to->idle_ns == 0)
        to->idle_ns = 600 * PF_NS_PER_SEC;
    if (to->connections == 0 || to->connections > PF_EGRESS_CONNECTIONS)
        to->connections = PF_EGRESS_CONNECTIONS;
    return 0;
}

const struct pf_egress_tuning *pf_egress_rules_tuning(const struct pf_egress_rules *rules)
{
    return &rules->tuning;
}

static bool name_matches(const struct rule *rule, const char *name)
{
    size_t len = strlen(name);
    size_t below = strlen(rule->host.text);

    if (rule->kind == NAME)
        return strcmp(rule->host.text, name) == 0;
    if (rule->kind != BELOW)
        return false;
    /* The dot is part of what must match: "*.example.org" is not "badexample.org". */
    return below == 0 || (len > below + 1 && name[len - below - 1] == '.' &&
                          strcmp(name + len - below, rule->host.text) == 0);
}

/* Whether an entry allows an address. One that is not public needs an entry within its range. */
static bool address_matches(const struct rule *rule, const struct pf_egress_ip *ip,
                            const struct pf_egress_range *special, bool own)
{
    const struct pf_egress_ip *net = &rule->host.ip;

    if (rule->kind != NETWORK || !pf_egress_ip_within(ip, net, rule->bits))
        return false;
    if (rule->bits == ip->len * 8)
        return true;
    if (special &&
        (rule->bits < special->bits || !pf_egress_ip_within(net, &special->net, special->bits)))
        return false;
    return !own;
}

static bool address_allowed(const struct pf_egress_rules *rules, const struct pf_egress_ip *ip,
                            const struct pf_egress_range *special, uint16_t port, bool own)
{
    for (size_t i = 0; i < rules->count; i++) {
        const struct rule *rule = &rules->rules[i];

        if (port_matches(rule, port) && address_matches(rule, ip, special, own))
            return true;
    }
    return false;
}

/* "name:8080", "[::1]:8080", or the host alone where no port means this one too. */
static void write_entry(const char *host, uint16_t port, char *to, size_t size)
{
    bool web = port == 80 || port == 443;
    bool v6 = strchr(host, ':') && !web;

    snprintf(to, size, "%s%s%s", v6 ? "[" : "", host, v6 ? "]" : "");
    if (!web)
        snprintf(to + strlen(to), size - strlen(to), ":%d", port);
}

static struct pf_egress_verdict refuse(const char *entry, const char *format, ...)
        PINFOLD_PRINTF(2, 3);

static struct pf_egress_verdict refuse(const char *entry, const char *format, ...)
{
    struct pf_egress_verdict verdict = { .allowed = false };
    size_t used;
    va_list args;

    va_start(args, format);
    vsnprintf(verdict.reason, sizeof verdict.reason, format, args);
    va_end(args);
    used = strlen(verdict.reason);
    if (entry)
        snprintf(verdict.reason + used, sizeof verdict.reason - used,
                 "; --net allow=%s would allow it", entry);
    return verdict;
}

struct pf_egress_verdict pf_egress_rules_host(const struct pf_egress_rules *rules,
                                              const struct pf_egress_host *host, uint16_t port)
{
    char entry[PF_EGRESS_NAME_MAX + 16];

    if (host->is_ip)
        return pf_egress_rules_address(rules, host, &host->ip, port, false);
    for (size_t i = 0; i < rules->count; i++) {
        if (port_matches(&rules->rules[i], port) && name_matches(&rules->rules[i], host->text))
            return (struct pf_egress_verdict){ .allowed = true };
    }
    write_entry(host->text, port, entry, sizeof entry);
    return refuse(entry, "this sandbox may not reach port %d of that name", port);
}

struct pf_egress_verdict pf_egress_rules_address(const struct pf_egress_rules *rules,
                                                 const struct pf_egress_host *host,
                                                 const struct pf_egress_ip *ip, uint16_t port,
                                                 bool own)
{
    const struct pf_egress_range *special = pf_egress_ip_special(ip);
    char text[PF_EGRESS_IP_TEXT];
    char entry[PF_EGRESS_IP_TEXT + 16];

    /* A name that was allowed brings its public addresses with it. */
    if (!host->is_ip && !special && !own)
        return (struct pf_egress_verdict){ .allowed = true };
    if (address_allowed(rules, ip, special, port, own))
        return (struct pf_egress_verdict){ .allowed = true };
    pf_egress_ip_format(ip, text);
    write_entry(text, port, entry, sizeof entry);
    if (special)
        return refuse(entry, "%s is %s", text, special->what);
    if (own)
        return refuse(entry, "%s is this machine", text);
    return refuse(entry, "this sandbox may not reach port %d of that address", port);
}
