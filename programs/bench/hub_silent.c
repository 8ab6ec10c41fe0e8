/* Who gives no sign of life after the hub broke. */
#include <poll.h>
#include <sys/socket.h>

#include "programs/bench/bench_hub.h"
#include "programs/bench/hub_wire.h"

enum { READ_MS = 50 };

/* Whatever it still sent is read and forgotten; true once it has ended its side. */
static bool has_ended(int fd)
{
	char waste[4096];
	ssize_t got;

	do {
		got = recv(fd, waste, sizeof(waste), MSG_DONTWAIT);
	} while (got > 0);
	return got == 0;
}

static size_t count_silent(struct bench_hub *hub, int *ranks, size_t most)
{
	size_t silent = 0;

	for (size_t i = 0; i < hub->peer_count; i++) {
		if (hub->peers[i].fd == -1 || has_ended(hub->peers[i].fd))
			continue;
		if (silent < most)
			ranks[silent] = hub->peers[i].rank;
		silent++;
	}
	return silent;
}

size_t hub_silent(struct bench_hub *hub, int wait_ms, int *ranks, size_t most)
{
	uint64_t deadline_ns = hub_now() + (uint64_t)wait_ms * 1000000;
	size_t silent;

	for (size_t i = 0; i < hub->peer_count; i++)
		if (hub->peers[i].fd != -1)
			shutdown(hub->peers[i].fd, SHUT_WR);
	while ((silent = count_silent(hub, ranks, most)) > 0 && hub_now() < deadline_ns)
		poll(NULL, 0, READ_MS);
	return silent;
}
