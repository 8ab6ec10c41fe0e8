/*
 * Cost of following running processes: scans by src/recording and src/doctor/live.h of processes that have several
 * communicators each and make calls at a fixed rate, with the real plugin.
 *
 * Usage: perf_live PLUGIN.so DIRECTORY PROCESSES COMMUNICATORS RATE SECONDS; RATE is operations per second and
 * process. DIRECTORY should be in memory, like /dev/shm. Prints one "name value" line per result: CPU time of a
 * scan, in its two parts; the share of one core for one scan per second; memory.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/text.h"
#include "doctor/live.h"
#include "recording/watch.h"
#include "sim/host.h"

enum { COMMS_MAX = 64, PROCESSES_MAX = 1024, TICK_NS = 2000000, LOOKS_A_SECOND = 1 };

struct load {
	const char *plugin;
	int processes;
	int comms;
	int rate;
	int seconds;
};

static void fail(const char *what, const char *why)
{
	fprintf(stderr, "perf_live: %s: %s\n", what, why);
	_exit(1);
}

static void rest(long ns)
{
	struct timespec time = { ns / 1000000000, ns % 1000000000 };

	nanosleep(&time, NULL);
}

/* Three functions with four sizes; a quarter of them over the network. */
static void play(struct host_user *user, struct host_comm *comm, uint64_t i)
{
	static const uint8_t functions[3] = { OP_ALL_REDUCE, OP_ALL_GATHER, OP_REDUCE_SCATTER };
	struct host_op op =
		host_op_make(comm, functions[i % 3], UINT64_C(1024) << (i / 3 % 4) * 4, OP_FLOAT32);

	op.channels = 2;
	op.has_network = i % 4 == 0;
	op.steps = 1;
	host_play(user, &op);
}

static void work(const struct load *job, int rank)
{
	struct host_config config = { .release = HOST_NCCL_2_28, .plugin = job->plugin, .seed = 1 };
	struct host_comm *comms[COMMS_MAX];
	struct host_user user = { NULL };
	struct host *host;
	uint64_t begin_ns = clock_system_ns(CLOCK_MONOTONIC), done = 0, due;
	char text[16];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	text_format(text, sizeof(text), "%d", rank);
	setenv("RANK", text, 1);
	if (host_new(&host, &config) != OK)
		fail(job->plugin, "out of memory");
	for (int i = 0; i < job->comms; i++) {
		struct host_comm_config comm = { .hash = (uint64_t)i + 1,
						 .nnodes = 2,
						 .nranks = job->processes < 2 ? 2 : job->processes,
						 .rank = rank };

		if (host_comm_new(host, &comms[i], &comm) != OK || host_plugin(host)->version == 0)
			fail(job->plugin, host_load_error(host));
	}
	for (;;) {
		due = (clock_system_ns(CLOCK_MONOTONIC) - begin_ns) / 1000 * (uint64_t)job->rate /
		      1000000;
		for (; done < due; done++)
			play(&user, comms[done % (uint64_t)job->comms],
			     done / (uint64_t)job->comms);
		rest(TICK_NS);
	}
}

static void start(const struct load *job, pid_t *children)
{
	for (int i = 0; i < job->processes; i++) {
		children[i] = fork();
		if (children[i] == -1)
			fail("fork", strerror(errno));
		if (children[i] == 0)
			work(job, i);
	}
}

static double cpu_ns(void)
{
	return (double)clock_system_ns(CLOCK_PROCESS_CPUTIME_ID);
}

static void look(struct watch *watch, struct live *live, double *watch_ns, double *live_ns)
{
	double begin_ns = cpu_ns(), read_ns;

	if (watch_look(watch, WATCH_TOTALS) != OK)
		fail("look", "out of memory");
	read_ns = cpu_ns();
	if (live_look(live, &watch->recording, clock_system_ns(CLOCK_MONOTONIC),
		      clock_system_ns(CLOCK_REALTIME)) != OK)
		fail("look", "out of memory");
	*watch_ns += read_ns - begin_ns;
	*live_ns += cpu_ns() - read_ns;
}

static void measure(const struct load *job, const char *directory)
{
	struct watch_settings settings = { .directory = directory, .keep_ns = 1000000000 };
	struct live_limits limits = live_limits_default();
	double unused = 0, watch_ns = 0, live_ns = 0;
	unsigned long long operations = 0;
	int looks = job->seconds * LOOKS_A_SECOND;
	struct rusage usage;
	struct watch watch;
	struct live live;

	watch_init(&watch, &settings);
	live_init(&live, &limits);
	while (watch.recording.count < (size_t)job->processes ||
	       live.job.seat_count < (size_t)(job->processes * job->comms)) {
		look(&watch, &live, &unused, &unused);
		rest(100000000);
	}
	for (int i = 0; i < looks; i++) {
		look(&watch, &live, &watch_ns, &live_ns);
		for (size_t c = 0; c < live.job.comm_count; c++)
			operations += live.comms[c].grown.operations;
		rest(1000000000 / LOOKS_A_SECOND);
	}
	getrusage(RUSAGE_SELF, &usage);
	printf("operations_per_s %.0f\n", (double)operations / job->seconds);
	printf("read_us %.0f\nthink_us %.0f\n", watch_ns / looks / 1e3, live_ns / looks / 1e3);
	printf("core_percent %.3f\n", (watch_ns + live_ns) / looks / 1e7);
	printf("memory_mib %.1f\n", (double)usage.ru_maxrss / 1024);
	live_release(&live);
	watch_release(&watch);
}

int main(int argc, char **argv)
{
	static pid_t children[PROCESSES_MAX];
	struct load job;

	if (argc != 7) {
		fprintf(stderr, "usage: perf_live PLUGIN.so DIRECTORY PROCESSES COMMUNICATORS RATE "
				"SECONDS\n");
		return 2;
	}
	job = (struct load){ argv[1], atoi(argv[3]), atoi(argv[4]), atoi(argv[5]), atoi(argv[6]) };
	if (job.processes < 1 || job.processes > PROCESSES_MAX || job.comms < 1 ||
	    job.comms > COMMS_MAX || job.seconds < 1)
		return 2;
	setenv("RINGSIDE_SHM", argv[2], 1);
	start(&job, children);
	measure(&job, argv[2]);
	for (int i = 0; i < job.processes; i++) {
		kill(children[i], SIGKILL);
		waitpid(children[i], NULL, 0);
	}
	return 0;
}
