/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every program of a coverage build is linked with (tools/coverage). gcc's own runtime writes
 * the counters to files when a process ends. Here most of them never end that way: they leave by
 * _exit(2), execute another program, are killed, or have no file system and no C library that could
 * write anything. So the counters are a file all along: counters.ld puts them on pages of their
 * own, and this maps the same file over these in each process of a program. Nobody has to say
 * goodbye.
 *
 * When all is over the program is started once more with PINFOLD_COVERAGE_DUMP=DIRECTORY/ID, and
 * writes what the counters say in the format of gcc: DIRECTORY/ID/0, 1, 2 and so on, one for each
 * object, each with the name it should have and a NUL before the rest.
 *
 * It uses no function that tests/fault/failcalls.c replaces: those are counted.
 */
#include <elf.h>
#include <fcntl.h>
#include <gcov.h>
#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define HIDDEN __attribute__((visibility("hidden")))
#define OF_LINKER HIDDEN __attribute__((weak))

/* The pages, by counters.ld; one pointer for each object, by -fprofile-info-section. */
extern char pf_counters_begin[] OF_LINKER, pf_counters_end[] OF_LINKER;
extern const struct gcov_info *const __start_gcov_info[] OF_LINKER;
extern const struct gcov_info *const __stop_gcov_info[] OF_LINKER;
extern const ElfW(Ehdr) __ehdr_start HIDDEN;

enum { ID_BYTES = 20 };

/* Notes are names and contents, each filled up to whole words. */
static const unsigned char *find_in_notes(const char *at, const char *end)
{
    while (at < end) {
        const ElfW(Nhdr) *note = (const void *)at;
        const char *name = at + sizeof(*note);
        const char *content = name + ((note->n_namesz + 3U) & ~3U);

        if (note->n_type == NT_GNU_BUILD_ID && note->n_descsz == ID_BYTES &&
            strcmp(name, "GNU") == 0)
            return (const void *)content;
        at = content + ((note->n_descsz + 3U) & ~3U);
    }
    return NULL;
}

/* What tells a program from others, and is the same for copies of it. */
static const unsigned char *find_build_id(void)
{
    const char *start = (const char *)&__ehdr_start;
    const ElfW(Phdr) *parts = (const void *)(start + __ehdr_start.e_phoff);
    const unsigned char *id = NULL;
    uintptr_t first = UINTPTR_MAX;

    for (unsigned i = 0; i < __ehdr_start.e_phnum; i++)
        if (parts[i].p_type == PT_LOAD && parts[i].p_vaddr < first)
            first = parts[i].p_vaddr;
    for (unsigned i = 0; i < __ehdr_start.e_phnum && !id; i++)
        if (parts[i].p_type == PT_NOTE) {
            const char *notes = start + (parts[i].p_vaddr - first);
            id = find_in_notes(notes, notes + parts[i].p_memsz);
        }
    return id;
}

static void write_id(const unsigned char *id, char text[static 2 * ID_BYTES + 1])
{
    static const char digits[] = "0123456789abcdef";

    for (int i = 0; i < ID_BYTES; i++) {
        text[2 * i] = digits[id[i] >> 4];
        text[2 * i + 1] = digits[id[i] & 15];
    }
    text[2 * ID_BYTES] = '\0';
}

/* Whoever comes first makes the file, for all users. Inside a sandbox there is no such place: what
 * is started there is not counted. */
static bool share(const char *id)
{
    size_t size = (size_t)(pf_counters_end - pf_counters_begin);
    char path[PATH_MAX];
    bool shared;
    int fd;

    snprintf(path, sizeof(path), "%s/%s", PF_COUNTERS, id);
    fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (fd < 0)
            return false;
        fchmod(fd, 0666);
    }
    shared = ftruncate(fd, (off_t)size) == 0 &&
             mmap(pf_counters_begin, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) !=
                     MAP_FAILED;
    close(fd);
    return shared;
}

/* ---- saying what was counted ---- */

struct dump {
    const char *directory;
    unsigned number; /* of the object */
    FILE *file;
};

static void begin_object(const char *name, void *arg)
{
    struct dump *dump = arg;
    char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s/%u", dump->directory, dump->number);
    dump->file = fopen(path, "w");
    if (!dump->file)
        abort();
    fwrite(name, 1, strlen(name) + 1, dump->file);
}

static void write_part(const void *data, unsigned len, void *arg)
{
    const struct dump *dump = arg;

    fwrite(data, 1, len, dump->file);
}

static void *allocate(unsigned size, void *arg)
{
    (void)arg;
    return malloc(size);
}

static void dump_all(const char *directory)
{
    struct dump dump = { .directory = directory };

    for (const struct gcov_info *const *info = __start_gcov_info; info < __stop_gcov_info; info++) {
        __gcov_info_to_gcda(*info, begin_object, write_part, allocate, &dump);
        if (fclose(dump.file) != 0)
            abort();
        dump.number++;
    }
}

__attribute__((constructor(101))) static void share_counters(void)
{
    const char *wanted = getenv("PINFOLD_COVERAGE_DUMP");
    const unsigned char *build_id = find_build_id();
    char id[2 * ID_BYTES + 1];
    const char *asked;

    if (&pf_counters_begin[0] == &pf_counters_end[0] || !build_id)
        return;
    write_id(build_id, id);
    if (!share(id) || !wanted)
        return;
    asked = strrchr(wanted, '/');
    if (asked && strcmp(asked + 1, id) == 0) {
        dump_all(wanted);
        _exit(0);
    }
}
