/*
 * The head of a line: who wrote it.
 *
 *	[1,3]<stdout>:[2026-01-02 10:00:00] node7:4711:4800 [3] transport/net.cc:12 NCCL WARN text
 *	prefix                              host  pid  tid  device  source      ^ label
 *
 * It is read backwards from the label: launchers, clocks and other programs put before it what they like.
 */
#include <ctype.h>
#include <string.h>

#include "common/hash.h"
#include "nccllog/nccl_log_parts.h"

struct head {
	struct log_text host;
	int64_t pid;
	uint64_t thread;
	int32_t device;
	const char *start; /* where the host's name begins */
};

static bool is_host_byte(char byte)
{
	return isalnum((unsigned char)byte) || byte == '.' || byte == '-' || byte == '_';
}

/* ":123" that ends at `end`; gives back where the colon is, NULL when there is none. */
static const char *number_back(const char *start, const char *end, int64_t *number)
{
	const char *at = end;
	struct log_text digits;

	while (at > start && at[-1] >= '0' && at[-1] <= '9')
		at--;
	digits = (struct log_text){ at, end };
	if (at == start || at[-1] != ':' || !log_number(&digits, number))
		return NULL;
	return at - 1;
}

/* Is "host:pid:tid" what ends here? */
static bool read_head_word(const char *start, const char *end, struct head *head)
{
	const char *second, *first;
	int64_t thread;

	second = number_back(start, end, &thread);
	first = second != NULL ? number_back(start, second, &head->pid) : NULL;
	if (first == NULL)
		return false;
	head->thread = (uint64_t)thread;
	head->start = first;
	while (head->start > start && is_host_byte(head->start[-1]) && first - head->start < 255)
		head->start--;
	head->host = (struct log_text){ head->start, first };
	return head->start < first;
}

/* Words between the head and "NCCL": "[3]", "12.345", "net.cc:12 (function)". */
enum { WORDS_BETWEEN = 8 };

static bool read_head(const char *start, const char *label, struct head *head,
		      struct log_text *between)
{
	const char *end = label;

	head->device = -1;
	for (int i = 0; i < WORDS_BETWEEN && end > start; i++) {
		const char *word;

		while (end > start && end[-1] == ' ')
			end--;
		if (read_head_word(start, end, head)) {
			*between = log_trim((struct log_text){ end, label });
			if (LOG_SKIP(between, "[") && log_int(between, &head->device))
				LOG_SKIP(between, "]");
			*between = log_trim(*between);
			return true;
		}
		for (word = end; word > start && word[-1] != ' '; word--)
			;
		end = word;
	}
	return false;
}

/* What launchers put before a line: "[1,3]<stdout>:", "[rank3]:", "3: ". */
static int64_t launcher_rank(const char *start, const char *end)
{
	struct log_text text = log_trim((struct log_text){ start, end });
	int64_t number;

	if (LOG_SKIP(&text, "[rank"))
		return log_number(&text, &number) && LOG_SKIP(&text, "]") ? number : -1;
	if (LOG_SKIP(&text, "[")) {
		if (!log_number(&text, &number) || !LOG_SKIP(&text, ","))
			return -1;
		return log_number(&text, &number) && LOG_SKIP(&text, "]<std") ? number : -1;
	}
	return log_number(&text, &number) && LOG_SKIP(&text, ":") ? number : -1;
}

static uint64_t process_key(struct log_text host, int64_t pid)
{
	return hash_word(hash_bytes(host.at, log_left(&host)), (uint64_t)pid);
}

/* Of a cut line the name may have more before it: a process that is known already counts. */
static void shorten_host(const struct nccl_log *log, struct head *head)
{
	struct log_text host = head->host;

	for (; host.at < host.end; host.at++)
		if (log_find_key(log, LOG_PROCESSES, process_key(host, head->pid)) != LOG_NONE) {
			head->host = host;
			head->start = host.at;
			return;
		}
}

static uint32_t find_process(struct nccl_log *log, const struct head *head, int64_t launcher)
{
	struct nccl_log_process *process;
	bool is_new;

	process = log_entry(log, LOG_PROCESSES, process_key(head->host, head->pid), &is_new);
	if (process == NULL)
		return UINT32_MAX;
	if (is_new)
		*process = (struct nccl_log_process){ .host = log_keep(log, head->host),
						      .pid = head->pid,
						      .launcher_rank = -1,
						      .cuda_device = -1,
						      .version = "",
						      .cuda_version = "",
						      .git = "",
						      .last_comm = LOG_NONE };
	if (process->launcher_rank < 0)
		process->launcher_rank = launcher;
	if (process->cuda_device < 0)
		process->cuda_device = head->device;
	return (uint32_t)(process - log->processes);
}

/* Lines without a head: one process per file stands for all of them. */
static uint32_t find_nobody(struct nccl_log *log, uint32_t file)
{
	struct nccl_log_work *work = log->work;
	struct head head = { .pid = -1 - (int64_t)file, .device = -1, .host = { "", "" } };

	if (work->nobody == UINT32_MAX) {
		work->nobody = find_process(log, &head, -1);
		if (work->nobody != UINT32_MAX)
			log->processes[work->nobody].pid = -1;
	}
	return work->nobody;
}

/* A head that was read before. Cut ones are not among them. */
static struct log_head *head_slot(struct nccl_log_work *work, const char *start, size_t length)
{
	return &work->heads[hash_bytes(start, length) % LOG_HEADS];
}

static bool is_head(const struct log_head *head, const char *start, size_t length)
{
	return head->length == length && memcmp(head->bytes, start, length) == 0;
}

const char *log_read_whose(struct log_line *line, const char *start, const char *label, bool is_cut)
{
	struct nccl_log_work *work = line->log->work;
	size_t length = (size_t)(label - start);
	bool is_short = !is_cut && length > 0 && length <= sizeof(work->heads[0].bytes);
	struct log_head *known = is_short ? head_slot(work, start, length) : NULL;
	struct head head = { .pid = -1 };

	line->source = (struct log_text){ label, label };
	if (known != NULL && is_head(known, start, length)) {
		line->process = known->process;
		line->thread = known->thread;
		work->last_head = known;
		return start;
	}
	line->thread = 0;
	if (!read_head(start, label, &head, &line->source)) {
		line->process = find_nobody(line->log, line->place.file);
		return label;
	}
	if (is_cut)
		shorten_host(line->log, &head);
	line->process = find_process(line->log, &head, launcher_rank(start, head.start));
	line->thread = head.thread;
	/* A head with a source in it belongs to a warning: it does not come again. */
	if (known != NULL && log_left(&line->source) == 0) {
		memcpy(known->bytes, start, length);
		known->length = length;
		known->process = line->process;
		known->thread = line->thread;
		work->last_head = known;
	}
	return head.start;
}
