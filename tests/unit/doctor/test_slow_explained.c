/*
 * Stragglers, slow links and slow transfers at the same time: which of them explains the others. All of them are given by
 * hand.
 */
#include "common/attributes.h"
#include "common/text.h"
#include "doctor/slow_internal.h"
#include "tests/tap.h"
#include "tests/unit/doctor/slow_stage.h"

static struct stage stage;
static struct expected_text found;

#define AT(seconds) (STAGE_START + (seconds)*STAGE_SECOND)
#define NONE UINT32_MAX

/* Late since 500 s, by 20 ms; the other ranks waited 700 s. */
static struct straggler late_rank(enum stage_comm comm, uint32_t rank)
{
	return (struct straggler){ .class = STRAGGLER_SLOW_RANK,
				   .pattern = STRAGGLER_SINCE,
				   .rank = rank,
				   .host = rank / 2,
				   .peer = NONE,
				   .channel = -1,
				   .comm = stage_index(&stage, comm),
				   .matches = 1000,
				   .last_in = 900,
				   .late_ns = STAGE_SECOND / 50,
				   .caused_ns = 700 * STAGE_SECOND,
				   .cost_share = 0.0875,
				   .confidence = 0.99,
				   .has_times = true,
				   .first_ns = AT(500),
				   .last_ns = AT(1000),
				   .share_of_time = 0.5 };
}

static struct straggler late_host(enum stage_comm comm, uint32_t host)
{
	struct straggler late = late_rank(comm, 2 * host);

	late.class = STRAGGLER_SLOW_HOST;
	late.rank = NONE;
	return late;
}

/* Sends take 2.5 times longer; 600 s were lost. */
static struct straggler slow_link(enum stage_comm comm, uint32_t rank, uint32_t peer)
{
	struct straggler link = late_rank(comm, rank);

	link.class = STRAGGLER_SLOW_LINK;
	link.peer = peer;
	link.peer_confidence = peer != NONE ? 1 : 0;
	link.slowdown = 2.5;
	link.late_ns = 0;
	link.caused_ns = 600 * STAGE_SECOND;
	return link;
}

static void begin(void)
{
	stage_begin(&stage);
	stage_made(&stage);
}

static void add(struct straggler straggler)
{
	if (stage.report.stragglers.count == STAGE_STRAGGLERS)
		abort();
	stage.stragglers[stage.report.stragglers.count++] = straggler;
}

/* The same behind a straggler, a change and a hang of the second job: its verdicts on the first are the same. */
static void compare_behind_others(const char *what, struct verdicts *verdicts)
{
	struct straggler stragglers[STAGE_STRAGGLERS + 1] = { late_rank(STAGE_STRANGERS, 8) };
	struct windows_change changes[STAGE_CHANGES + 1] = { { .kind = JOB_COMM_NVLINK,
							       .function = OP_ALL_REDUCE,
							       .at_ns = AT(500),
							       .before = 50e9,
							       .after = 60e9,
							       .percent = 20,
							       .confidence = 0.99,
							       .comms = 1,
							       .comms_changed = 1 } };
	struct expected_text alone = { .text = NULL }, behind = { .text = NULL };
	struct timeline_report report = stage.report;

	stragglers[0].host = 4;
	changes[0].example_comm = stage_index(&stage, STAGE_STRANGERS);
	memcpy(stragglers + 1, stage.stragglers, sizeof(stage.stragglers));
	memcpy(changes + 1, stage.changes, sizeof(stage.changes));
	report.stragglers.list = stragglers;
	report.stragglers.count++;
	report.windows.changes = changes;
	report.windows.change_count++;
	if (slow_find(verdicts, &report, &stage.options) != OK)
		abort();
	stage_put_train(&alone, &stage.verdicts);
	stage_put_train(&behind, verdicts);
	if (strcmp(alone.text, behind.text) != 0 && !EXPECT_THAT(what, false))
		printf("# alone: %s\n# behind others: %s\n", alone.text, behind.text);
	free(alone.text);
	free(behind.text);
}

static void find(const char *what)
{
	struct verdicts others;
	struct verdict *hang;

	verdicts_init(&others);
	hang = verdicts_add(&others, VERDICT_STUCK, VERDICT_ERROR);
	text_copy(hang->job, sizeof(hang->job), "zoo");
	for (size_t i = 0; i < stage.verdicts.count; i++)
		verdicts_add_copy(&others, &stage.verdicts.list[i]);
	stage_find(&stage, &found, what);
	compare_behind_others(what, &others);
	verdicts_release(&others);
	stage_over(&stage);
}

/* ---- places -------------------------------------------------------------------------------------------- */

static void test_places(void)
{
	for (int peer = 0; peer < 2; peer++) {
		begin();
		add(slow_link(STAGE_WORLD, 4, peer == 0 ? NONE : 7));
		stage.stragglers[0].is_uplink = true;
		find(peer == 0 ? "links of a host" : "links between two hosts");
	}
	begin();
	add(slow_link(STAGE_WORLD, 5, NONE));
	stage.stragglers[0].is_rail = true;
	stage.stragglers[0].has_times = false;
	find("links of a rail, on average");

	for (int what = 0; what < 4; what++) {
		begin();
		add(slow_link(STAGE_WORLD, 4, NONE));
		stage.stragglers[0].is_uplink = true;
		add(what == 0	? late_host(STAGE_WORLD, 2)
		    : what == 1 ? late_rank(STAGE_WORLD, 5)
		    : what == 2 ? late_rank(STAGE_WORLD, 3)
				: late_host(STAGE_WORLD, 2));
		stage.stragglers[1].caused_ns = (what == 1 ? 500 : 700) * STAGE_SECOND;
		stage.stragglers[1].is_origin = what == 3;
		stage.stragglers[1].own_excess = 0.1;
		find(what == 0	 ? "the host with slow links is late"
		     : what == 1 ? "a rank of it is late"
		     : what == 2 ? "a rank of another host is late: a second cause"
				 : "the host spends more time outside of communication");
	}
	for (int what = 0; what < 3; what++) {
		begin();
		add(slow_link(STAGE_WORLD, 5, NONE));
		stage.stragglers[0].is_rail = true;
		add(what == 0	? late_rank(STAGE_WORLD, 3)
		    : what == 1 ? late_rank(STAGE_WORLD, 2)
				: late_host(STAGE_WORLD, 2));
		find(what == 0	 ? "a rank of the slow rail is late"
		     : what == 1 ? "a rank of another rail is late"
				 : "a host is late, and not because of one rail");
	}
}

/* ---- links --------------------------------------------------------------------------------------------- */

static void test_links(void)
{
	static const struct {
		const char *what;
		enum stage_comm late_in;
		uint32_t late; /* rank; host if from 100 on */
		bool is_of_sends;
	} cases[] = {
		{ "the receiver is late in another communicator", STAGE_TP2, 4, false },
		{ "the sender is late in another communicator", STAGE_TP1, 2, false },
		{ "the receiver is late in the same one", STAGE_DP0, 4, false },
		{ "the receiver is late in the same one, and the link is of Sends", STAGE_DP0, 4,
		  true },
		{ "a rank of the same smaller group is late in world", STAGE_WORLD, 6, false },
		{ "a rank of another group is late in world", STAGE_WORLD, 7, false },
		{ "a host is late in world", STAGE_WORLD, 103, false },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		begin();
		add(slow_link(STAGE_DP0, 2, 4));
		stage.stragglers[0].is_of_sends = cases[i].is_of_sends;
		add(cases[i].late >= 100 ? late_host(cases[i].late_in, cases[i].late - 100)
					 : late_rank(cases[i].late_in, cases[i].late));
		find(cases[i].what);
	}
	begin();
	add(slow_link(STAGE_DP0, 2, 4));
	stage.stragglers[0].is_either = true;
	find("transfers back are as slow");
	begin();
	add(slow_link(STAGE_DP0, 2, 4));
	add(slow_link(STAGE_DP1, 3, 5));
	find("links of two senders");
	begin();
	add(slow_link(STAGE_DP0, 2, NONE));
	add(slow_link(STAGE_WORLD, 2, NONE));
	find("links of one sender to nobody known");
}

/* Totals by peer since the start of the process: rank 2 sends to rank 4 and to others of dp0. */
static struct region_link totals[STAGE_RANKS][3];

static void add_totals(int to_4_s, int to_6_s, uint64_t to_6_mib)
{
	for (int rank = 0; rank < STAGE_RANKS; rank += 2) {
		bool is_sender = rank == 2;
		uint64_t mib[] = { 1024, is_sender ? to_6_mib : 1024 };
		int seconds[] = { is_sender ? to_4_s : 10, is_sender ? to_6_s : 10 };

		for (int i = 0; i < 2; i++)
			totals[rank][i] = (struct region_link){
				.key = UINT64_C(2) << 34 | (uint64_t)((rank / 2 + 1 + i) % 4 + 1),
				.bytes = mib[i] * STAGE_MIB,
				.steps = mib[i] * 8,
				.wait_ns = { 0, 0, (uint64_t)seconds[i] * STAGE_SECOND }
			};
		stage.hand.list[rank]->links = totals[rank];
		stage.hand.list[rank]->link_count = is_sender && to_6_mib == 0 ? 1 : 2;
	}
}

static void test_peers(void)
{
	static const struct {
		const char *what;
		int to_4_s, to_6_s;
		uint64_t to_6_mib;
		enum straggler_pattern pattern;
		uint32_t peer;
	} cases[] = {
		{ "one peer", 80, 0, 0, STRAGGLER_ALWAYS, NONE },
		{ "two peers, one of which stands out", 80, 10, 1024, STRAGGLER_ALWAYS, NONE },
		{ "the same, slow since the middle", 80, 10, 1024, STRAGGLER_SINCE, NONE },
		{ "two peers, and none stands out", 10, 10, 1024, STRAGGLER_ALWAYS, NONE },
		{ "a peer with few bytes does not count", 80, 10, 16, STRAGGLER_ALWAYS, NONE },
		{ "the receiver was known", 80, 10, 1024, STRAGGLER_ALWAYS, 4 },
		{ "another receiver was known", 80, 10, 1024, STRAGGLER_ALWAYS, 6 },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		begin();
		add_totals(cases[i].to_4_s, cases[i].to_6_s, cases[i].to_6_mib);
		add(slow_link(STAGE_DP0, 2, cases[i].peer));
		stage.stragglers[0].pattern = cases[i].pattern;
		find(cases[i].what);
	}
}

/* ---- NVLink behind late ranks --------------------------------------------------------------------------- */

static void test_nvlink(void)
{
	static const struct {
		const char *what;
		enum stage_comm changed;
		uint64_t at_s;
		uint32_t late; /* rank; host if from 100 on */
		uint32_t comms_changed;
		double after;
	} cases[] = {
		{ "transfers inside the host became slower", STAGE_TP1, 500, 101, 1, 40 },
		{ "three windows later", STAGE_TP1, 503, 101, 1, 40 },
		{ "three windows earlier", STAGE_TP1, 497, 101, 1, 40 },
		{ "four windows later: a second cause", STAGE_TP1, 504, 101, 1, 40 },
		{ "transfers of a late rank inside its host", STAGE_TP1, 500, 3, 1, 40 },
		{ "transfers inside two hosts", STAGE_TP1, 500, 101, 2, 40 },
		{ "transfers that became faster", STAGE_TP1, 500, 101, 1, 60 },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		begin();
		add(cases[i].late >= 100 ? late_host(STAGE_WORLD, cases[i].late - 100)
					 : late_rank(STAGE_WORLD, cases[i].late));
		stage_change(&stage, &(struct stage_change){ cases[i].changed,
							     .at_s = cases[i].at_s, .before = 50,
							     .after = cases[i].after, .comms = 4,
							     .changed = cases[i].comms_changed });
		find(cases[i].what);
	}
}

/* ---- slower transfers ------------------------------------------------------------------------------------ */

static void test_transfers(void)
{
	static const struct {
		const char *what;
		int straggler; /* 0: a link, 1: late, 2: short of CPU, 3: late on another job */
		enum stage_comm changed;
		uint64_t at_s;
		uint32_t comms;
	} cases[] = {
		{ "a slow link explains what is slower between nodes", 0, STAGE_WORLD, 700, 1 },
		{ "but not within nodes", 0, STAGE_TP0, 700, 4 },
		{ "a straggler explains what became slower with it", 1, STAGE_WORLD, 503, 1 },
		{ "but not what became slower later", 1, STAGE_WORLD, 504, 1 },
		{ "a rank short of CPU explains what its communicator does", 2, STAGE_DP1, 700, 1 },
		{ "but not what others do", 2, STAGE_DP0, 700, 1 },
		{ "nor what several do", 2, STAGE_DP1, 700, 2 },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		begin();
		if (cases[i].straggler == 0) {
			add(slow_link(STAGE_DP0, 2, 4));
		} else {
			add(late_rank(STAGE_WORLD, 3));
			stage.stragglers[0].is_starved = cases[i].straggler == 2;
			stage.stragglers[0].has_times = cases[i].straggler != 2;
			stage.stragglers[0].slowdown = 4;
			stage.stragglers[0].own_slowdown = 0;
		}
		stage_change(&stage, &(struct stage_change){
					     cases[i].changed, .at_s = cases[i].at_s, .before = 50,
					     .after = 40, .comms = cases[i].comms });
		find(cases[i].what);
	}
}

/* ---- who is named ---------------------------------------------------------------------------------------- */

static void test_hung(void)
{
	static const struct {
		const char *what;
		int64_t rank, peer;
		bool is_host;
	} cases[] = {
		{ "the sender hangs", 2, -1, false },
		{ "a hang to the sender", 7, 2, false },
		{ "the receiver hangs", 4, -1, false },
		{ "a hang to the receiver", 7, 4, false },
		{ "another rank hangs", 7, 6, false },
		{ "a host is late, a rank hangs", 2, -1, true },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct verdict *verdict;

		begin();
		add(cases[i].is_host ? late_host(STAGE_WORLD, 1) : slow_link(STAGE_DP0, 2, 4));
		verdict = verdicts_add(&stage.verdicts, VERDICT_STUCK, VERDICT_ERROR);
		text_copy(verdict->job, sizeof(verdict->job), "train");
		verdict->rank = cases[i].rank;
		verdict->peer = cases[i].peer;
		find(cases[i].what);
	}
}

static void test_held_up(void)
{
	for (int what = 0; what < 3; what++) {
		begin();
		add(late_rank(what == 1 ? STAGE_STRANGERS : STAGE_WORLD, what == 1 ? 8 : 3));
		stage.stragglers[0].class = STRAGGLER_HELD_UP;
		if (what == 2)
			add(late_rank(STAGE_WORLD, 5));
		find(what == 0	 ? "ranks that are held up elsewhere"
		     : what == 1 ? "ranks of another job that are held up"
				 : "ranks that are held up, and a straggler");
	}
}

static void test_late(void)
{
	begin();
	add(late_rank(STAGE_WORLD, 3));
	add(late_rank(STAGE_WORLD, 6));
	stage.stragglers[1].pattern = STRAGGLER_UNTIL;
	stage.stragglers[1].last_ns = AT(400);
	stage.report.stragglers.explained = 2;
	stage.hand.list[0]->life = RECORDING_ALIVE;
	find("two stragglers, one of which no longer is, in a job that runs");
	begin();
	add(late_rank(STAGE_WORLD, 3));
	stage.report.stragglers.explained = 1;
	find("a straggler that makes another rank late");

	for (int timed = 666; timed < 668; timed++) {
		begin();
		for (int rank = 0; rank < STAGE_RANKS; rank++) {
			stage.hand.list[rank]->comms[0].counts.recorded = 1000;
			stage.hand.list[rank]->comms[0].counts.timed = (uint64_t)timed;
		}
		add(late_rank(STAGE_WORLD, 3));
		find(timed == 666 ? "1 in 1.502 operations is timed"
				  : "1 in 1.499 operations is timed");
	}

	begin();
	add(late_host(STAGE_WORLD, 1));
	stage.stragglers[0].is_origin = stage.stragglers[0].is_stage = true;
	stage.stragglers[0].own_excess = 0.2;
	stage.report.stragglers.explained = 1;
	find("a host that is slow by its own time, compared with other stages");

	for (int is_each = 0; is_each < 2; is_each++) {
		begin();
		add(late_host(STAGE_WORLD, 1));
		stage.stragglers[0].is_by_network = true;
		stage.stragglers[0].is_each = is_each;
		find(is_each ? "a host of which each rank stands out, by the network side"
			     : "a host by the network side");
	}
	begin();
	add(late_host(STAGE_STRANGERS, 4));
	stage.stragglers[0].is_by_network = true;
	find("a host with one rank, of another job, by the network side");
}

/* ---- when ------------------------------------------------------------------------------------------------ */

/* From 300 s to 700 s of 1,000 s, in a fifth of all the time; or at one moment. */
static void test_when(void)
{
	static const char *const patterns[] = { [STRAGGLER_ALWAYS] = "always",
						[STRAGGLER_SINCE] = "since",
						[STRAGGLER_UNTIL] = "until",
						[STRAGGLER_BURSTS] = "in bursts" };
	static const char *const classes[] = { "a rank", "a host", "a link", "links of a host" };

	for (int class = 0; class < 4; class ++)
		for (int pattern = 0; pattern < 4; pattern++)
			for (int how = 0; how < (class > 0 ? 1 : pattern > 0 ? 2 : 3); how++) {
				char what[100];

				begin();
				add(class == 0	 ? late_rank(STAGE_WORLD, 3)
				    : class == 1 ? late_host(STAGE_DP1, 1)
						 : slow_link(STAGE_WORLD, 4, 6));
				stage.stragglers[0].is_uplink = class == 3;
				stage.stragglers[0].is_bursty = pattern == STRAGGLER_BURSTS;
				stage.stragglers[0].slow_share = 0.25;
				stage.stragglers[0].pattern = (enum straggler_pattern)pattern;
				stage.stragglers[0].first_ns = AT(300);
				stage.stragglers[0].last_ns = AT(how == 1 ? 300 : 700);
				stage.stragglers[0].share_of_time = 0.2;
				stage.stragglers[0].has_times = how != 2;
				text_format(what, sizeof(what), "%s %s%s", classes[class],
					    patterns[pattern],
					    how == 1   ? ", at one moment"
					    : how == 2 ? ", at times that are not known"
						       : "");
				find(what);
			}
}

/* A receiver that is not certain, and what the totals say about it. */
static void test_uncertain_peer(void)
{
	for (int sure = 0; sure < 2; sure++)
		for (int pattern = 0; pattern < 2; pattern++) {
			begin();
			add_totals(80, 10, 1024);
			add(slow_link(STAGE_DP0, 2, 4));
			stage.stragglers[0].peer_confidence = sure ? 1 : 0.7;
			stage.stragglers[0].pattern = pattern ? STRAGGLER_SINCE : STRAGGLER_ALWAYS;
			find(sure ? "a receiver that is certain" : "a receiver that is not");
		}
}

/* A host that is late in world, and a link inside a smaller group: are all its late ranks in that group? */
static void test_groups(void)
{
	static const struct {
		const char *what;
		enum stage_comm late_in, link_in;
		uint32_t host, rank, peer;
	} cases[] = {
		{ "one of its two ranks is", STAGE_WORLD, STAGE_DP0, 1, 2, 4 },
		{ "one of its two ranks is, the link is of others", STAGE_WORLD, STAGE_DP0, 1, 4,
		  6 },
		{ "its rank of dp1 is in another group", STAGE_DP1, STAGE_DP0, 1, 2, 4 },
		{ "both of its ranks are", STAGE_WORLD, STAGE_TP1, 1, 2, 3 },
		{ "both ranks of another host are", STAGE_WORLD, STAGE_TP2, 1, 4, 5 },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		begin();
		add(slow_link(cases[i].link_in, cases[i].rank, cases[i].peer));
		add(late_host(cases[i].late_in, cases[i].host));
		find(cases[i].what);
	}
}

/* Ranks that are not recorded may be the straggler, but not those of the second job. */
static void test_unseen(void)
{
	static const struct {
		const char *what;
		int32_t of_world, of_strangers; /* ranks */
	} cases[] = {
		{ "all ranks are recorded", 8, 2 },	{ "a rank of the job is not", 9, 2 },
		{ "three ranks of it are not", 11, 2 }, { "a rank of the second job is not", 8, 3 },
		{ "ranks of both are not", 10, 7 },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		stage_begin(&stage);
		for (size_t p = 0; p < stage.hand.recording.count; p++)
			stage.hand.list[p]->comms[0].info.nranks =
				p < STAGE_RANKS ? cases[i].of_world : cases[i].of_strangers;
		stage_made(&stage);
		add(late_rank(STAGE_WORLD, 3));
		find(cases[i].what);
	}
}

int main(void)
{
	test_places();
	test_links();
	test_peers();
	test_nvlink();
	test_transfers();
	test_hung();
	test_held_up();
	test_late();
	test_when();
	test_uncertain_peer();
	test_groups();
	test_unseen();
	expected_compare(&found, "tests/unit/doctor/expected/slow_explained.txt");
	return tap_done();
}
