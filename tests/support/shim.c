/*
 * A library for LD_PRELOAD that delays, skips or fails system calls on files below a directory.
 *
 *   SHIM_DIR        the directory; an absolute path without a slash at the end
 *   SHIM_SYNC       what a sync does: "skip" returns 0 without a sync; a number waits for so many
 *                   milliseconds first
 *   SHIM_LOG        a file that gets "begin N" before a delayed sync and "end N" after it
 *   SHIM_FAIL       the calls that fail, once, with EIO: "read", "write" or "sync"
 *   SHIM_FAIL_WHEN  a file outside the directory. While it exists, the next such call removes it and
 *                   fails. So the test decides when a call fails, and sees that one has failed.
 *   SHIM_FAIL_AFTER the number of such calls that succeed before that; default 0
 *   SHIM_SYNCED     a file. The kernel reports that the clock is synchronised while it exists, and that it is
 *                   not otherwise.
 *   SHIM_SILENT     a file. While it exists, look-ups of host names wait, as for a name server that does not answer.
 *                   The first one writes into it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timex.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static int is_below(int fd)
{
    const char *dir = getenv("SHIM_DIR");
    char link[64], path[PATH_MAX];
    if (!dir)
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t len = readlink(link, path, sizeof path - 1);
    if (len < 0)
        return 0;
    path[len] = 0;
    size_t prefix = strlen(dir);
    return strncmp(path, dir, prefix) == 0 && (path[prefix] == '/' || path[prefix] == 0);
}

/* Whether a call of this kind fails now. */
static int fails(const char *call, int fd)
{
    const char *which = getenv("SHIM_FAIL"), *when = getenv("SHIM_FAIL_WHEN");
    int before = errno;
    static atomic_long calls;
    const char *after = getenv("SHIM_FAIL_AFTER");
    if (!which || !when || strcmp(which, call) != 0 || access(when, F_OK) != 0 || !is_below(fd)
        || calls++ < (after ? atol(after) : 0) || unlink(when) != 0) {
        errno = before;
        return 0;
    }
    errno = EIO;
    return 1;
}

static void note(const char *what, unsigned number)
{
    const char *log = getenv("SHIM_LOG");
    int fd = log ? open(log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (fd >= 0) {
        dprintf(fd, "%s %u\n", what, number);
        close(fd);
    }
}

static long sync_with(int fd, long (*sync)(int))
{
    static atomic_uint last;
    const char *how = getenv("SHIM_SYNC");
    if (fails("sync", fd))
        return -1;
    if (!how || !is_below(fd))
        return sync(fd);
    if (strcmp(how, "skip") == 0)
        return 0;
    unsigned number = ++last;
    long delay_ms = atol(how);
    struct timespec rest = {delay_ms / 1000, delay_ms % 1000 * 1000000};
    note("begin", number);
    while (nanosleep(&rest, &rest) != 0 && errno == EINTR) {
    }
    long result = sync(fd);
    int error = errno;
    note("end", number);
    errno = error;
    return result;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static long real_fsync(int fd) { return REAL(fsync)(fd); }
static long real_fdatasync(int fd) { return REAL(fdatasync)(fd); }
static long real_syncfs(int fd) { return REAL(syncfs)(fd); }

int fsync(int fd) { return (int)sync_with(fd, real_fsync); }
int fdatasync(int fd) { return (int)sync_with(fd, real_fdatasync); }
int syncfs(int fd) { return (int)sync_with(fd, real_syncfs); }

int sync_file_range(int fd, off64_t offset, off64_t len, unsigned flags)
{
    const char *how = getenv("SHIM_SYNC");
    if (how && strcmp(how, "skip") == 0 && is_below(fd))
        return 0;
    return REAL(sync_file_range)(fd, offset, len, flags);
}

ssize_t read(int fd, void *data, size_t len)
{
    return fails("read", fd) ? -1 : REAL(read)(fd, data, len);
}

ssize_t pread64(int fd, void *data, size_t len, off64_t offset)
{
    return fails("read", fd) ? -1 : REAL(pread64)(fd, data, len, offset);
}

ssize_t write(int fd, const void *data, size_t len)
{
    return fails("write", fd) ? -1 : REAL(write)(fd, data, len);
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
    return fails("write", fd) ? -1 : REAL(writev)(fd, parts, count);
}

ssize_t pwrite64(int fd, const void *data, size_t len, off64_t offset)
{
    return fails("write", fd) ? -1 : REAL(pwrite64)(fd, data, len, offset);
}

int getaddrinfo(const char *host, const char *service, const struct addrinfo *hints, struct addrinfo **found)
{
    const char *silent = getenv("SHIM_SILENT");
    int fd = silent && host ? open(silent, O_WRONLY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        dprintf(fd, "%s\n", host);
        close(fd);
    }
    while (fd >= 0 && access(silent, F_OK) == 0) {
        struct timespec rest = {0, 100000000};
        nanosleep(&rest, NULL);
    }
    return REAL(getaddrinfo)(host, service, hints, found);
}

int adjtimex(struct timex *timex)
{
    const char *synced = getenv("SHIM_SYNCED");
    int (*real)(struct timex *) = dlsym(RTLD_NEXT, "adjtimex");
    if (!synced)
        return real(timex);
    int is_synced = access(synced, F_OK) == 0;
    timex->status = is_synced ? 0 : STA_UNSYNC;
    timex->maxerror = is_synced ? 1000 : 16000000;
    return 0;
}
