/* Records as Inspector's lines, and back. */
#include "format/inspector_write.h"

#include <math.h>

#include "common/op.h"
#include "import/json_scan.h"
#include "tests/support/foreign_play.h"
#include "tests/tap.h"

#define NOW UINT64_C(1767225600123456789)

static struct play play;
static char line[INSPECTOR_LINE_BYTES];

static const struct comm_info world = { .id = 4,
					.hash = UINT64_C(0xfeedfacecafe1234),
					.rank = 3,
					.nranks = 8,
					.nnodes = 2,
					.name = "a \"b\"\\\n\xc3\xa9\xff" };
static const struct inspector_speaker speaker = { "node01", 4711, NOW };

static struct op_record made(uint8_t function, uint64_t bytes, uint64_t duration_ns)
{
	return (struct op_record){ .function = function,
				   .bytes = bytes,
				   .root = OP_NOBODY,
				   .peer = OP_NOBODY,
				   .state = OP_DONE,
				   .nccl_sequence = 41,
				   .time_source = OP_TIME_KERNEL_GPU,
				   .gpu_start_ns = 1000000,
				   .gpu_stop_ns = 1000000 + duration_ns,
				   .done_ns = 2000000 };
}

/* The fields of v4.0, in NCCL Inspector's order, with the type of each. */
static const char *const coll_fields =
	"header{id\"comm_name\"rank#n_ranks#nnodes#}"
	"metadata{inspector_output_format_version\"git_rev\"rec_mechanism\"dump_timestamp_us#"
	"hostname\"pid#}"
	"coll_perf{coll\"coll_sn#coll_msg_size_bytes#coll_exec_time_us#coll_timing_source\""
	"coll_algobw_gbs#coll_busbw_gbs#}}";
static const char *const p2p_fields =
	"header{id\"comm_name\"rank#n_ranks#nnodes#}"
	"metadata{inspector_output_format_version\"git_rev\"rec_mechanism\"dump_timestamp_us#"
	"hostname\"pid#}"
	"p2p_perf{p2p\"p2p_sn#p2p_peer#p2p_msg_size_bytes#p2p_exec_time_us#p2p_timing_source\""
	"p2p_algobw_gbs#p2p_busbw_gbs#}}";

static void append(char *to, size_t size, const char *more)
{
	size_t used = strlen(to);

	snprintf(to + used, size - used, "%s", more);
}

static int has_shape(const char *wanted)
{
	char got[1024] = "", text[64];
	struct json_scan scan;
	enum json_scan_token token;

	json_scan_init(&scan, line, strlen(line));
	json_scan_next(&scan);
	while ((token = json_scan_next(&scan)) > JSON_SCAN_END) {
		if (token == JSON_SCAN_KEY && json_scan_text(&scan, text, sizeof(text)))
			append(got, sizeof(got), text);
		else if (token == JSON_SCAN_OBJECT)
			append(got, sizeof(got), "{");
		else if (token == JSON_SCAN_OBJECT_END)
			append(got, sizeof(got), "}");
		else
			append(got, sizeof(got), token == JSON_SCAN_STRING ? "\"" : "#");
	}
	if (token == JSON_SCAN_END && strcmp(got, wanted) == 0)
		return 1;
	printf("# %s# got    %s\n# wanted %s\n", line, got, wanted);
	return 0;
}

static void test_shape(void)
{
	struct op_record op = made(OP_ALL_REDUCE, 1 << 20, 123456);
	size_t length = inspector_line(line, sizeof(line), &speaker, &world, &op, 0, NULL);

	EXPECT(length == strlen(line) && line[length - 1] == '\n');
	EXPECT_THAT("a collective has every field of v4.0", has_shape(coll_fields));
	op = made(OP_SEND, 4096, 5000);
	op.peer = 6;
	inspector_line(line, sizeof(line), &speaker, &world, &op, 9, NULL);
	EXPECT_THAT("so does a Send", has_shape(p2p_fields));
}

static double number_after(const char *key)
{
	const char *at = strstr(line, key);

	return at != NULL ? strtod(at + strlen(key), NULL) : -1;
}

static void test_numbers(void)
{
	struct op_record op = made(OP_ALL_GATHER, 8 << 20, 1000400);

	inspector_line(line, sizeof(line), &speaker, &world, &op, 0, NULL);
	EXPECT_THAT("the size is one rank's", number_after("\"coll_msg_size_bytes\":") == 1 << 20);
	EXPECT(number_after("\"coll_exec_time_us\":") == 1000);
	EXPECT(number_after("\"coll_sn\":") == 41);
	EXPECT(number_after("\"dump_timestamp_us\":") == 1767225600123456);
	EXPECT(fabs(number_after("\"coll_algobw_gbs\":") - (8 << 20) / 1000400.0) < 1e-6);
	EXPECT(fabs(number_after("\"coll_busbw_gbs\":") - (8 << 20) / 1000400.0 * 7 / 8) < 1e-6);
}

static void test_left_out(void)
{
	struct op_record op = made(OP_ALL_REDUCE, 1024, 5000);
	struct comm_info comm = world;

	op.time_source = OP_TIME_NONE;
	EXPECT_EQUAL(inspector_line(line, sizeof(line), &speaker, &world, &op, 0, NULL), 0);
	op = made(OP_ALL_REDUCE, OP_BYTES_UNKNOWN, 5000);
	EXPECT_EQUAL(inspector_line(line, sizeof(line), &speaker, &world, &op, 0, NULL), 0);
	op = made(OP_ALL_TO_ALL, 1024, 5000);
	EXPECT_EQUAL(inspector_line(line, sizeof(line), &speaker, &world, &op, 0, NULL), 0);
	op = made(OP_ALL_REDUCE, 1024, 5000);
	comm.nranks = 0;
	EXPECT_EQUAL(inspector_line(line, sizeof(line), &speaker, &comm, &op, 0, NULL), 0);
	comm = world;
	comm.rank = -1;
	EXPECT_EQUAL(inspector_line(line, sizeof(line), &speaker, &comm, &op, 0, NULL), 0);
}

/* Everything that can be written, in one log. */
static size_t write_log(char *text, size_t size, const struct op_record *ops, size_t count)
{
	size_t length = 0;
	uint64_t p2p = 0;

	for (size_t i = 0; i < count; i++) {
		p2p += ops[i].function == OP_SEND || ops[i].function == OP_RECV;
		length += inspector_line(line, sizeof(line), &speaker, &world, &ops[i], p2p, NULL);
		append(text, size, line);
	}
	return length;
}

static void test_round_trip(void)
{
	static const uint8_t functions[] = { OP_ALL_REDUCE, OP_ALL_GATHER, OP_REDUCE_SCATTER,
					     OP_BROADCAST,  OP_REDUCE,	   OP_SEND,
					     OP_RECV };
	static char text[64 * INSPECTOR_LINE_BYTES];
	struct op_record ops[21];
	size_t same = 0, length;

	for (size_t i = 0; i < 21; i++) {
		ops[i] = made(functions[i % 7], 8 * (1000 + i), 1000 * (17 + 1000 * i));
		ops[i].nccl_sequence = i / 7;
		ops[i].time_source = (uint8_t)(OP_TIME_KERNEL_GPU + i / 7);
		ops[i].active_ns = ops[i].issue_ns = ops[i].gpu_start_ns;
		ops[i].done_ns = ops[i].gpu_stop_ns;
		ops[i].peer =
			functions[i % 7] == OP_SEND || functions[i % 7] == OP_RECV ? 5 : OP_NOBODY;
	}
	length = write_log(text, sizeof(text), ops, 21);
	EXPECT_EQUAL(length, strlen(text));
	play_text(&play, text);
	EXPECT(play.status == OK && play.op_count == 21 && play.log.damaged == 0);
	for (size_t i = 0; i < play.op_count; i++)
		same += play.ops[i].function == ops[i].function &&
			play.ops[i].bytes == ops[i].bytes &&
			play.ops[i].time_source == ops[i].time_source &&
			play.ops[i].peer == ops[i].peer &&
			op_span_ns(&play.ops[i]) == op_span_ns(&ops[i]) &&
			op_has_duration(&play.ops[i]) && play.ops[i].done_ns == NOW / 1000 * 1000;
	EXPECT_THAT("what was written is read back unchanged", same == 21);
	EXPECT(play.log.comms[0].info.hash == world.hash && play.log.comms[0].info.rank == 3 &&
	       play.log.comms[0].info.nranks == 8 && play.log.comms[0].info.nnodes == 2);
	EXPECT_THAT("so is a name that needs quoting",
		    strcmp(play.log.comms[0].info.name, "a \"b\"\\?\xc3\xa9?") == 0);
	EXPECT(strcmp(play.log.processes[0].host, "node01") == 0 &&
	       play.log.processes[0].pid == 4711);
	EXPECT_EQUAL(foreign_not_recorded(&play.log, 0), 0);
}

static void test_extremes(void)
{
	struct op_record op = made(OP_ALL_REDUCE, 1024, 5000);
	struct inspector_speaker nobody = { "", -1, 0 };
	struct comm_info comm = world;
	char host[400], name[INSPECTOR_NAME_BYTES];

	memset(comm.name, 1, sizeof(comm.name));
	comm.name[sizeof(comm.name) - 1] = '\0';
	memset(host, 2, sizeof(host));
	host[sizeof(host) - 1] = '\0';
	nobody.host = host;
	EXPECT_THAT("the longest line fits",
		    inspector_line(line, sizeof(line), &nobody, &comm, &op, 0, NULL) > 0 &&
			    has_shape(coll_fields));
	nobody.host = "";
	inspector_line(line, sizeof(line), &nobody, &comm, &op, 0, NULL);
	EXPECT(strstr(line, "\"hostname\":\"unknown\",\"pid\":0}"));
	inspector_file_name(name, "node01", 4711);
	EXPECT(strcmp(name, "node01-pid4711.log") == 0);
	inspector_file_name(name, "../etc/x y", -1);
	EXPECT(strcmp(name, "_._etc_x_y-pid0.log") == 0);
}

/* What happens to each kind of operation, and why. */
static void test_fates(void)
{
	static const struct inspector_filter everything;
	struct inspector_filter filter = { .least_bytes = 8192 };
	struct op_record op = made(OP_ALL_GATHER, 8 * 8191, 5000);
	struct comm_info comm = world;

	EXPECT_EQUAL(inspector_fate(&op, &world, &everything), INSPECTOR_WRITTEN);
	EXPECT_THAT("the minimum size applies to one rank's part",
		    inspector_fate(&op, &world, &filter) == INSPECTOR_SMALL);
	op.bytes += 8;
	EXPECT_EQUAL(inspector_fate(&op, &world, &filter), INSPECTOR_WRITTEN);
	filter = (struct inspector_filter){ .is_without_p2p = true };
	op = made(OP_RECV, 1, 5000);
	EXPECT_EQUAL(inspector_fate(&op, &world, &filter), INSPECTOR_NO_P2P);
	filter = (struct inspector_filter){ .is_kernel_gpu_only = true };
	op.time_source = OP_TIME_PROXY;
	op.active_ns = 1;
	EXPECT_EQUAL(inspector_fate(&op, &world, &filter), INSPECTOR_HOST_TIME);
	op.state = OP_CAPTURED;
	EXPECT_EQUAL(inspector_fate(&op, &world, &everything), INSPECTOR_CAPTURED);
	op = made(OP_GATHER, 1, 5000);
	EXPECT_EQUAL(inspector_fate(&op, &world, &everything), INSPECTOR_OTHER_FUNCTION);
	op = made(OP_ALL_REDUCE, OP_BYTES_UNKNOWN, 5000);
	EXPECT_EQUAL(inspector_fate(&op, &world, &everything), INSPECTOR_UNKNOWN_SIZE);
	comm.nranks = 0;
	EXPECT_EQUAL(inspector_fate(&op, &comm, &everything), INSPECTOR_UNKNOWN_RANKS);
	op = made(OP_ALL_REDUCE, 1, (uint64_t)-5);
	EXPECT_THAT("reversed stamps are not a time",
		    inspector_fate(&op, &world, &everything) == INSPECTOR_NO_TIME);
}

static void test_bounds(void)
{
	struct inspector_filter filter = { .is_without_bounds = true };
	struct op_record op = made(OP_ALL_REDUCE, 1 << 20, 5000);

	op.time_source = OP_TIME_NONE;
	op.flags = OP_FLAG_STAMP_OVERRUN;
	op.issue_ns = 1000000;
	op.done_ns = 3000000;
	EXPECT_EQUAL(inspector_fate(&op, &world, &filter), INSPECTOR_HOST_TIME);
	inspector_line(line, sizeof(line), &speaker, &world, &op, 0, NULL);
	EXPECT_THAT("without its own time: from call to end, named as such",
		    number_after("\"coll_exec_time_us\":") == 2000 &&
			    strstr(line, "\"collective_cpu\"") != NULL);
	op.flags = OP_FLAG_STAMP_STALE;
	EXPECT_THAT("but not if the end belongs to another one",
		    inspector_line(line, sizeof(line), &speaker, &world, &op, 0, NULL) == 0);
	op.flags = 0;
	op.state = OP_ABANDONED;
	EXPECT_EQUAL(inspector_line(line, sizeof(line), &speaker, &world, &op, 0, NULL), 0);
}

/* Whatever the room, nothing is written behind it, and a line is complete or none. */
static void test_room(void)
{
	static char whole[INSPECTOR_LINE_BYTES], room[INSPECTOR_LINE_BYTES + 1];
	struct op_record op = made(OP_ALL_REDUCE, 1 << 20, 5000);
	size_t length = inspector_line(whole, sizeof(whole), &speaker, &world, &op, 0, NULL);
	size_t wrong = 0;

	EXPECT(length > 100 && whole[length - 1] == '\n' && whole[length] == '\0');
	for (size_t size = 1; size <= length + 2; size++) {
		size_t used;

		memset(room, '#', sizeof(room));
		used = inspector_line(room, size, &speaker, &world, &op, 0, NULL);
		wrong += used != (size > length ? length : 0) || room[size] != '#';
		wrong += used > 0 && memcmp(room, whole, length) != 0;
	}
	EXPECT_EQUAL(wrong, 0);
}

static void test_verbose(void)
{
	static const char *const fields =
		"header{id\"comm_name\"rank#n_ranks#nnodes#}"
		"metadata{inspector_output_format_version\"git_rev\"rec_mechanism\""
		"dump_timestamp_us#hostname\"pid#}"
		"coll_perf{coll\"coll_sn#coll_msg_size_bytes#coll_exec_time_us#"
		"coll_timing_source\"coll_algobw_gbs#coll_busbw_gbs#"
		"event_trace_sn{coll_start_sn#coll_stop_sn#kernel_events#{channel_id#"
		"kernel_start_sn#kernel_stop_sn#kernel_record_sn#}#}"
		"event_trace_ts{coll_start_ts#coll_stop_ts#kernel_events#{channel_id#"
		"kernel_start_ts#kernel_stop_ts#kernel_record_ts#}#}}}";
	static char verbose[INSPECTOR_VERBOSE_BYTES];
	struct inspector_channel channels[INSPECTOR_CHANNELS] = { { NOW, NOW + 5000, 7 } };
	struct inspector_events events = { .op_ns = NOW - 1000, .channels = channels, .count = 1 };
	struct op_record op = made(OP_ALL_REDUCE, 1 << 20, 123456);

	inspector_line(line, sizeof(line), &speaker, &world, &op, 0, &events);
	EXPECT_THAT("a verbose line has its events", has_shape(fields));
	EXPECT(strstr(line, "\"kernel_start_sn\":2,\"kernel_stop_sn\":4,\"kernel_record_sn\":3}"));
	EXPECT(number_after("\"kernel_stop_ts\":") == NOW / 1000 + 5);
	for (int i = 0; i < INSPECTOR_CHANNELS; i++)
		channels[i] = (struct inspector_channel){ UINT64_MAX, UINT64_MAX, (uint8_t)i };
	events.count = INSPECTOR_CHANNELS;
	EXPECT_THAT("the maximum number of channels fits",
		    inspector_line(verbose, sizeof(verbose), &speaker, &world, &op, 0, &events) >
			    0);
	EXPECT_THAT("if it does not fit, there is no line",
		    inspector_line(line, sizeof(line), &speaker, &world, &op, 0, &events) == 0);
}

int main(void)
{
	test_shape();
	test_numbers();
	test_left_out();
	test_round_trip();
	test_extremes();
	test_fates();
	test_bounds();
	test_room();
	test_verbose();
	return tap_done();
}
