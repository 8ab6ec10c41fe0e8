/*
 * A job in a sandbox: a seccomp filter refuses system calls of the plugin, in init, in its threads
 * and at exit. The filter asks the main thread about each call of the thread that plays NCCL and of
 * all threads that the plugin starts; the main thread lets the job's own calls pass.
 *
 *	process_refused list			print the calls that the plugin makes, by name
 *	process_refused NAME ERROR		refuse every call of that name
 *	process_refused NUMBER ERROR		refuse the plugin's n-th call alone
 *
 * Prints "issued=N" and "refused=N". Exit status 3: the job was harmed; 4: no sandbox here.
 */
#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/attributes.h"
#include "common/order.h"
#include "common/text.h"
#include "plugin/abi_v5.h"

#ifndef SECCOMP_USER_NOTIF_FLAG_CONTINUE
#define SECCOMP_USER_NOTIF_FLAG_CONTINUE 1
#endif

enum { COMMS = 3, OPS = 100 };
enum { HARMED = 3, NO_SANDBOX = 4 };

#define CALL(name)                \
	{                         \
#name, SYS_##name \
	}

/* Whatever libc may use for what the plugin asks of it. */
static const struct {
	const char *name;
	long number;
} calls[] = {
	CALL(brk),
	CALL(clock_gettime),
	CALL(clock_nanosleep),
	CALL(clone),
	CALL(clone3),
	CALL(connect),
	CALL(close),
	CALL(dup),
	CALL(fallocate),
	CALL(fchmod),
	CALL(fchown),
	CALL(fcntl),
	CALL(fdatasync),
	CALL(fstat),
	CALL(fstatfs),
	CALL(fsync),
	CALL(ftruncate),
	CALL(futex),
	CALL(getcwd),
	CALL(getdents64),
	CALL(getegid),
	CALL(geteuid),
	CALL(getpid),
	CALL(getrandom),
	CALL(gettid),
	CALL(getuid),
	CALL(linkat),
	CALL(lseek),
	CALL(madvise),
	CALL(memfd_create),
	CALL(mkdirat),
	CALL(mmap),
	CALL(mprotect),
	CALL(munmap),
	CALL(newfstatat),
	CALL(openat),
	CALL(pipe2),
	CALL(ppoll),
	CALL(prctl),
	CALL(pread64),
	CALL(process_vm_readv),
	CALL(pwrite64),
	CALL(pwritev2),
	CALL(read),
	CALL(readlinkat),
	CALL(renameat),
	CALL(rseq),
	CALL(rt_sigaction),
	CALL(rt_sigpending),
	CALL(rt_sigprocmask),
	CALL(rt_sigreturn),
	CALL(rt_sigtimedwait),
	CALL(sched_getaffinity),
	CALL(sched_yield),
	CALL(set_robust_list),
	CALL(socket),
	CALL(statfs),
	CALL(statx),
	CALL(sysinfo),
	CALL(uname),
	CALL(unlinkat),
	CALL(utimensat),
	CALL(write),
	CALL(writev),
#if defined(__x86_64__)
	CALL(access),
	CALL(link),
	CALL(lstat),
	CALL(mkdir),
	CALL(open),
	CALL(poll),
	CALL(readlink),
	CALL(rename),
	CALL(stat),
	CALL(unlink),
#endif
};

static const struct {
	const char *name;
	int number;
} errors[] = {
	{ "EPERM", EPERM }, { "ENOSYS", ENOSYS }, { "EACCES", EACCES }, { "ENOMEM", ENOMEM }
};

static struct {
	bool is_list;
	long call;    /* or -1 */
	uint64_t nth; /* or 0 */
	int error;
	int listener; /* of the filter; -1: none */
	uint32_t is_ready;
	uint32_t is_inside; /* the plugin has the playing thread */
	pid_t player;
	uint64_t made, refused;
	bool is_made[1024]; /* by number */
} sandbox = { .call = -1, .listener = -1 };

static void die(int code, const char *what)
{
	fprintf(stderr, "process_refused: %s\n", what);
	_exit(code);
}

/* One write, because the playing thread may be inside stdio. */
__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
	char line[128];
	va_list list;
	int length;

	va_start(list, format);
	length = vsnprintf(line, sizeof(line), format, list);
	va_end(list);
	if (write(STDOUT_FILENO, line, (size_t)length) != length)
		_exit(HARMED);
}

static const char *name_of(long number)
{
	for (size_t i = 0; i < ARRAY_LENGTH(calls); i++)
		if (calls[i].number == number)
			return calls[i].name;
	return NULL;
}

static void say_calls(void)
{
	for (long i = 0; i < (long)ARRAY_LENGTH(sandbox.is_made); i++) {
		if (!sandbox.is_made[i])
			continue;
		if (name_of(i) != NULL)
			say("%s\n", name_of(i));
		else
			say("call-%ld\n", i);
	}
}

/* Without these no program can have threads (libc aborts), and a pid is never refused. */
static bool is_vital(long number)
{
	return number == SYS_futex || number == SYS_rseq || number == SYS_exit ||
	       number == SYS_exit_group || number == SYS_getpid;
}

static bool is_refused(const struct seccomp_notif *asked)
{
	long number = asked->data.nr;
	bool is_plugin = (pid_t)asked->pid != sandbox.player || load_acquire(&sandbox.is_inside);

	if (!is_plugin || is_vital(number))
		return false;
	sandbox.made++;
	if (number < (long)ARRAY_LENGTH(sandbox.is_made))
		sandbox.is_made[number] = true;
	return number == sandbox.call || sandbox.made == sandbox.nth;
}

static void answer_one(void)
{
	struct seccomp_notif asked = { 0 };
	struct seccomp_notif_resp answer = { 0 };

	if (ioctl(sandbox.listener, SECCOMP_IOCTL_NOTIF_RECV, &asked) == -1)
		return;
	answer.id = asked.id;
	if (is_refused(&asked)) {
		sandbox.refused++;
		answer.error = -sandbox.error;
	} else {
		answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	}
	if (asked.data.nr == SYS_exit_group) {
		if (sandbox.is_list)
			say_calls();
		say("made=%llu\nrefused=%llu\n", (unsigned long long)sandbox.made,
		    (unsigned long long)sandbox.refused);
	}
	ioctl(sandbox.listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
}

/* For this thread and all that it will start, and what those start. */
static void enter_sandbox(void)
{
	struct sock_filter ask = { .code = BPF_RET | BPF_K, .k = SECCOMP_RET_USER_NOTIF };
	struct sock_fprog program = { .len = 1, .filter = &ask };

	sandbox.player = (pid_t)syscall(SYS_gettid);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0)
		sandbox.listener = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
						SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
	store_release(&sandbox.is_ready, 1);
}

static const struct abi_plugin_v5 *plugin;
static int mask;

static void inside(bool is_inside)
{
	store_release(&sandbox.is_inside, is_inside);
}

static void *start(void *context, const struct abi_descr_v5 *descr)
{
	struct abi_descr_v5 copy = *descr;
	void *handle = NULL;

	if (plugin->start_event(context, &handle, &copy) != NCCL_SUCCESS)
		die(HARMED, "a start failed");
	return handle;
}

static void play_one(void *context)
{
	struct abi_descr_v5 group = { .type = ABI_GROUP_API }, api = { .type = ABI_COLL_API },
			    task = { .type = ABI_COLL };
	void *handles[3];

	handles[0] = start(context, &group);
	api.parent = handles[0];
	api.coll_api.function = "AllReduce";
	api.coll_api.count = 1024;
	api.coll_api.datatype = "ncclFloat32";
	handles[1] = start(context, &api);
	task.parent = handles[1];
	task.coll.function = "AllReduce";
	task.coll.count = 1024;
	task.coll.datatype = "ncclFloat32";
	task.coll.channels = 1;
	handles[2] = start(context, &task);
	for (int i = 2; i >= 0; i--)
		if (plugin->stop_event(handles[i]) != NCCL_SUCCESS)
			die(HARMED, "a stop failed");
}

/* After exit() nothing of the plugin may stop the process from ending. */
static void *play(void *unused)
{
	void *contexts[COMMS];
	uint64_t issued = 0;

	(void)unused;
	enter_sandbox();
	if (sandbox.listener == -1)
		return NULL;
	inside(true);
	for (int i = 0; i < COMMS; i++)
		if (plugin->init(&contexts[i], (uint64_t)i + 1, &mask, "a name", 1, 2, 0, NULL) !=
		    NCCL_SUCCESS)
			die(HARMED, "init failed");
	for (int i = 0; i < OPS; i++)
		for (int c = 0; c < COMMS; c++, issued++)
			play_one(contexts[c]);
	for (int i = 0; i < COMMS; i++)
		if (plugin->finalize(contexts[i]) != NCCL_SUCCESS)
			die(HARMED, "finalize failed");
	inside(false);
	say("issued=%llu\n", (unsigned long long)issued);
	inside(true);
	exit(0);
}

static void read_arguments(int argc, char **argv)
{
	int64_t nth;

	sandbox.is_list = argc == 2 && strcmp(argv[1], "list") == 0;
	if (sandbox.is_list)
		return;
	if (argc != 3)
		die(HARMED, "wrong arguments");
	for (size_t i = 0; i < ARRAY_LENGTH(errors); i++)
		if (strcmp(argv[2], errors[i].name) == 0)
			sandbox.error = errors[i].number;
	for (size_t i = 0; i < ARRAY_LENGTH(calls); i++)
		if (strcmp(argv[1], calls[i].name) == 0)
			sandbox.call = calls[i].number;
	if (text_number(argv[1], 1, INT32_MAX, &nth) == OK)
		sandbox.nth = (uint64_t)nth;
	if (sandbox.error == 0 || (sandbox.call == -1 && sandbox.nth == 0))
		die(HARMED, "unknown call or error");
}

int main(int argc, char **argv)
{
	void *library = dlopen(getenv("PLUGIN"), RTLD_NOW | RTLD_LOCAL);
	pthread_t player;

	read_arguments(argc, argv);
	plugin = library != NULL ? dlsym(library, "ncclProfiler_v5") : NULL;
	if (plugin == NULL || pthread_create(&player, NULL, play, NULL) != 0)
		die(HARMED, "no plugin");
	while (!load_acquire(&sandbox.is_ready))
		sched_yield();
	if (sandbox.listener == -1)
		die(NO_SANDBOX, "no seccomp filter");
	for (;;)
		answer_one();
}
