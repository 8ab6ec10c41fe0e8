/*
 * What glibc 2.28 lacks of what our programs, and the archives linked with them, call when they are built on a newer one. Linked
 * into the programs of the binary tarball and the wheel, with the stub libraries of make-stubs; never into the plugin, which
 * has glibc_floor.h (the same remedies, for objects of our own).
 */
/* Before the others, which would make strtol() a call of __isoc23_strtol(), and that one below a call of itself. */
#include "common/glibc_floor.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#undef fstat
#undef stat
#undef lstat
#undef fstatat
#undef gettid

/*
 * Programs built since 2.34 leave it to libc to run their constructors, which older ones do not. A program that
 * brings a function for this, as all did before, gets its constructors run everywhere. Linked with --wrap=__libc_start_main.
 */
typedef void constructor_fn(int argc, char **argv, char **env);
typedef int main_fn(int argc, char **argv, char **env);

extern constructor_fn *__init_array_start[] __attribute__((visibility("hidden")));
extern constructor_fn *__init_array_end[] __attribute__((visibility("hidden")));
void _init(void);

int __real___libc_start_main(main_fn *start, int argc, char **argv, constructor_fn *init,
			     void (*fini)(void), void (*loader_fini)(void), void *stack_end);
int __wrap___libc_start_main(main_fn *start, int argc, char **argv, constructor_fn *init,
			     void (*fini)(void), void (*loader_fini)(void), void *stack_end);

static void run_constructors(int argc, char **argv, char **env)
{
	size_t count = (size_t)(__init_array_end - __init_array_start);

	_init();
	for (size_t i = 0; i < count; i++)
		__init_array_start[i](argc, argv, env);
}

int __wrap___libc_start_main(main_fn *start, int argc, char **argv, constructor_fn *init,
			     void (*fini)(void), void (*loader_fini)(void), void *stack_end)
{
	return __real___libc_start_main(start, argc, argv, init ? init : run_constructors, fini,
					loader_fini, stack_end);
}

/* 2.33: before, these were inline functions of the headers. */
int fstat(int fd, struct stat *st)
{
	return floor_fstat(fd, st);
}

int stat(const char *path, struct stat *st)
{
	return floor_fstatat(AT_FDCWD, path, st, 0);
}

int lstat(const char *path, struct stat *st)
{
	return floor_fstatat(AT_FDCWD, path, st, AT_SYMLINK_NOFOLLOW);
}

int fstatat(int dir, const char *path, struct stat *st, int flags)
{
	return floor_fstatat(dir, path, st, flags);
}

/* On 64-bit machines the same. */
int fstat64(int fd, struct stat64 *st) __attribute__((alias("fstat")));
int stat64(const char *path, struct stat64 *st) __attribute__((alias("stat")));
int lstat64(const char *path, struct stat64 *st) __attribute__((alias("lstat")));
int fstatat64(int dir, const char *path, struct stat64 *st, int flags)
	__attribute__((alias("fstatat")));

/* 2.30 */
pid_t gettid(void)
{
	return floor_gettid();
}

/* 2.36. The one of libc ends the program, too, if the kernel has no random bytes. */
void arc4random_buf(void *bytes, size_t size)
{
	char *to = bytes;

	while (size > 0) {
		ssize_t count = getrandom(to, size, 0);

		if (count <= 0)
			abort();
		to += count;
		size -= (size_t)count;
	}
}

/* 2.34: before, the headers gave them these names. */
int __res_query(const char *name, int class, int type, unsigned char *answer, int size);
int __dn_expand(const unsigned char *message, const unsigned char *end, const unsigned char *from,
		char *to, int size);
int res_query(const char *name, int class, int type, unsigned char *answer, int size);
int dn_expand(const unsigned char *message, const unsigned char *end, const unsigned char *from,
	      char *to, int size);

int res_query(const char *name, int class, int type, unsigned char *answer, int size)
{
	return __res_query(name, class, type, answer, size);
}

int dn_expand(const unsigned char *message, const unsigned char *end, const unsigned char *from,
	      char *to, int size)
{
	return __dn_expand(message, end, from, to, size);
}

/* 2.38: headers call these so that "0b1" is a number with C23. None of our texts has binary numbers. */
long __isoc23_strtol(const char *text, char **end, int base);
unsigned long __isoc23_strtoul(const char *text, char **end, int base);
long long __isoc23_strtoll(const char *text, char **end, int base);
unsigned long long __isoc23_strtoull(const char *text, char **end, int base);
int __isoc23_sscanf(const char *text, const char *format, ...);
int __isoc23_fscanf(FILE *file, const char *format, ...);

long __isoc23_strtol(const char *text, char **end, int base)
{
	return strtol(text, end, base);
}

unsigned long __isoc23_strtoul(const char *text, char **end, int base)
{
	return strtoul(text, end, base);
}

long long __isoc23_strtoll(const char *text, char **end, int base)
{
	return strtoll(text, end, base);
}

unsigned long long __isoc23_strtoull(const char *text, char **end, int base)
{
	return strtoull(text, end, base);
}

int __isoc23_sscanf(const char *text, const char *format, ...)
{
	va_list list;
	int count;

	va_start(list, format);
	count = vsscanf(text, format, list);
	va_end(list);
	return count;
}

int __isoc23_fscanf(FILE *file, const char *format, ...)
{
	va_list list;
	int count;

	va_start(list, format);
	count = vfscanf(file, format, list);
	va_end(list);
	return count;
}
