/* What ranks send to each other, and how they learn that one of them is gone. */
#include "bench/bench_launch.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>

#include "common/clock.h"
#include "tests/unit/bench/hub_ranks.h"

/* ---- what ranks do ------------------------------------------------------------------------------ */

/* More than fits into sockets, and nothing at all. */
static int talk_much(struct bench_hub *hub, int rank, int nranks)
{
	size_t length = (size_t)9 << 20;
	unsigned char *mine = malloc(length), *all = malloc(length * (size_t)nranks);
	int is_wrong;

	memset(mine, rank + 1, length);
	is_wrong = hub_gather(hub, mine, length, all) != 0 || hub_share(hub, mine, length) != 0 ||
		   mine[0] != 1 || mine[length - 1] != 1 || hub_share(hub, NULL, 0) != 0 ||
		   hub_gather(hub, NULL, 0, NULL) != 0;
	for (int i = 0; rank == 0 && i < nranks; i++)
		is_wrong |= all[length * (size_t)i] != i + 1 ||
			    all[length * (size_t)(i + 1) - 1] != i + 1;
	free(mine);
	free(all);
	return is_wrong;
}

static int fail_on_two(struct bench_hub *hub, int rank, int nranks)
{
	(void)nranks;
	if (hub_meet(hub) != 0)
		return 1;
	if (rank == 2)
		hub_fail(hub, "the GPU is\ton fire");
	while (hub_meet(hub) == 0)
		;
	return 3;
}

static int fail_after_sending(struct bench_hub *hub, int rank, int nranks)
{
	char all[RANKS_MAX], mine = 1;

	(void)nranks;
	if (rank == 1) {
		/* Rank 0 is far behind: the reason comes after a message that it has not read yet. */
		hub_gather(hub, &mine, 1, NULL);
		hub_fail(hub, "too far ahead");
		return 3;
	}
	while (hub_poll(hub) == 0 && hub_gather(hub, &mine, 1, all) == 0)
		;
	return 3;
}

static int die_on_one(struct bench_hub *hub, int rank, int nranks)
{
	(void)nranks;
	if (hub_meet(hub) != 0)
		return 1;
	if (rank == 1)
		kill(getpid(), SIGKILL);
	while (hub_meet(hub) == 0)
		;
	return 3;
}

static int die_on_zero(struct bench_hub *hub, int rank, int nranks)
{
	(void)nranks;
	if (hub_meet(hub) != 0)
		return 1;
	if (rank == 0)
		kill(getpid(), SIGKILL);
	while (hub_meet(hub) == 0)
		;
	return hub_is_teller(hub) == (rank == 1) ? 3 : 4;
}

static int see_it_die(struct bench_hub *hub, int rank, int nranks)
{
	(void)nranks;
	if (hub_meet(hub) != 0)
		return 1;
	if (rank == 1)
		kill(getpid(), SIGKILL);
	/* Like a rank that waits for a GPU. */
	while (hub_poll(hub) == 0)
		poll(NULL, 0, 1);
	return 3;
}

static int differ(struct bench_hub *hub, int rank, int nranks)
{
	char byte = 0, all[RANKS_MAX];

	(void)nranks;
	if (rank == 1)
		hub_gather(hub, &byte, 1, NULL);
	else
		hub_gather(hub, "12", 2, all);
	return hub_meet(hub) == -1 ? 3 : 1;
}

static int vain_s; /* how long */

static int wait_in_vain(struct bench_hub *hub, int rank, int nranks)
{
	(void)nranks;
	if (hub_meet(hub) != 0)
		return 1;
	if (rank == 2) {
		while (hub_poll(hub) == 0)
			poll(NULL, 0, 5);
		return 3;
	}
	hub_set_patience(hub, vain_s);
	return hub_meet(hub) == -1 ? 3 : 1;
}

/* Messages between the ranks below and the test; no rank has this number. */
enum { STAGE = RANKS_MAX - 1, GO = 1, SENT };

static void stop_here(int number)
{
	(void)number;
	(void)raise(SIGSTOP);
}

static int answer_late(struct bench_hub *hub, int rank, int nranks)
{
	struct itimerval soon = { .it_value = { .tv_usec = 100000 } };
	char all[RANKS_MAX], mine = 1;

	(void)nranks;
	if (hub_meet(hub) != 0)
		return 1;
	if (rank == 0) {
		hub_set_patience(hub, 1);
		signal(SIGALRM, stop_here);
		setitimer(ITIMER_REAL, &soon, NULL);
		return hub_gather(hub, &mine, 1, all) == -1 ? 3 : 1;
	}
	while (rank == 1 && told[STAGE].code != GO)
		poll(NULL, 0, 1);
	if (rank == 1 && hub_gather(hub, &mine, 1, NULL) == 0)
		told[STAGE].code = SENT;
	while (hub_poll(hub) == 0)
		poll(NULL, 0, 1);
	return 3;
}

/* Rank 0 gets the reason and closes its side; a thread of rank 1 that still waits there notices that. */
static int fail_and_look(struct bench_hub *hub, int rank, int nranks)
{
	int silent;

	(void)nranks;
	if (hub_meet(hub) != 0)
		return 1;
	while (rank != 1 && hub_poll(hub) == 0)
		poll(NULL, 0, 1);
	if (rank != 1)
		return 3;
	hub_fail(hub, "stuck inside");
	hub_silent(hub, PATIENCE_S * 1000, &silent, 1);
	return hub_peek(hub) == -1 && !hub_is_teller(hub) ? 3 : 4;
}

static int leave_early(struct bench_hub *hub, int rank, int nranks)
{
	(void)nranks;
	if (rank == 1)
		return 3;
	return hub_meet(hub) == -1 ? 3 : 1;
}

/* ---- tests -------------------------------------------------------------------------------------- */

static void test_talk(void)
{
	EXPECT_THAT("one rank needs no network", run_ranks(1, talk, 0) == 1);
	EXPECT_THAT("two ranks communicate", run_ranks(2, talk, 0) == 2);
	EXPECT_THAT("64 ranks communicate", run_ranks(64, talk, 0) == 64);
	EXPECT_THAT("messages larger than a socket's buffer", run_ranks(3, talk_much, 0) == 3);
}

/* Rank 1 answers; on a busy host it may take longer. */
static void test_in_vain(void)
{
	int ended = 0;

	for (vain_s = 1; vain_s < 30; vain_s *= 5) {
		ended = run_ranks(3, wait_in_vain, 3);
		if (strstr(told[0].problem, " more did not answer") == NULL)
			break;
	}
	EXPECT_THAT("after the limit, ranks that did not answer are named", ended == 3);
	EXPECT(is_told(0, "rank 2 on ") && is_told(0, "did not answer"));
}

/* Rank 0 has no CPU while the only answer arrives, until its limit is over. */
static void test_late_answer(void)
{
	struct bench_place place = self(0, 3);
	uint64_t over_ns;
	pid_t pids[3];
	int status = 0;

	memset(told, 0, RANKS_MAX * sizeof(*told));
	place.port = free_port();
	for (place.rank = 0; place.rank < 3; place.rank++)
		pids[place.rank] = start_rank(place, answer_late, PATIENCE_S);
	EXPECT(waitpid(pids[0], &status, WUNTRACED) == pids[0] && WIFSTOPPED(status));
	over_ns = clock_now_system() + UINT64_C(1000000000);
	told[STAGE].code = GO;
	while (told[STAGE].code != SENT || clock_now_system() < over_ns)
		poll(NULL, 0, 1);
	kill(pids[0], SIGCONT);
	EXPECT_THAT("an answer in the socket counts, however late it is read",
		    count_ended(pids, 3, 3) == 3 && is_told(0, "rank 2 on ") &&
			    is_told(0, " did not answer in time (rank 0 waited)"));
}

static void test_failures(void)
{
	EXPECT_THAT("a rank that fails ends all ranks", run_ranks(4, fail_on_two, 3) == 4);
	EXPECT(is_told(0, "rank 2 on ") && is_told(0, "the GPU is?on fire"));
	EXPECT(is_told(3, "rank 2 on ") && is_told(2, "rank 2 on "));
	EXPECT_THAT("a reason after a message is found", run_ranks(2, fail_after_sending, 3) == 2);
	EXPECT(is_told(0, "too far ahead"));
	EXPECT_THAT("a killed rank ends the others", run_ranks(4, die_on_one, 3) == 3);
	EXPECT(is_told(0, "rank 1 on ") && is_told(0, "ended unexpectedly") &&
	       is_told(3, "rank 1 on "));
	EXPECT_THAT("rank 0 killed: rank 1 reports it", run_ranks(4, die_on_zero, 3) == 3);
	EXPECT(is_told(3, "rank 0 on "));
	EXPECT_THAT("hub_poll sees a death", run_ranks(4, see_it_die, 3) == 3);
	EXPECT(is_told(2, "rank 1 on "));
	EXPECT_THAT("unexpected messages", run_ranks(3, differ, 3) == 3);
	EXPECT(is_told(0, "another step"));
	test_in_vain();
	test_late_answer();
	EXPECT_THAT("rank 0 reports the reason of rank 1, and rank 1 does not",
		    run_ranks(3, fail_and_look, 3) == 3 && is_told(0, "stuck inside"));
	EXPECT_THAT("one rank disconnects before the others", run_ranks(2, leave_early, 3) == 2);
	EXPECT(is_told(0, "disconnected before"));
}

int main(void)
{
	if (!hub_ranks_begin())
		return 1;
	test_talk();
	test_failures();
	return tap_done();
}
