/* SPDX-License-Identifier: Apache-2.0 */
/* /etc of a jail: a few files of its own, and those of the host that programs need and that hold no
 * secret. A jail of root may read whatever is shown, so that nothing is shown by pattern. */
#include "jail/compose.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

static int add(struct pf_draft *draft, enum pf_op_kind kind, int flags, mode_t mode,
               const char *target, const char *text)
{
    struct pf_op op = { .kind = (uint16_t)kind, .flags = (uint16_t)flags, .mode = mode };

    return pf_plan_add(draft, op, target, text, strlen(text));
}

/* A file or directory of the host, read-only, if it is there. */
static int add_shown(struct pf_draft *draft, const char *path)
{
    struct stat st;
    int r;

    if (stat(path, &st) < 0 || !(S_ISDIR(st.st_mode) || S_ISREG(st.st_mode)))
        return 0;
    r = S_ISDIR(st.st_mode) ? add(draft, PF_OP_DIR, 0, 0755, path, "")
                            : add(draft, PF_OP_FILE, 0, 0644, path, "");
    return r < 0 ? r : add(draft, PF_OP_BIND, PF_OP_OPTIONAL, 0, path, path);
}

/* The bytes of a small file of the host as they are now. */
static int add_copy(struct pf_draft *draft, const char *path)
{
    struct pf_op op = { .kind = PF_OP_FILE, .mode = 0644 };
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    char text[16384];
    struct stat st;
    ssize_t len;

    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return 0;
    len = read(fd, text, sizeof(text));
    return len < 0 ? 0 : pf_plan_add(draft, op, path, text, (size_t)len);
}

/* The time zone is a link into /usr nearly everywhere. */
static int add_localtime(struct pf_draft *draft)
{
    char link[PATH_MAX];
    ssize_t len = readlink("/etc/localtime", link, sizeof(link) - 1);

    if (len < 0)
        return add_copy(draft, "/etc/localtime");
    link[len] = '\0';
    return add(draft, PF_OP_LINK, 0, 0, "etc/localtime", link);
}

/* Debian keeps the configuration of Java, links to which fill its home, in /etc/java-17-openjdk. */
static int add_java(struct pf_draft *draft)
{
    DIR *dir = access("/usr/lib/jvm", F_OK) == 0 ? opendir("/etc") : NULL;
    struct dirent *entry;
    int r = 0;

    while (r == 0 && dir && (entry = readdir(dir)))
        if (strncmp(entry->d_name, "java", 4) == 0) {
            char path[PATH_MAX];
            snprintf(path, sizeof(path), "/etc/%s", entry->d_name);
            r = add_shown(draft, path);
        }
    if (dir)
        closedir(dir);
    return r;
}

/* Where Fedora keeps its certificates, and beside them private keys. */
static int add_pki(struct pf_draft *draft)
{
    static const char *const dirs[] = { "etc/pki", "etc/pki/tls", "etc/pki/ca-trust" };
    int r = 0;

    if (access("/etc/pki/tls/certs", F_OK) < 0)
        return 0;
    for (size_t i = 0; r == 0 && i < PF_COUNT(dirs); i++)
        r = add(draft, PF_OP_DIR, 0, 0755, dirs[i], "");
    if (r == 0)
        r = add_shown(draft, "/etc/pki/tls/certs");
    return r < 0 ? r : add_shown(draft, "/etc/pki/ca-trust/extracted");
}

static int add_generated(struct pf_draft *draft, enum pinfold_net net)
{
    static const struct {
        const char *target, *text;
    } files[] = {
        { "etc/passwd", "root:x:0:0:root:/root:/usr/sbin/nologin\n"
                        "agent:x:1000:1000:agent:" PF_JAIL_HOME ":/bin/sh\n"
                        "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n" },
        { "etc/group", "root:x:0:\nagent:x:1000:\nnogroup:x:65534:\n" },
        { "etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n"
                               "services: files\nprotocols: files\n" },
        { "etc/hostname", "pinfold\n" },
        /* What the owner's ~/.gitconfig would say; without it there is no commit. */
        { "etc/gitconfig", "[user]\n\tname = agent\n\temail = agent@pinfold.invalid\n" },
    };
    int r = 0;

    for (size_t i = 0; r == 0 && i < PF_COUNT(files); i++)
        r = add(draft, PF_OP_FILE, 0, 0644, files[i].target, files[i].text);
    if (r == 0 && net == PINFOLD_NET_HOST) {
        r = add_copy(draft, "/etc/hosts");
        return r < 0 ? r : add_copy(draft, "/etc/resolv.conf");
    }
    if (r == 0)
        r = add(draft, PF_OP_FILE, 0, 0644, "etc/hosts",
                "127.0.0.1 localhost pinfold\n::1 localhost\n");
    return r < 0 ? r : add(draft, PF_OP_FILE, 0, 0644, "etc/resolv.conf", "");
}

int pf_plan_etc(struct pf_draft *draft, enum pinfold_net net)
{
    static const char *const shown[] = {
        "/etc/alternatives", "/etc/ca-certificates", "/etc/fonts",     "/etc/ld.so.cache",
        "/etc/perl",         "/etc/services",        "/etc/ssl/certs", "/etc/ssl/openssl.cnf",
    };
    int r = add(draft, PF_OP_DIR, 0, 0755, "etc", "");

    if (r == 0)
        r = add(draft, PF_OP_DIR, 0, 0755, "etc/ssl", "");
    for (size_t i = 0; r == 0 && i < PF_COUNT(shown); i++)
        r = add_shown(draft, shown[i]);
    if (r == 0)
        r = add_pki(draft);
    if (r == 0)
        r = add_java(draft);
    if (r == 0)
        r = add_copy(draft, "/etc/protocols"); /* small: a copy is cheaper than a mount */
    if (r == 0)
        r = add_localtime(draft);
    if (r == 0)
        r = add(draft, PF_OP_LINK, 0, 0, "etc/mtab", "/proc/self/mounts");
    if (r == 0)
        r = add(draft, PF_OP_LINK, 0, 0, "etc/os-release", "../usr/lib/os-release");
    return r < 0 ? r : add_generated(draft, net);
}
