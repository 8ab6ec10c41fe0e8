#include "programs/bench/bench_hub.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/hash.h"
#include "common/text.h"
#include "programs/bench/hub_arrive.h"
#include "programs/bench/hub_wire.h"

/* Ranks of one machine leave hub_meet() together: so long after the last one came. Sending to one takes
 * about this. */
#define LONGER_NS UINT64_C(5000000000)
enum { GO_NS_FIRST = 10000, GO_NS_EACH = 6000 };
enum { ANSWER_SECONDS = 5, CLOSE_SECONDS = 30, DRAIN_SECONDS = 2 };

/* ---- this rank --------------------------------------------------------------------------------- */

static uint64_t this_machine(void)
{
	char text[64] = "";
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t got = fd == -1 ? -1 : read(fd, text, sizeof(text) - 1);

	if (fd != -1)
		close(fd);
	return got > 0 ? hash_bytes(text, (size_t)got) : 0;
}

static int processors(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
}

struct hub_hello hub_hello_of(const struct bench_hub *hub, uint64_t token)
{
	struct hub_hello hello = { .version = HUB_VERSION,
				   .rank = hub->rank,
				   .nranks = hub->nranks,
				   .token = token,
				   .machine = hub->machine };

	text_copy(hello.host, sizeof(hello.host), hub->host);
	return hello;
}

void hub_set_options(int fd)
{
	int on = 1, idle_s = 30, interval_s = 10, count = 3;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof(interval_s));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
}

static bool is_loopback(const char *address)
{
	struct in6_addr six;
	struct in_addr four;

	if (inet_pton(AF_INET, address, &four) == 1)
		return ntohl(four.s_addr) >> 24 == 127;
	if (inet_pton(AF_INET6, address, &six) == 1)
		return IN6_IS_ADDR_LOOPBACK(&six);
	return strcmp(address, "localhost") == 0;
}

bool hub_is_local(const struct bench_place *place)
{
	return place->local_ranks == place->nranks || is_loopback(place->address);
}

/* ---- opening ----------------------------------------------------------------------------------- */

static struct bench_hub *new_hub(const struct bench_place *place)
{
	struct bench_hub *hub = calloc(1, sizeof(*hub));
	int here = place->local_ranks > 0 ? place->local_ranks : place->nranks;

	if (hub == NULL)
		return NULL;
	pthread_mutex_init(&hub->lock, NULL);
	hub->rank = place->rank;
	hub->nranks = place->nranks;
	hub->peer_count = place->nranks == 1 ? 0 : place->rank == 0 ? (size_t)place->nranks - 1 : 1;
	hub->machine = this_machine();
	hub->may_spin = 2 * here <= processors();
	if (gethostname(hub->host, sizeof(hub->host) - 1) == -1)
		text_copy(hub->host, sizeof(hub->host), "unknown");
	hub->peers = calloc(hub->peer_count + 1, sizeof(*hub->peers));
	hub->polls = calloc(hub->peer_count + 1, sizeof(*hub->polls));
	if (hub->peers == NULL || hub->polls == NULL) {
		free(hub->peers);
		free(hub->polls);
		free(hub);
		return NULL;
	}
	for (size_t i = 0; i < hub->peer_count; i++) {
		hub->peers[i].fd = -1;
		hub->peers[i].rank = place->rank == 0 ? (int)i + 1 : 0;
		text_copy(hub->peers[i].host, sizeof(hub->peers[i].host), "unknown");
	}
	return hub;
}

/* Rank 0 has just let in the last one; the first ones have to wait for that. */
static int meet_first(struct bench_hub *hub, int patience_s, int waited_s)
{
	int left_s = hub->rank == 0 ? patience_s - waited_s : patience_s + ANSWER_SECONDS;
	int result;

	hub_set_patience(hub, left_s > ANSWER_SECONDS ? left_s : ANSWER_SECONDS);
	result = hub_meet(hub);
	hub_set_patience(hub, 0);
	return result;
}

static int arrive(struct bench_hub *hub, const struct bench_place *place, int patience_s)
{
	uint64_t began_ns = hub_now();
	int result;

	if (hub->nranks == 1)
		return 0;
	if (hub->rank == 0)
		result = hub_let_in(hub, place, patience_s);
	else
		result = hub_look_for(hub, place, patience_s);
	if (result != 0)
		return result;
	return meet_first(hub, patience_s, (int)((hub_now() - began_ns) / 1000000000));
}

int hub_open(struct bench_hub **hub, const struct bench_place *place, int patience_s)
{
	*hub = new_hub(place);
	return *hub == NULL ? -1 : arrive(*hub, place, patience_s);
}

/* ---- closing ----------------------------------------------------------------------------------- */

static void say_goodbye(struct bench_hub *hub)
{
	uint64_t deadline_ns = hub_now() + (uint64_t)CLOSE_SECONDS * 1000000000;
	uint64_t value;

	hub->step++;
	if (hub->rank == 0 && hub_collect(hub, HUB_BYE, NULL, 0, &value, deadline_ns) != 0)
		return;
	for (size_t i = 0; i < hub->peer_count; i++)
		if (hub_send(hub, &hub->peers[i], HUB_BYE, 0, NULL, 0, deadline_ns) != 0)
			return;
	if (hub->rank != 0)
		hub_collect(hub, HUB_BYE, NULL, 0, &value, deadline_ns);
}

/* What was sent last must arrive: a connection that is closed while bytes wait to be read is reset. */
static void drain(struct bench_hub *hub)
{
	uint64_t deadline_ns = hub_now() + (uint64_t)DRAIN_SECONDS * 1000000000;
	char waste[4096];

	for (size_t i = 0; i < hub->peer_count; i++)
		if (hub->peers[i].fd != -1)
			shutdown(hub->peers[i].fd, SHUT_WR);
	for (size_t i = 0; i < hub->peer_count; i++)
		while (hub->peers[i].fd != -1 && hub_now() < deadline_ns &&
		       hub_read_whole(hub->peers[i].fd, waste, 1, deadline_ns) == 0)
			if (recv(hub->peers[i].fd, waste, sizeof(waste), MSG_DONTWAIT) == 0)
				break;
}

void hub_close(struct bench_hub *hub)
{
	if (hub == NULL)
		return;
	if (!hub->is_broken)
		say_goodbye(hub);
	if (hub->is_broken)
		drain(hub);
	for (size_t i = 0; i < hub->peer_count; i++)
		if (hub->peers[i].fd != -1)
			close(hub->peers[i].fd);
	free(hub->peers);
	free(hub->polls);
	free(hub);
}

/* ---- calls ------------------------------------------------------------------------------------- */

static uint64_t begin_step(struct bench_hub *hub)
{
	/* Rank 0 knows who is missing: it must be the first to lose its patience. */
	uint64_t longer_ns = hub->rank == 0 ? 0 : LONGER_NS;

	hub->step++;
	return hub->patience_ns ? hub_now() + hub->patience_ns + longer_ns : 0;
}

void hub_set_patience(struct bench_hub *hub, int seconds)
{
	hub->patience_ns = (uint64_t)seconds * 1000000000;
}

static int let_all_go(struct bench_hub *hub, uint64_t deadline_ns, uint64_t *go_ns)
{
	uint64_t value;

	if (hub_collect(hub, HUB_MEET, NULL, 0, &value, deadline_ns) != 0)
		return -1;
	*go_ns = 0;
	if (hub->is_one_machine && hub->may_spin)
		*go_ns = hub_now() + GO_NS_FIRST + hub->peer_count * GO_NS_EACH;
	for (size_t i = 0; i < hub->peer_count; i++)
		if (hub_send(hub, &hub->peers[i], HUB_GO, *go_ns, NULL, 0, deadline_ns) != 0)
			return -1;
	return 0;
}

int hub_meet(struct bench_hub *hub)
{
	uint64_t deadline_ns = begin_step(hub);
	uint64_t go_ns = 0;

	if (hub->is_broken)
		return -1;
	if (hub->nranks == 1)
		return 0;
	if (hub->rank == 0) {
		if (let_all_go(hub, deadline_ns, &go_ns) != 0)
			return -1;
	} else if (hub_send(hub, &hub->peers[0], HUB_MEET, 0, NULL, 0, deadline_ns) != 0 ||
		   hub_collect(hub, HUB_GO, NULL, 0, &go_ns, deadline_ns) != 0) {
		return -1;
	}
	/* Rank 0 would not say more than a moment; one that does is not believed. */
	if (go_ns != 0 && go_ns < hub_now() + 100000000)
		while (hub_now() < go_ns)
			;
	return 0;
}

int hub_share(struct bench_hub *hub, void *bytes, size_t length)
{
	uint64_t deadline_ns = begin_step(hub);
	uint64_t value;

	if (hub->is_broken)
		return -1;
	if (length > HUB_MESSAGE_MAX)
		return hub_break(hub, NULL, "a message of %zu bytes is too long", length);
	if (hub->rank != 0)
		return hub_collect(hub, HUB_SHARE, bytes, length, &value, deadline_ns);
	for (size_t i = 0; i < hub->peer_count; i++)
		if (hub_send(hub, &hub->peers[i], HUB_SHARE, 0, bytes, length, deadline_ns) != 0)
			return -1;
	return hub->peer_count ? hub_peek(hub) : 0;
}

int hub_gather(struct bench_hub *hub, const void *bytes, size_t length, void *into)
{
	uint64_t deadline_ns = begin_step(hub);
	uint64_t value;

	if (hub->is_broken)
		return -1;
	if (length > HUB_MESSAGE_MAX)
		return hub_break(hub, NULL, "a message of %zu bytes is too long", length);
	if (hub->rank != 0)
		return hub_send(hub, &hub->peers[0], HUB_GATHER, 0, bytes, length, deadline_ns);
	if (length > 0)
		memcpy(into, bytes, length);
	return hub->peer_count ? hub_collect(hub, HUB_GATHER, into, length, &value, deadline_ns)
			       : 0;
}

int hub_look(struct bench_hub *hub)
{
	if (hub->is_broken)
		return -1;
	return hub->peer_count ? hub_peek(hub) : 0;
}

void hub_fail(struct bench_hub *hub, const char *reason)
{
	if (hub->nranks == 1)
		hub_break(hub, NULL, "%s", reason);
	else
		hub_break(hub, NULL, "rank %d on %s: %s", hub->rank, hub->host, reason);
}

const char *hub_problem(const struct bench_hub *hub)
{
	return hub == NULL ? "no memory to meet the other ranks" : hub->problem;
}

bool hub_is_teller(const struct bench_hub *hub)
{
	return hub == NULL || hub->rank == 0 || hub->is_refused ||
	       (hub->rank == 1 && hub->is_rank_0_lost);
}
