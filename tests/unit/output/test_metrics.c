/* What metrics say of looks made by hand; how it is written is read by other programs in tests/metrics. */
#include <fcntl.h>
#include <unistd.h>

#include "common/text.h"
#include "tests/unit/output/metrics_read.h"

/* ---- one member ------------------------------------------------------------------------------ */

static void test_member(void)
{
	struct play play = { 0 };
	struct recording_process *process = play_process(&play, "j", 3);
	struct recording_comm *comm = play_comm(process, 0xab, "dp", 3, 4);
	struct region_total *total =
		play_total(process, comm, OP_ALL_REDUCE, 1 << 20, 4, 1000000001);
	char *text;

	play_total(process, comm, OP_ALL_REDUCE, (1 << 20) + 7, 1, 5);
	play_total(process, comm, OP_SEND, 0, 2, 1000);
	play_total(process, comm, OP_ALL_GATHER, 1 << 20, 1, 1000000000);
	total->timed = 3;
	total->timed_bytes = 3 << 20;
	total->sum_ns = 3000000003;
	total->buckets[histogram_bucket(1000000001)] = 3;
	comm->counts.issued = 9;
	comm->counts.collectives = 6;
	comm->counts.untrusted = 1;
	comm->counts.signature = UINT64_C(0xfff123456789abcd);
	text = metrics_of(&play);
	says("issued", text, "nccl_operations_issued_total{" DP "}", "9");
	says("finished", text, "nccl_operations_finished_total{" DP "}", "8");
	says("of one class of sizes", text,
	     "nccl_operations_total{" DP ",function=\"AllReduce\",size=\"1MiB\"}", "5");
	says("of nothing", text, "nccl_operations_total{" DP ",function=\"Send\",size=\"0\"}", "2");
	says("bytes, timed or not", text,
	     "nccl_operation_bytes_total{" DP ",function=\"AllReduce\",size=\"1MiB\"}", "5242887");
	says("timed bytes", text,
	     "nccl_operation_timed_bytes_total{" DP ",function=\"AllReduce\",size=\"1MiB\"}",
	     "4194311");
	says("bus bytes: 1.5 times for AllReduce over 4", text,
	     "nccl_operation_bus_bytes_total{" DP ",function=\"AllReduce\",size=\"1MiB\"}",
	     "6291466.5");
	says("seconds have all their digits", text,
	     "nccl_operation_seconds_total{" DP ",function=\"AllReduce\",size=\"1MiB\"}",
	     "3.000000008");
	says("what is not timed is in no histogram", text,
	     "nccl_operation_duration_seconds_count{" DP ",function=\"AllReduce\"}", "4");
	says("a second and a nanosecond is more than a second", text,
	     "nccl_operation_duration_seconds_bucket{" DP ",function=\"AllReduce\",le=\"1.0\"}",
	     "1");
	says("a second is not", text,
	     "nccl_operation_duration_seconds_bucket{" DP ",function=\"AllGather\",le=\"1.0\"}",
	     "1");
	says("and less than four", text,
	     "nccl_operation_duration_seconds_bucket{" DP ",function=\"AllReduce\",le=\"4.0\"}",
	     "4");
	says("what NCCL chose", text,
	     "nccl_algorithm_operations_total{" DP
	     ",function=\"AllReduce\",algorithm=\"RING\",protocol=\"SIMPLE\"}",
	     "5");
	says("its number", text, "nccl_collective_number_issued{" DP "}", "6");
	says("the signature's low 52 bits", text, "nccl_collective_signature{" DP "}",
	     "320255973501901");
	says("nothing in flight", text, "nccl_oldest_operation_age_seconds{" DP "}", "0");
	says("rejected timestamps", text, "nccl_untrusted_times_total{" DP "}", "1");
	says("no replays, no count", text, "nccl_collective_number_replayed{" DP "}", NULL);
	says("no other", text, "nccl_operations_issued_total{nccl_job=\"j\",comm=\"other\"}", NULL);
	free(text);
	play_release(&play);
}

#define OLD "nccl_oldest_operation_info{" DP ","
#define OLD_WAIT "nccl_oldest_operation_wait_seconds{" DP ","

static void test_oldest(void)
{
	struct play play = { 0 };
	struct recording_process *process = play_process(&play, "j", 3);
	struct live *live;
	char *text;

	play_comm(process, 0xab, "dp", 3, 4);
	process->flights[0].op = (struct op_record){ .function = OP_RECV,
						     .number = 12,
						     .count = 7,
						     .state = OP_RUNNING,
						     .root = OP_NOBODY,
						     .peer = 2,
						     .issue_ns = 5000000000 };
	live = play_look(&play);
	live->seats[0].oldest = &process->flights[0];
	live->seats[0].oldest_age_ns = 1000000000;
	live->seats[0].in_flight = 2;
	text = written(live, NULL, -1);
	says("age in seconds", text, "nccl_oldest_operation_age_seconds{" DP "}", "1");
	EXPECT_THAT("nobody tells of what is a second old", !strstr(text, OLD));
	free(text);
	live->seats[0].oldest_age_ns = 1000000001;
	text = written(live, NULL, -1);
	says("of what is older, one does", text,
	     OLD "function=\"Recv\",count=\"7\",number=\"12\",state=\"running\",peer=\"2\"}", "1");
	EXPECT_THAT("what nobody knows to wait has no waits", !strstr(text, OLD_WAIT));
	free(text);
	live->seats[0].oldest_age_ns = 9000000000;
	live->seats[0].wait_count = 2;
	live->seats[0].waits[0] = (struct flight_wait){
		.reason = FLIGHT_SEND_PEER, .peer = 1, .since_ns = 7000000000, .channels = { 0x107 }
	};
	live->seats[0].waits[1] = (struct flight_wait){ .reason = FLIGHT_RECV_NET,
							.peer = 0,
							.since_ns = UINT64_MAX };
	text = written(live, NULL, -1);
	says("with what it waits for", text,
	     OLD "function=\"Recv\",count=\"7\",number=\"12\",state=\"running\","
		 "waits_for=\"send_peer\",peer=\"1\"}",
	     "1");
	says("and since when, on which channels", text,
	     OLD_WAIT "waits_for=\"send_peer\",peer=\"1\",channels=\"0-2,8\"}", "7");
	says("a time that cannot be is none", text, OLD_WAIT "waits_for=\"recv_net\",peer=\"0\"}",
	     "0");
	free(text);
	play_release(&play);
}

/* Both sides of a call that differs: what it is, which one, and the hash up to it. */
static void test_collective(void)
{
	struct play play = { 0 };
	struct recording_process *process = play_process(&play, "j", 3);
	struct recording_comm *comm = play_comm(process, 0xab, "dp", 3, 4);
	struct live *live;
	char *text;

	comm->info.flags = COMM_FLAG_SEES_KERNELS;
	process->flights[0] = (struct recording_flight){
		.op = { .comm = 1,
			.function = OP_BROADCAST,
			.datatype = OP_BFLOAT16,
			.number = 12,
			.match = 11,
			.count = UINT64_MAX,
			.signature = UINT64_C(0xfff0000000000001),
			.flags = OP_FLAG_REPLAY,
			.state = OP_LAUNCHED,
			.root = 2,
			.peer = OP_NOBODY },
	};
	live = play_look(&play);
	live->seats[0].oldest = &process->flights[0];
	live->seats[0].oldest_age_ns = 2000000000;
	text = written(live, NULL, -1);
	says("a collective with all that ranks must agree on", text,
	     OLD "function=\"Broadcast\",count=\"18446744073709551615\",datatype=\"bfloat16\","
		 "root=\"2\",number=\"12\",match=\"11\",signature=\"1\",replay=\"true\","
		 "state=\"launched\",kernels_started=\"none\",kernels_stopped=\"none\"}",
	     "1");
	free(text);
	process->flights[0].started[0] = 0xff;
	process->flights[0].stopped[0] = 0x0f;
	text = written(live, NULL, -1);
	EXPECT_THAT("and how far its kernels are",
		    strstr(text, "kernels_started=\"0-7\",kernels_stopped=\"0-3\"}"));
	free(text);
	play_release(&play);
}

#define LAST "nccl_last_collective_info{" DP ",function=\"AllReduce\",count="

static void test_last(void)
{
	struct play play = { 0 };
	struct recording_process *process = play_process(&play, "j", 3);
	struct live *live;
	char *text;

	play_comm(process, 0xab, "dp", 3, 4);
	for (uint32_t i = 0; i < 3; i++)
		process->flights[i].op = (struct op_record){ .comm = 1,
							     .function = OP_ALL_REDUCE,
							     .datatype = OP_FLOAT32,
							     .number = 20 + i,
							     .match = 10 + i,
							     .count = 100 + i,
							     .signature = 7 + i,
							     .state = OP_DONE,
							     .root = OP_NOBODY };
	process->flight_count = 3;
	live = play_look(&play);
	live->seats[0].still_ns = 9999999999;
	text = written(live, NULL, -1);
	says("for how long nothing moved", text, "nccl_last_activity_age_seconds{" DP "}",
	     "9.999999999");
	EXPECT_THAT("the last call is not repeated for each pause", !strstr(text, LAST));
	free(text);
	process->life = RECORDING_ENDED;
	text = written(live, NULL, -1);
	says("and of what has ended nobody counts on", text,
	     "nccl_last_activity_age_seconds{" DP "}", NULL);
	free(text);
	process->life = RECORDING_ALIVE;
	live->seats[0].still_ns = 10000000000;
	text = written(live, NULL, -1);
	says("after ten seconds it is, without the number that the gauges have", text,
	     LAST "\"102\",datatype=\"float32\"}", "1");
	free(text);
	process->flights[2].op.state = OP_RUNNING;
	live->seats[0].oldest = &process->flights[2];
	text = written(live, NULL, -1);
	says("and while it is in one, the one before, with its number", text,
	     LAST "\"101\",datatype=\"float32\",match=\"11\",signature=\"8\"}", "1");
	free(text);
	play_release(&play);
}

static void test_states(void)
{
	struct play play = { 0 };
	struct recording_process *process = play_process(&play, "j", 3);
	struct recording_comm *comm = play_comm(process, 0xab, "dp", 3, 4);
	char *text;

	process->process_state = 'S';
	text = written(play_look(&play), NULL, -1);
	EXPECT_THAT("one that sleeps is alive", strstr(text, "state=\"alive\""));
	EXPECT_THAT("nothing is finalized", !strstr(text, "finalized="));
	free(text);
	process->process_state = 'T';
	comm->info.flags = COMM_FLAG_FINALIZED;
	text = written(play_look(&play), NULL, -1);
	EXPECT_THAT("one that was stopped says so", strstr(text, "state=\"stopped\""));
	EXPECT_THAT("and so does a communicator that is over", strstr(text, "finalized=\"true\""));
	free(text);
	process->life = RECORDING_KILLED;
	text = written(play_look(&play), NULL, -1);
	EXPECT_THAT("one that is gone is not stopped", strstr(text, "state=\"killed\""));
	free(text);
	play_release(&play);
}

/* Of some operations kernel events were sampled, of others none was timed. */
static void test_timed(void)
{
	struct play play = { 0 };
	struct recording_process *process = play_process(&play, "j", 3);
	struct recording_comm *comm = play_comm(process, 0xab, "dp", 3, 4);
	struct region_total *total = play_total(process, comm, OP_ALL_REDUCE, 1 << 20, 400, 1000);
	char *text;

	total->timed = 4;
	total->timed_bytes = 4 << 20;
	total->sum_ns = 4000;
	memset(total->buckets, 0, sizeof(total->buckets));
	total->buckets[histogram_bucket(1000)] = 4;
	total = play_total(process, comm, OP_BROADCAST, 1 << 10, 7, 0);
	total->timed = total->timed_bytes = total->sum_ns = 0;
	memset(total->buckets, 0, sizeof(total->buckets));
	text = metrics_of(&play);
	says("all operations", text,
	     "nccl_operations_total{" DP ",function=\"AllReduce\",size=\"1MiB\"}", "400");
	says("beside them the timed ones", text,
	     "nccl_timed_operations_total{" DP ",function=\"AllReduce\",size=\"1MiB\"}", "4");
	says("the histogram counts the timed ones", text,
	     "nccl_operation_duration_seconds_count{" DP ",function=\"AllReduce\"}", "4");
	says("none of seven", text,
	     "nccl_timed_operations_total{" DP ",function=\"Broadcast\",size=\"1KiB\"}", "0");
	says("by algorithm", text,
	     "nccl_algorithm_timed_operations_total{" DP
	     ",function=\"AllReduce\",algorithm=\"RING\",protocol=\"SIMPLE\"}",
	     "4");
	EXPECT_THAT("what was not timed has no time and no timed bytes, not 0",
		    !strstr(text, "nccl_operation_seconds_total{" DP ",function=\"Broadcast\"") &&
			    !strstr(text, "nccl_operation_timed_bytes_total{" DP
					  ",function=\"Broadcast\"") &&
			    !strstr(text, "nccl_operation_bus_bytes_total{" DP
					  ",function=\"Broadcast\"") &&
			    !strstr(text, "nccl_operation_duration_seconds_count{" DP
					  ",function=\"Broadcast\"") &&
			    !strstr(text,
				    "nccl_algorithm_seconds_total{" DP ",function=\"Broadcast\""));
	free(text);
	play_release(&play);
}

/* Two operations ran alone, and two groups of three in one launch of 6 ms each. */
static void test_shared(void)
{
	struct play play = { 0 };
	struct recording_process *process = play_process(&play, "j", 3);
	struct recording_comm *comm = play_comm(process, 0xab, "dp", 3, 4);
	struct region_total *total = play_total(process, comm, OP_ALL_REDUCE, 1 << 20, 2, 2000000);
	char *text;

	total->count = 9;
	total->bytes = 9 << 20;
	total->shared = 6;
	total->shared_ns = 36000000;
	total = play_total(process, comm, OP_ALL_GATHER, 1 << 20, 3, 0);
	total->shared = 3;
	total->shared_ns = 18000000;
	total->timed = total->timed_bytes = 0;
	memset(total->buckets, 0, sizeof(total->buckets));
	text = metrics_of(&play);
	says("bus bytes of those that ran alone", text,
	     "nccl_operation_bus_bytes_total{" DP ",function=\"AllReduce\",size=\"1MiB\"}",
	     "3145728");
	says("and their seconds", text,
	     "nccl_operation_seconds_total{" DP ",function=\"AllReduce\",size=\"1MiB\"}", "0.004");
	says("two have a time of their own", text,
	     "nccl_timed_operations_total{" DP ",function=\"AllReduce\",size=\"1MiB\"}", "2");
	says("six share that of a launch", text,
	     "nccl_shared_operations_total{" DP ",function=\"AllReduce\",size=\"1MiB\"}", "6");
	says("which is counted for each", text,
	     "nccl_shared_operation_seconds_total{" DP ",function=\"AllReduce\",size=\"1MiB\"}",
	     "0.036");
	says("and one of nine was not timed", text,
	     "nccl_operations_total{" DP ",function=\"AllReduce\",size=\"1MiB\"}", "9");
	says("what never ran alone is timed", text,
	     "nccl_shared_operations_total{" DP ",function=\"AllGather\",size=\"1MiB\"}", "3");
	EXPECT_THAT("and has no bandwidth",
		    !strstr(text, "nccl_operation_seconds_total{" DP ",function=\"AllGather\"") &&
			    !strstr(text, "nccl_operation_bus_bytes_total{" DP
					  ",function=\"AllGather\"") &&
			    !strstr(text, "nccl_operation_timed_bytes_total{" DP
					  ",function=\"AllGather\""));
	free(text);
	play_release(&play);
}

#define WAIT "nccl_proxy_wait_seconds_total{" DP ",direction="

static void test_links(void)
{
	struct play play = { 0 };
	struct recording_process *process = play_process(&play, "j", 3);
	struct live *live;
	char *text;

	play_comm(process, 0xab, "dp", 3, 4);
	play_link(process, 1, 0, 2, 5)->wire_ns = 2500000000;
	play_link(process, 1, 1, 0, 7);
	play_link(process, 1, 0, 3, 9)->wire_ns = 7000000000 | LINK_WIRE_PARTIAL;
	process->links[0] = (struct region_link){ .proxies = 1, .wait_ns = { 1, 2, 4 } };
	live = play_look(&play);
	text = written(live, NULL, -1);
	EXPECT_THAT("waiting that is not known has no sample",
		    !strstr(text, "\nnccl_wait_seconds_total{"));
	free(text);
	live->seats[0].wait_ns = 1500000000;
	live->seats[0].knows_wait = true;
	text = written(live, NULL, -1);
	says("waited for others", text, "nccl_wait_seconds_total{" DP "}", "1.5");
	says("sent", text, "nccl_proxy_bytes_total{" DP ",direction=\"send\",peer=\"2\"}", "5000");
	says("received", text, "nccl_proxy_transfers_total{" DP ",direction=\"recv\",peer=\"0\"}",
	     "7");
	says("on the wire", text, "nccl_wire_seconds_total{" DP ",direction=\"send\",peer=\"2\"}",
	     "2.5");
	says("what was sent meanwhile", text,
	     "nccl_wire_bytes_total{" DP ",direction=\"send\",peer=\"2\"}", "5000");
	EXPECT_THAT("not of a link that has transfers that are not in its time",
		    series_of(text, "nccl_wire_seconds_total", LIST("")) == 1 &&
			    series_of(text, "nccl_wire_bytes_total", LIST("")) == 1);
	says("to send: first for the own GPU", text, WAIT "\"send\",state=\"gpu\",peer=\"2\"}",
	     "1");
	says("then for the peer", text, WAIT "\"send\",state=\"peer\",peer=\"2\"}", "2");
	says("then for the network", text, WAIT "\"send\",state=\"net\",peer=\"2\"}", "3");
	says("to receive: first for the network", text, WAIT "\"recv\",state=\"net\",peer=\"0\"}",
	     "1");
	says("then for the flush", text, WAIT "\"recv\",state=\"flush\",peer=\"0\"}", "2");
	says("then for the own GPU", text, WAIT "\"recv\",state=\"gpu\",peer=\"0\"}", "3");
	says("what found no room has lost its direction", text,
	     "nccl_proxy_wait_seconds_total{nccl_job=\"j\",comm=\"other\",rank=\"3\","
	     "direction=\"other\",state=\"other\",peer=\"other\"}",
	     "0.000000007");
	free(text);
	play_release(&play);
}

/* ---- the same labels twice ------------------------------------------------------------------- */

static void test_two_processes(void)
{
	struct play play = { 0 };
	char *text;

	for (int i = 0; i < 2; i++) {
		struct recording_process *process = play_process(&play, "j", 3);
		struct recording_comm *comm = play_comm(process, 0xab, "dp", 3, 4);

		play_total(process, comm, OP_ALL_REDUCE, 1024, i ? 20 : 10, 1000);
		play_link(process, 1, 0, 0, 5);
	}
	text = metrics_of(&play);
	says("counters of two processes are added up", text, "nccl_operations_issued_total{" DP "}",
	     "30");
	says("of totals, too", text,
	     "nccl_operations_total{" DP ",function=\"AllReduce\",size=\"1KiB\"}", "30");
	says("of links, too", text,
	     "nccl_proxy_transfers_total{" DP ",direction=\"send\",peer=\"0\"}", "10");
	says("gauges are the largest", text, "nccl_operation_number_issued{" DP "}", "20");
	EXPECT_EQUAL(series_of(text, "nccl_operations_issued_total", LIST("")), 1);
	EXPECT_EQUAL(series_of(text, "nccl_communicator_info", LIST("")), 1);
	says("and they are counted", text, "ringside_agent_merged_recordings", "1");
	free(text);
	play.list[1]->life = RECORDING_KILLED;
	text = metrics_of(&play);
	says("who is over gives way to who lives", text, "nccl_operations_issued_total{" DP "}",
	     "10");
	says("in totals, too", text,
	     "nccl_operations_total{" DP ",function=\"AllReduce\",size=\"1KiB\"}", "10");
	EXPECT_EQUAL(series_of(text, "nccl_process_info", LIST("")), 2);
	free(text);
	play.list[0]->life = RECORDING_ENDED;
	text = metrics_of(&play);
	says("when all are over they are added up", text, "nccl_operations_issued_total{" DP "}",
	     "30");
	free(text);
	play_release(&play);
}

static void test_made_anew(void)
{
	struct play play = { 0 };
	struct recording_process *process = play_process(&play, "j", 3);
	struct recording_comm *old = play_comm(process, 0xab, "dp", 3, 4);
	struct recording_comm *new = play_comm(process, 0xab, "dp", 3, 4);
	char *text;

	play_total(process, old, OP_ALL_REDUCE, 1024, 50, 1000);
	play_total(process, new, OP_ALL_REDUCE, 1024, 2, 1000);
	old->info.finalize_ns = 77;
	text = metrics_of(&play);
	says("a communicator made anew counts on", text, "nccl_operations_issued_total{" DP "}",
	     "52");
	says("and is where the new one is", text, "nccl_operation_number_issued{" DP "}", "2");
	free(text);
	play_release(&play);
}

static void test_process_labels(void)
{
	struct play play = { 0 };
	char *text;

	for (int i = 0; i < 2; i++) {
		struct recording_process *process = play_process(&play, "j", 3);

		process->pid = 7;
		process->lost[LOST_OFF] = 10;
		process->lost[LOST_LATE_CHILD] = 1;
		process->odd[ODD_CHANNEL] = 2;
		play_total(process, NULL, 0, 8, 1, 1);
	}
	text = metrics_of(&play);
	says("losses of one label are added up", text,
	     "nccl_lost_operations_total{nccl_job=\"j\",global_rank=\"3\",pid=\"7\","
	     "reason=\"switched_off\"}",
	     "20");
	says("details are apart", text,
	     "nccl_lost_details_total{nccl_job=\"j\",global_rank=\"3\",pid=\"7\","
	     "reason=\"late_child\"}",
	     "2");
	EXPECT_EQUAL(series_of(text, "nccl_lost_operations_total", LIST("")), LOST_OFF + 2);
	EXPECT_EQUAL(series_of(text, "nccl_lost_details_total", LIST("detail_overrun")), 1);
	says("unexpected events", text,
	     "nccl_odd_events_total{nccl_job=\"j\",global_rank=\"3\",pid=\"7\","
	     "reason=\"untrusted_channel\"}",
	     "4");
	says("a reason that never was is 0, so that the first is seen", text,
	     "nccl_lost_operations_total{nccl_job=\"j\",global_rank=\"3\",pid=\"7\","
	     "reason=\"quota\"}",
	     "0");
	says("others of one label are added up", text,
	     "nccl_operations_total{nccl_job=\"j\",comm=\"other\",rank=\"3\",function=\"other\","
	     "size=\"other\"}",
	     "2");
	free(text);
	play_release(&play);
}

/* ---- names and others ------------------------------------------------------------------------ */

static void test_forgotten(void)
{
	struct play play = { 0 };
	struct recording_process *process = play_process(&play, "j", 3);
	struct recording_comm *comm = play_comm(process, 0xab, "dp", 3, 4);
	char *text;

	play_total(process, comm, OP_ALL_REDUCE, 1024, 5, 1000);
	process->totals[1].key &= (UINT64_C(1) << 40) - 1;
	process->comm_count = 0;
	text = metrics_of(&play);
	says("a forgotten communicator is among the others, with what is known of it", text,
	     "nccl_operations_total{nccl_job=\"j\",comm=\"other\",rank=\"3\","
	     "function=\"AllReduce\",size=\"1KiB\"}",
	     "5");
	says("the others have an info, too", text,
	     "nccl_communicator_info{nccl_job=\"j\",comm=\"other\",rank=\"3\","
	     "comm_name=\"other\",kind=\"unknown\",global_rank=\"3\",host=\"node1\",pid=\"1000\"}",
	     "1");
	free(text);
	process->rank = -1;
	text = metrics_of(&play);
	EXPECT_EQUAL(series_of(text, "nccl_operations_total", LIST("rank=\"pid1000\"")), 1);
	free(text);
	play_release(&play);
}

static void test_names(void)
{
	struct play play = { 0 };
	char *text;

	play_hostile(&play);
	text = written(&play.live, NULL, -1);
	EXPECT_THAT("quotes, backslashes and line ends are escaped",
		    strstr(text, "comm_name=\"a\\\"b\\\\c\\nd\""));
	EXPECT_THAT("bytes that are no UTF-8 are U+FFFD",
		    strstr(text, "comm_name=\"\xef\xbf\xbd\xef\xbf\xbd bytes\""));
	EXPECT_THAT("UTF-8 stays", strstr(text, "comm_name=\"caf\xc3\xa9\""));
	EXPECT_THAT("no hash: name, process and number",
		    strstr(text, "comm=\"{comm=\\\"x\\\"} 7\\n# EOF#1000.4\""));
	EXPECT_THAT("names that look the same are one",
		    series_of(text, "nccl_operations_total",
			      LIST("comm=\"000000000000abc0\"", "rank=\"0\"",
				   "New\xef\xbf\xbdName")) == 1);
	EXPECT_THAT("a name of ours that is interned is ours",
		    series_of(text, "nccl_operations_total",
			      LIST("comm=\"000000000000abc0\"", "rank=\"0\"",
				   "function=\"AllReduce\"")) == 1);
	EXPECT_EQUAL(series_of(text, "nccl_notice_info", LIST("")), 2);
	EXPECT_EQUAL(series_of(text, "nccl_verdict_info", LIST("")), 2);
	EXPECT_EQUAL(series_of(text, "nccl_verdict_info",
			       LIST("class=\"network_stuck\"", "comm=\"000000000000abc1\"",
				    "rank=\"1\"", "global_rank=\"13\"", "peer_global_rank=\"14\"",
				    "host=\"node\\n\xef\xbf\xbd\"", "confidence=\"very likely\"")),
		     1);
	free(text);
	play_release(&play);
}

/* ---- jobs and verdicts ----------------------------------------------------------------------- */

static void test_owner(void)
{
	static char first[] = "uid=1000\nenv.USER=ada\nenv.SLURM_JOB_USER=alan\n"
			      "env.SLURM_JOB_ACCOUNT=vision\nenv.SLURM_JOB_PARTITION=h100\n"
			      "env.SLURM_JOB_NAME=vit \"big\"\nlabel.team=a,b\nlabel.user=x\n"
			      "hang_after_s=900\nenv.SLURM_STEP_ID=3\n";
	static char second[] = "uid=1001\nhang_after_s=600\n";
	static char wrong[] = "uid=1002\nhang_after_s=604801\n";
	struct play play = { 0 };
	char *text;

	play_info(play_process(&play, "j", 0), first);
	play_info(play_process(&play, "j", 1), first);
	play_info(play_process(&play, "k", 0), second);
	play_info(play_process(&play, "k", 1), first);
	play_info(play_process(&play, "l", 0), wrong);
	text = metrics_of(&play);
	EXPECT_EQUAL(series_of(text, "nccl_job_info", LIST("nccl_job=\"j\"")), 1);
	says("who owns it", text,
	     "nccl_job_info{nccl_job=\"j\",user=\"alan\",account=\"vision\",partition=\"h100\","
	     "job_name=\"vit \\\"big\\\"\",label_team=\"a,b\",label_user=\"x\"}",
	     "1");
	EXPECT_EQUAL(series_of(text, "nccl_process_info", LIST("step=\"3\"")), 3);
	EXPECT_EQUAL(series_of(text, "nccl_process_info", LIST("step=")), 3);
	EXPECT_EQUAL(series_of(text, "nccl_job_info", LIST("nccl_job=\"k\"")), 2);
	says("without a name, the number", text, "nccl_job_info{nccl_job=\"k\",user=\"1001\"}",
	     "1");
	says("when the job takes something for hung", text,
	     "nccl_job_hang_threshold_seconds{nccl_job=\"j\"}", "900");
	says("the longest of a job", text, "nccl_job_hang_threshold_seconds{nccl_job=\"k\"}",
	     "900");
	EXPECT_EQUAL(series_of(text, "nccl_job_hang_threshold_seconds", LIST("")), 2);
	says("nothing is left out", text, "ringside_agent_folded{what=\"job_labels\"}", "0");
	free(text);
	play_release(&play);
}

static void test_pod(void)
{
	static char info[] = "uid=1000\nenv.POD_NAME=llama-worker-1\npod_namespace=team-a\n"
			     "env.CONTAINER_NAME=pytorch\nenv.POD_UID=of a variable\n";
	struct recording_process *process;
	struct play play = { 0 };
	char *text;

	process = play_process(&play, "j", 0);
	play_info(process, info);
	process->pid = 1;
	process->pid_here = 4711;
	text_copy(process->container_id, sizeof(process->container_id), "2e1fa0a8ae56");
	play_info(play_process(&play, "k", 0), info);
	process = play_process(&play, "l", 0);
	play_info(process, info);
	text_copy(process->pod_uid, sizeof(process->pod_uid), "of the kernel");
	text = metrics_of(&play);
	says("where it runs", text,
	     "nccl_job_info{nccl_job=\"j\",user=\"1000\",pod=\"llama-worker-1\","
	     "namespace=\"team-a\",container=\"pytorch\",container_id=\"2e1fa0a8ae56\","
	     "pod_uid=\"of a variable\"}",
	     "1");
	says("the kernel knows better", text,
	     "nccl_job_info{nccl_job=\"l\",user=\"1000\",pod=\"llama-worker-1\","
	     "namespace=\"team-a\",container=\"pytorch\",pod_uid=\"of the kernel\"}",
	     "1");
	EXPECT_EQUAL(series_of(text, "nccl_process_info",
			       LIST("nccl_job=\"j\"", "pid=\"1\"", "host_pid=\"4711\"")),
		     1);
	EXPECT_EQUAL(series_of(text, "nccl_process_info", LIST("host_pid=")), 1);
	free(text);
	play_release(&play);
}

static void test_many_labels(void)
{
	enum { LABELS = METRICS_JOB_LABELS + 4 };
	char info[LABELS * 16] = "";
	struct play play = { 0 };
	char *text;

	for (int i = 0; i < LABELS; i++)
		snprintf(info + strlen(info), sizeof(info) - strlen(info), "label.k%d=v\n", i);
	play_info(play_process(&play, "j", 0), info);
	text = metrics_of(&play);
	EXPECT_EQUAL(series_of(text, "nccl_job_info", LIST("label_k0=\"v\"", "label_k15=\"v\"")),
		     1);
	EXPECT_EQUAL(series_of(text, "nccl_job_info", LIST("label_k16=")), 0);
	says("what has no room is counted", text, "ringside_agent_folded{what=\"job_labels\"}",
	     "4");
	free(text);
	play_release(&play);
}

static void test_slow_verdict(void)
{
	struct play play = { 0 };
	struct verdict *verdict;
	struct live *live;
	char *text;

	play_comm(play_process(&play, "j", 3), 0xab, "dp", 3, 4);
	live = play_look(&play);
	for (int i = 0; i < 2; i++) {
		verdict = verdicts_add(&live->verdicts, i ? VERDICT_DEADLOCK : VERDICT_SLOW_LINK,
				       VERDICT_WARNING);
		snprintf(verdict->job, sizeof(verdict->job), "j");
		snprintf(verdict->host, sizeof(verdict->host), "node1");
		snprintf(verdict->peer_host, sizeof(verdict->peer_host), "node2");
		verdict->rank = 3;
		verdict->peer = 4;
		verdict->percent = 22;
		verdict->confidence = 0.97;
	}
	text = written(live, NULL, -1);
	says("both ends of a slow link, and how bad", text,
	     "nccl_verdict_info{nccl_job=\"j\",class=\"slow_link\",global_rank=\"3\","
	     "peer_global_rank=\"4\",host=\"node1\",peer_host=\"node2\",severity=\"warning\","
	     "confidence=\"certain\"}",
	     "1");
	says("how much slower", text,
	     "nccl_verdict_slowdown_ratio{nccl_job=\"j\",class=\"slow_link\",global_rank=\"3\","
	     "peer_global_rank=\"4\",host=\"node1\",peer_host=\"node2\"}",
	     "0.22");
	EXPECT_EQUAL(series_of(text, "nccl_verdict_slowdown_ratio", LIST("")), 1);
	free(text);
	play_release(&play);
}

/* ---- whole and parts ------------------------------------------------------------------------- */

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The lines that are samples, sorted, as one text. */
static char *sorted_samples(char *whole)
{
	size_t count = 0, length = 0;
	char **lines = play_room(strlen(whole) + 1, sizeof(*lines));
	char *all = play_room(strlen(whole) + 2, 1), *text = whole;

	for (char *line = text; (line = strsep(&text, "\n")) != NULL;)
		if (*line != '#' && *line != '\0')
			lines[count++] = line;
	qsort(lines, count, sizeof(*lines), by_text);
	for (size_t i = 0; i < count; i++) {
		memcpy(all + length, lines[i], strlen(lines[i]));
		length += strlen(lines[i]);
		all[length++] = '\n';
	}
	free(lines);
	free(whole);
	return all;
}

static void test_textfiles(void)
{
	struct play play = { 0 };
	char *whole, *parts = play_room(1, 1);

	play_hostile(&play);
	/* A member of both, which may be in one file only. */
	play.list[1]->comms[0].info.rank = 0;
	play_look(&play);
	play.live.notice_count = 0;
	for (size_t p = 0; p < play.recording.count; p++) {
		char *part = written(&play.live, NULL, (long)p), *both;

		EXPECT_THAT("a process has a file",
			    series_of(part, "nccl_process_info", LIST("")) == 1);
		if (asprintf(&both, "%s%s", parts, part) == -1)
			abort();
		free(parts);
		free(part);
		parts = both;
	}
	whole = sorted_samples(written(&play.live, NULL, -1));
	parts = sorted_samples(parts);
	EXPECT_THAT("the files of all processes are the whole, nothing twice",
		    strcmp(whole, parts) == 0);
	free(whole);
	free(parts);
	play_release(&play);
}

static void test_nobody(void)
{
	struct metrics_agent agent = play_agent();
	struct play play = { 0 };
	struct live never = { 0 };
	char *text;

	text = written(&never, &agent, -1);
	says("the agent reports itself before its first scan", text,
	     "ringside_build_info{version=\"1.2.3\"}", "1");
	EXPECT(strstr(text, "nccl_") == NULL);
	says("when it was started", text, "process_start_time_seconds", "1700000000.123456789");
	says("how many verdicts there were", text,
	     "ringside_agent_verdicts_total{class=\"network_stuck\"}", "7");
	says("how many processes it asked for kernel events", text,
	     "ringside_agent_kernel_requests_total{event=\"granted\"}", "4");
	says("how often it judged speed", text, "ringside_agent_judgements_total", "3");
	says("how much CPU time judging speed took", text, "ringside_agent_judge_seconds_total",
	     "0.045678901");
	says("of slowness, too", text, "ringside_agent_verdicts_total{class=\"slow_rank\"}", "8");
	EXPECT_THAT("but not of what it does not look for", strstr(text, "setup") == NULL);
	free(text);
	text = written(&never, NULL, -1);
	EXPECT_THAT("a textfile of nobody is empty", text[0] == '\0');
	free(text);
	text = metrics_of(&play);
	says("no process is alive", text, "ringside_agent_processes{state=\"alive\"}", "0");
	free(text);
	play_release(&play);
}

/* 16294668 ns through a long double of 80 bits is the number before 0.016294668. */
static void test_rounding(void)
{
	struct play play = { 0 };
	const double seconds = 0.016294668;
	struct live *live;
	struct sink sink;

	play_comm(play_process(&play, "j", 3), 0xab, "dp", 3, 4);
	live = play_look(&play);
	live->seats[0].wait_ns = 16294668;
	live->seats[0].knows_wait = true;
	sink_init_memory(&sink);
	metrics_write(&sink, METRICS_PROTOBUF, live, NULL, -1);
	EXPECT_THAT("protobuf has the number that the text is read as",
		    memmem(sink.bytes, sink.used, &seconds, sizeof(seconds)) != NULL);
	sink_release(&sink);
	play_release(&play);
}

static void test_failure(void)
{
	struct play play = { 0 };
	struct sink sink;
	int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);

	play_hostile(&play);
	sink_init_fd(&sink, fd);
	metrics_write(&sink, METRICS_PROTOBUF, &play.live, NULL, -1);
	EXPECT_THAT("a full disk is a failure", sink_flush(&sink) == ERR_SYSTEM);
	sink_release(&sink);
	close(fd);
	play_release(&play);
}

int main(void)
{
	test_member();
	test_oldest();
	test_collective();
	test_last();
	test_states();
	test_timed();
	test_shared();
	test_links();
	test_two_processes();
	test_made_anew();
	test_process_labels();
	test_forgotten();
	test_names();
	test_owner();
	test_pod();
	test_many_labels();
	test_slow_verdict();
	test_textfiles();
	test_nobody();
	test_rounding();
	test_failure();
	return tap_done();
}
