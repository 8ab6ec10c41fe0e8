/* CoMMA's latency file: the input as is, and after a valid line. */
#include "fuzz/fuzz_foreign.inc"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	read_bytes("", data, size);
	read_bytes("{\"cat\":\"COLL\",\"comm_hash\":\"0x12\",\"name\":\"reduce\",\"ph\":\"X\","
		   "\"rank\":0,"
		   "\"seq_num\":3,\"ts\":1767225600000000}\n",
		   data, size);
	return 0;
}
