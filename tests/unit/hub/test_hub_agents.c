/*
 * Agents of a cluster: where they are found, how they are asked and what their answers become. ringside-fetch and sinfo
 * are scripts, and names are looked up in tables of this file. All that is known is compared with an expected file.
 */
#include <arpa/inet.h>
#include <arpa/nameser.h>
#include <fcntl.h>
#include <math.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <resolv.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hub/hub.h"
#include "common/attributes.h"
#include "common/text.h"
#include "doctor/live.h"
#include "tests/support/expected_verdicts.h"
#include "tests/support/scratch.h"
#include "tests/tap.h"

#define SECOND UINT64_C(1000000000)
#define BEGIN (1000 * SECOND)
#define HEAD "{\"format\":\"ringside-summary\",\"version\":1,\"ringside\":\"9\",\"host\":\"n1\","

/* ---- names ------------------------------------------------------------------------------------ */

/* "both" has addresses of both families, "six" of one only, others have none. */
int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
		struct addrinfo **found)
{
	static struct sockaddr_in6 six[3];
	static struct sockaddr_in four[2];
	static struct addrinfo list[5];
	bool is_six = strcmp(name, "six") == 0;

	(void)service;
	if (hints->ai_socktype != SOCK_STREAM || (!is_six && strcmp(name, "both") != 0))
		return EAI_NONAME;
	for (int i = 0; i < 5; i++) {
		bool is_four = i == 1 || i == 3;

		list[i] = (struct addrinfo){
			.ai_family = is_four ? AF_INET : AF_INET6,
			.ai_addr = is_four ? (struct sockaddr *)&four[i / 2]
					   : (struct sockaddr *)&six[i / 2],
			.ai_addrlen = is_four ? sizeof(four[0]) : sizeof(six[0]),
			.ai_next = i < 4 ? &list[i + 1] : NULL,
		};
	}
	for (int i = 0; i < 2; i++) {
		four[i].sin_family = AF_INET;
		inet_pton(AF_INET, i == 0 ? "10.0.0.1" : "10.0.0.2", &four[i].sin_addr);
	}
	for (int i = 0; i < 3; i++) {
		six[i].sin6_family = AF_INET6;
		inet_pton(AF_INET6,
			  i == 0   ? "fd00::1"
			  : i == 1 ? "fe80::1"
				   : "fd00::2",
			  &six[i].sin6_addr);
	}
	six[1].sin6_scope_id = 1; /* an address of one link only, "fe80::1%lo" */
	if (is_six) {
		list[0].ai_next = &list[2];
		list[2].ai_next = &list[4];
	}
	*found = list;
	return 0;
}

void freeaddrinfo(struct addrinfo *list)
{
	(void)list;
}

/* Two SRV records, between them an address and a record that is too short. */
int res_query(const char *name, int class, int type, unsigned char *to, int size)
{
	static const unsigned char answer[] =
		"\0\0\x81\x80\0\1\0\4\0\0\0\0"
		"\2_a\2_b\1c\0\0\x21\0\1"
		"\xc0\x0c\0\x21\0\1\0\0\0\x0a\0\x0c\0\0\0\0\x26\x15\2n1\1c\0"
		"\xc0\x0c\0\1\0\1\0\0\0\x0a\0\4\x0a\0\0\1"
		"\xc0\x0c\0\x21\0\1\0\0\0\x0a\0\6\0\0\0\0\x26\x15"
		"\xc0\x0c\0\x21\0\1\0\0\0\x0a\0\x08\0\0\0\0\0\x50\xc0\x12";

	if (class != ns_c_in || type != ns_t_srv || strcmp(name, "_a._b.c") != 0 ||
	    (size_t)size < sizeof(answer))
		return strcmp(name, "_bad._b.c") == 0 ? 5 : -1;
	memcpy(to, answer, sizeof(answer) - 1);
	return sizeof(answer) - 1;
}

/* ---- the stage -------------------------------------------------------------------------------- */

static const char *directory;
static char fetch[96], said[96], answer[96];
static struct hub_options options;
static struct hub_agents agents;
static struct expected_text text;
static uint64_t now;

static char *path_of(const char *name)
{
	static char paths[8][96];
	static int next;

	next = (next + 1) % 8;
	text_format(paths[next], sizeof(paths[0]), "%s/%s", directory, name);
	return paths[next];
}

static void write_text(const char *path, const char *format, ...) PRINTF_LIKE(2, 3);
static void write_text(const char *path, const char *format, ...)
{
	FILE *file = fopen(path, "we");
	va_list list;

	va_start(list, format);
	vfprintf(file, format, list);
	va_end(list);
	fclose(file);
}

static void write_script(const char *name, const char *body)
{
	write_text(path_of(name), "#!/bin/sh\n%s\n", body);
	chmod(path_of(name), 0700);
}

/* ringside-fetch answers with these frames from now on. */
static void answer_nothing(void)
{
	write_text(answer, "%s", "");
}

static void answer_with(unsigned int id, int status, const char *body)
{
	char header[FETCH_HEADER_MAX];
	FILE *file = fopen(answer, "ae");
	size_t length = fetch_frame_header(header, id, status, strlen(body));

	fwrite(header, 1, length, file);
	fputs(body, file);
	fclose(file);
}

/* Text of ours, with the name of the scratch directory taken out. */
static void put_clean(const char *name, const char *value)
{
	const char *at;

	expected_put(&text, "%s", name);
	while ((at = strstr(value, directory)) != NULL) {
		expected_put(&text, "%.*sDIRECTORY", (int)(at - value), value);
		value = at + strlen(directory);
	}
	expected_put(&text, "%s\n", value);
}

static void put_said(void)
{
	static char bytes[1 << 16];
	FILE *file = fopen(said, "re");
	size_t length = file ? fread(bytes, 1, sizeof(bytes) - 1, file) : 0;
	char *rest = NULL;

	if (file)
		fclose(file);
	remove(said);
	bytes[length] = '\0';
	for (char *line = strtok_r(bytes, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		put_clean("  asked: ", line);
}

/* Lines of the log since the last call. */
static void put_logged(void)
{
	static char bytes[1 << 16];
	static off_t at;
	ssize_t length = pread(STDERR_FILENO, bytes, sizeof(bytes) - 1, at);
	char *rest = NULL;

	bytes[length > 0 ? length : 0] = '\0';
	at += length > 0 ? length : 0;
	for (char *line = strtok_r(bytes, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		put_clean("  logged: ", line);
}

static void put_row(const struct hub_row *row)
{
	expected_put(&text,
		     "    job \"%s\" owner %lld world %lld ranks %u processes %u alive %u "
		     "operations %llu\n",
		     row->job, (long long)row->owner, (long long)row->world_size, row->ranks,
		     row->processes, row->alive, (unsigned long long)row->operations);
	expected_put(&text,
		     "      stuck %llu hang-after %llu wait %llu share %.3f verdicts %llx notices "
		     "%llx\n",
		     (unsigned long long)row->stuck_ns, (unsigned long long)row->hang_after_ns,
		     (unsigned long long)row->wait_ns,
		     isnan(row->wait_share) ? -1 : row->wait_share,
		     (unsigned long long)row->verdicts, (unsigned long long)row->notices);
}

/* A time, from the beginning of the test on. */
static const char *since_begin(uint64_t at_ns)
{
	static char texts[4][32];
	static int next;

	next = (next + 1) % 4;
	if (at_ns == 0 || at_ns == UINT64_MAX)
		return at_ns == 0 ? "never" : "unknown";
	text_format(texts[next], sizeof(texts[0]), "%+.3f s",
		    ((double)at_ns - (double)BEGIN) / 1e9);
	return texts[next];
}

static void put_summary(const struct hub_summary *summary)
{
	expected_put(&text, "    summary: version \"%s\" host \"%s\" left out %llu\n",
		     summary->version, summary->host, (unsigned long long)summary->left_out);
	for (size_t i = 0; i < summary->count; i++)
		put_row(&summary->rows[i]);
}

static void put_agents(const char *heading)
{
	expected_put(&text, "=== %s\n", heading);
	put_said();
	put_logged();
	for (size_t i = 0; i < agents.source_count; i++) {
		expected_put(&text, "  source %s: %zu found, next %s",
			     hub_source_name(agents.sources[i].wanted.kind),
			     agents.sources[i].found.count, since_begin(agents.sources[i].due_ns));
		put_clean(agents.sources[i].problem[0] ? ", " : "", agents.sources[i].problem);
	}
	for (size_t i = 0; i < agents.count; i++) {
		const struct hub_agent *agent = agents.list[i];

		expected_put(&text, "  %s %s%s%s%s%s, next %s, answered %s, %u failures%s%s\n",
			     agent->target.name, agent->target.url, agent->target.socket ? " " : "",
			     agent->target.socket ? agent->target.socket : "",
			     agent->is_listed ? " listed" : "", agent->is_silent ? " silent" : "",
			     since_begin(agent->due_ns), since_begin(agent->answered_ns),
			     agent->failures, agent->why[0] ? ": " : "", agent->why);
		if (agent->answered_ns > 0)
			put_summary(&agent->summary);
	}
	expected_put(
		&text,
		"  total: %zu silent, %llu asked, %llu answered, %llu failed, %llu bytes, %llu "
		"children, %zu logged\n",
		hub_agents_silent(&agents), (unsigned long long)agents.asked,
		(unsigned long long)agents.answered, (unsigned long long)agents.failed,
		(unsigned long long)agents.received_bytes, (unsigned long long)agents.children,
		agents.told);
	if (options.prometheus)
		expected_put(&text, "  prometheus: %u failures, next %s \"%s\"\n",
			     agents.prometheus_failures, since_begin(agents.prometheus_due_ns),
			     agents.prometheus_problem);
}

static void forget_logged(void)
{
	put_logged();
	free(text.text);
	text = (struct expected_text){ .text = NULL };
}

static void begin(void)
{
	if (text.text == NULL)
		forget_logged();
	now = BEGIN + 2 * SECOND;
	options = (struct hub_options){ .interval_ns = 5 * SECOND,
					.refresh_ns = 60 * SECOND,
					.timeout_ns = 3 * SECOND };
	answer_nothing();
	remove(said);
}

static void source(enum hub_source_kind kind, const char *value)
{
	options.sources[options.source_count++] =
		(struct hub_source_wanted){ .kind = kind, .value = value };
}

static bool is_running(void)
{
	bool has_child = agents.prometheus.child.begun_ns > 0;

	for (size_t i = 0; i < agents.source_count; i++)
		has_child |= agents.sources[i].child.begun_ns > 0;
	for (size_t i = 0; i < HUB_POLLS_MAX; i++)
		has_child |= agents.polls[i].child.begun_ns > 0;
	return has_child;
}

/* Until all children have ended; time does not pass. Returns when the next thing is due. */
static uint64_t run(void)
{
	uint64_t next_ns = hub_agents_run(&agents, now);

	while (is_running()) {
		poll(NULL, 0, 1);
		next_ns = hub_agents_run(&agents, now);
	}
	return next_ns;
}

static void start(void)
{
	hub_agents_init(&agents, &options, fetch, -1);
}

static void end(void)
{
	hub_agents_release(&agents);
}

/* ---- summaries -------------------------------------------------------------------------------- */

static void test_summaries(void)
{
#define JOB(members) HEAD "\"jobs\":[{" members "}]}"
	static const struct {
		const char *heading, *bytes;
	} cases[] = {
		{ "every field",
		  JOB("\"name\":\"llm\",\"world_size\":16,\"ranks\":1,\"processes\":9,"
		      "\"processes_alive\":8,\"operations\":4,\"stuck_ns\":5,\"wait_share\":0.5,"
		      "\"wait_ns\":7,\"verdicts\":[\"never_issued\",[\"mismatch\"],{\"a\":"
		      "\"mismatch\"},7,\"elsewhere\"],\"notices\":[\"slow\",\"new\",\"hang\"],"
		      "\"hang_after_ns\":8,\"owner\":0,\"new\":{\"ranks\":[7]}") },
		{ "the largest values",
		  JOB("\"world_size\":2147483647,\"ranks\":4096,\"processes\":4096,"
		      "\"processes_alive\":4096,\"wait_share\":1,\"owner\":4294967294,"
		      "\"hang_after_ns\":604800000000000") },
		{ "more than that",
		  JOB("\"world_size\":2147483648,\"ranks\":4097,\"processes\":4097,"
		      "\"processes_alive\":4294967296,\"wait_share\":1.001,\"owner\":4294967295,"
		      "\"hang_after_ns\":604800000000001") },
		{ "strange values",
		  JOB("\"world_size\":null,\"ranks\":-1,\"processes\":\"x\",\"processes_alive\":3,"
		      "\"wait_share\":-0.001,\"owner\":null,\"verdicts\":null,\"notices\":{}") },
		{ "no share", JOB("\"wait_share\":null,\"processes\":3,\"processes_alive\":3") },
		{ "two jobs, and more left out", HEAD
		  "\"jobs_left_out\":7,\"x\":[],\"jobs\":[{\"name\":\"a\"},{\"name\":\"b\"}]}" },
		{ "no list", HEAD "\"jobs\":7}" },
	};
	static const char *const wrong[] = {
		"",
		"7",
		"{}",
		HEAD "\"jobs\":[]",
		HEAD "\"jobs\":[]} 7",
		JOB("\"verdicts\":[\"mis"),
		HEAD "\"jobs\":[{\"notices\":[7,",
		"{\"format\":\"ringside-now\",\"version\":1}",
	};
	struct hub_summary summary;
	const char *why;

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		expected_put(&text, "=== %s\n", cases[i].heading);
		if (EXPECT(hub_summary_read(&summary, cases[i].bytes, strlen(cases[i].bytes),
					    &why) == OK)) {
			put_summary(&summary);
			hub_summary_release(&summary);
		}
	}
	for (size_t i = 0; i < ARRAY_LENGTH(wrong); i++) {
		EXPECT(hub_summary_read(&summary, wrong[i], strlen(wrong[i]), &why) == ERR_FORMAT);
		EXPECT(strcmp(why, "not a summary of an agent") == 0 && summary.rows == NULL);
	}
	EXPECT(hub_summary_read(&summary, "{\"version\":2,\"format\":\"ringside-summary\"}", 41,
				&why) == ERR_FORMAT);
	EXPECT(strcmp(why, "its version of the summary is not known") == 0);
	expected_compare(&text, "tests/unit/hub/expected/hub_summaries");
}

/* ---- sources ---------------------------------------------------------------------------------- */

static void test_discovery_files(void)
{
	static const struct {
		const char *bytes, *result;
	} cases[] = {
		{ "[]", "" },
		{ "[{}]", "" },
		{ "[{\"labels\":{\"a\":[1],\"__scheme__\":\"https\"},\"targets\":[\"a\"]}]",
		  "https://a " },
		{ "[{\"targets\":[\"a\",\"b:1\"],\"x\":[{}],\"labels\":{\"__scheme__\":\"http\"}}]",
		  "http://a:9749 http://b:1 " },
		{ "[{\"targets\":[\"a\"],\"labels\":{\"__scheme__\":\"https\"}},{\"targets\":["
		  "\"b\"]}]",
		  "https://a http://b:9749 " },
		{ "[{\"targets\":[7,[\"x\"],{\"y\":\"z\"},\"a\"],\"labels\":7}]",
		  "http://a:9749 " },
		{ "[{\"targets\":7},{\"targets\":[\"c\"]}]", "http://c:9749 " },
		{ "[{\"targets\":[\"c\"]}", NULL },
		{ "[{\"targets\":[\"c\"", NULL },
		{ "[{\"targets\":[\"c\"]}] 7", NULL },
		{ "{\"targets\":[\"c\"]}", NULL },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct fetch_targets found;
		char why[200], got[200] = "";
		enum status status;

		fetch_targets_init(&found);
		status = hub_agents_read_sd(&found, cases[i].bytes, strlen(cases[i].bytes), why,
					    sizeof(why));
		for (size_t t = 0; t < found.count; t++)
			text_append(got, sizeof(got), "%s ", found.list[t].url);
		fetch_targets_release(&found);
		if (cases[i].result)
			EXPECT_THAT(cases[i].bytes, status == OK && why[0] == '\0' &&
							    strcmp(got, cases[i].result) == 0);
		else
			EXPECT_THAT(cases[i].bytes,
				    status == ERR_FORMAT &&
					    strcmp(why, "not a JSON list of targets as Prometheus' "
							"service discovery has it") == 0);
	}
}

static void write_long(const char *path, size_t length)
{
	char *bytes = malloc(length);
	FILE *file = fopen(path, "we");

	memset(bytes, '#', length);
	memcpy(bytes, "long:1 ", 7);
	fwrite(bytes, 1, length, file);
	fclose(file);
	free(bytes);
}

static void test_lists(void)
{
	begin();
	write_text(path_of("list"), "b:1 # a comment\nc:1");
	write_text(path_of("1.json"), "[{\"targets\":[\"d:1\",\"a:1\"]}]");
	write_text(path_of("2.json"), "[{\"targets\":[\"e:1\"]}]");
	write_long(path_of("long"), (4 << 20) - 1);
	write_long(path_of("longer"), 4 << 20);
	source(HUB_SOURCE_LIST, "a:1,unix:/run/a.sock");
	source(HUB_SOURCE_LIST, "@");
	source(HUB_SOURCE_FILE_SD, "");
	source(HUB_SOURCE_LIST, "a b c:99999");
	source(HUB_SOURCE_LIST, "#");
	source(HUB_SOURCE_LIST, "@");
	source(HUB_SOURCE_LIST, "@");
	source(HUB_SOURCE_FILE_SD, "");
	{
		char at[3][100], two[100], none[100];

		text_format(at[0], sizeof(at[0]), "@%s", path_of("list"));
		text_format(at[1], sizeof(at[1]), "@%s", path_of("long"));
		text_format(at[2], sizeof(at[2]), "@%s", path_of("longer"));
		text_format(two, sizeof(two), "%s/?.json", directory);
		text_format(none, sizeof(none), "%s/*.none", directory);
		options.sources[1].value = at[0];
		options.sources[2].value = two;
		options.sources[5].value = at[1];
		options.sources[6].value = at[2];
		options.sources[7].value = none;
		start();
		run();
		put_agents("lists, files and files of service discovery");
		write_text(path_of("1.json"), "[]");
		write_text(path_of("2.json"), "{}");
		write_text(path_of("list"), "b:1 f:1");
		remove(path_of("long"));
		now += 60 * SECOND - 1;
		agents.list[0]->due_ns = UINT64_MAX;
		EXPECT_THAT("a source is not read again before its time",
			    (run(), agents.sources[1].found.count == 2));
		now++;
		run();
		put_agents("a minute later");
		write_text(path_of("2.json"), "[{\"targets\":[\"a:1:1\"]}]");
		now += 60 * SECOND;
		run();
		put_agents("a target that is none");
		end();
	}
	expected_compare(&text, "tests/unit/hub/expected/hub_lists");
}

static void test_children(void)
{
	begin();
	options.prometheus_auth = "/auth";
	source(HUB_SOURCE_HTTP_SD, "http://sd/x");
	source(HUB_SOURCE_SLURM, "");
	source(HUB_SOURCE_DNS, "both");
	source(HUB_SOURCE_DNS, "six:80");
	source(HUB_SOURCE_DNS, "none");
	source(HUB_SOURCE_DNS, "both:0");
	source(HUB_SOURCE_DNS, "_a._b.c");
	source(HUB_SOURCE_DNS, "_none._b.c");
	source(HUB_SOURCE_DNS, "_bad._b.c");
	write_script("sinfo", "test \"$*\" = '--noheader --Node --format %N' && echo slurm[1-2]");
	answer_with(0, 200, "[{\"targets\":[\"found:1\"]}]");
	start();
	/* Polls of what is found are another test. */
	EXPECT_THAT("children get 20 s",
		    hub_agents_run(&agents, now) == now + 20 * SECOND && agents.children == 9);
	while (agents.sources[0].child.begun_ns > 0 || agents.sources[1].child.begun_ns > 0 ||
	       agents.sources[2].child.begun_ns > 0 || agents.sources[3].child.begun_ns > 0 ||
	       agents.sources[4].child.begun_ns > 0 || agents.sources[5].child.begun_ns > 0 ||
	       agents.sources[6].child.begun_ns > 0 || agents.sources[7].child.begun_ns > 0 ||
	       agents.sources[8].child.begun_ns > 0) {
		for (size_t i = 0; i < agents.count; i++)
			agents.list[i]->due_ns = UINT64_MAX;
		poll(NULL, 0, 1);
		hub_agents_run(&agents, now);
	}
	while (is_running()) {
		poll(NULL, 0, 1);
		hub_agents_run(&agents, now);
	}
	expected_put(&text, "=== what children found\n");
	for (size_t s = 0; s < agents.source_count; s++) {
		expected_put(&text, "  %s %s:", hub_source_name(options.sources[s].kind),
			     options.sources[s].value);
		for (size_t i = 0; i < agents.sources[s].found.count; i++)
			expected_put(&text, " %s", agents.sources[s].found.list[i].name);
		expected_put(&text, " %s\n", agents.sources[s].problem);
	}
	end();
	remove(said);
	expected_compare(&text, "tests/unit/hub/expected/hub_children");
}

/* Service discovery over HTTP does not answer as it should. */
static void test_http_discovery(void)
{
	static const struct {
		int status;
		const char *body;
	} cases[] = {
		{ 200, "[{\"targets\":[\"a:1\"]}]" },
		{ 200, "[]" },
		{ 200, "<html>" },
		{ 404, "not found" },
		{ 0, "sd: connection refused" },
		{ -1, "" },
	};

	begin();
	source(HUB_SOURCE_HTTP_SD, "https://sd/x");
	options.ca_file = "/ca";
	options.is_insecure = true;
	options.timeout_ns = 1999 * 1000000;
	start();
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		answer_nothing();
		if (cases[i].status >= 0)
			answer_with(0, cases[i].status, cases[i].body);
		hub_agents_run(&agents, now);
		while (agents.sources[0].child.begun_ns > 0) {
			poll(NULL, 0, 1);
			hub_agents_run(&agents, now);
		}
		for (size_t a = 0; a < agents.count; a++)
			agents.list[a]->is_listed = false;
		while (is_running()) {
			poll(NULL, 0, 1);
			hub_agents_run(&agents, now);
		}
		if (i == 0)
			put_said();
		put_logged();
		remove(said);
		expected_put(&text, "%d %s: %zu found, next %s \"%s\"%s\n", cases[i].status,
			     cases[i].body, agents.sources[0].found.count,
			     since_begin(agents.sources[0].due_ns), agents.sources[0].problem,
			     agents.sources[0].has_found ? " has found" : "");
		now = agents.sources[0].due_ns;
	}
	end();
	write_script("fetch-fails", "echo 'no libcurl' >&2\nexit 2");
	begin();
	source(HUB_SOURCE_HTTP_SD, "https://sd/x");
	hub_agents_init(&agents, &options, path_of("fetch-fails"), -1);
	run();
	expected_put(&text, "it fails: \"%s\"%s\n", agents.sources[0].problem,
		     agents.sources[0].has_found ? " has found" : "");
	end();
	expected_compare(&text, "tests/unit/hub/expected/hub_http_sd");
}

/* ---- polling ---------------------------------------------------------------------------------- */

#define SUMMARY(job) HEAD "\"jobs\":[{\"name\":\"" job "\",\"processes\":8,\"processes_alive\":8}]}"

static void test_polls(void)
{
	uint64_t next_ns;

	begin();
	options.auth = "/auth";
	source(HUB_SOURCE_LIST, "n1:1,n2:1,n3:1,n4:1,unix:/run/a.sock,https://n6/x");
	start();
	put_agents("before");
	answer_with(2, 200, SUMMARY("two"));
	answer_with(0, 200, SUMMARY("zero"));
	answer_with(9, 200, SUMMARY("nobody"));
	answer_with(0, 200, SUMMARY("again"));
	answer_with(1, 401, "who?");
	answer_with(3, 404, "");
	answer_with(4, 0, "connection refused");
	answer_with(5, 0,
		    "a reason that is longer than the 119 letters which are kept of it: x123456789"
		    "x123456789x123456789x123456789x123456789x123456789");
	next_ns = run();
	put_agents("answers");
	expected_put(&text, "  next %s\n", since_begin(next_ns));
	EXPECT_EQUAL(agents.changes, 6 + 1);
	now = next_ns - 1;
	EXPECT_THAT("nobody is asked before the interval is over",
		    hub_agents_run(&agents, now) == now + 1 && agents.children == 1);
	answer_nothing();
	answer_with(0, 200, "garbage");
	answer_with(1, 200, "{\"format\":\"ringside-summary\",\"version\":2}");
	answer_with(2, 500, "broken");
	now = next_ns;
	run();
	put_agents("an interval later: no summary, and some without an answer");
	write_script("fetch-fails", "cat > /dev/null\necho 'it failed\nreally' >&2\nexit 1");
	agents.fetch = path_of("fetch-fails");
	for (int i = 0; i < 3; i++) {
		now = agents.list[5]->due_ns;
		run();
	}
	put_agents("those that do not answer are asked less often");
	agents.fetch = fetch;
	answer_nothing();
	for (unsigned int i = 0; i < 6; i++)
		answer_with(i, 200, SUMMARY("back"));
	now += 100 * SECOND;
	run();
	put_agents("they answer again");
	answer_nothing();
	now = agents.list[0]->due_ns;
	run();
	agents.list[0]->due_ns = agents.list[1]->due_ns = agents.list[2]->due_ns = UINT64_MAX;
	agents.list[3]->due_ns = agents.list[4]->due_ns = agents.list[5]->due_ns = UINT64_MAX;
	agents.sources[0].due_ns = UINT64_MAX;
	now = agents.list[0]->answered_ns + HUB_AGENT_KEEP_NS;
	next_ns = agents.changes;
	run();
	EXPECT_THAT("what a silent agent said is kept for ten minutes",
		    agents.list[0]->summary.count == 1 && agents.changes == next_ns);
	agents.list[5]->is_silent = false;
	now++;
	run();
	EXPECT_THAT("not longer", agents.list[0]->summary.count == 0 &&
					  agents.list[5]->summary.count == 1 &&
					  agents.changes == next_ns + 5);
	end();
	expected_compare(&text, "tests/unit/hub/expected/hub_polls");
}

/* The batches of many agents. */
static void test_batches(void)
{
	static const struct {
		const char *list;
		size_t count, batches;
	} cases[] = {
		{ "n[001-063]", 63, 1 },  { "n[001-064]", 64, 2 },  { "n[001-127]", 127, 2 },
		{ "n[001-128]", 128, 3 }, { "n[001-448]", 448, 8 }, { "n[001-900]", 900, 8 },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		uint64_t places = 0, wrong = 0, part_ns;

		begin();
		options.interval_ns = 8 * 3 * SECOND;
		part_ns = options.interval_ns / cases[i].batches;
		source(HUB_SOURCE_LIST, cases[i].list);
		start();
		now = 100 * options.interval_ns + (i % 2) * SECOND;
		run();
		for (size_t a = 0; a < agents.count; a++) {
			uint64_t due_ns = agents.list[a]->due_ns;

			places |= UINT64_C(1) << (due_ns % options.interval_ns / part_ns);
			wrong += due_ns <= now || due_ns > now + options.interval_ns ||
				 due_ns % options.interval_ns % part_ns != 0;
		}
		EXPECT_EQUAL(agents.count, cases[i].count);
		EXPECT_EQUAL(wrong, 0);
		EXPECT_EQUAL(places, (1 << cases[i].batches) - 1);
		remove(said);
		end();
	}
}

static bool is_asked_with(const char *words)
{
	char line[400] = "";
	FILE *file = fopen(said, "re");

	if (file && fgets(line, sizeof(line), file) == NULL)
		line[0] = '\0';
	if (file)
		fclose(file);
	remove(said);
	line[strcspn(line, "\n")] = '\0';
	if (strcmp(line, words) != 0)
		printf("# got %s\n", line);
	return strcmp(line, words) == 0;
}

/* How many are asked at a time, and how long that may take. */
static void test_many(void)
{
	begin();
	source(HUB_SOURCE_LIST, "n[001-256]");
	start();
	hub_agents_run(&agents, now);
	EXPECT(agents.polls[7].child.until_ns == now + (3 * 3 + 5) * SECOND);
	run();
	EXPECT(is_asked_with("--parallel 256 --timeout 3000 --limit 65536 --connect 2000 --total "
			     "16842752"));
	end();
	begin();
	options.timeout_ns = 2 * SECOND;
	source(HUB_SOURCE_LIST, "n[001-257]");
	start();
	run();
	EXPECT(is_asked_with("--parallel 256 --timeout 2000 --limit 65536 --connect 2000 --total "
			     "16908288"));
	end();
	begin();
	options.timeout_ns = 1500 * 1000000;
	source(HUB_SOURCE_LIST, "n[001-255]");
	start();
	hub_agents_run(&agents, now);
	EXPECT(agents.polls[7].child.until_ns == now + 8 * SECOND);
	run();
	EXPECT(is_asked_with("--parallel 255 --timeout 1500 --limit 65536 --connect 1500 --total "
			     "16777216"));
	end();
}

/* More than all batches together. */
static void test_all_busy(void)
{
	uint64_t next_ns;
	size_t asked = 0;

	write_script("fetch-sleeps", "exec sleep 600");
	begin();
	source(HUB_SOURCE_LIST, "n[0001-8193]");
	hub_agents_init(&agents, &options, path_of("fetch-sleeps"), -1);
	for (int i = 0; i < HUB_POLLS_MAX; i++) {
		next_ns = hub_agents_run(&agents, now + (uint64_t)i);
		EXPECT_EQUAL(next_ns, now + (uint64_t)i);
		EXPECT_EQUAL(agents.asked, (i + 1) * HUB_POLL_AGENTS);
	}
	for (int i = 0; i < HUB_POLLS_MAX; i++)
		asked += agents.polls[i].count;
	EXPECT_EQUAL(asked, 8192);
	next_ns = hub_agents_run(&agents, now + 8);
	EXPECT_THAT("the rest waits until a batch has ended, at the latest by its time limit",
		    agents.children == 8 && next_ns == now + (3 * 6 + 5) * SECOND);
	/* The first batch ends. */
	agents.polls[7].child.until_ns = 1;
	while (agents.children == 8)
		hub_agents_run(&agents, now + 8);
	EXPECT_EQUAL(agents.asked, 8193);
	EXPECT_EQUAL(agents.failed, 1024);
	EXPECT(strcmp(agents.list[0]->why, "it took too long") == 0);
	end();
}

/* Who is dropped when sources change. */
static void test_merging(void)
{
	begin();
	source(HUB_SOURCE_LIST, "a:1,b:1,c:1,d:1");
	source(HUB_SOURCE_LIST, "b:1,e:1,a:1");
	start();
	run();
	put_agents("two sources have the same agents");
	agents.sources[0].wanted.value = "d:1";
	agents.sources[1].wanted.value = "d:1,f:1";
	agents.list[0]->is_asked = true;
	agents.sources[0].due_ns = agents.sources[1].due_ns = now;
	hub_agents_run(&agents, now);
	agents.list[0]->is_asked = false;
	run();
	put_agents("one that is being asked is dropped later");
	agents.sources[0].due_ns = now;
	run();
	put_agents("then it is");
	end();
	expected_compare(&text, "tests/unit/hub/expected/hub_merging");
}

/* ---- Prometheus ------------------------------------------------------------------------------- */

#define RESULT(samples)                                                                      \
	"{\"x\":[{}],\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":" \
	"[" samples "]}}"
#define SAMPLE(labels, value) "{\"metric\":{" labels "},\"value\":[1.5,\"" value "\"]}"
#define NODE(job, instance) "\"nccl_job\":\"" job "\",\"instance\":\"" instance "\""

static void answer_queries(const char *instances)
{
	answer_nothing();
	answer_with(HUB_QUERY_AGENTS, 200, instances);
	answer_with(HUB_QUERY_PROCESSES, 200,
		    RESULT(SAMPLE(NODE("llm", "n1:1") ",\"state\":\"alive\",\"world_size\":\"16\"",
				  "8")));
	for (unsigned int i = HUB_QUERY_STUCK; i < HUB_QUERIES; i++)
		answer_with(i, 200, RESULT(""));
}

static void test_prometheus(void)
{
	uint64_t next_ns;

	begin();
	options.prometheus = "http://p:9090//";
	options.prometheus_auth = "/auth";
	source(HUB_SOURCE_LIST, "n9:1");
	start();
	answer_queries(RESULT(SAMPLE("\"instance\":\"n1:1\",\"version\":\"9\"", "1") "," SAMPLE(
		"\"instance\":\"n0:1\",\"version\":\"8\"", "1")));
	next_ns = hub_agents_run(&agents, now);
	EXPECT_THAT("it is asked at once",
		    next_ns == now + 1 && agents.children == 1 &&
			    agents.prometheus.child.until_ns == now + (2 * 3 + 5) * SECOND);
	hub_agents_run(&agents, now);
	next_ns = run();
	put_agents("instances that Prometheus scrapes");
	expected_put(&text, "  next %s\n", since_begin(next_ns));
	now = next_ns - 1;
	EXPECT(hub_agents_run(&agents, now) == next_ns && agents.children == 1);
	now = next_ns;
	answer_queries(RESULT(SAMPLE("\"instance\":\"n0:1\",\"version\":\"8\"", "1")));
	run();
	put_agents("one that is no longer scraped keeps its rows");
	now = agents.list[1]->answered_ns + HUB_AGENT_KEEP_NS - 1;
	run();
	EXPECT_THAT("for less than ten minutes", agents.count == 3);
	now = agents.list[1]->answered_ns + HUB_AGENT_KEEP_NS;
	agents.prometheus_due_ns = now;
	run();
	remove(said);
	put_agents("then it is dropped");
	now = agents.prometheus_due_ns;
	answer_nothing();
	answer_with(HUB_QUERY_AGENTS, 200, RESULT(""));
	answer_with(HUB_QUERY_STUCK, 401, "");
	run();
	remove(said);
	put_agents("most answers are missing");
	now = agents.prometheus_due_ns;
	answer_nothing();
	answer_with(HUB_QUERY_STUCK, 0, "p: connection refused");
	run();
	remove(said);
	put_agents("no answer");
	now = agents.prometheus_due_ns;
	answer_nothing();
	answer_with(HUB_QUERIES, 200, RESULT(""));
	answer_with(HUB_QUERY_STUCK, 200, "{}");
	run();
	put_agents("the third time, agents of other sources are asked themselves");
	agents.list[1]->due_ns = UINT64_MAX;
	now = agents.prometheus_due_ns;
	answer_queries(RESULT(SAMPLE("\"instance\":\"n9:1\",\"version\":\"8\"", "1")));
	run();
	remove(said);
	put_agents("it answers again");
	agents.prometheus_failures = 3;
	agents.list[1]->due_ns = now;
	hub_agents_run(&agents, now);
	agents.prometheus_failures = 0;
	for (int i = 0; i < 10000 && is_running(); i++) {
		poll(NULL, 0, 1);
		hub_agents_run(&agents, now);
	}
	EXPECT_THAT("a poll that has begun meanwhile is brought to its end",
		    !is_running() && !agents.list[1]->is_asked && agents.children == 10);
	agents.list[1]->due_ns = now;
	EXPECT_THAT("but no other one begins",
		    hub_agents_run(&agents, now) == now + 5 * SECOND && agents.children == 10);
	end();
	expected_compare(&text, "tests/unit/hub/expected/hub_prometheus");
}

/* What single answers of Prometheus become. */
static void test_samples(void)
{
	static const struct {
		enum hub_query query;
		const char *answer;
	} cases[] = {
		{ HUB_QUERY_AGENTS, RESULT(SAMPLE("\"version\":\"9\",\"instance\":\"n2\"", "1")) },
		{ HUB_QUERY_PROCESSES,
		  RESULT(SAMPLE(NODE("a", "n2:9749") ",\"state\":\"alive\",\"world_size\":\"8\"", "3") "," SAMPLE(
			  NODE("a", "n2:9749") ",\"state\":\"ended\",\"world_size\":\"32\"",
			  "2") "," SAMPLE(NODE("a", "n2:9749") ",\"state\":\"killed\",\"world_"
							       "size\":\"16\"",
					  "1") "," SAMPLE(NODE("a",
							       "n2:9749") ",\"state\":\"stopped\","
									  "\"world_size\":\"0\"",
							  "4") "," SAMPLE(NODE("b",
									       "n1:1") ",\"new\":["
										       "7],\"world_"
										       "size\":"
										       "\"214748364"
										       "8\"",
									  "5000")) },
		{ HUB_QUERY_STUCK,
		  RESULT(SAMPLE(NODE("a", "n2:9749"), "1.5") "," SAMPLE(
			  NODE("b", "n1:1"), "-3") "," SAMPLE(NODE("c", "n1:1"), "1e300")) },
		{ HUB_QUERY_HANG_AFTER, RESULT(SAMPLE(NODE("a", "n2:9749"), "604800") "," SAMPLE(
						NODE("b", "n1:1"), "604800.5")) },
		{ HUB_QUERY_VERDICTS,
		  RESULT(SAMPLE(NODE("a", "n2:9749") ",\"class\":\"never_issued\"", "1") "," SAMPLE(
			  NODE("a", "n2:9749") ",\"class\":\"elsewhere\"",
			  "1") "," SAMPLE(NODE("a", "n2:9749") ",\"class\":\"new\"", "1")) },
		{ HUB_QUERY_NOTICES,
		  RESULT(SAMPLE(NODE("a", "n2:9749") ",\"kind\":\"hang\"",
				"1") "," SAMPLE(NODE("a", "n2:9749") ",\"kind\":\"slow\"", "1")) },
		{ HUB_QUERY_WAIT, RESULT(SAMPLE(NODE("a", "n2:9749"),
						"2.25") "," SAMPLE(NODE("b", "n1:1"), "1e10")) },
		{ HUB_QUERY_SHARE,
		  RESULT(SAMPLE(NODE("a", "n2:9749"), "0.25") "," SAMPLE(
			  NODE("b", "n1:1"), "NaN") "," SAMPLE(NODE("c", "n1:1"),
							       "1.5") "," SAMPLE(NODE("d", "n1:1"),
										 "-1")) },
		{ HUB_QUERY_OPERATIONS,
		  RESULT("{\"value\":[1,[\"7\"],{\"x\":\"8\"},\"700\"],\"y\":[{}],\"metric\":"
			 "{" NODE("a", "n2:9749") "}},{\"value\":7,\"metric\":7}") },
		{ HUB_QUERY_STUCK,
		  RESULT(SAMPLE(NODE("a", "a b"), "1") "," SAMPLE(NODE("a", "a,b"), "1") "," SAMPLE(
			  NODE("a", "n0:1"), "4") "," SAMPLE(NODE("a", "n[5-6]:1"), "4")) },
	};
	static const char *const wrong[] = {
		"",
		"[]",
		"{}",
		"{\"status\":\"error\",\"data\":{\"result\":[]}}",
		"{\"status\":\"success\",\"data\":{\"result\":[]}} 7",
		"{\"status\":\"success\",\"data\":{\"result\":[]}",
		"{\"status\":\"success\",\"data\":{\"result\":[{\"value\":[1,",
	};
	static const char *const empty[] = {
		"{\"status\":\"success\"}",
		"{\"data\":7,\"status\":\"success\"}",
		"{\"data\":{\"result\":7,\"x\":[{}]},\"status\":\"success\"}",
	};
	char many[200];

	begin();
	start();
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++)
		EXPECT(hub_query_take(&agents, cases[i].query, cases[i].answer,
				      strlen(cases[i].answer), now) == OK);
	for (size_t i = 0; i < ARRAY_LENGTH(wrong); i++)
		EXPECT_THAT(wrong[i], hub_query_take(&agents, HUB_QUERY_WAIT, wrong[i],
						     strlen(wrong[i]), now) == ERR_FORMAT);
	for (size_t i = 0; i < ARRAY_LENGTH(empty); i++)
		EXPECT_THAT(empty[i], hub_query_take(&agents, HUB_QUERY_WAIT, empty[i],
						     strlen(empty[i]), now) == OK);
	put_agents("instances");
	for (size_t i = 0; i < agents.count; i++) {
		expected_put(&text, "  %s%s\n", agents.list[i]->target.name,
			     agents.list[i]->is_coming ? " coming" : "");
		put_summary(&agents.list[i]->coming);
	}
	for (int i = 0; i < 66; i++) {
		text_format(many, sizeof(many), RESULT(SAMPLE(NODE("%d", "n0:1"), "1")), i);
		hub_query_take(&agents, HUB_QUERY_WAIT, many, strlen(many), now);
	}
	EXPECT_THAT("64 jobs of an instance, the rest is counted",
		    agents.list[0]->coming.count == 64 && agents.list[0]->coming.left_out == 3);
	end();
	expected_compare(&text, "tests/unit/hub/expected/hub_samples");
}

int main(void)
{
	char path[8192];

	directory = scratch_make();
	dup2(open(path_of("log"), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600), STDERR_FILENO);
	text_format(fetch, sizeof(fetch), "%s/fetch", directory);
	text_format(said, sizeof(said), "%s/said", directory);
	text_format(answer, sizeof(answer), "%s/answer", directory);
	text_format(path, sizeof(path), "{ echo \"$*\"; cat; } >> %s\ncat %s", said, answer);
	write_script("fetch", path);
	text_format(path, sizeof(path), "%s:%s", directory, getenv("PATH"));
	setenv("PATH", path, 1);
	test_summaries();
	test_discovery_files();
	test_lists();
	test_children();
	test_http_discovery();
	test_polls();
	test_batches();
	test_many();
	test_all_busy();
	test_merging();
	test_prometheus();
	test_samples();
	return tap_done();
}
