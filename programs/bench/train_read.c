#include "programs/bench/train_read.h"

#include "import/json_scan.h"

/* Each epoch is an object with both times. */
static enum status read_epoch(struct json_scan *scan, struct train_epoch *epoch)
{
	enum json_scan_token token;

	while ((token = json_scan_next(scan)) == JSON_SCAN_KEY) {
		uint64_t *to = json_scan_is(scan, "begin_ns") ? &epoch->begin_ns
			       : json_scan_is(scan, "ns")     ? &epoch->ns
							      : NULL;

		if (to == NULL) {
			if (!json_scan_skip(scan))
				return ERR_FORMAT;
			continue;
		}
		if (json_scan_next(scan) != JSON_SCAN_NUMBER || !json_scan_unsigned(scan, to))
			return ERR_FORMAT;
	}
	return token == JSON_SCAN_OBJECT_END && epoch->ns > 0 ? OK : ERR_FORMAT;
}

static enum status read_epochs(struct json_scan *scan, struct train_result *result)
{
	enum json_scan_token token = json_scan_next(scan);
	enum status status;

	if (token != JSON_SCAN_ARRAY || result->epoch_count > 0)
		return ERR_FORMAT;
	while ((token = json_scan_next(scan)) == JSON_SCAN_OBJECT) {
		if (result->epoch_count == TRAIN_EPOCHS_MAX)
			return ERR_RANGE;
		status = read_epoch(scan, &result->epochs[result->epoch_count]);
		if (status != OK)
			return status;
		result->epoch_count++;
	}
	return token == JSON_SCAN_ARRAY_END ? OK : ERR_FORMAT;
}

static enum status read_number(struct json_scan *scan, uint64_t most, uint64_t *number)
{
	if (json_scan_next(scan) != JSON_SCAN_NUMBER || !json_scan_unsigned(scan, number))
		return ERR_FORMAT;
	return *number <= most ? OK : ERR_FORMAT;
}

static enum status read_text(struct json_scan *scan, char *to, size_t size)
{
	if (json_scan_next(scan) != JSON_SCAN_STRING)
		return ERR_FORMAT;
	(void)json_scan_text(scan, to, size); /* cut is fine: it is for people */
	return OK;
}

static enum status read_key(struct json_scan *scan, struct train_result *result)
{
	enum status status;
	uint64_t number = 0;

	if (json_scan_is(scan, "rank")) {
		status = read_number(scan, INT32_MAX, &number);
		result->rank = (int32_t)number;
	} else if (json_scan_is(scan, "ranks")) {
		status = read_number(scan, INT32_MAX, &number);
		result->ranks = (int32_t)number;
	} else if (json_scan_is(scan, "parameters")) {
		status = read_number(scan, UINT64_MAX, &result->parameters);
	} else if (json_scan_is(scan, "steps")) {
		status = read_number(scan, UINT64_MAX, &result->steps);
	} else if (json_scan_is(scan, "torch")) {
		status = read_text(scan, result->torch, sizeof(result->torch));
	} else if (json_scan_is(scan, "nccl")) {
		status = read_text(scan, result->nccl, sizeof(result->nccl));
	} else if (json_scan_is(scan, "host")) {
		status = read_text(scan, result->host, sizeof(result->host));
	} else if (json_scan_is(scan, "gpu")) {
		status = read_text(scan, result->gpu, sizeof(result->gpu));
	} else if (json_scan_is(scan, "epochs")) {
		status = read_epochs(scan, result);
	} else {
		status = json_scan_skip(scan) ? OK : ERR_FORMAT;
	}
	return status;
}

enum status train_read(struct train_result *result, const char *text, size_t length)
{
	struct train_result got = { .rank = -1 };
	enum json_scan_token token;
	enum status status = OK;
	struct json_scan scan;

	json_scan_init(&scan, text, length);
	if (json_scan_next(&scan) != JSON_SCAN_OBJECT)
		return ERR_FORMAT;
	while (status == OK && (token = json_scan_next(&scan)) == JSON_SCAN_KEY)
		status = read_key(&scan, &got);
	if (status != OK)
		return status;
	if (token != JSON_SCAN_OBJECT_END || json_scan_next(&scan) != JSON_SCAN_END ||
	    got.rank < 0 || got.ranks <= got.rank || got.epoch_count == 0)
		return ERR_FORMAT;
	*result = got;
	return OK;
}
