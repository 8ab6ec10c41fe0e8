/*
 * Reads the output of training jobs; contains the script they run.
 *
 * .incbin paths are relative to the root of the tree, where make runs. The compiler does not see that file, so
 * scripts/build.mk makes this object depend on it.
 */
#include "bench/profilers.h"

#include <dirent.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "common/attributes.h"
#include "common/file.h"
#include "common/op_layout.h"
#include "common/text.h"
#include "import/json_scan.h"

enum status count_read(struct count_file *file, const void *bytes, size_t length)
{
	struct count_file got;
	char host[sizeof(got.host)] = "";

	if (length < sizeof(got))
		return ERR_TRUNCATED;
	memcpy(&got, bytes, sizeof(got));
	if (got.magic != COUNT_MAGIC || got.size != sizeof(got) ||
	    got.functions != COUNT_FUNCTIONS || got.pid <= 0 || got.rank < -1)
		return ERR_FORMAT;
	text_from_field(host, sizeof(host), got.host, sizeof(got.host));
	memcpy(got.host, host, sizeof(host));
	*file = got;
	return OK;
}

unsigned int count_op_function(unsigned int function)
{
	static const unsigned char functions[COUNT_FUNCTIONS] = {
		[COUNT_ALL_REDUCE] = OP_ALL_REDUCE,
		[COUNT_ALL_GATHER] = OP_ALL_GATHER,
		[COUNT_REDUCE_SCATTER] = OP_REDUCE_SCATTER,
		[COUNT_BROADCAST] = OP_BROADCAST,
		[COUNT_REDUCE] = OP_REDUCE,
		[COUNT_SEND] = OP_SEND,
		[COUNT_RECV] = OP_RECV,
		[COUNT_ALL_TO_ALL] = OP_ALL_TO_ALL,
		[COUNT_GATHER] = OP_GATHER,
		[COUNT_SCATTER] = OP_SCATTER,
	};

	return function < COUNT_FUNCTIONS ? functions[function] : OP_FUNCTION_UNKNOWN;
}

static enum status read_file(struct count_file *file, int directory, const char *name)
{
	unsigned char bytes[sizeof(*file)];
	int fd = file_open(directory, name, false);
	enum status status;
	size_t got = 0;

	if (fd == -1)
		return ERR_SYSTEM;
	status = file_pread_some(fd, bytes, sizeof(bytes), 0, &got);
	close(fd);
	return status == OK ? count_read(file, bytes, got) : status;
}

static void count_add_file(struct count_sum *sum, const struct count_file *file)
{
	sum->processes++;
	for (size_t i = 0; i < COUNT_FUNCTIONS; i++) {
		sum->entries[i].calls += file->entries[i].calls;
		sum->entries[i].failed += file->entries[i].failed;
		sum->entries[i].ns += file->entries[i].ns;
		sum->entries[i].bytes += file->entries[i].bytes;
	}
}

enum status count_sum_directory(struct count_sum *sum, const char *directory)
{
	struct count_file file;
	struct dirent *entry;
	DIR *list = opendir(directory);

	memset(sum, 0, sizeof(*sum));
	if (list == NULL)
		return ERR_SYSTEM;
	while ((entry = readdir(list)) != NULL) {
		if (!text_ends_with(entry->d_name, ".count"))
			continue;
		if (read_file(&file, dirfd(list), entry->d_name) == OK)
			count_add_file(sum, &file);
		else
			sum->unreadable++;
	}
	closedir(list);
	return OK;
}

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
	(void)json_scan_text(scan, to, size); /* truncation is fine: only for display */
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

__asm__(".pushsection .rodata\n"
	".globl densenet_script_begin\n"
	".hidden densenet_script_begin\n"
	"densenet_script_begin:\n"
	".incbin \"src/bench/densenet.py\"\n"
	".globl densenet_script_end\n"
	".hidden densenet_script_end\n"
	"densenet_script_end:\n"
	".byte 0\n"
	".popsection\n");
extern const char densenet_script_begin[] HIDDEN;
extern const char densenet_script_end[] HIDDEN;

const char *densenet_script(size_t *length)
{
	*length = (size_t)(densenet_script_end - densenet_script_begin);
	return densenet_script_begin;
}
