/* SPDX-License-Identifier: Apache-2.0 */
/* The readers below the sources of AWS credentials: profiles, XML, JSON, times, addresses, words.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "net/aws_sources.h"

static struct pinfold_error err;

/* ---- profiles ---- */

static int parse(struct pf_ini *ini, const char *text)
{
    *ini = (struct pf_ini){ .text = PF_BUF_INIT(PF_AWS_FILE_MAX) };
    err = (struct pinfold_error)PINFOLD_ERROR_INIT;
    assert_int_equal(pf_buf_append_text(&ini->text, text), 0);
    return pf_ini_parse(ini, "/etc/file", &err);
}

static void profiles_are_read_as_configparser_reads_them(void **state)
{
    struct pf_ini ini;

    (void)state;
    assert_int_equal(parse(&ini,
                           "# comment\n; comment\n\n[default]\nKey = a = b # not a comment\r\n"
                           "colon: v\nempty =\n  ; a comment inside\n\n[profile x] ignored\n"
                           "many = one\n  two\n\n  three\nlast=1"),
                     0);
    assert_int_equal(ini.section_count, 2);
    assert_string_equal(ini.sections[1].name, "profile x");
    assert_string_equal(pf_ini_get(&ini, &ini.sections[0], "key"), "a = b # not a comment");
    assert_string_equal(pf_ini_get(&ini, &ini.sections[0], "colon"), "v");
    assert_string_equal(pf_ini_get(&ini, &ini.sections[0], "empty"), "");
    assert_null(pf_ini_get(&ini, &ini.sections[0], "many"));
    assert_string_equal(pf_ini_get(&ini, &ini.sections[1], "many"), "one\ntwo\nthree");
    assert_string_equal(pf_ini_get(&ini, &ini.sections[1], "last"), "1");
    pf_ini_done(&ini);
    assert_int_equal(parse(&ini, ""), 0);
    assert_int_equal(ini.section_count, 0);
    pf_ini_done(&ini);
}

static void settings_below_a_key_are_found(void **state)
{
    struct pf_ini ini;
    const char *lines, *value;
    size_t len;

    (void)state;
    assert_int_equal(parse(&ini, "[services s]\nsts =\n    other = 1\n    endpoint_url = http://a\n"
                                 "    endpoint_urls = no\n"),
                     0);
    lines = pf_ini_get(&ini, &ini.sections[0], "sts");
    value = pf_ini_nested(lines, "endpoint_url", &len);
    assert_non_null(value);
    assert_int_equal(len, 8);
    assert_memory_equal(value, "http://a", 8);
    assert_null(pf_ini_nested(lines, "endpoint", &len));
    pf_ini_done(&ini);
}

static void what_is_no_profile_file_is_refused_by_its_line(void **state)
{
    static const struct {
        const char *text, *wrong;
    } cases[] = {
        { "key = v\n", "line 1: a key before" },
        { "[a]\nsecretword\n", "line 2: neither" },
        { "[a]\n\n= secretword\n", "line 3: a value without" },
        { "[a]\nk = 1\nK = secretword\n", "line 3: a key that is there twice" },
        { "[a]\n[b]\n[a]\n", "line 3: a section that is there twice" },
        { "[]\n", "line 1: a section without" },
        { "[open\n", "line 1: a section without" },
        { "[a]\nk = \xff\n", "not UTF-8" },
    };
    struct pf_ini ini;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(parse(&ini, cases[i].text), -PINFOLD_EVALUE);
        assert_non_null(strstr(err.msg, cases[i].wrong));
        assert_non_null(strstr(err.msg, "/etc/file"));
        assert_null(strstr(err.msg, "secretword"));
        pf_ini_done(&ini);
    }
    ini = (struct pf_ini){ .text = PF_BUF_INIT(PF_AWS_FILE_MAX) };
    assert_int_equal(pf_buf_append(&ini.text, "[a]\nk=\0v", 9), 0);
    assert_int_equal(pf_ini_parse(&ini, "x", &err), -PINFOLD_EVALUE);
    pf_ini_done(&ini);
}

static void a_profile_file_without_end_is_refused(void **state)
{
    struct pf_ini ini = { .text = PF_BUF_INIT(PF_AWS_FILE_MAX) };

    (void)state;
    for (int i = 0; i < 70000; i++)
        assert_int_equal(pf_buf_append(&ini.text, "\n", 1), 0);
    assert_int_equal(pf_ini_parse(&ini, "x", &err), -PINFOLD_EVALUE);
    pf_ini_done(&ini);
    ini = (struct pf_ini){ .text = PF_BUF_INIT(PF_AWS_FILE_MAX) };
    assert_int_equal(pf_buf_append_text(&ini.text, "[a]\n"), 0);
    for (int i = 0; i < 300; i++)
        assert_int_equal(pf_buf_printf(&ini.text, "k%d=\n", i), 0);
    assert_int_equal(pf_ini_parse(&ini, "x", &err), -PINFOLD_EVALUE);
    assert_non_null(strstr(err.msg, "too many keys"));
    pf_ini_done(&ini);
}

/* ---- XML ---- */

static int read_xml(const char *text, struct pf_aws_xml_field *field)
{
    static char copy[4096];
    size_t len = strlen(text);

    memcpy(copy, text, len + 1);
    return pf_aws_xml_read(copy, len, field, 1);
}

static void elements_are_found_by_their_path(void **state)
{
    struct pf_aws_xml_field field = { "a/b/c", NULL };

    (void)state;
    assert_int_equal(read_xml("<?xml version=\"1.0\" encoding='UTF-8'?>\n<a xmlns=\"urn:x\" y='>'>"
                              "<c>no</c><b>\n <d/><c >x&amp;&lt;y&gt;&quot;</c ></b></a>\n",
                              &field),
                     0);
    assert_string_equal(field.value, "x&<y>\"");
    assert_int_equal(read_xml("<a><b><c/></b></a>", &field), 0);
    assert_string_equal(field.value, "");
    assert_int_equal(read_xml("<a/>", &field), 0);
    assert_null(field.value);
}

static void what_is_no_plain_xml_is_refused(void **state)
{
    static const char *const cases[] = {
        "",
        "text",
        "<a>",
        "<a></b>",
        "<a></a><a></a>",
        "<a></a>x",
        "<a><b></a></b>",
        "<a b></a>",
        "<a b=c></a>",
        "<a b=\"<\"></a>",
        "<a>&unknown;</a>",
        "<a>&</a>",
        "<!DOCTYPE a [<!ENTITY x \"y\">]><a>&x;</a>",
        "<a><![CDATA[x]]></a>",
        "<a><!-- x --></a>",
        "<a><?php ?></a>",
        "<a><b><c>1</c><c>2</c></b></a>",
        "<a><b><c>1<d/></c></b></a>",
        "<a><b><c>\xff</c></b></a>",
        ("<a><b><c><d><e><f><g><h><i><j><k><l><m><n><o><p><q></q></p></o></n></m></l></k></j></i>"
         "</h></g></f></e></d></c></b></a>"),
    };
    struct pf_aws_xml_field field = { "a/b/c", NULL };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (read_xml(cases[i], &field) != -PINFOLD_EVALUE)
            fail_msg("taken: %s", cases[i]);
        assert_null(field.value);
    }
}

/* ---- JSON ---- */

static int read_json(const char *text, struct pf_aws_credentials *got)
{
    struct pf_buf body = PF_BUF_INIT(4096);
    int r;

    err = (struct pinfold_error)PINFOLD_ERROR_INIT;
    assert_int_equal(pf_buf_append_text(&body, text), 0);
    r = pf_aws_json_metadata(&body, "IMDS", "instance metadata", got, &err);
    pf_aws_wipe(&body);
    return r;
}

static void json_credentials_are_taken(void **state)
{
    struct pf_aws_credentials got = { 0 };

    (void)state;
    assert_int_equal(
            read_json("{\"AccessKeyId\":\"A\",\"SecretAccessKey\":\"s/+=\",\"Token\":\"t\","
                      "\"Expiration\":\"2026-11-29T20:54:35Z\",\"More\":[1,{\"x\":\"y\"}]}",
                      &got),
            1);
    assert_string_equal(got.secret_key, "s/+=");
    assert_true(got.expires == INT64_C(1795985675) * 1000000000);
    pf_aws_credentials_done(&got);
    assert_null(got.secret_key);
}

static void json_of_other_shapes_is_refused_and_not_quoted(void **state)
{
    static const char *const cases[] = {
        "",
        "SECRETWORD",
        "[\"SECRETWORD\"]",
        "{\"AccessKeyId\":\"SECRETWORD\",}",
        "{\"AccessKeyId\":\"A\",\"AccessKeyId\":\"SECRETWORD\"}",
        "{\"AccessKeyId\":\"SECRETWORD\"}",
        "{\"AccessKeyId\":1,\"SecretAccessKey\":\"SECRETWORD\"}",
        "{\"AccessKeyId\":\"A\",\"SecretAccessKey\":\"SECRETWORD\",\"Token\":7,"
        "\"Expiration\":\"2061-11-29T20:54:35Z\"}",
        "{\"AccessKeyId\":\"A\",\"SecretAccessKey\":\"SECRETWORD\",\"Token\":\"t\","
        "\"Expiration\":\"SECRETWORD\"}",
        "{\"AccessKeyId\":\"A\",\"SecretAccessKey\":\"SECRETWORD\",\"Token\":\"t\","
        "\"Expiration\":1}",
        "{\"AccessKeyId\":\"A\",\"SecretAccessKey\":\"SECRETWORD\",\"Token\":\"t\"}",
        "{\"AccessKeyId\":\"A\",\"SecretAccessKey\":\"SECRETWORD\\r\\nx: y\",\"Token\":\"t\","
        "\"Expiration\":\"2061-11-29T20:54:35Z\"}",
        "{\"AccessKeyId\":\"A\",\"SecretAccessKey\":\"SECRETWORD\\u0000\",\"Token\":\"t\","
        "\"Expiration\":\"2061-11-29T20:54:35Z\"}",
    };
    struct pf_aws_credentials got = { 0 };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (read_json(cases[i], &got) != -PINFOLD_EVALUE)
            fail_msg("taken: %s", cases[i]);
        assert_null(got.access_key);
        assert_null(strstr(err.msg, "SECRETWORD"));
    }
}

/* ---- times, addresses, words ---- */

static void times_are_read_with_their_zone(void **state)
{
    static const char *const wrong[] = { "",
                                         "2026-11-29",
                                         "2026-11-29T20:54:35",
                                         "2026-11-29 20:54:35Z",
                                         "2026-02-30T00:00:00Z",
                                         "2026-13-01T00:00:00Z",
                                         "2026-11-29T24:00:00Z",
                                         "1969-12-31T23:59:59Z",
                                         "1970-01-01T00:00:00+01:00",
                                         "2026-11-29T20:54:35.Z",
                                         "2026-11-29T20:54:35+1:00",
                                         "2026-11-29T20:54:35Zx",
                                         "+026-11-29T20:54:35Z" };
    int64_t a, b;

    (void)state;
    assert_int_equal(pf_aws_time("2026-11-29T20:54:35Z", &a), 0);
    assert_true(a == INT64_C(1795985675) * 1000000000);
    assert_int_equal(pf_aws_time("2026-11-29T22:24:35.123456+01:30", &b), 0);
    assert_true(a == b);
    assert_int_equal(pf_aws_time("2026-11-29T15:54:35-0500", &b), 0);
    assert_true(a == b);
    assert_int_equal(pf_aws_time("2026-11-29T20:54:35UTC", &b), 0);
    assert_true(a == b);
    assert_int_equal(pf_aws_time("9999-12-31T23:59:59Z", &b), 0);
    assert_true(b == INT64_MAX);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        if (pf_aws_time(wrong[i], &a) == 0)
            fail_msg("taken: %s", wrong[i]);
}

static void addresses_are_taken_apart(void **state)
{
    static const char *const wrong[] = {
        "",           "ftp://a",          "http://",        "http:///p",    "http://u@h/",
        "http://a b", "http://a\\@b/",    "http://a#b",     "http://[::1/", "HTTP://a",
        "http://a?q", "https://\xc3\xa4", "http://a\r\nb/", "http://:80/",
    };
    struct pf_aws_url url;

    (void)state;
    assert_int_equal(pf_aws_url_parse("https://host.x:443/a/b?c", &url), 0);
    assert_true(url.https);
    assert_int_equal(url.host_len, 6);
    assert_int_equal(url.authority_len, 6); /* the port goes without saying */
    assert_string_equal(url.path, "/a/b?c");
    assert_int_equal(pf_aws_url_parse("http://[::1]:443", &url), 0);
    assert_memory_equal(url.host, "::1", 3);
    assert_int_equal(url.host_len, 3);
    assert_int_equal(url.authority_len, 9);
    assert_string_equal(url.path, "");
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        if (pf_aws_url_parse(wrong[i], &url) == 0)
            fail_msg("taken: %s", wrong[i]);
}

static void commands_are_split_as_a_shell_splits_them(void **state)
{
    const char *words[PF_AWS_WORDS_MAX + 1], *wrong;
    char text[] = "  a\\ b 'c \\ \"d' \"e \\\" \\\\ \\n $x\"f'' '' \n g\\\\ ";
    char many[2 * PF_AWS_WORDS_MAX + 3];
    char unclosed[3][8] = { "a 'b", "\"b\\\"", "a\\" };

    (void)state;
    assert_int_equal(pf_aws_split(text, words, &wrong), 5);
    assert_string_equal(words[0], "a b");
    assert_string_equal(words[1], "c \\ \"d");
    assert_string_equal(words[2], "e \" \\ \\n $xf");
    assert_string_equal(words[3], "");
    assert_string_equal(words[4], "g\\");
    assert_null(words[5]);
    for (int i = 0; i < 3; i++)
        assert_int_equal(pf_aws_split(unclosed[i], words, &wrong), -PINFOLD_EVALUE);
    memset(many, ' ', sizeof(many));
    for (size_t i = 0; i < sizeof(many) - 1; i += 2)
        many[i] = 'a';
    many[sizeof(many) - 1] = '\0';
    assert_int_equal(pf_aws_split(many, words, &wrong), -PINFOLD_EVALUE);
}

static void regions_fit_a_host_name_or_are_refused(void **state)
{
    static const char *const right[] = { "us-west-2", "eusc-de-east-1", "us-gov-west-1",
                                         "ap-southeast-12" };
    static const char *const wrong[] = {
        "",          "us",          "us-west",     "us-west-",       "us-2",
        "US-west-2", "us-west-2/",  "us-west-2.x", "u-west-2",       "europe-we-1",
        "us--2",     "us-west-2\n", "us-west-2@",  "evil.com/us-a-1"
    };

    (void)state;
    for (size_t i = 0; i < sizeof(right) / sizeof(right[0]); i++)
        assert_true(pf_aws_region_fits(right[i]));
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_false(pf_aws_region_fits(wrong[i]));
    assert_string_equal(pf_aws_dns_suffix("us-west-2"), "amazonaws.com");
    assert_string_equal(pf_aws_dns_suffix("cn-north-1"), "amazonaws.com.cn");
    assert_string_equal(pf_aws_dns_suffix("us-isob-east-1"), "sc2s.sgov.gov");
    assert_string_equal(pf_aws_dns_suffix("us-iso-east-1"), "c2s.ic.gov");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(profiles_are_read_as_configparser_reads_them),
        cmocka_unit_test(settings_below_a_key_are_found),
        cmocka_unit_test(what_is_no_profile_file_is_refused_by_its_line),
        cmocka_unit_test(a_profile_file_without_end_is_refused),
        cmocka_unit_test(elements_are_found_by_their_path),
        cmocka_unit_test(what_is_no_plain_xml_is_refused),
        cmocka_unit_test(json_credentials_are_taken),
        cmocka_unit_test(json_of_other_shapes_is_refused_and_not_quoted),
        cmocka_unit_test(times_are_read_with_their_zone),
        cmocka_unit_test(addresses_are_taken_apart),
        cmocka_unit_test(commands_are_split_as_a_shell_splits_them),
        cmocka_unit_test(regions_fit_a_host_name_or_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
