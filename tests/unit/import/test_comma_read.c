/* Reading CoMMA's lines; the files are in tests/foreign/data. */
#include "common/op.h"
#include "tests/support/foreign_play.h"
#include "tests/tap.h"

#define T0 UINT64_C(1767225600000000000)
#define US UINT64_C(1000)

static struct play play;

static void test_operations(void)
{
	const struct op_record *op = play.ops;

	EXPECT_EQUAL(play.status, OK);
	EXPECT_EQUAL(play.log.format, FOREIGN_COMMA);
	EXPECT_EQUAL(play.op_count, 6);
	EXPECT_EQUAL(play.log.damaged, 0);
	EXPECT_EQUAL(play.log.ignored, 1);
	EXPECT_EQUAL(play.log.processes[0].pid, 777);
	EXPECT_EQUAL(play.log.comms[0].info.hash, 0x1122334455667788);
	EXPECT_EQUAL(play.log.comms[0].info.rank, 3);
	EXPECT_EQUAL(play.log.comms[0].info.nranks, 0);
	EXPECT(op[0].function == OP_ALL_REDUCE && op[0].algorithm == OP_RING &&
	       op[0].protocol == OP_SIMPLE && op[0].channels == 8);
	EXPECT_EQUAL(op[0].bytes, 1 << 20);
	EXPECT_EQUAL(op[0].issue_ns, T0 + 100 * US);
	EXPECT_THAT("time is from the first transfer to the last",
		    op[0].time_source == OP_TIME_PROXY && op[0].active_ns == T0 + 150 * US &&
			    op_duration_ns(&op[0]) == 800 * US && op[0].state == OP_DONE);
	EXPECT_THAT("without transfers nothing is known about the end",
		    op[1].time_source == OP_TIME_NONE && op[1].state == OP_LAUNCHED &&
			    op[1].done_ns == 0);
	EXPECT_THAT("nor how many ranks make up the size of AllGather",
		    op[1].function == OP_ALL_GATHER && op[1].bytes == OP_BYTES_UNKNOWN &&
			    op[1].algorithm == OP_NVLS && op[1].protocol == 0);
	EXPECT_THAT("a reclaimed one has no end", op[2].state == OP_RUNNING &&
							  op[2].time_source == OP_TIME_NONE &&
							  op[2].done_ns == 0);
	EXPECT(op[3].function == OP_SEND && op[3].peer == 6 && op[3].bytes == 32768 &&
	       op_duration_ns(&op[3]) == 250 * US && op[3].match == 0);
	EXPECT(op[4].function == OP_RECV && op[4].peer == 2);
	EXPECT(op[5].function == OP_FUNCTION_UNKNOWN && op[5].match == 0);
	EXPECT_THAT("match numbers differ by function",
		    op[0].match != 0 && op[1].match != 0 && op[0].match != op[1].match);
	EXPECT_THAT("what NCCL counted and CoMMA left out counts as missing",
		    foreign_not_recorded(&play.log, 0) == 1);
}

static void test_details(void)
{
	const struct op_detail *detail = play.details;

	EXPECT_EQUAL(play.detail_count, 5);
	EXPECT(detail[0].kind == OP_DETAIL_STEP && detail[0].number == 1 && detail[0].peer == 4 &&
	       detail[0].channel == 1 && detail[0].flags == OP_DETAIL_IS_SEND);
	EXPECT_EQUAL(detail[0].time_ns[0], T0 + 160 * US);
	EXPECT_EQUAL(detail[0].time_ns[1], T0 + 170 * US);
	EXPECT_EQUAL(detail[0].time_ns[3], T0 + 200 * US);
	EXPECT_EQUAL(detail[2].kind, OP_DETAIL_PROXY);
	EXPECT_EQUAL(detail[2].time_ns[3], T0 + 850 * US);
	EXPECT_THAT("steps on a clock of their own are left out, and counted",
		    detail[3].kind == OP_DETAIL_PROXY && detail[3].flags == 0 &&
			    play.log.skipped_details == 1);
	EXPECT_THAT("a transfer for another process has no communicator",
		    detail[4].comm == 0 && detail[4].origin_pid == 888 &&
			    detail[4].flags == (OP_DETAIL_IS_SEND | OP_DETAIL_IS_FOREIGN));
	EXPECT_EQUAL(play.log.processes[0].details, 5);
}

static void test_refusals(void)
{
	play_text(&play, "{\"ph\":\"X\",\"cat\":\"COLL\",\"comm_hash\":\"0x1\",\"ts\":5}\n"
			 "{\"ph\":\"X\",\"cat\":\"COLL\",\"comm_hash\":\"what\",\"ts\":5}\n"
			 "{\"ph\":\"X\",\"cat\":\"COLL\",\"comm_hash\":\"0x11223344556677889\"}\n"
			 "{\"ph\":\"X\",\"cat\":\"COLL\",\"seq_num\":-1}\n"
			 "{\"ph\":\"X\",\"cat\":\"COLL\",\"proxyops\":[7]}\n"
			 "{\"ph\":\"X\",\"cat\":\"COLL\",\"proxyops\":[{\"steps\":[[]]}]}\n");
	EXPECT_EQUAL(play.op_count, 1);
	EXPECT_EQUAL(play.damage_count, 5);
	EXPECT_THAT("an old clock that starts with CoMMA is not wall time",
		    !foreign_is_wall(play.ops[0].issue_ns) && foreign_is_wall(T0));
	play_data(&play, "comma-summary.txt");
	EXPECT_THAT("a summary has no operations",
		    play.status == ERR_UNKNOWN && play.log.format == FOREIGN_COMMA_SUMMARY);
}

/* null is the same as missing. */
static void test_nulls(void)
{
	play_text(&play,
		  "{\"ph\":\"X\",\"cat\":\"COLL\",\"comm_hash\":\"0x1\",\"ts\":5,\"args\":null,"
		  "\"proxyops\":null}\n"
		  "{\"ph\":\"X\",\"cat\":\"COLL\",\"comm_hash\":\"0x1\",\"ts\":6,\"seq_num\":null,"
		  "\"proxyops\":[{\"steps\":null}]}\n");
	EXPECT(play.op_count == 2 && play.damage_count == 0);
}

int main(void)
{
	test_nulls();
	play_data(&play, "comma-latency.txt");
	test_operations();
	test_details();
	test_refusals();
	return tap_done();
}
