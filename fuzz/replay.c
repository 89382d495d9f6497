/* SPDX-License-Identifier: Apache-2.0 */
/* In place of libFuzzer: gives every file of a directory to the target once, in TAP. Whatever a
 * fuzzer has found lies there, so that it is found again when it comes back. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz.h"

enum { FILE_MAX = 1 << 20 };

static int is_input(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* Read a file of the corpus into a block of its own size. Returns NULL when that fails. */
static uint8_t *read_input(int dir_fd, const char *name, size_t *ret_size)
{
    int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);
    uint8_t *data = NULL;
    struct stat st;

    if (fd < 0)
        return NULL;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size <= FILE_MAX) {
        *ret_size = (size_t)st.st_size;
        data = malloc(*ret_size + !*ret_size);
    }
    if (data && read(fd, data, *ret_size) != (ssize_t)*ret_size) {
        free(data);
        data = NULL;
    }
    close(fd);
    return data;
}

int main(int argc, char **argv)
{
    struct dirent **entries = NULL;
    int dir_fd = argc == 2 ? open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    int count = dir_fd < 0 ? -1 : scandir(argv[1], &entries, is_input, alphasort), failed = 0;

    if (count <= 0) {
        printf("Bail out! give a directory with inputs\n");
        return 2;
    }
    /* libFuzzer begins with nothing, too. */
    LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
    printf("1..%d\n", count);
    for (int i = 0; i < count; i++) {
        const char *name = entries[i]->d_name;
        size_t size = 0;
        uint8_t *data = read_input(dir_fd, name, &size);

        printf("# %s\n", name); /* if it does not come back from there */
        fflush(stdout);
        if (data)
            LLVMFuzzerTestOneInput(data, size);
        failed += !data;
        printf("%sok %d - %s\n", data ? "" : "not ", i + 1, name);
        free(data);
        free(entries[i]);
    }
    free(entries);
    close(dir_fd);
    return failed > 0;
}
