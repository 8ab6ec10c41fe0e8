/* Where the agents are, and what they say: sources, polls, summaries. */
#include "hub/hub.h"

#include <arpa/nameser.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <math.h>
#include <netdb.h>
#include <resolv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/attributes.h"
#include "common/file.h"
#include "common/hash.h"
#include "common/owned_name.h"
#include "common/text.h"
#include "doctor/live.h"
#include "doctor/verdict.h"
#include "import/json_scan.h"
#include "serve/serve.h"

#define DISCOVERY_NS UINT64_C(20000000000) /* for sinfo, a name, a URL */
#define BACKOFF_NS UINT64_C(30000000000)   /* between polls of an agent that does not answer */

enum {
	FETCH_WORDS = 40,	/* of a command line */
	FAILURES_PATIENT = 3,	/* asked at the usual interval */
	AGENTS_PER_BATCH = 64,	/* fewer are asked at once, by one child */
	CONNECT_MS_MOST = 2000, /* agents that are down must not hold up a batch */
	LIST_BYTES = 4 << 20,
	PROMETHEUS_BYTES = 64 << 20,
	PROMETHEUS_DOWN = 3, /* failures in a row: then agents are polled */
};

/* ---- summaries ------------------------------------------------------------------------------- */

/* Names of an array become bits; unknown ones are left out: a newer agent may have more. */
static uint64_t read_bits(struct json_scan *scan, const char *(*name_of)(unsigned int),
			  unsigned int count)
{
	uint64_t bits = 0;

	if (!json_scan_enter(scan, JSON_SCAN_ARRAY))
		return 0;
	while (json_scan_next_string(scan))
		for (unsigned int i = 0; i < count; i++)
			if (json_scan_is(scan, name_of(i)))
				bits |= UINT64_C(1) << i;
	return bits;
}

static const char *class_name(unsigned int class)
{
	return verdict_class_name((enum verdict_class) class);
}

static const char *notice_name(unsigned int kind)
{
	return live_notice_name((enum live_notice_kind)kind);
}

static uint32_t read_u32(struct json_scan *scan)
{
	uint64_t value = 0;

	json_scan_read_unsigned(scan, &value);
	return value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
}

static double read_share(struct json_scan *scan)
{
	double value = NAN;

	json_scan_read_double(scan, &value);
	return value < 0 ? 0 : value > 1 ? 1 : value;
}

/* A value above `most` is rejected. */
static int64_t read_at_most(struct json_scan *scan, uint64_t most, int64_t otherwise)
{
	uint64_t value = UINT64_MAX;

	json_scan_read_unsigned(scan, &value);
	return value <= most ? (int64_t)value : otherwise;
}

static void read_row(struct json_scan *scan, struct hub_row *row)
{
	size_t length;

	*row = (struct hub_row){ .owner = -1, .wait_share = NAN };
	while (json_scan_next(scan) == JSON_SCAN_KEY) {
		if (json_scan_is(scan, "name"))
			json_scan_read_text(scan, row->job, sizeof(row->job));
		else if (json_scan_is(scan, "world_size"))
			row->world_size = read_at_most(scan, INT32_MAX, 0);
		else if (json_scan_is(scan, "ranks"))
			row->ranks = read_u32(scan);
		else if (json_scan_is(scan, "processes"))
			row->processes = read_u32(scan);
		else if (json_scan_is(scan, "processes_alive"))
			row->alive = read_u32(scan);
		else if (json_scan_is(scan, "operations"))
			json_scan_read_unsigned(scan, &row->operations);
		else if (json_scan_is(scan, "stuck_ns"))
			json_scan_read_unsigned(scan, &row->stuck_ns);
		else if (json_scan_is(scan, "wait_share"))
			row->wait_share = read_share(scan);
		else if (json_scan_is(scan, "wait_ns"))
			json_scan_read_unsigned(scan, &row->wait_ns);
		else if (json_scan_is(scan, "verdicts"))
			row->verdicts = read_bits(scan, class_name, VERDICT_CLASSES);
		else if (json_scan_is(scan, "notices"))
			row->notices = read_bits(scan, notice_name, LIVE_NOTICE_KINDS);
		else if (json_scan_is(scan, "hang_after_ns"))
			json_scan_read_unsigned(scan, &row->hang_after_ns);
		else if (json_scan_is(scan, "owner"))
			row->owner = read_at_most(scan, UINT32_MAX - 1, -1);
		else
			json_scan_skip(scan);
	}
	row->shows_owner = owned_name_uid(row->job, &length) == row->owner && row->owner >= 0;
	owned_name_strip(row->job, row->owner);
	/* No node has more: whatever an agent says, totals stay sensible. */
	row->ranks = row->ranks > 4096 ? 4096 : row->ranks;
	row->processes = row->processes > 4096 ? 4096 : row->processes;
	row->alive = row->alive > row->processes ? row->processes : row->alive;
	if (row->hang_after_ns > RECORDING_HANG_AFTER_MOST_S * UINT64_C(1000000000))
		row->hang_after_ns = 0;
}

static enum status read_rows(struct json_scan *scan, struct hub_summary *summary)
{
	struct hub_row row;

	if (!json_scan_enter(scan, JSON_SCAN_ARRAY))
		return OK;
	while (json_scan_next_object(scan)) {
		read_row(scan, &row);
		if (summary->count == HUB_SUMMARY_JOBS) {
			summary->left_out++;
			continue;
		}
		if (!list_grow(&summary->rows, summary->count, sizeof(*summary->rows)))
			return ERR_NO_SPACE;
		summary->rows[summary->count++] = row;
	}
	return OK;
}

void hub_summary_release(struct hub_summary *summary)
{
	free(summary->rows);
	*summary = (struct hub_summary){ .rows = NULL };
}

enum status hub_summary_read(struct hub_summary *summary, const char *bytes, size_t length,
			     const char **why)
{
	char format[32] = "";
	uint64_t version = 0, left_out = 0;
	enum status status = OK;
	struct json_scan scan;

	*summary = (struct hub_summary){ .rows = NULL };
	*why = "not a summary of an agent";
	json_scan_init(&scan, bytes, length);
	if (!json_scan_enter(&scan, JSON_SCAN_OBJECT))
		return ERR_FORMAT;
	while (status == OK && json_scan_next(&scan) == JSON_SCAN_KEY) {
		if (json_scan_is(&scan, "format"))
			json_scan_read_text(&scan, format, sizeof(format));
		else if (json_scan_is(&scan, "version"))
			json_scan_read_unsigned(&scan, &version);
		else if (json_scan_is(&scan, "ringside"))
			json_scan_read_text(&scan, summary->version, sizeof(summary->version));
		else if (json_scan_is(&scan, "host"))
			json_scan_read_text(&scan, summary->host, sizeof(summary->host));
		else if (json_scan_is(&scan, "jobs"))
			status = read_rows(&scan, summary);
		else if (json_scan_is(&scan, "jobs_left_out"))
			json_scan_read_unsigned(&scan, &left_out);
		else
			json_scan_skip(&scan);
	}
	if (status == OK &&
	    (json_scan_next(&scan) != JSON_SCAN_END || strcmp(format, "ringside-summary") != 0))
		status = ERR_FORMAT;
	else if (status == OK && version != 1) {
		*why = "its version of the summary is not known";
		status = ERR_FORMAT;
	}
	summary->left_out += left_out;
	if (status != OK)
		hub_summary_release(summary);
	return status;
}

/* ---- sources --------------------------------------------------------------------------------- */

const char *hub_source_name(enum hub_source_kind kind)
{
	static const char *const names[HUB_SOURCE_KINDS] = { "agents", "file-sd", "http-sd",
							     "slurm", "dns" };

	return names[kind];
}

/* The scheme may come after the targets: it is looked for first. */
static void find_scheme(struct json_scan scan, char *scheme, size_t size)
{
	while (json_scan_next(&scan) == JSON_SCAN_KEY)
		if (json_scan_is(&scan, "labels"))
			json_scan_read_member(&scan, "__scheme__", scheme, size);
		else
			json_scan_skip(&scan);
}

static enum status add_targets(struct fetch_targets *targets, struct json_scan *scan,
			       const char *scheme, char *why, size_t why_size)
{
	enum status status = OK;

	if (!json_scan_enter(scan, JSON_SCAN_ARRAY))
		return OK;
	while (status == OK && json_scan_next_string(scan)) {
		char target[FETCH_TARGET_TEXT], whole[FETCH_TARGET_TEXT + 8];

		if (!json_scan_text(scan, target, sizeof(target)))
			continue;
		text_format(whole, sizeof(whole), "%s%s",
			    strcmp(scheme, "https") == 0 ? "https://" : "", target);
		status = fetch_targets_add(targets, whole, HUB_AGENT_PORT, why, why_size);
	}
	return status;
}

enum status hub_agents_read_sd(struct fetch_targets *targets, const char *bytes, size_t length,
			       char *why, size_t why_size)
{
	enum status status = OK;
	struct json_scan scan;

	text_copy(why, why_size, "");
	json_scan_init(&scan, bytes, length);
	if (json_scan_enter(&scan, JSON_SCAN_ARRAY)) {
		while (status == OK && json_scan_next_object(&scan)) {
			char scheme[8] = "";

			find_scheme(scan, scheme, sizeof(scheme));
			while (status == OK && json_scan_next(&scan) == JSON_SCAN_KEY)
				if (json_scan_is(&scan, "targets"))
					status = add_targets(targets, &scan, scheme, why, why_size);
				else
					json_scan_skip(&scan);
		}
		if (status == OK && json_scan_next(&scan) == JSON_SCAN_END)
			return OK;
	}
	if (why[0] == '\0')
		text_copy(why, why_size,
			  "not a JSON list of targets as Prometheus' service discovery has it");
	return status == OK ? ERR_FORMAT : status;
}

/* A whole file, terminated; NULL: `why` says why. The caller frees it. */
static char *read_whole(const char *path, size_t *length, char *why, size_t why_size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char *text = fd != -1 ? file_read_whole(fd, LIST_BYTES - 1, length) : NULL;

	if (text == NULL)
		text_format(why, why_size, "%s: %s", path,
			    errno == EFBIG ? "too long" : strerror(errno));
	if (fd != -1)
		close(fd);
	return text;
}

static enum status read_list(struct fetch_targets *targets, const char *value, char *why,
			     size_t why_size)
{
	enum status status = ERR_SYSTEM;
	size_t length;
	char *text;

	if (value[0] != '@')
		return fetch_targets_add(targets, value, HUB_AGENT_PORT, why, why_size);
	text = read_whole(value + 1, &length, why, why_size);
	if (text)
		status = fetch_targets_add(targets, text, HUB_AGENT_PORT, why, why_size);
	free(text);
	return status;
}

static enum status read_file_sd(struct fetch_targets *targets, const char *pattern, char *why,
				size_t why_size)
{
	char problem[CHILD_WHY];
	enum status status = OK;
	glob_t found;

	if (glob(pattern, GLOB_NOCHECK, NULL, &found) != 0) {
		text_format(why, why_size, "%s: cannot be read", pattern);
		return ERR_SYSTEM;
	}
	for (size_t i = 0; i < found.gl_pathc && status == OK; i++) {
		size_t length;
		char *text = read_whole(found.gl_pathv[i], &length, why, why_size);

		status = text ? hub_agents_read_sd(targets, text, length, problem, sizeof(problem))
			      : ERR_SYSTEM;
		if (text && status != OK)
			text_format(why, why_size, "%s: %.150s", found.gl_pathv[i], problem);
		free(text);
	}
	globfree(&found);
	return status;
}

/* ---- names, in a child of its own: a lookup may take long ------------------------------------ */

static void print_host(const char *host, int port)
{
	dprintf(STDOUT_FILENO, strchr(host, ':') ? "[%s]:%d\n" : "%s:%d\n", host, port);
}

static int look_up_srv(const char *name)
{
	unsigned char answer[NS_MAXMSG > 65535 ? 65535 : NS_MAXMSG];
	int length = res_query(name, ns_c_in, ns_t_srv, answer, sizeof(answer));
	ns_msg message;

	if (length <= 0 || ns_initparse(answer, length, &message) != 0) {
		dprintf(STDERR_FILENO, "%s: no SRV record found\n", name);
		return 1;
	}
	for (int i = 0; i < ns_msg_count(message, ns_s_an); i++) {
		char target[NS_MAXDNAME];
		ns_rr record;

		if (ns_parserr(&message, ns_s_an, i, &record) != 0 ||
		    ns_rr_type(record) != ns_t_srv || ns_rr_rdlen(record) < 7 ||
		    dn_expand(ns_msg_base(message), ns_msg_end(message), ns_rr_rdata(record) + 6,
			      target, sizeof(target)) < 0)
			continue;
		print_host(target, ns_get16(ns_rr_rdata(record) + 4));
	}
	return 0;
}

static int look_up(const char *value, void *context)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct addrinfo *found = NULL;
	char name[256], host[128];
	const char *colon = strchr(value, ':');
	int64_t port = HUB_AGENT_PORT;
	bool has_v4 = false;
	int code;

	(void)context;
	if (value[0] == '_')
		return look_up_srv(value);
	text_format(name, sizeof(name), "%.*s", (int)strcspn(value, ":"), value);
	if (colon && text_number(colon + 1, 1, 65535, &port) != OK) {
		dprintf(STDERR_FILENO, "%s: no port between 1 and 65535\n", value);
		return 1;
	}
	code = getaddrinfo(name, NULL, &hints, &found);
	if (code != 0) {
		dprintf(STDERR_FILENO, "%s: %s\n", name, gai_strerror(code));
		return 1;
	}
	/* A host has addresses of both families: one of them, or it would be asked twice. */
	for (const struct addrinfo *at = found; at; at = at->ai_next)
		has_v4 |= at->ai_family == AF_INET;
	for (const struct addrinfo *at = found; at; at = at->ai_next)
		if (at->ai_family == (has_v4 ? AF_INET : AF_INET6) &&
		    getnameinfo(at->ai_addr, at->ai_addrlen, host, sizeof(host), NULL, 0,
				NI_NUMERICHOST) == 0 &&
		    strchr(host, '%') == NULL)
			print_host(host, (int)port);
	freeaddrinfo(found);
	return 0;
}

/* ---- refreshing ------------------------------------------------------------------------------ */

/* The command line of ringside-fetch. Texts live in `numbers`. */
static void fetch_words(const struct hub_agents *agents, const char *auth, size_t limit_bytes,
			size_t requests, char *words[static FETCH_WORDS],
			char numbers[static 5][24])
{
	const struct hub_options *options = agents->options;
	uint64_t timeout_ms = options->timeout_ns / 1000000;
	size_t count = 0;

	text_format(numbers[0], 24, "%zu",
		    requests == 0		   ? 1
		    : requests > HUB_POLL_PARALLEL ? HUB_POLL_PARALLEL
						   : requests);
	text_format(numbers[1], 24, "%" PRIu64, timeout_ms);
	text_format(numbers[2], 24, "%zu", limit_bytes);
	text_format(numbers[3], 24, "%" PRIu64,
		    timeout_ms < CONNECT_MS_MOST ? timeout_ms : (uint64_t)CONNECT_MS_MOST);
	/* Agents that send too much must not use up the others' share. */
	text_format(numbers[4], 24, "%zu", limit_bytes * (requests + 1));
	words[count++] = (char *)agents->fetch;
	words[count++] = "--parallel";
	words[count++] = numbers[0];
	words[count++] = "--timeout";
	words[count++] = numbers[1];
	words[count++] = "--limit";
	words[count++] = numbers[2];
	words[count++] = "--connect";
	words[count++] = numbers[3];
	words[count++] = "--total";
	words[count++] = numbers[4];
	if (auth) {
		words[count++] = "--auth";
		words[count++] = (char *)auth;
	}
	if (options->ca_file) {
		words[count++] = "--cacert";
		words[count++] = (char *)options->ca_file;
	}
	if (options->is_insecure)
		words[count++] = "--insecure";
	words[count] = NULL;
}

static void source_problem(struct hub_source *source, const char *why, bool are_kept)
{
	/* Once, not at every refresh. */
	if (strcmp(source->problem, why) != 0 && why[0] != '\0')
		serve_log(SERVE_WARNING, "--%s %s: %s%s", hub_source_name(source->wanted.kind),
			  source->wanted.value, why,
			  are_kept ? "; keeping the agents found before" : "");
	text_copy(source->problem, sizeof(source->problem), why);
}

static int by_name(const void *one, const void *other)
{
	return strcmp((*(struct hub_agent *const *)one)->target.name,
		      (*(struct hub_agent *const *)other)->target.name);
}

static struct hub_agent *agent_find(const struct hub_agents *agents, const char *name)
{
	struct hub_agent key = { .target = { .name = (char *)name } }, *at = &key, **found;

	found = agents->count == 0 ? NULL
				   : bsearch(&at, agents->list, agents->count,
					     sizeof(struct hub_agent *), by_name);
	return found ? *found : NULL;
}

static void agent_free(struct hub_agent *agent)
{
	free(agent->target.name);
	free(agent->target.url);
	free(agent->target.socket);
	hub_summary_release(&agent->summary);
	hub_summary_release(&agent->coming);
	free(agent);
}

/* Asked at once, and later in its place of the interval. */
static struct hub_agent *agent_new(const struct fetch_target *target, uint64_t now_ns)
{
	struct hub_agent *agent = calloc(1, sizeof(*agent));

	if (agent == NULL)
		return NULL;
	agent->target = (struct fetch_target){ strdup(target->name), strdup(target->url),
					       target->socket ? strdup(target->socket) : NULL };
	agent->due_ns = now_ns;
	text_copy(agent->why, sizeof(agent->why), "not asked yet");
	if (agent->target.name && agent->target.url)
		return agent;
	agent_free(agent);
	return NULL;
}

/* Appends without order. */
static struct hub_agent *agent_append(struct hub_agents *agents, const struct fetch_target *target,
				      uint64_t now_ns)
{
	struct hub_agent *agent;

	if (agents->count >= FETCH_TARGETS_MAX ||
	    !list_grow(&agents->list, agents->count, sizeof(struct hub_agent *)))
		return NULL;
	agent = agent_new(target, now_ns);
	if (agent)
		agents->list[agents->count++] = agent;
	return agent;
}

static void sort_agents(struct hub_agents *agents)
{
	if (agents->count > 1)
		qsort(agents->list, agents->count, sizeof(struct hub_agent *), by_name);
}

/* New agents are added. Those that no source has any more are dropped, unless they are being asked or Prometheus has
 * them: then later. */
static void merge_sources(struct hub_agents *agents, uint64_t now_ns)
{
	size_t known = agents->count, kept = 0;

	for (size_t i = 0; i < agents->count; i++)
		agents->list[i]->is_listed = false;
	for (size_t s = 0; s < agents->source_count; s++) {
		const struct fetch_targets *found = &agents->sources[s].found;

		for (size_t i = 0; i < found->count; i++) {
			struct hub_agents sorted = { .list = agents->list, .count = known };
			struct hub_agent *agent = agent_find(&sorted, found->list[i].name);

			if (agent == NULL)
				agent = agent_append(agents, &found->list[i], now_ns);
			if (agent)
				agent->is_listed = true;
		}
	}
	for (size_t i = 0; i < agents->count; i++) {
		struct hub_agent *agent = agents->list[i];
		bool is_recent = agents->options->prometheus && agent->answered_ns > 0 &&
				 now_ns - agent->answered_ns < HUB_AGENT_KEEP_NS;

		if (agent->is_listed || agent->is_asked || is_recent)
			agents->list[kept++] = agent;
		else
			agent_free(agent);
	}
	agents->count = kept;
	sort_agents(agents);
	/* Sources may list the same new agent. */
	kept = 0;
	for (size_t i = 0; i < agents->count; i++) {
		if (kept > 0 && by_name(&agents->list[kept - 1], &agents->list[i]) == 0)
			agent_free(agents->list[i]);
		else
			agents->list[kept++] = agents->list[i];
	}
	agents->count = kept;
	agents->changes++;
	if (agents->count != agents->told)
		serve_log(SERVE_INFO, "%zu agents", agents->count);
	agents->told = agents->count;
}

static void source_take(struct hub_agents *agents, struct hub_source *source,
			struct fetch_targets *found, enum status status, const char *why,
			uint64_t now_ns)
{
	source->due_ns = now_ns + agents->options->refresh_ns;
	if (status != OK) {
		source_problem(source, why[0] ? why : "out of memory", source->has_found);
		fetch_targets_release(found);
		return;
	}
	source_problem(source, found->count == 0 ? "no agents found" : "", false);
	fetch_targets_release(&source->found);
	source->found = *found;
	source->has_found = true;
	merge_sources(agents, now_ns);
}

static void source_start(struct hub_agents *agents, struct hub_source *source, uint64_t now_ns)
{
	static char *const sinfo[] = { "/usr/bin/env", "sinfo", "--noheader", "--Node",
				       "--format",     "%N",	NULL };
	char *words[FETCH_WORDS], numbers[5][24], request[FETCH_LINE_MAX];
	struct child_task task = { .timeout_ns = DISCOVERY_NS, .limit_bytes = LIST_BYTES };

	switch (source->wanted.kind) {
	case HUB_SOURCE_HTTP_SD:
		fetch_words(agents, agents->options->prometheus_auth, LIST_BYTES / 2, 1, words,
			    numbers);
		text_format(request, sizeof(request), "0 %s\n", source->wanted.value);
		task.words = words;
		task.input = request;
		break;
	case HUB_SOURCE_SLURM:
		task.words = sinfo;
		break;
	default:
		task.work = look_up;
		task.input = source->wanted.value;
	}
	agents->children++;
	child_start(&source->child, &task, agents->epoll, now_ns);
}

static enum status read_http_sd(struct fetch_targets *found, const struct child *child, char *why,
				size_t why_size)
{
	enum status status = ERR_FORMAT;
	struct fetch_frames frames;
	struct fetch_frame frame;

	text_copy(why, why_size, child->why[0] ? child->why : "no answer");
	fetch_frames_init(&frames, LIST_BYTES);
	if (child->used > 0 && fetch_frames_add(&frames, child->bytes, child->used) == OK &&
	    fetch_frames_next(&frames, &frame) == OK) {
		if (frame.status == 200)
			status =
				hub_agents_read_sd(found, frame.bytes, frame.length, why, why_size);
		else if (frame.status == 0)
			text_format(why, why_size, "%.*s", (int)frame.length, frame.bytes);
		else
			text_format(why, why_size, "HTTP %d", frame.status);
	}
	fetch_frames_release(&frames);
	return status;
}

/* What a child found. */
static void source_finish(struct hub_agents *agents, struct hub_source *source, uint64_t now_ns)
{
	const struct child *child = &source->child;
	struct fetch_targets found;
	char why[CHILD_WHY] = "";
	enum status status;

	fetch_targets_init(&found);
	if (source->wanted.kind == HUB_SOURCE_HTTP_SD) {
		status = read_http_sd(&found, child, why, sizeof(why));
	} else if (child->code != 0) {
		text_copy(why, sizeof(why), child->why[0] ? child->why : "it failed");
		status = ERR_SYSTEM;
	} else {
		status = fetch_targets_add(&found, child->bytes ? child->bytes : "", HUB_AGENT_PORT,
					   why, sizeof(why));
	}
	child_release(&source->child);
	source_take(agents, source, &found, status, why, now_ns);
}

static void source_read(struct hub_agents *agents, struct hub_source *source, uint64_t now_ns)
{
	char why[CHILD_WHY] = "";
	struct fetch_targets found;
	enum status status;

	fetch_targets_init(&found);
	if (source->wanted.kind == HUB_SOURCE_LIST)
		status = read_list(&found, source->wanted.value, why, sizeof(why));
	else
		status = read_file_sd(&found, source->wanted.value, why, sizeof(why));
	source_take(agents, source, &found, status, why, now_ns);
}

static uint64_t source_run(struct hub_agents *agents, struct hub_source *source, uint64_t now_ns)
{
	if (source->child.begun_ns > 0) {
		if (!child_has_ended(&source->child, now_ns))
			return source->child.until_ns;
		source_finish(agents, source, now_ns);
	}
	if (now_ns < source->due_ns)
		return source->due_ns;
	if (source->wanted.kind == HUB_SOURCE_LIST || source->wanted.kind == HUB_SOURCE_FILE_SD) {
		source_read(agents, source, now_ns);
		return source->due_ns;
	}
	source_start(agents, source, now_ns);
	return source->child.until_ns;
}

/* ---- polling --------------------------------------------------------------------------------- */

static void agent_fail(struct hub_agents *agents, struct hub_agent *agent, const char *why,
		       size_t length)
{
	agents->failed++;
	agent->failures++;
	agent->is_silent = true;
	text_format(agent->why, sizeof(agent->why), "%.*s",
		    (int)(length < sizeof(agent->why) ? length : sizeof(agent->why) - 1), why);
	if (agent->failures > FAILURES_PATIENT)
		agent->due_ns += BACKOFF_NS;
}

static void agent_answer(struct hub_agents *agents, struct hub_agent *agent,
			 const struct fetch_frame *frame, uint64_t now_ns)
{
	struct hub_summary summary;
	const char *why;
	char text[40];

	agents->received_bytes += frame->length;
	if (frame->status == 0) {
		agent_fail(agents, agent, frame->bytes, frame->length);
		return;
	}
	if (frame->status != 200) {
		text_format(text, sizeof(text), "HTTP %d%s", frame->status,
			    frame->status == 401   ? ": see --auth"
			    : frame->status == 404 ? ": an older agent?"
						   : "");
		agent_fail(agents, agent, text, strlen(text));
		return;
	}
	if (hub_summary_read(&summary, frame->bytes, frame->length, &why) != OK) {
		agent_fail(agents, agent, why, strlen(why));
		return;
	}
	hub_summary_release(&agent->summary);
	agent->summary = summary;
	agent->answered_ns = now_ns;
	agent->failures = 0;
	agent->is_silent = false;
	agent->why[0] = '\0';
	agents->answered++;
}

static void poll_take(struct hub_agents *agents, struct hub_poll *poll, uint64_t now_ns)
{
	struct fetch_frame frame;

	if (poll->child.used == 0 ||
	    fetch_frames_add(&poll->frames, poll->child.bytes, poll->child.used) != OK)
		return;
	poll->child.used = 0;
	while (fetch_frames_next(&poll->frames, &frame) == OK) {
		struct hub_agent *agent = frame.id < poll->count ? poll->asked[frame.id] : NULL;

		if (agent == NULL)
			continue;
		poll->asked[frame.id] = NULL;
		agent->is_asked = false;
		agent_answer(agents, agent, &frame, now_ns);
		agents->changes++;
	}
}

/* The rest got no answer from the child itself. */
static void poll_finish(struct hub_agents *agents, struct hub_poll *poll)
{
	const char *why = poll->child.why[0] ? poll->child.why : "ringside-fetch failed";

	for (size_t i = 0; i < poll->count; i++)
		if (poll->asked[i]) {
			poll->asked[i]->is_asked = false;
			agent_fail(agents, poll->asked[i], why, strlen(why));
			agents->changes++;
		}
	free(poll->asked);
	poll->asked = NULL;
	poll->count = 0;
	fetch_frames_release(&poll->frames);
	child_release(&poll->child);
}

/* Few agents are asked all at once; more in up to HUB_POLLS_MAX batches, spread over the interval. Which one an agent
 * is in depends on its name, so that it stays in it. */
static uint64_t next_due_ns(const struct hub_agents *agents, const struct hub_agent *agent,
			    uint64_t now_ns)
{
	uint64_t interval_ns = agents->options->interval_ns, due_ns;
	size_t batches = agents->count / AGENTS_PER_BATCH + 1;
	uint64_t hash = hash_bytes(agent->target.name, strlen(agent->target.name));

	batches = batches > HUB_POLLS_MAX ? HUB_POLLS_MAX : batches;
	due_ns = now_ns - now_ns % interval_ns + hash % batches * (interval_ns / batches);
	return due_ns > now_ns ? due_ns : due_ns + interval_ns;
}

static bool may_be_asked(const struct hub_agent *agent)
{
	return agent->is_listed && !agent->is_asked;
}

static size_t count_due(const struct hub_agents *agents, uint64_t now_ns, uint64_t *next_ns)
{
	size_t due = 0;

	*next_ns = UINT64_MAX;
	for (size_t i = 0; i < agents->count; i++) {
		const struct hub_agent *agent = agents->list[i];

		if (!may_be_asked(agent))
			continue;
		due += agent->due_ns <= now_ns;
		if (agent->due_ns < *next_ns)
			*next_ns = agent->due_ns;
	}
	return due;
}

static char *make_requests(struct hub_agents *agents, struct hub_poll *poll, size_t due,
			   uint64_t now_ns)
{
	size_t room = due * (2 * FETCH_TARGET_TEXT + 128) + 1, used = 0;
	char *text = calloc(1, room);

	poll->asked = calloc(due, sizeof(struct hub_agent *));
	for (size_t i = 0; text && poll->asked && i < agents->count && poll->count < due; i++) {
		struct hub_agent *agent = agents->list[i];

		if (!may_be_asked(agent) || agent->due_ns > now_ns)
			continue;
		text_format(text + used, room - used, "%zu %s/api/v1/summary%s%s\n", poll->count,
			    agent->target.url, agent->target.socket ? " " : "",
			    agent->target.socket ? agent->target.socket : "");
		used += strlen(text + used);
		agent->is_asked = true;
		agent->due_ns = next_due_ns(agents, agent, now_ns);
		poll->asked[poll->count++] = agent;
	}
	return text;
}

static void poll_start(struct hub_agents *agents, struct hub_poll *poll, size_t due,
		       uint64_t now_ns)
{
	char *words[FETCH_WORDS], numbers[5][24];
	struct child_task task = {
		.words = words,
		.timeout_ns = agents->options->timeout_ns * (due / HUB_POLL_PARALLEL + 2) +
			      UINT64_C(5000000000),
		.limit_bytes = (size_t)HUB_SUMMARY_BYTES * (HUB_POLL_AGENTS + 1),
	};
	char *requests = make_requests(agents, poll, due, now_ns);

	fetch_words(agents, agents->options->auth, HUB_SUMMARY_BYTES, poll->count, words, numbers);
	task.input = requests ? requests : "";
	fetch_frames_init(&poll->frames, HUB_SUMMARY_BYTES + FETCH_WHY_MAX);
	agents->asked += poll->count;
	agents->children++;
	child_start(&poll->child, &task, agents->epoll, now_ns);
	free(requests);
}

/* Takes the answers of batches that were started, and starts the next one, if any may be. */
static uint64_t polls_run(struct hub_agents *agents, bool may_start, uint64_t now_ns)
{
	struct hub_poll *idle = NULL;
	uint64_t next_ns = UINT64_MAX, due_ns;
	size_t due;

	for (size_t i = 0; i < HUB_POLLS_MAX; i++) {
		struct hub_poll *poll = &agents->polls[i];
		bool has_ended;

		if (poll->child.begun_ns == 0) {
			idle = poll;
			continue;
		}
		has_ended = child_has_ended(&poll->child, now_ns);
		poll_take(agents, poll, now_ns);
		if (has_ended) {
			poll_finish(agents, poll);
			idle = poll;
		} else if (poll->child.until_ns < next_ns) {
			next_ns = poll->child.until_ns;
		}
	}
	if (!may_start)
		return next_ns;
	due = count_due(agents, now_ns, &due_ns);
	if (due == 0)
		return due_ns < next_ns ? due_ns : next_ns;
	/* Without an idle one, the end of a batch makes room for the next. */
	if (idle == NULL)
		return next_ns;
	poll_start(agents, idle, due < HUB_POLL_AGENTS ? due : HUB_POLL_AGENTS, now_ns);
	return now_ns;
}

/* ---- Prometheus ------------------------------------------------------------------------------ */

/* Prometheus' answer has far fewer series than it stores: one per job and node. */
static const char *const queries[HUB_QUERIES] = {
	[HUB_QUERY_AGENTS] = "max by (instance, version) (ringside_build_info)",
	[HUB_QUERY_PROCESSES] =
		"count by (nccl_job, instance, world_size, state) (nccl_process_info{run=\"\"})",
	[HUB_QUERY_STUCK] = "max by (nccl_job, instance) (min by (nccl_job, instance, comm) "
			    "(nccl_last_activity_age_seconds) and on (nccl_job, instance, comm) "
			    "(max by (nccl_job, instance, comm) (nccl_operations_in_flight) > 0))",
	[HUB_QUERY_VERDICTS] = "count by (nccl_job, instance, class) (nccl_verdict_info)",
	[HUB_QUERY_NOTICES] = "count by (nccl_job, instance, kind) (nccl_notice_info)",
	[HUB_QUERY_WAIT] = "sum by (nccl_job, instance) (nccl_wait_seconds_total)",
	[HUB_QUERY_SHARE] =
		("sum by (nccl_job, instance) (rate(nccl_wait_seconds_total[1m])) / on (nccl_job, "
		 "instance) count by (nccl_job, instance) (nccl_process_info{run=\"\"})"),
	[HUB_QUERY_OPERATIONS] = "sum by (nccl_job, instance) (nccl_operations_finished_total)",
	[HUB_QUERY_HANG_AFTER] = "max by (nccl_job, instance) (nccl_job_hang_threshold_seconds)",
};

/* A sample of an answer. */
struct sample {
	char job[HUB_JOB_NAME], instance[256], name[64], state[16];
	int64_t world_size;
	double value;
};

static void read_labels(struct json_scan *scan, struct sample *sample)
{
	char world[24] = "";

	if (!json_scan_enter(scan, JSON_SCAN_OBJECT))
		return;
	while (json_scan_next(scan) == JSON_SCAN_KEY) {
		if (json_scan_is(scan, "nccl_job"))
			json_scan_read_text(scan, sample->job, sizeof(sample->job));
		else if (json_scan_is(scan, "instance"))
			json_scan_read_text(scan, sample->instance, sizeof(sample->instance));
		else if (json_scan_is(scan, "world_size"))
			json_scan_read_text(scan, world, sizeof(world));
		else if (json_scan_is(scan, "state"))
			json_scan_read_text(scan, sample->state, sizeof(sample->state));
		else if (json_scan_is(scan, "class") || json_scan_is(scan, "kind") ||
			 json_scan_is(scan, "version"))
			json_scan_read_text(scan, sample->name, sizeof(sample->name));
		else
			json_scan_skip(scan);
	}
	if (text_number(world, 1, INT32_MAX, &sample->world_size) != OK)
		sample->world_size = 0;
}

/* [TIME, "NUMBER"] */
static void read_value(struct json_scan *scan, struct sample *sample)
{
	char text[40] = "";

	if (!json_scan_enter(scan, JSON_SCAN_ARRAY))
		return;
	while (json_scan_next_string(scan))
		json_scan_text(scan, text, sizeof(text));
	sample->value = strtod(text, NULL);
}

static struct hub_row *row_of(struct hub_agent *agent, const char *job)
{
	struct hub_summary *summary = &agent->coming;

	for (size_t i = 0; i < summary->count; i++)
		if (strcmp(summary->rows[i].job, job) == 0)
			return &summary->rows[i];
	if (summary->count == HUB_SUMMARY_JOBS) {
		summary->left_out++;
		return NULL;
	}
	if (!list_grow(&summary->rows, summary->count, sizeof(*summary->rows)))
		return NULL;
	summary->rows[summary->count] = (struct hub_row){ .owner = -1, .wait_share = NAN };
	text_copy(summary->rows[summary->count].job, HUB_JOB_NAME, job);
	return &summary->rows[summary->count++];
}

static uint64_t bit_of(const char *name, const char *(*name_of)(unsigned int), unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		if (strcmp(name, name_of(i)) == 0)
			return UINT64_C(1) << i;
	return 0;
}

/* 0 for what is no amount. */
static double amount(double value, double most)
{
	return value > 0 ? (value < most ? value : most) : 0;
}

static void add_sample(struct hub_agent *agent, enum hub_query query, const struct sample *sample)
{
	struct hub_row *row = row_of(agent, sample->job);
	uint32_t processes = (uint32_t)amount(sample->value, 4096);

	if (row == NULL)
		return;
	switch (query) {
	case HUB_QUERY_PROCESSES:
		row->processes += processes;
		row->ranks += processes;
		if (strcmp(sample->state, "ended") != 0 && strcmp(sample->state, "killed") != 0)
			row->alive += processes;
		if (sample->world_size > row->world_size)
			row->world_size = sample->world_size;
		break;
	case HUB_QUERY_STUCK:
		row->stuck_ns = (uint64_t)(amount(sample->value, 1e9) * 1e9);
		break;
	case HUB_QUERY_HANG_AFTER:
		if (sample->value <= RECORDING_HANG_AFTER_MOST_S)
			row->hang_after_ns = (uint64_t)(amount(sample->value, 1e9) * 1e9);
		break;
	case HUB_QUERY_VERDICTS:
		row->verdicts |= bit_of(sample->name, class_name, VERDICT_CLASSES);
		break;
	case HUB_QUERY_NOTICES:
		row->notices |= bit_of(sample->name, notice_name, LIVE_NOTICE_KINDS);
		break;
	case HUB_QUERY_WAIT:
		row->wait_ns = (uint64_t)(amount(sample->value, 1e9) * 1e9);
		break;
	case HUB_QUERY_SHARE:
		row->wait_share = isnan(sample->value) ? NAN : amount(sample->value, 1);
		break;
	default:
		row->operations = (uint64_t)amount(sample->value, 1e18);
	}
}

/* The agent of an instance; one that no source has is added. NULL: its name is no address. */
static struct hub_agent *instance_agent(struct hub_agents *agents, const char *instance,
					uint64_t now_ns)
{
	struct hub_agent *agent = agent_find(agents, instance);
	struct fetch_targets targets;
	char why[120];

	if (agent)
		return agent;
	fetch_targets_init(&targets);
	if (strpbrk(instance, ", \t\n#") == NULL &&
	    fetch_targets_add(&targets, instance, HUB_AGENT_PORT, why, sizeof(why)) == OK &&
	    targets.count == 1) {
		agent = agent_find(agents, targets.list[0].name);
		if (agent == NULL)
			agent = agent_append(agents, &targets.list[0], now_ns);
		for (size_t i = agents->count; agent && i-- > 1;)
			if (by_name(&agents->list[i - 1], &agents->list[i]) > 0) {
				agents->list[i] = agents->list[i - 1];
				agents->list[i - 1] = agent;
			}
	}
	fetch_targets_release(&targets);
	return agent;
}

static void take_sample(struct hub_agents *agents, enum hub_query query,
			const struct sample *sample, uint64_t now_ns)
{
	struct hub_agent *agent = instance_agent(agents, sample->instance, now_ns);

	if (agent == NULL)
		return;
	if (query != HUB_QUERY_AGENTS) {
		add_sample(agent, query, sample);
		return;
	}
	agent->is_coming = true;
	text_copy(agent->coming.version, sizeof(agent->coming.version), sample->name);
}

static void take_samples(struct hub_agents *agents, enum hub_query query, struct json_scan *scan,
			 uint64_t now_ns)
{
	if (!json_scan_enter(scan, JSON_SCAN_ARRAY))
		return;
	while (json_scan_next_object(scan)) {
		struct sample sample = { .value = 0 };

		while (json_scan_next(scan) == JSON_SCAN_KEY) {
			if (json_scan_is(scan, "metric"))
				read_labels(scan, &sample);
			else if (json_scan_is(scan, "value"))
				read_value(scan, &sample);
			else
				json_scan_skip(scan);
		}
		take_sample(agents, query, &sample, now_ns);
	}
}

enum status hub_query_take(struct hub_agents *agents, enum hub_query query, const char *bytes,
			   size_t length, uint64_t now_ns)
{
	struct json_scan scan;
	char status[16] = "";

	json_scan_init(&scan, bytes, length);
	if (!json_scan_enter(&scan, JSON_SCAN_OBJECT))
		return ERR_FORMAT;
	while (json_scan_next(&scan) == JSON_SCAN_KEY) {
		if (json_scan_is(&scan, "status"))
			json_scan_read_text(&scan, status, sizeof(status));
		else if (!json_scan_is(&scan, "data"))
			json_scan_skip(&scan);
		else if (json_scan_enter(&scan, JSON_SCAN_OBJECT))
			while (json_scan_next(&scan) == JSON_SCAN_KEY) {
				if (json_scan_is(&scan, "result"))
					take_samples(agents, query, &scan, now_ns);
				else
					json_scan_skip(&scan);
			}
	}
	return json_scan_next(&scan) == JSON_SCAN_END && strcmp(status, "success") == 0
		       ? OK
		       : ERR_FORMAT;
}

static void prometheus_start(struct hub_agents *agents, uint64_t now_ns)
{
	char *words[FETCH_WORDS], numbers[5][24];
	struct child_task task = { .words = words,
				   .timeout_ns =
					   agents->options->timeout_ns * 2 + UINT64_C(5000000000),
				   .limit_bytes = (size_t)PROMETHEUS_BYTES * HUB_QUERIES };
	size_t room = HUB_QUERIES * 2048, used = 0;
	const char *base = agents->options->prometheus;
	char *requests = calloc(1, room);

	for (int i = 0; requests && i < HUB_QUERIES; i++) {
		size_t length = strlen(base);

		while (length > 0 && base[length - 1] == '/')
			length--;
		text_format(requests + used, room - used, "%d %.*s/api/v1/query?query=", i,
			    (int)length, base);
		fetch_url_append(requests + used, room - used, queries[i]);
		text_append(requests + used, room - used, "\n");
		used += strlen(requests + used);
	}
	fetch_words(agents, agents->options->prometheus_auth, PROMETHEUS_BYTES, HUB_QUERIES, words,
		    numbers);
	task.input = requests ? requests : "";
	fetch_frames_init(&agents->prometheus.frames, PROMETHEUS_BYTES + FETCH_WHY_MAX);
	for (size_t i = 0; i < agents->count; i++) {
		agents->list[i]->is_coming = false;
		hub_summary_release(&agents->list[i]->coming);
	}
	agents->prometheus_answers = 0;
	agents->children++;
	agents->prometheus_due_ns = now_ns + agents->options->interval_ns;
	child_start(&agents->prometheus.child, &task, agents->epoll, now_ns);
	free(requests);
}

/* Answers come in any order. Each is taken as it arrives; together they become the summaries. */
static void prometheus_take(struct hub_agents *agents, char *why, size_t why_size, uint64_t now_ns)
{
	struct hub_poll *poll = &agents->prometheus;
	struct fetch_frame frame;

	if (poll->child.used == 0 ||
	    fetch_frames_add(&poll->frames, poll->child.bytes, poll->child.used) != OK)
		return;
	poll->child.used = 0;
	while (fetch_frames_next(&poll->frames, &frame) == OK) {
		agents->received_bytes += frame.length;
		if (frame.status == 200 && frame.id < HUB_QUERIES &&
		    hub_query_take(agents, (enum hub_query)frame.id, frame.bytes, frame.length,
				   now_ns) == OK)
			agents->prometheus_answers++;
		else if (frame.status == 0)
			text_format(why, why_size, "%.*s", (int)frame.length, frame.bytes);
		else
			text_format(why, why_size, "HTTP %d, or not an answer of Prometheus%s",
				    frame.status,
				    frame.status == 401 ? ": see --prometheus-auth" : "");
	}
}

/* An agent that Prometheus no longer scrapes keeps its rows, as one that does not answer. */
static void prometheus_finish(struct hub_agents *agents, uint64_t now_ns)
{
	for (size_t i = 0; i < agents->count; i++) {
		struct hub_agent *agent = agents->list[i];

		if (!agent->is_coming) {
			agent->is_silent = true;
			text_copy(agent->why, sizeof(agent->why), "Prometheus does not scrape it");
			hub_summary_release(&agent->coming);
			continue;
		}
		hub_summary_release(&agent->summary);
		agent->summary = agent->coming;
		agent->coming = (struct hub_summary){ .rows = NULL };
		agent->answered_ns = now_ns;
		agent->is_silent = false;
		agent->failures = 0;
		agent->why[0] = '\0';
	}
	/* Those that have been gone for long are dropped. */
	merge_sources(agents, now_ns);
}

static void prometheus_ended(struct hub_agents *agents, const char *why, uint64_t now_ns)
{
	bool is_good = agents->prometheus_answers == HUB_QUERIES;

	agents->asked += HUB_QUERIES;
	agents->failed += HUB_QUERIES - agents->prometheus_answers;
	agents->answered += agents->prometheus_answers;
	if (!is_good && why[0] == '\0')
		why = agents->prometheus.child.why[0] ? agents->prometheus.child.why : "no answer";
	if (!is_good && agents->prometheus_failures++ == 0)
		serve_log(SERVE_WARNING, "--prometheus %s: %s", agents->options->prometheus, why);
	else if (is_good && agents->prometheus_failures > 0)
		serve_log(SERVE_NOTICE, "--prometheus %s: answers again",
			  agents->options->prometheus);
	text_copy(agents->prometheus_problem, sizeof(agents->prometheus_problem),
		  is_good ? "" : why);
	if (is_good) {
		agents->prometheus_failures = 0;
		prometheus_finish(agents, now_ns);
	}
	fetch_frames_release(&agents->prometheus.frames);
	child_release(&agents->prometheus.child);
}

static uint64_t prometheus_run(struct hub_agents *agents, uint64_t now_ns)
{
	struct hub_poll *poll = &agents->prometheus;
	char why[CHILD_WHY] = "";
	bool has_ended;

	if (poll->child.begun_ns > 0) {
		has_ended = child_has_ended(&poll->child, now_ns);
		prometheus_take(agents, why, sizeof(why), now_ns);
		if (why[0] != '\0')
			text_copy(agents->prometheus_problem, sizeof(agents->prometheus_problem),
				  why);
		if (!has_ended)
			return poll->child.until_ns;
		prometheus_ended(agents, why[0] ? why : agents->prometheus_problem, now_ns);
	}
	if (now_ns < agents->prometheus_due_ns)
		return agents->prometheus_due_ns;
	prometheus_start(agents, now_ns);
	return now_ns + 1;
}

/* ---- all of it ------------------------------------------------------------------------------- */

void hub_agents_init(struct hub_agents *agents, const struct hub_options *options,
		     const char *fetch, int epoll)
{
	*agents = (struct hub_agents){ .options = options, .fetch = fetch, .epoll = epoll };
	agents->source_count = options->source_count;
	for (size_t i = 0; i < options->source_count; i++) {
		agents->sources[i].wanted = options->sources[i];
		fetch_targets_init(&agents->sources[i].found);
	}
}

void hub_agents_release(struct hub_agents *agents)
{
	for (size_t i = 0; i < agents->source_count; i++) {
		child_release(&agents->sources[i].child);
		fetch_targets_release(&agents->sources[i].found);
	}
	for (size_t i = 0; i < HUB_POLLS_MAX; i++) {
		free(agents->polls[i].asked);
		fetch_frames_release(&agents->polls[i].frames);
		child_release(&agents->polls[i].child);
	}
	fetch_frames_release(&agents->prometheus.frames);
	child_release(&agents->prometheus.child);
	for (size_t i = 0; i < agents->count; i++)
		agent_free(agents->list[i]);
	free(agents->list);
}

size_t hub_agents_silent(const struct hub_agents *agents)
{
	size_t silent = 0;

	for (size_t i = 0; i < agents->count; i++)
		silent += agents->list[i]->is_silent;
	return silent;
}

/* What a silent agent said last is forgotten after a while. */
static void forget_old(struct hub_agents *agents, uint64_t now_ns)
{
	for (size_t i = 0; i < agents->count; i++) {
		struct hub_agent *agent = agents->list[i];

		if (agent->summary.count > 0 && agent->is_silent &&
		    now_ns - agent->answered_ns > HUB_AGENT_KEEP_NS) {
			hub_summary_release(&agent->summary);
			agents->changes++;
		}
	}
}

uint64_t hub_agents_run(struct hub_agents *agents, uint64_t now_ns)
{
	uint64_t next_ns = UINT64_MAX, at_ns;
	bool may_poll = true;

	for (size_t i = 0; i < agents->source_count; i++) {
		at_ns = source_run(agents, &agents->sources[i], now_ns);
		next_ns = at_ns < next_ns ? at_ns : next_ns;
	}
	forget_old(agents, now_ns);
	if (agents->options->prometheus) {
		at_ns = prometheus_run(agents, now_ns);
		next_ns = at_ns < next_ns ? at_ns : next_ns;
		/* While Prometheus is down, agents of other sources are polled. */
		may_poll = agents->prometheus_failures >= PROMETHEUS_DOWN;
	}
	at_ns = polls_run(agents, may_poll, now_ns);
	return at_ns < next_ns ? at_ns : next_ns;
}
