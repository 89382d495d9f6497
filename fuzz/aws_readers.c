/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The readers of what files, services and commands say about AWS credentials: profiles (INI), the
 * JSON of metadata services and credential processes, the XML of STS, and what is in them: times,
 * addresses, commands. The first byte chooses the reader.
 */
#include "net/aws_sources.h"
#include "fuzz.h"

/* Every key and value is a text within the text, and is found again. */
static void fuzz_ini(const char *data, size_t size)
{
    struct pf_ini ini = { .text = PF_BUF_INIT(PF_AWS_FILE_MAX) };
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    size_t pairs = 0, len;

    demand(pf_buf_append(&ini.text, data, size) == 0);
    if (pf_ini_parse(&ini, "f", &err) == 0) {
        const char *start = ini.text.data, *end = start + ini.text.len;
        for (size_t i = 0; i < ini.section_count; i++) {
            const struct pf_ini_section *section = &ini.sections[i];
            demand(section->first == pairs && *section->name);
            pairs += section->count;
            for (size_t n = section->first; n < pairs; n++) {
                const char *value = ini.pairs[n].value;
                demand(ini.pairs[n].key >= start && value > ini.pairs[n].key);
                demand(value + strlen(value) <= end);
                demand(pf_ini_get(&ini, section, ini.pairs[n].key) == value);
                (void)pf_ini_nested(value, "endpoint_url", &len);
            }
        }
        demand(pairs == ini.pair_count);
    } else {
        demand(err.code == PINFOLD_EVALUE && err.msg[0]);
    }
    pf_ini_done(&ini);
}

/* What is taken fits a header; what is not names no value. */
static void check_keys(int r, struct pf_aws_credentials *got, const struct pinfold_error *err)
{
    demand(r == 1 || r == -PINFOLD_EVALUE);
    demand((r == 1) == (got->access_key != NULL) && (r == 1) == (err->code == 0));
    if (r == 1) {
        demand(*got->access_key && *got->secret_key && got->expires >= 0);
        demand(!strpbrk(got->access_key, "\r\n \t") && !strpbrk(got->secret_key, "\r\n \t"));
        demand(!got->session_token || !strpbrk(got->session_token, "\r\n \t"));
    }
    pf_aws_credentials_done(got);
}

static void fuzz_json(const char *data, size_t size)
{
    static const struct pf_aws_json_names sso = {
        "accessKeyId", "secretAccessKey", "sessionToken", "expiration", true, true, true
    };
    struct pf_buf body = { (char *)(uintptr_t)data, size, size, size };
    struct pf_aws_credentials got = { 0 };
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    const char *wrong;
    json_t *json;

    check_keys(pf_aws_json_metadata(&body, "x", "x", &got, &err), &got, &err);
    json = pf_aws_json_load(data, size, &wrong);
    demand(json || *wrong);
    err = (struct pinfold_error)PINFOLD_ERROR_INIT;
    if (json)
        check_keys(pf_aws_json_keys(json, &sso, "x", "x", &got, &err), &got, &err);
    pf_aws_json_free(&json);
}

static void fuzz_xml(char *text, size_t size)
{
    struct pf_aws_xml_field fields[] = { { "a", NULL }, { "a/b", NULL }, { "a/b/c", NULL } };
    int r = pf_aws_xml_read(text, size, fields, 3);

    demand(r == 0 || r == -PINFOLD_EVALUE);
    for (int i = 0; i < 3; i++)
        if (fields[i].value)
            demand(r == 0 && fields[i].value >= text &&
                   fields[i].value + strlen(fields[i].value) < text + size);
}

static void fuzz_words(char *text)
{
    const char *words[PF_AWS_WORDS_MAX + 1], *wrong = NULL, *end = text + strlen(text);
    struct pf_aws_url url;
    int64_t when;
    int count;

    if (pf_aws_url_parse(text, &url) == 0) {
        demand(url.host_len > 0 && url.host + url.host_len <= url.path);
        demand(url.authority + url.authority_len <= url.path && url.path <= end);
    }
    if (pf_aws_time(text, &when) == 0)
        demand(when >= 0);
    count = pf_aws_split(text, words, &wrong);
    demand(count <= PF_AWS_WORDS_MAX && (count >= 0 || wrong));
    for (int i = 0; i < count; i++)
        demand(words[i] >= text && words[i] + strlen(words[i]) <= end);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text;

    if (size == 0 || size > PF_AWS_REPLY_MAX)
        return 0;
    text = malloc(size); /* one byte less, and a NUL: overruns are seen */
    demand(text != NULL);
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    switch (data[0] % 4) {
    case 0:
        fuzz_ini(text, size - 1);
        break;
    case 1:
        fuzz_json(text, size - 1);
        break;
    case 2:
        fuzz_xml(text, size - 1);
        break;
    default:
        fuzz_words(text);
    }
    free(text);
    return 0;
}
