#include "output/recorded.h"

#include <string.h>

#include "tests/tap.h"

static struct recording_comm comm = { .info = { .id = 1 } };
static struct recording_process process = { .comms = &comm, .comm_count = 1 };
static char words[FLIGHT_WORDS];

static struct recording_flight flight(uint8_t function, uint8_t state)
{
	return (struct recording_flight){ .op = { .comm = 1,
						  .function = function,
						  .state = state,
						  .root = OP_NOBODY,
						  .peer = OP_NOBODY } };
}

static int same(const char *got, const char *wanted)
{
	if (strcmp(got, wanted) == 0)
		return 1;
	printf("# got: %s\n", got);
	return 0;
}

static void test_operation(void)
{
	struct recording_flight of = flight(OP_SEND, OP_RUNNING);

	EXPECT_THAT("a Send with an unknown peer",
		    same(flight_words_operation(&process, &of, words), "Send"));
	of.op.peer = 3;
	EXPECT_THAT("a Send names its peer",
		    same(flight_words_operation(&process, &of, words), "Send to 3"));
	of.op.function = OP_RECV;
	EXPECT_THAT("so does a Recv",
		    same(flight_words_operation(&process, &of, words), "Recv from 3"));
	of = flight(OP_BROADCAST, OP_RUNNING);
	of.op.root = 0;
	EXPECT_THAT("a Broadcast names its root",
		    same(flight_words_operation(&process, &of, words), "Broadcast from 0"));
	of = flight(OP_ALL_REDUCE, OP_RUNNING);
	of.op.flags = OP_FLAG_REPLAY;
	EXPECT_THAT("a replay is marked",
		    same(flight_words_operation(&process, &of, words), "AllReduce (graph)"));
}

static void test_kernel(void)
{
	struct recording_flight of = flight(OP_ALL_REDUCE, OP_ISSUED);

	EXPECT_THAT("before its launch",
		    same(flight_words_kernel(&process, &of, words), "NCCL has not launched it"));
	of.op.state = OP_LAUNCHED;
	EXPECT_THAT("no text about kernels without kernel events",
		    same(flight_words_kernel(&process, &of, words), ""));
	comm.info.flags = COMM_FLAG_SEES_KERNELS;
	EXPECT_THAT("with kernel events it is known not to have started",
		    same(flight_words_kernel(&process, &of, words),
			 "kernel: the GPU has not reached it"));
	of.started[0] = 7;
	of.stopped[0] = 1;
	EXPECT_THAT("channels are counted", same(flight_words_kernel(&process, &of, words),
						 "kernel: 3 channels started, 1 stopped"));
	of.op.channels = 8;
	EXPECT_THAT("of the announced number", same(flight_words_kernel(&process, &of, words),
						    "kernel: 3 of 8 channels started, 1 stopped"));
	of.op.channels = 2;
	EXPECT_THAT("unless that is implausible", same(flight_words_kernel(&process, &of, words),
						       "kernel: 3 channels started, 1 stopped"));
}

static void test_waits(void)
{
	struct flight_wait wait = { .reason = FLIGHT_RECV_NET, .peer = 5 };
	char channels[FLIGHT_CHANNELS_TEXT];
	size_t length;

	EXPECT_THAT("a wait without channels",
		    same(flight_words_wait(&wait, words), "waits for data from rank 5"));
	wait.channels[1] = 1;
	EXPECT_THAT("on one", same(flight_words_wait(&wait, words),
				   "waits for data from rank 5 on channel 64"));
	wait.channels[0] = UINT64_C(1) << 63 | 0x8f;
	wait.channels[3] = UINT64_C(1) << 63;
	EXPECT_THAT("on several, in ranges, over the edges of words",
		    same(flight_words_wait(&wait, words),
			 "waits for data from rank 5 on channels 0-3,7,63-64,255"));
	memset(wait.channels, 0x55, sizeof(wait.channels));
	length = strlen(flight_words_channels(wait.channels, channels));
	EXPECT_THAT("too many ranges are cut", length == sizeof(channels) - 1);
	flight_words_wait(&wait, words);
	EXPECT_THAT("also in sentences", strlen(words) < sizeof(words));
	memset(wait.channels, 0, sizeof(wait.channels));
	EXPECT_THAT("no channels, no text",
		    same(flight_words_channels(wait.channels, channels), ""));
}

int main(void)
{
	test_operation();
	test_kernel();
	test_waits();
	return tap_done();
}
