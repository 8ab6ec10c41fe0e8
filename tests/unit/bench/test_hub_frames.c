/*
 * One rank's side of the hub, frame by frame: the test is all the other ranks. What they send lies in the sockets
 * before the rank reads it, so that nothing depends on time.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "common/attributes.h"
#include "common/clock.h"
#include "tests/support/scratch.h"
#include "tests/unit/bench/hub_ranks.h"

enum { OTHERS_MAX = 3, SOON = 1 };

struct frame {
	struct hub_header header;
	char payload[8192];
};

/* A rank with its connections; others[i] is the other end of peers[i]. */
struct rank_stage {
	struct bench_hub *hub;
	int others[OTHERS_MAX];
};

static void stage_begin(struct rank_stage *stage, int rank, int nranks)
{
	struct bench_hub *hub = calloc(1, sizeof(*hub));

	hub->rank = rank;
	hub->nranks = nranks;
	hub->peer_count = rank == 0 ? (size_t)nranks - 1 : 1;
	hub->peers = calloc(hub->peer_count, sizeof(*hub->peers));
	hub->polls = calloc(hub->peer_count, sizeof(*hub->polls));
	pthread_mutex_init(&hub->lock, NULL);
	snprintf(hub->host, sizeof(hub->host), "here");
	for (size_t i = 0; i < hub->peer_count; i++) {
		int pair[2];

		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) == -1)
			abort();
		hub->peers[i].fd = pair[0];
		stage->others[i] = pair[1];
		hub->peers[i].rank = rank == 0 ? (int)i + 1 : 0;
		snprintf(hub->peers[i].host, sizeof(hub->peers[i].host), "h%d", hub->peers[i].rank);
	}
	stage->hub = hub;
}

static void close_others(struct rank_stage *stage)
{
	for (size_t i = 0; i < stage->hub->peer_count; i++) {
		if (stage->others[i] != -1)
			close(stage->others[i]);
		stage->others[i] = -1;
	}
}

/* A hub that is not broken would wait for the goodbyes of the others. */
static void stage_end(struct rank_stage *stage)
{
	close_others(stage);
	stage->hub->is_broken = true;
	hub_close(stage->hub);
}

static void put_frame(int fd, enum hub_kind kind, uint64_t step, uint64_t value,
		      const char *payload, size_t length)
{
	struct frame frame = { .header = { HUB_MAGIC, kind, step, value, length } };

	memcpy(frame.payload, payload, length);
	EXPECT(write(fd, &frame, sizeof(frame.header) + length) ==
	       (ssize_t)(sizeof(frame.header) + length));
}

/* The next frame for this rank; kind 0: nothing, or the end. */
static struct frame next_frame(int fd)
{
	struct frame frame;

	memset(&frame, 0, sizeof(frame));
	if (read(fd, &frame.header, sizeof(frame.header)) != (ssize_t)sizeof(frame.header) ||
	    frame.header.magic != HUB_MAGIC ||
	    (frame.header.length > 0 &&
	     read(fd, frame.payload, frame.header.length) != (ssize_t)frame.header.length))
		frame.header.kind = 0;
	return frame;
}

static bool is_frame(int fd, enum hub_kind kind, uint64_t step, const char *payload)
{
	struct frame frame = next_frame(fd);
	bool is_same = frame.header.kind == kind && frame.header.step == step &&
		       frame.header.length == strlen(payload) &&
		       strcmp(frame.payload, payload) == 0;

	if (!is_same)
		printf("#   got kind %u at step %llu: %s\n", frame.header.kind,
		       (unsigned long long)frame.header.step, frame.payload);
	return is_same;
}

static bool is_end(int fd)
{
	char byte;

	return read(fd, &byte, 1) == 0;
}

static bool is_empty(int fd)
{
	char byte;

	return read(fd, &byte, 1) == -1 && errno == EAGAIN;
}

static bool is_problem(const struct bench_hub *hub, const char *wanted)
{
	if (strcmp(hub_problem(hub), wanted) == 0)
		return true;
	printf("#   got \"%s\"\n", hub_problem(hub));
	return false;
}

/* ---- what the others send to rank 0 --------------------------------------------------------------- */

enum { CULPRIT = 1 }; /* others[CULPRIT], rank 2, does something wrong */

static void put_gathers(struct rank_stage *stage, bool has_culprit)
{
	for (size_t i = 0; i < stage->hub->peer_count; i++)
		if (has_culprit || i != CULPRIT)
			put_frame(stage->others[i], HUB_GATHER, 1, 0, "abcd" + i, 1);
}

static void test_gather(void)
{
	char all[5] = "....", much[5000];
	struct rank_stage stage;

	stage_begin(&stage, 0, 4);
	put_gathers(&stage, true);
	EXPECT(hub_gather(stage.hub, "0", 1, all) == 0);
	EXPECT_THAT("everything is where its rank says", strcmp(all, "0abc") == 0);
	EXPECT_THAT("nothing is sent back", is_empty(stage.others[0]) && is_empty(stage.others[2]));
	/* The beginning of a header, read by hub_poll(); the rest follows. */
	{
		struct hub_header header = { HUB_MAGIC, HUB_GATHER, 2, 0, 2 };

		EXPECT(write(stage.others[1], &header, 10) == 10);
		EXPECT(hub_poll(stage.hub) == 0 && stage.hub->peers[1].header_got == 10);
		EXPECT(write(stage.others[1], (char *)&header + 10, 22) == 22);
		EXPECT(hub_poll(stage.hub) == 0 && hub_poll(stage.hub) == 0);
		EXPECT(write(stage.others[1], "xy", 2) == 2);
	}
	{
		char two[9] = "........";

		put_frame(stage.others[0], HUB_GATHER, 2, 0, "uv", 2);
		put_frame(stage.others[2], HUB_GATHER, 2, 0, "st", 2);
		EXPECT(hub_gather(stage.hub, "qr", 2, two) == 0 && strcmp(two, "qruvxyst") == 0);
	}
	/* Rank 2 is two steps ahead, fails there and ends. */
	memset(much, 'm', sizeof(much));
	for (size_t i = 0; i < 3; i++)
		put_frame(stage.others[i], HUB_GATHER, 3, 0, "", 0);
	put_frame(stage.others[CULPRIT], HUB_GATHER, 4, 0, much, sizeof(much));
	put_frame(stage.others[CULPRIT], HUB_GATHER, 5, 0, "n", 1);
	put_frame(stage.others[CULPRIT], HUB_FAIL, 5, 0, "no memory", 9);
	EXPECT(hub_gather(stage.hub, NULL, 0, NULL) == 0 && hub_poll(stage.hub) == 0);
	EXPECT_THAT("a rank that is ahead is not read further", hub_poll(stage.hub) == 0);
	EXPECT(close(stage.others[CULPRIT]) == 0 && hub_poll(stage.hub) == -1);
	stage.others[CULPRIT] = -1;
	EXPECT_THAT("the reason is found behind two messages", is_problem(stage.hub, "no memory"));
	EXPECT(is_frame(stage.others[0], HUB_FAIL, 3, "no memory"));
	EXPECT(is_frame(stage.others[2], HUB_FAIL, 3, "no memory"));
	EXPECT(hub_poll(stage.hub) == -1 && hub_meet(stage.hub) == -1 &&
	       hub_share(stage.hub, NULL, 0) == -1 && hub_gather(stage.hub, NULL, 0, NULL) == -1);
	stage_end(&stage);
}

/* Rank 2 sends these bytes instead of its byte for hub_gather(), and ends or not. */
struct wrong {
	const char *what;
	struct hub_header header;
	const char *payload;
	size_t bytes; /* of header and payload */
	bool is_closed;
	bool is_told; /* rank 2, too, gets the reason */
	const char *problem;
};

static void test_wrong_frames(void)
{
	static const struct wrong cases[] = {
		{ "no magic",
		  { HUB_MAGIC + 1, HUB_GATHER, 1, 0, 1 },
		  "x",
		  33,
		  false,
		  false,
		  "rank 2 on h2 sent an invalid message" },
		{ "too long",
		  { HUB_MAGIC, HUB_GATHER, 1, 0, HUB_MESSAGE_MAX + 1 },
		  "",
		  32,
		  false,
		  false,
		  "rank 2 on h2 sent an invalid message" },
		{ "another length",
		  { HUB_MAGIC, HUB_GATHER, 1, 0, HUB_MESSAGE_MAX },
		  "",
		  32,
		  false,
		  true,
		  "rank 2 on h2 is at another step than rank 0 (6 of 1073741824 bytes at 1, not 6 "
		  "of 1 at "
		  "1): do all ranks run the same command?" },
		{ "another kind",
		  { HUB_MAGIC, HUB_MEET, 1, 0, 1 },
		  "x",
		  33,
		  false,
		  true,
		  "rank 2 on h2 is at another step than rank 0 (3 of 1 bytes at 1, not 6 of 1 at "
		  "1): do "
		  "all ranks run the same command?" },
		{ "another step",
		  { HUB_MAGIC, HUB_GATHER, 2, 0, 1 },
		  "x",
		  33,
		  false,
		  true,
		  "rank 2 on h2 is at another step than rank 0 (6 of 1 bytes at 2, not 6 of 1 at "
		  "1): do "
		  "all ranks run the same command?" },
		{ "goodbye",
		  { HUB_MAGIC, HUB_BYE, 1, 0, 0 },
		  "",
		  32,
		  false,
		  true,
		  "rank 2 on h2 disconnected before the others" },
		{ "a reason",
		  { HUB_MAGIC, HUB_FAIL, 1, 0, 6 },
		  "a\tfire",
		  38,
		  false,
		  false,
		  "a?fire" },
		{ "no reason",
		  { HUB_MAGIC, HUB_FAIL, 1, 0, 0 },
		  "",
		  32,
		  false,
		  false,
		  "another rank failed without giving a reason" },
		{ "nothing",
		  { HUB_MAGIC, HUB_GATHER, 1, 0, 1 },
		  "",
		  0,
		  true,
		  false,
		  "rank 2 on h2 ended unexpectedly: killed, or crashed" },
		{ "half a header",
		  { HUB_MAGIC, HUB_GATHER, 1, 0, 1 },
		  "",
		  20,
		  true,
		  false,
		  "rank 2 on h2 ended unexpectedly: killed, or crashed" },
		{ "a header only",
		  { HUB_MAGIC, HUB_GATHER, 1, 0, 1 },
		  "",
		  32,
		  true,
		  false,
		  "rank 2 on h2 ended unexpectedly: killed, or crashed" },
	};

	_Static_assert(HUB_MESSAGE_MAX == 1073741824, "as above");
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct frame frame = { .header = cases[i].header };
		struct rank_stage stage;
		char all[4];

		printf("# %s\n", cases[i].what);
		snprintf(frame.payload, sizeof(frame.payload), "%s", cases[i].payload);
		stage_begin(&stage, 0, 4);
		put_gathers(&stage, false);
		EXPECT(write(stage.others[CULPRIT], &frame, cases[i].bytes) ==
		       (ssize_t)cases[i].bytes);
		if (cases[i].is_closed)
			shutdown(stage.others[CULPRIT], SHUT_WR);
		EXPECT(hub_gather(stage.hub, "0", 1, all) == -1);
		EXPECT(is_problem(stage.hub, cases[i].problem) && hub_is_teller(stage.hub) &&
		       !stage.hub->is_rank_0_lost);
		EXPECT(is_frame(stage.others[0], HUB_FAIL, 1, cases[i].problem) &&
		       is_frame(stage.others[2], HUB_FAIL, 1, cases[i].problem));
		EXPECT(cases[i].is_told
			       ? is_frame(stage.others[CULPRIT], HUB_FAIL, 1, cases[i].problem)
			       : is_empty(stage.others[CULPRIT]));
		stage_end(&stage);
	}
}

/* Not more of a reason than there is room for. */
static void test_long_reason(void)
{
	char reason[2 * HUB_PROBLEM_BYTES];
	struct rank_stage stage;

	memset(reason, 'r', sizeof(reason));
	stage_begin(&stage, 0, 2);
	put_frame(stage.others[0], HUB_FAIL, 0, 0, reason, sizeof(reason));
	EXPECT(hub_poll(stage.hub) == -1);
	EXPECT(strlen(hub_problem(stage.hub)) == HUB_PROBLEM_BYTES - 1);
	stage_end(&stage);
}

/* With hardly any patience: only what has arrived counts. */
static void test_no_answer(bool may_spin)
{
	static const struct {
		bool has_come[OTHERS_MAX];
		const char *problem;
	} cases[] = {
		{ { true, false, true }, "rank 2 on h2 did not answer in time (rank 0 waited)" },
		{ { false, true, true }, "rank 1 on h1 did not answer in time (rank 0 waited)" },
		{ { true, false, false },
		  "rank 2 on h2 and 1 more did not answer in time (rank 0 waited)" },
		{ { false, false, false },
		  "rank 1 on h1 and 2 more did not answer in time (rank 0 waited)" },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct rank_stage stage;
		char all[4];

		stage_begin(&stage, 0, 4);
		stage.hub->may_spin = may_spin;
		stage.hub->patience_ns = SOON;
		for (size_t j = 0; j < OTHERS_MAX; j++)
			if (cases[i].has_come[j])
				put_frame(stage.others[j], HUB_GATHER, 1, 0, "x", 1);
		EXPECT(hub_gather(stage.hub, "0", 1, all) == -1 &&
		       is_problem(stage.hub, cases[i].problem));
		for (size_t j = 0; j < OTHERS_MAX; j++)
			EXPECT(is_frame(stage.others[j], HUB_FAIL, 1, cases[i].problem));
		stage_end(&stage);
	}
}

/* ---- what rank 0 sends ---------------------------------------------------------------------------- */

static void test_share(void)
{
	struct rank_stage stage;
	char bytes[] = "shared";

	stage_begin(&stage, 0, 4);
	EXPECT(hub_share(stage.hub, bytes, 6) == 0 && hub_share(stage.hub, NULL, 0) == 0);
	for (size_t i = 0; i < OTHERS_MAX; i++)
		EXPECT(is_frame(stage.others[i], HUB_SHARE, 1, "shared") &&
		       is_frame(stage.others[i], HUB_SHARE, 2, "") && is_empty(stage.others[i]));
	for (size_t i = 0; i < OTHERS_MAX; i++)
		put_frame(stage.others[i], HUB_MEET, 3, 0, "", 0);
	EXPECT(hub_meet(stage.hub) == 0);
	for (size_t i = 0; i < OTHERS_MAX; i++) {
		struct frame go = next_frame(stage.others[i]);

		EXPECT(go.header.kind == HUB_GO && go.header.step == 3 && go.header.value == 0);
	}
	EXPECT(hub_share(stage.hub, bytes, (size_t)HUB_MESSAGE_MAX + 1) == -1);
	EXPECT(is_problem(stage.hub, "a message of 1073741825 bytes is too long"));
	EXPECT(is_frame(stage.others[2], HUB_FAIL, 4, "a message of 1073741825 bytes is too long"));
	stage_end(&stage);
}

/* Rank 0's and the others' clock is the same: all go at the same time, soon. */
static void test_go(void)
{
	struct rank_stage stage;
	uint64_t before_ns = clock_now_system(), go_ns[2];

	stage_begin(&stage, 0, 3);
	stage.hub->is_one_machine = stage.hub->may_spin = true;
	for (size_t i = 0; i < 2; i++)
		put_frame(stage.others[i], HUB_MEET, 1, 0, "", 0);
	EXPECT(hub_meet(stage.hub) == 0);
	for (size_t i = 0; i < 2; i++)
		go_ns[i] = next_frame(stage.others[i]).header.value;
	EXPECT(go_ns[0] == go_ns[1] && go_ns[0] >= before_ns + 10000 + 2 * 6000);
	EXPECT_THAT("rank 0 waited for it", clock_now_system() >= go_ns[0]);
	stage_end(&stage);
}

/* Nobody reads: what fits into the socket is sent, and the connection ends there. */
static void test_full(void)
{
	static char bytes[4 << 20];
	struct rank_stage stage;
	const char *problem = "rank 1 on h1 did not accept a message in time";
	size_t got = 0;
	ssize_t now;
	char waste[4096];

	stage_begin(&stage, 0, 3);
	stage.hub->patience_ns = SOON;
	EXPECT(hub_share(stage.hub, bytes, sizeof(bytes)) == -1 && is_problem(stage.hub, problem));
	EXPECT(is_frame(stage.others[1], HUB_FAIL, 1, problem));
	while ((now = read(stage.others[0], waste, sizeof(waste))) > 0)
		got += (size_t)now;
	EXPECT_THAT("a part of the message, and no reason behind it",
		    now == 0 && got > 0 && got < sizeof(bytes));
	stage_end(&stage);
}

static void test_fail(void)
{
	struct rank_stage stage;

	stage_begin(&stage, 0, 3);
	stage.hub->step = 7;
	close(stage.hub->peers[0].fd);
	stage.hub->peers[0].fd = -1;
	hub_fail(stage.hub, "out of paper");
	hub_fail(stage.hub, "later");
	EXPECT(is_problem(stage.hub, "rank 0 on here: out of paper"));
	EXPECT(is_frame(stage.others[1], HUB_FAIL, 7, "rank 0 on here: out of paper"));
	EXPECT(is_empty(stage.others[1]));
	stage_end(&stage);
	stage_begin(&stage, 0, 1);
	EXPECT(hub_poll(stage.hub) == 0 && hub_meet(stage.hub) == 0);
	EXPECT_THAT("alone, nothing is sent", hub_share(stage.hub, NULL, HUB_MESSAGE_MAX) == 0);
	hub_fail(stage.hub, "out of paper");
	EXPECT(is_problem(stage.hub, "out of paper") && hub_is_teller(stage.hub));
	stage_end(&stage);
	EXPECT(is_problem(NULL, "out of memory for joining the other ranks") &&
	       hub_is_teller(NULL));
}

/* ---- another rank --------------------------------------------------------------------------------- */

static void test_other_rank(void)
{
	struct rank_stage stage;
	char bytes[4] = "...";

	stage_begin(&stage, 2, 4);
	EXPECT(hub_gather(stage.hub, "mine", 4, NULL) == 0);
	EXPECT(is_frame(stage.others[0], HUB_GATHER, 1, "mine"));
	put_frame(stage.others[0], HUB_SHARE, 2, 0, "all", 3);
	EXPECT(hub_share(stage.hub, bytes, 3) == 0 && strcmp(bytes, "all") == 0);
	put_frame(stage.others[0], HUB_GO, 3, 0, "", 0);
	EXPECT(hub_meet(stage.hub) == 0 && is_frame(stage.others[0], HUB_MEET, 3, ""));
	/* A clock that is ahead by an hour must not make this rank wait. */
	put_frame(stage.others[0], HUB_GO, 4, clock_now_system() + UINT64_C(3600000000000), "", 0);
	EXPECT(hub_meet(stage.hub) == 0 && is_frame(stage.others[0], HUB_MEET, 4, ""));
	EXPECT(!hub_is_teller(stage.hub));
	shutdown(stage.others[0], SHUT_WR);
	EXPECT(hub_meet(stage.hub) == -1 && stage.hub->is_rank_0_lost);
	EXPECT(is_problem(stage.hub, "rank 0 on h0 ended unexpectedly: killed, or crashed"));
	EXPECT_THAT("that is for rank 1 to report", !hub_is_teller(stage.hub));
	stage.hub->rank = 1;
	EXPECT(hub_is_teller(stage.hub));
	stage.hub->is_rank_0_lost = false;
	EXPECT(!hub_is_teller(stage.hub));
	stage.hub->is_refused = true;
	EXPECT(hub_is_teller(stage.hub));
	stage_end(&stage);
	stage_begin(&stage, 1, 2);
	EXPECT(hub_gather(stage.hub, "x", (size_t)HUB_MESSAGE_MAX + 1, NULL) == -1);
	EXPECT(is_problem(stage.hub, "a message of 1073741825 bytes is too long"));
	stage_end(&stage);
}

/* ---- ending --------------------------------------------------------------------------------------- */

static void test_goodbye(void)
{
	struct rank_stage stage;

	stage_begin(&stage, 0, 3);
	stage.hub->step = 4;
	for (size_t i = 0; i < 2; i++)
		put_frame(stage.others[i], HUB_BYE, 5, 0, "", 0);
	hub_close(stage.hub);
	for (size_t i = 0; i < 2; i++) {
		EXPECT(is_frame(stage.others[i], HUB_BYE, 5, "") && is_end(stage.others[i]));
		close(stage.others[i]);
	}
	stage_begin(&stage, 1, 3);
	put_frame(stage.others[0], HUB_BYE, 1, 0, "", 0);
	hub_close(stage.hub);
	EXPECT(is_frame(stage.others[0], HUB_BYE, 1, "") && is_end(stage.others[0]));
	close(stage.others[0]);
	/* One has ended without a word, the other still has something to say: it gets the reason. */
	stage_begin(&stage, 0, 3);
	shutdown(stage.others[0], SHUT_WR);
	put_frame(stage.others[1], HUB_GATHER, 1, 0, "xyz", 3);
	shutdown(stage.others[1], SHUT_WR);
	hub_close(stage.hub);
	EXPECT(is_frame(stage.others[1], HUB_FAIL, 1,
			"rank 1 on h1 ended unexpectedly: killed, or crashed"));
	close(stage.others[0]);
	close(stage.others[1]);
	hub_close(NULL);
}

static void test_silent(void)
{
	struct rank_stage stage;
	int silent[2] = { -1, -1 };

	stage_begin(&stage, 0, 4);
	EXPECT(write(stage.others[0], "something", 9) == 9);
	EXPECT_THAT("nobody has closed its side", hub_silent(stage.hub, 0, silent, 1) == 3);
	EXPECT(silent[0] == 1 && silent[1] == -1);
	EXPECT(is_end(stage.others[0]) && is_end(stage.others[1]) && is_end(stage.others[2]));
	EXPECT(write(stage.others[0], "the end", 7) == 7);
	close(stage.others[0]);
	stage.others[0] = -1;
	EXPECT(hub_silent(stage.hub, 0, silent, 2) == 2 && silent[0] == 2 && silent[1] == 3);
	close(stage.hub->peers[1].fd);
	stage.hub->peers[1].fd = -1;
	EXPECT(hub_silent(stage.hub, 0, silent, 2) == 1 && silent[0] == 3);
	close(stage.others[2]);
	stage.others[2] = -1;
	EXPECT(hub_silent(stage.hub, 0, silent, 2) == 0);
	stage_end(&stage);
}

static void test_read_whole(void)
{
	char bytes[8] = "";
	int pair[2];

	EXPECT(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	EXPECT(write(pair[1], "abcdef", 6) == 6);
	EXPECT(hub_read_whole(pair[0], bytes, 4, 0) == 0 && strcmp(bytes, "abcd") == 0);
	errno = 0;
	EXPECT(hub_read_whole(pair[0], bytes, 4, clock_now_system()) == -1 && errno == ETIMEDOUT);
	EXPECT_THAT("what has come is there", strcmp(bytes, "efcd") == 0);
	close(pair[1]);
	errno = EINVAL;
	EXPECT(hub_read_whole(pair[0], bytes, 1, 0) == -1 && errno == 0);
	EXPECT(hub_read_whole(pair[0], bytes, 0, 0) == 0);
	close(pair[0]);
	EXPECT(hub_read_whole(-1, bytes, 1, 0) == -1 && errno == EBADF);
}

/* Packets keep their limits: a read gets one of them at most, as if the rest had not come yet. */
static void test_pieces(void)
{
	struct hub_header header = { HUB_MAGIC, HUB_GATHER, 1, 0, 3 };
	char bytes[8] = "", all[8] = "";
	struct rank_stage stage;
	int pair[2];

	EXPECT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair) == 0);
	EXPECT(write(pair[1], "ab", 2) == 2 && write(pair[1], "cde", 3) == 3);
	EXPECT(hub_read_whole(pair[0], bytes, 4, 0) == 0 && strcmp(bytes, "abcd") == 0);
	stage_begin(&stage, 0, 2);
	close(stage.hub->peers[0].fd);
	close(stage.others[0]);
	stage.hub->peers[0].fd = pair[0];
	stage.others[0] = pair[1];
	EXPECT(write(pair[1], &header, 20) == 20 && write(pair[1], (char *)&header + 20, 12) == 12);
	EXPECT(write(pair[1], "x", 1) == 1 && write(pair[1], "yzw", 3) == 3);
	EXPECT(hub_gather(stage.hub, "abc", 3, all) == 0 && strcmp(all, "abcxyz") == 0);
	header.step = 2;
	EXPECT(write(pair[1], &header, 32) == 32 && write(pair[1], "x", 1) == 1);
	header = (struct hub_header){ HUB_MAGIC, HUB_FAIL, 2, 0, 4 };
	EXPECT(write(pair[1], "yz", 2) == 2 && write(pair[1], &header, 32) == 32);
	EXPECT(write(pair[1], "why", 3) == 3 && write(pair[1], "?", 1) == 1);
	EXPECT(hub_gather(stage.hub, "abc", 3, all) == 0 && hub_poll(stage.hub) == -1 &&
	       is_problem(stage.hub, "why?"));
	stage_end(&stage);
}

/* ---- joining -------------------------------------------------------------------------------------- */

/* A listening socket at 127.0.0.N, and its port; port 0: any. */
static int open_door(int n, int *port)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_port = htons((uint16_t)*port),
				       .sin_addr = { htonl(INADDR_LOOPBACK - 1 + (uint32_t)n) } };
	socklen_t length = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)&address, length) == -1 || listen(fd, 100) == -1 ||
	    getsockname(fd, (struct sockaddr *)&address, &length) == -1)
		return -1;
	*port = ntohs(address.sin_port);
	return fd;
}

struct greeting {
	struct hub_header header;
	struct hub_hello hello;
};

static struct greeting greeting(enum hub_kind kind, int rank, uint64_t token)
{
	return (struct greeting){
		.header = { .magic = HUB_MAGIC, .kind = kind, .length = sizeof(struct hub_hello) },
		.hello = { .version = HUB_VERSION,
			   .rank = rank,
			   .nranks = 3,
			   .token = token,
			   .host = "far\taway" },
	};
}

static int connect_to_port(int port)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_port = htons((uint16_t)port),
				       .sin_addr = { htonl(INADDR_LOOPBACK) } };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	EXPECT(connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
	return fd;
}

/* Rank 0 finds everybody at its door when it comes; its patience is over at once. */
static void test_admission(bool is_complete)
{
	enum {
		OTHER_MAGIC,
		OTHER_KIND,
		OTHER_LENGTH,
		OTHER_TOKEN,
		OTHER_VERSION,
		OTHER_NRANKS,
		RANK_0,
		RANK_3,
		RANK_1,
		RANK_1_AGAIN,
		HALF,
		RANK_2,
		CLIENTS
	};
	static const char *const refusals[CLIENTS] = {
		[OTHER_VERSION] = "rank 0's host has a different version of ringside",
		[OTHER_NRANKS] = "a rank expects 4 ranks, rank 0 expects 3",
		[RANK_0] = "no such rank in this job",
		[RANK_3] = "no such rank in this job",
		[RANK_1_AGAIN] = "rank 1 has already joined from far?away",
	};
	struct bench_place place = self(0, 3);
	struct hub_header meet = { .magic = HUB_MAGIC, .kind = HUB_MEET, .step = 1 };
	struct bench_hub *hub;
	int fds[CLIENTS];

	place.port = 0;
	place.listen_fd = open_door(1, &place.port);
	for (int i = 0; i < (is_complete ? CLIENTS : RANK_2); i++) {
		struct greeting hello = greeting(HUB_HELLO,
						 i == RANK_0   ? 0
						 : i == RANK_3 ? 3
							       : 1,
						 4711);
		size_t length = i == HALF ? sizeof(hello) - 1 : sizeof(hello);

		hello.header.magic += i == OTHER_MAGIC;
		hello.header.kind += i == OTHER_KIND;
		hello.header.length += i == OTHER_LENGTH;
		hello.hello.token += i == OTHER_TOKEN;
		hello.hello.version += i == OTHER_VERSION;
		hello.hello.nranks += i == OTHER_NRANKS;
		hello.hello.rank += i == RANK_2;
		fds[i] = connect_to_port(place.port);
		EXPECT(send(fds[i], &hello, length, 0) == (ssize_t)length);
		if (i == RANK_1 || i == RANK_2)
			EXPECT(send(fds[i], &meet, sizeof(meet), 0) == (ssize_t)sizeof(meet));
	}
	EXPECT_EQUAL(hub_open(&hub, &place, 0), is_complete ? 0 : -1);
	if (is_complete)
		EXPECT(strcmp(hub->peers[0].host, "far?away") == 0 && !hub->is_one_machine);
	else
		EXPECT(is_problem(
			hub, "rank 2 did not join within 0 s; rejected 9, the last one: rank 1 "
			     "has already joined from far?away"));
	for (int i = 0; i < (is_complete ? CLIENTS : RANK_2); i++) {
		struct frame frame;

		if (i == RANK_1 || i == RANK_2) {
			struct greeting welcome;

			EXPECT(recv(fds[i], &welcome, sizeof(welcome), MSG_DONTWAIT) ==
			       (ssize_t)sizeof(welcome));
			EXPECT(welcome.header.magic == HUB_MAGIC &&
			       welcome.header.kind == HUB_WELCOME &&
			       welcome.header.length == sizeof(welcome.hello) &&
			       welcome.hello.version == HUB_VERSION && welcome.hello.rank == 0 &&
			       welcome.hello.nranks == 3 && welcome.hello.token == 4711 &&
			       welcome.hello.machine == hub->machine);
			EXPECT_EQUAL(next_frame(fds[i]).header.kind,
				     is_complete ? HUB_GO : HUB_FAIL);
		} else if (refusals[i] != NULL) {
			frame = next_frame(fds[i]);
			EXPECT(frame.header.kind == HUB_FAIL &&
			       strcmp(frame.payload, refusals[i]) == 0);
		} else if (i != HALF) {
			EXPECT(is_end(fds[i]));
		}
		close(fds[i]);
	}
	if (is_complete)
		hub->is_broken = true; /* nobody says goodbye */
	hub_close(hub);
}

static void test_crowd(void)
{
	struct bench_place place = self(0, 12);
	struct bench_hub *hub;

	place.listen_fd = open_door(1, &place.port);
	EXPECT(hub_open(&hub, &place, 0) == -1);
	EXPECT(is_problem(hub, "ranks 1, 2, 3, 4, 5, 6, 7, 8 and 3 more did not join within 0 s"));
	hub_close(hub);
	place = self(0, 2);
	place.listen_fd = -1;
	close(open_door(1, &place.port));
	{
		int taken = open_door(1, &place.port);
		char problem[160];

		snprintf(problem, sizeof(problem),
			 "rank 0 cannot listen on port %d: Address already in use; use --meet "
			 "HOST:PORT "
			 "with another port",
			 place.port);
		EXPECT(hub_open(&hub, &place, 0) == -1 && is_problem(hub, problem));
		hub_close(hub);
		close(taken);
	}
}

/* What the doors at 127.0.0.2 and so on answer; the last one is rank 0. */
static void answer_at_doors(const int *doors, int count)
{
	for (int i = 0; i < count; i++) {
		struct greeting hello, answer = greeting(HUB_WELCOME, 0, 99);
		struct hub_header go = { .magic = HUB_MAGIC, .kind = HUB_GO, .step = 1 };
		int fd = accept(doors[i], NULL, NULL);

		if (recv(fd, &hello, sizeof(hello), MSG_WAITALL) != (ssize_t)sizeof(hello) ||
		    hello.header.magic != HUB_MAGIC || hello.header.kind != HUB_HELLO ||
		    hello.header.length != sizeof(hello.hello) || hello.hello.rank != 1 ||
		    hello.hello.nranks != 3 || hello.hello.token != 99 ||
		    hello.hello.version != HUB_VERSION)
			_exit(1);
		answer.header.magic += i == 0;
		answer.header.length -= i == 1;
		answer.header.kind += i == 2;
		answer.hello.token += i == 3;
		if (i == 4)
			answer.header =
				(struct hub_header){ HUB_MAGIC, HUB_FAIL, 0, 0, HUB_PROBLEM_BYTES };
		if (i < 5 || i == count - 1)
			send(fd, &answer, sizeof(answer), MSG_NOSIGNAL);
		if (i < count - 1) {
			close(fd);
			continue;
		}
		send(fd, &go, sizeof(go), MSG_NOSIGNAL);
		if (recv(fd, &go, sizeof(go), MSG_WAITALL) != (ssize_t)sizeof(go) ||
		    go.kind != HUB_MEET)
			_exit(2);
	}
	_exit(0);
}

static void test_search(void)
{
	enum { DOORS = 7 };
	struct hub_card card = { .count = DOORS + 1, .token = 99 };
	struct bench_place place = self(1, 3);
	struct bench_hub *hub;
	int doors[DOORS], status = -1;
	pid_t pid;

	place.address[0] = '\0';
	place.local_ranks = 1;
	for (int i = 0; i < DOORS; i++)
		doors[i] = open_door(i + 2, &card.port);
	for (int i = 0; i <= DOORS; i++)
		snprintf(card.hosts[i], sizeof(card.hosts[i]), "127.0.0.%d", i + 1);
	text_format(place.file, sizeof(place.file), "%s/search", scratch_dir.path);
	EXPECT(hub_card_write(&card, place.file) == OK);
	pid = fork();
	if (pid == 0)
		answer_at_doors(doors, DOORS);
	for (int i = 0; i < DOORS; i++)
		close(doors[i]);
	EXPECT_THAT("the first that is rank 0 of this job",
		    hub_open(&hub, &place, PATIENCE_S) == 0 &&
			    strcmp(hub->peers[0].host, "far?away") == 0);
	hub->is_broken = true;
	hub_close(hub);
	EXPECT(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void test_refused(void)
{
	struct bench_place place = self(1, 3);
	int door = open_door(1, &place.port);
	struct bench_hub *hub;
	pid_t pid = fork();

	if (pid == 0) {
		struct greeting hello;
		int fd = accept(door, NULL, NULL);

		/* Only the parent reports what it expected. */
		if (freopen("/dev/null", "w", stdout) != NULL &&
		    recv(fd, &hello, sizeof(hello), MSG_WAITALL) > 0)
			put_frame(fd, HUB_FAIL, 0, 0, "not\nyou", 7);
		_exit(0);
	}
	close(door);
	EXPECT(hub_open(&hub, &place, PATIENCE_S) == -1);
	EXPECT(is_problem(hub, "rank 1 was refused by rank 0: not?you") && hub_is_teller(hub) &&
	       !hub->is_rank_0_lost);
	hub_close(hub);
	waitpid(pid, NULL, 0);
}

static void put_text(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	EXPECT(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0);
}

/* Nothing useful at the first try, and no patience. */
static void test_nothing_found(void)
{
	static const char *const whys[] = { "No such file or directory",
					    "it is not a rendezvous file of this user",
					    "the file contains no address", "Connection refused" };
	struct bench_place place = self(2, 3);
	char problem[512];
	struct bench_hub *hub;

	close(open_door(1, &place.port));
	text_format(place.file, sizeof(place.file), "%s/meet", scratch_dir.path);
	for (size_t i = 0; i < ARRAY_LENGTH(whys); i++) {
		struct hub_card card = { .count = 1, .hosts = { "127.0.0.1" }, .port = place.port };

		if (i == 1)
			EXPECT(mkdir(place.file, 0700) == 0);
		if (i == 2)
			EXPECT(rmdir(place.file) == 0);
		if (i == 2)
			put_text(place.file, "no address\n");
		if (i == 3)
			EXPECT(hub_card_write(&card, place.file) == OK);
		EXPECT(hub_open(&hub, &place, 0) == -1);
		text_format(
			problem, sizeof(problem),
			"rank 2 did not find rank 0 by %s within 0 s: %s; is the file on a shared "
			"file system?",
			place.file, whys[i]);
		EXPECT(is_problem(hub, problem) && hub->is_rank_0_lost);
		hub_close(hub);
	}
	place.file[0] = '\0';
	text_copy(place.launcher, sizeof(place.launcher), "self");
	EXPECT(hub_open(&hub, &place, PATIENCE_S) == -1);
	text_format(
		problem, sizeof(problem),
		"rank 2 did not find rank 0 at 127.0.0.1 port %d within %d s: Connection refused",
		place.port, PATIENCE_S);
	EXPECT_THAT("whoever started the ranks knows why nobody listens",
		    is_problem(hub, problem) && !hub->is_rank_0_lost);
	hub_close(hub);
	place = self(0, 2);
	place.address[0] = '\0';
	text_format(place.file, sizeof(place.file), "%s/none/meet", scratch_dir.path);
	EXPECT(hub_open(&hub, &place, 0) == -1);
	text_format(problem, sizeof(problem),
		    "rank 0 cannot write the rendezvous file %s: No such file or directory",
		    place.file);
	EXPECT(is_problem(hub, problem));
	hub_close(hub);
}

/* ---- cards ---------------------------------------------------------------------------------------- */

static void test_cards(void)
{
	static const struct {
		const char *text, *host; /* NULL: refused */
		int port;
	} addresses[] = {
		{ "a:1", "a", 1 },
		{ "a:65535", "a", 65535 },
		{ "a:0065535", "a", 65535 },
		{ "a:00065535", NULL, 0 },
		{ "a:65536", NULL, 0 },
		{ "a:0", NULL, 0 },
		{ "a:", NULL, 0 },
		{ ":1", NULL, 0 },
		{ "a", NULL, 0 },
		{ "", NULL, 0 },
		{ "[::1]:80", "::1", 80 },
		{ "[]:80", NULL, 0 },
		{ "[::1:80", NULL, 0 },
		{ "::1]:80", NULL, 0 },
		{ "::1:80", NULL, 0 },
		{ "a b:80", NULL, 0 },
		{ "a/b:80", NULL, 0 },
		{ "a\x7f:80", NULL, 0 },
		{ "a!b~c:80", "a!b~c", 80 },
		{ "[x]:80", "x", 80 },
		{ "a:8x", NULL, 0 },
	};
	struct hub_card card = { .count = 2,
				 .port = 40123,
				 .token = 0xdeadbeef,
				 .hosts = { "node-1", "fe80::1" } },
			again;
	static const char two[] =
		"node-1:40123 00000000deadbeef\n[fe80::1]:40123 00000000deadbeef\n";
	char path[PATH_MAX + 8], text[HUB_CARD_BYTES + 1], host[HUB_CARD_HOST];
	size_t length = 0;
	FILE *file;
	int port;

	for (size_t i = 0; i < ARRAY_LENGTH(addresses); i++) {
		enum status status =
			hub_card_address(addresses[i].text, strlen(addresses[i].text), host, &port);

		EXPECT_THAT(addresses[i].text,
			    addresses[i].host == NULL
				    ? status == ERR_FORMAT
				    : status == OK && port == addresses[i].port &&
					      strcmp(host, addresses[i].host) == 0);
	}
	memset(text, 'a', HUB_CARD_HOST);
	memcpy(text + HUB_CARD_HOST, ":1", 2);
	EXPECT(hub_card_address(text + 1, HUB_CARD_HOST + 1, host, &port) == OK &&
	       strlen(host) == HUB_CARD_HOST - 1);
	EXPECT(hub_card_address(text, HUB_CARD_HOST + 2, host, &port) == ERR_FORMAT);

	snprintf(path, sizeof(path), "%s/card", scratch_dir.path);
	EXPECT(hub_card_write(&card, path) == OK);
	file = fopen(path, "r");
	length = fread(text, 1, sizeof(text), file);
	fclose(file);
	EXPECT(length == strlen(two) && memcmp(text, two, length) == 0);
	EXPECT(hub_card_parse(&again, text, length) == OK && again.count == 2 &&
	       again.port == 40123 && again.token == 0xdeadbeef &&
	       strcmp(again.hosts[0], "node-1") == 0 && strcmp(again.hosts[1], "fe80::1") == 0);
	EXPECT_THAT("one port",
		    hub_card_parse(&again, "a:1 00000000deadbeef\nb:2 00000000deadbeef\n", 42) ==
			    ERR_FORMAT);
	EXPECT_THAT("no end within it", hub_card_parse(&again, two, sizeof(two)) == ERR_FORMAT);
	EXPECT(hub_card_parse(&again, "a:1 00000000deadbeeff\n", 22) == ERR_FORMAT);
	EXPECT(hub_card_parse(&again, "a:1\n", 4) == ERR_FORMAT);

	card.count = HUB_CARD_ADDRESSES;
	for (size_t i = 0; i < card.count; i++)
		snprintf(card.hosts[i], sizeof(card.hosts[i]), "node-%zu", i);
	EXPECT(hub_card_write(&card, path) == OK);
	file = fopen(path, "r");
	length = fread(text, 1, sizeof(text), file);
	fclose(file);
	EXPECT(hub_card_parse(&again, text, length) == OK && again.count == HUB_CARD_ADDRESSES &&
	       strcmp(again.hosts[15], "node-15") == 0);
	memcpy(text + length, "a:40123 00000000deadbeef\n", 25);
	EXPECT_THAT("so many addresses", hub_card_parse(&again, text, length + 25) == ERR_FORMAT);

	memset(path, 'p', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	errno = 0;
	EXPECT(hub_card_write(&card, path) == ERR_SYSTEM && errno == ENAMETOOLONG);
	snprintf(path, sizeof(path), "%s/card/below", scratch_dir.path);
	EXPECT(hub_card_write(&card, path) == ERR_SYSTEM && errno == ENOTDIR);
	snprintf(path, sizeof(path), "%s/directory", scratch_dir.path);
	EXPECT(mkdir(path, 0700) == 0 && hub_card_write(&card, path) == ERR_SYSTEM &&
	       errno == EISDIR);
	snprintf(path, sizeof(path), "%s/directory.%ld.part", scratch_dir.path, (long)getpid());
	EXPECT_THAT("nothing is left of a card that could not be written",
		    access(path, F_OK) == -1);
}

int main(void)
{
	if (!hub_ranks_begin())
		return 1;
	scratch_make();
	test_gather();
	test_wrong_frames();
	test_long_reason();
	test_no_answer(false);
	test_no_answer(true);
	test_share();
	test_go();
	test_full();
	test_fail();
	test_other_rank();
	test_goodbye();
	test_silent();
	test_read_whole();
	test_pieces();
	test_admission(true);
	test_admission(false);
	test_crowd();
	test_search();
	test_refused();
	test_nothing_found();
	test_cards();
	return tap_done();
}
