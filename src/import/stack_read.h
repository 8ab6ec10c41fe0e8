/*
 * What the threads of a process are doing, as other programs and the kernel describe it: py-spy's JSON, the text of
 * eu-stack and gdb, files of /proc. Values of arguments and variables are never kept, and what looks like a secret is
 * replaced.
 *
 *	stack_init(&stack, pid);
 *	stack_read_pyspy(&stack, text, length);     in any order, any of them
 *	stack_read_native(&stack, text, length);
 *	stack_read_syscall(stack_thread(&stack, tid), text);
 *	stack_say(&stack, place, sizeof(place));
 *	stack_release(&stack);
 *
 * No text is trusted: all lists are bounded, and all that is kept is terminated and without control characters.
 */
#ifndef STACK_READ_H
#define STACK_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/status.h"

enum {
	STACK_THREADS_MAX = 1024,
	STACK_FRAMES_MAX = 128, /* of a thread */
	STACK_FILE = 192,
	STACK_FUNCTION = 96,
	STACK_PLACE = 640, /* a text of stack_say() */
};

struct stack_frame {
	char file[STACK_FILE]; /* "" unknown */
	char function[STACK_FUNCTION];
	uint32_t line; /* 0 unknown */
	bool is_python;
};

struct stack_thread {
	int64_t tid;	 /* 0: unknown, as py-spy's before Python 3.11 */
	int64_t own_tid; /* in its own PID namespace, which is the one that Python knows; 0: unknown */
	char name[64];
	bool is_main;
	bool owns_gil;
	struct stack_frame *frames; /* Python's if known, else native ones; innermost first */
	size_t frame_count;
	/* From /proc. */
	char state; /* R, S, D, T, t, Z; 0 unknown */
	bool is_in_user_code;
	char syscall[24];    /* "futex"; "" none or unknown */
	int64_t waits_on;    /* its file descriptor; -1: none */
	char waits_for[128]; /* what that is: "a pipe", "a socket to 10.0.0.2:443", a path */
	char kernel[160];    /* kernel functions, innermost first */
	int cpu_percent;     /* of one core, over the last second; -1 unknown */
	uint64_t cpu_ns;     /* so far */
	bool is_cpu_known;
	bool is_python; /* frames are Python's */
	uint64_t
		stopped_ns; /* for whoever takes them: when it was first seen stopped; 0: it runs */
};

struct stack {
	int64_t pid;
	struct stack_thread *threads;
	size_t thread_count;
	size_t threads_left_out;
	bool has_python;
	bool has_native;
};

void stack_init(struct stack *stack, int64_t pid);
void stack_release(struct stack *stack);

/* The thread with this id, added if it is new. NULL: too many, or no memory. Valid until the next one is added. */
struct stack_thread *stack_thread(struct stack *stack, int64_t tid);

/* ERR_FORMAT: not the JSON of `py-spy dump --json`, or without any frame. ERR_NO_SPACE. */
enum status stack_read_pyspy(struct stack *stack, const char *text, size_t length);

/*
 * The text of `eu-stack` or of gdb's `thread apply all bt`. Threads that have frames keep them. ERR_FORMAT: no frame in
 * it. ERR_NO_SPACE.
 */
enum status stack_read_native(struct stack *stack, const char *text, size_t length);

/* One text of /proc/PID/task/TID/: syscall, stack (or wchan), schedstat, stat. What does not fit is left alone. */
void stack_read_syscall(struct stack_thread *thread, const char *text);
void stack_read_kernel(struct stack_thread *thread, const char *text);
void stack_read_stat(struct stack_thread *thread, const char *text);
/* Nanoseconds on a processor so far. False: not the text of schedstat. */
bool stack_read_schedstat(const char *text, uint64_t *cpu_ns);

/* What a link of /proc/PID/fd names: "a pipe", "/data/x". For a socket false, and its inode. */
bool stack_read_link(const char *link, char *to, size_t size, uint64_t *socket);
/* Finds the socket in the text of /proc/PID/net/tcp or tcp6: "a socket to 10.0.0.2:443". */
bool stack_read_peer(const char *text, uint64_t socket, char *to, size_t size);

/*
 * Where it is, in one phrase after "is": "in train.py:88 in step < train.py:120 in main (asleep in read from a pipe)",
 * "asleep in clock_nanosleep". The innermost frames outside the libraries that only wait, of the main thread or the one
 * that has frames. Without the share of CPU time, so that ranks in the same place have the same text. "" if nothing is
 * known.
 */
void stack_say(const struct stack *stack, char *to, size_t size);

/* "asleep in read from a pipe", "running"; "" unknown. */
void stack_say_state(const struct stack_thread *thread, char *to, size_t size);

#endif
