/* SPDX-License-Identifier: Apache-2.0 */
/* Multipart bodies, in both directions and in pieces; logs with marks; files of variables. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "net/daytona_logs.h"
#include "net/dotenv.h"
#include "net/multipart.h"

#define TYPE "multipart/form-data; boundary=B"

/* All that a reader says, in one text. */
struct heard {
    struct pf_buf text;
    int refuse; /* what the next data callback returns */
};

static int begin(void *ctx, const struct pf_multipart_part *part, struct pinfold_error *err)
{
    struct heard *heard = ctx;

    (void)err;
    return pf_buf_printf(&heard->text, "[%s|%s|%s|%lld]", part->name,
                         part->filename ? part->filename : "-", part->type,
                         (long long)part->length);
}

static int take(void *ctx, const void *data, size_t len, struct pinfold_error *err)
{
    struct heard *heard = ctx;

    (void)err;
    return heard->refuse ? heard->refuse : pf_buf_append(&heard->text, data, len);
}

static int end(void *ctx, struct pinfold_error *err)
{
    (void)err;
    return pf_buf_append_text(&((struct heard *)ctx)->text, "[/]");
}

static int parse(const char *type, const char *data, size_t len, size_t piece, struct heard *heard,
                 struct pinfold_error *err)
{
    const struct pf_multipart_handler handler = { begin, take, end, heard };
    PF_CLEANUP(pf_multipart_parser_done) struct pf_multipart_parser parser;
    int r;

    pf_buf_done(&heard->text);
    heard->text = (struct pf_buf)PF_BUF_INIT(1 << 20);
    r = pf_multipart_parser_init(&parser, type, &handler, err);
    for (size_t at = 0; r == 0 && at < len; at += piece)
        r = pf_multipart_feed(&parser, data + at, len - at < piece ? len - at : piece, err);
    return r < 0 ? r : pf_multipart_finish(&parser, err);
}

/* In pieces of every size. */
static void gives(const char *body, const char *want)
{
    struct heard heard = { 0 };

    for (size_t piece = 1; piece <= strlen(body); piece++) {
        struct pinfold_error err = PINFOLD_ERROR_INIT;
        if (parse(TYPE, body, strlen(body), piece, &heard, &err) < 0)
            fail_msg("pieces of %zu: %s", piece, err.msg);
        assert_string_equal(heard.text.data ? heard.text.data : "", want);
    }
    pf_buf_done(&heard.text);
}

static void refuses(const char *body)
{
    struct heard heard = { 0 };

    for (size_t piece = 1; piece <= strlen(body) + 1; piece++) {
        struct pinfold_error err = PINFOLD_ERROR_INIT;
        assert_int_equal(parse(TYPE, body, strlen(body), piece, &heard, &err), -PINFOLD_EBACKEND);
        assert_int_equal(err.code, PINFOLD_EBACKEND);
    }
    pf_buf_done(&heard.text);
}

static void parts_are_told_in_whatever_pieces_they_come(void **state)
{
    (void)state;
    gives("--B\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n"
          "Content-Length: 3\r\nContent-Type: text/plain\r\n\r\nabc\r\n--B\r\n"
          "content-disposition: form-data; name=error\r\n\r\nno\r\n--B--\r\nwhatever",
          "[file|a|text/plain|3]abc[/][error|-||-1]no[/]");
    gives("preamble\r\n--B\r\n\r\n\r\n--B--", "[|-||-1][/]");
    gives("--B--", "");
}

static void the_name_in_utf8_wins_over_the_other(void **state)
{
    (void)state;
    gives("--B\r\nContent-Disposition: form-data; name=\"file\"; "
          "filename=\"na\xefve \\\"q\\\".txt\"; "
          "filename*=utf-8''na%C3%AFve%20%22q%22.txt\r\n\r\n\r\n--B--",
          "[file|na\xc3\xafve \"q\".txt||-1][/]");
    gives("--B\r\nContent-Disposition: form-data; filename=\"a;b\\\\c\"; name=x\r\n\r\n\r\n--B--",
          "[x|a;b\\c||-1][/]");
}

static void content_may_look_like_a_boundary(void **state)
{
    (void)state;
    gives("--B\r\nContent-Length: 9\r\n\r\n\r\n--B--\r\n\r\n--B--", "[|-||9]\r\n--B--\r\n[/]");
    gives("--B\r\n\r\n\r\r\n-\r\n--\r\n--A\r\n--B--", "[|-||-1]\r\r\n-\r\n--\r\n--A[/]");
}

static void what_is_cut_short_or_no_multipart_is_an_error(void **state)
{
    (void)state;
    refuses("");
    refuses("--B");
    refuses("--B\r\n");
    refuses("--B\r\n\r\nabc");
    refuses("--B\r\n\r\nabc\r\n--B");
    refuses("--B\r\n\r\nabc\r\n--B-x");
    refuses("--B\r\nContent-Length: 4\r\n\r\nabc\r\n--B--");
    refuses("--B\r\nContent-Length: 2\r\n\r\nabc\r\n--B--");
    refuses("--B\r\nContent-Length: -2\r\n\r\nabc\r\n--B--");
    refuses("--B\r\nno colon\r\n\r\nabc\r\n--B--");
}

static void a_type_without_a_boundary_is_refused(void **state)
{
    static const char *const types[] = { "", "application/json", "multipart/form-data",
                                         "multipart/form-data; boundary=",
                                         "multipart/form-data; boundary=\"a\r\nb\"" };
    struct heard heard = { 0 };

    (void)state;
    for (size_t i = 0; i < PF_COUNT(types); i++) {
        struct pinfold_error err = PINFOLD_ERROR_INIT;
        assert_int_equal(parse(types[i], "", 0, 1, &heard, &err), -PINFOLD_EBACKEND);
    }
    pf_buf_done(&heard.text);
}

static void what_a_handler_returns_ends_the_parsing(void **state)
{
    struct heard heard = { .refuse = -PINFOLD_ECANCELLED };
    struct pinfold_error err = PINFOLD_ERROR_INIT;

    (void)state;
    assert_int_equal(parse(TYPE, "--B\r\n\r\nabc\r\n--B--", 17, 17, &heard, &err),
                     -PINFOLD_ECANCELLED);
    pf_buf_done(&heard.text);
}

static void what_is_written_can_be_read_and_has_the_length_it_said(void **state)
{
    PF_CLEANUP(pf_multipart_writer_done) struct pf_multipart_writer writer;
    _cleanup_close_ int fd = memfd_create("test", MFD_CLOEXEC);
    struct pf_buf body = PF_BUF_INIT(1 << 20);
    struct heard heard = { 0 };
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    char type[100], block[7];
    ssize_t n;

    (void)state;
    assert_int_equal(write(fd, "from a file", 11), 11);
    pf_multipart_writer_init(&writer);
    assert_int_equal(pf_multipart_add_text(&writer, "files[0].path", "/a b"), 0);
    assert_int_equal(pf_multipart_add_file(&writer, "files[0].file", "a\"\r\nb", "x\0y", -1, 3), 0);
    assert_int_equal(pf_multipart_add_file(&writer, "empty", "e", "", -1, 0), 0);
    assert_int_equal(pf_multipart_add_file(&writer, "f", "f", NULL, fd, 4), 0);
    assert_int_equal(pf_multipart_close(&writer), 0);
    while ((n = pf_multipart_read(&writer, block, sizeof(block))) > 0)
        assert_int_equal(pf_buf_append(&body, block, (size_t)n), 0);
    assert_int_equal(n, 0);
    assert_int_equal(body.len, writer.total);
    snprintf(type, sizeof(type), "multipart/form-data; boundary=%s", writer.boundary);
    assert_int_equal(parse(type, body.data, body.len, 5, &heard, &err), 0);
    assert_memory_equal(heard.text.data,
                        "[files[0].path|-||-1]/a b[/]"
                        "[files[0].file|a%22%0D%0Ab|application/octet-stream|-1]x\0y[/]"
                        "[empty|e|application/octet-stream|-1][/]"
                        "[f|f|application/octet-stream|-1]from[/]",
                        heard.text.len);
    pf_buf_done(&heard.text);
    pf_buf_done(&body);
}

static void a_file_that_became_shorter_is_an_error(void **state)
{
    PF_CLEANUP(pf_multipart_writer_done) struct pf_multipart_writer writer;
    _cleanup_close_ int fd = memfd_create("test", MFD_CLOEXEC);
    char block[4096];

    (void)state;
    pf_multipart_writer_init(&writer);
    assert_int_equal(pf_multipart_add_file(&writer, "f", "f", NULL, fd, 4), 0);
    assert_int_equal(pf_multipart_close(&writer), 0);
    assert_int_equal(pf_multipart_read(&writer, block, sizeof(block)), -PINFOLD_EOS);
    assert_int_equal(errno, EIO);
}

/* ---- logs ---- */

static int keep(void *ctx, int stream, const char *data, size_t len)
{
    return pf_buf_append((struct pf_buf *)ctx + stream - 1, data, len);
}

static void marks_name_the_stream_of_what_follows(void **state)
{
    static const char log[] = "lost\1\1\1out\n\2\2\2err\n\2\2\2more\n\1\1\1a\1\1b\2c\1\1";

    (void)state;
    for (size_t piece = 1; piece < sizeof(log); piece++) {
        struct pf_buf streams[2] = { PF_BUF_INIT(1000), PF_BUF_INIT(1000) };
        struct pf_daytona_demux demux = { 0 };
        for (size_t at = 0; at < sizeof(log) - 1; at += piece) {
            size_t left = sizeof(log) - 1 - at;
            assert_int_equal(
                    pf_daytona_demux(&demux, log + at, left < piece ? left : piece, keep, streams),
                    0);
        }
        assert_int_equal(pf_daytona_demux_finish(&demux, keep, streams), 0);
        assert_string_equal(streams[0].data, "out\na\1\1b\2c\1\1");
        assert_string_equal(streams[1].data, "err\nmore\n");
        pf_buf_done(&streams[0]);
        pf_buf_done(&streams[1]);
    }
}

/* ---- variables ---- */

static int note(void *ctx, const char *name, const char *value)
{
    return pf_buf_printf(ctx, "%s=<%s>", name, value);
}

static void variables_are_read_as_they_are_written(void **state)
{
    char text[] = "\xef\xbb\xbf# comment\n"
                  "A=plain # comment\r\n"
                  "export B = \"a\\n\\\"b\\\"\" # comment\n"
                  "C='$A \\n'\n"
                  "D=\n"
                  "E=a#b\n"
                  "no equals sign\n"
                  "0BAD=x\n"
                  "F=\"two\nlines\"\n"
                  "G=\"not closed\n"
                  "H=last";
    PF_CLEANUP(pf_buf_done) struct pf_buf said = PF_BUF_INIT(1000);

    (void)state;
    assert_int_equal(pf_dotenv_read(text, sizeof(text) - 1, note, &said), 0);
    assert_string_equal(said.data, "A=<plain>B=<a\n\"b\">C=<$A \\n>D=<>E=<a#b>F=<two\nlines>"
                                   "G=<\"not closed>H=<last>");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_told_in_whatever_pieces_they_come),
        cmocka_unit_test(the_name_in_utf8_wins_over_the_other),
        cmocka_unit_test(content_may_look_like_a_boundary),
        cmocka_unit_test(what_is_cut_short_or_no_multipart_is_an_error),
        cmocka_unit_test(a_type_without_a_boundary_is_refused),
        cmocka_unit_test(what_a_handler_returns_ends_the_parsing),
        cmocka_unit_test(what_is_written_can_be_read_and_has_the_length_it_said),
        cmocka_unit_test(a_file_that_became_shorter_is_an_error),
        cmocka_unit_test(marks_name_the_stream_of_what_follows),
        cmocka_unit_test(variables_are_read_as_they_are_written),
    };

    return cmocka_run_group_tests_name("multipart", tests, NULL, NULL);
}
