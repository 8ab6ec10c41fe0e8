/*
 * Keeps the plugin loadable on glibc 2.28 when it is built on a newer one. The Makefile includes
 * this header (-include) in every file of a plugin and nowhere else.
 *
 * A library requires each symbol in the version that was the default where it was linked, and glibc
 * gave old functions new default versions: threads and dlopen moved into libc.so in 2.34, stat()
 * became a real function in 2.33, C23 changed what strtol() accepts in 2.38. Three remedies:
 *
 * - request the old version by name, where there is one (.symver);
 * - make the system call directly, where there is none (the stat family, gettid);
 * - disable the header's redirection (strtol and scanf).
 *
 * The old versions were in libpthread.so.0 and libdl.so.2, so the plugin lists both as needed; on
 * new systems they are empty. scripts/check-glibc-floor fails if a symbol slips through.
 */
#ifndef GLIBC_FLOOR_H
#define GLIBC_FLOOR_H

#include <features.h>

#ifdef __GLIBC__

#undef __GLIBC_USE_C2X_STRTOL
#define __GLIBC_USE_C2X_STRTOL 0
#undef __GLIBC_USE_C23_STRTOL
#define __GLIBC_USE_C23_STRTOL 0

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define FLOOR_PIN(symbol, x86_64_version) \
	__asm__(".symver " #symbol "," #symbol "@GLIBC_" x86_64_version)
#elif defined(__aarch64__)
/* aarch64 has existed in glibc since 2.17: no symbol there is older. */
#define FLOOR_PIN(symbol, x86_64_version) __asm__(".symver " #symbol "," #symbol "@GLIBC_2.17")
#else
#define FLOOR_PIN(symbol, x86_64_version) _Static_assert(1, "no floor on this machine")
#endif

FLOOR_PIN(dladdr, "2.2.5");
FLOOR_PIN(dlclose, "2.2.5");
FLOOR_PIN(dlerror, "2.2.5");
FLOOR_PIN(dlopen, "2.2.5");
FLOOR_PIN(dlsym, "2.2.5");
FLOOR_PIN(pthread_attr_setstacksize, "2.2.5");
FLOOR_PIN(pthread_condattr_setclock, "2.3.3");
FLOOR_PIN(pthread_create, "2.2.5");
FLOOR_PIN(pthread_detach, "2.2.5");
FLOOR_PIN(pthread_join, "2.2.5");
FLOOR_PIN(pthread_kill, "2.2.5");
FLOOR_PIN(pthread_mutex_timedlock, "2.2.5");
FLOOR_PIN(pthread_mutex_trylock, "2.2.5");
FLOOR_PIN(pthread_once, "2.2.5");
FLOOR_PIN(pthread_setaffinity_np, "2.3.4");
FLOOR_PIN(pthread_setname_np, "2.12");
FLOOR_PIN(pthread_sigmask, "2.2.5");
FLOOR_PIN(sem_destroy, "2.2.5");
FLOOR_PIN(sem_init, "2.2.5");
FLOOR_PIN(sem_post, "2.2.5");
FLOOR_PIN(sem_timedwait, "2.2.5");
FLOOR_PIN(sem_wait, "2.2.5");

/* On 64-bit machines the kernel's struct stat is the same as glibc's. */
static inline int floor_fstat(int fd, struct stat *st)
{
	return (int)syscall(SYS_fstat, fd, st);
}

static inline int floor_fstatat(int dir, const char *path, struct stat *st, int flags)
{
	return (int)syscall(SYS_newfstatat, dir, path, st, flags);
}

static inline pid_t floor_gettid(void)
{
	return (pid_t)syscall(SYS_gettid);
}

/* Function-like macros, so that `struct stat` is unaffected. */
#define fstat(fd, st) floor_fstat(fd, st)
#define stat(path, st) floor_fstatat(AT_FDCWD, path, st, 0)
#define lstat(path, st) floor_fstatat(AT_FDCWD, path, st, AT_SYMLINK_NOFOLLOW)
#define fstatat(dir, path, st, flags) floor_fstatat(dir, path, st, flags)
#define gettid() floor_gettid()

#endif

#endif
