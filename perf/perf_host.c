/*
 * Cost of the recorder for NCCL's threads compared with a plugin that does nothing, in one run.
 *
 * The host of src/sim runs AllReduces of 8 channels over a network, one step per channel and direction, as fast as
 * possible, with NCCL's threads: alternately with the empty plugin and with ours, so that a busy host affects both
 * alike. Measures CPU time of the calling thread and the proxy thread per operation, including the host's own part;
 * the result is the median over the rounds.
 *
 * With "network", each transfer also sends or receives eight bytes over a socket, the minimum that NCCL's socket
 * transport does on that thread; without, transfers cost nothing.
 *
 * Usage: perf_host EMPTY.so PLUGIN.so [network]; prints one "name value" line per result.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "common/clock.h"
#include "sim/host.h"

enum { CHANNELS = 8, OPERATIONS = 4000, ROUNDS = 41, COUNT = 1 << 18 };

struct subject {
	struct host *host;
	struct host_comm *comm;
	struct host_user user;
	int sockets[2];
	double calling_ns[ROUNDS];
	double proxy_ns[ROUNDS];
};

static void fail(const char *what, const char *why)
{
	fprintf(stderr, "perf_host: %s: %s\n", what, why);
	exit(1);
}

/* NCCL's sockets are nonblocking, too: reads are repeated until data arrives. */
static void transfer(void *sockets, bool is_send)
{
	const int *ends = sockets;
	uint64_t header = 0;
	ssize_t moved = is_send ? send(ends[0], &header, sizeof(header), MSG_DONTWAIT)
				: recv(ends[1], &header, sizeof(header), MSG_DONTWAIT);

	(void)moved;
}

static void load(struct subject *subject, const char *path, bool has_network)
{
	struct host_config config = { .release = HOST_NCCL_2_28, .plugin = path, .seed = 1 };
	struct host_comm_config comm = { .hash = 1, .nnodes = 2, .nranks = 2 };

	if (has_network) {
		if (socketpair(AF_UNIX, SOCK_STREAM, 0, subject->sockets) != 0)
			fail("socketpair", strerror(errno));
		config.transfer = transfer;
		config.transfer_arg = subject->sockets;
	}
	if (host_new(&subject->host, &config) != OK)
		fail(path, "out of memory");
	if (host_comm_new(subject->host, &subject->comm, &comm) != OK)
		fail(path, "cannot create a communicator");
	if (host_plugin(subject->host)->version == 0)
		fail(path, host_load_error(subject->host));
}

static void play_round(struct subject *subject, int round)
{
	struct host_op op = host_op_make(subject->comm, OP_ALL_REDUCE, COUNT, OP_FLOAT32);
	uint64_t process = clock_system_ns(CLOCK_PROCESS_CPUTIME_ID);
	uint64_t thread = clock_system_ns(CLOCK_THREAD_CPUTIME_ID), played;

	op.channels = CHANNELS;
	op.has_network = true;
	op.steps = 1;
	for (int i = 0; i < OPERATIONS; i++)
		host_play(&subject->user, &op);
	played = clock_system_ns(CLOCK_THREAD_CPUTIME_ID);
	host_comm_settle(subject->comm);
	process = clock_system_ns(CLOCK_PROCESS_CPUTIME_ID) - process;
	subject->calling_ns[round] = (double)(played - thread) / OPERATIONS;
	thread = clock_system_ns(CLOCK_THREAD_CPUTIME_ID) - thread;
	subject->proxy_ns[round] = (double)(process - thread) / OPERATIONS;
}

static int by_value(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return (a > b) - (a < b);
}

static double median(double *values)
{
	qsort(values, ROUNDS, sizeof(*values), by_value);
	return values[ROUNDS / 2];
}

static void print(const char *thread, double empty, double ours)
{
	printf("%s_empty_ns %.0f\n%s_ns %.0f\n%s_ratio %.2f\n", thread, empty, thread, ours, thread,
	       ours / empty);
}

int main(int argc, char **argv)
{
	static struct subject empty, ours;

	if (argc != 3 && !(argc == 4 && strcmp(argv[3], "network") == 0)) {
		fprintf(stderr, "usage: perf_host EMPTY.so PLUGIN.so [network]\n");
		return 2;
	}
	load(&empty, argv[1], argc == 4);
	load(&ours, argv[2], argc == 4);
	for (int round = 0; round < ROUNDS; round++) {
		play_round(&empty, round);
		play_round(&ours, round);
	}
	print("calling", median(empty.calling_ns), median(ours.calling_ns));
	print("proxy", median(empty.proxy_ns), median(ours.proxy_ns));
	host_comm_destroy(empty.comm);
	host_comm_destroy(ours.comm);
	host_free(empty.host);
	host_free(ours.host);
	return 0;
}
