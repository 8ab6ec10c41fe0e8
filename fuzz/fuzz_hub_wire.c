/* Any bytes from another rank: the hub accepts the messages it expects, or fails with a reason. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/bench_launch.h"
#include "common/clock.h"
#include "fuzz/fuzz_main.h"

static void must(bool is_so)
{
	if (!is_so)
		abort();
}

static void must_be_line(const char *problem)
{
	must(problem[0] != '\0' && strnlen(problem, HUB_PROBLEM_BYTES) < HUB_PROBLEM_BYTES);
	for (; *problem != '\0'; problem++)
		must((unsigned char)*problem >= 0x20 && *problem != 0x7f);
}

/*
 * The first byte selects the request; the rest is what the peer sent before it closed the
 * connection.
 */
static void ask(struct bench_hub *hub, unsigned int what)
{
	unsigned char into[64];
	uint64_t value;

	for (int i = 0; i < 4 && !hub->is_broken; i++) {
		hub->step++;
		if (what & 1 && hub_peek(hub) != 0)
			break;
		if (hub_collect(hub, what & 2 ? HUB_GATHER : HUB_MEET, into, what & 2 ? 16 : 0,
				&value, clock_now_system() + 1000000000) != 0)
			break;
	}
	/* The peer closed the connection, so this must fail at some point. */
	if (hub->is_broken)
		must_be_line(hub->problem);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hub_peer peer = { .rank = 1, .host = "there" };
	struct pollfd poll_fd;
	struct bench_hub hub = { .rank = 0,
				 .nranks = 2,
				 .host = "here",
				 .peers = &peer,
				 .polls = &poll_fd,
				 .peer_count = 1,
				 .lock = PTHREAD_MUTEX_INITIALIZER };
	struct hub_header *header;
	_Alignas(struct hub_header) unsigned char bytes[4096];
	int ends[2];

	if (size < 1 || socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == -1)
		return 0;
	size = size - 1 < sizeof(bytes) ? size - 1 : sizeof(bytes);
	memcpy(bytes, data + 1, size);
	/* Random bytes never contain the magic number. */
	for (size_t at = 0; data[0] & 4 && at + sizeof(*header) <= size;
	     at += sizeof(*header) + 16) {
		header = (struct hub_header *)(void *)(bytes + at);
		header->magic = HUB_MAGIC;
		header->kind = header->kind % 10;
		header->length %= 40;
		header->step %= 8;
	}
	peer.fd = ends[0];
	must(write(ends[1], bytes, size) == (ssize_t)size);
	shutdown(ends[1], SHUT_WR);
	ask(&hub, data[0]);
	close(ends[0]);
	close(ends[1]);
	return 0;
}
