/* Parts that the readers of other tools' logs share: detecting formats, counting, single values. */
#include "import/foreign_internal.h"

#include "tests/support/foreign_play.h"
#include "tests/tap.h"

/* ---- formats ----------------------------------------------------------------------------------- */

static void test_probe(void)
{
	static const struct {
		const char *text;
		enum foreign_format format;
	} cases[] = {
		{ "{\"header\":{},\"coll_perf\":{}}", FOREIGN_INSPECTOR },
		{ "{\"p2p_perf\":{}}", FOREIGN_INSPECTOR },
		{ "{\"dump_stats\":{}}", FOREIGN_INSPECTOR },
		{ "{\"proxy_trace\":[]}", FOREIGN_INSPECTOR },
		{ "{\"header\":{},\"metadata\":{}}", FOREIGN_NONE },
		{ "no JSON\n{\"coll_perf\":", FOREIGN_NONE },
		{ "no JSON\n{\"coll_perf\":1}\n", FOREIGN_INSPECTOR },
		{ "{\"ph\":\"X\",\"cat\":\"COLL\"}", FOREIGN_COMMA },
		{ "{\"ph\":\"X\",\"cat\":\"P2P\"}", FOREIGN_COMMA },
		{ "{\"cat\":\"PROXY\",\"ph\":\"X\"}", FOREIGN_COMMA },
		{ "{\"ph\":\"X\",\"cat\":\"GROUP\"}", FOREIGN_COMMA },
		{ "{\"ph\":\"X\",\"cat\":\"kernel\"}", FOREIGN_NONE },
		{ "{\"cat\":\"COLL\"}", FOREIGN_NONE },
		{ "{\"format\":\"ringside-expected\"}", FOREIGN_EXPECTED },
		{ "{\"format\":\"ringside-bench\"}", FOREIGN_EXPECTED },
		{ "{\"format\":\"ringside-health\"}", FOREIGN_EXPECTED },
		{ "{\"format\":\"ringside-crossover\"}", FOREIGN_EXPECTED },
		{ "{\"cat\":\"ringside-bench\"}", FOREIGN_EXPECTED }, /* anywhere in a text */
		{ "{\"format\":\"other\"}", FOREIGN_NONE },
		{ "\n\r\t {\n\"a\": \"ringside-expected\"", FOREIGN_EXPECTED },
		{ "{\n\"a\": \"ringside-bench\"", FOREIGN_EXPECTED },
		{ "{\n\"a\": \"ringside-health\"", FOREIGN_EXPECTED },
		{ "{\n\"a\": \"ringside-crossover\"", FOREIGN_EXPECTED },
		{ "x\n{\n\"a\": \"ringside-bench\"", FOREIGN_NONE },
		{ "{\n\"collective_seq_id\"", FOREIGN_TORCH_DUMP },
		{ "{\n\"pg_config\": {}, \"entries\"", FOREIGN_TORCH_DUMP },
		{ "{\n\"pg_config\": {}", FOREIGN_NONE },
		{ "{\n\"entries\": []", FOREIGN_NONE },
		{ "{\n\"message_sizes\"", FOREIGN_COMMA_SUMMARY },
		{ "{\n\"latency_distribution\"", FOREIGN_COMMA_SUMMARY },
		{ "{\n\"collective_counts\"", FOREIGN_COMMA_SUMMARY },
		{ "{\n\"start_time\" \"args\" \"version\"", FOREIGN_NCCL_TESTS_JSON },
		{ "{\n\"start_time\" \"args\"", FOREIGN_NONE },
		{ "{\n\"start_time\" \"version\"", FOREIGN_NONE },
		{ "{\n\"args\" \"version\"", FOREIGN_NONE },
		{ "# nThread 1", FOREIGN_NCCL_TESTS },
		{ "x\n# Collective test starting: y", FOREIGN_NCCL_TESTS },
		{ "algbw busbw #wrong", FOREIGN_NCCL_TESTS },
		{ "algbw busbw", FOREIGN_NONE },
		{ "algbw #wrong", FOREIGN_NONE },
		{ "busbw #wrong", FOREIGN_NONE },
		{ "\x80\x02 entries", FOREIGN_TORCH_DUMP },
		{ "\x80\x05 pg_config", FOREIGN_TORCH_DUMP },
		{ "\x80\x01 entries", FOREIGN_NONE },
		{ "\x80\x06 entries", FOREIGN_NONE },
		{ "\x81\x02 entries", FOREIGN_NONE },
		{ "\x80\x02 other", FOREIGN_NONE },
		{ "", FOREIGN_NONE },
		{ " ", FOREIGN_NONE },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (!EXPECT(foreign_probe(cases[i].text, strlen(cases[i].text)) == cases[i].format))
			printf("# case %zu\n", i);
	EXPECT_THAT("a text ends where its length says",
		    foreign_probe("{\"coll_perf\":1}", 13) == FOREIGN_NONE &&
			    foreign_probe("  {", 2) == FOREIGN_NONE);
}

/* The first 64 lines decide. */
static void test_probe_lines(void)
{
	char text[256];

	for (int lines = 63; lines <= 64; lines++) {
		memset(text, '\n', (size_t)lines);
		memcpy(text + lines, "{\"coll_perf\":1}", 16);
		EXPECT_EQUAL(foreign_probe(text, strlen(text)),
			     lines == 63 ? FOREIGN_INSPECTOR : FOREIGN_NONE);
	}
}

static void test_formats(void)
{
	static const struct {
		enum foreign_format format;
		const char *name;
		bool has_operations;
	} cases[] = {
		{ FOREIGN_NONE, "an unknown format", false },
		{ FOREIGN_INSPECTOR, "NCCL Inspector's log", true },
		{ FOREIGN_COMMA, "CoMMA's latency file", true },
		{ FOREIGN_TORCH_DUMP, "dump of PyTorch's Flight Recorder", true },
		{ FOREIGN_COMMA_SUMMARY, "CoMMA's summary", false },
		{ FOREIGN_NCCL_TESTS, "nccl-tests' output", false },
		{ FOREIGN_NCCL_TESTS_JSON, "nccl-tests' JSON", false },
		{ FOREIGN_EXPECTED, "a table of expected bandwidth", false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		EXPECT(strcmp(foreign_format_name(cases[i].format), cases[i].name) == 0 &&
		       foreign_has_operations(cases[i].format) == cases[i].has_operations);
}

/* ---- counts ------------------------------------------------------------------------------------ */

/* NCCL's numbers, in which order they come, and whether each is new. */
static void test_numbers(void)
{
	static const struct {
		uint64_t number;
		bool is_new;
		uint64_t counted, found;
	} cases[] = {
		{ 3, true, 4, 1 },	{ 3, false, 4, 1 },	{ 2, true, 4, 2 },
		{ 2, false, 4, 2 },	{ 0, true, 4, 3 },	{ 66, true, 67, 4 },
		{ 3, false, 67, 4 },	{ 4, true, 67, 5 },	{ 4, false, 67, 5 },
		{ 1, true, 67, 6 },	{ 2, true, 67, 7 },	{ 200, true, 201, 8 },
		{ 66, true, 201, 9 },	{ 137, true, 201, 10 }, { 137, false, 201, 10 },
		{ 136, true, 201, 11 }, { 136, true, 201, 12 },
	};
	struct foreign_comm comm = { 0 };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t match = foreign_count_collective(&comm, OP_BROADCAST, cases[i].number);

		EXPECT(match == (cases[i].is_new ? (UINT64_C(4) << 48) + cases[i].number + 1 : 0));
		EXPECT(comm.counted[OP_BROADCAST - OP_ALL_REDUCE] == cases[i].counted &&
		       comm.found[OP_BROADCAST - OP_ALL_REDUCE] == cases[i].found);
	}
	EXPECT_THAT("each function has numbers of its own",
		    foreign_count_collective(&comm, OP_ALL_REDUCE, 3) == (UINT64_C(1) << 48) + 4 &&
			    foreign_count_collective(&comm, OP_REDUCE, 0) ==
				    (UINT64_C(5) << 48) + 1);
	EXPECT_THAT("others have none",
		    foreign_count_collective(&comm, OP_SEND, 3) == 0 &&
			    foreign_count_collective(&comm, OP_FUNCTION_UNKNOWN, 3) == 0);
}

static void test_missing(void)
{
	struct foreign_log log;
	struct comm_info info = { .hash = 7, .rank = 1 };
	struct comm_counts counts;
	uint32_t process, comm;

	foreign_log_init(&log);
	EXPECT(foreign_process_of(&log, "a", 1, &process) == OK && process == 0);
	EXPECT(foreign_process_of(&log, "b", 1, &process) == OK && process == 1);
	EXPECT(foreign_process_of(&log, "a", 2, &process) == OK && process == 2);
	EXPECT(foreign_process_of(&log, "b", 1, &process) == OK && process == 1 &&
	       log.process_count == 3);
	EXPECT(foreign_comm_of(&log, 1, &info, &comm) == OK && comm == 0);
	info.rank = 2;
	EXPECT(foreign_comm_of(&log, 1, &info, &comm) == OK && comm == 1);
	EXPECT(foreign_comm_of(&log, 0, &info, &comm) == OK && comm == 2);
	info = (struct comm_info){ .hash = 7, .rank = 1, .nranks = 4, .nnodes = 2, .name = "dp" };
	EXPECT(foreign_comm_of(&log, 1, &info, &comm) == OK && comm == 0);
	EXPECT_THAT("a later line adds what an earlier one lacked",
		    log.comms[0].info.nranks == 4 && log.comms[0].info.nnodes == 2 &&
			    strcmp(log.comms[0].info.name, "dp") == 0);
	info = (struct comm_info){ .hash = 7, .rank = 1, .nranks = 5, .nnodes = 3, .name = "x" };
	EXPECT_THAT("and changes nothing that is known",
		    foreign_comm_of(&log, 1, &info, &comm) == OK && log.comms[0].info.nranks == 4 &&
			    log.comms[0].info.nnodes == 2 &&
			    strcmp(log.comms[0].info.name, "dp") == 0);
	EXPECT(log.comms[0].info.id == 1 && log.comms[1].info.id == 2 &&
	       log.comms[2].info.id == 1 && log.comms[0].info.gpu == -1);

	/* Process 1: 10 + 4 - 8 - 4 collectives and 5 - 3 Sends, of which 3 were dropped; 2 of 9. */
	log.comms[0].counted[0] = 10;
	log.comms[0].found[0] = 8;
	log.comms[0].counted[4] = 4;
	log.comms[0].found[4] = 4;
	log.comms[0].counted_p2p = 5;
	log.comms[0].found_p2p = 3;
	log.comms[0].dropped = 3;
	log.comms[0].dropped_details = 6;
	log.comms[0].records = 15;
	log.comms[0].timed = 12;
	log.comms[0].last_done_ns = 99;
	log.comms[1].counted[2] = 9;
	log.comms[1].found[2] = 7;
	log.comms[1].dropped_details = 1;
	log.comms[2].counted[0] = 100;
	log.comms[2].dropped = 100;
	EXPECT_EQUAL(foreign_not_recorded(&log, 1), 1 + 2);
	EXPECT_EQUAL(foreign_dropped(&log, 1), 3);
	EXPECT_EQUAL(foreign_dropped_details(&log, 1), 7);
	EXPECT_THAT("what the recorder dropped is not counted twice",
		    foreign_not_recorded(&log, 0) == 0 && foreign_dropped(&log, 0) == 100);
	EXPECT(foreign_not_recorded(&log, 2) == 0 && foreign_dropped(&log, 2) == 0);
	foreign_comm_counts(&log.comms[0], &counts);
	EXPECT(counts.issued == 18 && counts.recorded == 18 && counts.timed == 12 &&
	       counts.collectives == 14 && counts.last_done_ns == 99 &&
	       counts.last_done_number == 15 && counts.last_issue_ns == 0);
	foreign_log_release(&log);
}

/* More communicators than the index has places at first: each is found again. */
static void test_many_comms(void)
{
	struct foreign_log log;
	uint32_t process, comm, wrong = 0;

	foreign_log_init(&log);
	for (uint32_t i = 0; i < 3000; i++) {
		struct comm_info info = { .hash = i / 6, .rank = (int32_t)(i % 3) };

		foreign_process_of(&log, "h", i / 3 % 2, &process);
		wrong += foreign_comm_of(&log, process, &info, &comm) != OK || comm != i;
	}
	for (uint32_t i = 0; i < 3000; i++) {
		struct comm_info info = { .hash = i / 6, .rank = (int32_t)(i % 3) };

		foreign_process_of(&log, "h", i / 3 % 2, &process);
		wrong += foreign_comm_of(&log, process, &info, &comm) != OK || comm != i;
	}
	EXPECT_EQUAL(wrong, 0);
	EXPECT_EQUAL(log.comm_count, 3000);
	EXPECT(log.process_count == 2 && log.processes[0].comm_count == 1500 &&
	       log.processes[1].comm_count == 1500);
	foreign_log_release(&log);
}

/* ---- what is passed on ------------------------------------------------------------------------- */

static void give(struct foreign_reading *reading, uint32_t comm, struct op_record op)
{
	foreign_give_op(reading, comm, &op);
}

static void test_give_op(void)
{
	static struct play play;
	struct foreign_log log;
	struct foreign_request request = { .process = -1, .visit_op = play_op, .context = &play };
	struct foreign_reading reading = { .log = &log, .request = &request };
	struct comm_info info = { .hash = 7, .rank = 1 };
	uint32_t process, comm;

	foreign_log_init(&log);
	foreign_process_of(&log, "a", 1, &process);
	foreign_comm_of(&log, 0, &info, &comm);
	foreign_process_of(&log, "a", 2, &process);
	foreign_comm_of(&log, 1, &info, &comm);
	give(&reading, 0,
	     (struct op_record){ .state = OP_DONE,
				 .task_ns = 50,
				 .done_ns = 80,
				 .issue_ns = 10,
				 .match = 3,
				 .flags = OP_FLAG_TOOL_TIME,
				 .time_source = OP_TIME_PROXY });
	give(&reading, 0, (struct op_record){ .state = OP_RUNNING, .issue_ns = 40, .match = 2 });
	give(&reading, 0,
	     (struct op_record){ .state = OP_DONE,
				 .task_ns = 30,
				 .done_ns = 70,
				 .issue_ns = 20,
				 .number = 9,
				 .time_source = OP_TIME_KERNEL_GPU });
	give(&reading, 0,
	     (struct op_record){
		     .state = OP_DONE, .done_ns = 75, .time_source = OP_TIME_KERNEL_GPU });
	give(&reading, 1, (struct op_record){ .state = OP_DONE, .time_source = OP_TIME_HOST });
	EXPECT_EQUAL(play.op_count, 5);
	EXPECT(play.ops[0].sequence == 1 && play.ops[0].number == 1 && play.ops[0].comm == 1);
	EXPECT(play.ops[2].sequence == 3 && play.ops[2].number == 9);
	EXPECT(play.ops[3].sequence == 4 && play.ops[3].number == 4);
	EXPECT(play.ops[4].sequence == 1 && play.op_process[4] == 1 && play.op_process[3] == 0);
	EXPECT(log.comms[0].records == 4 && log.comms[0].open == 1 && log.comms[0].timed == 3 &&
	       log.comms[0].last_match == 3 && log.comms[0].last_done_number == 4 &&
	       log.comms[0].last_issue_ns == 40 && log.comms[0].last_done_ns == 80 &&
	       !log.comms[0].is_from_dump);
	EXPECT_THAT("calls of a log are timed by their task and end, not by their issue",
		    log.processes[0].first_ns == 30 && log.processes[0].last_ns == 80);
	EXPECT(log.processes[0].untimed == 1 && log.processes[1].untimed == 0 &&
	       log.comms[1].timed == 0);
	EXPECT(log.comms[0].info.flags & COMM_FLAG_SEES_KERNELS &&
	       log.comms[0].info.gpu_offset_at_ns == 70 &&
	       !(log.comms[1].info.flags & COMM_FLAG_SEES_KERNELS));
	request.process = 1;
	give(&reading, 0, (struct op_record){ .state = OP_DONE });
	give(&reading, 1, (struct op_record){ .state = OP_DONE });
	EXPECT_THAT("only the asked process is passed on, all are counted",
		    play.op_count == 6 && play.op_process[5] == 1 && log.comms[0].records == 5 &&
			    log.comms[1].records == 2);
	foreign_log_release(&log);
}

static void test_give_details(void)
{
	static struct play play;
	struct foreign_log log;
	struct foreign_request request = { .process = -1,
					   .visit_detail = play_detail,
					   .context = &play };
	struct foreign_reading reading = { .log = &log,
					   .request = &request,
					   .details = { .is_wanted = true } };
	uint32_t process;

	foreign_log_init(&log);
	foreign_process_of(&log, "a", 1, &process);
	for (int i = 0; i < 65; i++)
		foreign_add_detail(&reading)->channel = (uint8_t)i;
	foreign_give_details(&reading, 0, 3, 17);
	EXPECT(play.detail_count == 65 && play.details[0].sequence == 1 &&
	       play.details[64].sequence == 65 && play.details[64].channel == 64 &&
	       play.details[1].comm == 3 && play.details[1].number == 17 &&
	       play.details[1].peer == OP_NOBODY);
	EXPECT_EQUAL(log.processes[0].details, 65);
	reading.details.count = reading.details.total = 0;
	foreign_add_detail(&reading);
	reading.details.is_wanted = false;
	EXPECT_THAT("what is not wanted is counted", foreign_add_detail(&reading) == NULL);
	foreign_give_details(&reading, 0, 0, 0);
	EXPECT(play.detail_count == 66 && play.details[65].sequence == 66 &&
	       log.processes[0].details == 67);
	free(reading.details.list);
	foreign_log_release(&log);
}

/* ---- single values ----------------------------------------------------------------------------- */

static void test_bytes(void)
{
	static const struct {
		uint8_t function;
		uint64_t rank_bytes;
		int32_t nranks;
		uint64_t bytes;
	} cases[] = {
		{ OP_ALL_REDUCE, 100, 4, 100 },
		{ OP_ALL_GATHER, 100, 4, 400 },
		{ OP_REDUCE_SCATTER, 100, 4, 400 },
		{ OP_BROADCAST, 100, 4, 100 },
		{ OP_REDUCE, 100, 4, 100 },
		{ OP_SEND, 100, 4, 100 },
		{ OP_RECV, 100, 4, 100 },
		{ OP_SEND_RECV, 100, 4, 100 },
		{ OP_ALL_TO_ALL, 100, 4, OP_BYTES_UNKNOWN },
		{ OP_FUNCTION_UNKNOWN, 100, 4, OP_BYTES_UNKNOWN },
		{ OP_ALL_GATHER, 100, 0, OP_BYTES_UNKNOWN },
		{ OP_SEND, UINT64_C(1) << 63, 4, OP_BYTES_UNKNOWN },
		{ OP_SEND, (UINT64_C(1) << 63) - 1, 4, (UINT64_C(1) << 63) - 1 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		EXPECT(foreign_message_bytes(cases[i].function, cases[i].rank_bytes,
					     cases[i].nranks) == cases[i].bytes);
	EXPECT(foreign_is_wall(UINT64_C(1000000000000000000)) &&
	       !foreign_is_wall(UINT64_C(999999999999999999)));
}

static void test_hash(void)
{
	static const struct {
		const char *text;
		uint64_t hash; /* 0: refused */
	} cases[] = {
		{ "0x7f8c496ae9f661", UINT64_C(0x7f8c496ae9f661) },
		{ "0xABCDEF0123456789", UINT64_C(0xabcdef0123456789) },
		{ "0x90", 0x90 },
		{ "0xafAF", 0xafaf },
		{ "0x1234567890abcdef0", 0 },
		{ "7f8c", 0 },
		{ "0xg", 0 },
		{ "0x/", 0 },
		{ "0x:", 0 },
		{ "0x`", 0 },
		{ "1x1", 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t hash = 1;

		EXPECT_THAT(cases[i].text,
			    foreign_hash(cases[i].text, &hash) == (cases[i].hash != 0) &&
				    hash == (cases[i].hash != 0 ? cases[i].hash : 1));
	}
}

/* The value of the only key of a line. */
static struct foreign_reading *value_of(const char *value)
{
	static struct foreign_reading reading;
	static char text[256];

	reading.line.length = (size_t)snprintf(text, sizeof(text), "{\"a\":%s}", value);
	reading.line.text = text;
	if (!foreign_begin_line(&reading) || json_scan_next(&reading.scan) != JSON_SCAN_KEY)
		abort();
	return &reading;
}

static bool is_problem(const struct foreign_reading *reading, const char *problem)
{
	return problem == NULL ? reading->problem == NULL
			       : reading->problem != NULL && strcmp(reading->problem, problem) == 0;
}

static void test_int32(void)
{
	static const char refused[] = "a value is not a 32-bit number";
	static const struct {
		const char *text;
		bool is_taken;
		int32_t value;
		const char *problem;
	} cases[] = {
		{ "0", true, 0, NULL },
		{ "2147483647", true, INT32_MAX, NULL },
		{ "2147483648", false, 5, refused },
		{ "-2147483648", true, INT32_MIN, NULL },
		{ "-2147483649", false, 5, refused },
		{ " 17", true, 17, NULL },
		{ "null", true, 5, NULL },
		{ "\"1\"", false, 5, refused },
		{ "1.5", false, 5, refused },
		{ "99999999999999999999", false, 5, refused },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct foreign_reading *reading = value_of(cases[i].text);
		int32_t value = 5;

		EXPECT_THAT(cases[i].text,
			    foreign_take_int32(reading, &value) == cases[i].is_taken &&
				    value == cases[i].value &&
				    is_problem(reading, cases[i].problem));
	}
}

static void test_values(void)
{
	struct foreign_reading *reading;
	uint64_t number = 5;
	int64_t signed_number = 5;
	bool truth = false;
	char text[8] = "x";

	reading = value_of("true");
	EXPECT(foreign_take_bool(reading, &truth) && truth);
	reading = value_of("false");
	EXPECT(foreign_take_bool(reading, &truth) && !truth);
	reading = value_of("1");
	EXPECT(!foreign_take_bool(reading, &truth) &&
	       is_problem(reading, "a value is neither true nor false"));
	truth = true;
	EXPECT_THAT("null leaves it as it was",
		    foreign_take_bool(value_of("null"), &truth) && truth);
	EXPECT(foreign_take_unsigned(value_of("18446744073709551615"), &number) &&
	       number == UINT64_MAX);
	reading = value_of("-1");
	EXPECT(!foreign_take_unsigned(reading, &number) &&
	       is_problem(reading, "a value is not a number from 0 to 2^64 - 1"));
	EXPECT(foreign_take_signed(value_of("-7"), &signed_number) && signed_number == -7);
	reading = value_of("[]");
	EXPECT(!foreign_take_signed(reading, &signed_number) &&
	       is_problem(reading, "a value is not an integer"));
	EXPECT(foreign_take_us(value_of("1.5"), &number) && number == 1500);
	EXPECT(foreign_take_us(value_of("18446744073709550"), &number) &&
	       number == UINT64_C(18446744073709550000));
	reading = value_of("18446744073709551");
	EXPECT(!foreign_take_us(reading, &number) &&
	       is_problem(reading, "a value is not a time in microseconds"));
	EXPECT_THAT("a text is cut, and has no control characters",
		    foreign_take_text(value_of("\"a\\n\x7f~ bcdef\""), text, sizeof(text)) &&
			    strcmp(text, "a??~ bc") == 0);
	reading = value_of("7");
	EXPECT(!foreign_take_text(reading, text, sizeof(text)) &&
	       is_problem(reading, "a value is not a string"));
	reading = value_of("7");
	EXPECT(!foreign_enter_object(reading) && is_problem(reading, "a value is not an object"));
	reading = value_of("{}");
	EXPECT(!foreign_enter_array(reading) && is_problem(reading, "a value is not an array"));
	EXPECT(!foreign_enter_array(value_of("null")) && is_problem(value_of("null"), NULL));
	reading = value_of("[{},7]");
	EXPECT(foreign_enter_array(reading) && foreign_next_object(reading, "no object") &&
	       json_scan_next(&reading->scan) == JSON_SCAN_OBJECT_END);
	EXPECT(!foreign_next_object(reading, "no object") && is_problem(reading, "no object"));
	reading = value_of("[]");
	EXPECT(foreign_enter_array(reading) && !foreign_next_object(reading, "no object") &&
	       is_problem(reading, NULL));
}

static void test_names(void)
{
	static const struct {
		enum op_name_table table;
		const char *text;
		uint8_t number;
	} cases[] = {
		{ OP_NAMES_FUNCTION, "\"AllReduce\"", OP_ALL_REDUCE },
		{ OP_NAMES_FUNCTION, "\"All2All\"", OP_ALL_TO_ALL },
		{ OP_NAMES_FUNCTION, "\"all_reduce\"", OP_ALL_REDUCE },
		{ OP_NAMES_FUNCTION, "\"all_gather\"", OP_ALL_GATHER },
		{ OP_NAMES_FUNCTION, "\"reduce_scatter\"", OP_REDUCE_SCATTER },
		{ OP_NAMES_FUNCTION, "\"broadcast\"", OP_BROADCAST },
		{ OP_NAMES_FUNCTION, "\"reduce\"", OP_REDUCE },
		{ OP_NAMES_FUNCTION, "\"send\"", OP_SEND },
		{ OP_NAMES_FUNCTION, "\"recv\"", OP_RECV },
		{ OP_NAMES_FUNCTION, "\"Recv\"", OP_RECV },
		{ OP_NAMES_FUNCTION, "\"what\"", OP_FUNCTION_UNKNOWN },
		{ OP_NAMES_ALGORITHM, "\"RING\"", OP_RING },
		{ OP_NAMES_ALGORITHM, "\"nvls_tree\"", OP_NVLS_TREE },
		{ OP_NAMES_ALGORITHM, "\"collnet_chain\"", OP_COLLNET_CHAIN },
		{ OP_NAMES_PROTOCOL, "\"ll128\"", OP_LL128 },
		{ OP_NAMES_PROTOCOL, "\"simple\"", OP_SIMPLE },
		{ OP_NAMES_PROTOCOL, "\"\"", OP_PROTOCOL_UNKNOWN },
		{ OP_NAMES_PROTOCOL, "\"a name of 22 letters...\"", OP_PROTOCOL_UNKNOWN },
		{ OP_NAMES_PROTOCOL, "null", 99 },
	};

	/* Twice: the second time from what was kept of the last eight names. */
	for (size_t i = 0; i < 2 * sizeof(cases) / sizeof(cases[0]); i++) {
		const size_t at = i / 2;
		struct foreign_reading *reading = value_of(cases[at].text);
		uint8_t number = 99;

		EXPECT_THAT(cases[at].text, foreign_take_name(reading, cases[at].table, &number) &&
						    number == cases[at].number);
	}
}

static void test_choices(void)
{
	static const char *const words[] = { "\"one\"", "\"two\"" };
	static const struct {
		const char *text;
		bool is_taken;
		uint8_t choice;
	} cases[] = {
		{ "\"one\"", true, 0 },	 { "\"two\"", true, 1 },	{ " \"one\"", true, 0 },
		{ " \"two\"", true, 1 }, { "\"three\"", true, 2 },	{ " \"tw\"", true, 2 },
		{ "7", false, 2 },	 { " \"\\u006fne\"", true, 2 }, { "null", true, 2 },
		{ " \"twx\"", true, 2 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint8_t choice = 9;

		EXPECT_THAT(cases[i].text, foreign_take_choice(value_of(cases[i].text), words, 2,
							       &choice) == cases[i].is_taken &&
						   choice == cases[i].choice);
	}
}

static void test_info_text(void)
{
	struct foreign_log log;
	uint32_t process;
	char text[512], small[64];

	foreign_log_init(&log);
	foreign_process_of(&log, "node1", 17, &process);
	foreign_process_of(&log, "", -1, &process);
	log.format = FOREIGN_INSPECTOR;
	log.processes[0].rank = 0;
	log.processes[0].coarse = 1;
	memcpy(log.processes[0].version, "v4.0", 5);
	EXPECT(foreign_info_text(&log, 0, "nccl-inspector-9/x/nccl-inspector-12/a", text,
				 sizeof(text)) &&
	       strcmp(text, "host=node1\npid=17\njob=12\nrank=0\nmode=trace\n"
			    "recorder=nccl-inspector\nrecorder_format=v4.0\ntimes=dumps\n"
			    "imported_from=nccl-inspector-9/x/nccl-inspector-12/a\n") == 0);
	EXPECT(!foreign_info_text(&log, 0, "a", small, sizeof(small)));
	log.format = FOREIGN_TORCH_DUMP;
	EXPECT(foreign_info_text(&log, 1, "/nccl-inspector-/a", text, sizeof(text)) &&
	       strcmp(text, "host=\npid=\njob=\nrank=x\nmode=flight\n"
			    "recorder=pytorch-flight-recorder\nrecorder_format=\ntimes=events\n"
			    "imported_from=/nccl-inspector-/a\n") == 0);
	log.format = FOREIGN_COMMA;
	EXPECT(foreign_info_text(&log, 1, "a", text, sizeof(text)) &&
	       strstr(text, "mode=trace\nrecorder=comma\n") != NULL);
	foreign_log_release(&log);
}

int main(void)
{
	test_probe();
	test_probe_lines();
	test_formats();
	test_numbers();
	test_missing();
	test_many_comms();
	test_give_op();
	test_give_details();
	test_bytes();
	test_hash();
	test_int32();
	test_values();
	test_names();
	test_choices();
	test_info_text();
	return tap_done();
}
