/* For tests of the hub: ranks as separate processes on the loopback. Call hub_ranks_begin() first. */
#ifndef HUB_RANKS_H
#define HUB_RANKS_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/bench_launch.h"
#include "common/text.h"
#include "tests/tap.h"

enum { RANKS_MAX = 64, PATIENCE_S = 20 };

/* What a rank reports to the test, in shared memory. */
struct told {
	int code;
	char problem[HUB_PROBLEM_BYTES];
};
static struct told *told;

static inline struct bench_place self(int rank, int nranks)
{
	struct bench_place place;

	bench_place_init(&place);
	text_copy(place.launcher, sizeof(place.launcher), "env");
	text_copy(place.address, sizeof(place.address), "127.0.0.1");
	place.rank = place.local_rank = rank;
	place.nranks = place.local_ranks = nranks;
	place.token = 4711;
	return place;
}

/* A free port. */
static inline int free_port(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t length = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (bind(fd, (struct sockaddr *)&address, length) == -1 ||
	    getsockname(fd, (struct sockaddr *)&address, &length) == -1)
		return 0;
	close(fd);
	return ntohs(address.sin_port);
}

typedef int (*rank_fn)(struct bench_hub *hub, int rank, int nranks);

static inline int be_rank(struct bench_place place, rank_fn body, int patience_s)
{
	struct told *mine = &told[place.rank];
	struct bench_hub *hub;

	if (hub_open(&hub, &place, patience_s) == 0)
		mine->code = body(hub, place.rank, place.nranks);
	else
		mine->code = 2;
	if (mine->code != 2 || hub_is_teller(hub))
		text_copy(mine->problem, sizeof(mine->problem), hub_problem(hub));
	hub_close(hub);
	return mine->code;
}

static inline pid_t start_rank(struct bench_place place, rank_fn body, int patience_s)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(be_rank(place, body, patience_s));
	return pid;
}

/* How many ranks ended with this exit code. */
static inline int count_ended(const pid_t *pids, int count, int code)
{
	int found = 0;

	for (int i = 0; i < count; i++) {
		int status = 0;

		waitpid(pids[i], &status, 0);
		found += WIFEXITED(status) && WEXITSTATUS(status) == code;
	}
	return found;
}

static inline int run_ranks(int nranks, rank_fn body, int code)
{
	pid_t pids[RANKS_MAX];
	int port = free_port();

	memset(told, 0, RANKS_MAX * sizeof(*told));
	for (int rank = 0; rank < nranks; rank++) {
		struct bench_place place = self(rank, nranks);

		place.port = port;
		pids[rank] = start_rank(place, body, PATIENCE_S);
	}
	return count_ended(pids, nranks, code);
}

static inline int talk(struct bench_hub *hub, int rank, int nranks)
{
	uint32_t shared = rank == 0 ? 77 : 0, mine, all[RANKS_MAX] = { 0 };

	for (uint32_t round = 0; round < 20; round++) {
		mine = (uint32_t)rank * 1000 + round;
		if (hub_meet(hub) != 0 || hub_share(hub, &shared, sizeof(shared)) != 0 ||
		    shared != 77 + round ||
		    hub_gather(hub, &mine, sizeof(mine), rank == 0 ? all : NULL) != 0)
			return 1;
		for (int i = 0; rank == 0 && i < nranks; i++)
			if (all[i] != (uint32_t)i * 1000 + round)
				return 1;
		shared += rank == 0;
		if (hub_poll(hub) != 0)
			return 1;
	}
	return 0;
}

static inline int is_told(int rank, const char *part)
{
	if (strstr(told[rank].problem, part) != NULL)
		return 1;
	printf("#   rank %d says \"%s\"\n", rank, told[rank].problem);
	return 0;
}

/* A test that hangs is killed and fails. */
static inline bool hub_ranks_begin(void)
{
	told = mmap(NULL, RANKS_MAX * sizeof(*told), PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	alarm(170);
	return told != MAP_FAILED;
}

#endif
