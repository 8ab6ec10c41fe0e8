/* ringside dump: operations and details as JSON lines. */
#include "tests/support/command_play.h"
#include "tests/tap.h"

int main(void)
{
	static const char *const lines[] = {
		"dump --details traces --rank 0",
		"dump stuck --op Send",
		"dump open --op Broadcast",
		"dump traces --op allreduce,AllGather --rank 1 --since 3ms",
		"dump traces --op allreduce,AllGather --rank 1 --since 1ms --until 2ms",
		"dump traces --details --until 1ms",
		"dump traces --details --comm tp --since 1us --until 2us",
		"dump traces --op Reduce",
		"dump traces --op ''",
		"dump traces --op AllReduce,,Send",
		"dump traces --op Al1Reduce",
		"dump traces --op Nothing",
		"dump traces --tag 0 --op Broadcast --rank 0",
		"dump traces --tag 7",
		"dump traces --tag 0x",
		"dump traces --tag -1",
		"dump traces --tag 99999999999999999999999",
		"dump damaged --op Send",
		"dump nowhere",
		"dump -j ended --op Broadcast",
		NULL,
	};
	size_t length;
	char *bytes;

	command_begin();
	command_play.most_json = 130;
	command_make("traces");
	command_make("open");
	command_make("stuck");
	command_make("ended");
	bytes = command_read(command_path("traces/r0-nodea-999999990-4242.ringside"), &length);
	memcpy(bytes + 700, "XXXX", 4);
	command_write("damaged", bytes, length);
	free(bytes);
	command_each(lines);
	EXPECT_THAT("dump prints what is expected",
		    command_expected("tests/unit/cmds/expected/dump"));
	return tap_done();
}
