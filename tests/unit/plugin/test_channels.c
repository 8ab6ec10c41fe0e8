/*
 * Channels and transfers that differ from what was announced: defects D10, D11, D16 to D18 and D30
 * of docs/HACKING.md.
 */
#include "common/op.h"
#include "plugin/abi_v4.h"
#include "tests/support/plugin_host.h"
#include "tests/unit/plugin/stamp_play.h"
#include "tests/tap.h"

/* ---- D10, D11, D16, D17 ---------------------------------------------------------------------- */

/* A send with any number of announced channels, up to its P2p event. */
static void *send_with_channels(void *context, uint8_t announced)
{
	struct abi_descr_v5 descr = { .type = ABI_GROUP_API };
	void *api = play_p2p_api(context, play_start(context, descr), "Send", 1024);

	descr = (struct abi_descr_v5){ .type = ABI_P2P, .parent = api };
	descr.p2p.function = "Send";
	descr.p2p.datatype = "ncclFloat32";
	descr.p2p.count = 1024;
	descr.p2p.peer = 1;
	descr.p2p.channels = announced;
	return play_start(context, descr);
}

/* Started and stopped on channels [first, last], 1 us each, one span of 20 us. */
static void run_channels(void *context, void *task, unsigned int first, unsigned int last)
{
	uint64_t gpu = stamp_gpu(stamp_now_ns + 10000);
	void *kernels[256];

	stamp_move(15000);
	for (unsigned int i = first; i <= last; i++)
		kernels[i] = play_kernel_start(context, task, (uint8_t)i, gpu);
	stamp_move(20000);
	for (unsigned int i = first; i <= last; i++)
		play_kernel_stop(kernels[i], gpu + 20000);
	stamp_move(10000);
}

static bool is_done_in_20_us(const struct op_record *op, unsigned int kernels)
{
	return op->state == OP_DONE && op->time_source == OP_TIME_KERNEL_GPU &&
	       op_duration_ns(op) == 20000 && op->kernels_started == kernels &&
	       op->kernels_stopped == kernels;
}

static void channels_need_not_begin_with_0(void)
{
	void *context = play_init(1, 1, 2, 0);

	run_channels(context, send_with_channels(context, 4), 4, 7);
	ncclProfiler_v5.finalize(context);
	EXPECT_THAT("D10: a send on channels 4 to 7 is recorded with its time",
		    is_done_in_20_us(play_record(1), 4));
	EXPECT_THAT("D10: and nothing is marked", play_record(1)->flags == 0);
}

static void fewer_channels_than_announced(void)
{
	void *context = play_init(2, 1, 2, 0);
	uint32_t id = hot_comm(context)->shared->info.id;

	for (int i = 0; i < 1000; i++)
		run_channels(context, send_with_channels(context, 4), 0, 1);
	EXPECT_THAT("D11: operations with fewer channels than announced do not pile up",
		    recorder.region.comms[id - 1].counts.recorded >= 900);
	ncclProfiler_v5.finalize(context);
	EXPECT_THAT("D11: each is done, with a time",
		    is_done_in_20_us(play_record(1), 2) && is_done_in_20_us(play_record(100), 2));
	EXPECT_THAT("D11: and what is missing is marked",
		    play_record(1)->flags & OP_FLAG_CHANNELS_MISSING);
}

static void the_announced_number_is_not_believed(void)
{
	static const struct {
		const char *sentence;
		uint8_t announced;
		unsigned int first, last;
	} cases[] = {
		{ "D16: 224 channels announced, two come", 224, 0, 1 },
		{ "D16: 0 announced, as when 256 do not fit, two come", 0, 0, 1 },
		{ "D16: 1 announced, eight come", 1, 0, 7 },
		{ "D17: channel 255", 1, 255, 255 },
		{ "D17: channels 60 to 255", 196, 60, 255 },
		{ "D17: all 256 channels", 0, 0, 255 },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		void *context = play_init(3, 1, 2, 0);

		run_channels(context, send_with_channels(context, cases[i].announced),
			     cases[i].first, cases[i].last);
		ncclProfiler_v5.finalize(context);
		EXPECT_THAT(cases[i].sentence,
			    is_done_in_20_us(play_record(1), cases[i].last - cases[i].first + 1));
	}
}

/* Proxy operations have channels, too. */
static void proxies_on_any_channel(void)
{
	void *context = play_init(4, 2, 2, 0), *proxies[256], *step;
	void *task = send_with_channels(context, 0);

	for (unsigned int i = 0; i < 256; i++) {
		proxies[i] = play_proxy_start(context, task, getpid(), (uint8_t)i, 1, true);
		step = play_step_start(context, proxies[i], 0);
		play_state(step, ABI_STEP_SEND_GPU_WAIT, 0);
		play_stop(step);
	}
	for (unsigned int i = 0; i < 256; i++)
		play_stop(proxies[i]);
	ncclProfiler_v5.finalize(context);
	EXPECT_THAT("D17: proxy operations on all 256 channels",
		    play_record(1)->state == OP_DONE && play_record(1)->send_steps == 256);
}

/* ---- D18 ------------------------------------------------------------------------------------- */

/* v1 to v4 have one byte of type; the next seven are whatever was on the stack. */
static void garbage_behind_the_type_is_not_read(void)
{
	void *context = NULL, *task = NULL, *kernel = NULL;
	struct abi_descr_v4 descr;
	union abi_args_v4 args;
	int mask = 0;

	ncclProfiler_v4.init(&context, &mask, NULL, 5, 1, 2, 0, NULL);
	memset(&descr, 0xa5, sizeof(descr));
	descr.type = ABI_COLL;
	descr.parent = NULL;
	descr.coll.function = "AllReduce";
	descr.coll.datatype = "ncclFloat32";
	descr.coll.algorithm = "RING";
	descr.coll.protocol = "LL";
	descr.coll.count = 1024;
	descr.coll.channels = 1;
	ncclProfiler_v4.start_event(context, &task, &descr);
	memset(&descr, 0xa5, sizeof(descr));
	descr.type = ABI_KERNEL_CH;
	descr.parent = task;
	descr.kernel_ch.channel = 0;
	descr.kernel_ch.gpu_ns = stamp_gpu(stamp_now_ns);
	ncclProfiler_v4.start_event(context, &kernel, &descr);
	args.kernel_ch.gpu_ns = stamp_gpu(stamp_now_ns) + 700;
	ncclProfiler_v4.record_event_state(kernel, ABI_KERNEL_CH_STOP, &args);
	ncclProfiler_v4.stop_event(kernel);
	ncclProfiler_v4.finalize(context);
	EXPECT_THAT("D18: garbage after a one-byte type does not hide a kernel channel",
		    play_record(1)->kernels_stopped == 1 && op_duration_ns(play_record(1)) == 700 &&
			    play_record(1)->bytes == 4096);
}

/* ---- D30 ------------------------------------------------------------------------------------- */

static void transfers_that_are_never_stopped(int release)
{
	struct plugin_host made = plugin_host_new(release, false, 2);
	struct host_op op = host_op_make(made.comm, OP_ALL_REDUCE, 1 << 20, OP_FLOAT32);
	uint32_t used = 0;

	op.has_network = true;
	op.steps = 20;
	op.channels = 2;
	op.quirks = HOST_QUIRK_STEP_STOP_LOST;
	for (int i = 0; i < 50; i++)
		plugin_host_play(&made, &op);
	host_comm_settle(made.comm);
	plugin_host_end(&made);
	EXPECT_THAT("D30: with stops of transfers missing every operation ends",
		    plugin_host_comm(made.id)->counts.recorded == 50 &&
			    plugin_host_comm(made.id)->counts.timed == 0 &&
			    plugin_host_comm(made.id)->counts.abandoned == 0);
	EXPECT_THAT("D30: the others are counted correctly",
		    plugin_host_record(made.id, 1)->send_steps == 40);
	EXPECT_THAT("D30: no wait is longer than the operation",
		    plugin_host_record(made.id, 1)->wait_ns[OP_WAIT_RECV_NET] <=
			    40 * (plugin_host_record(made.id, 1)->done_ns -
				  plugin_host_record(made.id, 1)->issue_ns));
	for (uint32_t i = 0; i < recorder.region.proxy_count; i++)
		used += region_slot_is_used(recorder.region.proxies[i].word);
	EXPECT_THAT("D30: nothing stays open", used == 0);
}

int main(void)
{
	struct clock_source clock;

	play_setup("flight");
	ncclProfiler_v5.finalize(play_init(0, 1, 1, 0));
	recorder.region.header->comms_made = 0;
	memset(recorder.region.comms, 0, sizeof(*recorder.region.comms));
	clock = recorder.clock;
	stamp_move(0);
	channels_need_not_begin_with_0();
	fewer_channels_than_announced();
	the_announced_number_is_not_believed();
	proxies_on_any_channel();
	garbage_behind_the_type_is_not_read();
	recorder.clock = clock;
	transfers_that_are_never_stopped(HOST_NCCL_2_24);
	transfers_that_are_never_stopped(HOST_NCCL_2_26);
	return tap_done();
}
