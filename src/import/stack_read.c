/* Parsers of py-spy, eu-stack, gdb and /proc, and the stack in words. */
#include "import/stack_read.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/attributes.h"
#include "common/secret.h"
#include "common/text.h"
#include "import/plain_values.h"

void stack_init(struct stack *stack, int64_t pid)
{
	*stack = (struct stack){ .pid = pid };
}

void stack_release(struct stack *stack)
{
	for (size_t i = 0; i < stack->thread_count; i++)
		free(stack->threads[i].frames);
	free(stack->threads);
	*stack = (struct stack){ .pid = stack->pid };
}

static struct stack_thread *add_thread(struct stack *stack, int64_t tid)
{
	struct stack_thread *thread;

	if (stack->thread_count == STACK_THREADS_MAX ||
	    !list_grow(&stack->threads, stack->thread_count, sizeof(*stack->threads))) {
		stack->threads_left_out++;
		return NULL;
	}
	thread = &stack->threads[stack->thread_count++];
	*thread = (struct stack_thread){
		.tid = tid, .is_main = tid == stack->pid, .waits_on = -1, .cpu_percent = -1
	};
	return thread;
}

struct stack_thread *stack_thread(struct stack *stack, int64_t tid)
{
	for (size_t i = 0; i < stack->thread_count; i++)
		if (stack->threads[i].tid == tid)
			return &stack->threads[i];
	return add_thread(stack, tid);
}

static struct stack_frame *add_frame(struct stack_thread *thread)
{
	if (thread->frame_count == STACK_FRAMES_MAX ||
	    !list_grow(&thread->frames, thread->frame_count, sizeof(*thread->frames)))
		return NULL;
	thread->frames[thread->frame_count] = (struct stack_frame){ .line = 0 };
	return &thread->frames[thread->frame_count++];
}

/* Paths and names can contain what somebody put there. */
static void hide_secret(char *text, size_t size)
{
	if (secret_is_value(text))
		text_copy(text, size, "(hidden)");
}

/* ---- py-spy ---------------------------------------------------------------------------------- */

/* "/usr/lib/python3/dist-packages/torch/nn/x.py" is "torch/nn/x.py". */
static void shorten_file(char *file)
{
	static const char *const roots[] = { "/site-packages/", "/dist-packages/" };

	for (size_t i = 0; i < ARRAY_LENGTH(roots); i++) {
		char *at = strstr(file, roots[i]);

		if (at != NULL) {
			at += strlen(roots[i]);
			memmove(file, at, strlen(at) + 1);
		}
	}
}

/* Of a path that is too long, the end says more. */
static void take_file(struct stack_frame *frame, const struct plain_value *from)
{
	enum { ROOM = sizeof(frame->file) - sizeof("...") };
	char path[4096] = "";
	const char *at = path;

	plain_text(from, path, sizeof(path));
	shorten_file(path);
	hide_secret(path, sizeof(path));
	if (text_copy(frame->file, sizeof(frame->file), path))
		return;
	at += strlen(path) - ROOM;
	while (((unsigned char)*at & 0xc0) == 0x80) /* inside a character */
		at++;
	text_format(frame->file, sizeof(frame->file), "...%s", at);
}

static void take_python_frame(struct stack_thread *thread, const struct plain_value *from)
{
	struct stack_frame *frame = add_frame(thread);
	int64_t line = 0;

	if (frame == NULL)
		return;
	frame->is_python = true;
	take_file(frame, plain_get(from, "filename"));
	plain_text(plain_get(from, "name"), frame->function, sizeof(frame->function));
	plain_integer(plain_get(from, "line"), &line);
	frame->line = line > 0 && line < INT32_MAX ? (uint32_t)line : 0;
	hide_secret(frame->function, sizeof(frame->function));
}

/*
 * Without ids (before Python 3.11) and without names (Python 2, `threading` not imported, forked from a thread) it is the
 * oldest one, which is the last. UINT32_MAX: its id says it.
 */
static uint32_t find_main(const struct plain_value *list)
{
	uint32_t count = plain_count(list);

	for (uint32_t i = 0; i < count; i++) {
		int64_t tid = 0;

		plain_integer(plain_get(list->items[i], "os_thread_id"), &tid);
		if (tid > 0)
			return UINT32_MAX;
		if (plain_is(plain_get(list->items[i], "thread_name"), "MainThread"))
			return i;
	}
	return count - 1;
}

/* In a container the id is one of its own PID namespace, and may be that of another thread here. */
static struct stack_thread *python_thread(struct stack *stack, int64_t own_tid)
{
	bool is_elsewhere = false;

	for (size_t i = 0; i < stack->thread_count && own_tid > 0; i++) {
		struct stack_thread *thread = &stack->threads[i];

		if (thread->own_tid == own_tid)
			return thread;
		is_elsewhere |= thread->own_tid > 0 && thread->own_tid != thread->tid;
	}
	return own_tid > 0 && !is_elsewhere ? stack_thread(stack, own_tid) : add_thread(stack, 0);
}

static void take_python_thread(struct stack *stack, const struct plain_value *from, bool is_main)
{
	const struct plain_value *frames = plain_get(from, "frames");
	struct stack_thread *thread;
	char name[sizeof(thread->name)] = "";
	int64_t tid = 0;

	plain_integer(plain_get(from, "os_thread_id"), &tid);
	plain_text(plain_get(from, "thread_name"), name, sizeof(name));
	thread = is_main ? stack_thread(stack, stack->pid) : python_thread(stack, tid);
	if (thread == NULL || thread->is_python)
		return;
	if (name[0] != '\0')
		text_copy(thread->name, sizeof(thread->name), name);
	thread->is_main |= strcmp(name, "MainThread") == 0;
	plain_truth(plain_get(from, "owns_gil"), &thread->owns_gil);
	if (plain_count(frames) == 0)
		return;
	thread->frame_count = 0;
	thread->is_python = stack->has_python = true;
	for (uint32_t i = 0; i < plain_count(frames) && i < STACK_FRAMES_MAX; i++)
		take_python_frame(thread, frames->items[i]);
}

enum status stack_read_pyspy(struct stack *stack, const char *text, size_t length)
{
	const struct plain_value *root;
	struct plain_values values;
	uint32_t main_at;

	plain_values_init(&values);
	root = plain_values_json(&values, text, length);
	main_at = find_main(root);
	for (uint32_t i = 0; i < plain_count(root); i++)
		take_python_thread(stack, root->items[i], i == main_at);
	plain_values_release(&values);
	return stack->has_python ? OK : ERR_FORMAT;
}

/* ---- eu-stack and gdb ------------------------------------------------------------------------ */

/* "TID 4711:" of eu-stack, "Thread 2 (Thread 0x7f.. (LWP 4711) "name"):" of gdb. 0: neither. */
static int64_t thread_of_line(const char *line)
{
	const char *number = NULL;
	char *end;
	long long tid;

	if (strncmp(line, "TID ", 4) == 0) {
		number = line + 4;
	} else if (strncmp(line, "Thread ", 7) == 0) {
		number = strstr(line, "(LWP ");
		number = number != NULL ? number + 5 : strstr(line, "process ");
		if (number != NULL && *number == 'p')
			number += strlen("process ");
	}
	if (number == NULL)
		return 0;
	tid = strtoll(number, &end, 10);
	return end != number && tid > 0 && tid <= INT32_MAX ? tid : 0;
}

/* Without its arguments (gdb writes values), and without the version of a symbol. */
static void take_function(struct stack_frame *frame, const char *text)
{
	size_t length = strcspn(text, "\n");
	const char *values = memmem(text, length, " (", 2);

	if (values != NULL)
		length = (size_t)(values - text);
	if (memchr(text, '@', length) != NULL)
		length = strcspn(text, "@");
	text_from_field(frame->function, sizeof(frame->function), text, length);
	if (strcmp(frame->function, "??") == 0)
		frame->function[0] = '\0';
	hide_secret(frame->function, sizeof(frame->function));
}

/* gdb: " at ./nptl/futex.c:57", " from /lib/libc.so.6", at the end of the line. */
static void take_source(struct stack_frame *frame, const char *line)
{
	char copy[1024], *at = NULL, *colon;

	text_from_field(copy, sizeof(copy), line, strcspn(line, "\n"));
	for (char *next = copy; (next = strstr(next, ") at ")) != NULL; next++)
		at = next + 5;
	if (at == NULL)
		return;
	colon = strrchr(at, ':');
	if (colon != NULL) {
		long number = strtol(colon + 1, NULL, 10);

		frame->line = number > 0 && number < INT32_MAX ? (uint32_t)number : 0;
		*colon = '\0';
	}
	text_copy(frame->file, sizeof(frame->file), at);
	hide_secret(frame->file, sizeof(frame->file));
}

/* "#3  0x00007f2a name", "#3  0x00007f2a in name (a=1) at file.c:7", "#0  name (a=1) at file.c:7". */
static void take_native_frame(struct stack_thread *thread, const char *line)
{
	struct stack_frame *frame;
	const char *at = line + 1 + strspn(line + 1, "0123456789");

	frame = add_frame(thread);
	if (frame == NULL)
		return;
	at += strspn(at, " ");
	if (strncmp(at, "0x", 2) == 0) {
		at += 2 + strspn(at + 2, "0123456789abcdef");
		at += strncmp(at, " - 1", 4) == 0 ? 4 : 0;
		at += strspn(at, " ");
		at += strncmp(at, "in ", 3) == 0 ? 3 : 0;
	}
	take_function(frame, at);
	take_source(frame, at);
}

enum status stack_read_native(struct stack *stack, const char *text, size_t length)
{
	struct stack_thread *thread = NULL;
	char line[2048];
	bool has_any = false;

	for (size_t at = 0, bytes; at < length; at += bytes + 1) {
		const char *end = memchr(text + at, '\n', length - at);
		int64_t tid;

		bytes = end != NULL ? (size_t)(end - (text + at)) : length - at;
		text_from_field(line, sizeof(line), text + at, bytes);
		tid = thread_of_line(line);
		if (tid != 0) {
			thread = stack_thread(stack, tid);
			if (thread != NULL && thread->frame_count > 0)
				thread = NULL; /* Python's frames say more */
		} else if (line[0] == '#' && isdigit((unsigned char)line[1])) {
			has_any = true;
			if (thread != NULL)
				take_native_frame(thread, line);
		}
	}
	stack->has_native |= has_any;
	return has_any ? OK : ERR_FORMAT;
}

/* ---- /proc ----------------------------------------------------------------------------------- */

/* Those in which a thread can wait for long. The first argument of some is a file descriptor. */
static const struct {
	const char *name;
	int16_t x86_64, aarch64; /* -1: it has none */
	bool has_descriptor;
} syscalls[] = {
	{ "read", 0, 63, true },
	{ "write", 1, 64, true },
	{ "close", 3, 57, true },
	{ "poll", 7, -1, false },
	{ "ppoll", 271, 73, false },
	{ "mmap", 9, 222, false },
	{ "munmap", 11, 215, false },
	{ "ioctl", 16, 29, true },
	{ "pread64", 17, 67, true },
	{ "pwrite64", 18, 68, true },
	{ "readv", 19, 65, true },
	{ "writev", 20, 66, true },
	{ "preadv", 295, 69, true },
	{ "pwritev", 296, 70, true },
	{ "select", 23, -1, false },
	{ "pselect6", 270, 72, false },
	{ "sched_yield", 24, 124, false },
	{ "msync", 26, 227, false },
	{ "madvise", 28, 233, false },
	{ "pause", 34, -1, false },
	{ "nanosleep", 35, 101, false },
	{ "clock_nanosleep", 230, 115, false },
	{ "sendfile", 40, 71, true },
	{ "connect", 42, 203, true },
	{ "accept", 43, 202, true },
	{ "accept4", 288, 242, true },
	{ "sendto", 44, 206, true },
	{ "recvfrom", 45, 207, true },
	{ "sendmsg", 46, 211, true },
	{ "recvmsg", 47, 212, true },
	{ "wait4", 61, 260, false },
	{ "waitid", 247, 95, false },
	{ "semop", 65, 193, false },
	{ "semtimedop", 220, 192, false },
	{ "msgrcv", 70, 188, false },
	{ "fcntl", 72, 25, true },
	{ "flock", 73, 32, true },
	{ "fsync", 74, 82, true },
	{ "fdatasync", 75, 83, true },
	{ "ftruncate", 77, 46, true },
	{ "rt_sigtimedwait", 128, 137, false },
	{ "rt_sigsuspend", 130, 133, false },
	{ "sync", 162, 81, false },
	{ "syncfs", 306, 267, true },
	{ "futex", 202, 98, false },
	{ "futex_waitv", 449, 449, false },
	{ "io_getevents", 208, 4, false },
	{ "io_uring_enter", 426, 426, true },
	{ "getdents64", 217, 61, true },
	{ "restart_syscall", 219, 128, false },
	{ "exit_group", 231, 94, false },
	{ "epoll_wait", 232, -1, true },
	{ "epoll_pwait", 281, 22, true },
	{ "epoll_pwait2", 441, 441, true },
	{ "openat", 257, 56, false },
	{ "newfstatat", 262, 79, false },
	{ "statx", 332, 291, false },
	{ "unlinkat", 263, 35, false },
	{ "renameat2", 316, 276, false },
	{ "splice", 275, 76, true },
	{ "copy_file_range", 326, 285, true },
	{ "fallocate", 285, 47, true },
};

static int number_here(size_t at)
{
#if defined(__aarch64__)
	return syscalls[at].aarch64;
#else
	return syscalls[at].x86_64;
#endif
}

/* "230 0x1 0x1 0x7ffe ...", "-1 0x7ffe 0x5555" (blocked, not in a system call), "running". */
void stack_read_syscall(struct stack_thread *thread, const char *text)
{
	char *end;
	long number;

	if (strncmp(text, "running", 7) == 0) {
		thread->is_in_user_code = true;
		return;
	}
	number = strtol(text, &end, 10);
	if (end == text || *end != ' ')
		return;
	if (number < 0) {
		thread->is_in_user_code = true;
		return;
	}
	text_format(thread->syscall, sizeof(thread->syscall), "system call %ld", number % 100000);
	for (size_t i = 0; i < ARRAY_LENGTH(syscalls); i++) {
		unsigned long long argument;

		if (number_here(i) != number)
			continue;
		text_copy(thread->syscall, sizeof(thread->syscall), syscalls[i].name);
		argument = strtoull(end, NULL, 16);
		if (syscalls[i].has_descriptor && argument <= INT32_MAX)
			thread->waits_on = (int64_t)argument;
	}
}

/* Lines like "[<0>] hrtimer_nanosleep+0x74/0xf0", or the one name of wchan. */
void stack_read_kernel(struct stack_thread *thread, const char *text)
{
	static const char *const entries[] = { "do_syscall",	 "entry_SYSCALL", "el0",
					       "invoke_syscall", "__x64_sys",	  "x64_sys_call",
					       "__arm64_sys",	 "ret_from_fork" };
	unsigned int shown = 0;

	thread->kernel[0] = '\0';
	for (const char *line = text; *line != '\0' && shown < 4;) {
		size_t length = strcspn(line, "\n");
		const char *name = line[0] == '[' ? memchr(line, ' ', length) : line;
		char word[64];
		bool is_entry = false;

		if (name != NULL) {
			name += *name == ' ';
			text_from_field(word, sizeof(word), name,
					strcspn(name, "+ \n") < length ? strcspn(name, "+ \n")
								       : length);
			for (size_t i = 0; i < ARRAY_LENGTH(entries); i++)
				is_entry |= strncmp(word, entries[i], strlen(entries[i])) == 0;
			if (word[0] != '\0' && strcmp(word, "0") != 0 && !is_entry) {
				text_append(thread->kernel, sizeof(thread->kernel), "%s%s",
					    shown > 0 ? " < " : "", word);
				shown++;
			}
		}
		line += length + (line[length] == '\n');
	}
}

/* "4711 (name) S ...": the name can contain anything. */
void stack_read_stat(struct stack_thread *thread, const char *text)
{
	const char *start = strchr(text, '('), *end = strrchr(text, ')');

	if (start == NULL || end == NULL || end < start || end[1] != ' ')
		return;
	if (thread->name[0] == '\0')
		text_from_field(thread->name, sizeof(thread->name), start + 1,
				(size_t)(end - start) - 1);
	if (isalpha((unsigned char)end[2]))
		thread->state = end[2];
}

bool stack_read_schedstat(const char *text, uint64_t *cpu_ns)
{
	char *end;
	unsigned long long ns = strtoull(text, &end, 10);

	if (end == text || *end != ' ')
		return false;
	*cpu_ns = ns;
	return true;
}

bool stack_read_link(const char *link, char *to, size_t size, uint64_t *socket)
{
	static const struct {
		const char *start, *what;
	} kinds[] = { { "pipe:", "a pipe" },
		      { "anon_inode:[eventpoll]", "epoll" },
		      { "anon_inode:[eventfd]", "an eventfd" },
		      { "anon_inode:[timerfd]", "a timer" },
		      { "anon_inode:[signalfd]", "signals" },
		      { "anon_inode:[io_uring]", "io_uring" },
		      { "anon_inode:[pidfd]", "a process" } };
	unsigned long long inode;
	char *end;

	*socket = 0;
	if (strncmp(link, "socket:[", 8) == 0) {
		inode = strtoull(link + 8, &end, 10);
		if (*end == ']')
			*socket = inode;
		return false;
	}
	for (size_t i = 0; i < ARRAY_LENGTH(kinds); i++)
		if (strncmp(link, kinds[i].start, strlen(kinds[i].start)) == 0) {
			text_copy(to, size, kinds[i].what);
			return true;
		}
	text_from_field(to, size, link, strlen(link));
	hide_secret(to, size);
	return true;
}

/* As the kernel writes it: the bytes of each word of the address in host order. */
static bool read_address(const char *at, char *to, size_t size)
{
	unsigned int words[4] = { 0 }, port, count = 0;
	unsigned char bytes[16];
	char word[9] = "";

	while (count < 4 && strspn(at, "0123456789ABCDEF") >= 8) {
		memcpy(word, at, 8);
		words[count++] = (unsigned int)strtoul(word, NULL, 16);
		at += 8;
	}
	if ((count != 1 && count != 4) || *at != ':' || strspn(at + 1, "0123456789ABCDEF") != 4)
		return false;
	port = (unsigned int)strtoul(at + 1, NULL, 16);
	memcpy(bytes, words, sizeof(bytes));
	if (count == 4 && words[0] == 0 && words[1] == 0 &&
	    memcmp(bytes + 8, "\0\0\xff\xff", 4) == 0) {
		memcpy(bytes, bytes + 12, 4);
		count = 1;
	}
	if (count == 1)
		return text_format(to, size, "a socket to %u.%u.%u.%u:%u", bytes[0], bytes[1],
				   bytes[2], bytes[3], port);
	text_copy(to, size, "a socket to [");
	for (unsigned int i = 0; i < 8; i++)
		text_append(to, size, "%s%x", i > 0 ? ":" : "",
			    (unsigned int)bytes[2 * i] << 8 | bytes[2 * i + 1]);
	return text_append(to, size, "]:%u", port);
}

bool stack_read_peer(const char *text, uint64_t socket, char *to, size_t size)
{
	for (const char *line = text; *line != '\0';) {
		size_t length = strcspn(line, "\n");
		char copy[256], *save = NULL, *fields[10] = { NULL };
		size_t count = 0;

		text_from_field(copy, sizeof(copy), line, length);
		for (char *word = strtok_r(copy, " ", &save); word != NULL && count < 10;
		     word = strtok_r(NULL, " ", &save))
			fields[count++] = word;
		if (count == 10 && strtoull(fields[9], NULL, 10) == socket && socket != 0) {
			if (strcmp(fields[3], "0A") == 0)
				return text_copy(to, size, "a listening socket");
			return read_address(fields[2], to, size);
		}
		line += length + (line[length] == '\n');
	}
	return false;
}

/* ---- in words -------------------------------------------------------------------------------- */

static bool has_part(const char *text, const char *const *parts, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strstr(text, parts[i]) != NULL)
			return true;
	return false;
}

/* Python files in which a thread only waits for something that its caller wanted. */
static bool is_waiting_library(const char *file)
{
	static const char *const parts[] = { "torch/distributed/",
					     "/threading.py",
					     "/selectors.py",
					     "/queue.py",
					     "multiprocessing/",
					     "/socket.py",
					     "/ssl.py",
					     "/subprocess.py",
					     "/asyncio/",
					     "/concurrent/",
					     "/importlib/",
					     "/runpy.py",
					     "torch/_ops.py",
					     "torch/autograd/",
					     "torch/nn/modules/module.py" };

	return file[0] == '\0' || file[0] == '<' || has_part(file, parts, ARRAY_LENGTH(parts));
}

/* Callers in libraries say nothing: those of the program do. */
static bool is_library(const char *file)
{
	static const char *const parts[] = { "/torch/", "/lightning/", "/transformers/",
					     "/python3" };

	return is_waiting_library(file) || strncmp(file, "torch/", 6) == 0 ||
	       has_part(file, parts, ARRAY_LENGTH(parts));
}

static void say_frame(const struct stack_frame *frame, char *to, size_t size, unsigned int shown)
{
	text_append(to, size, "%s", shown > 0 ? " < " : "");
	if (frame->is_python)
		text_append(to, size, "%s:%u in %s", frame->file, frame->line,
			    frame->function[0] ? frame->function : "?");
	else
		text_append(to, size, "%s", frame->function);
}

static void say_python(const struct stack_thread *thread, char *to, size_t size)
{
	enum { SHOWN = 3 };
	unsigned int shown = 0;

	for (size_t i = 0; i < thread->frame_count && shown < SHOWN; i++) {
		const struct stack_frame *frame = &thread->frames[i];

		if (shown == 0 ? is_waiting_library(frame->file) : is_library(frame->file))
			continue;
		say_frame(frame, to, size, shown++);
	}
	if (shown == 0)
		say_frame(&thread->frames[0], to, size, 0);
}

static void say_native(const struct stack_thread *thread, char *to, size_t size)
{
	enum { SHOWN = 5 };
	unsigned int shown = 0;

	for (size_t i = 0; i < thread->frame_count && shown < SHOWN; i++)
		if (thread->frames[i].function[0] != '\0')
			say_frame(&thread->frames[i], to, size, shown++);
}

/* The main thread unless only another one has frames: of those the one that runs Python code. */
static const struct stack_thread *choose_thread(const struct stack *stack)
{
	const struct stack_thread *best = NULL;
	int most = -1;

	for (size_t i = 0; i < stack->thread_count; i++) {
		const struct stack_thread *thread = &stack->threads[i];
		int value = (thread->frame_count > 0) * (thread->is_python ? 16 : 8) +
			    thread->is_main * 4 + thread->owns_gil * 2;

		if (value > most) {
			most = value;
			best = thread;
		}
	}
	return best;
}

void stack_say_state(const struct stack_thread *thread, char *to, size_t size)
{
	enum { BUSY_PERCENT = 50 };
	/* On an overloaded machine a running thread may get little. */
	bool is_busy = thread->cpu_percent >= BUSY_PERCENT || thread->state == 'R';

	to[0] = '\0';
	if (thread->state == 'T' || thread->state == 't')
		text_copy(to, size, "stopped");
	else if (thread->state == 'Z')
		text_copy(to, size, "ended");
	else if (is_busy)
		text_copy(to, size, "running");
	else if (thread->state == 'D')
		text_copy(to, size, "in uninterruptible sleep");
	else if (thread->state == 'S' || thread->cpu_percent >= 0)
		text_copy(to, size, "asleep");
	if (to[0] == '\0' || is_busy || thread->syscall[0] == '\0')
		return;
	text_append(to, size, " in %s", thread->syscall);
	if (thread->waits_for[0] != '\0')
		text_append(to, size, "%s%s",
			    strstr(thread->syscall, "read") || strstr(thread->syscall, "recv")
				    ? " from "
				    : " on ",
			    thread->waits_for);
}

void stack_say(const struct stack *stack, char *to, size_t size)
{
	const struct stack_thread *thread = choose_thread(stack);
	char frames[STACK_PLACE] = "", state[240] = "";

	to[0] = '\0';
	if (thread == NULL)
		return;
	if (thread->frame_count > 0 && thread->is_python)
		say_python(thread, frames, sizeof(frames));
	else if (thread->frame_count > 0)
		say_native(thread, frames, sizeof(frames));
	stack_say_state(thread, state, sizeof(state));
	if (frames[0] == '\0')
		text_copy(to, size, state);
	else if (state[0] == '\0')
		text_format(to, size, "in %s", frames);
	else
		text_format(to, size, "in %s (%s)", frames, state);
}
