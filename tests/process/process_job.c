/*
 * A job: it loads the plugin as NCCL does, plays operations as fast as it can, and ends as
 * requested. It then prints what it issued to stdout, as lines "key=value".
 *
 *	process_job [key=value]...	see `options` below
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "sim/host.h"
#include "tests/process/process_disk.h"

enum { THREADS_MAX = 16, COMMS_MAX = 16 };

static struct {
	long ops;   /* per communicator */
	long comms; /* per thread */
	long threads;
	long channels;
	long nodes;  /* more than one: with network */
	long stride; /* operations per group */
	long ahead; /* how many may be unfinished: CUDA takes about a thousand launches; 0: any number */
	long disk_room;
	long disk_slices;
	long pace;  /* operations per second of one thread; 0: as fast as possible */
	long noise; /* write to the standard streams all the time */
	const char *release;
	const char *disk; /* "", "frozen" while operations are played, "stuck" to the end, "full",
			     "broken", "stuck_last": to the end, once stdin says so */
	const char *end;  /* "finalize", "exit", "_exit", "abort", "kill", "hold" */
	const char *name; /* of the communicators */
	long p2p;	  /* every third operation is a Send, the next one a Recv */
	long duration;	  /* ns on the GPU */
	long rank;	  /* within the communicators */
	long ranks;
	long sizes;	   /* number of different message sizes */
	const char *dead;  /* access to a path that begins like this blocks ... */
	long dead_groups;  /* ... or looking up the name of a group ... */
	const char *until; /* ... until all communicators are "made", or "never" to the end */
} job = { 1000, 1,	    1,	   8, 1, 1, 1000, 0,  0,  0, 0,	    "2.28",
	  "",	"finalize", "job", 0, 1, 3, 8,	  11, "", 0, "made" };

static const struct {
	const char *name;
	long *number;
	const char **text;
} options[] = {
	{ "ops", &job.ops, NULL },
	{ "comms", &job.comms, NULL },
	{ "threads", &job.threads, NULL },
	{ "channels", &job.channels, NULL },
	{ "nodes", &job.nodes, NULL },
	{ "group", &job.stride, NULL },
	{ "ahead", &job.ahead, NULL },
	{ "disk_room", &job.disk_room, NULL },
	{ "disk_slices", &job.disk_slices, NULL },
	{ "pace", &job.pace, NULL },
	{ "noise", &job.noise, NULL },
	{ "release", NULL, &job.release },
	{ "disk", NULL, &job.disk },
	{ "end", NULL, &job.end },
	{ "name", NULL, &job.name },
	{ "p2p", &job.p2p, NULL },
	{ "duration", &job.duration, NULL },
	{ "rank", &job.rank, NULL },
	{ "ranks", &job.ranks, NULL },
	{ "sizes", &job.sizes, NULL },
	{ "dead", NULL, &job.dead },
	{ "dead_groups", &job.dead_groups, NULL },
	{ "until", NULL, &job.until },
};

static void die(const char *what)
{
	fprintf(stderr, "process_job: %s\n", what);
	exit(3);
}

static void read_option(const char *word)
{
	const char *equals = strchr(word, '=');

	for (size_t i = 0; equals != NULL && i < ARRAY_LENGTH(options); i++) {
		size_t length = strlen(options[i].name);

		if (length != (size_t)(equals - word) || memcmp(word, options[i].name, length) != 0)
			continue;
		if (options[i].number)
			*options[i].number = strtol(equals + 1, NULL, 10);
		else
			*options[i].text = equals + 1;
		return;
	}
	die(word);
}

static bool is(const char *option, const char *value)
{
	return strcmp(option, value) == 0;
}

static struct {
	struct host *host;
	struct host_comm *comms[THREADS_MAX][COMMS_MAX];
	pthread_barrier_t start;
} play;

static void make_comms(void)
{
	for (long t = 0; t < job.threads; t++)
		for (long c = 0; c < job.comms; c++) {
			struct host_comm_config config = {
				.hash = (uint64_t)(1000 + t * COMMS_MAX + c),
				.name = job.name,
				.nnodes = (int)job.nodes,
				.nranks = (int)job.ranks,
				.rank = (int)job.rank,
			};

			if (host_comm_new(play.host, &play.comms[t][c], &config) != OK)
				die("no communicator");
		}
	if (host_plugin(play.host)->version == 0)
		die(host_load_error(play.host));
}

static struct host_op make_op(struct host_comm *comm, long index)
{
	static const enum op_function functions[] = { OP_ALL_REDUCE, OP_ALL_GATHER,
						      OP_REDUCE_SCATTER, OP_ALL_REDUCE,
						      OP_BROADCAST };
	enum op_function function = functions[index % 5];
	struct host_op op;

	if (job.p2p && index % 3 < 2)
		function = index % 3 == 0 ? OP_SEND : OP_RECV;
	op = host_op_make(comm, function, UINT64_C(1024) << index % job.sizes, OP_FLOAT32);
	op.channels = (uint16_t)job.channels;
	/* A burst must not run ahead of the clock of its stamps. */
	op.duration_ns = (uint64_t)job.duration;
	op.has_network = job.nodes > 1;
	return op;
}

static void make_noise(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (write(fd, "noise=1\n", 8) == -1)
			errno = 0;
}

/* Once in a hundred operations: sleep until it is time for the next. */
static void keep_pace(uint64_t start_ns, long played)
{
	uint64_t due = start_ns + (uint64_t)played * 1000000000u / (uint64_t)job.pace;
	struct timespec until = { (time_t)(due / 1000000000u), (long)(due % 1000000000u) };

	if (played % 100 == 0)
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
}

static void *play_thread(void *arg)
{
	long thread = (long)(intptr_t)arg, played = 0;
	struct host_user user = { 0 };
	struct host_op ops[64];
	uint64_t start;

	pthread_barrier_wait(&play.start);
	start = clock_system_ns(CLOCK_MONOTONIC);
	for (; played < job.ops; played += job.stride)
		for (long c = 0; c < job.comms; c++) {
			struct host_group group = { .ops = ops, .count = (size_t)job.stride };

			for (long i = 0; i < job.stride; i++)
				ops[i] = make_op(play.comms[thread][c], played + i);
			if (host_play_group(&user, &group) != OK)
				die("cannot play");
			if (job.noise)
				make_noise();
			if (job.pace)
				keep_pace(start, played);
			if (job.ahead != 0)
				host_comm_wait(play.comms[thread][c], (size_t)job.ahead);
		}
	for (long c = 0; c < job.comms; c++)
		host_comm_settle(play.comms[thread][c]);
	return NULL;
}

static void play_all(void)
{
	pthread_t threads[THREADS_MAX];

	pthread_barrier_init(&play.start, NULL, (unsigned int)job.threads);
	for (long i = 0; i < job.threads; i++)
		if (pthread_create(&threads[i], NULL, play_thread, (void *)(intptr_t)i) != 0)
			die("no thread");
	for (long i = 0; i < job.threads; i++)
		pthread_join(threads[i], NULL);
}

static void say_counts(uint64_t ns)
{
	struct host_counts counts;

	host_counts(play.host, &counts);
	printf("pid=%d\nversion=%d\nmask=%d\nissued=%llu\nhidden=%llu\n", getpid(),
	       host_plugin(play.host)->version, *host_mask(play.host),
	       (unsigned long long)counts.shown, (unsigned long long)counts.hidden);
	printf("kernel_events=%llu\n", (unsigned long long)counts.starts[6]);
	printf("rate=%.0f\nus=%llu\n", (double)counts.shown * 1e9 / (double)ns,
	       (unsigned long long)ns / 1000);
	fflush(stdout);
}

/* The parent knows what we wait for; its end counts, too. */
static void await_word(void)
{
	char byte;

	if (read(STDIN_FILENO, &byte, 1) == -1)
		die("nothing to wait for");
}

static void end_job(void)
{
	if (is(job.end, "_exit"))
		_exit(0);
	if (is(job.end, "abort"))
		abort();
	if (is(job.end, "kill"))
		raise(SIGKILL);
	if (is(job.end, "hold"))
		await_word();
	if (!is(job.end, "finalize"))
		return;
	for (long t = 0; t < job.threads; t++)
		for (long c = 0; c < job.comms; c++)
			host_comm_destroy(play.comms[t][c]);
	host_free(play.host);
}

static void set_disk(void)
{
	disk.slices = (int)job.disk_slices;
	disk.room = (uint64_t)job.disk_room;
	if (is(job.disk, "full") || is(job.disk, "broken"))
		disk.error = is(job.disk, "full") ? ENOSPC : EIO;
}

int main(int argc, char **argv)
{
	struct host_config config = { .plugin = getenv("PLUGIN") };
	uint64_t start;

	for (int i = 1; i < argc; i++)
		read_option(argv[i]);
	if (job.threads > THREADS_MAX || job.comms > COMMS_MAX || job.stride > 64 ||
	    host_release_parse(job.release, &config.release) != OK)
		die("too much");
	set_disk();
	if (host_new(&play.host, &config) != OK)
		die("no host");
	disk.dead = job.dead;
	disk.is_group_dead = (int)job.dead_groups;
	make_comms();
	if (is(job.until, "made"))
		disk_revive();
	if (is(job.disk, "frozen") || is(job.disk, "stuck"))
		disk_freeze();
	start = clock_system_ns(CLOCK_MONOTONIC);
	play_all();
	start = clock_system_ns(CLOCK_MONOTONIC) - start;
	say_counts(start);
	if (is(job.disk, "frozen")) {
		disk_await();
		disk_thaw();
	}
	if (is(job.disk, "stuck_last")) {
		await_word();
		disk_freeze();
	}
	end_job();
	return 0;
}
