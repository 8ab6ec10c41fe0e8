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

/* Each in two halves, in the opposite order, among those of a job that is fine. */
static void put_among_others(struct slow_sums *to, const struct slow_sums *from,
			     const struct slow_sums *fine)
{
	static const char *const names[] = { "a", "z" };
	struct slow_member *members = calloc(4 * MEMBERS, sizeof(*members));
	struct slow_edge *edges = calloc(4 * EDGES, sizeof(*edges));

	if (members == NULL || edges == NULL)
		abort();
	*to = (struct slow_sums){ .members = members, .edges = edges, .seconds = from->seconds };
	for (int part = 0; part < 2; part++) {
		for (size_t i = 0; i < fine->member_count; i++) {
			members[to->member_count] = fine->members[i];
			members[to->member_count++].job = names[part];
		}
		for (size_t i = 0; i < fine->edge_count; i++) {
			edges[to->edge_count] = fine->edges[i];
			edges[to->edge_count++].job = names[part];
		}
		for (size_t i = from->member_count; i > 0; i--) {
			struct slow_member *half = &members[to->member_count++];

			*half = from->members[i - 1];
			half->operations /= 2;
			half->timed /= 2;
			half->seconds /= 2;
			half->bus_bytes /= 2;
		}
		for (size_t i = from->edge_count; i > 0; i--) {
			struct slow_edge *half = &edges[to->edge_count++];

			*half = from->edges[i - 1];
			if (half->transfers < 64) {
				to->edge_count -= part;
				continue;
			}
			half->transfers /= 2;
			half->wire_seconds /= 2;
			half->bytes /= 2;
		}
	}
}

static void compare_among_others(const struct verdicts *alone, const struct stretch *now,
				 const struct stretch *before)
{
	static struct stretch fine;
	struct slow_sums now_among, before_among;
	struct slow_sums_options options = { .before = before ? &before_among : NULL,
					     .gpu_hour_price = 2,
					     .now_wall_ns = UINT64_C(1767225600000000000) };
	struct expected_text wanted = { .text = NULL }, got = { .text = NULL };
	struct verdicts verdicts;

	make(&fine);
	put_among_others(&now_among, &now->sums, &fine.sums);
	put_among_others(&before_among, before ? &before->sums : &now->sums, &fine.sums);
	verdicts_init(&verdicts);
	if (slow_find_sums(&verdicts, &now_among, &options) != OK)
		abort();
	expected_put_verdicts(&wanted, "", alone);
	expected_put_verdicts(&got, "", &verdicts);
	if (expected_difference(got.text, wanted.text) != NULL &&
	    !EXPECT_THAT("the same in halves, among those of other jobs", false))
		printf("# wanted %s\n# got %s\n", wanted.text, got.text);
	free(wanted.text);
	free(got.text);
	verdicts_release(&verdicts);
	free((void *)now_among.members);
	free((void *)now_among.edges);
	free((void *)before_among.members);
	free((void *)before_among.edges);
}

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
	compare_among_others(verdicts, now, before);
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
	now.edges[3].wire_seconds *= 4;
	look(&verdicts, &now, &before);
	EXPECT_THAT("one that only has the queue now: collectives are as fast as before",
		    verdicts.count == 0);
	verdicts_release(&verdicts);
	before.edges[3].wire_seconds *= 3;
	look(&verdicts, &now, &before);
	EXPECT_THAT("one that stood out before: there is no time without it to compare with",
		    verdicts.count == 1 && verdicts.list[0].class == VERDICT_SLOW_LINK);
	verdicts_release(&verdicts);
	before.sums.edge_count = 3;
	look(&verdicts, &now, &before);
	EXPECT_THAT("one that sent nothing before",
		    verdicts.count == 1 && verdicts.list[0].class == VERDICT_SLOW_LINK);
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

/* ---- at the limits ------------------------------------------------------------------------------------ */

static void look_once(const struct stretch *now, const struct stretch *before, const char *what)
{
	struct verdicts verdicts;

	look_in(&verdicts, now, before, what);
	verdicts_release(&verdicts);
}

/* One of eight links of world; the others take 100 us for a transfer of 128 KiB, and make 5,000 of them. */
static void links_at_limits(void)
{
	static const struct {
		const char *what;
		double transfers, times; /* as long on the wire as the others */
		double size;		 /* times as large as the others */
		int first;		 /* so many others are there */
	} cases[] = {
		{ "twice as long on the wire", 5000, 2, 1, 7 },
		{ "a little less", 5000, 1.99, 1, 7 },
		{ "a quarter of the transfers", 1250, 4, 1, 7 },
		{ "a little less than a quarter", 1249, 4, 1, 7 },
		{ "messages twice as large", 5000, 4, 2, 7 },
		{ "messages of more than twice the size", 5000, 4, 2.01, 7 },
		{ "messages of half the size", 5000, 4, 0.5, 7 },
		{ "messages of less than half the size", 5000, 4, 0.49, 7 },
		{ "one of three links", 5000, 4, 1, 2 },
		{ "one of two links", 5000, 4, 1, 1 },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct stretch now;

		make(&now);
		now.edges[0].transfers = cases[i].transfers;
		now.edges[0].wire_seconds = cases[i].transfers * 1e-4 * cases[i].times;
		now.edges[0].bytes = cases[i].transfers * 131072 * cases[i].size;
		now.sums.edge_count = (size_t)cases[i].first + 1;
		look_once(&now, NULL, cases[i].what);
	}
	for (int transfers = 31; transfers < 33; transfers++) {
		struct stretch now;

		make(&now);
		for (size_t i = 0; i < now.sums.edge_count; i++) {
			now.edges[i].transfers = transfers;
			now.edges[i].wire_seconds = (i == 2 ? 4e-4 : 1e-4) * transfers;
			now.edges[i].bytes = transfers * 131072.0;
		}
		look_once(&now, NULL, transfers == 31 ? "31 transfers" : "32 transfers");
	}
	for (int longer_us = 7; longer_us < 10; longer_us += 2) {
		struct stretch now;

		make(&now);
		for (size_t i = 0; i < now.sums.edge_count; i++)
			now.edges[i].wire_seconds = (i == 2 ? longer_us : 3) * 5e-3;
		look_once(&now, NULL,
			  longer_us == 7 ? "7 us instead of 3: too little" : "9 us instead of 3");
	}
	/* Of 16 links two may stand out, of 15 one. */
	for (int links = 15; links < 17; links++) {
		struct stretch now;

		make(&now);
		for (int i = 8; i < links; i++) {
			now.edges[i] = now.edges[i - 8];
			now.edges[i].to = (now.edges[i].to + 1) % RANKS;
		}
		now.sums.edge_count = (size_t)links;
		now.edges[2].wire_seconds *= 4;
		now.edges[5].wire_seconds *= 3;
		look_once(&now, NULL,
			  links == 15 ? "two of 15 links stand out" : "two of 16 links stand out");
	}
}

static void ends_of_links(void)
{
	struct stretch now;

	make(&now);
	now.edges[3].wire_seconds *= 4;
	now.edges[3].to = 77;
	look_once(&now, NULL, "a link to a rank that is not known");
	now.edges[3].from = 78;
	look_once(&now, NULL, "a link between ranks that are not known");
	now.edges[3].to = 4;
	look_once(&now, NULL, "a link from a rank that is not known");
	make(&now);
	for (size_t i = 0; i < now.sums.member_count; i++) {
		now.members[i].nranks = 0;
		now.members[i].rank = -1;
	}
	now.edges[3].wire_seconds *= 4;
	look_once(&now, NULL, "the numbers of the ranks are not known");
	make(&now);
	now.edges[4].wire_seconds *= 4;
	wait_for(&now, 5, 15);
	look_once(&now, NULL, "the receiver of a slow link is late because of it");
}

static void late_at_limits(void)
{
	struct stretch now;

	make(&now);
	wait_for(&now, 5, 10);
	look_once(&now, NULL, "late for 10% of the time");
	make(&now);
	wait_for(&now, 5, 10.01);
	look_once(&now, NULL, "late for more than 10% of the time");
	now.sums.seconds = 0;
	look_once(&now, NULL, "over an unknown time");

	/* Rank 5 waits itself on dp1, half as long as the others wait for it on world. */
	for (int more = 0; more < 2; more++) {
		make(&now);
		for (size_t i = 0; i < now.sums.member_count; i++) {
			struct slow_member *member = &now.members[i];

			if (member->comm_hash == 0x30 && member->rank != 5)
				member->seconds += 16;
			if (member->comm_hash == 0x21 && member->rank == 5)
				member->seconds += more ? 8.1 : 8;
		}
		look_once(&now, NULL,
			  more ? "it waits itself for more than half of that"
			       : "it waits itself for half of that");
	}
	/* One operation in eight is missing. */
	for (int fewer = 875; fewer > 873; fewer--) {
		make(&now);
		wait_for(&now, 5, 22);
		for (size_t i = 0; i < now.sums.member_count; i++)
			if (now.members[i].rank == 5) {
				now.members[i].operations = fewer;
				now.members[i].seconds *= fewer / 1000.0;
			}
		look_once(&now, NULL,
			  fewer == 875 ? "a rank with 875 of 1,000 operations"
				       : "a rank with 874 of 1,000 operations");
	}
	make(&now);
	for (size_t i = 0; i < now.sums.member_count; i++) {
		struct slow_member *member = &now.members[i];

		if (member->comm_hash == 0x30 && member->rank / GPUS != 1)
			member->seconds += 20;
		if (member->comm_hash == 0x30 && member->rank == 3)
			member->seconds += 9;
	}
	look_once(&now, NULL, "two ranks of a host, one of which is half as late");
}

/* Slower than before: dp0, dp1 and world span nodes, tp0 .. tp3 do not. */
static void moves_at_limits(void)
{
	static const struct {
		const char *what;
		uint64_t hash;
		double factor;
		double seconds; /* of the time span */
	} cases[] = {
		{ "10% slower", 0x10, 1.1, 100 },
		{ "more than 10% slower", 0x10, 1.11, 100 },
		{ "within a node, in 1% of the time", 0x10, 1.25, 1250 },
		{ "within a node, in more than 1% of the time", 0x10, 1.25, 1240 },
		{ "one of three communicators that span nodes", 0x30, 1.5, 100 },
	};
	struct stretch now, before;

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		make(&now);
		make(&before);
		for (size_t m = 0; m < now.sums.member_count; m++)
			if (now.members[m].comm_hash == cases[i].hash)
				now.members[m].seconds *= cases[i].factor;
		now.sums.seconds = cases[i].seconds;
		look_once(&now, &before, cases[i].what);
	}
	make(&now);
	make(&before);
	slow_down(&now, JOB_COMM_NVLINK, "node1", 1.3);
	slow_down(&now, JOB_COMM_NVLINK, "node2", 1.4);
	look_once(&now, &before, "within two nodes");
	make(&now);
	for (size_t m = 0; m < now.sums.member_count; m++) {
		now.members[m].size = m % 3 == 0 ? "4 MiB" : "16 MiB";
		now.members[m].seconds *= 1.3;
	}
	look_once(&now, &before, "other sizes than before are not compared");
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
	links_at_limits();
	ends_of_links();
	late_at_limits();
	moves_at_limits();
	expected_compare(&found, "tests/unit/doctor/expected/slow_sums.txt");
	return tap_done();
}
