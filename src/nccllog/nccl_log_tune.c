/* What was chosen, what NCCL's model says, and which operations were issued. */
#include <string.h>

#include "common/attributes.h"
#include "common/hash.h"
#include "nccllog/nccl_log_parts.h"

static uint64_t hash_text(uint64_t before, struct log_text text)
{
	return hash_word(before, hash_bytes(text.at, log_left(&text)));
}

static struct log_text text_of(const char *text)
{
	return (struct log_text){ text, text + strlen(text) };
}

/* ---- "AllReduce: opCount 1f sendbuff 0x.. recvbuff 0x.. count 7 datatype 7 op 0 root 0 comm 0x.. [..." -- */

static void keep_operation(struct log_line *line, struct log_text function, int32_t comm,
			   const struct nccl_log_operation *read)
{
	uint64_t key = hash_text(hash_word(hash_word(11, line->process), (uint64_t)comm), function);
	struct nccl_log_operation *operation;
	bool is_new;

	operation = log_entry(line->log, LOG_OPERATIONS, key, &is_new);
	if (operation == NULL)
		return;
	if (is_new) {
		*operation = *read;
		operation->process = line->process;
		operation->comm = comm;
		operation->function = log_keep(line->log, function);
		operation->first = line->place;
	}
	operation->lines++;
	operation->last_count = read->last_count;
	operation->last_elements = read->last_elements;
	operation->last_datatype = read->last_datatype;
	operation->last = line->place;
}

bool log_take_operation(struct log_line *line)
{
	struct log_text text = line->message, function = log_until(&text, ':');
	struct nccl_log_operation read = { .last_datatype = -1 };
	uint64_t pointer;
	int64_t count;

	if (!LOG_SKIP(&text, " opCount ") || !log_hex(&text, &read.last_count))
		return false;
	read.first_count = read.last_count;
	if (!log_find(&text, " count ") || !log_number(&text, &count) ||
	    !LOG_SKIP(&text, " datatype ") || !log_int(&text, &read.last_datatype) ||
	    !log_find(&text, " comm ") || !log_hex(&text, &pointer))
		return false;
	read.last_elements = count > 0 ? (uint64_t)count : 0;
	line->log->kinds[NCCL_LOG_KIND_OPERATION]++;
	keep_operation(line, function, log_comm_by_pointer(line, pointer), &read);
	return true;
}

/* "ncclAllReduce(7f..,7f..,1048576,7,0,0,0x..,0x..)" */
bool log_take_call(struct log_line *line)
{
	struct log_text text = line->message;
	const struct nccl_log_operation read = { .last_datatype = -1 };

	line->log->kinds[NCCL_LOG_KIND_CALL]++;
	keep_operation(line, log_until(&text, '('), LOG_NONE, &read);
	return true;
}

/* ---- choices --------------------------------------------------------------------------------- */

struct choice {
	struct log_text function, algorithm, protocol;
	uint64_t bytes;
	int32_t channels;
	double time_us;
};

static bool keep_choice(struct log_line *line, const struct choice *read)
{
	uint64_t key =
		hash_text(hash_text(hash_word(12, read->bytes), read->function), read->algorithm);
	struct nccl_log_choice *choice;
	bool is_new;

	key = hash_word(hash_text(key, read->protocol), (uint64_t)read->channels);
	line->log->kinds[NCCL_LOG_KIND_CHOICE]++;
	choice = log_entry(line->log, LOG_CHOICES, key, &is_new);
	if (choice == NULL)
		return true;
	if (is_new)
		*choice = (struct nccl_log_choice){
			.function = log_keep(line->log, read->function),
			.bytes = read->bytes,
			.algorithm = log_keep(line->log, read->algorithm),
			.protocol = log_keep(line->log, read->protocol),
			.channels = read->channels,
			.time_us = read->time_us,
			.place = line->place,
		};
	choice->lines++;
	return true;
}

/* Up to 2.23 they are numbers. */
static struct log_text name_algorithm(struct log_text word)
{
	static const char *const names[] = {
		"TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT"
	};

	if (log_left(&word) == 1 && word.at[0] >= '0' &&
	    (size_t)(word.at[0] - '0') < ARRAY_LENGTH(names))
		return text_of(names[word.at[0] - '0']);
	return word;
}

static struct log_text name_protocol(struct log_text word)
{
	static const char *const names[] = { "LL", "LL128", "SIMPLE" };

	if (log_left(&word) == 1 && word.at[0] >= '0' &&
	    (size_t)(word.at[0] - '0') < ARRAY_LENGTH(names))
		return text_of(names[word.at[0] - '0']);
	return word;
}

/* "Algo RING proto LL channel{Lo..Hi}={0..1}", "Algo 1 proto 2 time 61.2" */
static bool read_algorithm(struct log_text *text, struct choice *choice)
{
	int32_t low, high;

	choice->algorithm = name_algorithm(log_until(text, ' '));
	if (!LOG_SKIP(text, "proto "))
		return false;
	choice->protocol = name_protocol(log_until(text, ' '));
	if (LOG_SKIP(text, "time "))
		return log_real(text, &choice->time_us);
	if (!LOG_SKIP(text, "channel{Lo..Hi}={"))
		return true;
	if (!log_int(text, &low) || !LOG_SKIP(text, "..") || !log_int(text, &high) || high < low)
		return false;
	choice->channels = high - low < 4096 ? high - low + 1 : -1;
	return true;
}

/* "AllReduce: 1048576 Bytes -> Algo ...", "4096 Bytes -> Algo ...",
 * "AllReduce [Symmetric]: 4096 Bytes -> Kernel AllReduce_AGxLL_R nchannels 4 ...",
 * "AllGather [Copy Engine]: 4096 Bytes -> cudaMemcpy..." */
bool log_take_choice(struct log_line *line)
{
	struct log_text text = line->message;
	struct choice choice = { .channels = -1, .time_us = -1 };
	int64_t bytes;

	choice.function = choice.protocol = (struct log_text){ text.at, text.at };
	if (text.at < text.end && (text.at[0] < '0' || text.at[0] > '9')) {
		choice.function = log_until(&text, ':');
		LOG_SKIP(&text, " ");
		choice.function = log_until(&choice.function, ' ');
	}
	if (!log_number(&text, &bytes) || bytes < 0 || !LOG_SKIP(&text, " Bytes -> "))
		return false;
	choice.bytes = (uint64_t)bytes;
	if (LOG_SKIP(&text, "Algo "))
		return read_algorithm(&text, &choice) && keep_choice(line, &choice);
	if (LOG_SKIP(&text, "Kernel ")) {
		choice.algorithm = log_until(&text, ' ');
		if (LOG_SKIP(&text, "nchannels "))
			log_int(&text, &choice.channels);
	} else
		choice.algorithm = log_trim(text);
	return keep_choice(line, &choice);
}

/* ---- the table of costs ---------------------------------------------------------------------- */

/* "  Algorithm   |   Tree   |   Ring   |   CollNetDirect |"; "Protocol" and "Max NThreads" say nothing new. */
bool log_take_table_head(struct log_line *line)
{
	struct nccl_log_work *work = line->log->work;
	struct log_text text = line->message, first = log_trim(log_until(&text, '|'));

	line->log->kinds[NCCL_LOG_KIND_TUNING]++;
	if (!LOG_SKIP(&first, "Algorithm"))
		return true;
	work->column_count = 0;
	work->column_process = line->process;
	while (log_left(&text) > 0 && work->column_count < ARRAY_LENGTH(work->columns)) {
		struct log_text word = log_trim(log_until(&text, '|'));

		if (log_left(&word) > 0)
			work->columns[work->column_count++] = log_keep(line->log, word);
	}
	return true;
}

static void keep_cost(struct log_line *line, struct log_text function, size_t column,
		      struct log_text cell)
{
	static const char *const protocols[] = { "LL", "LL128", "Simple" };
	struct nccl_log_work *work = line->log->work;
	struct log_text algorithm = text_of(work->columns[column / 3]);
	struct nccl_log_cost *cost;
	double latency, bandwidth;
	struct log_text bandwidth_text;
	uint64_t key;
	bool is_new;

	if (!log_real(&cell, &latency) || !LOG_SKIP(&cell, "/"))
		return;
	bandwidth_text = log_trim(cell);
	if (!log_real(&bandwidth_text, &bandwidth) || bandwidth <= 0)
		return;
	key = hash_text(hash_text(hash_word(13, column % 3), function), algorithm);
	cost = log_entry(line->log, LOG_COSTS, key, &is_new);
	if (cost != NULL && is_new)
		*cost = (struct nccl_log_cost){ .function = log_keep(line->log, function),
						.algorithm = work->columns[column / 3],
						.protocol = protocols[column % 3],
						.latency_us = latency,
						.bandwidth = bandwidth,
						.place = line->place };
}

/* "    AllReduce |    16.8/   0.2 |    31.0/   0.0 |": latency and bandwidth, three protocols a column */
bool log_take_table_row(struct log_line *line)
{
	struct nccl_log_work *work = line->log->work;
	struct log_text text = line->message, function = log_trim(log_until(&text, '|'));

	if (log_left(&text) == 0 || !log_has(text, "/"))
		return false;
	line->log->kinds[NCCL_LOG_KIND_TUNING]++;
	if (work->column_process != line->process)
		return true;
	for (size_t i = 0; log_left(&text) > 0 && i < work->column_count * 3; i++)
		keep_cost(line, function, i, log_trim(log_until(&text, '|')));
	return true;
}
