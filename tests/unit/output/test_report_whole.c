/*
 * Whole reports and comparisons of small runs whose figures can be added up by hand: 4 ranks on 2 hosts, 200 calls each.
 * AllReduce of 1 MiB in 1 ms among 4: 1.57 GB/s (3/2 of 1.05). AllGather of 64 KiB in 500 us among 2: 0.07 GB/s.
 */
#include "output/report.h"

#include <string.h>

#include "output/json.h"
#include "tests/support/hand_made.h"
#include "tests/tap.h"

enum { RANKS = 4, CALLS = 200 };
#define PERIOD_NS UINT64_C(20000000)

static struct recording_process *add_rank(struct hand_made *hand, int rank)
{
	return hand_process(hand, "train", rank, rank < 2 ? "node-a" : "node-b");
}

/* Two communicators of pairs beside the world. */
static void make_even(struct hand_made *hand, uint64_t all_reduce_ns)
{
	memset(hand, 0, sizeof(*hand));
	for (int rank = 0; rank < RANKS; rank++) {
		struct recording_process *process = add_rank(hand, rank);
		uint32_t world = hand_comm(process, 1, "world", rank, RANKS, 2);
		uint32_t pair = hand_comm(process, (uint64_t)(2 + rank / 2),
					  rank < 2 ? "tp-0" : "tp-1", rank % 2, 2, 1);

		for (uint64_t i = 1; i <= CALLS; i++) {
			hand_op(process, world, OP_ALL_REDUCE, i, 1 << 20, all_reduce_ns,
				i * PERIOD_NS);
			hand_op(process, pair, OP_ALL_GATHER, i, 1 << 16, 500000,
				i * PERIOD_NS + 5000000);
		}
	}
}

/* Rank 3 arrives 2 ms late each time. Then a Broadcast of unknown size and a Reduce without a time. */
static void make_late(struct hand_made *hand)
{
	memset(hand, 0, sizeof(*hand));
	for (int rank = 0; rank < RANKS; rank++) {
		struct recording_process *process = add_rank(hand, rank);
		uint32_t world = hand_comm(process, 1, "world", rank, RANKS, 2);
		struct op_record *op;

		for (uint64_t i = 1; i <= CALLS; i++)
			hand_op(process, world, OP_ALL_REDUCE, i, 1 << 20,
				rank == 3 ? 1000000 : 3000000, i * PERIOD_NS);
		hand_op(process, world, OP_BROADCAST, CALLS + 1, OP_BYTES_UNKNOWN, 2000000,
			(CALLS + 1) * PERIOD_NS);
		op = hand_op(process, world, OP_REDUCE, CALLS + 2, 4096, 2000000,
			     (CALLS + 2) * PERIOD_NS);
		op->time_source = OP_TIME_NONE;
		process->comms[0].counts.timed--;
	}
}

static void make_report(struct timeline_report *report, const struct hand_made *hand)
{
	struct timeline_options options = TIMELINE_OPTIONS_INIT;

	options.custom_by[0] = TALLY_BY_FUNCTION | TALLY_BY_SIZE;
	options.custom_count = 1;
	if (timeline_report_make(report, &hand->recording, NULL, &options) != OK)
		abort();
}

static const struct report_text_options wide = { .width = 100, .has_all = true };

/* The first line that differs is printed. */
static bool is_text(struct sink *sink, const char *wanted)
{
	const char *got = sink_string(sink);
	bool is_same = strcmp(got, wanted) == 0;
	size_t at = 0;

	while (!is_same && got[at] == wanted[at])
		at++;
	while (!is_same && at > 0 && got[at - 1] != '\n')
		at--;
	if (!is_same)
		printf("# got    %.*s\n# wanted %.*s\n", (int)strcspn(got + at, "\n"), got + at,
		       (int)strcspn(wanted + at, "\n"), wanted + at);
	sink_release(sink);
	return is_same;
}

/* Each part is somewhere in the text. */
static void expect_parts(struct sink *sink, const char *const *parts, size_t count)
{
	for (size_t i = 0; i < count; i++)
		EXPECT_THAT(parts[i], strstr(sink_string(sink), parts[i]) != NULL);
	sink_release(sink);
}

static const char late_text[] =
	"job train: 4 ranks on 2 hosts, NCCL 2.28; 4.02 s\n"
	"recording complete (808 operations)\n"
	"communication: >12% of run time (5.0% to 15% by rank), 800.0 MiB in messages\n"
	"waiting: 60% of collective time, >1.20 of 16.1 GPU-seconds lost\n"
	"durations: from the GPU clock\n"
	"timed: 804 of 808 calls (100%)\n"
	"not timed, excluded from totals: Reduce of 4 KiB - 8 KiB in world (4 calls)\n"
	"\n"
	"COMMUNICATORS  KIND   CALLS  TIMED     TIME  SHARE  BUSBW   MEDIAN  WAITING\n"
	"world          mixed    808    804  >2.01 s   100%   0.63  2.84 ms      60%\n"
	"OPERATIONS  CALLS  TIMED     TIME  SHARE  BUSBW   MEDIAN  WAITING\n"
	"AllReduce     800    800   2.00 s   100%   0.63  2.84 ms      60%\n"
	"Broadcast       4      4  8.00 ms   0.4%      -  2.00 ms        -\n"
	"Reduce          4      0        -      -      -        -        -\n"
	"\n"
	"stragglers: rank 3 on node-b (2.00 ms late, last in 100% of 200 collectives)\n"
	"Findings:\n"
	"- warning: straggler: rank 3 on node-b\n"
	"  In world it arrives 2.00 ms later than the others, all the time and was last in 200 of "
	"200\n"
	"  collectives. The other ranks waited 1.20 s in total.\n"
	"  -> Check on node-b: GPU clocks and temperature, data loading, other processes.\n"
	"\n"
	"Times are totals over all ranks. BUSBW and ALGBW are in GB/s (10^9 bytes), with message "
	"sizes as in\n"
	"nccl-tests. Medians and P99 are accurate to 9%. WAITING (arrival skew): share of "
	"collective time\n"
	"spent waiting for the last rank to arrive.\n"
	"TIMED: calls with a duration, from which medians, P99 and bandwidths are computed. ~ "
	"marks an\n"
	"estimate: for each kind of call, the mean of the timed calls times all calls. > marks a "
	"total\n"
	"without the kinds of calls that were never timed.\n"
	"\n"
	"Communicators\n"
	"COMMUNICATORS  KIND   COMMS  RANKS  CALLS  TIMED     TIME  SHARE  BUSBW   MEDIAN      P99 "
	" WAITING\n"
	"world          mixed      1      4    808    804  >2.01 s   100%   0.63  2.84 ms  3.00 ms "
	"     60%\n"
	"\n"
	"Operations by size\n"
	"OPERATION  SIZE           CALLS  TIMED     TIME  SHARE  BUSBW   MEDIAN      P99      MAX  "
	"WAITING\n"
	"AllReduce  1 MiB - 2 MiB    800    800   2.00 s   100%   0.63  2.84 ms  3.00 ms  3.00 ms  "
	"    60%\n"
	"Broadcast  -                  4      4  8.00 ms   0.4%      -  2.00 ms        -  2.00 ms  "
	"      -\n"
	"Reduce     4 KiB - 8 KiB      4      0        -      -      -        -        -        -  "
	"      -\n"
	"\n"
	"Algorithms and protocols\n"
	"OPERATION  ALGORITHM  PROTOCOL  CALLS  TIMED     TIME  SHARE  BUSBW   MEDIAN      P99  "
	"WAITING\n"
	"AllReduce  RING       SIMPLE      800    800   2.00 s   100%   0.63  2.84 ms  3.00 ms     "
	" 60%\n"
	"Broadcast  RING       SIMPLE        4      4  8.00 ms   0.4%      -  2.00 ms        -     "
	"   -\n"
	"Reduce     RING       SIMPLE        4      0        -      -      -        -        -     "
	"   -\n"
	"\n"
	"Ranks\n"
	"RANK  HOST    STATE   BUSY  CALLS  TIMED     TIME  SHARE  BUSBW   MEDIAN      P99      "
	"MAX  WAITING\n"
	"   0  node-a  ended   >15%    202    201  >602 ms    30%   0.52  2.88 ms  3.00 ms  3.00 "
	"ms      67%\n"
	"   1  node-a  ended   >15%    202    201  >602 ms    30%   0.52  2.88 ms  3.00 ms  3.00 "
	"ms      67%\n"
	"   2  node-b  ended   >15%    202    201  >602 ms    30%   0.52  2.88 ms  3.00 ms  3.00 "
	"ms      67%\n"
	"   3  node-b  ended  >5.0%    202    201  >202 ms    10%   1.57  1.02 ms  1.06 ms  2.00 "
	"ms       0%\n"
	"(terminal too narrow for BYTES, ALGBW, MIN, MEAN, MAX, GPU-H LOST)\n"
	"\n"
	"Over time\n"
	"0 ns after the start to 4.02 s after the start in 50 windows of 80.5 ms; GB/s.\n"
	"OPERATION  KIND   OVER TIME                  MIN  MEDIAN   MAX  VALUE\n"
	"AllReduce  mixed  888888888888888888888888  1.57    1.57  1.57  busbw without waiting\n"
	"waiting    all    888888888888888888888888   60%     60%   60%  share of collective time\n"
	"No lasting change in transfer speed.\n";

/* 808 calls: 600 of 3 ms, 200 of 1 ms, 4 of 2 ms, 4 untimed. Ranks 0 to 2 wait 2 ms in each of 200. */
static void test_late(void)
{
	static const char *const parts[] = {
		"\"start_ns\":17000000,",
		"\"end_ns\":4040000000,",
		"\"duration_ns\":4023000000,",
		"\"issued\":808,\"read\":808,\"looked_at\":808,\"in_flight\":0,",
		"\"processes\":4,\"with_final_counts\":4,\"ended\":4,\"alive\":0,\"killed\":0,",
		"\"total\":{\"calls\":808,\"in_flight\":0,\"captured\":0,\"unknown_size\":4,"
		"\"untrusted\":0,\"bytes\":838877184,\"timed\":804,\"estimated\":0,\"not_timed\":4,"
		"\"sources\":{\"none\":4,\"kernel_gpu\":804,\"proxy\":0,\"host\":0,\"cuda_event\":"
		"0,\"tool\":0},"
		"\"sum_ns\":2008000000,\"total_ns\":2008000000,\"min_ns\":1000000,",
		"\"joined\":800,\"joined_ns\":2000000000,\"wait_ns\":1200000000,"
		"\"total_wait_ns\":1200000000,\"wait_share\":0.6,",
		"\"histogram\":{\"first\":97,\"counts\":[200,0,0,0,0,0,0,0,4,0,0,0,600]}",
		"\"not_timed\":[{\"comm\":\"world\",\"comm_index\":0,\"function\":\"Reduce\","
		"\"size\":\"4 KiB - 8 KiB\",\"size_least\":4096,\"size_most\":8191,",
		"\"class\":\"slow_rank\",\"pattern\":\"always\",\"rank_index\":3,\"host_index\":1,",
		"\"last_in\":200,",
		"\"late_ns\":2000000,\"caused_ns\":1200000000,",
		"\"tables\":{\"name\":{\"by\":[\"name\",\"kind\",\"job\"],\"rows\":[{\"name\":"
		"\"world\","
		"\"kind\":\"mixed\",\"job\":\"train\",\"job_index\":0,\"calls\":808,",
	};
	struct timeline_report report;
	struct hand_made hand;
	struct sink sink;
	struct json json;

	make_late(&hand);
	make_report(&report, &hand);
	sink_init_memory(&sink);
	EXPECT(report_text(&sink, &report, &wide) == OK && is_text(&sink, late_text));
	sink_init_memory(&sink);
	json_init(&json, &sink);
	report_json(&json, &report, REPORT_JSON_WHOLE);
	expect_parts(&sink, parts, ARRAY_LENGTH(parts));
	timeline_report_release(&report);
	hand_release(&hand);
}

/* ---- tables ----------------------------------------------------------------------------------- */

#define CSV_FIGURES                                                                            \
	"calls,in_flight,captured,unknown_size,untrusted,bytes,timed,estimated,not_timed,"     \
	"from_none,from_kernel_gpu,from_proxy,from_host,from_cuda_event,from_tool,sum_ns,"     \
	"total_ns,min_ns,median_ns,"                                                           \
	"mean_ns,p90_ns,p99_ns,max_ns,deviation_ns,algbw_bytes_per_second,"                    \
	"busbw_bytes_per_second,shared_time,joined,joined_ns,wait_ns,total_wait_ns,gpu_hours_" \
	"lost\r\n"

static const struct {
	const char *table, *csv;
} tables[] = {
	{ "name",
	  "name,kind,job," CSV_FIGURES "world,mixed,train,800,0,0,0,0,838860800,800,0,0,0,800,0,0,"
	  "0,0,800000000,800000000,1000000,"
	  "1000000,1000000,1000000,1000000,1000000,0,1048576000,1572864000,0,800,800000000,0,0,"
	  "0\r\n"
	  "tp-0,nvlink-only,train,400,0,0,0,0,26214400,400,0,0,0,400,0,0,0,0,200000000,200000000,"
	  "500000,"
	  "500000,500000,500000,500000,500000,0,131072000,65536000,0,400,200000000,0,0,0\r\n"
	  "tp-1,nvlink-only,train,400,0,0,0,0,26214400,400,0,0,0,400,0,0,0,0,200000000,200000000,"
	  "500000,"
	  "500000,500000,500000,500000,500000,0,131072000,65536000,0,400,200000000,0,0,0\r\n" },
	{ "size",
	  "function,size,size_least,size_most," CSV_FIGURES "AllReduce,1 MiB - 2 "
	  "MiB,1048576,2097151,800,0,0,0,0,838860800,800,0,0,0,800,0,0,0,0,800000000,"
	  "800000000,1000000,1000000,1000000,1000000,1000000,1000000,0,1048576000,1572864000,0,800,"
	  "800000000,0,0,0\r\n"
	  "AllGather,64 KiB - 128 "
	  "KiB,65536,131071,800,0,0,0,0,52428800,800,0,0,0,800,0,0,0,0,400000000,"
	  "400000000,500000,500000,500000,500000,500000,500000,0,131072000,65536000,0,800,"
	  "400000000,"
	  "0,0,"
	  "0\r\n" },
	{ "algorithm",
	  "function,algorithm,protocol," CSV_FIGURES
	  "AllReduce,RING,SIMPLE,800,0,0,0,0,838860800,800,0,0,0,800,0,0,0,0,800000000,800000000,"
	  "1000000,"
	  "1000000,1000000,1000000,1000000,1000000,0,1048576000,1572864000,0,800,800000000,0,0,"
	  "0\r\n"
	  "AllGather,RING,SIMPLE,800,0,0,0,0,52428800,800,0,0,0,800,0,0,0,0,400000000,400000000,"
	  "500000,"
	  "500000,500000,500000,500000,500000,0,131072000,65536000,0,800,400000000,0,0,0\r\n" },
};

static void test_tables(void)
{
	struct timeline_report report;
	struct hand_made hand;
	struct sink sink;

	make_even(&hand, 1000000);
	make_report(&report, &hand);
	for (size_t i = 0; i < ARRAY_LENGTH(tables); i++) {
		sink_init_memory(&sink);
		EXPECT(report_csv_tally(&sink, &report, report_table(&report, tables[i].table)) ==
			       OK &&
		       is_text(&sink, tables[i].csv));
	}
	timeline_report_release(&report);
	hand_release(&hand);
}

/* ---- comparisons ------------------------------------------------------------------------------ */

static const char slower_text[] =
	"A: job train: 4 ranks on 2 hosts, NCCL 2.28; 3.99 s; recording complete (1,600 "
	"operations)\n"
	"B: job train: 4 ranks on 2 hosts, NCCL 2.28; 3.99 s; recording complete (1,600 "
	"operations)\n"
	"\n"
	"OPERATION  SIZE    SHARE  BUSBW A  BUSBW B   TIME A   TIME B    B/A  95% INTERVAL  "
	"RESULT\n"
	"AllReduce  1 MiB     75%     1.57     1.05  1.00 ms  1.50 ms  1.500  1.470-1.531   "
	"slower\n"
	"AllGather  64 KiB    33%     0.07     0.07   500 us   500 us  1.000  0.980-1.020   same "
	"within noise\n"
	"(terminal too narrow for CALLS A, CALLS B, WAITING A, WAITING B, COMPARED)\n"
	"\n"
	"JOB                                           A       CHANGE  95% INTERVAL         "
	"RESULT\n"
	"iteration                               20.0 ms        +0.0%  -1.9% to +2.0%       same "
	"within noise\n"
	"communication per iteration             1.50 ms       +33.3%  +30.5% to +36.2%     "
	"slower\n"
	"exposed communication        1.00 ms to 1.04 ms            -  -                    more\n"
	"waiting, share of run time                 0.0%  +0.0 points  -2.0 to +2.0 points  same "
	"within noise\n"
	"(terminal too narrow for B)\n"
	"\n"
	"2 kinds of operations compared: 1 slower, 0 faster by more than 5%.\n"
	"Result: B is slower than A by more than 5%.\n";

/*
 * The chart of an interval is 160 wide, from -25% to +50%: 0 is at 53.3, the threshold of 5% at 64.0, and +33.3% at
 * 124.4; what lies beyond is cut.
 */
static const char *const slower_html[] = {
	"<b>Result: B is slower than A by more than 5%.</b>",
	"<td>communication per iteration</td><td class=\"right\">1.50 ms</td>"
	"<td class=\"right\">2.00 ms</td><td class=\"right\">+33.3%</td><td>+30.5% to +36.2%</td>",
	"<path d=\"M53.3 0V16\"",
	"<path d=\"M64.0 0V16\"",
	"<rect x=\"118.4\" y=\"5\" width=\"12.1\"",
	"<circle cx=\"124.4\" cy=\"8\"",
	"<title>+50.0%, 95% interval +47.0% to +53.1%</title>",
	"<rect x=\"153.6\" y=\"5\" width=\"6.4\"",
	"<circle cx=\"160.0\" cy=\"8\"",
	"<tr><td>AllGather</td><td>64 KiB</td><td class=\"right\">33%</td><td "
	"class=\"right\">0%</td>"
	"<td class=\"right\">0%</td><td class=\"right\">0.07</td><td class=\"right\">0.07</td>"
	"<td>transfer</td><td class=\"right\">500 us</td><td class=\"right\">500 us</td>"
	"<td class=\"right\">1.000</td><td>0.980-1.020</td>",
};

static const char *const slower_json[] = {
	"\"a\":{\"path\":\"before\",",
	"\"b\":{\"path\":\"after\",",
	"\"by\":[\"function\",\"size\"],\"threshold\":0.05,\"slower\":1,\"faster\":0,\"only_a\":0,"
	"\"only_b\":0,\"not_timed\":0,\"undecided\":0,\"judged\":2,\"judged_share\":1,",
	"\"answer\":\"slower\",\"rows\":[{\"function\":\"AllReduce\",\"size\":\"1 MiB\",\"a\":{"
	"\"calls\":800,\"in_flight\":0,\"timed\":800,\"not_timed\":0,\"bytes\":838860800,"
	"\"sum_ns\":800000000,\"total_ns\":800000000,",
	"\"b\":{\"calls\":800,\"in_flight\":0,\"timed\":800,\"not_timed\":0,\"bytes\":838860800,"
	"\"sum_ns\":1200000000,\"total_ns\":1200000000,",
	"\"median_ratio\":1.5,\"mean_ratio\":1.5,\"busbw_ratio\":0.6666666666666666,",
	"\"is_significant\":true,\"is_slower\":true,\"is_faster\":false,\"is_undecided\":false,"
	"\"basis\":\"transfer\",\"share\":0.75,\"verdict\":\"slower\"}",
	"\"share\":0.3333333333333333,\"verdict\":\"same within noise\"}]",
	"\"exposed\":{\"a_low_ns\":1000000,\"a_high_ns\":1040000,\"b_low_ns\":1500000,"
	"\"b_high_ns\":1540000,\"is_more\":true,\"is_less\":false}",
};

static void test_slower(void)
{
	struct timeline_report before, after;
	struct diff_side a = { "before", &before }, b = { "after", &after };
	struct hand_made one, other;
	struct compare compare;
	struct sink sink;
	struct json json;

	make_even(&one, 1000000);
	make_even(&other, 1500000);
	make_report(&before, &one);
	make_report(&after, &other);
	if (compare_make(&compare, &before, &after, 0.05) != OK)
		abort();
	sink_init_memory(&sink);
	EXPECT(diff_text(&sink, &a, &b, &compare, &wide) == OK && is_text(&sink, slower_text));
	sink_init_memory(&sink);
	EXPECT_EQUAL(diff_html(&sink, &a, &b, &compare, true), OK);
	expect_parts(&sink, slower_html, ARRAY_LENGTH(slower_html));
	sink_init_memory(&sink);
	json_init(&json, &sink);
	diff_json(&json, &a, &b, &compare);
	expect_parts(&sink, slower_json, ARRAY_LENGTH(slower_json));
	compare_release(&compare);
	timeline_report_release(&before);
	timeline_report_release(&after);
	hand_release(&one);
	hand_release(&other);
}

int main(void)
{
	test_late();
	test_tables();
	test_slower();
	return tap_done();
}
