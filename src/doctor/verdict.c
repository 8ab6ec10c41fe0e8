/* The list of verdicts: texts, order, identity. */
#include "doctor/verdict.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/job.h"
#include "common/attributes.h"
#include "common/hash.h"
#include "common/text.h"

static const struct {
	const char *name;
	char family;	  /* h hang, s slow, c configuration, b blind */
	const char *page; /* "": one for each rule, or none */
} classes[VERDICT_CLASSES] = {
	[VERDICT_NEVER_ISSUED] = { "never_issued", 'h', "runbooks/NcclHangRankMissing.md" },
	[VERDICT_MISMATCH] = { "mismatch", 'h', "runbooks/NcclMismatch.md" },
	[VERDICT_NOT_LAUNCHED] = { "not_launched", 'h', "runbooks/HangGpu.md" },
	[VERDICT_GPU_NOT_REACHED] = { "gpu_not_reached", 'h', "runbooks/HangGpu.md" },
	[VERDICT_GPU_STUCK] = { "gpu_stuck", 'h', "runbooks/HangGpu.md" },
	[VERDICT_NETWORK_STUCK] = { "network_stuck", 'h', "runbooks/HangNetwork.md" },
	[VERDICT_DEADLOCK] = { "deadlock", 'h', "runbooks/HangDeadlock.md" },
	[VERDICT_PROCESS_DEAD] = { "process_dead", 'h', "runbooks/NcclHangProcessGone.md" },
	[VERDICT_PROCESS_STOPPED] = { "process_stopped", 'h', "runbooks/HangProcessStopped.md" },
	[VERDICT_AGENT_DEAD] = { "agent_dead", 'h', "runbooks/RingsideAgentDown.md" },
	[VERDICT_UNSEEN] = { "unseen", 'h', "runbooks/NcclRanksUnseen.md" },
	[VERDICT_STUCK] = { "stuck", 'h', "runbooks/NcclHangUnexplained.md" },
	[VERDICT_SLOW_RANK] = { "slow_rank", 's', "runbooks/NcclStraggler.md" },
	[VERDICT_SLOW_HOST] = { "slow_host", 's', "runbooks/NcclStraggler.md" },
	[VERDICT_SLOW_LINK] = { "slow_link", 's', "DOCTOR.md#slowness" },
	[VERDICT_SLOW_NETWORK] = { "slow_network", 's', "runbooks/NcclNetworkDegraded.md" },
	[VERDICT_SLOW_NVLINK] = { "slow_nvlink", 's', "runbooks/NcclNvlinkDegraded.md" },
	[VERDICT_SLOW_COMM] = { "slow_communicator", 's', "DOCTOR.md#slowness" },
	[VERDICT_SLOW_SIZE] = { "slow_size", 's', "DOCTOR.md#slowness" },
	[VERDICT_SLOW_ALGORITHM] = { "slow_algorithm", 's', "DOCTOR.md#slowness" },
	[VERDICT_BELOW_EXPECTED] = { "below_expected", 's', "DOCTOR.md#slowness" },
	[VERDICT_SETUP] = { "setup", 'c', "" },
	[VERDICT_BLIND] = { "blind", 'b', "" },
	[VERDICT_ELSEWHERE] = { "elsewhere", 'h', "runbooks/NcclRanksUnseen.md" },
};

const char *verdict_class_name(enum verdict_class kind)
{
	return (size_t)kind < VERDICT_CLASSES ? classes[kind].name : "?";
}

bool verdict_is_hang(enum verdict_class kind)
{
	return (size_t)kind < VERDICT_CLASSES && classes[kind].family == 'h';
}

bool verdict_is_slow(enum verdict_class kind)
{
	return (size_t)kind < VERDICT_CLASSES && classes[kind].family == 's';
}

const char *verdict_severity_name(enum verdict_severity severity)
{
	static const char *const names[] = { "note", "warning", "error" };

	return (size_t)severity < ARRAY_LENGTH(names) ? names[severity] : "?";
}

const char *verdict_cost_word(const struct verdict *verdict)
{
	if (!verdict->is_cost_bound)
		return "";
	return verdict->is_cost_least ? "at least " : "up to ";
}

const char *verdict_confidence_word(double confidence)
{
	if (confidence >= 0.95)
		return "certain";
	if (confidence >= 0.8)
		return "very likely";
	return confidence >= 0.5 ? "likely" : "possible";
}

struct units_text verdict_confidence_percent(double confidence)
{
	struct units_text to = { ">99%" };

	/* 100% would claim certainty that the evidence does not give. */
	if (confidence >= 1 || confidence < 0.995)
		text_format(to.text, sizeof(to.text), "%.0f%%", 100 * confidence);
	return to;
}

/* ---- the list -------------------------------------------------------------------------------- */

void verdicts_init(struct verdicts *verdicts)
{
	*verdicts = (struct verdicts){ .list = NULL };
}

static void release_lines(struct verdict_lines *lines)
{
	for (size_t i = 0; i < lines->count; i++)
		free(lines->list[i]);
	free(lines->list);
}

void verdicts_release(struct verdicts *verdicts)
{
	for (size_t i = 0; i < verdicts->count; i++) {
		release_lines(&verdicts->list[i].evidence);
		release_lines(&verdicts->list[i].missing);
		release_lines(&verdicts->list[i].advice);
	}
	free(verdicts->list);
	verdicts_init(verdicts);
}

static void clear_verdict(struct verdict *verdict, enum verdict_class class,
			  enum verdict_severity severity)
{
	*verdict = (struct verdict){
		.class = class,
		.severity = severity,
		.confidence = 1,
		.rank = -1,
		.pid = -1,
		.gpu = -1,
		.peer = -1,
		.channel = -1,
		.comm_rank = -1,
	};
}

/* Takes verdicts beyond the limit: it is never read, and its lines are dropped. */
static _Thread_local struct verdict nowhere;

struct verdict *verdicts_add(struct verdicts *verdicts, enum verdict_class class,
			     enum verdict_severity severity)
{
	struct verdict *verdict = &nowhere;

	if (verdicts->count < VERDICTS_MAX &&
	    list_grow(&verdicts->list, verdicts->count, sizeof(*verdict)))
		verdict = &verdicts->list[verdicts->count++];
	else
		verdicts->left_out++;
	clear_verdict(verdict, class, severity);
	return verdict;
}

void verdict_set_page(struct verdict *verdict)
{
	text_copy(verdict->page, sizeof(verdict->page), classes[verdict->class].page);
}

void verdict_set_rank(struct verdict *verdict, const struct job *job, uint32_t rank)
{
	const struct job_rank *of = &job->ranks[rank];

	verdict->rank = of->rank;
	verdict->pid = recording_pid(job->recording->processes[of->process]);
	verdict->gpu = of->gpu;
	text_copy(verdict->rank_label, sizeof(verdict->rank_label), of->label);
	text_copy(verdict->host, sizeof(verdict->host), job->hosts[of->host].name);
}

void verdict_set_peer(struct verdict *verdict, const struct job *job, uint32_t rank)
{
	const struct job_rank *of = &job->ranks[rank];

	verdict->peer = of->rank;
	text_copy(verdict->peer_label, sizeof(verdict->peer_label), of->label);
	text_copy(verdict->peer_host, sizeof(verdict->peer_host), job->hosts[of->host].name);
}

/* ---- texts ----------------------------------------------------------------------------------- */

static void cut_with_dots(char *text, size_t size)
{
	memcpy(text + size - sizeof("..."), "...", sizeof("..."));
}

void verdict_title(struct verdict *verdict, const char *format, ...)
{
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(verdict->title, sizeof(verdict->title), format, arguments);
	va_end(arguments);
	if (length >= (int)sizeof(verdict->title))
		cut_with_dots(verdict->title, sizeof(verdict->title));
}

/* A line that does not fit replaces the last one, to show that something is missing. */
static void add_line(struct verdict *verdict, struct verdict_lines *lines, const char *format,
		     va_list arguments)
{
	char line[1024];

	if (verdict == &nowhere)
		return;
	if (vsnprintf(line, sizeof(line), format, arguments) >= (int)sizeof(line))
		cut_with_dots(line, sizeof(line));
	if (lines->count == VERDICT_LINES_MAX) {
		free(lines->list[--lines->count]);
		text_copy(line, sizeof(line), "More lines of this kind were left out.");
	}
	if (!list_grow(&lines->list, lines->count, sizeof(*lines->list)))
		return;
	lines->list[lines->count] = strdup(line);
	lines->count += lines->list[lines->count] != NULL;
}

void verdict_evidence(struct verdict *verdict, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	add_line(verdict, &verdict->evidence, format, arguments);
	va_end(arguments);
}

void verdict_missing(struct verdict *verdict, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	add_line(verdict, &verdict->missing, format, arguments);
	va_end(arguments);
}

void verdict_advice(struct verdict *verdict, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	add_line(verdict, &verdict->advice, format, arguments);
	va_end(arguments);
}

static void copy_lines(struct verdict *to, void (*add)(struct verdict *, const char *, ...),
		       const struct verdict_lines *lines)
{
	for (size_t i = 0; i < lines->count; i++)
		add(to, "%s", lines->list[i]);
}

struct verdict *verdicts_add_copy(struct verdicts *verdicts, const struct verdict *verdict)
{
	const struct verdict_lines none = { .list = NULL };
	struct verdict *to = verdicts_add(verdicts, verdict->class, verdict->severity);

	*to = *verdict;
	to->evidence = to->missing = to->advice = none;
	copy_lines(to, verdict_evidence, &verdict->evidence);
	copy_lines(to, verdict_missing, &verdict->missing);
	copy_lines(to, verdict_advice, &verdict->advice);
	return to;
}

/* ---- order and identity ---------------------------------------------------------------------- */

static int family_order(enum verdict_class kind)
{
	if (verdict_is_hang(kind))
		return 0;
	if (verdict_is_slow(kind))
		return 1;
	return kind == VERDICT_SETUP ? 2 : 3;
}

static int most_serious_first(const void *one, const void *other)
{
	const struct verdict *a = one, *b = other;

	return ORDER(b->severity, a->severity) ?:
	       ORDER(family_order(a->class), family_order(b->class)) ?:
	       ORDER(b->gpu_hours, a->gpu_hours) ?:
	       ORDER(b->victims, a->victims) ?:
	       ORDER(b->confidence, a->confidence) ?:
	       strcmp(a->job, b->job) ?:
	       ORDER(a->rank, b->rank) ?:
	       strcmp(a->title, b->title);
}

void verdicts_sort(struct verdicts *verdicts)
{
	if (verdicts->count > 1)
		qsort(verdicts->list, verdicts->count, sizeof(*verdicts->list), most_serious_first);
}

/* "runbooks/HangNetwork.md" is "hang-network". */
static void page_name(const char *page, char *to, size_t size)
{
	const char *from = strrchr(page, '/') ? strrchr(page, '/') + 1 : page;
	size_t used = 0;

	for (size_t i = 0; from[i] != '\0' && strcmp(from + i, ".md") != 0 && used + 2 < size;
	     i++) {
		if (from[i] >= 'A' && from[i] <= 'Z' && i > 0)
			to[used++] = '-';
		to[used++] =
			from[i] >= 'A' && from[i] <= 'Z' ? (char)(from[i] - 'A' + 'a') : from[i];
	}
	to[used] = '\0';
}

const char *verdict_runbook(const struct verdict *verdict, char to[static VERDICT_RUNBOOK])
{
	const char *base = getenv("RINGSIDE_RUNBOOKS"), *page = verdict->page;
	size_t length = base ? strlen(base) : 0;
	char name[sizeof(verdict->page) * 2];

	while (length > 0 && base[length - 1] == '/')
		length--;
	if (page[0] == '\0')
		to[0] = '\0';
	else if (length > 0)
		text_format(to, VERDICT_RUNBOOK, "%.*s/%s", (int)(length < 400 ? length : 400),
			    base, page);
	else if (strncmp(page, "runbooks/", 9) != 0 && strncmp(page, "setup/", 6) != 0)
		text_format(to, VERDICT_RUNBOOK, "docs/%s", page);
	else {
		page_name(page, name, sizeof(name));
		text_format(to, VERDICT_RUNBOOK, "ringside help %s", name);
	}
	return to;
}

double verdict_hours_hung(const struct verdict *verdict)
{
	/* The rank at fault is idle as well; in a deadlock it is among the waiting ones. */
	bool is_one_more = verdict->class != VERDICT_DEADLOCK && verdict->host[0] != '\0';

	if (!verdict_is_hang(verdict->class) || verdict->severity != VERDICT_ERROR)
		return 0;
	return (double)(verdict->victims + is_one_more) * (double)verdict->for_ns / 3.6e12;
}

bool verdicts_has_unjudged(const struct verdicts *verdicts)
{
	for (size_t i = 0; i < verdicts->count; i++)
		if (verdicts->list[i].is_unjudged)
			return true;
	return false;
}

bool verdicts_has_trouble(const struct verdicts *verdicts)
{
	for (size_t i = 0; i < verdicts->count; i++)
		if (verdicts->list[i].severity >= VERDICT_WARNING)
			return true;
	return false;
}

uint64_t verdict_key(const struct verdict *verdict)
{
	uint64_t key = hash_word((uint64_t)verdict->class, (uint64_t)verdict->rank);

	key = hash_word(key, (uint64_t)verdict->peer);
	key = hash_word(key, verdict->comm_hash);
	key = hash_text(key, verdict->job);
	key = hash_text(key, verdict->host);
	key = hash_text(key, verdict->comm);
	return hash_text(key, verdict->rule);
}

static bool has_channel(const uint64_t channels[4], int channel)
{
	return channel < 256 && channels[channel / 64] >> (channel % 64) & 1;
}

void verdict_say_channels(char *text, size_t size, const uint64_t channels[4])
{
	bool is_first = true;

	for (int c = 0; c < 256; c++) {
		int last = c;

		if (!has_channel(channels, c))
			continue;
		while (has_channel(channels, last + 1))
			last++;
		text_append(text, size, last > c ? "%s%d-%d" : "%s%d", is_first ? "" : ",", c,
			    last);
		is_first = false;
		c = last;
	}
}
