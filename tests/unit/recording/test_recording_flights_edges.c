/*
 * What was in flight at the end of a trace, in all its fields: connections whose details are mixed, transfers in any
 * order, states, and exactly as many operations as are kept.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/attributes.h"
#include "common/text.h"
#include "recording/recording.h"
#include "tests/support/sample_trace.h"
#include "tests/tap.h"

enum { COMMS = 18 };

static struct op_record op_of(uint64_t sequence, uint32_t comm, uint64_t number,
			      enum op_state state)
{
	struct op_record op = sample_op(1);

	op.sequence = sequence;
	op.comm = comm;
	op.number = number;
	op.state = (uint8_t)state;
	if (state != OP_DONE) {
		op.time_source = OP_TIME_NONE;
		op.done_ns = op.gpu_stop_ns = 0;
		op.kernels_started = op.kernels_stopped = 0;
	}
	return op;
}

static struct sample begin_as(const char *info)
{
	struct sample sample = { NULL, 0, 0 };
	struct comm_info comms[COMMS];

	for (uint32_t i = 0; i < COMMS; i++)
		comms[i] = sample_comm(i + 1);
	sample_header(&sample, TRACE_MAJOR, TRACE_MINOR);
	sample_block(&sample, TRACE_PROCESS, info, strlen(info), 1);
	sample_block(&sample, TRACE_COMM, comms, sizeof(comms), COMMS);
	return sample;
}

static struct sample begin(void)
{
	return begin_as(sample_info);
}

static void put_ops(struct sample *sample, const struct op_record *ops, size_t count)
{
	for (size_t at = 0; at < count; at += SAMPLE_ROWS_MAX)
		sample_coded(
			sample, TRACE_OPS, ops + at, OP_RECORD_WORDS,
			(uint32_t)(count - at < SAMPLE_ROWS_MAX ? count - at : SAMPLE_ROWS_MAX));
}

static void load(struct recording *recording, struct sample *sample)
{
	recording_init(recording);
	if (recording_add_memory(recording, "sample", sample->bytes, sample->size, 0) != OK ||
	    recording_finish(recording) != OK || recording->count != 1)
		abort();
	EXPECT_EQUAL(recording_find_flights(recording), OK);
}

static void over(struct recording *recording, struct sample *sample)
{
	recording_release(recording);
	free(sample->bytes);
}

enum { TEXT_BYTES = 4096 };

static void print_proxy(char *text, const struct recording_proxy *of)
{
	const struct region_proxy *proxy = &of->proxy;

	text_append(text, TEXT_BYTES,
		    "%u.%llu ch%d peer%d flags%d pid%d: %d steps, %u posted, %u sent, %u done, "
		    "%llu %llu %llu, %lluB;",
		    proxy->comm, (unsigned long long)proxy->number, proxy->channel, proxy->peer,
		    proxy->flags, proxy->origin_pid, proxy->steps, proxy->posted,
		    proxy->transmitted, proxy->done, (unsigned long long)proxy->start_ns,
		    (unsigned long long)proxy->active_ns, (unsigned long long)proxy->since_ns,
		    (unsigned long long)proxy->bytes);
	for (unsigned int i = 0; i < of->step_count; i++) {
		const struct region_step *step = &of->steps[i];
		uint32_t number = step->step_plus_1 - 1;

		text_append(text, TEXT_BYTES, " %u=%u@%llu%s", number, step->state,
			    (unsigned long long)step->time_ns[0],
			    memcmp(&proxy->open[number % WINDOW_STEPS], step, sizeof(*step)) == 0
				    ? ""
				    : "!");
	}
	text_append(text, TEXT_BYTES, "\n");
}

/* Connections of operations, then of others. */
static bool has_proxies(const struct recording_process *process, const char *wanted)
{
	char text[TEXT_BYTES] = "";

	for (size_t i = 0; i < process->flight_count; i++)
		for (size_t j = 0; j < process->flights[i].proxy_count; j++)
			print_proxy(text, &process->flights[i].proxies[j]);
	for (size_t i = 0; i < process->proxy_count; i++)
		print_proxy(text, &process->proxies[i]);
	if (strcmp(text, wanted) == 0)
		return true;
	for (const char *line = text; *line != '\0'; line += strcspn(line, "\n") + 1)
		printf("# %.*s\n", (int)strcspn(line, "\n"), line);
	return false;
}

enum { SEND = OP_DETAIL_IS_SEND, FOREIGN = OP_DETAIL_IS_FOREIGN, OVER = OP_DETAIL_IS_OVER };
#define SAID(state) (uint16_t)((state) << 8)

struct row {
	uint8_t kind, channel;
	uint32_t comm;
	uint64_t number;
	int32_t peer;
	uint16_t flags;
	uint32_t origin_pid;
	int32_t step;
	uint64_t time_ns[4];
	uint64_t bytes;
};

/* In the order of the table. #7 and #8 of communicator 1 and #7 of communicator 2 run; #6 is done. */
static struct sample running(const struct row *rows, size_t count)
{
	const struct op_record ops[] = { op_of(1, 1, 6, OP_DONE), op_of(2, 1, 7, OP_RUNNING),
					 op_of(3, 1, 8, OP_RUNNING), op_of(4, 2, 7, OP_RUNNING) };
	struct op_detail details[SAMPLE_ROWS_MAX];
	struct sample sample = begin();

	put_ops(&sample, ops, ARRAY_LENGTH(ops));
	for (size_t i = 0; i < count; i++) {
		const struct row *row = &rows[i];

		details[i] = (struct op_detail){ .sequence = i + 1,
						 .comm = row->comm,
						 .kind = row->kind,
						 .channel = row->channel,
						 .flags = row->flags,
						 .number = row->number,
						 .origin_pid = row->origin_pid,
						 .peer = row->peer,
						 .step = row->step,
						 .bytes = row->bytes };
		memcpy(details[i].time_ns, row->time_ns, sizeof(row->time_ns));
	}
	sample_coded(&sample, TRACE_DETAILS, details, OP_DETAIL_WORDS, (uint32_t)count);
	return sample;
}

static void expect_proxies(const char *sentence, const struct row *rows, size_t count,
			   const char *wanted)
{
	struct sample sample = running(rows, count);
	struct recording recording;

	load(&recording, &sample);
	EXPECT_THAT(sentence, has_proxies(recording.processes[0], wanted));
	over(&recording, &sample);
}

enum { PROXY = OP_DETAIL_PROXY, STEP = OP_DETAIL_STEP, KERNEL = OP_DETAIL_KERNEL };

/* Two connections that differ in one thing only, with their details in turns. */
static void connections_are_told_apart(void)
{
	static const struct {
		const char *differ;
		struct row one, other;
		const char *wanted;
	} pairs[] = {
		{ "communicators",
		  { .comm = 2, .number = 7, .peer = 4, .flags = SEND },
		  { .comm = 1, .number = 7, .peer = 4, .flags = SEND },
		  "1.7 ch0 peer4 flags5 pid0: 9 steps, 4 posted, 3 sent, 3 done, 20 21 41, 5B; "
		  "3=8@41\n"
		  "2.7 ch0 peer4 flags5 pid0: 8 steps, 3 posted, 2 sent, 2 done, 10 11 31, 4B; "
		  "2=8@31\n" },
		{ "operations",
		  { .comm = 1, .number = 8, .peer = 4, .flags = SEND },
		  { .comm = 1, .number = 7, .peer = 4, .flags = SEND },
		  "1.7 ch0 peer4 flags5 pid0: 9 steps, 4 posted, 3 sent, 3 done, 20 21 41, 5B; "
		  "3=8@41\n"
		  "1.8 ch0 peer4 flags5 pid0: 8 steps, 3 posted, 2 sent, 2 done, 10 11 31, 4B; "
		  "2=8@31\n" },
		{ "channels",
		  { .comm = 1, .number = 7, .peer = 4, .flags = SEND, .channel = 1 },
		  { .comm = 1, .number = 7, .peer = 5, .flags = SEND },
		  "1.7 ch0 peer5 flags5 pid0: 9 steps, 4 posted, 3 sent, 3 done, 20 21 41, 5B; "
		  "3=8@41\n"
		  "1.7 ch1 peer4 flags5 pid0: 8 steps, 3 posted, 2 sent, 2 done, 10 11 31, 4B; "
		  "2=8@31\n" },
		{ "channels alone",
		  { .comm = 1, .number = 7, .peer = 4, .flags = SEND, .channel = 1 },
		  { .comm = 1, .number = 7, .peer = 4, .flags = SEND },
		  "1.7 ch0 peer4 flags5 pid0: 9 steps, 4 posted, 3 sent, 3 done, 20 21 41, 5B; "
		  "3=8@41\n"
		  "1.7 ch1 peer4 flags5 pid0: 8 steps, 3 posted, 2 sent, 2 done, 10 11 31, 4B; "
		  "2=8@31\n" },
		{ "peers",
		  { .comm = 1, .number = 8, .peer = 5, .flags = SEND },
		  { .comm = 1, .number = 8, .peer = 4, .flags = SEND },
		  "1.8 ch0 peer4 flags5 pid0: 9 steps, 4 posted, 3 sent, 3 done, 20 21 41, 5B; "
		  "3=8@41\n"
		  "1.8 ch0 peer5 flags5 pid0: 8 steps, 3 posted, 2 sent, 2 done, 10 11 31, 4B; "
		  "2=8@31\n" },
		{ "directions: the sending one first",
		  { .comm = 1, .number = 7, .peer = 4 },
		  { .comm = 1, .number = 7, .peer = 4, .flags = SEND },
		  "1.7 ch0 peer4 flags5 pid0: 9 steps, 4 posted, 3 sent, 3 done, 20 21 41, 5B; "
		  "3=8@41\n"
		  "1.7 ch0 peer4 flags4 pid0: 8 steps, 3 posted, 2 sent, 2 done, 10 11 31, 4B; "
		  "2=10@31\n" },
		{ "processes that they work for",
		  { .peer = 4, .flags = SEND | FOREIGN, .origin_pid = 12, .channel = 3 },
		  { .peer = 4, .flags = SEND | FOREIGN, .origin_pid = 11, .channel = 3 },
		  "0.0 ch3 peer4 flags7 pid11: 9 steps, 4 posted, 3 sent, 3 done, 20 21 41, 5B; "
		  "3=8@41\n"
		  "0.0 ch3 peer4 flags7 pid12: 8 steps, 3 posted, 2 sent, 2 done, 10 11 31, 4B; "
		  "2=8@31\n" },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(pairs); i++) {
		struct row rows[4] = { pairs[i].one, pairs[i].other, pairs[i].one, pairs[i].other };

		for (unsigned int j = 0; j < 2; j++) {
			rows[j].kind = PROXY;
			rows[j].step = 8 + (int32_t)j;
			rows[j].time_ns[0] = 10 * (j + 1);
			rows[j].time_ns[1] = 10 * (j + 1) + 1;
			rows[j].bytes = 4 + j;
			rows[j + 2].kind = STEP;
			rows[j + 2].step = 2 + (int32_t)j;
			rows[j + 2].time_ns[0] = 31 + 10 * j;
		}
		expect_proxies(pairs[i].differ, rows, 4, pairs[i].wanted);
	}
}

/* Of two operations, so that each is sorted. */
static void connections_are_sorted(void)
{
	static const struct row rows[] = {
		{ .kind = PROXY, .comm = 1, .number = 7, .channel = 2, .peer = 1 },
		{ .kind = PROXY, .comm = 1, .number = 7, .channel = 1, .peer = 2 },
		{ .kind = PROXY, .comm = 1, .number = 7, .channel = 1, .peer = -1 },
		{ .kind = PROXY, .comm = 2, .number = 7, .channel = 1, .peer = 0 },
		{ .kind = PROXY, .comm = 2, .number = 7, .channel = 1, .peer = -1, .flags = SEND },
		{ .kind = PROXY, .comm = 2, .number = 7, .channel = 1, .peer = -1 },
		{ .kind = PROXY, .channel = 9, .peer = 3, .flags = FOREIGN },
		{ .kind = PROXY, .channel = 8, .peer = 3, .flags = FOREIGN },
	};

	expect_proxies(
		"by channel, peer and direction", rows, ARRAY_LENGTH(rows),
		"1.7 ch1 peer-1 flags0 pid0: 0 steps, 0 posted, 0 sent, 0 done, 0 0 0, 0B;\n"
		"1.7 ch1 peer2 flags0 pid0: 0 steps, 0 posted, 0 sent, 0 done, 0 0 0, 0B;\n"
		"1.7 ch2 peer1 flags0 pid0: 0 steps, 0 posted, 0 sent, 0 done, 0 0 0, 0B;\n"
		"2.7 ch1 peer-1 flags1 pid0: 0 steps, 0 posted, 0 sent, 0 done, 0 0 0, 0B;\n"
		"2.7 ch1 peer-1 flags0 pid0: 0 steps, 0 posted, 0 sent, 0 done, 0 0 0, 0B;\n"
		"2.7 ch1 peer0 flags0 pid0: 0 steps, 0 posted, 0 sent, 0 done, 0 0 0, 0B;\n"
		"0.0 ch8 peer3 flags2 pid0: 0 steps, 0 posted, 0 sent, 0 done, 0 0 0, 0B;\n"
		"0.0 ch9 peer3 flags2 pid0: 0 steps, 0 posted, 0 sent, 0 done, 0 0 0, 0B;\n");
}

static void only_what_is_in_flight_has_details(void)
{
	static const struct row rows[] = {
		{ .kind = PROXY, .comm = 1, .number = 6, .channel = 1 },
		{ .kind = PROXY, .comm = 1, .number = 99, .channel = 2 },
		{ .kind = KERNEL, .comm = 1, .number = 99, .time_ns = { 1 } },
		{ .kind = KERNEL, .flags = FOREIGN, .time_ns = { 1 } },
		{ .kind = KERNEL,
		  .comm = 1,
		  .number = 7,
		  .flags = OVER | FOREIGN,
		  .time_ns = { 1 } },
		{ .kind = STEP,
		  .flags = FOREIGN,
		  .channel = 3,
		  .step = 4,
		  .time_ns = { 1, 2, 3, 4 } },
		{ .kind = STEP,
		  .flags = FOREIGN,
		  .channel = 4,
		  .step = 4,
		  .time_ns = { 1, 2, 3, 0 } },
		{ .kind = STEP,
		  .flags = FOREIGN | OVER,
		  .channel = 5,
		  .step = 4,
		  .time_ns = { 1, 2, 3, 4 } },
		{ .kind = PROXY, .comm = 1, .number = 7, .channel = 6, .time_ns = { 1, 2, 3, 4 } },
	};

	expect_proxies(
		"not of finished, unknown and stopped ones", rows, ARRAY_LENGTH(rows),
		"0.0 ch4 peer0 flags2 pid0: 0 steps, 5 posted, 5 sent, 4 done, 0 0 3, 0B; 4=12@1\n"
		"0.0 ch5 peer0 flags2 pid0: 0 steps, 5 posted, 5 sent, 5 done, 0 0 4, 0B;\n");
}

/* Transfers of one connection of #7. */
#define TRANSFER(direction, index, ...)                                                      \
	{                                                                                    \
		.kind = STEP, .comm = 1, .number = 7, .flags = (direction), .step = (index), \
		.time_ns = {                                                                 \
			__VA_ARGS__                                                          \
		}                                                                            \
	}

static void transfers_in_any_order(void)
{
	static const struct row reversed[] = { TRANSFER(SEND, 12, 50), TRANSFER(SEND, 11, 40),
					       TRANSFER(SEND, 10, 30), TRANSFER(SEND, 11, 45),
					       TRANSFER(SEND, 9, 20) };
	static const struct row many[] = { TRANSFER(0, 0, 10), TRANSFER(0, 1, 11),
					   TRANSFER(0, 2, 12), TRANSFER(0, 3, 13),
					   TRANSFER(0, 4, 14), TRANSFER(0, 5, 15),
					   TRANSFER(0, 6, 16), TRANSFER(0, 7, 17),
					   TRANSFER(0, 8, 18) };
	static const struct row odd[] = { TRANSFER(SEND, -1, 90), TRANSFER(SEND, 3, 0),
					  TRANSFER(SEND, 0, 8) };

	expect_proxies("by number, equal ones as they came", reversed, ARRAY_LENGTH(reversed),
		       "1.7 ch0 peer0 flags1 pid0: 0 steps, 14 posted, 9 sent, 9 done, 0 0 50, 0B; "
		       "9=8@20 10=8@30 11=8@40! 11=8@45 12=8@50\n");
	expect_proxies("eight are in flight at most", many, ARRAY_LENGTH(many),
		       "1.7 ch0 peer0 flags0 pid0: 0 steps, 8 posted, 0 sent, 0 done, 0 0 18, 0B; "
		       "0=10@10 1=10@11 2=10@12 3=10@13 4=10@14 5=10@15 6=10@16 7=10@17\n");
	expect_proxies("none without a number or a time", odd, ARRAY_LENGTH(odd),
		       "1.7 ch0 peer0 flags1 pid0: 0 steps, 1 posted, 0 sent, 0 done, 0 0 90, 0B; "
		       "0=8@8\n");
}

static void states_of_transfers(void)
{
	static const struct row by_time[] = {
		TRANSFER(SEND, 0, 1),	 TRANSFER(SEND, 1, 1, 2), TRANSFER(SEND, 2, 1, 2, 3),
		TRANSFER(SEND, 3, 0, 2), TRANSFER(0, 0, 1),	  TRANSFER(0, 1, 1, 2),
		TRANSFER(0, 2, 1, 2, 3), TRANSFER(0, 3, 0, 0, 3),
	};
	static const struct row by_word[] = {
		TRANSFER(SEND | SAID(7), 0, 1),	 TRANSFER(SEND | SAID(8), 1, 1, 2),
		TRANSFER(SEND | SAID(12), 2, 1), TRANSFER(SEND | SAID(13), 3, 1),
		TRANSFER(SEND | SAID(20), 4, 1), TRANSFER(SEND | SAID(19), 5, 1),
		TRANSFER(SEND | SAID(21), 6, 1), TRANSFER(SEND | SAID(9), 7, 1),
	};

	expect_proxies("by the last time of a transfer", by_time, ARRAY_LENGTH(by_time),
		       "1.7 ch0 peer0 flags1 pid0: 0 steps, 4 posted, 1 sent, 0 done, 0 0 3, 0B; "
		       "0=8@1 1=20@1 2=9@1 3=20@0\n"
		       "1.7 ch0 peer0 flags0 pid0: 0 steps, 4 posted, 3 sent, 0 done, 0 0 3, 0B; "
		       "0=10@1 1=11@1 2=12@1 3=12@0\n");
	expect_proxies("or as recorded, if NCCL has such a state", by_word, ARRAY_LENGTH(by_word),
		       "1.7 ch0 peer0 flags1 pid0: 0 steps, 8 posted, 2 sent, 0 done, 0 0 2, 0B; "
		       "0=8@1 1=8@1 2=12@1 3=8@1 4=20@1 5=8@1 6=8@1 7=9@1\n");
}

static void transfers_that_are_done(void)
{
	static const struct row counted[] = { TRANSFER(SEND, 0, 1, 2, 3, 4),
					      TRANSFER(SEND, 1, 1, 2, 3, 5) };
	static const struct row lower[] = { TRANSFER(SEND, 0, 1, 2, 3, 4),
					    TRANSFER(SEND, 1, 1, 2, 3, 5), TRANSFER(SEND, 1, 6) };
	static const struct row said[] = { TRANSFER(SEND | OVER, 5, 1, 2, 3, 4),
					   TRANSFER(SEND, 9, 6) };
	static const struct row next[] = {
		TRANSFER(SEND, 6, 1, 2, 3, 4),
		{ .kind = PROXY,
		  .comm = 1,
		  .number = 7,
		  .flags = SEND,
		  .step = 8,
		  .time_ns = { 30 } },
		TRANSFER(SEND, 2, 40),
		{ .kind = PROXY,
		  .comm = 1,
		  .number = 7,
		  .flags = SEND,
		  .step = 6,
		  .time_ns = { 50 } },
	};

	expect_proxies(
		"each counts", counted, ARRAY_LENGTH(counted),
		"1.7 ch0 peer0 flags1 pid0: 0 steps, 2 posted, 2 sent, 2 done, 0 0 5, 0B;\n");
	expect_proxies("more than the first open one says", lower, ARRAY_LENGTH(lower),
		       "1.7 ch0 peer0 flags1 pid0: 0 steps, 3 posted, 2 sent, 2 done, 0 0 6, 0B; "
		       "1=8@6\n");
	expect_proxies("the recorder knows how many", said, ARRAY_LENGTH(said),
		       "1.7 ch0 peer0 flags1 pid0: 0 steps, 7 posted, 6 sent, 6 done, 0 0 6, 0B; "
		       "9=8@6\n");
	expect_proxies(
		"one proxy operation after another on the same connection", next,
		ARRAY_LENGTH(next),
		"1.7 ch0 peer0 flags1 pid0: 0 steps, 1 posted, 1 sent, 1 done, 0 0 4, 0B;\n"
		"1.7 ch0 peer0 flags1 pid0: 8 steps, 3 posted, 2 sent, 2 done, 30 0 40, 0B; "
		"2=8@40\n"
		"1.7 ch0 peer0 flags1 pid0: 6 steps, 0 posted, 0 sent, 0 done, 50 0 0, 0B;\n");
}

static void details_of_the_second_file(void)
{
	static const struct row rows[] = { TRANSFER(SEND, 3, 7) };
	const struct op_record done = op_of(1, 1, 6, OP_DONE);
	struct sample first = begin(), second;
	struct recording recording;

	put_ops(&first, &done, 1);
	second = running(rows, 1);
	recording_init(&recording);
	if (recording_add_memory(&recording, "first", first.bytes, first.size, 0) != OK ||
	    recording_add_memory(&recording, "second", second.bytes, second.size, 0) != OK ||
	    recording_finish(&recording) != OK || recording.count != 1)
		abort();
	EXPECT_EQUAL(recording_find_flights(&recording), OK);
	EXPECT_THAT("are read, too",
		    has_proxies(recording.processes[0],
				"1.7 ch0 peer0 flags1 pid0: 0 steps, 4 posted, 3 sent, 3 done, "
				"0 0 7, 0B; 3=8@7\n"));
	free(first.bytes);
	over(&recording, &second);
}

static bool has_flights(const struct recording_process *process, const uint64_t *wanted,
			size_t count)
{
	bool is_same = process->flight_count == count;

	for (size_t i = 0; is_same && i < count; i++)
		is_same = process->flights[i].op.comm * 1000000 + process->flights[i].op.number ==
			  wanted[i];
	for (size_t i = 0; !is_same && i < process->flight_count && i < 20; i++)
		printf("# %u #%llu\n", process->flights[i].op.comm,
		       (unsigned long long)process->flights[i].op.number);
	return is_same;
}

static void children_that_are_open(void)
{
	struct op_record ops[4] = { op_of(1, 1, 1, OP_RUNNING), op_of(2, 1, 2, OP_RUNNING),
				    op_of(3, 1, 3, OP_RUNNING), op_of(4, 2, 1, OP_DONE) };
	static const uint32_t wanted[4] = { 3 + 5, 0, 2, 0 };
	const struct recording_process *process;
	struct sample sample = begin();
	struct recording recording;

	ops[0].kernels_started = 5;
	ops[0].kernels_stopped = 2;
	ops[0].proxies_started = 9;
	ops[0].proxies_stopped = 4;
	ops[1].kernels_started = ops[1].kernels_stopped = 3;
	ops[1].proxies_started = ops[1].proxies_stopped = 4;
	ops[2].proxies_started = 2;
	ops[3].kernels_started = 4;
	ops[3].kernels_stopped = 1;
	put_ops(&sample, ops, 4);
	load(&recording, &sample);
	process = recording.processes[0];
	for (size_t i = 0; i < 4; i++)
		EXPECT(process->flight_count == 4 &&
		       process->flights[i].open_children == wanted[i]);
	over(&recording, &sample);
}

/* Open ones that are not dropped now may be dropped by a later call. */
static void a_finished_call_proves_earlier_ones_over(void)
{
	const struct op_record ops[] = {
		op_of(1, 1, 10, OP_ISSUED),   op_of(2, 1, 2, OP_RUNNING),
		op_of(3, 1, 12, OP_LAUNCHED), op_of(4, 1, 4, OP_ISSUED),
		op_of(5, 1, 5, OP_DONE),      op_of(6, 2, 3, OP_ISSUED),
		op_of(7, 2, 4, OP_ISSUED),    op_of(8, 2, 3, OP_DONE),
		op_of(9, 1, 11, OP_DONE),
	};
	static const uint64_t before[] = { 1000002, 1000005, 1000010, 1000012, 2000003, 2000004 };
	static const uint64_t after[] = { 1000002, 1000005, 1000011, 1000012, 2000003, 2000004 };
	struct recording recording;

	for (size_t last = 8; last <= 9; last++) {
		struct sample sample = begin();

		put_ops(&sample, ops, last);
		load(&recording, &sample);
		EXPECT(has_flights(recording.processes[0], last == 8 ? before : after, 6));
		EXPECT_EQUAL(recording.processes[0]->flights[4].op.state, OP_DONE);
		over(&recording, &sample);
	}
}

/* Its last calls are not kept, so nothing else says that a call is done. */
static void what_is_done_in_a_finalized_communicator(void)
{
	const struct op_record ops[] = {
		op_of(1, 1, 3, OP_RUNNING), op_of(2, 1, 4, OP_RUNNING), op_of(3, 1, 5, OP_RUNNING),
		op_of(4, 1, 3, OP_DONE),    op_of(5, 1, 4, OP_DONE),
	};
	static const uint64_t wanted[] = { 1000005 };
	struct comm_info comm = sample_comm(1);
	struct sample sample = begin();
	struct recording recording;

	comm.finalize_ns = 900000;
	sample_block(&sample, TRACE_COMM, &comm, sizeof(comm), 1);
	put_ops(&sample, ops, ARRAY_LENGTH(ops));
	load(&recording, &sample);
	EXPECT(has_flights(recording.processes[0], wanted, 1));
	over(&recording, &sample);
}

/* The lowest open number counts, whichever came last. */
static void a_finished_call_between_open_ones(void)
{
	const struct op_record ops[] = { op_of(1, 1, 4, OP_ISSUED), op_of(2, 1, 10, OP_ISSUED),
					 op_of(3, 1, 5, OP_DONE) };
	static const uint64_t wanted[] = { 1000005, 1000010 };
	struct sample sample = begin();
	struct recording recording;

	put_ops(&sample, ops, ARRAY_LENGTH(ops));
	load(&recording, &sample);
	EXPECT(has_flights(recording.processes[0], wanted, 2));
	over(&recording, &sample);
}

/* Many communicators with finished calls: four of each are kept. */
static void the_last_four_calls_of_each(void)
{
	struct op_record ops[COMMS * 5];
	uint64_t wanted[COMMS * 4];
	struct sample sample = begin();
	struct recording recording;

	for (uint32_t i = 0; i < COMMS * 5; i++)
		ops[i] = op_of(i + 1, i % COMMS + 1, i / COMMS + 1, OP_DONE);
	for (uint32_t i = 0; i < COMMS * 4; i++)
		wanted[i] = (i / 4 + 1) * 1000000 + i % 4 + 2;
	put_ops(&sample, ops, COMMS * 5);
	load(&recording, &sample);
	EXPECT(has_flights(recording.processes[0], wanted, COMMS * 4));
	over(&recording, &sample);
}

/* 1,024 open calls, and one more. */
static void too_many_calls_of_a_communicator(void)
{
	static const struct {
		const char *sentence;
		uint64_t launched, count, kept, first;
	} cases[] = {
		{ "as many as there is room for", 1024, 1024, 1024, 1 },
		{ "the older half goes", 1025, 1025, 513, 513 },
		{ "of those not seen running", 3, 1025, 1023, 3 },
		{ "also if all run", 0, 1025, 513, 513 },
		{ "all but one run", 1, 1025, 1024, 2 },
	};
	static struct op_record ops[1025];

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct sample sample = begin();
		const struct recording_process *process;
		struct recording recording;

		for (uint64_t at = 0; at < cases[i].count; at++)
			ops[at] = op_of(at + 1, 1, at + 1,
					at < cases[i].launched ? OP_LAUNCHED : OP_RUNNING);
		put_ops(&sample, ops, cases[i].count);
		load(&recording, &sample);
		process = recording.processes[0];
		EXPECT_THAT(cases[i].sentence,
			    process->flight_count == cases[i].kept &&
				    process->flights[0].op.number == cases[i].first &&
				    process->flights[cases[i].kept - 1].op.number ==
					    cases[i].count);
		over(&recording, &sample);
	}
}

/* 16,384 open calls. */
static void too_many_calls_of_a_process(void)
{
	enum { EACH = 1023, MOST = 16384 };
	struct op_record *ops = calloc(MOST + 2, sizeof(*ops));
	const struct recording_process *process;
	struct sample sample = begin();
	struct recording recording;
	uint64_t count = 0;

	if (ops == NULL)
		abort();
	for (; count < 16 * EACH; count++)
		ops[count] = op_of(count + 1, (uint32_t)(count / EACH) + 1, count % EACH + 1,
				   OP_LAUNCHED);
	for (uint64_t number = 1; number <= 15; number++, count++)
		ops[count] = op_of(count + 1, 17, number, OP_LAUNCHED);
	for (uint64_t number = 1; number <= 2; number++, count++)
		ops[count] = op_of(count + 1, 18, number, OP_LAUNCHED);
	ops[count] = op_of(count + 1, 17, 16, OP_LAUNCHED);
	count++;
	put_ops(&sample, ops, count);
	load(&recording, &sample);
	process = recording.processes[0];
	if (EXPECT(process->flight_count == MOST - 8 + 1)) {
		const struct recording_flight *last = &process->flights[process->flight_count - 1];

		EXPECT_THAT("a communicator with one call keeps it",
			    last->op.comm == 18 && last->op.number == 1);
		EXPECT_THAT("one with more calls keeps the newer half",
			    last[-1].op.comm == 17 && last[-1].op.number == 16 &&
				    last[-8].op.comm == 17 && last[-8].op.number == 9 &&
				    last[-9].op.comm == 16);
	}
	over(&recording, &sample);
	free(ops);
}

/* However many calls came and went, with one that has been running since the first. */
static void calls_that_are_over_take_no_room(void)
{
	enum { ROUNDS = 8400 };
	static const uint64_t wanted[] = { 1000001, 1008398, 1008399, 1008400, 1008401, 1008402 };
	struct op_record *ops = calloc(2 * ROUNDS + 2, sizeof(*ops));
	struct sample sample = begin();
	struct recording recording;
	uint64_t count = 1;

	if (ops == NULL)
		abort();
	ops[0] = op_of(1, 1, 1, OP_RUNNING);
	for (uint64_t round = 0; round < ROUNDS; round++, count += 2) {
		ops[count] = op_of(count + 1, 1, round + 1, OP_ISSUED);
		ops[count + 1] = op_of(count + 2, 1, round + 2, OP_DONE);
	}
	ops[count] = op_of(count + 1, 1, ROUNDS + 2, OP_LAUNCHED);
	count++;
	put_ops(&sample, ops, count);
	load(&recording, &sample);
	EXPECT(has_flights(recording.processes[0], wanted, 6));
	over(&recording, &sample);
	free(ops);
}

static void each_process_is_searched(void)
{
	static const char *const infos[] = { "host=far\nrank=3\nmode=trace\npid=1\n",
					     "host=far\nrank=4\nmode=trace\npid=2\n",
					     "host=far\nrank=5\nmode=trace\npid=3\n" };
	struct sample samples[3];
	struct recording recording;

	recording_init(&recording);
	for (size_t i = 0; i < 3; i++) {
		const struct op_record op = op_of(1, 1, i + 1, OP_RUNNING);

		samples[i] = begin_as(infos[i]);
		put_ops(&samples[i], &op, 1);
		if (recording_add_memory(&recording, infos[i], samples[i].bytes, samples[i].size,
					 0) != OK)
			abort();
	}
	EXPECT(recording_finish(&recording) == OK && recording.count == 3);
	EXPECT_EQUAL(recording_find_flights(&recording), OK);
	for (size_t i = 0; i < recording.count; i++)
		EXPECT(recording.processes[i]->flight_count == 1 &&
		       recording.processes[i]->flights[0].op.number == i + 1);
	recording_release(&recording);
	for (size_t i = 0; i < 3; i++)
		free(samples[i].bytes);
}

/* Work for other processes is of interest only beside what hangs here. */
static void nothing_is_in_flight(void)
{
	const struct op_record done = op_of(1, 1, 6, OP_DONE);
	const struct op_detail detail = {
		.sequence = 1, .kind = PROXY, .flags = FOREIGN, .time_ns = { 5 }
	};
	struct sample sample = begin();
	struct recording recording;

	put_ops(&sample, &done, 1);
	sample_coded(&sample, TRACE_DETAILS, &detail, OP_DETAIL_WORDS, 1);
	load(&recording, &sample);
	EXPECT(recording.processes[0]->flight_count == 1 &&
	       recording.processes[0]->proxy_count == 0);
	over(&recording, &sample);
	sample = begin();
	load(&recording, &sample);
	EXPECT(recording.processes[0]->flight_count == 0 &&
	       recording.processes[0]->flights == NULL);
	over(&recording, &sample);
}

int main(void)
{
	connections_are_told_apart();
	connections_are_sorted();
	only_what_is_in_flight_has_details();
	transfers_in_any_order();
	states_of_transfers();
	transfers_that_are_done();
	details_of_the_second_file();
	children_that_are_open();
	a_finished_call_proves_earlier_ones_over();
	what_is_done_in_a_finalized_communicator();
	a_finished_call_between_open_ones();
	the_last_four_calls_of_each();
	too_many_calls_of_a_communicator();
	too_many_calls_of_a_process();
	calls_that_are_over_take_no_room();
	each_process_is_searched();
	nothing_is_in_flight();
	return tap_done();
}
