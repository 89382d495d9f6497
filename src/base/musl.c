/* SPDX-License-Identifier: Apache-2.0 */
/* The words for errors. A program of musl says what a program of glibc says: people search for it,
 * and scripts compare it. */
#include "base/musl.h"

#undef strerror

static const struct {
    int sys_errno;
    const char *words;
} different[] = {
    { EIO, "Input/output error" },
    { ECHILD, "No child processes" },
    { ENOMEM, "Cannot allocate memory" },
    { EBUSY, "Device or resource busy" },
    { EXDEV, "Invalid cross-device link" },
    { EMFILE, "Too many open files" },
    { ENOTTY, "Inappropriate ioctl for device" },
    { ESPIPE, "Illegal seek" },
    { EDOM, "Numerical argument out of domain" },
    { ERANGE, "Numerical result out of range" },
    { EDEADLK, "Resource deadlock avoided" },
    { ENAMETOOLONG, "File name too long" },
    { ELOOP, "Too many levels of symbolic links" },
    { EOVERFLOW, "Value too large for defined data type" },
    { ELIBACC, "Can not access a needed shared library" },
    { ELIBBAD, "Accessing a corrupted shared library" },
    { ELIBEXEC, "Cannot exec a shared library directly" },
    { EILSEQ, "Invalid or incomplete multibyte or wide character" },
    { EUSERS, "Too many users" },
    { ENOTSOCK, "Socket operation on non-socket" },
    { EMSGSIZE, "Message too long" },
    { EOPNOTSUPP, "Operation not supported" },
    { EADDRINUSE, "Address already in use" },
    { EADDRNOTAVAIL, "Cannot assign requested address" },
    { ENETUNREACH, "Network is unreachable" },
    { ENETRESET, "Network dropped connection on reset" },
    { ECONNABORTED, "Software caused connection abort" },
    { EISCONN, "Transport endpoint is already connected" },
    { ENOTCONN, "Transport endpoint is not connected" },
    { ESHUTDOWN, "Cannot send after transport endpoint shutdown" },
    { ETOOMANYREFS, "Too many references: cannot splice" },
    { ETIMEDOUT, "Connection timed out" },
    { EHOSTUNREACH, "No route to host" },
    { EINPROGRESS, "Operation now in progress" },
    { EUCLEAN, "Structure needs cleaning" },
    { EDQUOT, "Disk quota exceeded" },
    { EHWPOISON, "Memory page has hardware error" },
};

const char *pf_musl_strerrordesc(int sys_errno)
{
    /* NOLINTBEGIN(concurrency-mt-unsafe): musl's gives static text. */
    const char *words = strerror(sys_errno);

    for (size_t i = 0; i < sizeof(different) / sizeof(different[0]); i++)
        if (different[i].sys_errno == sys_errno)
            return different[i].words;
    return strcmp(words, strerror(-1)) == 0 ? NULL : words;
    /* NOLINTEND(concurrency-mt-unsafe) */
}

char *pf_musl_strerror(int sys_errno)
{
    const char *words = pf_musl_strerrordesc(sys_errno);

    /* Not to be written to, as the manual says. */
    return (char *)(uintptr_t)(words ? words : "Unknown error");
}
