/* All metrics of a node with odd names, in all three formats, of all processes and of one. */
#include "tests/support/expected_output.h"
#include "tests/support/metrics_play.h"
#include "tests/support/wire_show.h"
#include "tests/tap.h"

#define EXPECTED "tests/unit/output/expected/"

static void expect_text(const struct live *live, const struct metrics_agent *agent, long only,
			enum metrics_format format, const char *path)
{
	struct sink sink;

	sink_init_memory(&sink);
	metrics_write(&sink, format, live, agent, only);
	EXPECT_THAT(path, expected_text(&sink, path));
}

/* Families with their lengths before them. */
static void expect_families(const struct live *live, const struct metrics_agent *agent,
			    const char *path)
{
	const unsigned char *at, *end;
	struct sink sink, text;
	bool is_good = true;

	sink_init_memory(&sink);
	sink_init_memory(&text);
	metrics_write(&sink, METRICS_PROTOBUF, live, agent, -1);
	at = (const unsigned char *)sink.bytes;
	end = at + sink.used;
	while (at < end && is_good) {
		uint64_t length = wire_show_varint(&at, end);

		is_good = length <= (size_t)(end - at) && wire_show(&text, at, at + length, 1);
		at += is_good ? length : 0;
		sink_text(&text, "--\n");
	}
	EXPECT(is_good);
	EXPECT_THAT(path, expected_text(&text, path));
	sink_release(&sink);
}

/* Two ranks of a communicator; rank 1 is stuck, lost records and has another communicator, which is over. */
static struct live *make_node(struct play *play)
{
	static char info[] = "uid=7\nenv.USER=anna\nlabel.team=a \"b\"\nhang_after_s=90\n";
	struct live *live;

	for (int rank = 0; rank < 2; rank++) {
		struct recording_process *process = play_process(play, "train", rank);
		struct recording_comm *comm = play_comm(process, 0xabc, "dp", rank, 2);

		comm->counts.issued = 30;
		comm->counts.collectives = 8;
		comm->counts.replays = rank ? 9 : 0;
		comm->counts.signature = UINT64_MAX;
		comm->counts.untrusted = 2;
		play_total(process, comm, OP_ALL_REDUCE, 1 << 20, 10, 1500);
		play_total(process, comm, OP_ALL_REDUCE, 1 << 12, 4, 300000);
		play_total(process, comm, OP_SEND, OP_BYTES_UNKNOWN, 3, 2500);
		play_link(process, 1, 0, 1 - (uint32_t)rank, 3);
		play_link(process, 1, 1, 1 - (uint32_t)rank, 4);
		play_info(process, info);
		if (rank == 0)
			continue;
		play_comm(process, 0xdef, "old", 0, 1)->info.flags = COMM_FLAG_FINALIZED;
		process->lost[LOST_QUOTA] = 12;
		process->odd[ODD_REPEATED_STATE] = 13;
		play_flights(process);
	}
	live = play_look(play);
	live->seats[1].in_flight = 3;
	live->seats[1].oldest = &play->list[1]->flights[0];
	live->seats[1].oldest_age_ns = 12345678901;
	live->seats[1].wait_count = 1;
	live->seats[1].waits[0] = (struct flight_wait){ .reason = FLIGHT_RECV_NET, .peer = 0 };
	live->seats[0].wait_ns = 3000000001;
	live->seats[0].knows_wait = true;
	live->seats[0].still_ns = 11000000001;
	return live;
}

/* Of ranks, of communicators and of nobody; some of them twice. */
static void add_notices(struct live *live)
{
	static struct live_notice notices[] = {
		{ .kind = LIVE_HANG, .comm = 0, .seat = UINT32_MAX },
		{ .kind = LIVE_HANG, .comm = 0, .seat = UINT32_MAX },
		{ .kind = LIVE_STRAGGLER, .comm = 1, .seat = 3 },
		{ .kind = LIVE_STRAGGLER, .comm = 1, .seat = 5 },
		{ .kind = LIVE_LOSS, .comm = UINT32_MAX, .seat = 6 },
		{ .kind = LIVE_SLOW, .comm = UINT32_MAX, .seat = UINT32_MAX },
	};
	static const struct {
		enum verdict_class class;
		const char *job;
		int64_t rank;
		double percent, confidence;
		uint64_t hash;
	} verdicts[] = {
		{ VERDICT_SLOW_RANK, "train", 1, 25, 0.99, 0 },
		{ VERDICT_SLOW_RANK, "train", 1, 12, 0.5, 0 }, /* the first counts */
		{ VERDICT_SLOW_LINK, "train", 2, 400, 0.8, 0x100 },
		{ VERDICT_SLOW_HOST, "serve", -1, 0, 0.7, 0xabc },
		{ VERDICT_STUCK, "serve", 0, 50, 0.9, 0x200 },
	};

	live->notices = notices;
	live->notice_count = sizeof(notices) / sizeof(notices[0]);
	for (size_t i = 0; i < sizeof(verdicts) / sizeof(verdicts[0]); i++) {
		struct verdict *verdict =
			verdicts_add(&live->verdicts, verdicts[i].class, VERDICT_WARNING);

		snprintf(verdict->job, sizeof(verdict->job), "%s", verdicts[i].job);
		verdict->rank = verdicts[i].rank;
		verdict->comm_rank = verdicts[i].rank;
		verdict->peer = i == 2 ? 0 : -1;
		verdict->percent = verdicts[i].percent;
		verdict->confidence = verdicts[i].confidence;
		verdict->comm_hash = verdicts[i].hash;
		snprintf(verdict->host, sizeof(verdict->host), "%s", i == 3 ? "node1" : "");
		snprintf(verdict->peer_host, sizeof(verdict->peer_host), "%s",
			 i == 2 ? "node2" : "");
	}
}

/* Three jobs of two users: infos of launchers and containers, labels with odd names, hang thresholds that differ between ranks,
 * names that are not UTF-8, and ranks that do different things on several communicators. */
static struct live *make_crowd(struct play *play)
{
	static const struct {
		const char *job;
		int rank;
		int64_t owner;
		const char *info;
	} processes[] = {
		{ "train", 0, 7,
		  "env.SLURM_JOB_USER=anna\nenv.USER=root\nenv.SLURM_JOB_ACCOUNT=physics\n"
		  "env.SLURM_JOB_PARTITION=gpu\nenv.SLURM_JOB_NAME=big "
		  "\\run\\\nhang_after_s=90\n" },
		{ "train", 1, 7,
		  "env.SLURM_JOB_USER=anna\nenv.USER=root\nenv.SLURM_JOB_ACCOUNT=physics\n"
		  "env.SLURM_JOB_PARTITION=gpu\nenv.SLURM_JOB_NAME=big "
		  "\\run\\\nhang_after_s=120\n" },
		{ "train", 2, 7, "uid=7\nhang_after_s=60\n" },
		{ "serve", 0, 9,
		  "env.POD_NAME=pod-1\npod_namespace=ns\nenv.CONTAINER_NAME=main\nenv.POD_UID=of-"
		  "env\n"
		  "label.a-b=1\nlabel.a_b=2\nlabel.Z9=3\nlabel.\xc3\xa9=4\n" },
		{ "serve", 1, 9, "env.USER=bob\nuid=9\nhang_after_s=45\n" },
		{ "bad\xff\xfe \xe2\x80\xae end", 0, 9, "uid=9\nhang_after_s=45\n" },
	};
	static struct recording_left_out left_out[METRICS_USERS + 2];
	struct live *live;

	for (size_t i = 0; i < sizeof(processes) / sizeof(processes[0]); i++) {
		struct recording_process *process =
			play_process(play, processes[i].job, processes[i].rank);

		process->owner = processes[i].owner;
		play_info(process, (char *)processes[i].info);
		for (uint32_t c = 0; c < 2; c++) {
			struct recording_comm *comm =
				play_comm(process, 0x100 * (i / 3 + 1) + c, c ? "\xc3(tp" : "dp",
					  processes[i].rank, 3);

			play_total(process, comm, c ? OP_ALL_GATHER : OP_ALL_REDUCE,
				   UINT64_C(1) << (12 + 4 * c), 10 + i, 1000 * (i + 1));
			play_total(process, comm, OP_REDUCE_SCATTER, 1 << 20, 3, 70000 + i);
			play_link(process, c + 1, 0, (uint32_t)(processes[i].rank + 1) % 3, 5 + i);
		}
		process->lost[LOST_RING_OVERRUN] = i;
		snprintf(process->container_id, sizeof(process->container_id), "%s",
			 i == 3 ? "c0ffee" : "");
		snprintf(process->pod_uid, sizeof(process->pod_uid), "%s",
			 i == 3 ? "of-kernel" : "");
	}
	play->list[1]->life = RECORDING_KILLED;
	play->list[4]->life = play->list[5]->life = RECORDING_ENDED;
	/* Two users more than have a line of their own. */
	for (uint32_t i = 0; i < METRICS_USERS + 2; i++)
		left_out[i] = (struct recording_left_out){ .owner = 1000 + i,
							   .processes = i + 1,
							   .directories = i % 3 };
	play->recording.left_out = left_out;
	play->recording.left_out_count = METRICS_USERS + 2;
	live = play_look(play);
	for (size_t i = 0; i < live->job.seat_count; i++) {
		live->seats[i].in_flight = i % 3;
		live->seats[i].knows_wait = i % 2;
		live->seats[i].wait_ns = i * 1500000001;
		live->seats[i].still_ns = i * 2000000003;
	}
	return live;
}

int main(void)
{
	struct metrics_agent agent = play_agent();
	struct play play = { 0 };
	struct live *live = make_node(&play);

	expect_text(live, &agent, -1, METRICS_TEXT, EXPECTED "metrics.prom");
	expect_text(live, &agent, -1, METRICS_OPENMETRICS, EXPECTED "metrics.openmetrics");
	expect_text(live, NULL, 1, METRICS_TEXT, EXPECTED "metrics-process.prom");
	expect_families(live, &agent, EXPECTED "metrics-families.txt");
	play_release(&play);
	play = (struct play){ 0 };
	live = make_crowd(&play);
	verdicts_init(&live->verdicts);
	add_notices(live);
	expect_text(live, &agent, -1, METRICS_TEXT, EXPECTED "metrics-crowd.prom");
	for (long only = 1; only <= 4; only += 3)
		expect_text(live, NULL, only, METRICS_TEXT,
			    only == 1 ? EXPECTED "metrics-crowd-1.prom"
				      : EXPECTED "metrics-crowd-4.prom");
	verdicts_release(&live->verdicts);
	live->notices = NULL;
	live->notice_count = 0;
	play_release(&play);
	return tap_done();
}
