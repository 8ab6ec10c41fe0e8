/*
 * One answer of Prometheus' HTTP API, twice through: first whether all of it is what it should be and what
 * it says about itself, then its samples.
 *
 *	{"status":"success","data":{"resultType":"vector","result":[
 *	  {"metric":{"comm":"...",...},"value":[1700000000.123,"812"]}, ...]},"warnings":["..."]}
 */
#include <math.h>
#include <string.h>

#include "common/text.h"
#include "doctor/prom_parts.h"
#include "foreign/json_scan.h"

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
	[PROM_LABEL_NODE] = JSON_SCAN_KEY_OF("node"),
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

/* Room for values with escapes in them; a value that finds none is cut. */
enum { DECODED_MAX = 2048 };

struct decoded {
	char bytes[DECODED_MAX];
	size_t used;
	/* The time of the last sample: nearly always that of the next. */
	struct prom_slice at_text;
	double at;
};

/* ---- the whole ------------------------------------------------------------------------------- */

struct envelope {
	char status[16];
	char error_type[48];
	char error[240];
	char result_type[24];
	struct json_scan result; /* at the result, when has_result */
	bool has_result;
};

static void take_string(struct json_scan *scan, char *to, size_t size)
{
	if (json_scan_next(scan) == JSON_SCAN_STRING)
		json_scan_text(scan, to, size);
	else
		json_scan_skip(scan);
}

static void check_data(struct json_scan *scan, struct envelope *envelope)
{
	static const struct json_scan_key keys[] = { JSON_SCAN_KEY_OF("resultType"),
						     JSON_SCAN_KEY_OF("result") };
	int key, hint = 0;

	if (json_scan_next(scan) != JSON_SCAN_OBJECT) {
		json_scan_skip(scan);
		return;
	}
	while ((key = json_scan_next_key(scan, keys, 2, &hint)) >= JSON_SCAN_KEY_UNKNOWN) {
		if (key == 0) {
			take_string(scan, envelope->result_type, sizeof(envelope->result_type));
		} else {
			if (key == 1) {
				envelope->result = *scan;
				envelope->has_result = true;
			}
			json_scan_skip(scan);
		}
	}
}

/* The first of a list of texts. */
static void check_warnings(struct json_scan *scan, struct prom_answer *answer)
{
	enum json_scan_token token;

	if (json_scan_next(scan) != JSON_SCAN_ARRAY) {
		json_scan_skip(scan);
		return;
	}
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
			take_string(scan, envelope->status, sizeof(envelope->status));
		else if (key == 1)
			check_data(scan, envelope);
		else if (key == 2)
			take_string(scan, envelope->error_type, sizeof(envelope->error_type));
		else if (key == 3)
			take_string(scan, envelope->error, sizeof(envelope->error));
		else if (key == 4)
			check_warnings(scan, answer);
		else
			json_scan_skip(scan);
	}
	return key == JSON_SCAN_KEY_NONE && json_scan_next(scan) == JSON_SCAN_END;
}

static void without_control_bytes(char *text)
{
	for (; *text != '\0'; text++)
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			*text = ' ';
}

/* What somebody else sent is shown by its beginning. */
static void say_foreign(const char *text, size_t length, const struct json_scan *scan, char *why,
			size_t why_size)
{
	char begin[48];
	size_t shown = length < sizeof(begin) - 1 ? length : sizeof(begin) - 1;

	if (length == 0) {
		text_copy(why, why_size,
			  "the answer is empty: is this the address of a Prometheus?");
		return;
	}
	text_from_field(begin, sizeof(begin), text, shown);
	if (text[0] != '{')
		text_format(why, why_size,
			    "the answer is no JSON, it begins with \"%s\": is this the address of "
			    "a Prometheus, with the path in front of /api/v1?",
			    begin);
	else
		text_format(why, why_size,
			    "the answer is damaged at byte %zu of %zu (%s): it was cut or changed "
			    "on its way; ask again",
			    json_scan_offset(scan), length,
			    scan->problem ? scan->problem : "it is not an object");
}

static enum status check(const char *text, size_t length, struct envelope *envelope,
			 struct prom_answer *answer, char *why, size_t why_size)
{
	struct json_scan scan;

	json_scan_init(&scan, text, length);
	if (!check_envelope(&scan, envelope, answer)) {
		say_foreign(text, length, &scan, why, why_size);
		return ERR_FORMAT;
	}
	without_control_bytes(envelope->error);
	without_control_bytes(envelope->error_type);
	without_control_bytes(answer->warning);
	if (strcmp(envelope->status, "success") != 0) {
		text_format(why, why_size, "Prometheus refused the query: %s%s%s",
			    envelope->error_type, envelope->error_type[0] ? ": " : "",
			    envelope->error[0] ? envelope->error : "it does not say why");
		return ERR_FORMAT;
	}
	if (!envelope->has_result || strcmp(envelope->result_type, "vector") != 0) {
		text_copy(why, why_size,
			  "the answer is not a vector of samples: is this the address of a "
			  "Prometheus?");
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

	if (json_scan_next(scan) != JSON_SCAN_OBJECT) {
		json_scan_skip(scan);
		return false;
	}
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

/* Digits, perhaps with a point among them, that a double holds exactly but for one division: most figures.
 * False: read it the long way. */
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

/* A number within quotes; "NaN" and "+Inf" are none that are of use. */
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
	enum json_scan_token token = json_scan_next(scan);
	bool is_good;

	if (token != JSON_SCAN_ARRAY) {
		json_scan_skip(scan);
		return false;
	}
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

enum status prom_scan(struct prom *prom, enum prom_ask ask, const char *text, size_t length,
		      prom_visit *visit, struct prom_answer *answer, char *why, size_t why_size)
{
	struct envelope envelope = { .has_result = false };
	struct json_scan *scan = &envelope.result;
	struct prom_sample sample;
	struct decoded decoded = { .used = 0 };
	enum json_scan_token token;
	enum status status;

	*answer = (struct prom_answer){ 0 };
	status = check(text, length, &envelope, answer, why, why_size);
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
