/* SPDX-License-Identifier: Apache-2.0 */
/* Where the body of a request ends, so that nothing after it goes out unread. */
#include "jail/egress_head.h"

/* A chunk is "SIZE CR LF data CR LF", the last has the size 0 and no data. Extensions and trailers
 * are allowed by the standard, used by nobody and understood differently by many: refused. */
enum { SIZE, SIZE_LF, DATA, DATA_CR, DATA_LF, LAST_CR, LAST_LF, ENDED };

void pf_egress_body_init(struct pf_egress_body *body, const struct pf_egress_head *head)
{
    *body = (struct pf_egress_body){ .framing = head->framing, .state = ENDED };
    if (head->framing == PF_EGRESS_LENGTH && head->content_length > 0) {
        body->state = DATA;
        body->left = head->content_length;
    } else if (head->framing == PF_EGRESS_CHUNKED) {
        body->state = SIZE;
    }
}

bool pf_egress_body_ended(const struct pf_egress_body *body)
{
    return body->state == ENDED;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool take_size(struct pf_egress_body *body, char c)
{
    int digit = hex_digit(c);

    if (digit >= 0 && body->digits < 15) {
        body->left = body->left << 4 | (unsigned)digit;
        body->digits++;
        return true;
    }
    if (c != '\r' || body->digits == 0)
        return false;
    body->state = SIZE_LF;
    return true;
}

/* One byte of what is between the data of chunks. */
static bool take_byte(struct pf_egress_body *body, char c)
{
    static const char wanted[] = {
        [SIZE_LF] = '\n', [DATA_CR] = '\r', [DATA_LF] = '\n', [LAST_CR] = '\r', [LAST_LF] = '\n'
    };

    if (body->state == SIZE)
        return take_size(body, c);
    if (c != wanted[body->state])
        return false;
    switch (body->state) {
    case SIZE_LF:
        body->digits = 0;
        body->state = body->left > 0 ? DATA : LAST_CR;
        break;
    case DATA_LF:
        body->state = SIZE;
        break;
    default: /* DATA_CR, LAST_CR, LAST_LF */
        body->state++;
    }
    return true;
}

ssize_t pf_egress_body_take(struct pf_egress_body *body, const char *data, size_t len)
{
    size_t taken = 0;

    while (taken < len && body->state != ENDED) {
        if (body->state == DATA) {
            size_t some = len - taken < body->left ? len - taken : (size_t)body->left;

            taken += some;
            body->left -= some;
            if (body->left == 0)
                body->state = body->framing == PF_EGRESS_CHUNKED ? DATA_CR : ENDED;
        } else if (!take_byte(body, data[taken++])) {
            return -1;
        }
    }
    return (ssize_t)taken;
}
