/* NCCL Inspector's log: the input as is, and after a valid line. */
#include "fuzz/fuzz_foreign.inc"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	read_bytes("", data, size);
	read_bytes(
		"{\"header\":{\"id\":\"0x12\",\"comm_name\":\"w\",\"rank\":0,\"n_ranks\":4,"
		"\"nnodes\":1},"
		"\"metadata\":{\"inspector_output_format_version\":\"v4.3\",\"dump_timestamp_us\":"
		"1767225600000000,\"hostname\":\"h\",\"pid\":7},\"dump_stats\":{\"coll_records\":2,"
		"\"p2p_records\":1,\"proxy_records\":1}}\n",
		data, size);
	return 0;
}
