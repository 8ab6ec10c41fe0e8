#include "doctor/doctor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/attributes.h"
#include "common/op_layout.h"
#include "tests/tap.h"
#include "tests/support/expected_verdicts.h"

/* Four nodes of two ranks: tp0 .. tp3 within nodes, dp0, dp1 between them, world. Totals of 100 seconds. */
enum { NODES = 4, GPUS = 2, RANKS = NODES * GPUS, MEMBERS = 3 * RANKS * 2, EDGES = 4 * RANKS };

struct stretch {
	struct slow_member members[MEMBERS];
	struct slow_edge edges[EDGES];
	struct slow_sums sums;
	char names[MEMBERS][16];
};

static const char *const hosts[NODES] = { "node0", "node1", "node2", "node3" };

static struct slow_member *add(struct stretch *stretch, const char *name, uint64_t hash,
			       enum job_comm_kind kind, int32_t nranks, int32_t comm_rank, int rank)
{
	size_t at = stretch->sums.member_count++;

	snprintf(stretch->names[at], sizeof(stretch->names[at]), "%s", name);
	stretch->members[at] = (struct slow_member){ .job = "j",
						     .comm = stretch->names[at],
						     .comm_hash = hash,
						     .kind = kind,
						     .nranks = nranks,
						     .comm_rank = comm_rank,
						     .rank = rank,
						     .host = hosts[rank / GPUS],
						     .pid = 100 + rank,
						     .gpu = rank % GPUS,
						     .function = OP_ALL_REDUCE,
						     .size = "16 MiB",
						     .operations = 1000,
						     .seconds = 10,
						     .bus_bytes = 1e12 };
	return &stretch->members[at];
}

static void make(struct stretch *stretch)
{
	char name[16];

	*stretch = (struct stretch){ .sums = { .seconds = 100 } };
	for (int rank = 0; rank < RANKS; rank++) {
		snprintf(name, sizeof(name), "tp%d", rank / GPUS);
		add(stretch, name, 0x10 + (uint64_t)(rank / GPUS), JOB_COMM_NVLINK, GPUS,
		    rank % GPUS, rank);
		snprintf(name, sizeof(name), "dp%d", rank % GPUS);
		add(stretch, name, 0x20 + (uint64_t)(rank % GPUS), JOB_COMM_NET, NODES, rank / GPUS,
		    rank);
		add(stretch, "world", 0x30, JOB_COMM_MIXED, RANKS, rank, rank);
	}
	for (int rank = 0; rank < RANKS; rank++)
		stretch->edges[stretch->sums.edge_count++] =
			(struct slow_edge){ .job = "j",
					    .comm = "world",
					    .comm_hash = 0x30,
					    .from = rank,
					    .to = (rank + 1) % RANKS,
					    .transfers = 5000,
					    .wire_seconds = 0.5,
					    .bytes = 5000.0 * 131072 };
	stretch->sums.members = stretch->members;
	stretch->sums.edges = stretch->edges;
}

/* The other ranks of its communicators wait this long for this rank. */
static void wait_for(struct stretch *stretch, int rank, double seconds)
{
	for (size_t i = 0; i < stretch->sums.member_count; i++) {
		struct slow_member *member = &stretch->members[i];
		bool is_with = member->comm_hash == 0x30 ||
			       member->comm_hash == 0x10 + (uint64_t)(rank / GPUS) ||
			       member->comm_hash == 0x20 + (uint64_t)(rank % GPUS);

		if (is_with && member->rank != rank)
			member->seconds += seconds;
	}
}

static void slow_down(struct stretch *stretch, enum job_comm_kind kind, const char *host,
		      double factor)
{
	for (size_t i = 0; i < stretch->sums.member_count; i++)
		if (stretch->members[i].kind == kind &&
		    (host == NULL || strcmp(stretch->members[i].host, host) == 0))
			stretch->members[i].seconds *= factor;
}

/* All verdicts. */
static struct expected_text found;

static void look_in(struct verdicts *verdicts, const struct stretch *now,
		    const struct stretch *before, const char *test)
{
	struct slow_sums_options options = { .before = before ? &before->sums : NULL,
					     .gpu_hour_price = 2,
					     .now_wall_ns = UINT64_C(1767225600000000000) };

	verdicts_init(verdicts);
	if (slow_find_sums(verdicts, &now->sums, &options) != OK)
		abort();
	expected_put_verdicts(&found, test, verdicts);
	for (size_t i = 0; i < verdicts->count; i++)
		printf("#   %s: %s\n", verdict_class_name(verdicts->list[i].class),
		       verdicts->list[i].title);
}

#define look(verdicts, now, before) look_in(verdicts, now, before, __func__)

static void nobody(void)
{
	struct stretch now, before;
	struct verdicts verdicts;

	make(&now);
	make(&before);
	for (size_t i = 0; i < now.sums.member_count; i++) {
		now.members[i].seconds *= 1 + 0.01 * (double)(i % 7);
		before.members[i].seconds *= 1 + 0.01 * (double)(i % 5);
	}
	look(&verdicts, &now, &before);
	EXPECT_THAT("nothing wrong: none", verdicts.count == 0);
	verdicts_release(&verdicts);
}

static void rank(void)
{
	struct stretch now, before;
	struct verdicts verdicts;
	const struct verdict *verdict;

	make(&now);
	make(&before);
	wait_for(&now, 5, 15);
	look(&verdicts, &now, &before);
	verdict = &verdicts.list[0];
	EXPECT_THAT("the straggler",
		    verdicts.count == 1 && verdict->class == VERDICT_SLOW_RANK &&
			    verdict->rank == 5 && strcmp(verdict->host, "node2") == 0 &&
			    verdict->pid == 105 && verdict->gpu == 1 && verdict->victims > 0);
	EXPECT_THAT("with its share of the time", verdict->percent > 14 && verdict->percent < 16);
	EXPECT_THAT("its cost", verdict->gpu_hours > 0 && verdict->money == 2 * verdict->gpu_hours);
	EXPECT_THAT("and the time span",
		    verdict->for_ns == UINT64_C(100000000000) && verdict->since_wall_ns > 0);
	verdicts_release(&verdicts);

	make(&now);
	wait_for(&now, 5, 5);
	look(&verdicts, &now, NULL);
	EXPECT_THAT("a twentieth of the time is not reported", verdicts.count == 0);
	verdicts_release(&verdicts);
}

/* Late on world because it waits for rank 4 in its tensor group. */
static void victim(void)
{
	struct stretch now;
	struct verdicts verdicts;

	make(&now);
	for (size_t i = 0; i < now.sums.member_count; i++) {
		struct slow_member *member = &now.members[i];

		if (member->comm_hash == 0x30 && member->rank != 5 && member->rank != 4)
			member->seconds += 20;
		if (member->comm_hash == 0x12 && member->rank == 5)
			member->seconds += 20;
	}
	look(&verdicts, &now, NULL);
	EXPECT_THAT("a rank that waits elsewhere is not blamed",
		    verdicts.count == 1 && verdicts.list[0].class == VERDICT_SLOW_RANK &&
			    verdicts.list[0].rank == 4);
	verdicts_release(&verdicts);
}

static void host(void)
{
	struct stretch now;
	struct verdicts verdicts;

	make(&now);
	for (size_t i = 0; i < now.sums.member_count; i++)
		if (now.members[i].comm_hash == 0x30 && now.members[i].rank / GPUS != 1)
			now.members[i].seconds += 20;
	look(&verdicts, &now, NULL);
	EXPECT_THAT("all ranks of a host: the host",
		    verdicts.count == 1 && verdicts.list[0].class == VERDICT_SLOW_HOST &&
			    strcmp(verdicts.list[0].host, "node1") == 0 &&
			    verdicts.list[0].rank == -1 && verdicts.list[0].victims == 6);
	verdicts_release(&verdicts);
}

static void link(void)
{
	struct stretch now, before;
	struct verdicts verdicts;

	make(&now);
	make(&before);
	now.edges[3].wire_seconds *= 4;
	slow_down(&now, JOB_COMM_MIXED, NULL, 2);
	slow_down(&now, JOB_COMM_NET, NULL, 2);
	look(&verdicts, &now, &before);
	EXPECT_THAT("one link: it explains the slower transfers",
		    verdicts.count == 1 && verdicts.list[0].class == VERDICT_SLOW_LINK &&
			    verdicts.list[0].rank == 3 && verdicts.list[0].peer == 4 &&
			    strcmp(verdicts.list[0].host, "node1") == 0 &&
			    strcmp(verdicts.list[0].peer_host, "node2") == 0);
	verdicts_release(&verdicts);

	make(&now);
	for (size_t i = 0; i < 3; i++)
		now.edges[2 * i].wire_seconds *= 4;
	look(&verdicts, &now, NULL);
	EXPECT_THAT("several of eight: the way the collective works", verdicts.count == 0);
	verdicts_release(&verdicts);
}

static void network(void)
{
	struct stretch now, before;
	struct verdicts verdicts;

	make(&now);
	make(&before);
	slow_down(&now, JOB_COMM_MIXED, NULL, 1.3);
	slow_down(&now, JOB_COMM_NET, NULL, 1.3);
	look(&verdicts, &now, &before);
	EXPECT_THAT("slower between nodes than before: the network",
		    verdicts.count == 1 && verdicts.list[0].class == VERDICT_SLOW_NETWORK &&
			    verdicts.list[0].percent > 29 && verdicts.list[0].percent < 31 &&
			    strcmp(verdicts.list[0].rule, "past") == 0);
	verdicts_release(&verdicts);
	look(&verdicts, &now, NULL);
	EXPECT_THAT("without a past nothing is reported", verdicts.count == 0);
	verdicts_release(&verdicts);

	make(&now);
	slow_down(&now, JOB_COMM_NVLINK, "node3", 1.3);
	look(&verdicts, &now, &before);
	EXPECT_THAT("slower within one node: NVLink there",
		    verdicts.count == 1 && verdicts.list[0].class == VERDICT_SLOW_NVLINK &&
			    strcmp(verdicts.list[0].host, "node3") == 0);
	verdicts_release(&verdicts);

	make(&now);
	slow_down(&now, JOB_COMM_NVLINK, NULL, 1.3);
	look(&verdicts, &now, &before);
	EXPECT_THAT("within all nodes: NVLink, no host",
		    verdicts.count == 1 && verdicts.list[0].class == VERDICT_SLOW_NVLINK &&
			    verdicts.list[0].host[0] == '\0');
	verdicts_release(&verdicts);
}

static void odd_input(void)
{
	struct stretch now;
	struct verdicts verdicts;

	make(&now);
	wait_for(&now, 5, 15);
	for (size_t i = 0; i < now.sums.member_count; i++)
		now.members[i].operations = now.members[i].rank == 5 ? 500 : 1000;
	look(&verdicts, &now, NULL);
	EXPECT_THAT("ranks with unequal numbers of operations are not compared",
		    verdicts.count == 0);
	verdicts_release(&verdicts);

	make(&now);
	wait_for(&now, 5, 15);
	for (size_t i = 0; i < now.sums.member_count; i++)
		now.members[i].function = OP_BROADCAST;
	look(&verdicts, &now, NULL);
	EXPECT_THAT("rooted operations are not compared", verdicts.count == 0);
	verdicts_release(&verdicts);

	now.sums.member_count = now.sums.edge_count = 0;
	look(&verdicts, &now, &now);
	EXPECT_THAT("no data, no verdict", verdicts.count == 0);
	verdicts_release(&verdicts);
}

/* Kernel events are sampled: seconds and bytes are of one operation in `of`. */
static void sample(struct slow_member *member, double of)
{
	member->timed = member->operations / of;
	member->seconds /= of;
	member->bus_bytes /= of;
}

static void sampled(void)
{
	struct stretch now;
	struct verdicts verdicts;
	double hours;

	make(&now);
	wait_for(&now, 5, 15);
	look(&verdicts, &now, NULL);
	hours = verdicts.count > 0 ? verdicts.list[0].gpu_hours : 0;
	verdicts_release(&verdicts);
	for (size_t i = 0; i < now.sums.member_count; i++)
		sample(&now.members[i], 20);
	look(&verdicts, &now, NULL);
	EXPECT_THAT("a straggler is found in a sample as in all operations",
		    verdicts.count == 1 && verdicts.list[0].class == VERDICT_SLOW_RANK &&
			    verdicts.list[0].rank == 5);
	EXPECT_THAT("with the same cost", hours > 0 && verdicts.count == 1 &&
						  verdicts.list[0].gpu_hours > hours * 0.99 &&
						  verdicts.list[0].gpu_hours < hours * 1.01);
	verdicts_release(&verdicts);

	/* One process was set to time everything for a while. */
	make(&now);
	for (size_t i = 0; i < now.sums.member_count; i++)
		sample(&now.members[i], now.members[i].rank == 5 ? 1 : 20);
	look(&verdicts, &now, NULL);
	EXPECT_THAT("a rank with more timed operations is not slower for it", verdicts.count == 0);
	verdicts_release(&verdicts);
	make(&now);
	wait_for(&now, 5, 15);
	for (size_t i = 0; i < now.sums.member_count; i++)
		sample(&now.members[i], now.members[i].rank == 5 ? 1 : 20);
	look(&verdicts, &now, NULL);
	EXPECT_THAT("differently timed ranks are not judged", verdicts.count == 0);
	verdicts_release(&verdicts);
}

int main(void)
{
	sampled();
	nobody();
	rank();
	victim();
	host();
	link();
	network();
	odd_input();
	expected_compare(&found, "tests/unit/doctor/expected/slow_sums.txt");
	return tap_done();
}
