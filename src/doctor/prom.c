/*
 * The queries. Ranks are matched by the reader of the answers; the queries only leave out what is not
 * needed: of thousands of communicators they select those with an old operation. A node that is scraped
 * twice, under different target labels, has every series twice: each query keeps one by the labels of the
 * series itself, and sums nothing.
 *
 *	old      communicators with an operation in flight for more than a quarter of the hang limit
 *	near     all ranks of processes that are in one of these and have nothing in flight there: the
 *	         others wait for one of them, and its last activity, wherever, shows why
 */
#include "doctor/prom.h"
#include "common/clock.h"
#include "doctor/prom_internal.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "common/text.h"
#include "import/json_scan.h"

/* The labels that are used, in Prometheus' order. */
enum prom_label {
	PROM_LABEL_NAME,
	PROM_LABEL_CHANNELS,
	PROM_LABEL_COMM,
	PROM_LABEL_COMM_NAME,
	PROM_LABEL_COUNT,
	PROM_LABEL_DATATYPE,
	PROM_LABEL_FINALIZED,
	PROM_LABEL_FUNCTION,
	PROM_LABEL_GLOBAL_RANK,
	PROM_LABEL_GPU,
	PROM_LABEL_GPU_UUID,
	PROM_LABEL_HOST,
	PROM_LABEL_INSTANCE,
	PROM_LABEL_INTERFACE,
	PROM_LABEL_KERNELS_STARTED,
	PROM_LABEL_KERNELS_STOPPED,
	PROM_LABEL_LOCAL_RANK,
	PROM_LABEL_MATCH,
	PROM_LABEL_MODE,
	PROM_LABEL_NCCL_JOB,
	PROM_LABEL_NNODES,
	PROM_LABEL_NRANKS,
	PROM_LABEL_NUMBER,
	PROM_LABEL_PEER,
	PROM_LABEL_PID,
	PROM_LABEL_RANK,
	PROM_LABEL_REPLAY,
	PROM_LABEL_ROOT,
	PROM_LABEL_SIGNATURE,
	PROM_LABEL_SIZE,
	PROM_LABEL_STATE,
	PROM_LABEL_WAITS_FOR,
	PROM_LABEL_WORLD_SIZE,
	PROM_LABELS,
};

/* ---- one answer ------------------------------------------------------------------------- */

struct prom_sample {
	struct prom_slice labels[PROM_LABELS];
	double value;
	uint64_t whole; /* the value if it is an integer, exact */
	bool is_whole;
	double at; /* when Prometheus evaluated it: seconds since 1970 */
};

/* One sample. False stops the scan. */
typedef bool prom_visit(struct prom *prom, enum prom_ask ask, const struct prom_sample *sample);

struct prom_answer {
	size_t samples;
	size_t odd;	   /* malformed series: not passed on */
	char warning[160]; /* the first; "" none */
};

/*
 * In the queries, $job selects the requested job, if one is, $age is a quarter of the hang limit, $window
 * and $past are the time spans of prom_options and $step divides the first. Only if all jobs are
 * requested: $all( ... $); only if no past is given: $young( ... $).
 */
#define OF_COMMS "{$job,comm!=\"other\"}"
#define OLD " and on (nccl_job, comm) (nccl_oldest_operation_age_seconds" OF_COMMS " > $age)"
/* Ranks of old communicators, and those near them. */
#define OLD_OR_NEAR                                                              \
	" and on (nccl_job, comm, rank) (nccl_operations_in_flight" OF_COMMS OLD \
	" or nccl_communicator_info" OF_COMMS                                    \
	" and on (nccl_job, host, pid) (nccl_communicator_info" OF_COMMS         \
	" and on (nccl_job, comm, rank) (nccl_operations_in_flight" OF_COMMS " == 0" OLD ")))"

#define NOW(series) "increase(" series "[$window])"
#define BEFORE(series)                               \
	"increase(" series "[$window] offset $past)" \
	"$young( or increase(" series "[$window] offset 900s)$)"
#define SIZED(name)                                                                            \
	name "{$job,comm!=\"other\",function=~\"AllReduce|AllGather|ReduceScatter|AlltoAll\"," \
	     "size!~\"unknown|other\"}"
#define SENT(name) name "{$job,comm!=\"other\",direction=\"send\",peer!=\"other\"}"
#define ON_WIRE                         \
	"nccl_proxy_wait_seconds_total" \
	"{$job,comm!=\"other\",direction=\"send\",peer!=\"other\",state=\"net\"}"
#define BY_SIZE(increase) "max by (nccl_job, comm, rank, function, size) (" increase ") > 0"
#define BY_PEER(increase) "max by (nccl_job, comm, rank, peer) (" increase ") > 0"

static const struct {
	const char *name;
	const char *query;
} asks[PROM_ASKS] = {
	[PROM_PROCESSES] = { "processes",
			     "max by (nccl_job, host, pid, global_rank, local_rank, world_size, "
			     "gpu, gpu_uuid, mode, interface, state) "
			     "(timestamp(nccl_process_info{$job,run=\"\"}))" },
	[PROM_MEMBERS] = { "communicators",
			   "group by (nccl_job, comm, rank, comm_name, nranks, nnodes, "
			   "global_rank, host, pid, gpu, finalized) "
			   "(nccl_communicator_info" OF_COMMS " unless on (nccl_job, host, pid) "
			   "nccl_process_info{$job,run!=\"\"})" },
	[PROM_NUMBERS] = { "progress of ranks",
			   "max by (__name__, nccl_job, comm, rank) "
			   "({$job,__name__=~\"nccl_collective_number_(issued|replayed)|"
			   "nccl_operation_number_(issued|done)|nccl_collective_signature|"
			   "nccl_oldest_operation_age_seconds|nccl_last_activity_age_seconds\","
			   "comm!=\"other\"}" OLD_OR_NEAR ")" },
	[PROM_OLDEST] = { "operations in flight",
			  "max by (nccl_job, comm, rank, function, count, datatype, root, number, "
			  "match, signature, replay, state, kernels_started, kernels_stopped, "
			  "peer) (nccl_oldest_operation_info" OF_COMMS OLD ")" },
	[PROM_WAITS] = { "what they wait for",
			 "max by (nccl_job, comm, rank, waits_for, peer, channels) "
			 "(nccl_oldest_operation_wait_seconds" OF_COMMS OLD ")" },
	[PROM_LAST] = { "what was called last",
			"max by (nccl_job, comm, rank, function, count, datatype, root, match, "
			"signature) (nccl_last_collective_info" OF_COMMS OLD_OR_NEAR ")" },
	/* Agents that do not answer. For one job: those that reported it within the last hour;
	 * otherwise also those that never reported anything. A target that is down has no series,
	 * so its last ones are queried. */
	[PROM_DOWN] = { "agents that are down",
			"max by (instance, node) ($all(up{job=~\"ringside.*\"} == 0 or $)"
			"up == 0 and on (job, instance) "
			"last_over_time(nccl_process_info{$job}[1h]))" },
	[PROM_UNSEEN] = { "ranks of agents that are down",
			  "group by (instance, nccl_job, comm, rank, global_rank, host, pid) "
			  "(last_over_time(nccl_communicator_info" OF_COMMS "[1h]) "
			  "and on (job, instance) (up == 0)" OLD ")" },
	/* A job younger than the time span did its work in less time. */
	[PROM_SINCE] = { "since when jobs run",
			 "min by (nccl_job) "
			 "(min_over_time(timestamp(nccl_process_info{$job})[$window:$step]))" },
	[PROM_LIMITS] = { "how long jobs may wait",
			  "max by (nccl_job) (nccl_job_hang_threshold_seconds{$job})" },
	[PROM_SUMS_NOW] = { "operations now", BY_SIZE(NOW(SIZED("nccl_operations_total"))) },
	[PROM_SUMS_NOW + 1] = { "time in operations now",
				BY_SIZE(NOW(SIZED("nccl_operation_seconds_total"))) },
	[PROM_SUMS_NOW + 2] = { "bytes now",
				BY_SIZE(NOW(SIZED("nccl_operation_bus_bytes_total"))) },
	[PROM_SUMS_BEFORE] = { "operations before",
			       BY_SIZE(BEFORE(SIZED("nccl_operations_total"))) },
	[PROM_SUMS_BEFORE + 1] = { "time in operations before",
				   BY_SIZE(BEFORE(SIZED("nccl_operation_seconds_total"))) },
	[PROM_SUMS_BEFORE + 2] = { "bytes before",
				   BY_SIZE(BEFORE(SIZED("nccl_operation_bus_bytes_total"))) },
	[PROM_EDGES_NOW] = { "transfers now", BY_PEER(NOW(SENT("nccl_proxy_transfers_total"))) },
	[PROM_EDGES_NOW + 1] = { "time on the wire now", BY_PEER(NOW(ON_WIRE)) },
	[PROM_EDGES_NOW + 2] = { "bytes on the wire now",
				 BY_PEER(NOW(SENT("nccl_proxy_bytes_total"))) },
	[PROM_EDGES_BEFORE] = { "transfers before",
				BY_PEER(BEFORE(SENT("nccl_proxy_transfers_total"))) },
	[PROM_EDGES_BEFORE + 1] = { "time on the wire before", BY_PEER(BEFORE(ON_WIRE)) },
	[PROM_EDGES_BEFORE + 2] = { "bytes on the wire before",
				    BY_PEER(BEFORE(SENT("nccl_proxy_bytes_total"))) },
	[PROM_TIMED_NOW] = { "timed operations now",
			     BY_SIZE(NOW(SIZED("nccl_timed_operations_total"))) },
	[PROM_TIMED_BEFORE] = { "timed operations before",
				BY_SIZE(BEFORE(SIZED("nccl_timed_operations_total"))) },
};

/* Queries are written into a buffer large enough for all of them. */
enum { QUERY_BYTES = 8192, STEPS = 30 };
#define PUT(text, ...) text_append(text, QUERY_BYTES, __VA_ARGS__)

static void put_job(char *text, const char *job)
{
	PUT(text, "nccl_job=\"");
	for (const char *at = job; *at != '\0'; at++) {
		if (*at == '\n')
			PUT(text, "\\n");
		else
			PUT(text, "%s%c", *at == '"' || *at == '\\' ? "\\" : "", *at);
	}
	PUT(text, "\"");
}

static bool skip_word(const char **at, const char *word)
{
	size_t length = strlen(word);

	if (strncmp(*at, word, length) != 0)
		return false;
	*at += length;
	return true;
}

static void put_query(char *text, const struct prom *prom, const char *at)
{
	bool has_job = prom->job[0] != '\0';

	while (*at != '\0') {
		size_t plain = strcspn(at, "$");

		PUT(text, "%.*s", (int)plain, at);
		at += plain;
		if (has_job && skip_word(&at, "$job"))
			put_job(text, prom->job);
		else if (skip_word(&at, "$job,") || skip_word(&at, "$job") || skip_word(&at, "$)"))
			continue;
		else if (skip_word(&at, "$age"))
			PUT(text, "%.3f", (double)prom->hang_ns / 4e9);
		else if (skip_word(&at, "$window"))
			PUT(text, "%us", prom->window_s);
		else if (skip_word(&at, "$past"))
			PUT(text, "%us", prom->past_s);
		else if (skip_word(&at, "$step"))
			PUT(text, "%us", prom->window_s < 2 * STEPS ? 1 : prom->window_s / STEPS);
		else if ((skip_word(&at, "$all(") && has_job) ||
			 (skip_word(&at, "$young(") && prom->has_past))
			at = strstr(at, "$)");
	}
}

/* NULL: out of memory. */
static char *path_of(const char *query)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
				    "-_.~";
	static const char begin[] = "/api/v1/query?query=";
	size_t room = sizeof(begin) + 3 * strlen(query), used = sizeof(begin) - 1;
	char *path = malloc(room);

	if (path == NULL)
		return NULL;
	text_copy(path, room, begin);
	for (const char *at = query; *at != '\0'; at++) {
		text_format(path + used, room - used, strchr(plain, *at) != NULL ? "%c" : "%%%02X",
			    (unsigned char)*at);
		used += strlen(path + used);
	}
	return path;
}

/* False: out of memory. */
static bool prom_make_queries(struct prom *prom)
{
	for (enum prom_ask ask = 0; ask < PROM_ASKS; ask++) {
		char query[QUERY_BYTES] = "";

		put_query(query, prom, asks[ask].query);
		prom->queries[ask] = strdup(query);
		prom->paths[ask] = path_of(query);
		if (prom->queries[ask] == NULL || prom->paths[ask] == NULL)
			return false;
	}
	return true;
}

/*
 * One answer of Prometheus' HTTP API, in two passes: the first checks that all of it is valid and reads its
 * metadata, the second reads the samples.
 *
 *	{"status":"success","data":{"resultType":"vector","result":[
 *	  {"metric":{"comm":"...",...},"value":[1700000000.123,"812"]}, ...]},"warnings":["..."]}
 */

static const struct json_scan_key label_keys[PROM_LABELS] = {
	[PROM_LABEL_NAME] = JSON_SCAN_KEY_OF("__name__"),
	[PROM_LABEL_CHANNELS] = JSON_SCAN_KEY_OF("channels"),
	[PROM_LABEL_COMM] = JSON_SCAN_KEY_OF("comm"),
	[PROM_LABEL_COMM_NAME] = JSON_SCAN_KEY_OF("comm_name"),
	[PROM_LABEL_COUNT] = JSON_SCAN_KEY_OF("count"),
	[PROM_LABEL_DATATYPE] = JSON_SCAN_KEY_OF("datatype"),
	[PROM_LABEL_FINALIZED] = JSON_SCAN_KEY_OF("finalized"),
	[PROM_LABEL_FUNCTION] = JSON_SCAN_KEY_OF("function"),
	[PROM_LABEL_GLOBAL_RANK] = JSON_SCAN_KEY_OF("global_rank"),
	[PROM_LABEL_GPU] = JSON_SCAN_KEY_OF("gpu"),
	[PROM_LABEL_GPU_UUID] = JSON_SCAN_KEY_OF("gpu_uuid"),
	[PROM_LABEL_HOST] = JSON_SCAN_KEY_OF("host"),
	[PROM_LABEL_INSTANCE] = JSON_SCAN_KEY_OF("instance"),
	[PROM_LABEL_INTERFACE] = JSON_SCAN_KEY_OF("interface"),
	[PROM_LABEL_KERNELS_STARTED] = JSON_SCAN_KEY_OF("kernels_started"),
	[PROM_LABEL_KERNELS_STOPPED] = JSON_SCAN_KEY_OF("kernels_stopped"),
	[PROM_LABEL_LOCAL_RANK] = JSON_SCAN_KEY_OF("local_rank"),
	[PROM_LABEL_MATCH] = JSON_SCAN_KEY_OF("match"),
	[PROM_LABEL_MODE] = JSON_SCAN_KEY_OF("mode"),
	[PROM_LABEL_NCCL_JOB] = JSON_SCAN_KEY_OF("nccl_job"),
	[PROM_LABEL_NNODES] = JSON_SCAN_KEY_OF("nnodes"),
	[PROM_LABEL_NRANKS] = JSON_SCAN_KEY_OF("nranks"),
	[PROM_LABEL_NUMBER] = JSON_SCAN_KEY_OF("number"),
	[PROM_LABEL_PEER] = JSON_SCAN_KEY_OF("peer"),
	[PROM_LABEL_PID] = JSON_SCAN_KEY_OF("pid"),
	[PROM_LABEL_RANK] = JSON_SCAN_KEY_OF("rank"),
	[PROM_LABEL_REPLAY] = JSON_SCAN_KEY_OF("replay"),
	[PROM_LABEL_ROOT] = JSON_SCAN_KEY_OF("root"),
	[PROM_LABEL_SIGNATURE] = JSON_SCAN_KEY_OF("signature"),
	[PROM_LABEL_SIZE] = JSON_SCAN_KEY_OF("size"),
	[PROM_LABEL_STATE] = JSON_SCAN_KEY_OF("state"),
	[PROM_LABEL_WAITS_FOR] = JSON_SCAN_KEY_OF("waits_for"),
	[PROM_LABEL_WORLD_SIZE] = JSON_SCAN_KEY_OF("world_size"),
};

/* Room for values with escapes; a value that does not fit is truncated. */
enum { DECODED_MAX = 2048 };

struct decoded {
	char bytes[DECODED_MAX];
	size_t used;
	/* The time of the last sample: nearly always that of the next. */
	struct prom_slice at_text;
	double at;
};

/* ---- the whole answer ------------------------------------------------------------------------ */

struct envelope {
	char status[16];
	char error_type[48];
	char error[240];
	char result_type[24];
	struct json_scan result; /* at the result, if has_result */
	bool has_result;
};

static void check_data(struct json_scan *scan, struct envelope *envelope)
{
	static const struct json_scan_key keys[] = { JSON_SCAN_KEY_OF("resultType"),
						     JSON_SCAN_KEY_OF("result") };
	int key, hint = 0;

	if (!json_scan_enter(scan, JSON_SCAN_OBJECT))
		return;
	while ((key = json_scan_next_key(scan, keys, 2, &hint)) >= JSON_SCAN_KEY_UNKNOWN) {
		if (key == 0) {
			json_scan_read_text(scan, envelope->result_type,
					    sizeof(envelope->result_type));
		} else {
			if (key == 1) {
				envelope->result = *scan;
				envelope->has_result = true;
			}
			json_scan_skip(scan);
		}
	}
}

/* The first of a list of strings. */
static void check_warnings(struct json_scan *scan, struct prom_answer *answer)
{
	enum json_scan_token token;

	if (!json_scan_enter(scan, JSON_SCAN_ARRAY))
		return;
	while ((token = json_scan_next(scan)) > JSON_SCAN_END && token != JSON_SCAN_ARRAY_END) {
		if (token == JSON_SCAN_STRING && answer->warning[0] == '\0')
			json_scan_text(scan, answer->warning, sizeof(answer->warning));
		else
			json_scan_skip(scan);
	}
}

static bool check_envelope(struct json_scan *scan, struct envelope *envelope,
			   struct prom_answer *answer)
{
	static const struct json_scan_key keys[] = {
		JSON_SCAN_KEY_OF("status"), JSON_SCAN_KEY_OF("data"), JSON_SCAN_KEY_OF("errorType"),
		JSON_SCAN_KEY_OF("error"), JSON_SCAN_KEY_OF("warnings")
	};
	int key, hint = 0;

	if (json_scan_next(scan) != JSON_SCAN_OBJECT)
		return false;
	while ((key = json_scan_next_key(scan, keys, 5, &hint)) >= JSON_SCAN_KEY_UNKNOWN) {
		if (key == 0)
			json_scan_read_text(scan, envelope->status, sizeof(envelope->status));
		else if (key == 1)
			check_data(scan, envelope);
		else if (key == 2)
			json_scan_read_text(scan, envelope->error_type,
					    sizeof(envelope->error_type));
		else if (key == 3)
			json_scan_read_text(scan, envelope->error, sizeof(envelope->error));
		else if (key == 4)
			check_warnings(scan, answer);
		else
			json_scan_skip(scan);
	}
	return key == JSON_SCAN_KEY_NONE && json_scan_next(scan) == JSON_SCAN_END;
}

/* In one line: a text that another program wrote. */
static void clean_line(char *text)
{
	for (char *at = text; *at != '\0'; at++)
		if ((unsigned char)*at < 0x20 || *at == 0x7f)
			*at = ' ';
	text_clean(text);
}

/* Foreign data is quoted by its beginning. */
static void say_foreign(const char *text, size_t length, const struct json_scan *scan, char *why,
			size_t why_size)
{
	char begin[48];
	size_t shown = length < sizeof(begin) - 1 ? length : sizeof(begin) - 1;

	if (length == 0) {
		text_copy(why, why_size,
			  "empty answer; is this the address of a Prometheus server?");
		return;
	}
	text_from_field(begin, sizeof(begin), text, shown);
	if (text[0] != '{')
		text_format(why, why_size,
			    "the answer is not JSON (it begins with \"%s\"); is this the address "
			    "of a Prometheus server, including the path before /api/v1?",
			    begin);
	else
		text_format(why, why_size,
			    "the answer is damaged at byte %zu of %zu (%s): truncated or modified "
			    "in transit; try again",
			    json_scan_offset(scan), length,
			    scan->problem ? scan->problem : "not an object");
}

static enum status check_answer(const char *text, size_t length, struct envelope *envelope,
				struct prom_answer *answer, char *why, size_t why_size)
{
	struct json_scan scan;

	json_scan_init(&scan, text, length);
	if (!check_envelope(&scan, envelope, answer)) {
		say_foreign(text, length, &scan, why, why_size);
		return ERR_FORMAT;
	}
	clean_line(envelope->error);
	clean_line(envelope->error_type);
	clean_line(answer->warning);
	if (strcmp(envelope->status, "success") != 0) {
		text_format(why, why_size, "Prometheus refused the query: %s%s%s",
			    envelope->error_type, envelope->error_type[0] ? ": " : "",
			    envelope->error[0] ? envelope->error : "no reason given");
		return ERR_FORMAT;
	}
	if (!envelope->has_result || strcmp(envelope->result_type, "vector") != 0) {
		text_copy(why, why_size,
			  "the answer is not a vector of samples; is this the address of a "
			  "Prometheus server?");
		return ERR_FORMAT;
	}
	return OK;
}

/* ---- samples --------------------------------------------------------------------------------- */

static struct prom_slice slice_of(const struct json_scan *scan, struct decoded *decoded)
{
	char *to = decoded->bytes + decoded->used;

	if (!scan->has_escapes)
		return (struct prom_slice){ scan->text, scan->length };
	if (decoded->used == DECODED_MAX)
		return (struct prom_slice){ "", 0 };
	json_scan_text(scan, to, DECODED_MAX - decoded->used);
	decoded->used += strlen(to) + 1;
	return (struct prom_slice){ to, strlen(to) };
}

static bool scan_labels(struct json_scan *scan, struct prom_sample *sample, struct decoded *decoded)
{
	bool is_good = true;
	int key, hint = 0;

	if (!json_scan_enter(scan, JSON_SCAN_OBJECT))
		return false;
	while ((key = json_scan_next_key(scan, label_keys, PROM_LABELS, &hint)) >=
	       JSON_SCAN_KEY_UNKNOWN) {
		if (json_scan_next(scan) != JSON_SCAN_STRING) {
			json_scan_skip(scan);
			is_good = false;
		} else if (key >= 0) {
			sample->labels[key] = slice_of(scan, decoded);
		}
	}
	return is_good;
}

/* Digits, possibly with a point, that a double holds exactly except for one division: most values. False:
 * use the general parser. */
static bool scan_plain(const struct json_scan *scan, struct prom_sample *sample)
{
	enum { DIGITS_MAX = 15 };
	static const double powers[DIGITS_MAX + 1] = {
		1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15
	};
	size_t digits = 0, point = scan->length;
	uint64_t sum = 0;

	for (size_t i = 0; i < scan->length; i++) {
		unsigned int digit = (unsigned int)(unsigned char)scan->text[i] - '0';

		if (digit > 9 && (scan->text[i] != '.' || point < scan->length || i == 0))
			return false;
		if (digit > 9) {
			point = i;
			continue;
		}
		sum = sum * 10 + digit;
		if (++digits > DIGITS_MAX)
			return false;
	}
	if (digits == 0 || point + 1 == scan->length)
		return false;
	sample->whole = sum;
	sample->is_whole = point == scan->length;
	sample->value = (double)sum / powers[sample->is_whole ? 0 : scan->length - point - 1];
	return true;
}

/* A number in quotes; "NaN" and "+Inf" are not usable. */
static bool scan_figure(const struct json_scan *scan, struct prom_sample *sample)
{
	struct json_scan figure;

	if (scan_plain(scan, sample))
		return true;
	json_scan_init(&figure, scan->text, scan->length);
	if (scan->has_escapes || json_scan_next(&figure) != JSON_SCAN_NUMBER ||
	    !json_scan_double(&figure, &sample->value) || !isfinite(sample->value))
		return false;
	sample->is_whole = json_scan_unsigned(&figure, &sample->whole);
	return json_scan_next(&figure) == JSON_SCAN_END;
}

static bool scan_time(const struct json_scan *scan, struct prom_sample *sample,
		      struct decoded *decoded)
{
	struct prom_slice *last = &decoded->at_text;

	if (last->length != scan->length || memcmp(last->text, scan->text, scan->length) != 0) {
		if (!json_scan_double(scan, &decoded->at))
			return false;
		*last = (struct prom_slice){ scan->text, scan->length };
	}
	sample->at = decoded->at;
	return true;
}

static bool scan_value(struct json_scan *scan, struct prom_sample *sample, struct decoded *decoded)
{
	enum json_scan_token token;
	bool is_good;

	if (!json_scan_enter(scan, JSON_SCAN_ARRAY))
		return false;
	is_good = json_scan_next(scan) == JSON_SCAN_NUMBER && scan_time(scan, sample, decoded);
	/* Whatever it is, its end is found: the answer was checked before. */
	if (is_good)
		is_good = json_scan_next(scan) == JSON_SCAN_STRING && scan_figure(scan, sample);
	if (scan->token == JSON_SCAN_ARRAY_END)
		return false;
	while (json_scan_skip(scan) && (token = json_scan_next(scan)) > JSON_SCAN_END &&
	       token != JSON_SCAN_ARRAY_END)
		is_good = false;
	return is_good;
}

/* The object is open. */
static bool scan_sample(struct json_scan *scan, struct prom_sample *sample, struct decoded *decoded)
{
	static const struct json_scan_key keys[] = { JSON_SCAN_KEY_OF("metric"),
						     JSON_SCAN_KEY_OF("value") };
	bool has_metric = false, has_value = false;
	int key, hint = 0;

	memset(sample, 0, sizeof(*sample));
	decoded->used = 0;
	while ((key = json_scan_next_key(scan, keys, 2, &hint)) >= JSON_SCAN_KEY_UNKNOWN) {
		if (key == 0)
			has_metric = scan_labels(scan, sample, decoded);
		else if (key == 1)
			has_value = scan_value(scan, sample, decoded);
		else
			json_scan_skip(scan);
	}
	return has_metric && has_value;
}

/* Checks the whole answer, then visits each sample. ERR_FORMAT: `why` says what, nothing was visited. */
static enum status prom_scan(struct prom *prom, enum prom_ask ask, const char *text, size_t length,
			     prom_visit *visit, struct prom_answer *answer, char *why,
			     size_t why_size)
{
	struct envelope envelope = { .has_result = false };
	struct json_scan *scan = &envelope.result;
	struct prom_sample sample;
	struct decoded decoded = { .used = 0 };
	enum json_scan_token token;
	enum status status;

	*answer = (struct prom_answer){ 0 };
	status = check_answer(text, length, &envelope, answer, why, why_size);
	if (status != OK)
		return status;
	if (json_scan_next(scan) != JSON_SCAN_ARRAY) {
		text_copy(why, why_size, "the answer has no list of samples");
		return ERR_FORMAT;
	}
	while ((token = json_scan_next(scan)) > JSON_SCAN_END && token != JSON_SCAN_ARRAY_END) {
		if (token != JSON_SCAN_OBJECT) {
			json_scan_skip(scan);
			answer->odd++;
		} else if (!scan_sample(scan, &sample, &decoded)) {
			answer->odd++;
		} else {
			answer->samples++;
			if (!visit(prom, ask, &sample))
				break;
		}
	}
	return OK;
}

/* The tables behind prom.h: strings once each; ranks, processes and rows by their keys. */

enum { TEXT_MAX = 255 };

/* The next slot with this hash, or the free one at the end; *at starts as `hash`. */
static struct prom_slot *prom_index_next(const struct prom_index *index, uint64_t hash,
					 uint64_t *at)
{
	for (;; ++*at) {
		struct prom_slot *slot = &index->slots[*at & (index->room - 1)];

		if (slot->item == 0 || slot->hash == hash) {
			++*at;
			return slot;
		}
	}
}

/* Makes room for one more; false: out of memory. */
static bool prom_index_grow(struct prom_index *index)
{
	struct prom_index larger = { .room = index->room == 0 ? 64 : index->room * 2,
				     .count = index->count };

	if (index->count < UINT32_MAX - 1 && index->count * 2 < index->room)
		return true;
	if (index->count >= UINT32_MAX - 1)
		return false;
	larger.slots = calloc(larger.room, sizeof(*larger.slots));
	if (larger.slots == NULL)
		return false;
	for (size_t i = 0; i < index->room; i++) {
		size_t at = (size_t)index->slots[i].hash & (larger.room - 1);

		if (index->slots[i].item == 0)
			continue;
		while (larger.slots[at].item != 0)
			at = (at + 1) & (larger.room - 1);
		larger.slots[at] = index->slots[i];
	}
	free(index->slots);
	*index = larger;
	return true;
}

static void index_put(struct prom_index *index, struct prom_slot *slot, uint64_t hash, size_t item)
{
	*slot = (struct prom_slot){ .hash = hash, .item = (uint32_t)item + 1 };
	index->count++;
}

/* Makes room for one more at the end of a table; false, and the status: out of memory. */
static bool has_room(struct prom *prom, void *list, size_t count, size_t element_bytes)
{
	if (!list_grow(list, count, element_bytes))
		prom->status = ERR_NO_SPACE;
	return prom->status == OK;
}

/*
 * The place of an entry in a table whose entries begin with their key; one that is not there yet is added as
 * it is given. UINT32_MAX, and the status: out of memory.
 */
static uint32_t place_of(struct prom *prom, struct prom_index *index, void *list, const void *entry,
			 size_t entry_bytes, size_t key_bytes)
{
	uint64_t hash = hash_bytes(entry, key_bytes), at = hash;
	struct prom_slot *slot = NULL;
	size_t place = index->count;
	char *entries;

	if (!prom_index_grow(index)) {
		prom->status = ERR_NO_SPACE;
		return UINT32_MAX;
	}
	memcpy(&entries, list, sizeof(entries));
	while ((slot = prom_index_next(index, hash, &at))->item != 0)
		if (memcmp(entries + (slot->item - 1) * entry_bytes, entry, key_bytes) == 0)
			return slot->item - 1;
	if (!has_room(prom, list, place, entry_bytes))
		return UINT32_MAX;
	memcpy(&entries, list, sizeof(entries));
	memcpy(entries + place * entry_bytes, entry, entry_bytes);
	index_put(index, slot, hash, place);
	return (uint32_t)place;
}

/* ---- strings --------------------------------------------------------------------------------- */

/* Adds a string that is not there yet. */
static bool text_add(struct prom_texts *texts, const char *text, size_t length)
{
	char *copy = strndup(text, length);

	if (copy == NULL || !list_grow(&texts->list, texts->count, sizeof(*texts->list))) {
		free(copy);
		return false;
	}
	texts->list[texts->count++] = copy;
	return true;
}

static bool may_control(struct prom_slice slice)
{
	for (size_t i = 0; i < slice.length; i++)
		if ((unsigned char)slice.text[i] < 0x20 || (unsigned char)slice.text[i] >= 0x7f)
			return true;
	return false;
}

static uint32_t text_number_of(struct prom *prom, struct prom_slice slice)
{
	struct prom_texts *texts = &prom->texts;
	uint64_t hash = hash_bytes(slice.text, slice.length), at = hash;
	struct prom_slot *slot;

	if (!prom_index_grow(&texts->index)) {
		prom->status = ERR_NO_SPACE;
		return 0;
	}
	while ((slot = prom_index_next(&texts->index, hash, &at))->item != 0) {
		const char *found = texts->list[slot->item - 1];

		if (strncmp(found, slice.text, slice.length) == 0 && found[slice.length] == '\0')
			return slot->item - 1;
	}
	if (!text_add(texts, slice.text, slice.length)) {
		prom->status = ERR_NO_SPACE;
		return 0;
	}
	index_put(&texts->index, slot, hash, texts->count - 1);
	return (uint32_t)texts->count - 1;
}

uint32_t prom_text(struct prom *prom, struct prom_slice slice)
{
	char clean[TEXT_MAX];

	if (prom->texts.count == 0 && !text_add(&prom->texts, "", 0)) {
		prom->status = ERR_NO_SPACE;
		return 0;
	}
	if (slice.text == NULL || slice.length == 0)
		return 0;
	if (slice.length > TEXT_MAX) {
		slice.length = TEXT_MAX;
		/* Cut between characters. */
		while (slice.length > 0 && (slice.text[slice.length] & 0xc0) == 0x80)
			slice.length--;
	}
	if (may_control(slice)) {
		memcpy(clean, slice.text, slice.length);
		slice.length = text_clean_bytes(clean, slice.length);
		slice.text = clean;
	}
	return text_number_of(prom, slice);
}

/* ---- labels ---------------------------------------------------------------------------------- */

static bool to_unsigned(struct prom_slice slice, uint64_t *number)
{
	uint64_t sum = 0;

	if (slice.text == NULL || slice.length == 0 || slice.length > 20)
		return false;
	for (size_t i = 0; i < slice.length; i++) {
		unsigned int digit = (unsigned int)(unsigned char)slice.text[i] - '0';

		if (digit > 9 || __builtin_mul_overflow(sum, 10, &sum) ||
		    __builtin_add_overflow(sum, digit, &sum))
			return false;
	}
	*number = sum;
	return true;
}

/* A label as a number within bounds; `otherwise` if it is none. */
static int64_t prom_label_number(const struct prom_sample *sample, enum prom_label label,
				 int64_t least, int64_t most, int64_t otherwise)
{
	uint64_t number;

	if (!to_unsigned(sample->labels[label], &number) || number > INT64_MAX ||
	    (int64_t)number < least || (int64_t)number > most)
		return otherwise;
	return (int64_t)number;
}

static uint64_t prom_label_unsigned(const struct prom_sample *sample, enum prom_label label)
{
	uint64_t number;

	return to_unsigned(sample->labels[label], &number) ? number : 0;
}

static bool prom_label_is(const struct prom_sample *sample, enum prom_label label, const char *text)
{
	struct prom_slice slice = sample->labels[label];

	return slice.text != NULL && slice.length == strlen(text) &&
	       memcmp(slice.text, text, slice.length) == 0;
}

/* ---- keys ------------------------------------------------------------------------------------ */

/* NCCL's hash as agents write it: 16 hexadecimal digits; 0 for anything else. */
static uint64_t comm_hash(const char *text)
{
	uint64_t hash = 0;

	if (strlen(text) != 16)
		return 0;
	for (const char *at = text; *at != '\0'; at++) {
		static const char digits[] = "0123456789abcdef";
		const char *digit = strchr(digits, *at);

		if (digit == NULL)
			return 0;
		hash = hash << 4 | (uint64_t)(digit - digits);
	}
	return hash;
}

static uint32_t comm_of(struct prom *prom, uint32_t job, uint32_t comm)
{
	struct prom_comm entry = { .job = job, .comm = comm };
	size_t known = prom->comm_index.count;
	uint32_t at = place_of(prom, &prom->comm_index, &prom->comms, &entry, sizeof(entry),
			       offsetof(struct prom_comm, hash));

	if (at == known)
		prom->comms[at].hash = comm_hash(prom_text_of(prom, comm));
	return at;
}

/* Creates new ones; UINT32_MAX: out of memory, or such a rank cannot be named. */
static uint32_t prom_member_of(struct prom *prom, const struct prom_sample *sample)
{
	uint32_t job = prom_text(prom, sample->labels[PROM_LABEL_NCCL_JOB]);
	uint32_t comm = prom_text(prom, sample->labels[PROM_LABEL_COMM]);
	struct prom_member entry = { .pid = -1, .global_rank = -1, .gpu = -1 };

	if (comm == 0)
		return UINT32_MAX;
	entry.comm = comm_of(prom, job, comm);
	entry.rank = (int32_t)prom_label_number(sample, PROM_LABEL_RANK, 0, INT32_MAX - 1, -1);
	if (entry.comm == UINT32_MAX)
		return UINT32_MAX;
	return place_of(prom, &prom->member_index, &prom->members, &entry, sizeof(entry),
			offsetof(struct prom_member, has_info));
}

uint32_t prom_process_of(struct prom *prom, uint32_t job, uint32_t host, int64_t pid)
{
	struct prom_process entry = { .job = job,
				      .host = host,
				      .pid = pid,
				      .rank = -1,
				      .local_rank = -1,
				      .world_size = -1,
				      .gpu = -1 };

	return place_of(prom, &prom->process_index, &prom->processes, &entry, sizeof(entry),
			offsetof(struct prom_process, rank));
}

/* Adds a sample to the tables. */

/* Seconds within a hundred years, as ns. */
static uint64_t to_ns(double seconds)
{
	if (!(seconds > 0))
		return 0;
	return seconds < 3.2e9 ? (uint64_t)(seconds * SECOND_NS) : 0;
}

/* Times since 1970 have milliseconds as text; a double of them has no exact nanoseconds. */
static uint64_t wall_ns(double seconds)
{
	if (!(seconds > 0) || seconds > 1.8e10)
		return 0;
	return (uint64_t)(seconds * 1e3 + 0.5) * 1000000;
}

static uint32_t label_text(struct prom *prom, const struct prom_sample *sample,
			   enum prom_label label)
{
	return prom_text(prom, sample->labels[label]);
}

static int32_t label_int(const struct prom_sample *sample, enum prom_label label, int32_t otherwise)
{
	return (int32_t)prom_label_number(sample, label, 0, INT32_MAX - 1, otherwise);
}

static void take_process(struct prom *prom, const struct prom_sample *sample)
{
	uint32_t at = prom_process_of(prom, label_text(prom, sample, PROM_LABEL_NCCL_JOB),
				      label_text(prom, sample, PROM_LABEL_HOST),
				      prom_label_number(sample, PROM_LABEL_PID, 0, INT32_MAX, -1));
	uint64_t scrape_ns = wall_ns(sample->value);
	struct prom_process *process;

	if (at == UINT32_MAX)
		return;
	process = &prom->processes[at];
	/* Of two with the same identity the one that was scraped last: its state has changed. */
	if (process->scrape_ns > scrape_ns)
		return;
	process->scrape_ns = scrape_ns;
	process->rank = prom_label_number(sample, PROM_LABEL_GLOBAL_RANK, 0, INT32_MAX, -1);
	process->local_rank = prom_label_number(sample, PROM_LABEL_LOCAL_RANK, 0, INT32_MAX, -1);
	process->world_size = prom_label_number(sample, PROM_LABEL_WORLD_SIZE, 1, INT32_MAX, -1);
	process->gpu = label_int(sample, PROM_LABEL_GPU, -1);
	process->gpu_uuid = label_text(prom, sample, PROM_LABEL_GPU_UUID);
	process->mode = label_text(prom, sample, PROM_LABEL_MODE);
	process->interface = (uint32_t)prom_label_number(sample, PROM_LABEL_INTERFACE, 0, 1000, 0);
	process->state = label_text(prom, sample, PROM_LABEL_STATE);
}

static void take_member(struct prom *prom, struct prom_member *member,
			const struct prom_sample *sample)
{
	member->has_info = true;
	member->is_finalized = prom_label_is(sample, PROM_LABEL_FINALIZED, "true");
	member->name = label_text(prom, sample, PROM_LABEL_COMM_NAME);
	member->host = label_text(prom, sample, PROM_LABEL_HOST);
	member->pid = prom_label_number(sample, PROM_LABEL_PID, 0, INT32_MAX, -1);
	member->global_rank = prom_label_number(sample, PROM_LABEL_GLOBAL_RANK, 0, INT32_MAX, -1);
	member->nranks = label_int(sample, PROM_LABEL_NRANKS, 0);
	member->nnodes = label_int(sample, PROM_LABEL_NNODES, 0);
	member->gpu = label_int(sample, PROM_LABEL_GPU, -1);
}

static void take_number(struct prom_member *member, const struct prom_sample *sample)
{
	static const char *const names[PROM_NUMBER_COUNT] = {
		[PROM_COLLECTIVES] = "nccl_collective_number_issued",
		[PROM_REPLAYS] = "nccl_collective_number_replayed",
		[PROM_ISSUED] = "nccl_operation_number_issued",
		[PROM_DONE] = "nccl_operation_number_done",
		[PROM_SIGNATURE] = "nccl_collective_signature",
		[PROM_AGE] = "nccl_oldest_operation_age_seconds",
		[PROM_ACTIVITY] = "nccl_last_activity_age_seconds",
	};

	for (enum prom_number number = 0; number < PROM_NUMBER_COUNT; number++) {
		if (!prom_label_is(sample, PROM_LABEL_NAME, names[number]))
			continue;
		if (number == PROM_AGE || number == PROM_ACTIVITY)
			member->numbers[number] = to_ns(sample->value);
		else if (sample->is_whole)
			member->numbers[number] = sample->whole;
		else
			return;
		member->has_numbers |= 1u << number;
		return;
	}
}

static uint32_t take_call(struct prom *prom, const struct prom_sample *sample)
{
	struct prom_call call = {
		.function = label_text(prom, sample, PROM_LABEL_FUNCTION),
		.datatype = label_text(prom, sample, PROM_LABEL_DATATYPE),
		.count = prom_label_unsigned(sample, PROM_LABEL_COUNT),
		.root = label_int(sample, PROM_LABEL_ROOT, OP_NOBODY),
		.peer = label_int(sample, PROM_LABEL_PEER, OP_NOBODY),
		.number = prom_label_unsigned(sample, PROM_LABEL_NUMBER),
		.match = prom_label_unsigned(sample, PROM_LABEL_MATCH),
		.signature = prom_label_unsigned(sample, PROM_LABEL_SIGNATURE) & SIGNATURE_BITS,
		.state = label_text(prom, sample, PROM_LABEL_STATE),
		.kernels_started = label_text(prom, sample, PROM_LABEL_KERNELS_STARTED),
		.kernels_stopped = label_text(prom, sample, PROM_LABEL_KERNELS_STOPPED),
		.has_kernels = sample->labels[PROM_LABEL_KERNELS_STARTED].text != NULL,
		.is_replay = prom_label_is(sample, PROM_LABEL_REPLAY, "true"),
	};

	if (!has_room(prom, &prom->calls, prom->call_count, sizeof(*prom->calls)))
		return 0;
	prom->calls[prom->call_count] = call;
	return (uint32_t)++prom->call_count;
}

static void take_oldest(struct prom *prom, struct prom_member *member,
			const struct prom_sample *sample)
{
	uint32_t call = take_call(prom, sample);

	/* Of two the later: a series that ended within this scrape is over. */
	if (call == 0 || (member->oldest != 0 &&
			  prom->calls[member->oldest - 1].number > prom->calls[call - 1].number))
		return;
	member->oldest = call;
	if (prom->calls[call - 1].has_kernels)
		prom->comms[member->comm].flags |= COMM_FLAG_SEES_KERNELS;
}

static void take_wait(struct prom *prom, struct prom_member *member,
		      const struct prom_sample *sample)
{
	struct prom_wait wait = { .next = member->waits,
				  .waits_for = label_text(prom, sample, PROM_LABEL_WAITS_FOR),
				  .channels = label_text(prom, sample, PROM_LABEL_CHANNELS),
				  .peer = label_int(sample, PROM_LABEL_PEER, OP_NOBODY),
				  .for_ns = to_ns(sample->value) };

	if (!has_room(prom, &prom->waits, prom->wait_count, sizeof(*prom->waits)))
		return;
	prom->waits[prom->wait_count] = wait;
	member->waits = (uint32_t)++prom->wait_count;
	prom->comms[member->comm].flags |= COMM_FLAG_SEES_PROXIES;
}

static void take_fact(struct prom *prom, struct prom_facts *facts, const struct prom_sample *sample)
{
	if (!has_room(prom, &facts->list, facts->count, sizeof(*facts->list)))
		return;
	facts->list[facts->count++] = (struct prom_fact){
		.instance = label_text(prom, sample, PROM_LABEL_INSTANCE),
		.job = label_text(prom, sample, PROM_LABEL_NCCL_JOB),
		.rank = prom_label_number(sample, PROM_LABEL_GLOBAL_RANK, 0, INT32_MAX, -1),
		.wall_ns = wall_ns(sample->value),
		.whole = sample->whole,
	};
}

static void take_row(struct prom *prom, enum prom_ask ask, uint32_t member,
		     const struct prom_sample *sample)
{
	bool is_timed = ask >= PROM_TIMED_NOW;
	bool is_edge = ask >= PROM_EDGES_NOW && !is_timed;
	bool is_before = is_timed  ? ask == PROM_TIMED_BEFORE
			 : is_edge ? ask >= PROM_EDGES_BEFORE
				   : ask >= PROM_SUMS_BEFORE;
	unsigned int which = is_timed ? 3 : (unsigned int)(ask - PROM_SUMS_NOW) % 3;
	unsigned int stretch = is_before ? PROM_ROWS_BEFORE : PROM_ROWS_NOW;
	struct prom_rows *rows = is_edge ? &prom->edges[stretch] : &prom->sums[stretch];
	struct prom_row entry = { .member = member, .peer = OP_NOBODY };
	uint32_t at;

	_Static_assert((PROM_EDGES_NOW - PROM_SUMS_NOW) % 3 == 0, "three figures of each");
	if (is_edge) {
		entry.peer = label_int(sample, PROM_LABEL_PEER, OP_NOBODY);
	} else {
		entry.function = label_text(prom, sample, PROM_LABEL_FUNCTION);
		entry.size = label_text(prom, sample, PROM_LABEL_SIZE);
	}
	at = place_of(prom, &rows->index, &rows->list, &entry, sizeof(entry),
		      offsetof(struct prom_row, values));
	if (at != UINT32_MAX && sample->value > 0)
		rows->list[at].values[which] += sample->value;
}

static void take_of_member(struct prom *prom, enum prom_ask ask, const struct prom_sample *sample)
{
	uint32_t at = prom_member_of(prom, sample);
	struct prom_member *member;

	if (at == UINT32_MAX) {
		prom->odd += prom->status == OK;
		return;
	}
	member = &prom->members[at];
	if (ask == PROM_MEMBERS)
		take_member(prom, member, sample);
	else if (ask == PROM_NUMBERS)
		take_number(member, sample);
	else if (ask == PROM_OLDEST)
		take_oldest(prom, member, sample);
	else if (ask == PROM_WAITS)
		take_wait(prom, member, sample);
	else if (ask == PROM_LAST)
		member->last = take_call(prom, sample);
	else
		take_row(prom, ask, at, sample);
}

static bool prom_take_sample(struct prom *prom, enum prom_ask ask, const struct prom_sample *sample)
{
	uint64_t at_ns = wall_ns(sample->at);

	if (at_ns > prom->wall_ns)
		prom->wall_ns = at_ns;
	if (ask == PROM_PROCESSES)
		take_process(prom, sample);
	else if (ask == PROM_DOWN)
		take_fact(prom, &prom->downs, sample);
	else if (ask == PROM_UNSEEN)
		take_fact(prom, &prom->unseen, sample);
	else if (ask == PROM_SINCE)
		take_fact(prom, &prom->since, sample);
	else if (ask != PROM_LIMITS)
		take_of_member(prom, ask, sample);
	else if (sample->is_whole)
		take_fact(prom, &prom->limits, sample);
	return prom->status == OK;
}

enum { HANG_S = 20, WINDOW_S = 300, PAST_S = 3600, WINDOW_LEAST_S = 4 };

struct prom *prom_new(const struct prom_options *options)
{
	struct prom *prom = calloc(1, sizeof(*prom));

	if (prom == NULL)
		return NULL;
	text_copy(prom->job, sizeof(prom->job), options->job);
	prom->hang_ns = options->hang_ns ? options->hang_ns : HANG_S * UINT64_C(1000000000);
	prom->window_s = options->window_s ? options->window_s : WINDOW_S;
	if (prom->window_s < WINDOW_LEAST_S)
		prom->window_s = WINDOW_LEAST_S;
	prom->has_past = options->past_s != 0;
	prom->past_s = prom->has_past ? options->past_s : PAST_S;
	prom_text(prom, (struct prom_slice){ NULL, 0 });
	if (prom->status != OK || !prom_make_queries(prom)) {
		prom_free(prom);
		return NULL;
	}
	return prom;
}

static void free_rows(struct prom_rows *rows)
{
	free(rows->list);
	free(rows->index.slots);
}

static void free_texts(struct prom_texts *texts)
{
	for (size_t i = 0; i < texts->count; i++)
		free(texts->list[i]);
	free(texts->list);
	free(texts->index.slots);
}

void prom_free(struct prom *prom)
{
	if (prom == NULL)
		return;
	for (unsigned int i = 0; i < PROM_ASKS; i++) {
		free(prom->queries[i]);
		free(prom->paths[i]);
	}
	free_texts(&prom->texts);
	free(prom->comms);
	free(prom->comm_index.slots);
	free(prom->members);
	free(prom->member_index.slots);
	free(prom->processes);
	free(prom->process_index.slots);
	free(prom->calls);
	free(prom->waits);
	free(prom->downs.list);
	free(prom->unseen.list);
	free(prom->since.list);
	free(prom->limits.list);
	for (unsigned int i = 0; i < PROM_ROWS_STRETCHES; i++) {
		free_rows(&prom->sums[i]);
		free_rows(&prom->edges[i]);
		free(prom->slow_members[i]);
		free(prom->slow_edges[i]);
	}
	free(prom->sources);
	free(prom);
}

const char *prom_query(const struct prom *prom, size_t i)
{
	return i < PROM_ASKS ? prom->queries[i] : NULL;
}

const char *prom_path(const struct prom *prom, size_t i)
{
	return i < PROM_ASKS ? prom->paths[i] : NULL;
}

const char *prom_name(const struct prom *prom, size_t i)
{
	(void)prom;
	return i < PROM_ASKS ? asks[i].name : "?";
}

enum status prom_take(struct prom *prom, size_t i, const void *bytes, size_t length, char *why,
		      size_t why_size)
{
	struct prom_answer answer;
	enum status status;

	text_copy(why, why_size, "");
	if (i >= PROM_ASKS || prom->is_taken[i]) {
		text_copy(why, why_size, "unknown query, or already answered");
		return ERR_FORMAT;
	}
	if (length > PROM_ANSWER_MAX) {
		text_format(why, why_size,
			    "the answer has %zu MiB, more than the limit of %zu: select one job "
			    "(--job NAME)",
			    length >> 20, PROM_ANSWER_MAX >> 20);
		return ERR_NO_SPACE;
	}
	status = prom->status;
	if (status == OK)
		status = prom_scan(prom, (enum prom_ask)i, bytes, length, prom_take_sample, &answer,
				   why, why_size);
	if (status == OK)
		status = prom->status;
	if (status == ERR_NO_SPACE)
		text_copy(why, why_size,
			  "not enough memory for the answer: select one job (--job NAME)");
	if (status != OK)
		return status;
	prom->is_taken[i] = true;
	prom->odd += answer.odd;
	if (prom->warning[0] == '\0')
		text_copy(prom->warning, sizeof(prom->warning), answer.warning);
	return OK;
}

const struct hang_source *prom_sources(const struct prom *prom, size_t *count)
{
	*count = prom->source_count;
	return prom->sources;
}

const struct slow_sums *prom_now(const struct prom *prom)
{
	return &prom->slow[PROM_ROWS_NOW];
}

const struct slow_sums *prom_before(const struct prom *prom)
{
	const struct slow_sums *before = &prom->slow[PROM_ROWS_BEFORE];

	return before->member_count > 0 || before->edge_count > 0 ? before : NULL;
}

uint64_t prom_wall_ns(const struct prom *prom)
{
	return prom->wall_ns;
}

size_t prom_odd_series(const struct prom *prom)
{
	return prom->odd;
}

const char *prom_warning(const struct prom *prom)
{
	return prom->warning;
}
