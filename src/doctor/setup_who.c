/* Processes and their variables, from logs and from recordings, brought together. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/hash.h"
#include "common/text.h"
#include "doctor/setup_parts.h"

/* "node1" and "node1.cluster" are the same machine: NCCL cuts its name at the first dot. */
bool setup_same_host(const char *one, const char *other)
{
	size_t length = strcspn(one, ".");

	return length == strcspn(other, ".") && strncmp(one, other, length) == 0;
}

static uint64_t host_key(const char *host, int64_t pid)
{
	return hash_word(hash_bytes(host, strcspn(host, ".")), (uint64_t)pid);
}

/* ---- who ------------------------------------------------------------------------------------- */

/* The largest communicator tells the global rank; a launcher's prefix tells it as well. */
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

	return a->key < b->key ? -1 : a->key > b->key;
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

/* Whose settings are compared: processes that share a communicator. Others may be of another job, or of a run
 * before. NCCL's log and its profiler interface know the same number for it. */
struct membership {
	uint64_t comm;
	uint32_t who;
};

static int compare_memberships(const void *one, const void *other)
{
	const struct membership *a = one, *b = other;

	if (a->comm != b->comm)
		return a->comm < b->comm ? -1 : 1;
	return a->who < b->who ? -1 : a->who > b->who;
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

static uint32_t team_of(struct setup *setup, uint32_t who)
{
	while (setup->whos[who].team != who) {
		setup->whos[who].team = setup->whos[setup->whos[who].team].team;
		who = setup->whos[who].team;
	}
	return who;
}

static int compare_teams(const void *one, const void *other, void *context)
{
	const struct setup_who *whos = context;
	uint32_t a = *(const uint32_t *)one, b = *(const uint32_t *)other;

	if (whos[a].team != whos[b].team)
		return whos[a].team < whos[b].team ? -1 : 1;
	return a < b ? -1 : a > b;
}

static enum status find_teams(struct setup *setup)
{
	size_t room = setup->log != NULL ? setup->log->comm_count : 0, count;
	struct membership *list;

	for (size_t i = 0; setup->recording != NULL && i < setup->recording->count; i++)
		room += setup->recording->processes[i]->comm_count;
	list = calloc(room + 1, sizeof(*list));
	setup->by_team = calloc(setup->who_count + 1, sizeof(*setup->by_team));
	if (list == NULL || setup->by_team == NULL) {
		free(list);
		return ERR_NO_SPACE;
	}
	for (uint32_t i = 0; i < setup->who_count; i++)
		setup->whos[i].team = setup->by_team[i] = i;
	count = list_memberships(setup, list);
	qsort(list, count, sizeof(*list), compare_memberships);
	for (size_t i = 1; i < count; i++)
		if (list[i].comm == list[i - 1].comm && list[i].comm != 0)
			setup->whos[team_of(setup, list[i].who)].team =
				team_of(setup, list[i - 1].who);
	free(list);
	for (uint32_t i = 0; i < setup->who_count; i++)
		setup->whos[i].team = team_of(setup, i);
	qsort_r(setup->by_team, setup->who_count, sizeof(*setup->by_team), compare_teams,
		setup->whos);
	return OK;
}

const char *setup_who_text(const struct setup *setup, uint32_t who, char *to, size_t size)
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

uint32_t setup_who_of_process(const struct setup *setup, uint32_t process)
{
	return setup->who_of_logged[process];
}

/* ---- variables ------------------------------------------------------------------------------- */

static size_t count_lines(const struct recording_process *process)
{
	size_t lines = 0;

	for (size_t i = 0; i < process->info_bytes; i++)
		lines += process->info[i] == '\n';
	return lines + 1;
}

/* Lines "env.NAME=VALUE", in a copy that is cut into texts. */
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
		for (char *byte = equals + 1; *byte != '\0'; byte++)
			if ((unsigned char)*byte < 0x20 || *byte == 0x7f)
				*byte = '?';
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

/* One per process and name: what was recorded counts before what was logged. */
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

enum status setup_begin(struct setup *setup)
{
	enum status status = find_whos(setup);

	if (status == OK)
		status = find_teams(setup);
	return status == OK ? find_variables(setup) : status;
}

void setup_end(struct setup *setup)
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
	size_t low = 0, high = setup->variable_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(setup->variables[middle].name, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	for (*count = 0; low + *count < setup->variable_count &&
			 strcmp(setup->variables[low + *count].name, name) == 0;
	     ++*count)
		;
	return low;
}

const struct setup_variable *setup_any(const struct setup *setup, const char *name)
{
	size_t count, first = setup_find_variable(setup, name, &count);

	return count > 0 ? &setup->variables[first] : NULL;
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

bool setup_is_false(const char *value)
{
	int64_t number;

	if (setup_number(value, &number))
		return number == 0;
	return strcasecmp(value, "false") == 0 || strcasecmp(value, "no") == 0 ||
	       strcasecmp(value, "off") == 0;
}
