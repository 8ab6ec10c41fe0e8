/*
 * Reads ncclsee's CSV: a header, a row for each collective and size class with calls, a row for
 * groups:
 *
 *	CollectiveType,BucketLabel,BucketMin,BucketMax,Calls,BytesTransferred,TotalTime_us
 *	AllReduce,1024-8192,1024,8192,205,419840,8123.250000
 *	AllReduce,>33554432,33554432,2147483647,205,6878658560,99120.500000
 *	Group,N/A,0,0,410,0,5120.125000
 */
#include "import/foreign.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/attributes.h"
#include "common/file.h"
#include "common/text.h"

static const char header[] = "CollectiveType,BucketLabel,BucketMin,BucketMax,"
			     "Calls,BytesTransferred,TotalTime_us";

/* Classes end below these; the last one has no end. */
static const uint64_t limits[NCCLSEE_CLASSES - 1] = { 128,    1024,    8192,	65536,
						      262144, 1048576, 33554432 };

static const struct {
	const char *name;
	uint8_t function;
} functions[NCCLSEE_FUNCTIONS] = {
	{ "AllReduce", OP_ALL_REDUCE },
	{ "Broadcast", OP_BROADCAST },
	{ "ReduceScatter", OP_REDUCE_SCATTER },
	{ "Reduce", OP_REDUCE },
	{ "AllGather", OP_ALL_GATHER },
	{ "AllToAll", OP_ALL_TO_ALL },
	{ "Unknown_Collective", OP_FUNCTION_UNKNOWN },
};

enum { FIELDS = 7, FIELD_BYTES = 48 };

struct fields {
	char text[FIELDS][FIELD_BYTES];
};

unsigned int ncclsee_class_of(uint64_t bytes)
{
	unsigned int at = 0;

	while (at < NCCLSEE_CLASSES - 1 && limits[at] <= bytes)
		at++;
	return at;
}

void ncclsee_class_bounds(unsigned int size_class, uint64_t *from, uint64_t *to)
{
	*from = size_class == 0 ? 0 : limits[size_class - 1];
	*to = size_class < NCCLSEE_CLASSES - 1 ? limits[size_class] : UINT64_MAX;
}

uint8_t ncclsee_other_label(uint8_t function)
{
	switch (function) {
	case OP_REDUCE:
		return OP_REDUCE_SCATTER;
	case OP_REDUCE_SCATTER:
		return OP_REDUCE;
	default:
		return function;
	}
}

static enum status refuse_line(struct ncclsee_profile *profile, enum status status,
			       const char *problem)
{
	profile->problem = problem;
	return status;
}

static bool split(const char *line, size_t length, struct fields *fields)
{
	size_t at = 0;

	for (unsigned int i = 0; i < FIELDS; i++) {
		size_t from = at;

		while (at < length && line[at] != ',')
			at++;
		if (at - from >= FIELD_BYTES || memchr(line + from, '\0', at - from) != NULL)
			return false;
		memcpy(fields->text[i], line + from, at - from);
		fields->text[i][at - from] = '\0';
		if (i < FIELDS - 1 && at++ == length)
			return false;
	}
	return at == length;
}

/* Only digits, as written by "%lu". */
static bool number_of(const char *text, uint64_t *number)
{
	char *end;

	if (text[0] < '0' || text[0] > '9')
		return false;
	errno = 0;
	*number = strtoull(text, &end, 10);
	return *end == '\0' && errno == 0;
}

/*
 * "%.6f" of microseconds. False: not a number. Impossible times (negative, nan) become 0 and
 * missing.
 */
static bool time_of(const char *text, bool *has_time, double *time_ns)
{
	double time_us;
	char *end;

	if (text[0] == '\0' || strspn(text, "+-.0123456789naif") != strlen(text))
		return false;
	time_us = strtod(text, &end);
	if (*end != '\0')
		return false;
	*has_time = isfinite(time_us) && time_us > 0 && time_us < 1e18;
	*time_ns = *has_time ? time_us * 1e3 : 0;
	return true;
}

/* Label and numbers of a class must agree with a known class. */
static bool class_of(const struct fields *fields, uint8_t *size_class)
{
	uint64_t from, to, low, high;
	char label[FIELD_BYTES];
	unsigned int at;

	if (!number_of(fields->text[2], &low) || !number_of(fields->text[3], &high))
		return false;
	at = ncclsee_class_of(low);
	ncclsee_class_bounds(at, &from, &to);
	if (to == UINT64_MAX) {
		text_format(label, sizeof(label), ">%llu", (unsigned long long)from);
		to = INT32_MAX; /* its way to write "no end" */
	} else {
		text_format(label, sizeof(label), "%llu-%llu", (unsigned long long)from,
			    (unsigned long long)to);
	}
	*size_class = (uint8_t)at;
	return low == from && high == to && strcmp(fields->text[1], label) == 0;
}

static enum status take_group(struct ncclsee_profile *profile, const struct fields *fields)
{
	double time_ns;
	bool has_time;

	if (strcmp(fields->text[1], "N/A") != 0 || !number_of(fields->text[4], &profile->groups) ||
	    !time_of(fields->text[6], &has_time, &time_ns))
		return refuse_line(profile, ERR_FORMAT, "invalid numbers in the row of groups");
	return OK;
}

static enum status take_row(struct ncclsee_profile *profile, const struct fields *fields)
{
	struct ncclsee_row row = { 0 };
	size_t name = 0;

	while (name < NCCLSEE_FUNCTIONS && strcmp(functions[name].name, fields->text[0]) != 0)
		name++;
	if (name == NCCLSEE_FUNCTIONS)
		return refuse_line(profile, ERR_FORMAT, "unknown collective");
	row.function = functions[name].function;
	if (!class_of(fields, &row.size_class))
		return refuse_line(profile, ERR_FORMAT, "unknown size class");
	if (!number_of(fields->text[4], &row.calls) || row.calls == 0 ||
	    row.calls > UINT64_C(1) << 53 || !number_of(fields->text[5], &row.bytes))
		return refuse_line(profile, ERR_FORMAT, "calls or bytes are not numbers");
	if (!time_of(fields->text[6], &row.has_time, &row.total_ns))
		return refuse_line(profile, ERR_FORMAT, "the time is not a number");
	for (size_t i = 0; i < profile->row_count; i++)
		if (profile->rows[i].function == row.function &&
		    profile->rows[i].size_class == row.size_class)
			return refuse_line(profile, ERR_FORMAT, "duplicate row");
	/* Cannot overflow: each row occurs once. */
	profile->rows[profile->row_count++] = row;
	return OK;
}

enum status ncclsee_read_memory(struct ncclsee_profile *profile, const char *text, size_t length)
{
	bool is_over = false;
	size_t at = 0;

	memset(profile, 0, sizeof(*profile));
	profile->pid = -1;
	while (at < length) {
		const char *line = text + at;
		const char *end = memchr(line, '\n', length - at);
		size_t size = end ? (size_t)(end - line) : length - at;
		struct fields fields;
		enum status status;

		profile->line++;
		if (profile->line == 1 &&
		    (size != sizeof(header) - 1 || memcmp(line, header, size) != 0))
			return refuse_line(profile, ERR_FORMAT, "not the header of ncclsee's CSV");
		if (end == NULL)
			return refuse_line(profile, ERR_TRUNCATED, "last line truncated");
		at += size + 1;
		if (profile->line == 1)
			continue;
		if (is_over)
			return refuse_line(profile, ERR_FORMAT,
					   "trailing text after the row of groups");
		if (!split(line, size, &fields))
			return refuse_line(profile, ERR_FORMAT, "expected seven fields");
		is_over = strcmp(fields.text[0], "Group") == 0;
		status = is_over ? take_group(profile, &fields) : take_row(profile, &fields);
		if (status != OK)
			return status;
	}
	return is_over ? OK
		       : refuse_line(profile, ERR_TRUNCATED,
				     "truncated: no row of groups at the end");
}

static int64_t pid_of(const char *path)
{
	const char *name = strrchr(path, '/');
	char digits[24];
	int64_t pid;

	name = name ? name + 1 : path;
	text_format(digits, sizeof(digits), "%.*s", (int)strspn(name, "0123456789"), name);
	if (strcmp(name + strlen(digits), ".csv") != 0 ||
	    text_number(digits, 1, INT32_MAX, &pid) != OK)
		return -1;
	return pid;
}

enum status ncclsee_read(struct ncclsee_profile *profile, const char *path)
{
	enum status status = ERR_SYSTEM;
	size_t got;
	char *text;
	int fd;

	memset(profile, 0, sizeof(*profile));
	profile->pid = -1;
	fd = file_open(AT_FDCWD, path, true);
	if (fd == -1)
		return ERR_SYSTEM;
	text = malloc(NCCLSEE_BYTES_MAX + 1);
	if (text == NULL) {
		status = ERR_NO_SPACE;
		goto out_close;
	}
	status = file_pread_some(fd, text, NCCLSEE_BYTES_MAX + 1, 0, &got);
	if (status == OK && got > NCCLSEE_BYTES_MAX)
		status = refuse_line(profile, ERR_RANGE, "longer than any file of ncclsee");
	else if (status == OK)
		status = ncclsee_read_memory(profile, text, got);
	profile->pid = pid_of(path);
	free(text);
out_close:
	close(fd);
	return status;
}
