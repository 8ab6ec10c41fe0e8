/*
 * Dumps of PyTorch's Flight Recorder, written by hand: what each field of an entry becomes. Sizes
 * follow from the shapes and from what docs/IMPORT.md says about a rank's part.
 */
#include "common/op.h"
#include "tests/support/foreign_play.h"
#include "tests/tap.h"

#define T0 UINT64_C(1767225600000000000)
#define MS UINT64_C(1000000)

enum { WHERE_MAX = 16 };

static struct play play;
static struct {
	uint64_t number;
	char text[FOREIGN_WHERE_BYTES];
} wheres[WHERE_MAX];
static size_t where_count;

static void keep_where(const struct op_record *op, const char *where, void *context)
{
	(void)context;
	if (where_count == WHERE_MAX)
		return;
	wheres[where_count].number = op->number;
	snprintf(wheres[where_count++].text, FOREIGN_WHERE_BYTES, "%s", where);
}

static void read_bytes(const char *name, const char *bytes, size_t length)
{
	const struct foreign_request request = { .name = name,
						 .process = -1,
						 .visit_op = play_op,
						 .visit_damage = play_damage,
						 .visit_where = keep_where,
						 .context = &play };
	int fd = play_file(bytes, length);

	foreign_log_release(&play.log);
	memset(&play, 0, sizeof(play));
	memset(wheres, 0, sizeof(wheres));
	where_count = 0;
	play.status = foreign_read(&play.log, fd, &request);
	close(fd);
}

static void read_text(const char *name, const char *text)
{
	read_bytes(name, text, strlen(text));
}

/* A dump of rank 1 of a group "0" of four; `entries` are the entries' texts. */
static void read_entries(const char *entries)
{
	static char text[1 << 16];

	snprintf(text, sizeof(text),
		 "{\"version\":\"2.10\",\"pg_config\":{\"0\":{\"name\":\"0\",\"desc\":"
		 "\"default_pg\",\"ranks\":\"[0, 1, 2, 3]\"}},\"entries\":[%s]}",
		 entries);
	read_text("dir.2/nccl_trace_rank_1", text);
}

/* One entry with these fields in addition to its group, name, state and time. */
static const struct op_record *read_one(const char *name, const char *state, const char *fields)
{
	char text[4096];

	snprintf(text, sizeof(text),
		 "{\"process_group\":[\"0\",\"default_pg\"],\"profiling_name\":\"%s\",\"state\":"
		 "\"%s\",\"time_created_ns\":%llu%s%s}",
		 name, state, (unsigned long long)T0, fields[0] != '\0' ? "," : "", fields);
	read_entries(text);
	return play.op_count == 1 ? &play.ops[0] : NULL;
}

static void test_whole(void)
{
	const struct op_record *op = play.ops;
	const struct foreign_process *process;
	struct comm_counts counts;

	read_entries(
		"{\"process_group\":[\"0\",\"default_pg\"],\"collective_seq_id\":7,\"op_id\":9,"
		"\"profiling_name\":\"nccl:all_reduce\",\"time_created_ns\":1767225600000000000,"
		"\"time_discovered_started_ns\":1767225600001000000,"
		"\"time_discovered_completed_ns\":1767225600009000000,\"duration_ms\":5.5,"
		"\"input_sizes\":[[512,1024],[3]],\"input_dtypes\":[\"BFloat16\"],"
		"\"output_sizes\":[[1]],\"output_dtypes\":[\"Float\"],\"state\":\"completed\","
		"\"timeout_ms\":600000,\"is_p2p\":false,\"pg_id\":0},"
		"{\"process_group\":[\"0\",\"default_pg\"],\"collective_seq_id\":8,\"op_id\":10,"
		"\"profiling_name\":\"nccl:all_reduce\",\"time_created_ns\":1767225600020000000,"
		"\"state\":\"scheduled\",\"timeout_ms\":600000},"
		"{\"process_group\":[\"0\",\"default_pg\"],\"collective_seq_id\":9,\"op_id\":11,"
		"\"profiling_name\":\"nccl:all_reduce\",\"time_created_ns\":1767225600030000000,"
		"\"state\":\"started\",\"timeout_ms\":300000}");
	EXPECT_EQUAL(play.status, OK);
	EXPECT_EQUAL(play.log.format, FOREIGN_TORCH_DUMP);
	EXPECT_EQUAL(play.damage_count, 0);
	EXPECT_EQUAL(play.op_count, 3);
	process = &play.log.processes[0];
	EXPECT(play.log.process_count == 1 && process->rank == 1 && process->pid == -1 &&
	       process->host[0] == '\0' && strcmp(process->version, "2.10") == 0);
	EXPECT_EQUAL(process->records, 3);
	EXPECT_THAT("the first open call counts, with its timeout",
		    process->open_since_ns == T0 + 20 * MS &&
			    process->open_limit_ns == 600000 * MS);
	EXPECT_EQUAL(process->first_ns, T0);
	EXPECT_EQUAL(process->last_ns, T0 + 30 * MS);
	EXPECT_EQUAL(play.log.comm_count, 1);
	EXPECT(play.log.comms[0].info.nranks == 4 && play.log.comms[0].info.rank == 1 &&
	       play.log.comms[0].info.hash != 0 && play.log.comms[0].info.gpu == -1 &&
	       strcmp(play.log.comms[0].info.name, "default_pg") == 0);
	EXPECT(op[0].function == OP_ALL_REDUCE && op[0].state == OP_DONE &&
	       op[0].datatype == OP_BFLOAT16 && op[0].peer == OP_NOBODY && op[0].root == OP_NOBODY);
	EXPECT_EQUAL(op[0].sequence, 1);
	EXPECT_EQUAL(op[0].comm, 1);
	EXPECT_EQUAL(op[0].number, 9);
	EXPECT_EQUAL(op[0].match, 7);
	EXPECT_EQUAL(op[0].nccl_sequence, 7);
	EXPECT_EQUAL(op[0].count, 512 * 1024 + 3);
	EXPECT_EQUAL(op[0].bytes, 2 * (512 * 1024 + 3));
	EXPECT_EQUAL(op[0].issue_ns, T0);
	EXPECT_EQUAL(op[0].active_ns, T0 + 1 * MS);
	EXPECT_EQUAL(op[0].done_ns, T0 + 9 * MS);
	EXPECT_EQUAL(op[0].time_source, OP_TIME_KERNEL_GPU);
	EXPECT_EQUAL(op_duration_ns(&op[0]), 5500000);
	EXPECT_EQUAL(op[0].gpu_stop_ns, T0 + 9 * MS);
	EXPECT(op[1].state == OP_RUNNING && op[1].done_ns == 0 && op[1].active_ns == 0 &&
	       op[1].time_source == OP_TIME_NONE && op[1].number == 10 && op[1].match == 8 &&
	       op[1].bytes == OP_BYTES_UNKNOWN && op[1].count == 0);
	foreign_comm_counts(&play.log.comms[0], &counts);
	EXPECT_EQUAL(counts.issued, 11);
	EXPECT_THAT("two of the eleven are open", counts.recorded == 9);
	EXPECT_EQUAL(counts.timed, 1);
	EXPECT_EQUAL(counts.collectives, 9);
	EXPECT_EQUAL(counts.last_issue_ns, T0 + 30 * MS);
	EXPECT_EQUAL(counts.last_done_ns, T0 + 9 * MS);
	EXPECT_EQUAL(counts.last_done_number, 9);
	EXPECT_EQUAL(play.log.processes[0].untimed, 2);
}

static void test_names(void)
{
	static const struct {
		const char *name;
		uint8_t function;
		int32_t peer;
	} cases[] = {
		{ "nccl:all_reduce", OP_ALL_REDUCE, OP_NOBODY },
		{ "nccl:all_reduce_barrier", OP_ALL_REDUCE, OP_NOBODY },
		{ "nccl:allreduce_sparse", OP_ALL_REDUCE, OP_NOBODY },
		{ "nccl:ALL_REDUCE", OP_ALL_REDUCE, OP_NOBODY },
		{ "nccl:_all_gather_base", OP_ALL_GATHER, OP_NOBODY },
		{ "nccl:allgather", OP_ALL_GATHER, OP_NOBODY },
		{ "nccl:_reduce_scatter_base", OP_REDUCE_SCATTER, OP_NOBODY },
		{ "nccl:all_to_all", OP_ALL_TO_ALL, OP_NOBODY },
		{ "nccl:alltoall_base", OP_ALL_TO_ALL, OP_NOBODY },
		{ "nccl:broadcast", OP_BROADCAST, OP_NOBODY },
		{ "nccl:_broadcast_oop", OP_BROADCAST, OP_NOBODY },
		{ "nccl:reduce", OP_REDUCE, OP_NOBODY },
		{ "nccl:gather", OP_GATHER, OP_NOBODY },
		{ "nccl:scatter", OP_SCATTER, OP_NOBODY },
		{ "nccl:barrier", OP_ALL_REDUCE, OP_NOBODY },
		{ "ncclx:Send 1->12", OP_SEND, 12 },
		{ "nccl:send 0->1", OP_SEND, 1 },
		{ "nccl:recv 3<-0", OP_RECV, 0 },
		{ "nccl:recv", OP_RECV, OP_NOBODY },
		{ "nccl:recv 3<-x", OP_RECV, OP_NOBODY },
		{ "nccl:send 1->4294967296", OP_SEND, OP_NOBODY },
		{ "nccl:all_reduce 1->2", OP_ALL_REDUCE, OP_NOBODY },
		{ "nccl:something", OP_FUNCTION_UNKNOWN, OP_NOBODY },
		{ "", OP_FUNCTION_UNKNOWN, OP_NOBODY },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct op_record *op = read_one(cases[i].name, "completed", "");

		EXPECT_THAT(cases[i].name, op != NULL && op->function == cases[i].function &&
						   op->peer == cases[i].peer);
	}
}

static void test_sizes(void)
{
	static const struct {
		const char *name;
		const char *fields;
		uint8_t datatype;
		uint64_t count;
		uint64_t bytes;
	} cases[] = {
		/* What a rank gives, times the ranks where that is the message. */
		{ "nccl:all_reduce", "\"input_sizes\":[[6]],\"input_dtypes\":[\"Float\"]",
		  OP_FLOAT32, 6, 24 },
		{ "nccl:_all_gather_base",
		  "\"input_sizes\":[[6]],\"output_sizes\":[[24]],\"input_dtypes\":[\"Half\"]",
		  OP_FLOAT16, 6, 48 },
		{ "nccl:_reduce_scatter_base",
		  "\"input_sizes\":[[24]],\"output_sizes\":[[6]],\"input_dtypes\":[\"Double\"]",
		  OP_FLOAT64, 6, 192 },
		{ "nccl:all_to_all",
		  "\"input_sizes\":[[24]],\"output_sizes\":[[24]],\"input_dtypes\":[\"Int\"]",
		  OP_INT32, 6, 96 },
		{ "nccl:all_to_all", "\"output_sizes\":[[24]],\"input_dtypes\":[\"Int\"]", OP_INT32,
		  0, OP_BYTES_UNKNOWN },
		{ "nccl:recv 1<-0", "\"output_sizes\":[[7]],\"output_dtypes\":[\"Long\"]", OP_INT64,
		  7, 56 },
		{ "nccl:send 1->0", "\"input_sizes\":[[7]],\"input_dtypes\":[\"Char\"]", OP_INT8, 7,
		  7 },
		{ "nccl:broadcast",
		  "\"input_sizes\":[[9]],\"output_sizes\":[[8]],"
		  "\"input_dtypes\":[\"Byte\"]",
		  OP_UINT8, 9, 9 },
		{ "nccl:broadcast",
		  "\"input_sizes\":[],\"output_sizes\":[[8]],"
		  "\"input_dtypes\":[],\"output_dtypes\":[\"Bool\"]",
		  OP_UINT8, 8, 8 },
		{ "nccl:scatter",
		  "\"input_sizes\":[[24]],\"output_sizes\":[[6]],"
		  "\"input_dtypes\":[\"Float8_e4m3fn\"]",
		  OP_FLOAT8_E4M3, 6, 24 },
		{ "nccl:all_reduce",
		  "\"input_sizes\":[[2,3],[],[4,0]],\"input_dtypes\":[\"UInt32\"]", OP_UINT32, 7,
		  28 },
		{ "nccl:all_reduce", "\"input_sizes\":[[1]],\"input_dtypes\":[\"Float8_e5m2\"]",
		  OP_FLOAT8_E5M2, 1, 1 },
		{ "nccl:all_reduce", "\"input_sizes\":[[1]],\"input_dtypes\":[\"UInt64\"]",
		  OP_UINT64, 1, 8 },
		{ "nccl:all_reduce", "\"input_sizes\":[[5]],\"input_dtypes\":[\"Complex\"]",
		  OP_DATATYPE_UNKNOWN, 5, OP_BYTES_UNKNOWN },
		/* 2^32 x 2^32 elements cannot be, nor 2^63 + 2^63. */
		{ "nccl:all_reduce",
		  "\"input_sizes\":[[4294967296,4294967296]],\"input_dtypes\":[\"Byte\"]", OP_UINT8,
		  0, OP_BYTES_UNKNOWN },
		{ "nccl:all_reduce",
		  "\"input_sizes\":[[4294967296,2147483648],[4294967296,2147483648]],"
		  "\"input_dtypes\":[\"Byte\"]",
		  OP_UINT8, 0, OP_BYTES_UNKNOWN },
		{ "nccl:all_reduce", "\"input_sizes\":[[-5]],\"input_dtypes\":[\"Byte\"]", OP_UINT8,
		  0, 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct op_record *op = read_one(cases[i].name, "completed", cases[i].fields);

		EXPECT_THAT(cases[i].fields, op != NULL && op->datatype == cases[i].datatype &&
						     op->count == cases[i].count &&
						     op->bytes == cases[i].bytes);
	}
	read_text("rank_0.json",
		  "{\"pg_config\":{},\"entries\":[{\"process_group\":\"7\",\"profiling_name\":"
		  "\"nccl:all_to_all\",\"state\":\"completed\",\"input_sizes\":[[24]]}]}");
	EXPECT_THAT("a part of a group of unknown size is unknown",
		    play.op_count == 1 && play.ops[0].count == 0 &&
			    play.ops[0].bytes == OP_BYTES_UNKNOWN);
}

static void test_times(void)
{
	/* Offsets in ns from T0; -1: not given. */
	static const struct {
		const char *state;
		int64_t done;
		const char *duration;
		uint8_t op_state;
		uint8_t source;
		uint64_t duration_ns;
	} cases[] = {
		{ "completed", 3000000, "2", OP_DONE, OP_TIME_KERNEL_GPU, 2000000 },
		{ "completed", 3000000, "0.000001", OP_DONE, OP_TIME_KERNEL_GPU, 1 },
		{ "completed", 3000000, "0.0000001", OP_DONE, OP_TIME_HOST, 3000000 },
		{ "completed", 3000000, "0", OP_DONE, OP_TIME_HOST, 3000000 },
		{ "completed", 3000000, "-1", OP_DONE, OP_TIME_HOST, 3000000 },
		{ "completed", 3000000, "null", OP_DONE, OP_TIME_HOST, 3000000 },
		{ "completed", 3000000, "1000000000000", OP_DONE, OP_TIME_KERNEL_GPU,
		  UINT64_C(1000000000000000000) },
		{ "completed", 3000000, "1000000000001", OP_DONE, OP_TIME_HOST, 3000000 },
		{ "completed", -1, "2", OP_DONE, OP_TIME_NONE, 0 },
		{ "completed", -5000000, "null", OP_DONE, OP_TIME_NONE, 0 },
		{ "started", 3000000, "2", OP_RUNNING, OP_TIME_NONE, 0 },
		{ "scheduled", -1, "null", OP_RUNNING, OP_TIME_NONE, 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct op_record *op;
		char fields[256], done[32] = "null";

		if (cases[i].done != -1)
			snprintf(done, sizeof(done), "%llu",
				 (unsigned long long)(T0 + (uint64_t)cases[i].done));
		snprintf(fields, sizeof(fields),
			 "\"time_discovered_completed_ns\":%s,\"duration_ms\":%s", done,
			 cases[i].duration);
		op = read_one("nccl:all_reduce", cases[i].state, fields);
		EXPECT(op != NULL && op->state == cases[i].op_state &&
		       op->time_source == cases[i].source &&
		       op_span_ns(op) == cases[i].duration_ns);
	}
	EXPECT_THAT("a duration up to the time itself would begin before 1970",
		    read_one("nccl:all_reduce", "completed",
			     "\"time_created_ns\":1,\"time_discovered_completed_ns\":2000000,"
			     "\"duration_ms\":2") != NULL &&
			    play.ops[0].time_source == OP_TIME_HOST);
}

static void test_numbers(void)
{
	const struct op_record *op = play.ops;

#define CALL(name, fields)                                                     \
	"{\"process_group\":[\"0\",\"default_pg\"],\"profiling_name\":\"" name \
	"\",\"state\":\"completed\"," fields "}"
	read_entries(CALL("nccl:all_reduce", "\"collective_seq_id\":5,\"op_id\":6") "," CALL(
		"nccl:all_gather",
		"\"collective_seq_id\":5,\"op_id\":6") "," CALL("nccl:send 1->2",
								"\"collective_seq_id\":6,\"p2p_seq_"
								"id\":3,\"op_id\":9,"
								"\"is_p2p\":true") "," CALL("nccl:"
											    "recv "
											    "1<-2",
											    "\"coll"
											    "ective"
											    "_seq_"
											    "id\":"
											    "6,"
											    "\"op_"
											    "id\":"
											    "10") "," CALL("nccl:all_reduce",
													   "\"collective_seq_id\":6,\"op_id\":11") "," CALL("nccl:all_reduce",
																			    "\"op_id\":0"));
	EXPECT_EQUAL(play.op_count, 6);
	EXPECT(op[0].number == 6 && op[0].match == 5 && op[0].nccl_sequence == 5 &&
	       op[0].signature != 0);
	EXPECT_THAT("parts of one group of calls: the second has no match of its own",
		    op[1].number == 7 && op[1].match == 0 && op[1].nccl_sequence == 5 &&
			    op[1].signature == 0);
	EXPECT(op[2].number == 9 && op[2].match == 0 && op[2].nccl_sequence == 3);
	EXPECT(op[3].number == 10 && op[3].match == 0 && op[3].nccl_sequence == 6);
	EXPECT(op[4].number == 11 && op[4].match == 6);
	EXPECT(op[5].number == 12 && op[5].match == 0 && op[5].nccl_sequence == 0);
	EXPECT_THAT("equal calls have equal signatures", op[4].signature == op[0].signature);
	EXPECT_EQUAL(play.log.comms[0].last_done_number, 12);
	EXPECT_EQUAL(play.log.comms[0].open, 0);
}

/* Calls of a batch are done when the entry that ends the batch is. */
static void test_coalesced(void)
{
	const struct op_record *op = play.ops;

#define PART(group, state, name, numbers)                                     \
	"{\"process_group\":[\"" group "\",\"\"],\"profiling_name\":\"" name  \
	"\",\"state\":\"" state "\",\"time_created_ns\":1767225600000000000," \
	"\"is_p2p\":true," numbers "}"
#define ENDED "\"time_discovered_completed_ns\":1767225600004000000,"
	read_entries(PART("0", "scheduled", "nccl:send 1->2", "\"p2p_seq_id\":4") "," PART("0", "scheduled", "nccl:send 1->2", "\"p2p_seq_id\":5") "," PART(
		"1", "scheduled", "nccl:send 1->2",
		"\"p2p_seq_id\":5") "," PART("0", "scheduled", "nccl:send 1->2",
					     "\"p2p_seq_id\":5,\"collective_seq_"
					     "id\":1") "," PART("0", "scheduled", "nccl:recv 1<-2",
								"\"p2p_seq_id\":"
								"5") "," PART("0",
									      "co"
									      "mp"
									      "le"
									      "te"
									      "d",
									      "nc"
									      "cl"
									      ":c"
									      "oa"
									      "le"
									      "sc"
									      "e"
									      "d",
									      ENDED
									      "\""
									      "p2"
									      "p_"
									      "se"
									      "q_"
									      "id"
									      "\""
									      ":"
									      "5") "," PART("0",
											    "schedu"
											    "led",
											    "nccl:"
											    "send "
											    "1->3",
											    "\"p2p_"
											    "seq_"
											    "id\":"
											    "5"));
	EXPECT_THAT("the end of a batch is no call", play.op_count == 6);
	EXPECT_THAT("another number", op[0].state == OP_RUNNING);
	EXPECT(op[1].state == OP_DONE && op[1].done_ns == T0 + 4 * MS &&
	       op[1].time_source == OP_TIME_HOST);
	EXPECT_THAT("another group", op[2].state == OP_RUNNING && op[2].comm == 2);
	EXPECT_THAT("another collective", op[3].state == OP_RUNNING);
	EXPECT(op[4].state == OP_DONE && op[4].function == OP_RECV && op[4].peer == 2);
	EXPECT_THAT("after the end", op[5].state == OP_RUNNING);
	read_entries(PART("0", "scheduled", "nccl:send 1->2", "\"p2p_seq_id\":5") "," PART(
		"0", "completed", ":coalesced", ENDED "\"p2p_seq_id\":5"));
	EXPECT(play.op_count == 1 && op[0].state == OP_DONE);
	read_entries(PART("0", "scheduled", "nccl:send 1->2", "\"p2p_seq_id\":5") "," PART(
		"0", "completed", "coalesced", ENDED "\"p2p_seq_id\":5"));
	EXPECT(play.op_count == 2 && op[0].state == OP_RUNNING);
}

static void test_groups(void)
{
	static const struct {
		const char *ranks;
		int32_t nranks;
		int32_t rank; /* of job rank 1 */
	} cases[] = {
		{ "\"[0, 1, 2, 3]\"", 4, 1 },
		{ "\"[0, 1, 3, 2]\"", 4, 1 },
		{ "\"1,0\"", 2, 0 },
		{ "\"[12, 1]\"", 2, 1 },
		{ "[4, 5, 1]", 3, 2 },
		{ "\"[11]\"", 1, -1 },
		{ "[]", 0, -1 },
		{ "\"\"", 0, -1 },
		{ "null", 0, -1 },
		{ "[-1, 1]", 1, 0 },
		{ "[\"1\", 1]", 1, 0 },
		{ "\"01\"", 1, 0 },
		{ "\"9:/1\"", 2, 1 },
	};
	uint64_t first_hash = 0;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[256];

		snprintf(text, sizeof(text),
			 "{\"pg_config\":{\"7\":{\"desc\":\"mesh_dp\",\"ranks\":%s}},"
			 "\"entries\":[]}",
			 cases[i].ranks);
		read_text("nccl_trace_rank_1", text);
		EXPECT_THAT(cases[i].ranks,
			    play.status == OK && play.log.comm_count == 1 &&
				    play.log.comms[0].info.nranks == cases[i].nranks &&
				    play.log.comms[0].info.rank == cases[i].rank);
		if (i == 0)
			first_hash = play.log.comms[0].info.hash;
		else
			EXPECT(play.log.comms[0].info.hash != first_hash);
	}
	/* A group without a useful description goes by its name; one without a name by its key. */
	static const char several[] =
		"{\"pg_config\":{\"a\":{\"name\":\"n1\",\"desc\":\"\"},"
		"\"b\":{\"desc\":\"undefined\"},\"c\":{\"name\":\"n3\",\"desc\":\"tp\",\"ranks\":["
		"1,2]}},"
		"\"entries\":[{\"process_group\":[\"n3\",\"x\"],\"profiling_name\":\"nccl:reduce\","
		"\"state\":\"completed\"},{\"process_group\":[\"b\"],\"profiling_name\":"
		"\"nccl:reduce\",\"state\":\"completed\"},{\"process_group\":[\"new\",\"pp\"],"
		"\"profiling_name\":\"nccl:reduce\",\"state\":\"completed\"}]}";
	read_text("rank_1", several);
	EXPECT_EQUAL(play.log.comm_count, 4);
	EXPECT(strcmp(play.log.comms[0].info.name, "n1") == 0);
	EXPECT(strcmp(play.log.comms[1].info.name, "b") == 0);
	EXPECT(strcmp(play.log.comms[2].info.name, "tp") == 0);
	EXPECT(strcmp(play.log.comms[3].info.name, "pp") == 0);
	EXPECT(play.op_count == 3 && play.ops[0].comm == 3 && play.ops[1].comm == 2 &&
	       play.ops[2].comm == 4);
}

static void test_rank_of_name(void)
{
	static const struct {
		const char *name;
		int64_t rank;
	} cases[] = {
		{ "nccl_trace_rank_17", 17 },
		{ "/a/rank_3.json", 3 },
		{ "a7/trace", -1 },
		{ "a.7/x_10", 10 },
		{ "2147483647", 2147483647 },
		{ "2147483648", -1 },
		{ "99999999999", -1 },
		{ "", -1 },
		{ NULL, -1 },
		{ "rank_0", 0 },
		{ "x9.pickle.8", 9 },
		{ "r12x", -1 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		read_text(cases[i].name, "{\"pg_config\":{},\"entries\":[]}");
		EXPECT(play.log.process_count == 1 && play.log.processes[0].rank == cases[i].rank);
	}
}

#define FRAME(file, line, name) \
	"{\"filename\":\"" file "\",\"line\":" line ",\"name\":\"" name "\"}"

static void test_where(void)
{
	static const struct {
		const char *frames;
		const char *where; /* "": none */
	} cases[] = {
		{ FRAME("/lib/torch/c10d.py", "2696", "all_reduce") "," FRAME(
			  "train.py", "88", "step") "," FRAME("train.py", "120", "main"),
		  "train.py:88 in step < train.py:120 in main" },
		{ FRAME("a.py", "1", "a") "," FRAME("b.py", "2", "") "," FRAME(
			  "c.py", "3", "c") "," FRAME("d.py", "4", "d"),
		  "a.py:1 in a < b.py:2 < c.py:3 in c" },
		{ FRAME("/x/torchcomms/a.py", "1", "a") "," FRAME("/x/importlib/b.py", "2", "b") "," FRAME(
			  "<frozen>", "3",
			  "c") "," FRAME("??", "4",
					 "d") "," FRAME("/x/runpy.py", "5",
							"e") "," FRAME("", "6",
								       "f") "," FRAME("t.py", "7",
										      "g"),
		  "t.py:7 in g" },
		{ FRAME("", "5", "lost") "," FRAME("/x/torch/a.py", "1",
						   "a") "," FRAME("/x/torch/b.py", "2", "b"),
		  "/x/torch/a.py:1 in a" },
		{ FRAME("", "5", "lost"), "" },
		{ "", "" },
		{ "7", "" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char fields[2048];

		snprintf(fields, sizeof(fields), "\"op_id\":4,\"frames\":[%s]", cases[i].frames);
		read_one("nccl:all_reduce", "started", fields);
		EXPECT_EQUAL(where_count, cases[i].where[0] != '\0');
		EXPECT(strcmp(wheres[0].text, cases[i].where) == 0 &&
		       wheres[0].number == (cases[i].where[0] != '\0' ? 4 : 0));
	}
	/* Of calls that are over, the last one of each group; of open ones, all. */
#define AT(group, number, state, line)                                                        \
	"{\"process_group\":\"" group                                                         \
	"\",\"profiling_name\":\"nccl:all_reduce\",\"state\":\"" state "\",\"op_id\":" number \
	",\"frames\":[" FRAME("t.py", line, "") "]}"
	read_entries(AT("0", "1", "completed", "1") "," AT("0", "2", "completed", "2") "," AT(
		"0", "3", "started", "3") "," AT("0", "4", "scheduled",
						 "4") "," AT("1", "5", "completed", "5"));
	EXPECT_EQUAL(where_count, 4);
	EXPECT(wheres[0].number == 3 && strcmp(wheres[0].text, "t.py:3") == 0);
	EXPECT(wheres[1].number == 4 && strcmp(wheres[1].text, "t.py:4") == 0);
	EXPECT(wheres[2].number == 2 && strcmp(wheres[2].text, "t.py:2") == 0);
	EXPECT(wheres[3].number == 5 && strcmp(wheres[3].text, "t.py:5") == 0);
}

static void test_damage(void)
{
	static const struct {
		const char *text;
		const char *what;
		size_t ops;
	} cases[] = {
		{ "{\"pg_config\":{},\"entries\":{}}", "the dump has no list of entries", 0 },
		{ "{\"pg_config\":{},\"entries\":[{\"profiling_name\":\"nccl:send\",\"state\":"
		  "\"x\"}]}",
		  "an entry has no process group, name or state: skipped", 0 },
		{ "{\"pg_config\":{},\"entries\":[{\"process_group\":\"0\",\"state\":\"x\"}]}",
		  "an entry has no process group, name or state: skipped", 0 },
		{ "{\"pg_config\":{},\"entries\":[{\"process_group\":\"0\",\"profiling_name\":"
		  "\"x\"},"
		  "{\"process_group\":\"0\",\"profiling_name\":\"x\",\"state\":\"started\"}]}",
		  "an entry has no process group, name or state: skipped", 1 },
		{ "{\"pg_config\":{},\"entries\":[7]}",
		  "an entry has no process group, name or state: skipped", 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		read_text("rank_0", cases[i].text);
		EXPECT(play.status == OK && play.damage_count == 1 &&
		       strcmp(play.damages[0].what, cases[i].what) == 0 &&
		       play.op_count == cases[i].ops);
		EXPECT_EQUAL(play.log.bytes, strlen(cases[i].text));
	}
	read_text("rank_0", "{\"pg_config\":{},\"entries\":[}");
	EXPECT(play.status == OK && play.damage_count == 1 && play.damages[0].offset == 27 &&
	       play.log.process_count == 0);
	/* A pickle that calls a function is refused, with its place. */
	read_bytes("rank_0",
		   "\x80\x02}X\x07\x00\x00\x00"
		   "entriescos\nsystem\n.",
		   27);
	EXPECT(play.damage_count == 1 && play.damages[0].offset == 15 &&
	       play.log.process_count == 0);
}

/* The same as a pickle, which shares the texts of its keys; an unknown key is passed over. */
static void test_pickle(void)
{
	static const char pickle[] = "\x80\x02}(X\x07\x00\x00\x00"
				     "entries](}(X\x0d\x00\x00\x00process_groupq\x00"
				     "X\x01\x00\x00\x00"
				     "0q\x01X\x0e\x00\x00\x00profiling_nameq\x02X\x06\x00\x00\x00"
				     "reduceq\x03X\x05\x00\x00\x00stateq\x04X\x09\x00\x00\x00"
				     "completedq\x05X\x01\x00\x00\x00zK\x01"
				     "X\x05\x00\x00\x00op_idK\x07u"
				     "}(h\x00h\x01h\x04h\x05h\x02X\x06\x00\x00\x00gatheruK\x05"
				     "eu.";

	read_bytes("rank_2", pickle, sizeof(pickle) - 1);
	EXPECT_EQUAL(play.op_count, 2);
	EXPECT(play.ops[0].function == OP_REDUCE && play.ops[0].number == 7 &&
	       play.ops[0].state == OP_DONE);
	EXPECT_THAT("keys in another order", play.ops[1].function == OP_GATHER &&
						     play.ops[1].number == 8 &&
						     play.ops[1].state == OP_DONE);
	EXPECT_THAT("an item that is no map is damage", play.damage_count == 1);
}

/*
 * Two bytes of a pickle can repeat a long text: the work is limited to 16 Mi items and 16 per byte. Here all process
 * groups are the same map, with the same 20,000 blanks as ranks. Each costs three times its key, its value and itself,
 * and then a blank at a time, with the end of the text.
 */
static void test_repeated(void)
{
	enum { BLANKS = 20000, GROUPS = 1000, EACH = 3 * 3 + BLANKS + 1 };
	static char pickle[BLANKS + GROUPS * 12 + 128];
	const unsigned char length[4] = { BLANKS & 0xff, BLANKS >> 8 };
	uint64_t work;
	char *at = pickle;

#define PUT(text)                                   \
	do {                                        \
		memcpy(at, text, sizeof(text) - 1); \
		at += sizeof(text) - 1;             \
	} while (0)
	PUT("\x80\x02}(X\x07\x00\x00\x00"
	    "entries](}eX\x09\x00\x00\x00pg_config}(");
	PUT("K\x01}X\x05\x00\x00\x00ranksX");
	memcpy(at, length, sizeof(length));
	at += sizeof(length);
	memset(at, ' ', BLANKS);
	at += BLANKS;
	PUT("sq\x00");
	for (int i = 1; i < GROUPS; i++) {
		char key[16];

		snprintf(key, sizeof(key), "%04d", i);
		PUT("X\x04\x00\x00\x00");
		memcpy(at, key, 4);
		at += 4;
		PUT("h\x00");
	}
	PUT("uu.");
	read_bytes("rank_0", pickle, (size_t)(at - pickle));
	work = (uint64_t)(at - pickle) * 16 + (16 << 20);
	EXPECT_EQUAL(play.status, OK);
	EXPECT_EQUAL(play.log.comm_count, (work - 1) / EACH);
	EXPECT_THAT("reported once, and nothing after it is read",
		    play.op_count == 0 && play.damage_count == 1 &&
			    strcmp(play.damages[0].what,
				   "the same values are repeated too often: the rest is not "
				   "read") == 0);
}

int main(void)
{
	test_whole();
	test_names();
	test_sizes();
	test_times();
	test_numbers();
	test_coalesced();
	test_groups();
	test_rank_of_name();
	test_where();
	test_damage();
	test_pickle();
	test_repeated();
	foreign_log_release(&play.log);
	return tap_done();
}
