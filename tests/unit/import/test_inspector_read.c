/* Reading NCCL Inspector's lines; the files are in tests/foreign/data. */
#include "common/op.h"
#include "tests/support/foreign_play.h"
#include "tests/tap.h"

#define T0 UINT64_C(1767225600000000000)
#define US UINT64_C(1000)

static struct play play;

static const struct foreign_comm *comm_of(size_t op)
{
	const struct foreign_process *process = &play.log.processes[play.op_process[op]];

	return &play.log.comms[process->comms[play.ops[op].comm - 1]];
}

static size_t refused(void)
{
	size_t count = 0;

	for (size_t i = 0; i < play.op_count; i++) {
		struct op_record op = play.ops[i];

		count += op_check(&op) != NULL || !op_check_time(&op);
	}
	for (size_t i = 0; i < play.detail_count; i++)
		count += op_check_detail(&play.details[i]) != NULL;
	for (uint32_t i = 0; i < play.log.comm_count; i++)
		count += op_check_comm(&play.log.comms[i].info) != NULL;
	return count;
}

static void test_identity(void)
{
	char text[1024];

	play_data(&play, "inspector-v4.0.log");
	EXPECT_EQUAL(play.status, OK);
	EXPECT_EQUAL(play.log.format, FOREIGN_INSPECTOR);
	EXPECT_EQUAL(play.op_count, 25);
	EXPECT_EQUAL(play.log.damaged, 0);
	EXPECT_EQUAL(play.log.process_count, 1);
	EXPECT_EQUAL(play.log.comm_count, 2);
	EXPECT_EQUAL(refused(), 0);
	EXPECT(strcmp(play.log.processes[0].host, "alpha") == 0);
	EXPECT_EQUAL(play.log.processes[0].pid, 4100);
	EXPECT(strcmp(play.log.processes[0].version, "v4.0") == 0);
	EXPECT(strcmp(play.log.comms[0].info.name, "world") == 0);
	EXPECT(strcmp(play.log.comms[1].info.name, "pipe \"0\"") == 0);
	EXPECT_EQUAL(play.log.comms[0].info.hash, 0x5eed00c0ffee01);
	EXPECT_EQUAL(play.log.comms[0].info.rank, 1);
	EXPECT_EQUAL(play.log.comms[0].info.nranks, 8);
	EXPECT_EQUAL(play.log.comms[0].info.nnodes, 2);
	EXPECT(foreign_info_text(&play.log, 0, "/logs/nccl-inspector-77/a.log", text,
				 sizeof(text)));
	EXPECT(strstr(text, "job=77\n") && strstr(text, "host=alpha\n") &&
	       strstr(text, "pid=4100\n"));
	EXPECT(foreign_info_text(&play.log, 0, "nccl-inspector-unknown-jobid/a\nrank=7", text,
				 sizeof(text)));
	EXPECT_THAT("a path cannot make up keys",
		    strstr(text, "job=\n") && !strstr(text, "\nrank=7"));
}

static void test_values(void)
{
	const struct op_record *op = play.ops;

	EXPECT_EQUAL(op[0].function, OP_ALL_REDUCE);
	EXPECT_EQUAL(op[0].bytes, 1 << 20);
	EXPECT_EQUAL(op_duration_ns(&op[0]), 100 * US);
	EXPECT_EQUAL(op[0].time_source, OP_TIME_KERNEL_GPU);
	EXPECT_THAT("the size of AllGather and ReduceScatter is that of one rank's part",
		    op[1].bytes == 8 * 65536 && op[2].bytes == 8 * 65536);
	EXPECT_EQUAL(op[3].bytes, 32768);
	EXPECT_THAT("it ended before it was written", op[0].done_ns == T0 + 700 * US);
	EXPECT_EQUAL(play.log.processes[0].coarse, 25);
	EXPECT_THAT("what Inspector does not have is unknown",
		    op[0].issue_ns == 0 && op[0].datatype == 0 && op[0].root == OP_NOBODY &&
			    op[0].algorithm == 0 && op[0].count == 0);
	EXPECT_EQUAL(op[5].function, OP_SEND);
	EXPECT_EQUAL(op[5].peer, 1);
	EXPECT_EQUAL(op[5].bytes, 16384);
	EXPECT_EQUAL(op[5].match, 0);
	EXPECT_EQUAL(comm_of(5)->info.id, 2);
	EXPECT_EQUAL(op[21].time_source, OP_TIME_PROXY);
	EXPECT_EQUAL(op_duration_ns(&op[21]), 250 * US);
	EXPECT_EQUAL(op[22].time_source, OP_TIME_HOST);
	EXPECT_EQUAL(op_duration_ns(&op[22]), 900 * US);
	EXPECT_THAT("a size that wrapped around is unknown", op[23].bytes == OP_BYTES_UNKNOWN);
	EXPECT_THAT("an unknown function stays unknown, and so does its size",
		    op[24].function == OP_FUNCTION_UNKNOWN && op[24].bytes == OP_BYTES_UNKNOWN &&
			    op[24].match == 0);
}

static void test_numbers(void)
{
	const struct op_record *op = play.ops;
	int repeated = 0;

	EXPECT_EQUAL(op[7].nccl_sequence, 1);
	EXPECT_EQUAL(op[24].sequence, 25);
	EXPECT_THAT("numbers count per communicator",
		    op[5].number == 1 && op[6].number == 2 && op[7].number == 6);
	for (size_t i = 0; i < play.op_count; i++)
		for (size_t j = 0; j < i; j++)
			repeated += op[i].match != 0 && op[i].comm == op[j].comm &&
				    op[i].match == op[j].match;
	EXPECT_THAT("functions are counted separately, with their own match numbers",
		    repeated == 0);
	EXPECT_EQUAL(foreign_dropped(&play.log, 0), 0);
	EXPECT_EQUAL(foreign_not_recorded(&play.log, 0), 0);
}

static void test_verbose(void)
{
	const struct op_record *op = play.ops;

	play_data(&play, "inspector-v4.0-verbose.log");
	EXPECT_EQUAL(play.op_count, 5);
	EXPECT_EQUAL(play.log.damaged, 0);
	EXPECT_EQUAL(refused(), 0);
	EXPECT_EQUAL(play.log.processes[0].coarse, 0);
	EXPECT_THAT("a name unknown to Inspector counts as none",
		    play.log.comms[0].info.name[0] == '\0');
	EXPECT_EQUAL(op[0].task_ns, T0 + 5000 * US);
	EXPECT_EQUAL(op[0].active_ns, T0 + 5020 * US);
	EXPECT_EQUAL(op[0].done_ns, T0 + 5240 * US);
	EXPECT_EQUAL(op[0].gpu_stop_ns, T0 + 5239 * US);
	EXPECT_EQUAL(op_duration_ns(&op[0]), 200 * US);
	EXPECT_EQUAL(op[0].kernels_started, 2);
	EXPECT_EQUAL(op[0].kernels_stopped, 2);
	EXPECT_EQUAL(play.detail_count, 9);
	EXPECT_EQUAL(play.details[1].kind, OP_DETAIL_KERNEL);
	EXPECT_EQUAL(play.details[1].channel, 4);
	EXPECT_EQUAL(play.details[1].number, 1);
	EXPECT_EQUAL(play.details[1].time_ns[3], T0 + 5240 * US);
	EXPECT_EQUAL(play.details[8].channel, 7);
	EXPECT_EQUAL(op[4].task_ns, T0 + 23100 * US);
}

static void test_dropped(void)
{
	play_data(&play, "inspector-v4.1.log");
	EXPECT_EQUAL(play.op_count, 6);
	EXPECT_EQUAL(play.log.damaged, 0);
	EXPECT_EQUAL(foreign_dropped(&play.log, 0), 5);
	EXPECT_THAT("dropped operations are not counted as missing again",
		    foreign_not_recorded(&play.log, 0) == 0);
	play_text(
		&play,
		"{\"header\":{\"id\":\"0x1\",\"rank\":0,\"n_ranks\":2},\"metadata\":{\"pid\":1},"
		"\"coll_perf\":{\"coll\":\"AllReduce\",\"coll_sn\":9,\"coll_exec_time_us\":7}}\n");
	EXPECT_THAT("NCCL's numbers show what Inspector left out",
		    play.op_count == 1 && foreign_not_recorded(&play.log, 0) == 9);
}

static void put_number(char *text, size_t size, unsigned int number)
{
	size_t used = strlen(text);

	snprintf(text + used, size - used,
		 "{\"header\":{\"id\":\"0x1\"},\"metadata\":{},\"coll_perf\":{\"coll\":\"Reduce\","
		 "\"coll_sn\":%u}}\n",
		 number);
}

static void test_repeated(void)
{
	static const unsigned int numbers[] = { 0, 2, 1, 2, 1, 200, 150, 150, 3 };
	static char text[4096];

	text[0] = '\0';
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		put_number(text, sizeof(text), numbers[i]);
	play_text(&play, text);
	EXPECT_EQUAL(play.op_count, 9);
	EXPECT_THAT("out of order is fine",
		    play.ops[1].match != 0 && play.ops[2].match == play.ops[1].match - 1);
	EXPECT_THAT("a duplicate number matches nothing",
		    play.ops[3].match == 0 && play.ops[4].match == 0 && play.ops[7].match == 0);
	EXPECT_THAT("and does not hide a missing one",
		    foreign_not_recorded(&play.log, 0) == 201 - 6);
}

static void test_algorithms(void)
{
	play_data(&play, "inspector-v4.2.log");
	EXPECT_EQUAL(play.op_count, 3);
	EXPECT(play.ops[0].algorithm == OP_NVLS_TREE && play.ops[0].protocol == OP_SIMPLE);
	EXPECT(play.ops[1].algorithm == OP_RING && play.ops[1].protocol == OP_LL128);
	EXPECT(play.ops[2].algorithm == 0 && play.ops[2].protocol == 0);
}

static void test_markers(void)
{
	play_data(&play, "inspector-v4.3.log");
	EXPECT_EQUAL(play.op_count, 4);
	EXPECT_EQUAL(play.log.damaged, 0);
	EXPECT_EQUAL(refused(), 0);
	EXPECT_EQUAL(play.log.comm_count, 2);
	EXPECT_EQUAL(play.ops[0].done_ns, T0 + 1000 * US);
	EXPECT_EQUAL(play.ops[3].comm, 2);
	EXPECT_EQUAL(play.ops[3].bytes, 2 * 65536);
	EXPECT_EQUAL(foreign_dropped(&play.log, 0), 7);
	EXPECT_EQUAL(foreign_dropped_details(&play.log, 0), 5);
	EXPECT_EQUAL(play.log.processes[0].foreign_ops, 6);
	EXPECT_EQUAL(play.detail_count, 3);
	EXPECT_EQUAL(play.details[0].kind, OP_DETAIL_STEP);
	EXPECT_EQUAL(play.details[0].flags, OP_DETAIL_IS_SEND);
	EXPECT_EQUAL(play.details[0].peer, 5);
	EXPECT_EQUAL(play.details[0].channel, 3);
	EXPECT_EQUAL(play.details[1].step, 1);
	EXPECT_EQUAL(play.details[1].time_ns[0], T0 + 520 * US);
	EXPECT_EQUAL(play.details[1].time_ns[1], T0 + 523 * US);
	EXPECT_EQUAL(play.details[1].time_ns[2], T0 + 526 * US);
	EXPECT_EQUAL(play.details[1].time_ns[3], T0 + 530 * US);
	EXPECT_EQUAL(play.details[2].kind, OP_DETAIL_PROXY);
	EXPECT_EQUAL(play.details[2].step, 2);
	EXPECT_EQUAL(play.details[2].bytes, 8192);
	EXPECT_EQUAL(play.details[2].time_ns[3], T0 + 550 * US);

	play_data(&play, "inspector-v4.4.log");
	EXPECT_EQUAL(play.op_count, 1);
	EXPECT_EQUAL(play.log.damaged, 0);
	EXPECT_EQUAL(play.detail_count, 4);
	EXPECT_THAT("steps inside their operation have its peer and channel",
		    play.details[0].kind == OP_DETAIL_STEP && play.details[0].peer == 7 &&
			    play.details[0].flags == 0 && play.details[2].step == 2 &&
			    play.details[3].kind == OP_DETAIL_PROXY);
}

static void test_mixed(void)
{
	play_data(&play, "inspector-mixed.jsonl");
	EXPECT_EQUAL(play.op_count, 4);
	EXPECT_EQUAL(play.log.damaged, 0);
	EXPECT_EQUAL(play.log.ignored, 1);
	EXPECT_EQUAL(play.log.process_count, 2);
	EXPECT_THAT("blanks between everything change nothing",
		    op_duration_ns(&play.ops[0]) == 80 * US && play.ops[0].bytes == 65536 &&
			    play.ops[0].match != 0);
	EXPECT_EQUAL(play.op_process[0], 0);
	EXPECT_EQUAL(play.op_process[1], 1);
	EXPECT_EQUAL(play.op_process[3], 0);
	EXPECT(strcmp(play.log.processes[1].host, "beta") == 0);
	EXPECT_THAT("the order of keys, blanks and a fraction are fine",
		    op_duration_ns(&play.ops[3]) == 5663250 && play.ops[3].bytes == 8 * 128 &&
			    play.ops[3].match == 0);
	EXPECT_THAT("a second process starts over", play.ops[1].sequence == 1 &&
							    play.ops[2].sequence == 2 &&
							    play.ops[1].comm == 1);
}

struct wanted {
	uint64_t line;
	const char *what;
};

static void test_damage(void)
{
	static const struct wanted wanted[] = {
		{ 2, "not a JSON value" },
		{ 3, "unexpected end" },
		{ 4, "trailing text after the value" },
		{ 5, "a value is not a time in microseconds" },
		{ 6, "impossible count" },
		{ 7, "its marker line is missing" },
		{ 8, "header or metadata missing" },
		{ 9, "control character in a string" },
		{ 13, "unexpected end" },
		{ 14, "its marker line is missing" },
		{ 17, "dump before this line incomplete" },
		{ 19, "more lines than its marker line announced" },
		{ 21, "last line truncated" },
	};
	const size_t count = sizeof(wanted) / sizeof(wanted[0]);

	play_data(&play, "inspector-damaged.log");
	EXPECT_EQUAL(play.status, OK);
	EXPECT_EQUAL(play.damage_count, count);
	for (size_t i = 0; i < count && i < play.damage_count; i++)
		EXPECT_THAT(wanted[i].what,
			    play.damages[i].line == wanted[i].line &&
				    strcmp(play.damages[i].what, wanted[i].what) == 0);
	EXPECT_EQUAL(play.damages[0].offset, 444);
	EXPECT_EQUAL(play.damages[10].missing, 1);
	EXPECT_EQUAL(play.log.damaged, count);
	EXPECT_EQUAL(play.log.orphans, 3);
	EXPECT(play.log.is_cut && play.damages[12].is_cut);
	EXPECT_EQUAL(play.op_count, 6);
	EXPECT_THAT("the good lines are read",
		    play.ops[0].nccl_sequence == 0 && play.ops[1].nccl_sequence == 8 &&
			    play.ops[2].nccl_sequence == 9 && play.ops[3].nccl_sequence == 11 &&
			    play.ops[4].nccl_sequence == 12 && play.ops[5].nccl_sequence == 14);
	EXPECT_EQUAL(foreign_not_recorded(&play.log, 0), 9);
}

#define HEAD "{\"header\":{\"id\":\"0x1\",\"rank\":0,\"n_ranks\":2},\"metadata\":{\"pid\":1}"

static void test_endings(void)
{
	play_text(&play, HEAD ",\"dump_stats\":{\"coll_records\":5,\"p2p_records\":0}}\n"
			      "{\"coll_perf\":{\"coll\":\"AllReduce\",\"coll_sn\":0}}\n");
	EXPECT_THAT("a log that ends inside a dump reports how many are missing",
		    play.op_count == 1 && play.damage_count == 1 && play.damages[0].is_cut &&
			    play.damages[0].missing == 4);
	play_text(&play, HEAD ",\"coll_perf\":{\"coll\":\"AllReduce\",\"coll_sn\":0}}");
	EXPECT_THAT("a complete last line is accepted without its newline",
		    play.op_count == 1 && play.damage_count == 0);
	play_text(&play, HEAD ",\"coll_perf\":{}," HEAD ",\"p2p_perf\":{}}}\n" HEAD
			      ",\"coll_perf\":{},\"coll_perf\":{}}\n" HEAD ",\"coll_perf\":{}}\n");
	EXPECT_THAT("a line cannot have two bodies", play.damage_count == 2 && play.op_count == 1);
	EXPECT_THAT("an empty one gives a record with everything unknown",
		    play.ops[0].function == 0 && play.ops[0].bytes == OP_BYTES_UNKNOWN &&
			    play.ops[0].time_source == OP_TIME_NONE);
	play_text(&play, "just some text\n");
	EXPECT_EQUAL(play.status, ERR_UNKNOWN);
}

static void test_gzip(void)
{
	static struct play packed_play;
	size_t length, packed;
	char text[16384];
	unsigned char *gzip;
	int fd = open("tests/foreign/data/inspector-v4.0.log", O_RDONLY | O_CLOEXEC);

	play_fd(&play, fd);
	length = (size_t)pread(fd, text, sizeof(text), 0);
	close(fd);
	gzip = play_gzip(text, length, 1000, &packed);
	fd = play_file(gzip, packed);
	play_fd(&packed_play, fd);
	close(fd);
	EXPECT_THAT("compressed it gives the same",
		    packed_play.op_count == play.op_count &&
			    memcmp(packed_play.ops, play.ops, sizeof(play.ops)) == 0);
	fd = play_file(gzip, packed - 20);
	play_fd(&packed_play, fd);
	close(fd);
	EXPECT_THAT("compressed and truncated it gives the available part and reports damage",
		    packed_play.status == OK && packed_play.op_count > 15 &&
			    packed_play.log.is_cut);
	free(gzip);
}

#define ONE                                                                              \
	"{\"header\":{\"id\":\"0x1\",\"rank\":0,\"n_ranks\":2},\"metadata\":{\"pid\":1," \
	"\"dump_timestamp_us\":100},"

/* Sends and Recvs are numbered from 1 by Inspector itself. */
static void test_send_numbers(void)
{
	play_text(&play,
		  ONE "\"p2p_perf\":{\"p2p\":\"Send\",\"p2p_sn\":3,\"p2p_exec_time_us\":7}}\n" ONE
		      "\"p2p_perf\":{\"p2p\":\"Send\",\"p2p_sn\":2,\"p2p_exec_time_us\":7}}\n" ONE
		      "\"p2p_perf\":{\"p2p\":\"Recv\",\"p2p_sn\":9,\"p2p_exec_time_us\":7}}\n");
	EXPECT_EQUAL(play.op_count, 3);
	EXPECT(play.log.comms[0].counted_p2p == 9 && play.log.comms[0].found_p2p == 3);
	EXPECT_EQUAL(foreign_not_recorded(&play.log, 0), 6);
	EXPECT(play.ops[2].nccl_sequence == 9 && play.ops[2].match == 0);
}

/* Drops of both kinds are added; the totals of the last marker count. */
static void test_drops(void)
{
	play_text(&play, ONE
		  "\"dump_stats\":{\"coll_records\":0,\"p2p_records\":0,\"coll_dropped_total\":4,"
		  "\"p2p_dropped_total\":3,\"proxy_dropped_total\":2,"
		  "\"proxy_ops_dropped_total\":6,\"proxy_pxn_skipped_process_total\":11}}\n" ONE
		  "\"dump_stats\":{\"coll_records\":0,\"p2p_records\":0,\"coll_dropped_total\":1,"
		  "\"p2p_dropped_total\":1}}\n");
	EXPECT_EQUAL(play.log.damaged, 0);
	EXPECT_EQUAL(foreign_dropped(&play.log, 0), 7);
	EXPECT_EQUAL(foreign_dropped_details(&play.log, 0), 8);
	EXPECT_EQUAL(play.log.processes[0].foreign_ops, 11);
}

static void test_twice(void)
{
	static const char *const lines[] = {
		"{\"header\":{\"id\":\"0x1\"},\"header\":{\"id\":\"0x1\"},\"metadata\":{},\"coll_"
		"perf\":{}}\n",
		"{\"header\":{\"id\":\"0x1\"},\"metadata\":{},\"metadata\":{},\"coll_perf\":{}}\n",
		"{\"header\":{\"id\":\"0x1\"},\"metadata\":{},\"coll_perf\":{},\"p2p_perf\":{}}\n",
		"{\"header\":{\"id\":\"0x1\"},\"metadata\":{},\"dump_stats\":{},\"dump_stats\":{}}"
		"\n",
	};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		play_text(&play, lines[i]);
		EXPECT(play.op_count == 0 && play.damage_count == 1 &&
		       strcmp(play.damages[0].what, "duplicate part") == 0 &&
		       play.damages[0].line == 1 && play.damages[0].bytes == strlen(lines[i]));
	}
}

/* A duration must fit between 1970 and the end, which is when the line was written: 100 us. */
static void test_durations(void)
{
	static const struct {
		const char *source;
		unsigned int us;
		uint8_t time_source;
	} cases[] = {
		{ "kernel_gpu", 99, OP_TIME_KERNEL_GPU }, { "kernel_gpu", 100, OP_TIME_NONE },
		{ "kernel_gpu", 0, OP_TIME_NONE },	  { "kernel_cpu", 99, OP_TIME_PROXY },
		{ "collective_cpu", 99, OP_TIME_HOST },	  { "what", 99, OP_TIME_NONE },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[512];

		snprintf(
			text, sizeof(text),
			ONE
			"\"coll_perf\":{\"coll\":\"Reduce\",\"coll_sn\":0,\"coll_exec_time_us\":%u,"
			"\"coll_timing_source\":\"%s\"}}\n",
			cases[i].us, cases[i].source);
		play_text(&play, text);
		EXPECT(play.op_count == 1 && play.ops[0].time_source == cases[i].time_source &&
		       play.ops[0].done_ns == 100 * US &&
		       op_duration_ns(&play.ops[0]) ==
			       (cases[i].time_source != OP_TIME_NONE ? cases[i].us * US : 0));
	}
}

/* null is the same as missing, wherever it is. */
static void test_nulls(void)
{
	static const struct {
		const char *line;
		size_t ops;
		const char *problem;
	} cases[] = {
		{ ONE "\"dump_stats\":null,\"coll_perf\":{\"coll\":\"Reduce\"}}\n", 1, NULL },
		{ ONE "\"coll_perf\":{\"coll\":null,\"coll_sn\":null,\"coll_exec_time_us\":null,"
		      "\"event_trace_sn\":null,\"event_trace_ts\":null}}\n",
		  1, NULL },
		{ ONE "\"proxy_trace\":null}\n", 0, NULL },
		{ "{\"header\":null,\"metadata\":{},\"coll_perf\":{}}\n", 0,
		  "header or metadata missing" },
		{ "{\"header\":{\"id\":\"0x1\"},\"metadata\":null,\"coll_perf\":{}}\n", 0,
		  "header or metadata missing" },
		{ "{\"header\":null,\"metadata\":null,\"coll_perf\":{}}\n", 0,
		  "its marker line is missing" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		play_text(&play, cases[i].line);
		if (!EXPECT(play.op_count == cases[i].ops &&
			    play.damage_count == (cases[i].problem != NULL) &&
			    (cases[i].problem == NULL ||
			     strcmp(play.damages[0].what, cases[i].problem) == 0)))
			printf("# case %zu: %zu, %s\n", i, play.op_count,
			       play.damage_count > 0 ? play.damages[0].what : "no damage");
	}
}

int main(void)
{
	test_nulls();
	test_send_numbers();
	test_drops();
	test_twice();
	test_durations();
	test_identity();
	test_values();
	test_numbers();
	test_verbose();
	test_dropped();
	test_repeated();
	test_algorithms();
	test_markers();
	test_mixed();
	test_damage();
	test_endings();
	test_gzip();
	return tap_done();
}
