/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http.h"

#include <errno.h>
#include <openssl/x509_vfy.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/cancel.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "net/curl.h"
#include "net/http_proxy.h"

#define CONNECT_NS (10 * PF_NS_PER_SEC)
#define HEADERS_MAX ((size_t)256 * 1024)
#define ERROR_BODY_MAX ((size_t)1024 * 1024)
#define POOL_MAX 64 /* handles that are kept, each with its connections */

/* A handle and the loop that drives it: one request at a time. */
struct worker {
    CURL *easy;
    CURLM *multi;
    struct worker *next;
};

struct pf_http {
    char *trusted;        /* a file of certificates; NULL: the system's */
    pthread_mutex_t lock; /* guards what follows, never a wait */
    struct worker *idle;
    size_t idle_count;
    pid_t process; /* whose the idle ones are */
};

/* One request under way. */
struct transfer {
    const struct pf_http_request *request;
    const char *trusted; /* of the client */
    struct pf_http_response *response;
    struct pinfold_error *err;
    size_t sent;       /* of a body in memory */
    bool headers_done; /* libcurl takes their end for that of the connection's, too */
    int result;        /* why a callback gave up */
    int64_t moved;     /* when something was sent or arrived last */
    char reason[CURL_ERROR_SIZE];
};

/* ---- workers ---- */

static void worker_free(struct worker *worker)
{
    if (!worker)
        return;
    curl_easy_cleanup(worker->easy);
    curl_multi_cleanup(worker->multi);
    free(worker);
}

static struct worker *worker_new(void)
{
    struct worker *worker = calloc(1, sizeof(*worker));

    if (!worker)
        return NULL;
    worker->easy = curl_easy_init();
    worker->multi = curl_multi_init();
    if (worker->easy && worker->multi)
        return worker;
    worker_free(worker);
    return NULL;
}

/* A fork has its parent's connections, too, and may neither use nor end them: what TLS says at the
 * end of one is of that one sequence which the parent goes on with. So they are forgotten. */
static void forget_parents(struct pf_http *http)
{
    pid_t process = getpid();

    if (http->process == process)
        return;
    http->process = process;
    http->idle = NULL;
    http->idle_count = 0;
}

static struct worker *take_worker(struct pf_http *http)
{
    struct worker *worker;

    pthread_mutex_lock(&http->lock);
    forget_parents(http);
    worker = http->idle;
    if (worker) {
        http->idle = worker->next;
        http->idle_count--;
    }
    pthread_mutex_unlock(&http->lock);
    return worker ? worker : worker_new();
}

static void give_worker(struct pf_http *http, struct worker *worker)
{
    bool kept = false;

    curl_easy_reset(worker->easy);
    pthread_mutex_lock(&http->lock);
    if (http->idle_count < POOL_MAX) {
        worker->next = http->idle;
        http->idle = worker;
        http->idle_count++;
        kept = true;
    }
    pthread_mutex_unlock(&http->lock);
    if (!kept)
        worker_free(worker);
}

/* ---- what libcurl calls ---- */

static int fail(struct transfer *transfer, enum pinfold_code code, bool unsent, const char *reason);

static int give_up(struct transfer *transfer, int result)
{
    transfer->result = result;
    return result;
}

/* The bytes of a line without what ends it. */
static size_t trimmed(const char *line, size_t len)
{
    while (len > 0 && strchr("\r\n \t", line[len - 1]) && line[len - 1])
        len--;
    return len;
}

static int keep_header(struct pf_buf *headers, const char *name, size_t name_len, const char *value,
                       size_t value_len)
{
    size_t start = headers->len;
    int r = pf_buf_append(headers, name, name_len);

    for (size_t i = start; r == 0 && i < headers->len; i++)
        if (headers->data[i] >= 'A' && headers->data[i] <= 'Z')
            headers->data[i] = (char)(headers->data[i] | 0x20);
    if (r == 0)
        r = pf_buf_append(headers, "", 1);
    if (r == 0)
        r = pf_buf_append(headers, value, value_len);
    return r < 0 ? r : pf_buf_append(headers, "", 1);
}

static size_t take_header(char *line, size_t size, size_t count, void *ctx)
{
    struct transfer *transfer = ctx;
    struct pf_buf *headers = &transfer->response->headers;
    size_t len = size * count, used = trimmed(line, len);
    const char *colon = memchr(line, ':', used), *value;
    int r;

    transfer->moved = pf_clock_now();
    /* It would be two headers to whoever reads what is kept, or to whom it is handed on. */
    if (memchr(line, '\0', used) || memchr(line, '\r', used)) {
        r = fail(transfer, PINFOLD_EBACKEND, false, "a header of the reply holds a control byte");
        return give_up(transfer, r) < 0 ? 0 : len;
    }
    if (len >= 5 && strncmp(line, "HTTP/", 5) == 0) {
        headers->len = 0; /* those of an interim reply do not count */
        transfer->headers_done = false;
        return len;
    }
    if (transfer->headers_done) /* a trailer, which is behind the body and changes nothing */
        return len;
    transfer->headers_done = used == 0;
    if (!colon)
        return len;
    value = colon + 1;
    while (value < line + used && (*value == ' ' || *value == '\t'))
        value++;
    r = keep_header(headers, line, (size_t)(colon - line), value, (size_t)(line + used - value));
    return give_up(transfer, r) < 0 ? 0 : len;
}

static bool streams(const struct transfer *transfer, CURL *easy)
{
    long status = 0;

    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    return transfer->request->on_body && status >= 200 && status < 300;
}

struct receiver {
    struct transfer *transfer;
    CURL *easy;
};

static size_t take_body(char *data, size_t size, size_t count, void *ctx)
{
    struct receiver *receiver = ctx;
    struct transfer *transfer = receiver->transfer;
    const struct pf_http_request *request = transfer->request;
    size_t len = size * count;
    int r;

    transfer->moved = pf_clock_now();
    if (streams(transfer, receiver->easy))
        r = request->on_body(request->on_body_ctx, data, len, transfer->err);
    else
        r = pf_buf_append(&transfer->response->body, data, len);
    return give_up(transfer, r) < 0 ? 0 : len;
}

static size_t give_body(char *data, size_t size, size_t count, void *ctx)
{
    struct transfer *transfer = ctx;
    const struct pf_http_request *request = transfer->request;
    size_t room = size * count, left = request->body_len - transfer->sent;
    ssize_t n;

    transfer->moved = pf_clock_now();
    if (!request->read_body) {
        if (left > room)
            left = room;
        memcpy(data, (const char *)request->body + transfer->sent, left);
        transfer->sent += left;
        return left;
    }
    n = request->read_body(request->read_ctx, data, room);
    if (n >= 0)
        return (size_t)n;
    give_up(transfer, (int)n);
    return CURL_READFUNC_ABORT;
}

/* libcurl sends a request again by itself when a kept connection turns out to be dead, if it can
 * begin the body again. */
static int begin_again(void *ctx, curl_off_t offset, int origin)
{
    struct transfer *transfer = ctx;

    if (transfer->request->once || transfer->request->read_body || origin != SEEK_SET)
        return CURL_SEEKFUNC_FAIL;
    transfer->sent = (size_t)offset;
    return CURL_SEEKFUNC_OK;
}

/* ---- the request ---- */

static struct curl_slist *add_line(struct curl_slist *list, const char *line, bool *ok)
{
    struct curl_slist *longer = curl_slist_append(list, line);

    *ok = *ok && longer;
    return longer ? longer : list;
}

static struct curl_slist *header_lines(const struct pf_http_request *request, bool *ok)
{
    struct curl_slist *list = NULL;
    bool typed = false;

    *ok = true;
    for (size_t i = 0; i < request->header_count; i++)
        typed = typed || strcasecmp(request->headers[i].name, "content-type") == 0;
    /* An empty value leaves out what libcurl would send by itself. */
    list = add_line(list, "Expect:", ok);
    list = add_line(list, "Accept:", ok);
    if (!typed)
        list = add_line(list, "Content-Type:", ok);
    for (size_t i = 0; i < request->header_count && *ok; i++) {
        _cleanup_free_ char *line = NULL;
        if (asprintf(&line, "%s: %s", request->headers[i].name, request->headers[i].value) < 0) {
            line = NULL;
            *ok = false;
            break;
        }
        list = add_line(list, line, ok);
        explicit_bzero(line, strlen(line));
    }
    return list;
}

/* A header of the caller's must not become two, whatever its value came from. */
static bool is_header(const struct pf_header *header)
{
    return header->name[0] && !strpbrk(header->name, "\r\n: ") && !strpbrk(header->value, "\r\n");
}

static void set_body(CURL *easy, struct transfer *transfer)
{
    const struct pf_http_request *request = transfer->request;

    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request->method);
    if (!request->body && !request->read_body)
        return;
    curl_easy_setopt(easy, CURLOPT_POST, 1L);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, NULL);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body_len);
    curl_easy_setopt(easy, CURLOPT_READFUNCTION, give_body);
    curl_easy_setopt(easy, CURLOPT_READDATA, transfer);
    curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, begin_again);
    curl_easy_setopt(easy, CURLOPT_SEEKDATA, transfer);
}

/* libcurl can be built without proxies, and knows no option of theirs then. */
static bool is_done(CURLcode code)
{
    return code == CURLE_OK || code == CURLE_UNKNOWN_OPTION;
}

/* Neither the file nor the directory that libcurl was built with counts beside it. A proxy may
 * speak TLS as well. */
static bool set_trust(CURL *easy, const char *file)
{
    return !file || (curl_easy_setopt(easy, CURLOPT_CAINFO, file) == CURLE_OK &&
                     curl_easy_setopt(easy, CURLOPT_CAPATH, NULL) == CURLE_OK &&
                     is_done(curl_easy_setopt(easy, CURLOPT_PROXY_CAINFO, file)) &&
                     is_done(curl_easy_setopt(easy, CURLOPT_PROXY_CAPATH, NULL)));
}

/* A request that goes to a proxy all the same would say there what is for this machine alone. */
static bool set_way(CURL *easy, const struct pf_http_request *request)
{
    return !request->bypass_proxy || is_done(curl_easy_setopt(easy, CURLOPT_NOPROXY, "*"));
}

static void set_up(CURL *easy, struct transfer *transfer, struct receiver *receiver,
                   struct curl_slist *headers)
{
    const struct pf_http_request *request = transfer->request;
    int64_t connect_ns = request->connect_ns ? request->connect_ns : CONNECT_NS;

    curl_easy_setopt(easy, CURLOPT_URL, request->url);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "pinfold");
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, transfer->reason);
    curl_easy_setopt(easy, CURLOPT_DISALLOW_USERNAME_IN_URL, 1L);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)(connect_ns / PF_NS_PER_MS));
    curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, take_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, transfer);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, receiver);
    if (request->idle_seconds > 0)
        curl_easy_setopt(easy, CURLOPT_MAXAGE_CONN, (long)request->idle_seconds);
#if LIBCURL_VERSION_NUM >= 0x075700
    /* Whoever looks up a name cannot be stopped, and must not be waited for. */
    curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
#endif
    set_body(easy, transfer);
}

/* ---- how it went ---- */

enum { SHOWN_MAX = 160 };

/* The address without what may be secret in it: the query. A proxy on the way is named in place of
 * the path, as there is not room for both. */
static void show_url(const struct transfer *transfer, bool asked, char ret[static SHOWN_MAX])
{
    const struct pf_http_request *request = transfer->request;
    const char *url = request->url, *scheme_end = strstr(url, "://");
    char proxy[PF_HTTP_PROXY_MAX];
    size_t len, room;

    if (!asked || request->bypass_proxy || !scheme_end ||
        transfer->response->headers.len > 0 || /* who has replied was reached */
        !pf_http_proxy_name(url, proxy)) {
        snprintf(ret, SHOWN_MAX, "%.*s", (int)strcspn(url, "?"), url);
        return;
    }
    len = (size_t)(scheme_end - url) + 3;
    len += strcspn(url + len, "/?#");
    room = SHOWN_MAX - sizeof(" by ") - strlen(proxy);
    snprintf(ret, SHOWN_MAX, "%.*s by %s", (int)(len < room ? len : room), url, proxy);
}

static int fail(struct transfer *transfer, enum pinfold_code code, bool unsent, const char *reason)
{
    char url[SHOWN_MAX];

    show_url(transfer, code != PINFOLD_EVALUE, url);
    pf_fail(transfer->err, code, "%s %s: %s", transfer->request->method, url, reason);
    if (transfer->err)
        transfer->err->retryable = unsent;
    return -(int)code;
}

/* What a callback said when it ended the transfer. */
static int callback_result(struct transfer *transfer)
{
    if (transfer->result == -PINFOLD_ENOMEM)
        return pf_fail_nomem(transfer->err);
    if (transfer->result == -PINFOLD_EVALUE)
        return fail(transfer, PINFOLD_EBACKEND, false, "the reply is too large");
    return transfer->result;
}

/* Whether the server cannot have had the whole request. A body that was not all handed to the
 * connection is not all there, however much of it the server has; who streams one from elsewhere
 * may mean something by a part of it, so this holds for what must be whole, as it is signed. When
 * libcurl wanted to begin again it has forgotten its count, and ours, of what it took, is what
 * there is. */
static bool is_unsent(const struct transfer *transfer, CURL *easy, CURLcode code)
{
    const struct pf_http_request *request = transfer->request;
    long head = 0;
    curl_off_t body = 0;

    curl_easy_getinfo(easy, CURLINFO_REQUEST_SIZE, &head);
    curl_easy_getinfo(easy, CURLINFO_SIZE_UPLOAD_T, &body);
    if (head == 0)
        return true;
    if (code == CURLE_SEND_FAIL_REWIND || body < 0)
        body = (curl_off_t)transfer->sent;
    return request->once && request->body && (size_t)body < request->body_len &&
           transfer->response->headers.len == 0 && !transfer->headers_done;
}

/* Whether the server's certificate is fine, but that nobody is trusted who vouches for it. */
static bool is_stranger(CURL *easy)
{
    long why = X509_V_OK;

    curl_easy_getinfo(easy, CURLINFO_SSL_VERIFYRESULT, &why);
    if (why == X509_V_OK)
        curl_easy_getinfo(easy, CURLINFO_PROXY_SSL_VERIFYRESULT, &why);
    return why == X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT ||
           why == X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN ||
           why == X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY;
}

static int failed(struct transfer *transfer, CURL *easy, CURLcode code)
{
    const char *reason = transfer->reason[0] ? transfer->reason : curl_easy_strerror(code);
    char whom_to_trust[CURL_ERROR_SIZE + 80];
    long sys_errno = 0;
    bool unsent;
    int r;

    if (transfer->result < 0)
        return callback_result(transfer);
    curl_easy_getinfo(easy, CURLINFO_OS_ERRNO, &sys_errno);
    unsent = is_unsent(transfer, easy, code);
    if (code == CURLE_SEND_FAIL_REWIND) /* libcurl speaks of begin_again() */
        reason = "the connection ended before the reply, and what may have arrived is not sent "
                 "again";
    if (pf_http_proxy_is_quoted(transfer->request->url, reason))
        reason = "there is no such proxy";
    if (is_stranger(easy)) {
        snprintf(whom_to_trust, sizeof(whom_to_trust),
                 "%s; SSL_CERT_FILE may name a file of the certificates to trust", reason);
        reason = whom_to_trust;
    }
    switch (code) {
    case CURLE_OUT_OF_MEMORY:
        return pf_fail_nomem(transfer->err);
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_LOGIN_DENIED:
        /* The second one also stands for a reply that is not HTTP. */
        return fail(transfer, unsent ? PINFOLD_EVALUE : PINFOLD_EBACKEND, unsent, reason);
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_BAD_CONTENT_ENCODING:
        return fail(transfer, PINFOLD_EBACKEND, false, reason);
    case CURLE_OPERATION_TIMEDOUT:
        return fail(transfer, PINFOLD_ETIMEOUT, unsent, reason);
    default:
        r = fail(transfer, PINFOLD_EOS, unsent, reason);
        if (transfer->err)
            transfer->err->sys_errno = sys_errno ? (int)sys_errno : EIO;
        return r;
    }
}

/* ---- driving it ---- */

static int wait_for(struct worker *worker, struct transfer *transfer, struct pinfold_cancel *cancel)
{
    struct pinfold_cancel *tokens[] = { cancel, transfer->request->also_cancel };
    struct curl_waitfd extra[PF_COUNT(tokens)];
    unsigned count = 0;
    int64_t idle_ns = transfer->request->idle_ns, until = transfer->request->deadline;
    bool idle = idle_ns && transfer->moved + idle_ns < until;
    int ms = pf_clock_poll_ms(idle ? transfer->moved + idle_ns : until);
    int r;

    for (size_t i = 0; i < PF_COUNT(tokens); i++) {
        r = pf_cancel_check(tokens[i], transfer->err);
        if (r < 0)
            return r;
        if (tokens[i])
            extra[count++] = (struct curl_waitfd){ .fd = pf_cancel_fd(tokens[i]),
                                                   .events = CURL_WAIT_POLLIN };
    }
    if (ms == 0)
        return fail(transfer, PINFOLD_ETIMEOUT, false,
                    idle ? "nothing arrived for too long" : "no answer in time");
    /* libcurl knows when it wants to be called by itself, at the latest. */
    if (curl_multi_poll(worker->multi, extra, count, ms < 0 ? 1000 * 60 : ms, NULL))
        return pf_fail_nomem(transfer->err);
    return 0;
}

static int drive(struct worker *worker, struct transfer *transfer, struct pinfold_cancel *cancel)
{
    int running = 1, messages, r;
    CURLMsg *message;

    for (;;) {
        if (curl_multi_perform(worker->multi, &running) != CURLM_OK)
            return pf_fail_nomem(transfer->err);
        if (!running)
            break;
        r = wait_for(worker, transfer, cancel);
        if (r < 0)
            return r;
    }
    message = curl_multi_info_read(worker->multi, &messages);
    if (!message || message->msg != CURLMSG_DONE)
        return fail(transfer, PINFOLD_EBACKEND, false, "libcurl lost the request");
    if (message->data.result == CURLE_OK && !transfer->headers_done)
        return fail(transfer, PINFOLD_EBACKEND, false, "the reply ends inside its headers");
    return message->data.result == CURLE_OK ? 0
                                            : failed(transfer, worker->easy, message->data.result);
}

static int transfer_run(struct worker *worker, struct transfer *transfer,
                        struct pinfold_cancel *cancel)
{
    struct receiver receiver = { transfer, worker->easy };
    long status = 0;
    bool ok;
    struct curl_slist *headers = header_lines(transfer->request, &ok);
    int r;

    set_up(worker->easy, transfer, &receiver, headers);
    /* All that curl_easy_setopt() can lack is memory, and an address it has copied. */
    ok = ok && set_trust(worker->easy, transfer->trusted) &&
         set_way(worker->easy, transfer->request) &&
         curl_easy_setopt(worker->easy, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
         curl_easy_setopt(worker->easy, CURLOPT_URL, transfer->request->url) == CURLE_OK &&
         curl_multi_add_handle(worker->multi, worker->easy) == CURLM_OK;
    r = ok ? drive(worker, transfer, cancel) : pf_fail_nomem(transfer->err);
    if (ok)
        curl_multi_remove_handle(worker->multi, worker->easy);
    curl_easy_getinfo(worker->easy, CURLINFO_RESPONSE_CODE, &status);
    transfer->response->status = (int)status;
    for (struct curl_slist *line = headers; line; line = line->next)
        explicit_bzero(line->data, strlen(line->data));
    curl_slist_free_all(headers);
    return r;
}

int pf_http_perform(struct pf_http *http, const struct pf_http_request *request,
                    struct pf_http_response *ret, struct pinfold_cancel *cancel,
                    struct pinfold_error *err)
{
    struct transfer transfer = { .request = request,
                                 .trusted = http->trusted,
                                 .response = ret,
                                 .err = err,
                                 .moved = pf_clock_now() };
    struct worker *worker;
    int r;

    *ret = (struct pf_http_response){
        .headers = PF_BUF_INIT(HEADERS_MAX),
        .body = PF_BUF_INIT(request->on_body ? ERROR_BODY_MAX : request->response_max),
    };
    for (size_t i = 0; i < request->header_count; i++)
        if (!is_header(&request->headers[i]))
            return fail(&transfer, PINFOLD_EVALUE, true, "a header holds a line end");
    r = pf_cancel_check(cancel, err);
    if (r < 0)
        return r;
    worker = take_worker(http);
    if (!worker)
        return pf_fail_nomem(err);
    r = transfer_run(worker, &transfer, cancel);
    give_worker(http, worker);
    if (r == 0)
        r = pf_buf_reserve(&ret->body, 1) == -PINFOLD_ENOMEM ? pf_fail_nomem(err) : 0;
    if (r < 0)
        pf_http_response_done(ret);
    return r;
}

const char *pf_http_header(const struct pf_http_response *response, const char *name)
{
    const char *at = response->headers.data, *end = at ? at + response->headers.len : NULL;
    const char *found = NULL;

    while (at && at < end) {
        const char *value = at + strlen(at) + 1;
        if (strcmp(at, name) == 0)
            found = value;
        at = value + strlen(value) + 1;
    }
    return found;
}

void pf_http_response_done(struct pf_http_response *response)
{
    if (response->body.data)
        explicit_bzero(response->body.data, response->body.len);
    pf_buf_done(&response->body);
    pf_buf_done(&response->headers);
    *response = (struct pf_http_response){ 0 };
}

/* ---- life ---- */

/* Variables may be set, and say nothing. */
static const char *read_variable(const char *name)
{
    const char *value = name ? secure_getenv(name) : NULL;

    return value && *value ? value : NULL;
}

int pf_http_new(const char *variable, struct pf_http **ret, struct pinfold_error *err)
{
    const char *own = read_variable(variable);
    const char *trusted = own ? own : read_variable("SSL_CERT_FILE");
    struct pf_http *http;
    int r = pf_curl_load(err);

    if (r < 0)
        return r;
    http = calloc(1, sizeof(*http));
    if (!http || (trusted && !(http->trusted = strdup(trusted)))) {
        free(http);
        return pf_fail_nomem(err);
    }
    pthread_mutex_init(&http->lock, NULL);
    http->process = getpid();
    *ret = http;
    return 0;
}

void pf_http_free(struct pf_http *http)
{
    if (!http)
        return;
    forget_parents(http);
    for (struct worker *worker = http->idle, *next; worker; worker = next) {
        next = worker->next;
        worker_free(worker);
    }
    pthread_mutex_destroy(&http->lock);
    free(http->trusted);
    free(http);
}
