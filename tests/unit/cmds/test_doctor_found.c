/* The summary of NCCL's logs: every fact, of a log that was made by hand, as text and as JSON. */
#include <stdlib.h>
#include <string.h>

#include "cmds/doctor_case.h"
#include "common/attributes.h"
#include "import/nccl_log.h"
#include "output/json.h"
#include "tests/support/expected_output.h"
#include "tests/tap.h"

static struct nccl_log_file files[] = { { .name = "a.log" }, { .name = "b.log" } };
static struct nccl_log_process processes[] = {
	{ "node1", 41, 0, 0, "2.28.9", "13.0", "v2.28.9-1", 13000, .lines = 7, .first = { 0, 1 } },
	{ "node2", 42, -1, 1, "2.28.9", "13.0", "", 13000, .lines = 8, .first = { 1, 2 } },
	{ "", -1, 0, -1, "", "", "", 0, .lines = 9, .first = { 1, 3 } },
};
static struct nccl_log_comm comms[] = {
	{ .process = 0,
	  .hash = 0xabc,
	  .rank = 0,
	  .nranks = 2,
	  .nnodes = 2,
	  .cuda_device = 0,
	  .nvml_device = 0,
	  .bus_id = 0x1b000,
	  .start = { 0, 10 },
	  .complete = { 0, 20 },
	  .end_word = "Destroy",
	  .total_s = 1.5,
	  .phase_s = { 0.25, -1, 0.5, 0, -1, 0.125, -1, 0.75 },
	  .coll_channels = 0,
	  .nvls_channels = 16,
	  .p2p_channels = 32 },
	{ .process = 1,
	  .hash = 0xabc,
	  .rank = 1,
	  .nranks = 2,
	  .nnodes = -1,
	  .cuda_device = 1,
	  .nvml_device = -1,
	  .complete = { 1, 21 },
	  .end_word = "",
	  .total_s = 2.5,
	  .phase_s = { -1, -1, -1, -1, -1, -1, 2.0, 0.5 },
	  .coll_channels = -1,
	  .nvls_channels = -1,
	  .p2p_channels = -1 },
	{ .process = 1,
	  .hash = 0xdef,
	  .rank = 0,
	  .nranks = 4,
	  .nnodes = 0,
	  .cuda_device = -1,
	  .nvml_device = 3,
	  .start = { 1, 22 },
	  .end_word = "Abort",
	  .total_s = 2.5,
	  .phase_s = { 1, 1, 1, 1, 1, 1, 1, 1 },
	  .coll_channels = 4,
	  .nvls_channels = 0,
	  .p2p_channels = 0 },
	{ .process = 0,
	  .hash = 0xdef,
	  .rank = 3,
	  .nranks = 4,
	  .nnodes = 1,
	  .cuda_device = -1,
	  .nvml_device = -1,
	  .start = { 0, 23 },
	  .end_word = "",
	  .total_s = -1,
	  .coll_channels = 4,
	  .nvls_channels = 0,
	  .p2p_channels = 0 },
};
static struct nccl_log_link links[] = {
	{ .process = 0,
	  .comm = 0,
	  .from = 0,
	  .to = 1,
	  .direction = 's',
	  .connection = 0,
	  .transport = NCCL_LOG_NET,
	  .network = "IB",
	  .device = 3,
	  .flags = NCCL_LOG_LINK_GDR,
	  .through = -1,
	  .channels = { 1ULL | 1ULL << 63, 1ULL | 1ULL << 63 },
	  .place = { 0, 30 } },
	{ .process = 1,
	  .comm = -1,
	  .from = -1,
	  .to = 0,
	  .direction = 'r',
	  .connection = 1,
	  .transport = NCCL_LOG_P2P_IPC,
	  .network = "",
	  .device = -1,
	  .through = 5,
	  .flags = NCCL_LOG_LINK_PXN | NCCL_LOG_LINK_SHARED,
	  .channels = { 6, 0 },
	  .place = { 1, 31 } },
	{ .process = 1,
	  .comm = 1,
	  .from = 1,
	  .to = -1,
	  .direction = '-',
	  .connection = -1,
	  .transport = NCCL_LOG_NET,
	  .network = "IB",
	  .device = 0,
	  .flags = NCCL_LOG_LINK_GDR,
	  .through = 0,
	  .channels = { 0, 2 },
	  .place = { 1, 32 } },
};
static struct nccl_log_channel channels[] = {
	{ 0, 0, 1, 2, -1, { 0, -1, 2 }, "0 1 2 3", { 0, 40 } },
	{ 1, 1, -2, -2, 3, { -2, -2, -2 }, "", { 1, 41 } },
};
static struct nccl_log_net nets[] = {
	{ .process = 0,
	  .network = "IB",
	  .index = 0,
	  .name = "mlx5_0",
	  .port = 1,
	  .link = "RoCE",
	  .address = "",
	  .gdr = 1,
	  .place = { 0, 50 } },
	{ .process = 1,
	  .network = "IB",
	  .index = 1,
	  .name = "mlx5_1",
	  .port = 2,
	  .link = "IB",
	  .address = "",
	  .gdr = 0,
	  .place = { 1, 51 } },
	{ .process = 1,
	  .network = "Socket",
	  .index = 0,
	  .name = "eth0",
	  .port = -1,
	  .link = "",
	  .address = "10.0.0.1",
	  .gdr = -1,
	  .place = { 1, 52 } },
};
static struct nccl_log_variable variables[] = {
	{ 0, "NCCL_ALGO", "Ring", { 0, 60 }, 1 },
	{ 1, "NCCL_ALGO", "Ring", { 1, 61 }, 1 },
	{ 1, "NCCL_DEBUG", "INFO\033[0m", { 1, 62 }, 1 },
};
static struct nccl_log_plugin plugins[] = {
	{ 0, "NET", "libnccl-net.so", 8, NCCL_LOG_PLUGIN_LOADED, "loaded it", { 0, 70 }, 1 },
	{ 0, "TUNER", "libnccl-tuner.so", -1, NCCL_LOG_PLUGIN_NOT_FOUND, "none", { 0, 71 }, 1 },
	{ 1, "ENV", "x", -1, NCCL_LOG_PLUGIN_FAILED, "bad", { 1, 72 }, 1 },
	{ 1, "GIN", "y", -1, NCCL_LOG_PLUGIN_INTERNAL, "own", { 1, 73 }, 1 },
};
static struct nccl_log_choice choices[] = {
	{ "AllReduce", 1024, "Ring", "LL", 2, -1, 5, { 0, 80 } },
	{ "", 2048, "Tree", "", -1, -1, 1, { 1, 81 } },
	{ "AllReduce", 1024, "Ring", "LL", 0, -1, 4, { 1, 82 } },
};
static struct nccl_log_cost costs[] = {
	{ "AllReduce", "Ring", "LL", 12.5, 3.5, { 0, 90 } },
	{ "Broadcast", "Ring", "Simple", 20, 100, { 0, 91 } },
};
static struct nccl_log_queue queues[] = {
	{ .process = 0,
	  .device = "mlx5_3",
	  .port = 1,
	  .number = 77,
	  .peer = "10.0.0.2",
	  .remote_number = 78,
	  .remote_port = 2,
	  .local_lid = 3,
	  .remote_lid = 4,
	  .local_gid = "fe80::1",
	  .remote_gid = "fe80::2",
	  .threshold_ns = 5,
	  .slow_lines = 6,
	  .slowest_ns = 7,
	  .stall_lines = 8,
	  .stall_ns = 9,
	  .is_stalled = true,
	  .samples = 10,
	  .slow_samples = 11,
	  .median_ns = 12,
	  .p99_ns = 13,
	  .last = { 0, 100 } },
	{ .process = 1,
	  .device = "mlx5_4",
	  .port = -1,
	  .number = 79,
	  .peer = "",
	  .remote_number = -1,
	  .remote_port = -1,
	  .local_lid = -1,
	  .remote_lid = -1,
	  .local_gid = "",
	  .remote_gid = "",
	  .last = { 1, 101 } },
};
static struct nccl_log_diagnosis diagnoses[] = {
	{ 0, "NVLink: inactive", 0xabc, { 3, 5 }, 2, 4, { 0, 110 } },
	{ 1, "NIC", 0, { 0 }, 0, 1, { 1, 111 } },
};
static struct nccl_log_other others[30];
static char beginnings[30][16];

static struct nccl_log make_log(void)
{
	struct nccl_log log = { .files = files,
				.file_count = ARRAY_LENGTH(files),
				.processes = processes,
				.process_count = ARRAY_LENGTH(processes),
				.comms = comms,
				.comm_count = ARRAY_LENGTH(comms),
				.links = links,
				.link_count = ARRAY_LENGTH(links),
				.channels = channels,
				.channel_count = ARRAY_LENGTH(channels),
				.nets = nets,
				.net_count = ARRAY_LENGTH(nets),
				.variables = variables,
				.variable_count = ARRAY_LENGTH(variables),
				.plugins = plugins,
				.plugin_count = ARRAY_LENGTH(plugins),
				.choices = choices,
				.choice_count = ARRAY_LENGTH(choices),
				.costs = costs,
				.cost_count = ARRAY_LENGTH(costs),
				.queues = queues,
				.queue_count = ARRAY_LENGTH(queues),
				.diagnoses = diagnoses,
				.diagnosis_count = ARRAY_LENGTH(diagnoses),
				.diagnoses_fine = 12,
				.others = others,
				.other_count = 2,
				.nccl_lines = 1234,
				.cut_lines = 3,
				.left_out = 4 };

	log.kinds[NCCL_LOG_KIND_OTHER] = 2;
	log.kinds[NCCL_LOG_KIND_INIT] = 1;
	log.kinds[NCCL_LOG_KINDS - 1] = 5;
	return log;
}

int main(void)
{
	struct nccl_log log = make_log(), few = { .nccl_lines = 2 };
	struct sink text, all;
	struct json json;

	for (size_t i = 0; i < ARRAY_LENGTH(others); i++) {
		snprintf(beginnings[i], sizeof(beginnings[i]), "line %zu", i);
		others[i] = (struct nccl_log_other){ beginnings[i], i + 1, { 1, 120 + i } };
	}
	sink_init_memory(&text);
	doctor_found_text(&text, &log);
	/* The slowest is the first. */
	log.comm_count = 1;
	log.nccl_lines = 999;
	doctor_found_text(&text, &log);
	/* Only so many rows of a kind are shown. */
	few.others = others;
	few.other_count = 24;
	doctor_found_text(&text, &few);
	few.other_count = ARRAY_LENGTH(others);
	doctor_found_text(&text, &few);
	EXPECT_THAT("as text", expected_text(&text, "tests/unit/cmds/expected/found.txt"));

	log = make_log();
	sink_init_memory(&all);
	json_init(&json, &all);
	json_object(&json);
	doctor_found_json(&json, &log);
	json_end(&json);
	json_line(&json);
	EXPECT_THAT("as JSON", expected_json(&all, "tests/unit/cmds/expected/found.json"));
	return tap_done();
}
