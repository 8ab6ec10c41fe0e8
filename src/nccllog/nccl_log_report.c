/* What PyTorch says of NCCL: its watchdog's time-outs, and errors that it passes on. */
#include <string.h>

#include "common/attributes.h"
#include "common/hash.h"
#include "nccllog/nccl_log_parts.h"

static bool is_report(struct log_text text)
{
	static const char *const words[] = {
		"Watchdog caught", "unhandled cuda error",     "unhandled system error",
		"NCCL error in",   "remote process exited or", "NCCL operations have failed",
	};

	for (size_t i = 0; i < ARRAY_LENGTH(words); i++)
		if (log_has(text, words[i]))
			return true;
	return false;
}

/* "[rank3]:", "[Rank 3]" */
static int64_t rank_in(struct log_text text)
{
	int64_t rank;

	if ((log_find(&text, "[rank") || log_find(&text, "[Rank ")) && log_number(&text, &rank) &&
	    LOG_SKIP(&text, "]"))
		return rank;
	return -1;
}

void log_take_report(struct nccl_log *log, struct log_text text, struct nccl_log_place place)
{
	struct nccl_log_report *report;
	int64_t rank;
	bool is_new;

	if (!log_has(text, "NCCL") || !is_report(text))
		return;
	rank = rank_in(text);
	report = log_entry(log, LOG_REPORTS,
			   hash_word(hash_word(17, (uint64_t)rank), log_shape(text)), &is_new);
	if (report == NULL)
		return;
	if (is_new)
		*report = (struct nccl_log_report){ .rank = rank,
						    .text = log_keep(log, log_trim(text)),
						    .place = place };
	report->lines++;
}
