/*
 * What is wrong with NCCL's settings and with what it detected: processes and their variables, merged from logs and
 * recordings.
 */
#include "doctor/doctor.h"
#include "doctor/setup_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/attributes.h"
#include "common/hash.h"
#include "common/search.h"
#include "common/text.h"
#include "common/union_find.h"

/* "node1" and "node1.cluster" are the same host: NCCL cuts its name at the first dot. */
bool setup_same_host(const char *one, const char *other)
{
	size_t length = strcspn(one, ".");

	return length == strcspn(other, ".") && strncmp(one, other, length) == 0;
}

static uint64_t host_key(const char *host, int64_t pid)
{
	return hash_word(hash_bytes(host, strcspn(host, ".")), (uint64_t)pid);
}

/* ---- processes ------------------------------------------------------------------------------- */

/* The largest communicator gives the global rank; a launcher's prefix does, too. */
static void read_logged(const struct setup *setup, struct setup_who *who)
{
	const struct nccl_log_process *process = &setup->log->processes[who->logged];

	for (int32_t i = process->last_comm; i >= 0; i = setup->log->comms[i].previous) {
		const struct nccl_log_comm *comm = &setup->log->comms[i];

		if (comm->nranks >= who->nranks) {
			who->nranks = comm->nranks;
			who->rank = comm->rank;
		}
		who->has_init |= comm->start.line != 0 && comm->complete.line != 0;
	}
	if (process->launcher_rank >= 0)
		who->rank = process->launcher_rank;
}

struct who_index {
	uint64_t key;
	uint32_t who;
};

static int compare_index(const void *one, const void *other)
{
	const struct who_index *a = one, *b = other;

	return ORDER(a->key, b->key);
}

static void add_recorded(struct setup *setup)
{
	for (size_t i = 0; setup->recording != NULL && i < setup->recording->count; i++) {
		const struct recording_process *process = setup->recording->processes[i];

		setup->whos[setup->who_count++] = (struct setup_who){
			.logged = -1,
			.recorded = (int64_t)i,
			.rank = process->rank,
			.host = process->host,
			.pid = process->pid,
			.job = process->job,
			.nranks = -1,
		};
	}
}

static uint32_t add_logged(struct setup *setup, const struct who_index *index, size_t index_count,
			   size_t number)
{
	const struct nccl_log_process *process = &setup->log->processes[number];
	const struct who_index key = { .key = host_key(process->host, process->pid) };
	const struct who_index *found = NULL;
	struct setup_who *who;

	if (index_count > 0 && process->pid >= 0)
		found = bsearch(&key, index, index_count, sizeof(key), compare_index);
	if (found != NULL) {
		who = &setup->whos[found->who];
	} else {
		who = &setup->whos[setup->who_count++];
		*who = (struct setup_who){ .recorded = -1,
					   .rank = -1,
					   .host = process->host,
					   .pid = process->pid,
					   .job = "",
					   .nranks = -1 };
	}
	who->logged = (int64_t)number;
	read_logged(setup, who);
	if (found != NULL && setup->recording->processes[who->recorded]->rank >= 0)
		who->rank = setup->recording->processes[who->recorded]->rank;
	return (uint32_t)(who - setup->whos);
}

static enum status find_whos(struct setup *setup)
{
	size_t logged = setup->log != NULL ? setup->log->process_count : 0;
	size_t recorded = setup->recording != NULL ? setup->recording->count : 0;
	struct who_index *index = calloc(recorded + 1, sizeof(*index));

	setup->whos = calloc(logged + recorded + 1, sizeof(*setup->whos));
	setup->who_of_logged = calloc(logged + 1, sizeof(*setup->who_of_logged));
	if (index == NULL || setup->whos == NULL || setup->who_of_logged == NULL) {
		free(index);
		return ERR_NO_SPACE;
	}
	add_recorded(setup);
	for (size_t i = 0; i < recorded; i++)
		index[i] = (struct who_index){ host_key(setup->whos[i].host, setup->whos[i].pid),
					       (uint32_t)i };
	qsort(index, recorded, sizeof(*index), compare_index);
	for (size_t i = 0; i < logged; i++)
		setup->who_of_logged[i] = add_logged(setup, index, recorded, i);
	free(index);
	return OK;
}

/* ---- teams ----------------------------------------------------------------------------------- */

/* Settings are compared between processes that share a communicator. Others may be of another job, or of an
 * earlier run. NCCL's log and its profiler interface use the same number for it. */
struct membership {
	uint64_t comm;
	uint32_t who;
};

static int compare_memberships(const void *one, const void *other)
{
	const struct membership *a = one, *b = other;

	return ORDER(a->comm, b->comm) ?: ORDER(a->who, b->who);
}

static size_t list_memberships(const struct setup *setup, struct membership *list)
{
	size_t count = 0;

	for (size_t i = 0; setup->recording != NULL && i < setup->recording->count; i++) {
		const struct recording_process *process = setup->recording->processes[i];

		for (size_t j = 0; j < process->comm_count; j++)
			list[count++] =
				(struct membership){ process->comms[j].info.hash, (uint32_t)i };
	}
	for (size_t i = 0; setup->log != NULL && i < setup->log->comm_count; i++)
		list[count++] = (struct membership){
			setup->log->comms[i].group,
			setup->who_of_logged[setup->log->comms[i].process],
		};
	return count;
}

static int compare_teams(const void *one, const void *other, void *context)
{
	const struct setup_who *whos = context;
	uint32_t a = *(const uint32_t *)one, b = *(const uint32_t *)other;

	return ORDER(whos[a].team, whos[b].team) ?: ORDER(a, b);
}

static enum status find_teams(struct setup *setup)
{
	size_t room = setup->log != NULL ? setup->log->comm_count : 0, count;
	struct membership *list;
	uint32_t *parents;

	for (size_t i = 0; setup->recording != NULL && i < setup->recording->count; i++)
		room += setup->recording->processes[i]->comm_count;
	list = calloc(room + 1, sizeof(*list));
	parents = malloc((setup->who_count + 1) * sizeof(*parents));
	setup->by_team = calloc(setup->who_count + 1, sizeof(*setup->by_team));
	if (list == NULL || parents == NULL || setup->by_team == NULL) {
		free(list);
		free(parents);
		return ERR_NO_SPACE;
	}
	union_find_init(parents, (uint32_t)setup->who_count);
	count = list_memberships(setup, list);
	qsort(list, count, sizeof(*list), compare_memberships);
	for (size_t i = 1; i < count; i++)
		if (list[i].comm == list[i - 1].comm && list[i].comm != 0)
			union_find_join_to(parents, list[i].who, list[i - 1].who);
	for (uint32_t i = 0; i < setup->who_count; i++) {
		setup->whos[i].team = union_find_root(parents, i);
		setup->by_team[i] = i;
	}
	free(list);
	free(parents);
	qsort_r(setup->by_team, setup->who_count, sizeof(*setup->by_team), compare_teams,
		setup->whos);
	for (uint32_t i = 0; i < setup->who_count; i++) {
		struct setup_who *first = &setup->whos[setup->whos[setup->by_team[i]].team];

		if (first->team_count++ == 0)
			first->team_first = i;
	}
	return OK;
}

/* "rank 3 (node1)", "process 4711 (node1)". */
static const char *setup_who_text(const struct setup *setup, uint32_t who, char *to, size_t size)
{
	const struct setup_who *it = &setup->whos[who];

	if (it->rank >= 0)
		text_format(to, size, "rank %lld (%s)", (long long)it->rank,
			    it->host[0] != '\0' ? it->host : "?");
	else if (it->pid >= 0)
		text_format(to, size, "process %lld (%s)", (long long)it->pid, it->host);
	else
		text_copy(to, size, "a process");
	return to;
}

/* ---- variables ------------------------------------------------------------------------------- */

static size_t count_lines(const struct recording_process *process)
{
	size_t lines = 0;

	for (size_t i = 0; i < process->info_bytes; i++)
		lines += process->info[i] == '\n';
	return lines + 1;
}

/* Lines "env.NAME=VALUE", in a copy that is split into strings. */
static enum status add_environment(struct setup *setup, uint32_t who,
				   const struct recording_process *process)
{
	char *copy = malloc(process->info_bytes + 1), *at = copy, *line;

	if (copy == NULL)
		return ERR_NO_SPACE;
	if (process->info_bytes > 0)
		memcpy(copy, process->info, process->info_bytes);
	copy[process->info_bytes] = '\0';
	setup->copies[setup->copy_count++] = copy;
	setup->whos[who].has_environment =
		strstr(copy, "\nenv.") != NULL && strstr(copy, "\nenv_left_out=") == NULL;
	while ((line = strsep(&at, "\n")) != NULL) {
		char *equals = strchr(line, '=');

		if (strncmp(line, "env.", 4) != 0 || equals == NULL)
			continue;
		*equals = '\0';
		text_clean(equals + 1);
		setup->variables[setup->variable_count++] = (struct setup_variable){
			.name = line + 4, .value = equals + 1, .who = who
		};
	}
	return OK;
}

static int compare_variables(const void *one, const void *other)
{
	const struct setup_variable *a = one, *b = other;
	int order = strcmp(a->name, b->name);

	if (order == 0)
		order = a->who < b->who ? -1 : a->who > b->who;
	return order != 0 ? order : (a->line != NULL) - (b->line != NULL);
}

/* One per process and name: recorded values take precedence over logged ones. */
static void drop_doubles(struct setup *setup)
{
	size_t kept = 0;

	for (size_t i = 0; i < setup->variable_count; i++) {
		const struct setup_variable *last = kept > 0 ? &setup->variables[kept - 1] : NULL;

		if (last != NULL && last->who == setup->variables[i].who &&
		    strcmp(last->name, setup->variables[i].name) == 0)
			continue;
		setup->variables[kept++] = setup->variables[i];
	}
	setup->variable_count = kept;
}

static enum status find_variables(struct setup *setup)
{
	size_t recorded = setup->recording != NULL ? setup->recording->count : 0;
	size_t room = setup->log != NULL ? setup->log->variable_count : 0;
	enum status status = OK;

	for (size_t i = 0; i < recorded; i++)
		room += count_lines(setup->recording->processes[i]);
	setup->variables = calloc(room + 1, sizeof(*setup->variables));
	setup->copies = calloc(recorded + 1, sizeof(*setup->copies));
	if (setup->variables == NULL || setup->copies == NULL)
		return ERR_NO_SPACE;
	for (size_t i = 0; i < recorded && status == OK; i++)
		status = add_environment(setup, (uint32_t)i, setup->recording->processes[i]);
	for (size_t i = 0; setup->log != NULL && i < setup->log->variable_count; i++) {
		const struct nccl_log_variable *line = &setup->log->variables[i];

		setup->variables[setup->variable_count++] = (struct setup_variable){
			.name = line->name,
			.value = line->value,
			.who = setup->who_of_logged[line->process],
			.line = line,
		};
	}
	qsort(setup->variables, setup->variable_count, sizeof(*setup->variables),
	      compare_variables);
	drop_doubles(setup);
	return status;
}

static enum status setup_begin(struct setup *setup)
{
	enum status status = find_whos(setup);

	if (status == OK)
		status = find_teams(setup);
	return status == OK ? find_variables(setup) : status;
}

static void setup_end(struct setup *setup)
{
	for (size_t i = 0; i < setup->copy_count; i++)
		free(setup->copies[i]);
	free(setup->copies);
	free(setup->variables);
	free(setup->whos);
	free(setup->by_team);
	free(setup->who_of_logged);
}

size_t setup_find_variable(const struct setup *setup, const char *name, size_t *count)
{
	size_t first =
		SEARCH_FIRST(i, setup->variable_count, strcmp(setup->variables[i].name, name) >= 0);

	for (*count = 0; first + *count < setup->variable_count &&
			 strcmp(setup->variables[first + *count].name, name) == 0;
	     ++*count)
		;
	return first;
}

const struct setup_variable *setup_any(const struct setup *setup, const char *name)
{
	size_t count, first = setup_find_variable(setup, name, &count);

	return count > 0 ? &setup->variables[first] : NULL;
}

const struct setup_variable *setup_of_team(const struct setup *setup, const char *name,
					   uint32_t process)
{
	uint32_t team = setup->whos[setup->who_of_logged[process]].team;
	size_t count, first = setup_find_variable(setup, name, &count);

	for (size_t i = first; i < first + count; i++)
		if (setup->whos[setup->variables[i].who].team == team)
			return &setup->variables[i];
	return NULL;
}

/* ---- values ---------------------------------------------------------------------------------- */

bool setup_number(const char *value, int64_t *number)
{
	return text_number(value, INT64_MIN, INT64_MAX, number) == OK;
}

bool setup_is_true(const char *value)
{
	int64_t number;

	if (setup_number(value, &number))
		return number != 0;
	return strcasecmp(value, "true") == 0 || strcasecmp(value, "yes") == 0 ||
	       strcasecmp(value, "on") == 0;
}

static bool setup_is_false(const char *value)
{
	int64_t number;

	if (setup_number(value, &number))
		return number == 0;
	return strcasecmp(value, "false") == 0 || strcasecmp(value, "no") == 0 ||
	       strcasecmp(value, "off") == 0;
}

/* Rules that need only one variable. One verdict per variable, for all processes that have it. */

enum when {
	WHEN_TRUE,
	WHEN_FALSE,
	WHEN_SET,
	WHEN_AT_MOST, /* a number from 1 to `number` */
	WHEN_BELOW,
	WHEN_NOT,  /* any number but this one */
	WHEN_WORD, /* this word */
};

struct variable_rule {
	const char *rule;
	const char *variable;
	enum when when;
	int64_t number;
	const char *word;
	enum verdict_severity severity;
	const char *title; /* "%s" the value, "%s" where */
	const char *advice;
};

static const struct variable_rule variable_rules[] = {
	{ "ib-disabled", "NCCL_IB_DISABLE", WHEN_TRUE, 0, NULL, VERDICT_NOTE,
	  "InfiniBand and RoCE are disabled (NCCL_IB_DISABLE=%s) %s",
	  "Unset NCCL_IB_DISABLE unless this host has no InfiniBand or RoCE" },
	{ "ib-disabled", "NCCL_NET", WHEN_WORD, 0, "Socket", VERDICT_NOTE,
	  "the socket transport is selected (NCCL_NET=%s) %s",
	  "Unset NCCL_NET unless this host has no InfiniBand or RoCE" },
	{ "p2p-disabled", "NCCL_P2P_DISABLE", WHEN_TRUE, 0, NULL, VERDICT_WARNING,
	  "GPU peer-to-peer within a node is disabled (NCCL_P2P_DISABLE=%s) %s",
	  "Unset NCCL_P2P_DISABLE: it prevents NVLink from being used" },
	{ "p2p-disabled", "NCCL_P2P_LEVEL", WHEN_WORD, 0, "LOC", VERDICT_WARNING,
	  "GPU peer-to-peer within a node is disabled (NCCL_P2P_LEVEL=%s) %s",
	  "Unset NCCL_P2P_LEVEL, or set it to NVL, PIX, PXB, PHB or SYS" },
	{ "p2p-disabled", "NCCL_P2P_LEVEL", WHEN_WORD, 0, "0", VERDICT_WARNING,
	  "GPU peer-to-peer within a node is disabled (NCCL_P2P_LEVEL=%s) %s",
	  "Unset NCCL_P2P_LEVEL, or set it to NVL, PIX, PXB, PHB or SYS" },
	{ "shm-disabled", "NCCL_SHM_DISABLE", WHEN_TRUE, 0, NULL, VERDICT_WARNING,
	  "shared memory within nodes is disabled (NCCL_SHM_DISABLE=%s) %s",
	  "Unset NCCL_SHM_DISABLE; if /dev/shm is too small, enlarge it instead" },
	{ "few-channels", "NCCL_MAX_NCHANNELS", WHEN_AT_MOST, 4, NULL, VERDICT_WARNING,
	  "NCCL is limited to %s channels (NCCL_MAX_NCHANNELS) %s",
	  "Unset NCCL_MAX_NCHANNELS: large messages need more channels" },
	{ "few-channels", "NCCL_MAX_CTAS", WHEN_AT_MOST, 4, NULL, VERDICT_WARNING,
	  "NCCL is limited to %s thread blocks (NCCL_MAX_CTAS) %s",
	  "Unset NCCL_MAX_CTAS: large messages need more" },
	{ "few-channels", "NCCL_MAX_P2P_NCHANNELS", WHEN_AT_MOST, 1, NULL, VERDICT_NOTE,
	  "Send and Recv are limited to %s channel (NCCL_MAX_P2P_NCHANNELS) %s",
	  "Unset NCCL_MAX_P2P_NCHANNELS" },
	{ "few-channels", "NCCL_MIN_NCHANNELS", WHEN_SET, 0, NULL, VERDICT_NOTE,
	  "NCCL must use at least %s channels (NCCL_MIN_NCHANNELS) %s",
	  "Unset NCCL_MIN_NCHANNELS unless you measured it here: channels take GPU time from "
	  "compute" },
	{ "buffer-size", "NCCL_BUFFSIZE", WHEN_NOT, 4194304, NULL, VERDICT_NOTE,
	  "the buffer size is %s bytes instead of 4194304 (NCCL_BUFFSIZE) %s",
	  "Unset NCCL_BUFFSIZE unless you measured it here" },
	{ "algorithm-forced", "NCCL_ALGO", WHEN_SET, 0, NULL, VERDICT_WARNING,
	  "the algorithm is forced (NCCL_ALGO=%s) %s",
	  "Unset NCCL_ALGO: the best algorithm depends on size and operation" },
	{ "algorithm-forced", "NCCL_PROTO", WHEN_SET, 0, NULL, VERDICT_WARNING,
	  "the protocol is forced (NCCL_PROTO=%s) %s",
	  "Unset NCCL_PROTO: the best protocol depends on size and operation" },
	{ "debug-left-on", "NCCL_DEBUG", WHEN_WORD, 0, "TRACE", VERDICT_WARNING,
	  "NCCL writes a full trace log (NCCL_DEBUG=%s) %s", "Set NCCL_DEBUG=WARN for long jobs" },
	{ "debug-left-on", "NCCL_DEBUG", WHEN_WORD, 0, "INFO", VERDICT_NOTE,
	  "NCCL writes a debug log (NCCL_DEBUG=%s) %s", "Set NCCL_DEBUG=WARN for long jobs" },
	{ "ib-timeout", "NCCL_IB_TIMEOUT", WHEN_BELOW, 18, NULL, VERDICT_WARNING,
	  "the network timeout is short (NCCL_IB_TIMEOUT=%s) %s",
	  "Unset NCCL_IB_TIMEOUT, or set it to 20 or more: each step doubles the timeout" },
	{ "ib-timeout", "NCCL_IB_RETRY_CNT", WHEN_BELOW, 7, NULL, VERDICT_WARNING,
	  "the network retries only %s times (NCCL_IB_RETRY_CNT) %s",
	  "Unset NCCL_IB_RETRY_CNT (default 7)" },
	{ "launch-blocking", "CUDA_LAUNCH_BLOCKING", WHEN_TRUE, 0, NULL, VERDICT_WARNING,
	  "every CUDA launch blocks until it completes (CUDA_LAUNCH_BLOCKING=%s) %s",
	  "Unset CUDA_LAUNCH_BLOCKING: it prevents all overlap" },
	{ "max-connections", "CUDA_DEVICE_MAX_CONNECTIONS", WHEN_AT_MOST, 7, NULL, VERDICT_NOTE,
	  "kernels share %s hardware queues (CUDA_DEVICE_MAX_CONNECTIONS) %s",
	  "Keep it at 1 only if the framework requires it; otherwise unset it" },
	{ "pxn-off", "NCCL_PXN_DISABLE", WHEN_TRUE, 0, NULL, VERDICT_NOTE,
	  "PXN is disabled: GPUs cannot use network cards near other GPUs (NCCL_PXN_DISABLE=%s) %s",
	  "Unset NCCL_PXN_DISABLE: it slows all-to-all across many nodes" },
	{ "nvls-off", "NCCL_NVLS_ENABLE", WHEN_FALSE, 0, NULL, VERDICT_NOTE,
	  "NVLink SHARP is disabled (NCCL_NVLS_ENABLE=%s) %s",
	  "Unset NCCL_NVLS_ENABLE if the host has third-generation or later NVSwitches" },
	{ "mnnvl-off", "NCCL_MNNVL_ENABLE", WHEN_FALSE, 0, NULL, VERDICT_NOTE,
	  "NVLink between nodes is disabled (NCCL_MNNVL_ENABLE=%s) %s",
	  "Unset NCCL_MNNVL_ENABLE on hosts with NVLink between nodes" },
	{ "torch-watchdog-off", "TORCH_NCCL_ASYNC_ERROR_HANDLING", WHEN_FALSE, 0, NULL,
	  VERDICT_WARNING,
	  "PyTorch does not abort hung jobs (TORCH_NCCL_ASYNC_ERROR_HANDLING=%s) %s",
	  "Unset TORCH_NCCL_ASYNC_ERROR_HANDLING, or watch the job in another way" },
	{ "torch-watchdog-off", "NCCL_ASYNC_ERROR_HANDLING", WHEN_FALSE, 0, NULL, VERDICT_WARNING,
	  "PyTorch does not abort hung jobs (NCCL_ASYNC_ERROR_HANDLING=%s) %s",
	  "Unset NCCL_ASYNC_ERROR_HANDLING, or watch the job in another way" },
	{ "torch-watchdog-off", "TORCH_NCCL_ENABLE_MONITORING", WHEN_FALSE, 0, NULL, VERDICT_NOTE,
	  "PyTorch does not monitor its own watchdog (TORCH_NCCL_ENABLE_MONITORING=%s) %s",
	  "Unset TORCH_NCCL_ENABLE_MONITORING" },
	{ "torch-blocking-wait", "TORCH_NCCL_BLOCKING_WAIT", WHEN_TRUE, 0, NULL, VERDICT_WARNING,
	  "PyTorch blocks the host on every collective (TORCH_NCCL_BLOCKING_WAIT=%s) %s",
	  "Unset TORCH_NCCL_BLOCKING_WAIT: it prevents all overlap" },
	{ "torch-blocking-wait", "NCCL_BLOCKING_WAIT", WHEN_TRUE, 0, NULL, VERDICT_WARNING,
	  "PyTorch blocks the host on every collective (NCCL_BLOCKING_WAIT=%s) %s",
	  "Unset NCCL_BLOCKING_WAIT: it prevents all overlap" },
};

static bool rule_fits(const struct variable_rule *rule, const char *value)
{
	int64_t number;

	switch (rule->when) {
	case WHEN_TRUE:
		return setup_is_true(value);
	case WHEN_FALSE:
		return setup_is_false(value);
	case WHEN_SET:
		return value[0] != '\0';
	case WHEN_AT_MOST:
		return setup_number(value, &number) && number > 0 && number <= rule->number;
	case WHEN_BELOW:
		return setup_number(value, &number) && number >= 0 && number < rule->number;
	case WHEN_NOT:
		return setup_number(value, &number) && number > 0 && number != rule->number;
	default:
		return strcasecmp(value, rule->word) == 0;
	}
}

/* A related count from the log: one more line of evidence. */
static void cite_channels(const struct setup *setup, struct verdict *verdict, uint32_t who)
{
	int64_t process = setup->whos[who].logged;

	if (setup->log == NULL || process < 0)
		return;
	for (int32_t i = setup->log->processes[process].last_comm; i >= 0;
	     i = setup->log->comms[i].previous) {
		const struct nccl_log_comm *comm = &setup->log->comms[i];

		if (comm->channels.line == 0)
			continue;
		setup_cite(setup, verdict, comm->channels, "%d coll channels, %d p2p channels",
			   comm->coll_channels, comm->p2p_channels);
		return;
	}
}

static void setup_group_add(const struct setup *setup, struct setup_group *group, uint32_t who)
{
	if (group->count == 0)
		*group = (struct setup_group){ .number = ++*setup->group_count,
					       .first = who,
					       .is_one_host = true };
	else if (setup->whos[who].group == group->number)
		return;
	setup->whos[who].group = group->number;
	group->count++;
	group->last = who;
	group->is_one_host &=
		setup_same_host(setup->whos[group->first].host, setup->whos[who].host);
}

static void apply_variable_rule(const struct setup *setup, const struct variable_rule *rule)
{
	size_t count, first = setup_find_variable(setup, rule->variable, &count);
	const struct setup_variable *cited[SETUP_CITED];
	struct setup_group group = { .count = 0 };
	struct verdict *verdict;
	size_t shown = 0;
	char where[400], title[512];

	for (size_t i = first; i < first + count; i++) {
		if (!rule_fits(rule, setup->variables[i].value))
			continue;
		setup_group_add(setup, &group, setup->variables[i].who);
		if (shown < SETUP_CITED)
			cited[shown++] = &setup->variables[i];
	}
	if (group.count == 0)
		return;
	verdict = setup_verdict(setup, rule->rule, rule->severity);
	setup_group_text(setup, &group, where, sizeof(where));
	/* The format is from the table above and takes these two strings. */
	text_format(title, sizeof(title), rule->title, cited[0]->value, where);
	verdict_title(verdict, "%s", title);
	for (size_t i = 0; i < shown; i++)
		setup_cite_variable(setup, verdict, cited[i]);
	if (group.count > shown)
		verdict_evidence(verdict, "and on %zu more", group.count - shown);
	if (strcmp(rule->rule, "few-channels") == 0)
		cite_channels(setup, verdict, group.first);
	verdict_advice(verdict, "%s", rule->advice);
	setup_blame(setup, verdict, &group);
}

/* A log of this many lines is not just a check at the start of a job. */
enum { LONG_LOG = 100000 };

static void find_long_log(const struct setup *setup)
{
	uint64_t lines = 0;
	const struct nccl_log_operation *most = NULL;
	struct verdict *verdict;

	for (size_t i = 0; i < setup->log->operation_count; i++) {
		lines += setup->log->operations[i].lines;
		if (most == NULL || setup->log->operations[i].lines > most->lines)
			most = &setup->log->operations[i];
	}
	if (lines < LONG_LOG || most == NULL)
		return;
	verdict = setup_verdict(setup, "debug-left-on", VERDICT_WARNING);
	verdict_title(verdict, "NCCL logs every operation: %llu lines so far",
		      (unsigned long long)lines);
	setup_cite(setup, verdict, most->first, "%s: the first of %llu lines", most->function,
		   (unsigned long long)most->lines);
	verdict_advice(verdict,
		       "Remove COLL, CALL and ALL from NCCL_DEBUG_SUBSYS, or set NCCL_DEBUG=WARN");
}

static void setup_find_variables(const struct setup *setup)
{
	for (size_t i = 0; i < ARRAY_LENGTH(variable_rules); i++)
		apply_variable_rule(setup, &variable_rules[i]);
	if (setup->log != NULL)
		find_long_log(setup);
}

/* What should be the same on all ranks and is not: variables, NCCL releases. */

/* These are meant to differ, or differences are harmless. */
static bool may_differ(const char *name)
{
	static const char *const names[] = {
		"CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES",  "NCCL_HOSTID",
		"NCCL_COMM_ID",		"NCCL_TOPO_FILE",	   "NCCL_GRAPH_FILE",
		"SLURM_CPU_BIND",	"SLURM_GPUS_ON_NODE",	   "SLURM_NTASKS_PER_NODE",
		"SLURM_STEP_ID",	"CUDA_MPS_PIPE_DIRECTORY",
	};
	static const char *const prefixes[] = { "NCCL_DEBUG", "RINGSIDE_", "NCCL_INSPECTOR_" };
	size_t length = strlen(name);

	for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	for (size_t i = 0; i < ARRAY_LENGTH(prefixes); i++)
		if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	return (length > 5 && strcmp(name + length - 5, "_PORT") == 0) ||
	       (length > 10 && strcmp(name + length - 10, "_DUMP_FILE") == 0);
}

/* Each rank may have its own value, by its place in the node: it is a mistake only if ranks of different
 * nodes in the same place disagree, which cannot be detected here. Two values among many ranks are a mistake. */
enum { VALUES_MOST = 4 };

struct value {
	const char *text; /* NULL: not set */
	struct setup_group group;
	const struct setup_variable *first;
};

struct difference {
	struct value values[VALUES_MOST];
	size_t count;
	bool is_many;
};

static void add_value(const struct setup *setup, struct difference *difference, const char *text,
		      uint32_t who, const struct setup_variable *variable)
{
	struct value *value = NULL;

	for (size_t i = 0; i < difference->count && value == NULL; i++) {
		const char *known = difference->values[i].text;

		if (known == text || (known != NULL && text != NULL && strcmp(known, text) == 0))
			value = &difference->values[i];
	}
	if (value == NULL) {
		if (difference->count == VALUES_MOST) {
			difference->is_many = true;
			return;
		}
		value = &difference->values[difference->count++];
		*value = (struct value){ .text = text, .first = variable };
	}
	setup_group_add(setup, &value->group, who);
}

/* Is it known to be unset there? A log shows what was read, and not everything is read before an init ends;
 * a recording has everything, unless it was dropped for lack of room. */
static bool is_surely_unset(const struct setup_who *who, const char *name)
{
	if (who->recorded >= 0)
		return who->has_environment;
	return who->has_init && strncmp(name, "NCCL_", 5) == 0;
}

/* A team, and the value of the current variable on each of its processes. */
struct team {
	const uint32_t *whos;
	size_t count;
	const char *name;
	const struct setup_variable *const *has; /* by process; NULL none */
};

static void compare_team(const struct setup *setup, const struct team *team,
			 struct difference *difference)
{
	*difference = (struct difference){ .count = 0 };
	for (size_t i = 0; i < team->count; i++) {
		uint32_t who = team->whos[i];

		if (team->has[who] != NULL)
			add_value(setup, difference, team->has[who]->value, who, team->has[who]);
		else if (is_surely_unset(&setup->whos[who], team->name))
			add_value(setup, difference, NULL, who, NULL);
	}
}

static const struct value *largest_value(const struct difference *difference)
{
	const struct value *most = &difference->values[0];

	for (size_t i = 1; i < difference->count; i++)
		if (difference->values[i].group.count > most->group.count)
			most = &difference->values[i];
	return most;
}

static void cite_value(const struct setup *setup, struct verdict *verdict, const char *name,
		       const struct value *value)
{
	char who[320];

	if (value->first != NULL)
		setup_cite_variable(setup, verdict, value->first);
	else
		verdict_evidence(verdict, "%s: %s is not set",
				 setup_who_text(setup, value->group.first, who, sizeof(who)), name);
}

static void tell_difference(const struct setup *setup, const struct team *team,
			    const struct difference *difference)
{
	const char *name = team->name;
	const struct value *most = largest_value(difference);
	struct setup_group others = { .count = 0 };
	struct verdict *verdict = setup_verdict(setup, "environment-differs", VERDICT_WARNING);
	char where[400];
	bool is_guess = false;

	for (size_t i = 0; i < difference->count; i++) {
		const struct value *value = &difference->values[i];

		is_guess |= value->text == NULL && setup->whos[value->group.first].recorded < 0;
		if (value == most)
			continue;
		if (others.count == 0)
			others = value->group;
		else {
			others.is_one_host &= value->group.is_one_host &&
					      setup_same_host(setup->whos[others.first].host,
							      setup->whos[value->group.first].host);
			others.count += value->group.count;
		}
	}
	verdict_title(verdict, "%s differs %s", name,
		      setup_group_text(setup, &others, where, sizeof(where)));
	for (size_t i = 0; i < difference->count; i++)
		if (&difference->values[i] != most) {
			cite_value(setup, verdict, name, &difference->values[i]);
			verdict_evidence(verdict, "this value on %zu of %zu ranks",
					 difference->values[i].group.count, team->count);
		}
	cite_value(setup, verdict, name, most);
	verdict_evidence(verdict, "this value on %zu of %zu ranks", most->group.count, team->count);
	if (is_guess) {
		verdict->confidence = 0.7;
		verdict_missing(verdict, "a log shows a variable only if NCCL read it");
	}
	verdict_advice(verdict, "Set %s to the same value on all ranks, or on none", name);
	setup_blame(setup, verdict, &others);
}

static void compare_place(const struct setup *setup, const struct setup_who *first,
			  const char *name, const struct setup_variable *const *has)
{
	struct team team = { setup->by_team + first->team_first, first->team_count, name, has };
	struct difference difference;

	if (team.count < 2)
		return;
	compare_team(setup, &team, &difference);
	/* As many values as ranks: intended. */
	if (difference.count > 1 && !difference.is_many &&
	    (difference.count < team.count || team.count == 2))
		tell_difference(setup, &team, &difference);
}

/* The variables [at, at + count) have one name. */
static void compare_variable(const struct setup *setup, size_t at, size_t count,
			     const struct setup_variable **has)
{
	for (size_t i = at; i < at + count; i++)
		has[setup->variables[i].who] = &setup->variables[i];
	for (size_t i = at; i < at + count; i++) {
		struct setup_who *first = &setup->whos[setup->whos[setup->variables[i].who].team];

		if (first->team_compared != at + 1)
			compare_place(setup, first, setup->variables[at].name, has);
		first->team_compared = at + 1;
	}
	for (size_t i = at; i < at + count; i++)
		has[setup->variables[i].who] = NULL;
}

static enum status setup_find_differences(const struct setup *setup)
{
	const struct setup_variable **has = calloc(setup->who_count + 1, sizeof(*has));
	size_t count;

	if (has == NULL)
		return ERR_NO_SPACE;
	for (size_t at = 0; at < setup->variable_count; at += count) {
		const char *name = setup->variables[at].name;

		setup_find_variable(setup, name, &count);
		if (!may_differ(name))
			compare_variable(setup, at, count, has);
	}
	free(has);
	return OK;
}

/* ---- releases -------------------------------------------------------------------------------- */

/* Strings are stored once: the same version is the same pointer. Or the build: its git revision. */
static const char *version_of(const struct setup *setup, uint32_t who, bool is_build)
{
	int64_t process = setup->whos[who].logged;

	if (process < 0)
		return "";
	return is_build ? setup->log->processes[process].git
			: setup->log->processes[process].version;
}

/* The value most of a team have. There are few releases among many ranks: the first 64 have it. */
static uint32_t most_common(const struct setup *setup, const uint32_t *whos, size_t count,
			    bool is_build)
{
	uint32_t most = whos[0];
	size_t most_count = 0;

	for (size_t i = 0; i < count && i < 64; i++) {
		const char *version = version_of(setup, whos[i], is_build);
		size_t same = 0;

		for (size_t j = 0; version[0] != '\0' && j < count; j++)
			same += version_of(setup, whos[j], is_build) == version;
		if (same > most_count) {
			most = whos[i];
			most_count = same;
		}
	}
	return most;
}

static void tell_versions(const struct setup *setup, uint32_t most, const struct setup_group *group,
			  bool is_build)
{
	struct verdict *verdict = setup_verdict(setup, "version-mismatch",
						is_build ? VERDICT_WARNING : VERDICT_ERROR);
	const struct nccl_log_process *one = &setup->log->processes[setup->whos[most].logged];
	const struct nccl_log_process *other =
		&setup->log->processes[setup->whos[group->first].logged];
	char where[400];

	setup_group_text(setup, group, where, sizeof(where));
	if (is_build) {
		verdict_title(verdict, "a different build of NCCL %s runs %s", other->version,
			      where);
		setup_cite(setup, verdict, other->git_place, "NCCL git version %s", other->git);
		setup_cite(setup, verdict, one->git_place, "NCCL git version %s", one->git);
		verdict_advice(verdict, SETUP_SAME_BUILD
			       ": builds of one release can differ in their protocol");
		verdict_advice(verdict, "$ grep libnccl /proc/PID/maps");
	} else {
		verdict_title(verdict, "NCCL is %s %s and %s elsewhere", other->version, where,
			      one->version);
		setup_cite(setup, verdict, other->version_place, "NCCL version %s+cuda%s",
			   other->version, other->cuda_version);
		setup_cite(setup, verdict, one->version_place, "NCCL version %s+cuda%s",
			   one->version, one->cuda_version);
		verdict_advice(verdict, SETUP_SAME_RELEASE);
		verdict_advice(verdict,
			       "$ python -c 'import torch; print(torch.cuda.nccl.version())'");
	}
	setup_blame(setup, verdict, group);
}

static bool find_logged_versions(const struct setup *setup, const uint32_t *whos, size_t count,
				 bool is_build)
{
	uint32_t most = most_common(setup, whos, count, is_build);
	struct setup_group group = { .count = 0 };

	for (size_t i = 0; i < count; i++) {
		const char *version = version_of(setup, whos[i], is_build);

		if (version[0] != '\0' && version != version_of(setup, most, is_build))
			setup_group_add(setup, &group, whos[i]);
	}
	if (group.count > 0)
		tell_versions(setup, most, &group, is_build);
	return group.count > 0;
}

/* Without a log there is the version of NCCL's profiler interface: it cannot prove that two releases are
 * the same, but that they differ. */
static void find_recorded_versions(const struct setup *setup, const uint32_t *whos, size_t count)
{
	const struct recording_process *first = NULL;

	for (size_t i = 0; i < count; i++) {
		int64_t number = setup->whos[whos[i]].recorded;
		const struct recording_process *process =
			number >= 0 ? setup->recording->processes[number] : NULL;
		struct setup_group group = { .count = 0 };
		struct verdict *verdict;
		char where[400];

		if (process == NULL || process->interface == 0 || process->foreign != NULL)
			continue;
		first = first != NULL ? first : process;
		if (process->interface == first->interface)
			continue;
		setup_group_add(setup, &group, whos[i]);
		verdict = setup_verdict(setup, "version-mismatch", VERDICT_ERROR);
		verdict_title(verdict, "a different NCCL release runs %s",
			      setup_group_text(setup, &group, where, sizeof(where)));
		verdict_evidence(
			verdict, "NCCL uses profiler interface v%u there and v%u on rank %lld (%s)",
			process->interface, first->interface, (long long)first->rank, first->host);
		verdict_advice(verdict, SETUP_SAME_RELEASE);
		setup_blame(setup, verdict, &group);
		return;
	}
}

static void setup_find_versions(const struct setup *setup)
{
	for (uint32_t i = 0; i < setup->who_count; i++) {
		const uint32_t *whos = setup->by_team + setup->whos[i].team_first;
		size_t count = setup->whos[i].team_count;

		if (count > 1 && !find_logged_versions(setup, whos, count, false) &&
		    !find_logged_versions(setup, whos, count, true))
			find_recorded_versions(setup, whos, count);
	}
}

/* The rules by name, and how a verdict is made: the line it is based on, the processes it is about, and its
 * page. */

static const struct setup_rule rules[] = {
	{ "init-incomplete", "a communicator was never completed: missing ranks" },
	{ "version-mismatch", "ranks run different NCCL releases" },
	{ "interface-not-found", "no network interface matches the setting" },
	{ "peer-lost", "a connection was closed by the peer or cannot be established" },
	{ "shm-full", "not enough shared memory" },
	{ "memlock-limit", "memory cannot be registered with the network card" },
	{ "ib-error", "the InfiniBand or RoCE network reported an error" },
	{ "ib-stall", "the network card does not complete sends, or completes them late" },
	{ "gpu-error", "CUDA reported an error" },
	{ "duplicate-gpu", "two ranks use the same GPU" },
	{ "size-mismatch", "ranks sent and received different sizes" },
	{ "torch-timeout", "PyTorch's watchdog timed out on a collective" },
	{ "nccl-error", "PyTorch got an error from NCCL" },
	{ "nccl-warning", "other NCCL warnings" },
	{ "nccl-attention", "other messages of NCCL's level ATTN" },
	{ "diagnostics", "NCCL's diagnostics report a problem" },
	{ "nvlink-degraded", "NVLink runs with fewer links or less bandwidth" },
	{ "net-socket-fallback", "traffic uses sockets although InfiniBand is present" },
	{ "net-socket", "inter-node traffic uses sockets" },
	{ "interface-slow", "data goes over a management or container interface" },
	{ "hcas-unused", "not all network cards found are used" },
	{ "few-hcas", "many GPUs share few network cards" },
	{ "gdr-off", "GPUDirect RDMA is not used" },
	{ "p2p-disabled", "GPU peer-to-peer within a node is disabled" },
	{ "p2p-not-used", "GPUs of a node communicate through shared memory" },
	{ "shm-disabled", "shared memory within a node is disabled" },
	{ "few-channels", "the number of channels is limited" },
	{ "buffer-size", "NCCL's buffer size was changed" },
	{ "algorithm-forced", "the algorithm or protocol is forced" },
	{ "debug-left-on", "NCCL writes a debug log while the job runs" },
	{ "environment-differs", "ranks run with different settings" },
	{ "virtual-topology", "the PCI topology is that of a virtual machine" },
	{ "ib-disabled", "InfiniBand is disabled" },
	{ "ib-timeout", "the network timeout is too short" },
	{ "launch-blocking", "every CUDA launch blocks until it completes" },
	{ "max-connections", "kernels share fewer hardware queues" },
	{ "profiler-plugin", "NCCL does not load Ringside" },
	{ "plugin-failed", "a requested plugin is not used" },
	{ "init-slow", "communicator creation is slow" },
	{ "pxn-off", "GPUs cannot use network cards near other GPUs" },
	{ "nvls-off", "NVLink SHARP is disabled" },
	{ "nvls-failed", "NVLink SHARP is present but cannot be used" },
	{ "mnnvl-off", "NVLink between nodes is disabled" },
	{ "fabric-state", "the NVLink fabric is not ready" },
	{ "torch-watchdog-off", "PyTorch does not abort hung jobs" },
	{ "torch-blocking-wait", "PyTorch blocks the host on every collective" },
	{ "value-ignored", "NCCL did not accept a value as given" },
};

const struct setup_rule *setup_rule(size_t index)
{
	return index < ARRAY_LENGTH(rules) ? &rules[index] : NULL;
}

struct verdict *setup_verdict(const struct setup *setup, const char *rule,
			      enum verdict_severity severity)
{
	struct verdict *verdict = verdicts_add(setup->verdicts, VERDICT_SETUP, severity);

	text_copy(verdict->rule, sizeof(verdict->rule), rule);
	text_format(verdict->page, sizeof(verdict->page), "setup/%s.md", rule);
	return verdict;
}

void setup_cite(const struct setup *setup, struct verdict *verdict, struct nccl_log_place place,
		const char *format, ...)
{
	char text[700];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	verdict_evidence(verdict, "%s:%llu: %s", setup->log->files[place.file].name,
			 (unsigned long long)place.line, text);
}

void setup_cite_variable(const struct setup *setup, struct verdict *verdict,
			 const struct setup_variable *variable)
{
	char who[320];

	if (variable->line != NULL)
		setup_cite(setup, verdict, variable->line->place, "%s set by environment to %s",
			   variable->name, variable->value);
	else
		verdict_evidence(verdict, "env of %s: %s=%s",
				 setup_who_text(setup, variable->who, who, sizeof(who)),
				 variable->name, variable->value);
}

void setup_cite_any(const struct setup *setup, struct verdict *verdict, const char *name)
{
	const struct setup_variable *variable = setup_any(setup, name);

	if (variable != NULL)
		setup_cite_variable(setup, verdict, variable);
}

void setup_group_add_process(const struct setup *setup, struct setup_group *group, uint32_t process)
{
	setup_group_add(setup, group, setup->who_of_logged[process]);
}

void setup_blame(const struct setup *setup, struct verdict *verdict,
		 const struct setup_group *group)
{
	const struct setup_who *who = &setup->whos[group->first];

	if (group->count == 0)
		return;
	text_copy(verdict->job, sizeof(verdict->job), who->job);
	if (group->is_one_host)
		text_copy(verdict->host, sizeof(verdict->host), who->host);
	if (group->count > 1)
		return;
	verdict->rank = who->rank;
	verdict->pid = who->pid;
	if (who->rank >= 0)
		text_format(verdict->rank_label, sizeof(verdict->rank_label), "%lld",
			    (long long)who->rank);
}

/* Several jobs: how many processes belong with the group's first one; 0: there is only one job, or the group
 * may have processes of others. */
static size_t team_size(const struct setup *setup, const struct setup_group *group)
{
	uint32_t team = setup->whos[group->first].team;
	size_t count = setup->whos[team].team_count;

	return group->count <= count && count < setup->who_count &&
			       setup->whos[group->last].team == team
		       ? count
		       : 0;
}

const char *setup_group_text(const struct setup *setup, const struct setup_group *group, char *to,
			     size_t size)
{
	size_t team = group->count > 1 ? team_size(setup, group) : 0;
	char who[320];

	if (group->count == 1)
		text_format(to, size, "on %s",
			    setup_who_text(setup, group->first, who, sizeof(who)));
	else if (group->count == setup->who_count)
		text_copy(to, size, "on all visible ranks");
	else if (team > 0)
		text_format(to, size, "on %zu of %zu ranks of one of several jobs", group->count,
			    team);
	else
		text_format(to, size, "on %zu of %zu ranks", group->count, setup->who_count);
	return to;
}

enum status setup_find(struct verdicts *verdicts, const struct nccl_log *log,
		       const struct recording *recording)
{
	uint64_t group_count = 0;
	struct setup setup = { .verdicts = verdicts,
			       .log = log,
			       .recording = recording,
			       .group_count = &group_count };
	enum status status = setup_begin(&setup);

	if (status == OK) {
		setup_find_variables(&setup);
		setup_find_versions(&setup);
		status = setup_find_differences(&setup);
	}
	if (status == OK && log != NULL) {
		setup_find_warnings(&setup);
		setup_find_diagnoses(&setup);
		setup_find_reports(&setup);
		setup_find_plugins(&setup);
		setup_find_node(&setup);
		status = setup_find_network(&setup);
		if (status == OK)
			status = setup_find_queues(&setup);
		if (status == OK)
			status = setup_find_init(&setup);
	}
	setup_end(&setup);
	return status;
}
