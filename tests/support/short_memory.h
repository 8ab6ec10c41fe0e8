/*
 * malloc(), calloc() and realloc() of which one call fails, for a test program of its own: everything in it calls these.
 *
 *	short_memory_each("a report is made, or says why not", make_and_release, true);
 *
 * makes it fail at each place that allocates, one after the other: there the first two times.
 */
#ifndef SHORT_MEMORY_H
#define SHORT_MEMORY_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/status.h"
#include "tests/tap.h"

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *from, size_t size);
/* There are these with AddressSanitizer only. */
void *__attribute__((weak)) __interceptor_malloc(size_t size);
void *__attribute__((weak)) __interceptor_calloc(size_t count, size_t size);
void *__attribute__((weak)) __interceptor_realloc(void *from, size_t size);

enum { SHORT_MEMORY_PLACES = 1024, SHORT_MEMORY_CALLS = 4096 };

static struct {
	size_t left; /* calls until one fails; 0: none does */
	bool is_noting;
	size_t calls;
	struct {
		const void *from;
		int times;
	} places[SHORT_MEMORY_PLACES];
	size_t chosen[SHORT_MEMORY_CALLS];
	size_t count;
} short_memory;

/* A call from a place that was not tried twice is to fail in a run of its own. */
static inline void short_memory_note(const void *from)
{
	size_t i = 0;

	short_memory.calls++;
	while (i < SHORT_MEMORY_PLACES && short_memory.places[i].times > 0 &&
	       short_memory.places[i].from != from)
		i++;
	if (i == SHORT_MEMORY_PLACES || short_memory.count == SHORT_MEMORY_CALLS)
		abort();
	short_memory.places[i].from = from;
	if (++short_memory.places[i].times <= 2)
		short_memory.chosen[short_memory.count++] = short_memory.calls;
}

static inline bool short_memory_fails(const void *from)
{
	if (short_memory.is_noting)
		short_memory_note(from);
	if (short_memory.left == 0 || --short_memory.left > 0)
		return false;
	errno = ENOMEM;
	return true;
}

void *malloc(size_t size)
{
	if (short_memory_fails(__builtin_return_address(0)))
		return NULL;
	return __interceptor_malloc != NULL ? __interceptor_malloc(size) : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
	if (short_memory_fails(__builtin_return_address(0)))
		return NULL;
	return __interceptor_calloc != NULL ? __interceptor_calloc(count, size)
					    : __libc_calloc(count, size);
}

void *realloc(void *from, size_t size)
{
	if (short_memory_fails(__builtin_return_address(0)))
		return NULL;
	return __interceptor_realloc != NULL ? __interceptor_realloc(from, size)
					     : __libc_realloc(from, size);
}

/* `call` returns ERR_NO_SPACE if it noticed, and has released everything. must_notice: what it makes is never incomplete. */
static inline void short_memory_each(const char *what, enum status (*call)(void), bool must_notice)
{
	enum status status;
	size_t noticed = 0, i = 0;

	memset(&short_memory, 0, sizeof(short_memory));
	short_memory.is_noting = true;
	status = call();
	short_memory.is_noting = false;
	for (; i < short_memory.count && (status == OK || status == ERR_NO_SPACE); i++) {
		short_memory.left = short_memory.chosen[i];
		status = call();
		noticed += status == ERR_NO_SPACE;
		if (short_memory.left > 0)
			break;
	}
	short_memory.left = 0;
	if (!tap_line(i == short_memory.count && noticed > 0 && (!must_notice || noticed == i),
		      what, __FILE__, __LINE__))
		printf("# %zu of %zu failed, %zu noticed, status %d\n", i, short_memory.count,
		       noticed, (int)status);
}

#endif
