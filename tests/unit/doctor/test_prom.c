/* Hand-made answers of Prometheus, and what they turn into. */
#include "doctor/prom.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/flight.h"
#include "analysis/job.h"
#include "common/text.h"
#include "tests/support/expected_verdicts.h"
#include "tests/tap.h"

enum { ROOM = 1 << 16 };

/* An answer that grows sample by sample. */
struct answer {
	char text[ROOM];
	size_t used;
};

static void begin(struct answer *answer)
{
	text_copy(answer->text, ROOM,
		  "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[");
	answer->used = strlen(answer->text);
}

/* Labels are written with ' instead of ". */
static void sample(struct answer *answer, const char *labels, const char *value)
{
	size_t from = answer->used;

	text_format(answer->text + answer->used, ROOM - answer->used,
		    "%s{\"metric\":{%s},\"value\":[1700000100.5,\"%s\"]}",
		    answer->text[answer->used - 1] == '}' ? "," : "", labels, value);
	answer->used += strlen(answer->text + answer->used);
	for (; from < answer->used; from++)
		if (answer->text[from] == '\'')
			answer->text[from] = '"';
}

static void end(struct answer *answer)
{
	text_copy(answer->text + answer->used, ROOM - answer->used, "]}}");
	answer->used += strlen(answer->text + answer->used);
}

static char why[PROM_WHY_SIZE];

static enum status take(struct prom *prom, size_t i, const char *text)
{
	return prom_take(prom, i, text, strlen(text), why, sizeof(why));
}

/* The number of the query with this name. */
static size_t query_of(const struct prom *prom, const char *name)
{
	size_t i = 0;

	while (prom_path(prom, i) != NULL && strcmp(prom_name(prom, i), name) != 0)
		i++;
	if (prom_path(prom, i) == NULL)
		printf("# no query named %s\n", name);
	return i;
}

static enum status give(struct prom *prom, const char *name, struct answer *answer)
{
	end(answer);
	return take(prom, query_of(prom, name), answer->text);
}

static struct prom *made(const char *job)
{
	struct prom_options options = { .job = job };
	struct prom *prom = prom_new(&options);

	if (prom == NULL)
		abort();
	return prom;
}

/* ---- queries ----------------------------------------------------------------------------------- */

static void test_queries(void)
{
	struct prom_options options = {
		.job = "a\"b\\c", .hang_ns = 8000000000, .window_s = 60, .past_s = 7200
	};
	struct prom *prom = made(NULL), *of_job = prom_new(&options);
	bool are_short = true, are_encoded = true, are_of_job = true, are_once = true;
	size_t count = 0;

	for (; prom_path(of_job, count) != NULL; count++) {
		const char *path = prom_path(of_job, count);

		are_short = are_short && strlen(path) < 8192;
		are_encoded = are_encoded && strncmp(path, "/api/v1/query?query=", 20) == 0 &&
			      strspn(path + 20, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwx"
						"yz0123456789-_.~%") == strlen(path + 20);
		are_of_job =
			are_of_job && strstr(prom_query(of_job, count), "nccl_job=\"a\\\"b\\\\c\"");
		are_once = are_once && !strstr(prom_query(of_job, count), "sum") &&
			   !strstr(prom_query(of_job, count), "without");
	}
	EXPECT_EQUAL(count, 24);
	EXPECT(prom_query(prom, count) == NULL && prom_path(prom, count) == NULL);
	EXPECT_THAT("each fits into a request", are_short);
	EXPECT_THAT("and needs no further encoding", are_encoded);
	EXPECT_THAT("each selects the job, with its name escaped", are_of_job);
	EXPECT_THAT("an agent that is scraped twice counts once", are_once);
	EXPECT_THAT("without a job, all",
		    strstr(prom_query(prom, 0), "nccl_process_info{run=\"\"}") != NULL);
	EXPECT_THAT("operations older than a quarter of the hang limit are asked for",
		    strstr(prom_query(of_job, 2), "> 2.000)") &&
			    strstr(prom_query(prom, 2), "> 5.000)"));
	EXPECT(strstr(prom_query(of_job, query_of(prom, "operations now")), "[60s])"));
	EXPECT(strstr(prom_query(of_job, query_of(prom, "bytes before")), "[60s] offset 7200s))"));
	EXPECT_THAT("a young job is compared with the last 15 minutes",
		    strstr(prom_query(prom, query_of(prom, "bytes before")), "offset 3600s) or "));
	prom_free(of_job);
	prom_free(prom);
	prom_free(NULL);
}

/* ---- invalid answers ------------------------------------------------------------------------- */

#define VECTOR "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":"
#define SAMPLE "{\"metric\":{\"nccl_job\":\"j\",\"pid\":\"1\"},\"value\":[1,\"2\"]}"

static void test_refused(void)
{
	static const struct {
		const char *text, *why;
	} bad[] = {
		{ "", "empty answer" },
		{ "<html>404", "begins with \"<html>404\"" },
		{ VECTOR "[" SAMPLE, "damaged at byte" },
		{ VECTOR "[" SAMPLE "]}} x", "damaged at byte" },
		{ "{\"status\":\"error\",\"errorType\":\"timeout\",\"error\":\"query\\u0007timed "
		  "out\"}",
		  "refused the query: timeout: query timed out" },
		{ "{\"status\":\"error\"}", "no reason given" },
		{ "{}", "refused the query" },
		{ "{\"status\":\"success\"}", "not a vector" },
		{ "{\"status\":\"success\",\"data\":[]}", "not a vector" },
		{ "{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":[]}}",
		  "not a vector" },
		{ VECTOR "7}}", "no list" },
		{ "[]", "not JSON" },
	};
	struct prom *prom = made(NULL);
	struct recording recording;
	bool are_refused = true;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (take(prom, 0, bad[i].text) == ERR_FORMAT && strstr(why, bad[i].why) &&
		    !strchr(why, '\n') && !strchr(why, '\a'))
			continue;
		printf("# %s: %s\n", bad[i].text, why);
		are_refused = false;
	}
	EXPECT_THAT("each is rejected with a one-line reason", are_refused);
	EXPECT(take(prom, 24, VECTOR "[]}}") == ERR_FORMAT);
	EXPECT_EQUAL(take(prom, 0, VECTOR "[" SAMPLE "]}}"), OK);
	EXPECT_THAT("an answer is accepted once",
		    take(prom, 0, VECTOR "[" SAMPLE "]}}") == ERR_FORMAT);
	EXPECT(prom_take(prom, 1, "", PROM_ANSWER_MAX + 1, why, sizeof(why)) == ERR_NO_SPACE &&
	       strstr(why, "--job"));
	recording_init(&recording);
	EXPECT_EQUAL(prom_finish(prom, &recording), OK);
	EXPECT_THAT("nothing of a rejected answer is used", recording.count == 1);
	recording_release(&recording);
	prom_free(prom);
}

static void test_odd(void)
{
	static const char *const odd[] = {
		"7",
		"{}",
		"{\"metric\":{}}",
		"{\"metric\":7,\"value\":[1,\"1\"]}",
		"{\"metric\":{\"pid\":7},\"value\":[1,\"1\"]}",
		"{\"metric\":{\"pid\":\"7\"},\"value\":[]}",
		"{\"metric\":{\"pid\":\"7\"},\"value\":[1]}",
		"{\"metric\":{\"pid\":\"7\"},\"value\":[1,\"1\",2]}",
		"{\"metric\":{\"pid\":\"7\"},\"value\":[[[1]],{\"a\":[2]}]}",
		"{\"metric\":{\"pid\":\"7\"},\"value\":[1,\"NaN\"]}",
		"{\"metric\":{\"pid\":\"7\"},\"value\":[1,\"+Inf\"]}",
		"{\"metric\":{\"pid\":\"7\"},\"value\":[1,\"1x\"]}",
		"{\"metric\":{\"pid\":\"7\"},\"value\":[1,\"\\u0031\"]}",
		"{\"metric\":{\"pid\":\"7\"},\"histogram\":[1,{\"count\":\"2\"}]}",
	};
	struct prom *prom = made(NULL);
	struct recording recording;
	char text[4096] = VECTOR "[";

	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		size_t used = strlen(text);

		text_format(text + used, sizeof(text) - used, "%s,", odd[i]);
	}
	text_format(text + strlen(text), sizeof(text) - strlen(text), "%s",
		    SAMPLE
		    "]},\"infos\":[\"x\"],\"warnings\":[{},\"store \\n down\",\"more\",[1]]}");
	EXPECT_EQUAL(take(prom, 0, text), OK);
	EXPECT_EQUAL(prom_odd_series(prom), sizeof(odd) / sizeof(odd[0]));
	EXPECT_THAT("Prometheus' warnings are kept, in one line",
		    strcmp(prom_warning(prom), "store   down") == 0);
	recording_init(&recording);
	EXPECT_EQUAL(prom_finish(prom, &recording), OK);
	EXPECT_THAT("malformed series are left out, and no others",
		    recording.count == 1 && recording.processes[0]->pid == 1);
	recording_release(&recording);
	prom_free(prom);
}

/* ---- a stuck job ----------------------------------------------------------------------------- */

#define DP "'comm':'00000000000000ab','nccl_job':'j','rank':"

static void give_processes(struct prom *prom)
{
	struct answer answer;

	begin(&answer);
	sample(&answer,
	       "'global_rank':'0','gpu':'0','gpu_uuid':'GPU-1','host':'n0','interface':'5','mode':"
	       "'flight','nccl_job':'j','pid':'10','state':'alive','world_size':'2'",
	       "1700000099.25");
	sample(&answer, "'global_rank':'1','host':'n1','nccl_job':'j','pid':'10','state':'stopped'",
	       "1700000100");
	sample(&answer, "'global_rank':'2','host':'n1','nccl_job':'j','pid':'11','state':'killed'",
	       "1700000100");
	sample(&answer, "'global_rank':'3','host':'n1','nccl_job':'j','pid':'12','state':'ended'",
	       "1700000100");
	sample(&answer,
	       "'global_rank':'4','host':'n\\u0001\\\"','nccl_job':'i','pid':'13','state':'?'",
	       "1700000100");
	EXPECT_EQUAL(give(prom, "processes", &answer), OK);
	begin(&answer);
	sample(&answer,
	       "'comm_name':'dp'," DP "'0','nnodes':'2','nranks':'2','host':'n0','pid':'10',"
	       "'global_rank':'0','gpu':'0'",
	       "1");
	sample(&answer,
	       "'comm_name':'dp'," DP
	       "'1','finalized':'true','nnodes':'2','nranks':'2','host':'n1',"
	       "'pid':'10','global_rank':'1','gpu':'3'",
	       "1");
	/* Of a process that its agent did not list yet. */
	sample(&answer, "'comm':'x#9.1','nccl_job':'j','host':'n7','pid':'9','global_rank':'7'",
	       "1");
	EXPECT_EQUAL(give(prom, "communicators", &answer), OK);
}

#define NUMBER(name, rank) "'__name__':'nccl_" name "'," DP rank

static void give_numbers(struct prom *prom)
{
	struct answer answer;

	begin(&answer);
	sample(&answer, NUMBER("collective_number_issued", "'0'"), "12");
	sample(&answer, NUMBER("collective_number_replayed", "'0'"), "3");
	sample(&answer, NUMBER("operation_number_issued", "'0'"), "22");
	sample(&answer, NUMBER("operation_number_done", "'0'"), "19");
	sample(&answer, NUMBER("collective_signature", "'0'"), "4503599627370495");
	sample(&answer, NUMBER("oldest_operation_age_seconds", "'0'"), "30.5");
	sample(&answer, NUMBER("last_activity_age_seconds", "'0'"), "30.25");
	sample(&answer, NUMBER("collective_number_issued", "'1'"), "11");
	sample(&answer, NUMBER("operation_number_issued", "'1'"), "20");
	sample(&answer, NUMBER("operation_number_done", "'1'"), "20");
	sample(&answer, NUMBER("collective_signature", "'1'"), "7");
	sample(&answer, NUMBER("oldest_operation_age_seconds", "'1'"), "0");
	sample(&answer, NUMBER("last_activity_age_seconds", "'1'"), "31");
	sample(&answer, NUMBER("something_else", "'1'"), "31");
	sample(&answer, "'__name__':'nccl_operation_number_done','rank':'1'", "20");
	EXPECT_EQUAL(give(prom, "progress of ranks", &answer), OK);
	EXPECT_THAT("series without a communicator are dropped", prom_odd_series(prom) == 1);
}

static void give_calls(struct prom *prom)
{
	struct answer answer;

	begin(&answer);
	sample(&answer,
	       DP "'0','count':'6553600','datatype':'bfloat16','function':'AllReduce','kernels_"
		  "started'"
		  ":'0-3','kernels_stopped':'none','match':'12','number':'21','signature':'99',"
		  "'state':'running','waits_for':'recv_net','peer':'1'",
	       "1");
	EXPECT_EQUAL(give(prom, "operations in flight", &answer), OK);
	begin(&answer);
	sample(&answer, DP "'0','channels':'0-1,64,300','peer':'1','waits_for':'recv_net'", "30");
	sample(&answer, DP "'0','channels':'2','peer':'1','waits_for':'send_queued'", "20");
	sample(&answer, DP "'0','peer':'0','waits_for':'send_net'", "10");
	sample(&answer, DP "'0','channels':'3','waits_for':'the_moon'", "30");
	EXPECT_EQUAL(give(prom, "what they wait for", &answer), OK);
	begin(&answer);
	sample(&answer,
	       DP
	       "'0','count':'5','datatype':'float32','function':'Broadcast','match':'11','root':'1'"
	       ",'signature':'98'",
	       "1");
	sample(&answer, DP "'1','count':'6','function':'NewThing'", "1");
	EXPECT_EQUAL(give(prom, "what was called last", &answer), OK);
}

static void check_processes(const struct recording *recording)
{
	const struct recording_process *first, *second;
	uint64_t wall_ns;

	EXPECT_EQUAL(recording->count, 6);
	first = recording->processes[0];
	EXPECT_THAT("by job, then rank", strcmp(first->job, "i") == 0);
	EXPECT_THAT("strings without control bytes", strcmp(first->host, "n?\"") == 0);
	EXPECT_EQUAL(first->life, RECORDING_UNKNOWN);
	first = recording->processes[1];
	second = recording->processes[2];
	EXPECT(strcmp(first->host, "n0") == 0 && first->pid == 10 && first->rank == 0 &&
	       first->world_size == 2 && first->interface == 5 &&
	       strcmp(first->mode, "flight") == 0);
	EXPECT(first->life == RECORDING_ALIVE && first->process_state == 0);
	EXPECT_THAT("its current time is its last scrape",
		    hang_now_ns(first) == 1700000099250000000);
	EXPECT_THAT("as wall time", recording_wall_ns(first, 1700000099250000000, &wall_ns) &&
					    wall_ns == 1700000099250000000);
	EXPECT_THAT("a stopped process is alive and stopped",
		    second->life == RECORDING_ALIVE && second->process_state == 'T');
	EXPECT(recording->processes[3]->life == RECORDING_KILLED);
	EXPECT(recording->processes[4]->life == RECORDING_ENDED);
	EXPECT_THAT("a process known only from its communicator exists",
		    recording->processes[5]->pid == 9 && recording->processes[5]->rank == 7 &&
			    recording->processes[5]->life == RECORDING_UNKNOWN &&
			    recording->processes[5]->comms[0].info.hash == 0);
}

static void check_counts(const struct recording *recording)
{
	const struct recording_comm *comm = recording_comm(recording->processes[1], 1);
	const struct recording_comm *other = recording_comm(recording->processes[2], 1);

	EXPECT(comm && comm->info.hash == 0xab && comm->info.rank == 0 && comm->info.nranks == 2 &&
	       comm->info.nnodes == 2 && comm->info.gpu == 0 &&
	       strcmp(comm->info.name, "dp") == 0 && strcmp(comm->info.gpu_uuid, "GPU-1") == 0);
	EXPECT(comm->has_counts && comm->counts.collectives == 12 && comm->counts.replays == 3 &&
	       comm->counts.issued == 22 && comm->counts.last_done_number == 19);
	EXPECT_THAT("52 bits of a signature are exact", comm->counts.signature == 4503599627370495);
	EXPECT(comm->counts.last_issue_ns == 1700000069000000000);
	EXPECT_THAT("a rank that reports kernels and transfers counts for all",
		    comm->info.flags == (COMM_FLAG_SEES_KERNELS | COMM_FLAG_SEES_PROXIES));
	EXPECT_THAT("a rank that left is marked",
		    other->info.flags & COMM_FLAG_FINALIZED && other->info.finalize_ns != 0);
	EXPECT_THAT("a GPU other than the process's first has no UUID",
		    other->info.gpu == 3 && other->info.gpu_uuid[0] == '\0');
}

static void check_flights(const struct recording *recording)
{
	const struct recording_process *process = recording->processes[1];
	const struct recording_process *other = recording->processes[2];
	const struct recording_flight *flight = &process->flights[1];
	const struct op_record *before = &process->flights[0].op;

	EXPECT_EQUAL(process->flight_count, 2);
	EXPECT(flight->op.function == OP_ALL_REDUCE && flight->op.datatype == OP_BFLOAT16 &&
	       flight->op.count == 6553600 && flight->op.bytes == 13107200 &&
	       flight->op.number == 21 && flight->op.match == 12 && flight->op.signature == 99 &&
	       flight->op.state == OP_RUNNING && flight->op.root == OP_NOBODY &&
	       flight->op.peer == OP_NOBODY);
	EXPECT(flight->op.issue_ns == 1700000099250000000 - 30500000000);
	EXPECT(flight->started[0] == 0xf && flight->stopped[0] == 0 &&
	       flight->op.kernels_started == 4 && flight->op.kernels_stopped == 0);
	EXPECT_THAT("it is open", flight_kind(process, flight) == FLIGHT_OPEN);
	EXPECT_THAT("and the previous collective is over",
		    before->state == OP_DONE && before->number == 20 && before->match == 11 &&
			    before->signature == 98 && before->function == OP_BROADCAST &&
			    before->root == 1 &&
			    flight_kind(process, &process->flights[0]) == FLIGHT_OVER);
	EXPECT_EQUAL(other->flight_count, 1);
	before = &other->flights[0].op;
	EXPECT_THAT("with nothing in flight the gauges show the last one",
		    before->number == 20 && before->match == 11 && before->signature == 7 &&
			    before->count == 6);
	EXPECT_THAT("an unknown function keeps its name",
		    strcmp(recording_name(other, OP_NAMES_FUNCTION, before->function),
			   "NewThing") == 0);
}

static void check_waits(const struct recording *recording)
{
	const struct recording_flight *flight = &recording->processes[1]->flights[1];
	struct flight_wait *waits;
	size_t count;

	EXPECT_EQUAL(flight_waits(flight->proxies, flight->proxy_count, &waits, &count), OK);
	EXPECT_EQUAL(count, 3);
	EXPECT_THAT("the longest wait first, with its channels",
		    waits[0].reason == FLIGHT_RECV_NET && waits[0].peer == 1 &&
			    waits[0].channels[0] == 3 && waits[0].channels[1] == 1 &&
			    waits[0].channels[3] == 0 &&
			    waits[0].since_ns == 1700000099250000000 - 30000000000);
	EXPECT(waits[1].reason == FLIGHT_SEND_QUEUED && waits[1].channels[0] == 4);
	EXPECT_THAT("a wait without channels is kept",
		    waits[2].reason == FLIGHT_SEND_NET && waits[2].peer == 0);
	free(waits);
}

static void test_standing(void)
{
	static struct answer limits;
	struct prom *prom = made("j");
	struct recording recording;
	struct job job;

	give_processes(prom);
	give_numbers(prom);
	give_calls(prom);
	begin(&limits);
	sample(&limits, "'nccl_job':'j'", "900");
	EXPECT_EQUAL(give(prom, "how long jobs may wait", &limits), OK);
	recording_init(&recording);
	EXPECT_EQUAL(prom_finish(prom, &recording), OK);
	EXPECT_THAT("RINGSIDE_HANG_AFTER of the job",
		    recording_hang_after_ns(recording.processes[0]) == 0 &&
			    recording_hang_after_ns(recording.processes[1]) == 900000000000);
	EXPECT(prom_wall_ns(prom) == 1700000100500000000);
	check_processes(&recording);
	check_counts(&recording);
	check_flights(&recording);
	check_waits(&recording);
	EXPECT_EQUAL(job_make(&job, &recording), OK);
	EXPECT_THAT("ranks of different hosts are one communicator",
		    job.comm_count == 2 && job.comms[0].seat_count == 2 &&
			    job.comms[0].kind == JOB_COMM_NET && job.comms[0].missing == 0);
	job_release(&job);
	recording_release(&recording);
	prom_free(prom);
}

/* Only the numbers are known, not their names. */
static void test_nobody(void)
{
	struct prom *prom = made("j");
	struct recording recording;
	size_t count;

	give_numbers(prom);
	give_calls(prom);
	recording_init(&recording);
	EXPECT_EQUAL(prom_finish(prom, &recording), OK);
	EXPECT_EQUAL(recording.count, 0);
	EXPECT(prom_sources(prom, &count) && count == 0);
	EXPECT(prom_now(prom)->member_count == 0 && prom_before(prom) == NULL);
	recording_release(&recording);
	prom_free(prom);
}

/* ---- agents that are down ------------------------------------------------------------------------- */

static void test_down(void)
{
	struct prom *prom = made("j");
	const struct hang_source *sources;
	struct recording recording;
	struct answer answer;
	size_t count;

	begin(&answer);
	sample(&answer, "'instance':'n1:9749','node':'n1'", "0");
	sample(&answer, "'instance':'n2:9749'", "0");
	EXPECT_EQUAL(give(prom, "agents that are down", &answer), OK);
	begin(&answer);
	for (int i = 0; i < 3; i++) {
		static const char *const ranks[] = { "9", "8", "12" };
		char labels[200];

		/* Each in two communicators. */
		for (int c = 0; c < 2; c++) {
			snprintf(labels, sizeof(labels),
				 "'comm':'%d','global_rank':'%s','instance':'n1:9749','nccl_job':'"
				 "j',"
				 "'rank':'%s'",
				 c, ranks[i], ranks[i]);
			sample(&answer, labels, "1");
		}
	}
	EXPECT_EQUAL(give(prom, "ranks of agents that are down", &answer), OK);
	recording_init(&recording);
	EXPECT_EQUAL(prom_finish(prom, &recording), OK);
	sources = prom_sources(prom, &count);
	EXPECT_EQUAL(count, 2);
	EXPECT(sources[0].is_silent && strcmp(sources[0].name, "n1:9749") == 0 &&
	       strcmp(sources[0].problem,
		      "Prometheus cannot scrape it; it had ranks 8-9,12 of job j") == 0);
	EXPECT(sources[1].is_silent &&
	       strcmp(sources[1].problem, "Prometheus cannot scrape it") == 0);
	recording_release(&recording);
	prom_free(prom);
}

/* ---- totals ---------------------------------------------------------------------------------- */

static void give_sum(struct prom *prom, const char *name, const char *value)
{
	struct answer answer;

	begin(&answer);
	if (strstr(name, "transfer") || strstr(name, "wire"))
		sample(&answer, DP "'1','peer':'0'", value);
	else
		sample(&answer, DP "'1','function':'AllReduce','size':'1MiB'", value);
	EXPECT_EQUAL(give(prom, name, &answer), OK);
}

static void test_sums(void)
{
	struct prom *prom = made("j");
	struct recording recording;
	const struct slow_sums *now;

	give_processes(prom);
	give_sum(prom, "operations now", "100.25");
	give_sum(prom, "time in operations now", "2.5e-05");
	give_sum(prom, "bytes now", "1e+09");
	give_sum(prom, "timed operations now", "4.5");
	give_sum(prom, "operations before", "100");
	give_sum(prom, "time in operations before", "3");
	give_sum(prom, "transfers now", "7");
	give_sum(prom, "time on the wire now", "0.5");
	give_sum(prom, "bytes on the wire now", "4096");
	recording_init(&recording);
	EXPECT_EQUAL(prom_finish(prom, &recording), OK);
	now = prom_now(prom);
	EXPECT(now->member_count == 1 && now->edge_count == 1 && now->seconds == 300);
	EXPECT(now->members[0].operations == 100.25 && now->members[0].timed == 4.5 &&
	       now->members[0].seconds == 2.5e-05 && now->members[0].bus_bytes == 1e9);
	EXPECT(now->members[0].function == OP_ALL_REDUCE &&
	       strcmp(now->members[0].size, "1MiB") == 0);
	EXPECT(now->members[0].comm_hash == 0xab && now->members[0].comm_rank == 1 &&
	       now->members[0].rank == 1 && now->members[0].kind == JOB_COMM_NET &&
	       strcmp(now->members[0].host, "n1") == 0 && strcmp(now->members[0].comm, "dp") == 0);
	EXPECT(now->edges[0].from == 1 && now->edges[0].to == 0 && now->edges[0].transfers == 7 &&
	       now->edges[0].wire_seconds == 0.5 && now->edges[0].bytes == 4096);
	EXPECT_THAT("if one of three is missing, the past is unknown", prom_before(prom) == NULL);
	recording_release(&recording);
	prom_free(prom);
}

/* Four ranks; the others spend five seconds longer in their collectives than the first. */
static void give_late(struct prom *prom)
{
	static const char *const names[] = { "communicators", "operations now",
					     "time in operations now", "bytes now",
					     "timed operations now" };
	struct answer answer;

	for (unsigned int i = 0; i < 5; i++) {
		begin(&answer);
		for (unsigned int rank = 0; rank < 4; rank++) {
			char labels[256];

			snprintf(labels, sizeof(labels),
				 i == 0 ? DP "'%u','global_rank':'%u','host':'n%u','nnodes':'4',"
					     "'nranks':'4','pid':'10'"
					: DP "'%u','function':'AllReduce','size':'1MiB'",
				 rank, rank, rank);
			sample(&answer, labels,
			       i == 1 || i == 4	     ? "100"
			       : i == 2 && rank == 0 ? "1"
			       : i == 2		     ? "6"
						     : "1000000");
		}
		EXPECT_EQUAL(give(prom, names[i], &answer), OK);
	}
}

/* A job that has run for 20 s lost a quarter of its time; one that has run for five minutes almost nothing. */
static void test_young(void)
{
	for (int is_young = 0; is_young < 2; is_young++) {
		struct slow_sums_options options = { .threshold = 0.1 };
		struct prom *prom = made("j");
		struct recording recording;
		struct verdicts verdicts;
		struct answer answer;

		give_late(prom);
		begin(&answer);
		sample(&answer, "'nccl_job':'other'", "1700000099");
		sample(&answer, "'nccl_job':'j'", is_young ? "1700000080.5" : "1699990000");
		EXPECT_EQUAL(give(prom, "since when jobs run", &answer), OK);
		recording_init(&recording);
		EXPECT_EQUAL(prom_finish(prom, &recording), OK);
		verdicts_init(&verdicts);
		EXPECT_EQUAL(prom_slow(prom, &verdicts, &options), OK);
		if (is_young)
			EXPECT_THAT("a straggler in a young job is reported",
				    verdicts.count == 1 &&
					    verdicts.list[0].class == VERDICT_SLOW_RANK &&
					    verdicts.list[0].rank == 0 &&
					    fabs(verdicts.list[0].percent - 25) < 0.01);
		else
			EXPECT_THAT("the same over five minutes is negligible",
				    verdicts.count == 0);
		verdicts_release(&verdicts);
		recording_release(&recording);
		prom_free(prom);
	}
}

/* ---- all of it, as text ------------------------------------------------------------------------- */

static struct expected_text shown;

static void show_queries(void)
{
	static const struct prom_options options[] = {
		{ .job = NULL },
		{ .job = "j", .hang_ns = 8000000000, .window_s = 60, .past_s = 7200 },
		{ .job = "a b", .hang_ns = 100000000, .window_s = 30, .past_s = 90 },
	};

	for (size_t o = 0; o < sizeof(options) / sizeof(options[0]); o++) {
		struct prom *prom = prom_new(&options[o]);

		expected_put(&shown, "=== queries %zu\n", o);
		for (size_t i = 0; prom != NULL && prom_path(prom, i) != NULL; i++) {
			expected_put(&shown, "%s: %s\n", prom_name(prom, i), prom_query(prom, i));
			if (o == 2)
				expected_put(&shown, "  %s\n", prom_path(prom, i));
		}
		prom_free(prom);
	}
}

static void show_flight(const struct recording_process *process,
			const struct recording_flight *flight)
{
	const struct op_record *op = &flight->op;

	expected_put(&shown,
		     "    %s #%" PRIu64 " of %u, match %" PRIu64 " %" PRIx64 ", %" PRIu64
		     " %s, %" PRIu64 " B, root %d, peer %d, state %d",
		     recording_name(process, OP_NAMES_FUNCTION, op->function), op->number, op->comm,
		     op->match, op->signature, op->count,
		     recording_name(process, OP_NAMES_DATATYPE, op->datatype), op->bytes, op->root,
		     op->peer, op->state);
	expected_put(&shown,
		     ", flags %x, called %" PRIu64 ", active %" PRIu64 ", kernels %d %d %" PRIx64
		     " %" PRIx64 ", open %u\n",
		     op->flags, op->issue_ns, op->active_ns, op->kernels_started,
		     op->kernels_stopped, flight->started[0], flight->stopped[0],
		     flight->open_children);
	for (size_t i = 0; i < flight->proxy_count; i++) {
		const struct recording_proxy *of = &flight->proxies[i];

		expected_put(&shown,
			     "      proxy peer %d, channel %d, flags %x, %d steps, %u done, "
			     "since %" PRIu64 ", open %u state %d\n",
			     of->proxy.peer, of->proxy.channel, of->proxy.flags, of->proxy.steps,
			     of->proxy.done, of->proxy.since_ns, of->step_count,
			     of->step_count > 0 ? of->steps[0].state : -1);
	}
}

static void show_recording(const struct recording *recording)
{
	for (size_t p = 0; p < recording->count; p++) {
		const struct recording_process *process = recording->processes[p];

		expected_put(&shown,
			     "process %s rank %" PRId64 " on %s, pid %" PRId64 ", world %" PRId64
			     ", life %d %d, now %" PRIu64 "\n",
			     process->job, process->rank, process->host, process->pid,
			     process->world_size, process->life, process->process_state,
			     process->counts_ns);
		for (size_t c = 0; c < process->comm_count; c++) {
			const struct recording_comm *comm = &process->comms[c];
			const struct comm_counts *counts = &comm->counts;

			expected_put(&shown,
				     "  %u %" PRIx64 " %s: rank %d of %d, %d nodes, gpu %d "
				     "%s, flags %x, ended %" PRIu64 "\n",
				     comm->info.id, comm->info.hash, comm->info.name,
				     comm->info.rank, comm->info.nranks, comm->info.nnodes,
				     comm->info.gpu, comm->info.gpu_uuid, comm->info.flags,
				     comm->info.finalize_ns);
			expected_put(&shown,
				     "    counts %d: %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
				     " %" PRIx64 ", %" PRIu64 " %" PRIu64 "\n",
				     comm->has_counts, counts->issued, counts->collectives,
				     counts->replays, counts->last_done_number, counts->signature,
				     counts->last_issue_ns, counts->last_done_ns);
		}
		for (size_t f = 0; f < process->flight_count; f++)
			show_flight(process, &process->flights[f]);
	}
}

static void show_sums(const char *name, const struct slow_sums *sums)
{
	if (sums == NULL) {
		expected_put(&shown, "%s: unknown\n", name);
		return;
	}
	expected_put(&shown, "%s: %.1f s\n", name, sums->seconds);
	for (size_t i = 0; i < sums->member_count; i++) {
		const struct slow_member *of = &sums->members[i];

		expected_put(&shown,
			     "  %s %s %" PRIx64 " kind %d, rank %d of %d, %" PRId64
			     " on %s, pid %" PRId64 ", gpu %d: %d %s %.2f %.2f %.4f %.1f\n",
			     of->job, of->comm, of->comm_hash, of->kind, of->comm_rank, of->nranks,
			     of->rank, of->host, of->pid, of->gpu, of->function, of->size,
			     of->operations, of->timed, of->seconds, of->bus_bytes);
	}
	for (size_t i = 0; i < sums->edge_count; i++) {
		const struct slow_edge *of = &sums->edges[i];

		expected_put(&shown, "  %s %s %" PRIx64 ": %d -> %d, %.2f %.4f %.1f\n", of->job,
			     of->comm, of->comm_hash, of->from, of->to, of->transfers,
			     of->wire_seconds, of->bytes);
	}
}

static void show_all(const char *what, struct prom *prom)
{
	struct slow_sums_options options = { .threshold = 0.1 };
	const struct hang_source *sources;
	struct recording recording;
	struct verdicts verdicts;
	size_t count;

	expected_put(&shown, "=== %s\n", what);
	recording_init(&recording);
	EXPECT_EQUAL(prom_finish(prom, &recording), OK);
	show_recording(&recording);
	show_sums("now", prom_now(prom));
	show_sums("before", prom_before(prom));
	sources = prom_sources(prom, &count);
	for (size_t i = 0; i < count; i++)
		expected_put(&shown, "source %s%s: %s\n", sources[i].name,
			     sources[i].is_silent ? " silent" : "", sources[i].problem);
	expected_put(&shown, "%zu odd, warning: %s, wall %" PRIu64 "\n", prom_odd_series(prom),
		     prom_warning(prom), prom_wall_ns(prom));
	verdicts_init(&verdicts);
	EXPECT_EQUAL(prom_slow(prom, &verdicts, &options), OK);
	expected_put_verdicts(&shown, "slow", &verdicts);
	verdicts_release(&verdicts);
	recording_release(&recording);
	prom_free(prom);
}

/* Two jobs of two hosts with four ranks each; each rank is in "dp" of all and in a pair of its host. */
enum { JOBS = 2, JOB_RANKS = 4 };

static void label_rank(char *to, size_t size, int job, int rank, bool is_pair)
{
	snprintf(to, size, "'comm':'00000000000000%d%d','nccl_job':'job%d','rank':'%d'", job + 1,
		 is_pair ? 1 + rank / 2 : 0, job, is_pair ? rank % 2 : rank);
}

static void give_whole(struct prom *prom, bool has_before)
{
	static const char *const sums[] = { "operations",	  "timed operations",
					    "time in operations", "bytes",
					    "transfers",	  "time on the wire",
					    "bytes on the wire" };
	static struct answer answer;
	char place[200], labels[400], name[64], value[32];

	begin(&answer);
	for (int i = 0; i < JOBS * JOB_RANKS; i++) {
		snprintf(labels, sizeof(labels),
			 "'global_rank':'%d','gpu':'%d','gpu_uuid':'GPU-%d','host':'n%d',"
			 "'interface':'5','nccl_job':'job%d','pid':'%d','state':'alive',"
			 "'world_size':'4'",
			 i % JOB_RANKS, i % 2, i, i / 2, i / JOB_RANKS, 100 + i);
		sample(&answer, labels, "1700000099.5");
	}
	EXPECT_EQUAL(give(prom, "processes", &answer), OK);
	begin(&answer);
	for (int i = 0; i < 2 * JOBS * JOB_RANKS; i++) {
		int rank = i / 2 % JOB_RANKS, job = i / 2 / JOB_RANKS;

		label_rank(place, sizeof(place), job, rank, i % 2);
		snprintf(labels, sizeof(labels),
			 "%s,'comm_name':'%s','nnodes':'%d','nranks':'%d','host':'n%d','pid':'%d',"
			 "'global_rank':'%d','gpu':'%d'",
			 place, i % 2 ? "tp" : "dp", i % 2 ? 1 : 2, i % 2 ? 2 : 4,
			 rank / 2 + 2 * job, 100 + i / 2, rank, rank % 2);
		sample(&answer, labels, "1");
	}
	EXPECT_EQUAL(give(prom, "communicators", &answer), OK);
	/* Of the second job, rank 1 has not called what the others are in. */
	begin(&answer);
	for (int i = 0; i < JOB_RANKS; i++) {
		label_rank(place, sizeof(place), 1, i, false);
		snprintf(labels, sizeof(labels), "'__name__':'nccl_collective_number_issued',%s",
			 place);
		sample(&answer, labels, i == 1 ? "7" : "8");
		snprintf(labels, sizeof(labels), "'__name__':'nccl_operation_number_issued',%s",
			 place);
		sample(&answer, labels, i == 1 ? "7" : "8");
		snprintf(labels, sizeof(labels), "'__name__':'nccl_operation_number_done',%s",
			 place);
		sample(&answer, labels, "7");
		snprintf(labels, sizeof(labels), "'__name__':'nccl_collective_signature',%s",
			 place);
		sample(&answer, labels, i == 1 ? "97" : "98");
		snprintf(labels, sizeof(labels), "'__name__':'nccl_last_activity_age_seconds',%s",
			 place);
		sample(&answer, labels, "40");
		snprintf(labels, sizeof(labels),
			 "'__name__':'nccl_oldest_operation_age_seconds',%s", place);
		sample(&answer, labels, i == 1 ? "0" : "40");
	}
	EXPECT_EQUAL(give(prom, "progress of ranks", &answer), OK);
	begin(&answer);
	for (int i = 0; i < JOB_RANKS; i++)
		for (int call = 8; i != 1 && call < 10; call++) {
			label_rank(place, sizeof(place), 1, i, false);
			snprintf(labels, sizeof(labels),
				 "%s,'count':'%d','datatype':'float32','function':'AllReduce',"
				 "'kernels_started':'0-1','kernels_stopped':'%s','match':'%d',"
				 "'number':'%d','signature':'%d','state':'%s'",
				 place, 1024 * call, call == 8 ? "1" : "none", call, call,
				 90 + call, call == 8 ? "running" : "launched");
			sample(&answer, labels, "1");
		}
	EXPECT_EQUAL(give(prom, "operations in flight", &answer), OK);
	for (size_t i = 0; i < 2 * sizeof(sums) / sizeof(sums[0]); i++) {
		bool is_before = i % 2, is_wire = i / 2 >= 4;

		if (is_before && !has_before)
			continue;
		snprintf(name, sizeof(name), "%s %s", sums[i / 2], is_before ? "before" : "now");
		begin(&answer);
		for (int r = 0; r < JOBS * JOB_RANKS; r++)
			for (int part = 0; part < 2; part++) {
				int rank = r % JOB_RANKS;

				label_rank(place, sizeof(place), r / JOB_RANKS, rank,
					   part && !is_wire);
				if (is_wire)
					snprintf(labels, sizeof(labels), "%s,'peer':'%d'", place,
						 (rank + 1 + part) % JOB_RANKS);
				else
					snprintf(labels, sizeof(labels),
						 "%s,'function':'%s','size':'%s'", place,
						 part ? "AllGather" : "AllReduce",
						 part ? "64KiB" : "1MiB");
				/* Rank 2 of the first job keeps the others waiting. */
				snprintf(value, sizeof(value), "%.2f",
					 i / 2 == 2 ? (r == 2 || is_before ? 10.0 : 90.0)
					 : i / 2 == 5
						 ? (r == 1 && !is_before ? 9.5 : 1.5)
						 : (i / 2 == 1 ? 900.0
							       : 1000.0 * (double)(i / 2 + 1)) +
							   r);
				sample(&answer, labels, value);
			}
		EXPECT_EQUAL(give(prom, name, &answer), OK);
	}
	begin(&answer);
	sample(&answer, "'nccl_job':'job0'", "1699990000");
	sample(&answer, "'nccl_job':'job1'", "1700000000");
	EXPECT_EQUAL(give(prom, "since when jobs run", &answer), OK);
	begin(&answer);
	sample(&answer, "'nccl_job':'job1'", "30");
	sample(&answer, "'nccl_job':'job0'", "60");
	EXPECT_EQUAL(give(prom, "how long jobs may wait", &answer), OK);
}

static void test_whole(void)
{
	for (int has_before = 0; has_before < 2; has_before++) {
		struct prom *prom = made(NULL);

		give_whole(prom, has_before);
		show_all(has_before ? "two jobs, now and before" : "two jobs", prom);
	}
}

/* More names than the first tables have room for. */
static void test_large(void)
{
	static char text[1 << 19];
	struct prom *prom = made(NULL);
	struct recording recording;
	size_t used, right = 0;

	text_copy(text, sizeof(text), VECTOR "[");
	used = strlen(text);
	for (int i = 0; i < 3000; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used,
					 "%s{\"metric\":{\"nccl_job\":\"j\",\"comm\":\"%016x\","
					 "\"rank\":\"0\",\"host\":\"h%d\",\"pid\":\"%d\","
					 "\"global_rank\":\"%d\"},\"value\":[1,\"1\"]}",
					 i == 0 ? "" : ",", i + 1, i, i + 10, i);
	snprintf(text + used, sizeof(text) - used, "]}}");
	EXPECT_EQUAL(take(prom, query_of(prom, "communicators"), text), OK);
	recording_init(&recording);
	EXPECT_EQUAL(prom_finish(prom, &recording), OK);
	EXPECT_EQUAL(recording.count, 3000);
	for (size_t i = 0; i < recording.count; i++) {
		const struct recording_process *process = recording.processes[i];
		char host[16];

		text_format(host, sizeof(host), "h%zu", i);
		right += process->rank == (int64_t)i && process->pid == (int64_t)i + 10 &&
			 process->comm_count == 1 && process->comms[0].info.hash == i + 1 &&
			 strcmp(process->host, host) == 0;
	}
	EXPECT_EQUAL(right, 3000);
	recording_release(&recording);
	prom_free(prom);
}

int main(void)
{
	test_queries();
	test_refused();
	test_odd();
	test_standing();
	test_nobody();
	test_down();
	test_sums();
	test_young();
	show_queries();
	test_whole();
	test_large();
	expected_compare(&shown, "tests/unit/doctor/expected/prom.txt");
	return tap_done();
}
