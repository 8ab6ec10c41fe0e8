/*
 * How the plugin behaves inside a job: every callback of every version is wrapped and watched while
 * a host plays all kinds of operations.
 *
 *	process_manners on|off	prints TAP; PLUGIN and the settings are in the environment
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/attributes.h"
#include "common/order.h"
#include "plugin/abi_v1.h"
#include "plugin/abi_v2.h"
#include "plugin/abi_v3.h"
#include "plugin/abi_v4.h"
#include "plugin/abi_v5.h"
#include "plugin/abi_v6.h"
#include "plugin/abi_v7.h"
#include "sim/host.h"
#include "tests/tap.h"

enum { STRANGE_ERRNO = 4242 };

static struct {
	uint64_t calls[8]; /* by version */
	uint64_t errnos, masks, failures, null_handles;
	uint64_t infos, other_logs;
	char log[1024];
} watch;

struct state {
	sigset_t mask;
};

static void before(struct state *state, int version)
{
	add_relaxed(&watch.calls[version], 1);
	pthread_sigmask(SIG_BLOCK, NULL, &state->mask);
	errno = STRANGE_ERRNO;
}

static int after(const struct state *state, int result)
{
	bool is_kept = errno == STRANGE_ERRNO;
	sigset_t mask;

	if (!is_kept)
		add_relaxed(&watch.errnos, 1);
	pthread_sigmask(SIG_BLOCK, NULL, &mask);
	for (int i = 1; i < NSIG; i++)
		if (sigismember(&mask, i) != sigismember(&state->mask, i))
			add_relaxed(&watch.masks, 1);
	if (result != NCCL_SUCCESS)
		add_relaxed(&watch.failures, 1);
	return result;
}

#define WATCH(N, PARAMETERS, ARGUMENTS)                                                    \
	static const struct abi_plugin_v##N *real_v##N;                                    \
	static int init_v##N PARAMETERS                                                    \
	{                                                                                  \
		struct state state;                                                        \
                                                                                           \
		before(&state, N);                                                         \
		return after(&state, real_v##N->init ARGUMENTS);                           \
	}                                                                                  \
	static int start_v##N(void *context, void **handle, struct abi_descr_v##N *descr)  \
	{                                                                                  \
		struct state state;                                                        \
		int result;                                                                \
                                                                                           \
		before(&state, N);                                                         \
		result = after(&state, real_v##N->start_event(context, handle, descr));    \
		if (*handle == NULL)                                                       \
			add_relaxed(&watch.null_handles, 1);                               \
		return result;                                                             \
	}                                                                                  \
	static int stop_v##N(void *handle)                                                 \
	{                                                                                  \
		struct state state;                                                        \
                                                                                           \
		before(&state, N);                                                         \
		return after(&state, real_v##N->stop_event(handle));                       \
	}                                                                                  \
	static int state_v##N(void *handle, int number, union abi_args_v##N *args)         \
	{                                                                                  \
		struct state state;                                                        \
                                                                                           \
		before(&state, N);                                                         \
		return after(&state, real_v##N->record_event_state(handle, number, args)); \
	}                                                                                  \
	static int finalize_v##N(void *context)                                            \
	{                                                                                  \
		struct state state;                                                        \
                                                                                           \
		before(&state, N);                                                         \
		return after(&state, real_v##N->finalize(context));                        \
	}                                                                                  \
	static const struct abi_plugin_v##N watched_v##N = {                               \
		"watched", init_v##N, start_v##N, stop_v##N, state_v##N, finalize_v##N     \
	}

WATCH(1, (void **context, int *mask), (context, mask));
WATCH(2, (void **context, int *mask), (context, mask));
WATCH(3, (void **context, int *mask), (context, mask));
WATCH(4,
      (void **context, int *mask, const char *name, uint64_t hash, int nnodes, int nranks, int rank,
       abi_log_fn log),
      (context, mask, name, hash, nnodes, nranks, rank, log));
WATCH(5,
      (void **context, uint64_t hash, int *mask, const char *name, int nnodes, int nranks, int rank,
       abi_log_fn log),
      (context, hash, mask, name, nnodes, nranks, rank, log));
WATCH(6,
      (void **context, uint64_t hash, int *mask, const char *name, int nnodes, int nranks, int rank,
       abi_log_fn log),
      (context, hash, mask, name, nnodes, nranks, rank, log));
WATCH(7,
      (void **context, uint64_t hash, int *mask, const char *name, int nnodes, int nranks, int rank,
       abi_log_fn log),
      (context, hash, mask, name, nnodes, nranks, rank, log));

static const struct host_linked watched = {
	&watched_v1, &watched_v2, &watched_v3, &watched_v4, &watched_v5, &watched_v6, &watched_v7,
};

static bool load(void)
{
	void *library = dlopen(getenv("PLUGIN"), RTLD_NOW | RTLD_LOCAL);

	if (library == NULL)
		return false;
	real_v1 = dlsym(library, "ncclProfiler_v1");
	real_v2 = dlsym(library, "ncclProfiler_v2");
	real_v3 = dlsym(library, "ncclProfiler_v3");
	real_v4 = dlsym(library, "ncclProfiler_v4");
	real_v5 = dlsym(library, "ncclProfiler_v5");
	real_v6 = dlsym(library, "ncclProfiler_v6");
	real_v7 = dlsym(library, "ncclProfiler_v7");
	return real_v1 && real_v2 && real_v3 && real_v4 && real_v5 && real_v6 && real_v7;
}

/* NCCL's logger. */
static void take_log(int level, unsigned long flags, const char *file, int line, const char *format,
		     ...)
{
	va_list values;

	(void)flags;
	(void)file;
	(void)line;
	va_start(values, format);
	if (level == ABI_LOG_INFO) {
		watch.infos++;
		vsnprintf(watch.log, sizeof(watch.log), format, values);
	} else {
		watch.other_logs++;
	}
	va_end(values);
}

/* ---- what is played -------------------------------------------------------------------------- */

static void play_each_kind(struct host_comm *comm, int quirks)
{
	static const enum op_function functions[] = { OP_ALL_REDUCE, OP_ALL_GATHER, OP_BROADCAST,
						      OP_REDUCE,     OP_SEND,	    OP_RECV,
						      OP_ALL_TO_ALL };
	struct host_user user = { 0 };

	for (size_t i = 0; i < ARRAY_LENGTH(functions); i++)
		for (int path = HOST_PATH_KERNEL; path <= HOST_PATH_SIMULATED; path++) {
			struct host_op op = host_op_make(comm, functions[i], 4096, OP_FLOAT32);

			op.path = (uint8_t)path;
			op.channels = 4;
			op.steps = 3;
			op.has_network = i % 2 == 0;
			op.has_net_events = true;
			op.quirks = (unsigned int)quirks;
			host_play(&user, &op);
		}
	host_comm_settle(comm);
}

static void play_graph(struct host *host, struct host_comm *comm)
{
	struct host_op op = host_op_make(comm, OP_ALL_REDUCE, 64, OP_BFLOAT16);
	struct host_group group = { .ops = &op, .count = 1 };
	struct host_user user = { 0 };

	if (host_graph_new(host, &group.capture) != OK)
		return;
	host_play_group(&user, &group);
	for (int i = 0; i < 10; i++)
		host_graph_replay(group.capture);
	host_graph_free(group.capture);
}

static void play_release(int release)
{
	struct host_config config = { .release = release, .linked = &watched, .log = take_log };
	struct host_comm_config first = { .hash = 7, .name = "one", .nnodes = 2, .nranks = 4 };
	struct host_comm_config second = { .hash = 8, .nnodes = 1, .nranks = 2, .rank = 1 };
	struct host_comm *comms[2];
	struct host *host;

	if (host_new(&host, &config) != OK || host_comm_new(host, &comms[0], &first) != OK ||
	    host_comm_new(host, &comms[1], &second) != OK)
		exit(3);
	play_each_kind(comms[0], 0);
	play_each_kind(comms[1], (int)host_quirks_of(release));
	play_graph(host, comms[0]);
	host_comm_abort(comms[1]);
	host_comm_destroy(comms[0]);
	host_free(host);
}

/* ---- what is looked at ------------------------------------------------------------------------ */

/*
 * How many of our own threads, named "ringside...", there are, and the signals that all of them block.
 */
static int plugin_threads(uint64_t *blocked)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *entry;
	int count = 0;

	*blocked = UINT64_MAX;
	while (tasks != NULL && (entry = readdir(tasks)) != NULL) {
		char path[300], line[256], name[64] = "";
		uint64_t mask = 0;
		FILE *status;

		snprintf(path, sizeof(path), "/proc/self/task/%s/status", entry->d_name);
		status = fopen(path, "re");
		while (status != NULL && fgets(line, sizeof(line), status) != NULL) {
			sscanf(line, "Name: %63s", name);
			if (strncmp(line, "SigBlk:", 7) == 0)
				mask = strtoull(line + 7, NULL, 16);
		}
		if (status != NULL)
			fclose(status);
		if (strncmp(name, "ringside", strlen("ringside")) == 0) {
			count++;
			*blocked &= mask;
		}
	}
	if (tasks != NULL)
		closedir(tasks);
	return count;
}

static int open_files(void)
{
	DIR *files = opendir("/proc/self/fd");
	int count = 0;

	while (files != NULL && readdir(files) != NULL)
		count++;
	if (files != NULL)
		closedir(files);
	return count;
}

/* All but SIGKILL and SIGSTOP, which cannot be blocked, and two that libc reserves. */
static bool blocks_everything(uint64_t blocked)
{
	for (int i = 1; i <= 64; i++)
		if (i != SIGKILL && i != SIGSTOP && i != 32 && i != 33 && !(blocked >> (i - 1) & 1))
			return false;
	return true;
}

static void the_switch_turns_everything_off(void)
{
	struct host_config config = { .release = HOST_NCCL_2_28, .linked = &watched };
	struct host_comm_config comm_config = { .hash = 7, .nnodes = 2, .nranks = 4 };
	int files = open_files();
	struct host_comm *comm;
	struct host *host;
	uint64_t blocked;

	if (host_new(&host, &config) != OK || host_comm_new(host, &comm, &comm_config) != OK)
		exit(3);
	EXPECT_EQUAL(*host_mask(host), 0);
	play_each_kind(comm, 0);
	EXPECT_EQUAL(plugin_threads(&blocked), 0);
	EXPECT_EQUAL(open_files(), files);
	/* A host that calls nevertheless, like one with another profiler's mask. */
	*host_mask(host) = 0xffff;
	play_each_kind(comm, 0);
	EXPECT_EQUAL(watch.failures, 0);
	host_comm_destroy(comm);
	host_free(host);
}

static void a_guest_leaves_no_traces(bool has_thread)
{
	static const int releases[] = { HOST_NCCL_2_23, HOST_NCCL_2_24, HOST_NCCL_2_26,
					HOST_NCCL_2_27, HOST_NCCL_2_28, HOST_NCCL_2_29,
					HOST_NCCL_2_30, HOST_NCCL_2_31 };
	int files = open_files();
	uint64_t blocked;

	for (size_t i = 0; i < ARRAY_LENGTH(releases); i++)
		play_release(releases[i]);
	for (int i = 1; i <= 7; i++)
		EXPECT(watch.calls[i] > 500);
	EXPECT_THAT("errno is kept by every callback", watch.errnos == 0);
	EXPECT_THAT("the signal mask is kept by every callback", watch.masks == 0);
	EXPECT_THAT("every callback says success", watch.failures == 0);
	EXPECT_THAT("no handle is NULL", watch.null_handles == 0);
	/* The heartbeat, and the trace's. */
	EXPECT_EQUAL(plugin_threads(&blocked), 1 + has_thread);
	EXPECT_THAT("the plugin's threads block every signal", blocks_everything(blocked));
	EXPECT_THAT("one file stays open where there is a trace",
		    open_files() == files + has_thread);
	EXPECT_THAT("the settings are logged once, at INFO",
		    watch.infos == 1 && watch.other_logs == 0);
	printf("# %s\n", watch.log);
	EXPECT(strstr(watch.log, "mode ") && strstr(watch.log, "region /") &&
	       strstr(watch.log, "trace ") && strstr(watch.log, "kernel events "));
}

int main(int argc, char **argv)
{
	const char *mode = getenv("RINGSIDE_MODE");

	if (!EXPECT_THAT("it loads", load()))
		return tap_done();
	if (argc > 1 && strcmp(argv[1], "off") == 0)
		the_switch_turns_everything_off();
	else
		a_guest_leaves_no_traces(mode != NULL && strcmp(mode, "trace") == 0);
	return tap_done();
}
