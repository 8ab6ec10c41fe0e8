#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/flight.h"
#include "recording/recording.h"
#include "tests/support/sample_trace.h"
#include "tests/tap.h"

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
		op.kernels_stopped = 0;
		op.proxies_started = 3;
		op.proxies_stopped = 1;
	}
	return op;
}

static void put_ops(struct sample *sample, const struct op_record *ops, uint32_t count)
{
	for (uint32_t at = 0; at < count; at += SAMPLE_ROWS_MAX)
		sample_coded(sample, TRACE_OPS, ops + at, OP_RECORD_WORDS,
			     count - at < SAMPLE_ROWS_MAX ? count - at : SAMPLE_ROWS_MAX);
}

/* Communicators 1 and 2, and a third that was finalized. */
static struct sample begin(void)
{
	struct comm_info comms[3] = { sample_comm(1), sample_comm(2), sample_comm(3) };
	struct sample sample = { NULL, 0, 0 };

	comms[2].flags = COMM_FLAG_FINALIZED;
	comms[2].finalize_ns = 77;
	sample_header(&sample, TRACE_MAJOR, TRACE_MINOR);
	sample_block(&sample, TRACE_PROCESS, "host=far\nrank=3\nmode=trace\n", 27, 1);
	sample_block(&sample, TRACE_COMM, comms, sizeof(comms), 3);
	return sample;
}

static struct op_detail detail_of(enum op_detail_kind kind, uint8_t channel, int32_t peer,
				  bool is_send, int32_t step)
{
	return (struct op_detail){ .comm = 1,
				   .kind = (uint8_t)kind,
				   .channel = channel,
				   .flags = is_send ? OP_DETAIL_IS_SEND : 0,
				   .number = 7,
				   .peer = peer,
				   .step = step };
}

/*
 * Channel 0 sends to 4: two of eight are done, two in flight. Channel 1 receives from 2: queued.
 * Channel 2 has sent all. Then what an earlier operation did, and one for another process.
 */
static void put_details(struct sample *sample)
{
	struct op_detail details[12];
	uint32_t count = 0;

	details[count] = detail_of(OP_DETAIL_PROXY, 0, 4, true, 8);
	details[count].time_ns[0] = 100;
	details[count++].time_ns[1] = 110;
	for (int step = 3; step >= 2; step--) {
		details[count] = detail_of(OP_DETAIL_STEP, 0, 4, true, step);
		details[count].time_ns[0] = 200 + (uint64_t)step;
		details[count++].time_ns[2] = 300 + (uint64_t)step;
	}
	details[count] = detail_of(OP_DETAIL_PROXY, 1, 2, false, 8);
	details[count++].time_ns[0] = 120;
	details[count] = detail_of(OP_DETAIL_PROXY, 2, 4, true, 8);
	details[count].time_ns[1] = 120;
	details[count++].time_ns[3] = 150;
	details[count] = detail_of(OP_DETAIL_PROXY, 0, 4, true, 8);
	details[count].time_ns[3] = 90;
	details[count++].number = 6;
	details[count] = detail_of(OP_DETAIL_PROXY, 0, 5, true, 8);
	details[count].flags |= OP_DETAIL_IS_FOREIGN;
	details[count].time_ns[0] = 95;
	details[count++].comm = 0;
	for (uint8_t channel = 0; channel < 2; channel++) {
		details[count] = detail_of(OP_DETAIL_KERNEL, (uint8_t)(channel * 70), -1, false, 0);
		details[count++].time_ns[channel] = 17;
	}
	for (uint32_t i = 0; i < count; i++)
		details[i].sequence = i + 1;
	sample_coded(sample, TRACE_DETAILS, details, OP_DETAIL_WORDS, count);
}

static struct sample hanging(void)
{
	struct op_record ops[20];
	struct sample sample = begin();
	uint32_t count = 0;

	for (uint64_t number = 1; number <= 6; number++, count++)
		ops[count] = op_of(count + 1, 1, number, OP_DONE);
	ops[count] = op_of(count + 1, 2, 1, OP_ISSUED);
	count++;
	for (uint64_t number = 2; number <= 3; number++, count++)
		ops[count] = op_of(count + 1, 2, number, OP_DONE);
	ops[count] = op_of(count + 1, 3, 5, OP_DONE);
	count++;
	ops[count] = op_of(count + 1, 1, 8, OP_LAUNCHED);
	count++;
	ops[count] = op_of(count + 1, 1, 7, OP_RUNNING);
	count++;
	ops[count] = op_of(count + 1, 2, 4, OP_ISSUED);
	count++;
	ops[count] = op_of(count + 1, 9, 3, OP_RUNNING);
	count++;
	ops[count] = op_of(count + 1, 2, 5, OP_CAPTURED);
	count++;
	put_ops(&sample, ops, count);
	put_details(&sample);
	return sample;
}

static void load(struct recording *recording, const struct sample *sample)
{
	recording_init(recording);
	if (recording_add_memory(recording, "sample", sample->bytes, sample->size, 0) != OK ||
	    recording_finish(recording) != OK || recording->count != 1)
		abort();
}

static void expect_waits(const struct recording_flight *flight)
{
	struct flight_wait *waits;
	size_t count;

	EXPECT_EQUAL(flight_waits(flight->proxies, flight->proxy_count, &waits, &count), OK);
	if (EXPECT(count == 2)) {
		EXPECT(waits[0].reason == FLIGHT_RECV_QUEUED && waits[0].peer == 2 &&
		       waits[0].channels[0] == 2 && waits[0].since_ns == 120 &&
		       waits[0].steps == 8 && waits[0].steps_done == 0);
		EXPECT(waits[1].reason == FLIGHT_SEND_NET && waits[1].peer == 4 &&
		       waits[1].channels[0] == 1 && waits[1].since_ns == 302 &&
		       waits[1].steps == 8 && waits[1].steps_done == 2);
	}
	free(waits);
}

static void test_hanging(void)
{
	/* Communicator and number: the last four that are done, then what is not over. */
	static const uint64_t wanted[] = { 1003, 1004, 1005, 1006, 1007,
					   1008, 2002, 2003, 2004, 9003 };
	struct sample sample = hanging();
	struct recording_account before, after;
	struct recording_process *process;
	struct recording recording;
	bool is_same;

	load(&recording, &sample);
	process = recording.processes[0];
	EXPECT_EQUAL(process->flight_count, 0);
	EXPECT_EQUAL(recording_account(&before, process), OK);
	EXPECT_EQUAL(recording_find_flights(&recording), OK);
	is_same = process->flight_count == sizeof(wanted) / sizeof(wanted[0]);
	for (size_t i = 0; is_same && i < process->flight_count; i++)
		is_same = process->flights[i].op.comm * 1000 + process->flights[i].op.number ==
			  wanted[i];
	if (EXPECT_THAT("unfinished operations, and the last calls of living communicators",
			is_same)) {
		const struct recording_flight *flight = &process->flights[4];

		EXPECT(flight->op.state == OP_RUNNING &&
		       process->flights[5].op.state == OP_LAUNCHED);
		EXPECT_EQUAL(flight->open_children, 4);
		EXPECT_THAT("kernel channels",
			    flight->started[0] == 1 && flight->started[1] == 64 &&
				    flight->stopped[0] == 0 && flight->stopped[1] == 64);
		EXPECT_THAT("proxy operations that have not stopped", flight->proxy_count == 2);
		expect_waits(flight);
		EXPECT(process->flights[0].open_children == 0 &&
		       process->flights[0].proxy_count == 0);
	}
	EXPECT_THAT("for others", process->proxy_count == 1 && process->proxies[0].proxy.peer == 5);
	EXPECT_EQUAL(recording_account(&after, process), OK);
	EXPECT_THAT("the totals are unchanged",
		    before.kept == after.kept && before.in_flight == after.in_flight &&
			    before.missing == after.missing && after.walk.in_live == 0);
	recording_account_release(&before);
	recording_account_release(&after);
	EXPECT_EQUAL(recording_find_flights(&recording), OK);
	EXPECT_EQUAL(process->flight_count, 10);
	recording_release(&recording);
	free(sample.bytes);
}

/* A snapshot of a trace has the same in flight, and its totals agree with those of the trace. */
static void test_snapshot(void)
{
	const struct recording_process *from, *to;
	struct recording_account before, after;
	struct sample sample = hanging();
	struct recording recording, read;
	unsigned char *bytes;
	size_t length;
	bool is_same;

	sample_counts(&sample, TRACE_COUNTS, 15);
	load(&recording, &sample);
	from = recording.processes[0];
	if (recording_find_flights(&recording) != OK ||
	    recording_snapshot(from, 3, 0, &bytes, &length) != OK)
		abort();
	recording_init(&read);
	if (recording_add_memory(&read, "snapshot", bytes, length, 0) != OK ||
	    recording_finish(&read) != OK || read.count != 1)
		abort();
	to = read.processes[0];
	is_same = from->flight_count == to->flight_count && from->proxy_count == to->proxy_count;
	for (size_t i = 0; is_same && i < from->flight_count; i++) {
		const struct recording_flight *a = &from->flights[i], *b = &to->flights[i];

		is_same = a->op.comm == b->op.comm && a->op.number == b->op.number &&
			  a->op.state == b->op.state && a->open_children == b->open_children &&
			  a->proxy_count == b->proxy_count && a->started[1] == b->started[1] &&
			  a->stopped[1] == b->stopped[1];
	}
	if (EXPECT_THAT("the same is in flight", is_same))
		expect_waits(&to->flights[4]);
	EXPECT(to->counts_ns == from->counts_ns && to->is_snapshot && read.trouble_count == 0);
	EXPECT_EQUAL(recording_account(&before, from), OK);
	EXPECT_EQUAL(recording_account(&after, to), OK);
	EXPECT(before.missing == after.missing && before.in_flight == after.in_flight &&
	       before.issued == after.issued && !after.keeps_all && after.unread == 0);
	recording_account_release(&before);
	recording_account_release(&after);
	recording_release(&read);
	recording_release(&recording);
	free(bytes);
	free(sample.bytes);
}

/* One that ended has nothing in flight, whatever its records contain. */
static void test_ended(void)
{
	struct sample sample = hanging();
	struct recording recording;

	sample_counts(&sample, TRACE_CLOSE, 15);
	load(&recording, &sample);
	EXPECT_EQUAL(recording_find_flights(&recording), OK);
	EXPECT(recording.processes[0]->life == RECORDING_ENDED &&
	       recording.processes[0]->flight_count == 0);
	recording_release(&recording);
	free(sample.bytes);
}

/* If the end is never seen, calls pile up: the last ones are kept, and those seen running. */
static void test_many(void)
{
	enum { MANY = 5000 };
	struct op_record *ops = calloc(MANY, sizeof(*ops));
	struct sample sample = begin();
	const struct recording_process *process;
	struct recording recording;

	if (ops == NULL)
		abort();
	for (uint32_t i = 0; i < MANY; i++)
		ops[i] = op_of(i + 1, 1, i + 1, OP_LAUNCHED);
	put_ops(&sample, ops, MANY);
	load(&recording, &sample);
	process = recording.processes[0];
	EXPECT_EQUAL(recording_find_flights(&recording), OK);
	EXPECT_THAT("their number is bounded",
		    process->flight_count > 100 && process->flight_count <= 1024);
	EXPECT_EQUAL(process->flights[process->flight_count - 1].op.number, MANY);
	recording_release(&recording);
	ops[MANY - 1].state = OP_DONE;
	ops[17].state = OP_RUNNING;
	sample.size = 0;
	free(sample.bytes);
	sample = begin();
	put_ops(&sample, ops + 10, MANY - 10);
	load(&recording, &sample);
	process = recording.processes[0];
	EXPECT_EQUAL(recording_find_flights(&recording), OK);
	EXPECT_THAT("a finished one proves earlier ones over, unless they were seen running",
		    process->flight_count == 2 && process->flights[0].op.number == 18 &&
			    process->flights[1].op.number == MANY);
	recording_release(&recording);
	free(sample.bytes);
	free(ops);
}

/* The same operation in flight in an earlier file and done in a later one. */
static void test_repeated(void)
{
	struct op_record ops[3] = { op_of(1, 1, 1, OP_DONE), op_of(2, 1, 2, OP_RUNNING),
				    op_of(3, 1, 2, OP_DONE) };
	struct sample sample = begin();
	struct recording recording;

	put_ops(&sample, ops, 3);
	load(&recording, &sample);
	EXPECT_EQUAL(recording_find_flights(&recording), OK);
	EXPECT(recording.processes[0]->flight_count == 2 &&
	       recording.processes[0]->flights[1].op.state == OP_DONE);
	recording_release(&recording);
	free(sample.bytes);
}

int main(void)
{
	test_hanging();
	test_snapshot();
	test_ended();
	test_many();
	test_repeated();
	return tap_done();
}
