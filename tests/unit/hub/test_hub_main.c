/*
 * The hub's requests and what it does when, with a libmicrohttpd and a clock that are played. The program is included,
 * because it is in no library.
 */
#include "tests/tap.h"

#if !__has_include(<microhttpd.h>) || !__has_include(<gnutls/gnutls.h>)

int main(void)
{
	return tap_skip_all("no headers of libmicrohttpd or GnuTLS");
}

#else

#include "tests/support/http_play.h"

#include "hub/hub_main.c"

#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "tests/support/expected_verdicts.h"
#include "tests/support/scratch.h"

#define BEGIN (1000 * SECOND_NS)

static struct hub *hub;
static struct hub_options options;
static struct hub_agent agent, *agent_list[1];
static struct hub_row rows[2];
static struct MHD_Connection connection;
static struct serve_connection from;
static struct expected_text text;
static int notified;

static void begin(const char *config)
{
	char why[400];

	http_play = (struct http_play){ .now_ns = BEGIN, .timeout_ms = UINT64_MAX };
	options = (struct hub_options){ .interval_ns = 5 * SECOND_NS,
					.hang_ns = 20 * SECOND_NS,
					.serving = { .host = "head" } };
	hub = calloc(1, sizeof(*hub));
	hub->state.options = &options;
	hub->state.hook.output = -1;
	serve_loop_init(&hub->loop);
	hub->loop.epoll = epoll_create1(EPOLL_CLOEXEC);
	EXPECT(serve_http_init(&hub->loop.http, hub->loop.epoll, config, hub_route, hub, why,
			       sizeof(why)) == OK);
	EXPECT(serve_hook_init(&hub->state.hook, NULL, -1) == NULL);
	hub->site.http = &hub->loop.http;
	hub->site.host = options.serving.host;
	hub_agents_init(&hub->state.agents, &options, "/bin/false", -1);
	hub_jobs_init(&hub->state.jobs, &options, "/bin/false");
	for (int i = 0; i < 2; i++)
		rows[i] = (struct hub_row){
			.job = "a", .owner = -1, .processes = 8, .alive = 8, .ranks = 8
		};
	rows[1].job[0] = 'b';
	agent = (struct hub_agent){ .target = { "n0:1", "http://n0:1", NULL },
				    .answered_ns = BEGIN,
				    .summary = { .rows = rows, .count = 2, .host = "n0" } };
	agent_list[0] = &agent;
	hub->state.agents.list = agent_list;
	hub->state.agents.count = 1;
	hub->state.agents.changes = 1;
	hub_jobs_update(&hub->state.jobs, &hub->state.agents, BEGIN);
	connection = (struct MHD_Connection){ .fd = -1, .slot = &from };
	from = (struct serve_connection){ .fd = -1,
					  .http = &hub->loop.http,
					  .checked = WEB_AUTH_LATER };
}

static void end(void)
{
	http_play_forget(&connection);
	free(from.upload);
	hub->state.agents.list = NULL;
	hub->state.agents.count = 0;
	close_all(hub);
	free(hub);
	EXPECT_EQUAL(http_play.responses, 0);
}

static void forget_request(void)
{
	http_play_forget(&connection);
	connection.suspended = 0;
	connection.request = NULL;
	memset(connection.headers, 0, sizeof(connection.headers));
	memset(connection.arguments, 0, sizeof(connection.arguments));
	free(from.upload);
	from.upload = NULL;
	from.is_answering = false;
}

static enum MHD_Result call(const char *method, const char *path, const char *part)
{
	size_t length = part ? strlen(part) : 0;

	return hub_route(hub, &connection, path, method, "HTTP/1.1", part, &length,
			 &connection.request);
}

static void put_answer(const char *heading, bool has_body)
{
	const struct MHD_Response *response = connection.response;

	expected_put(&text, "=== %s\n", heading);
	if (response == NULL) {
		expected_put(&text, "no answer%s\n", connection.suspended ? ", waits" : "");
		return;
	}
	expected_put(&text, "%u\n", connection.code);
	for (const char *line = response->headers; *line != '\0'; line += strcspn(line, "\n") + 1)
		if (strncmp(line, "ETag", 4) != 0)
			expected_put(&text, "%.*s\n", (int)strcspn(line, "\n"), line);
	if (has_body)
		expected_put(&text, "%.*s", (int)response->length, (const char *)response->bytes);
	else
		expected_put(&text, "%s\n", response->length > 0 ? "(a body)" : "(nothing)");
}

static void ask(const char *heading, const char *method, const char *path, bool has_body)
{
	if (call(method, path, NULL) == MHD_YES && connection.code == 0)
		call(method, path, NULL);
	put_answer(heading, has_body);
}

static void get(const char *heading, const char *path, bool has_body)
{
	forget_request();
	ask(heading, "GET", path, has_body);
}

static bool has_text(const char *wanted)
{
	return connection.response &&
	       memmem(connection.response->bytes, connection.response->length, wanted,
		      strlen(wanted)) != NULL;
}

static void test_paths(void)
{
	begin(NULL);
	get("metrics", "/metrics", false);
	EXPECT(has_text("\nringside_hub_jobs{state=\"running\"} 2\n"));
	agent.is_silent = true;
	get("health", "/healthz", false);
	EXPECT(has_text("{\"status\":\"ok\",\"version\":\"" RINGSIDE_VERSION
			"\",\"host\":\"head\",\"agents\":1,\"agents_silent\":1,\"jobs\":2}\n"));
	agent.is_silent = false;
	get("jobs", "/api/v1/jobs", false);
	EXPECT(has_text("\"key\":\"a\"") && has_text("\"key\":\"b\"") && !has_text("job_nodes") &&
	       has_text("\"time_ms\":1700001000000,"));
	forget_request();
	connection.arguments[0][0] = "job";
	connection.arguments[0][1] = "%62";
	ask("the nodes of a job", "GET", "/api/v1/jobs", false);
	EXPECT(has_text("\"job_nodes\":[{\"agent\":\"n0:1\"") && has_text("\"ranks\":8"));
	forget_request();
	connection.arguments[0][0] = "job";
	connection.arguments[0][1] = "%0";
	ask("a job that is none", "GET", "/api/v1/jobs", true);
	get("a runbook", "/runbooks/HangGpu.md", false);
	get("no runbook", "/runbooks/None.md", true);
	get("the page", "/", false);
	get("nothing", "/api/v1/now", true);
	forget_request();
	ask("HEAD", "HEAD", "/none", true);
	forget_request();
	ask("POST", "POST", "/metrics", true);
	forget_request();
	ask("PUT", "PUT", "/api/v1/alerts", true);
	forget_request();
	ask("GET of alerts", "GET", "/api/v1/alerts", true);
	forget_request();
	connection.headers[0][0] = "Content-Length";
	connection.headers[0][1] = "7";
	ask("a body", "GET", "/metrics", true);
	forget_request();
	connection.headers[0][0] = connection.headers[1][0] = "content-length";
	connection.headers[0][1] = connection.headers[1][1] = "7";
	ask("two lengths", "POST", "/api/v1/alerts", true);
	forget_request();
	EXPECT_EQUAL(call("GET", "/metrics", "x"), MHD_NO);
	connection.slot = NULL;
	EXPECT_EQUAL(call("GET", "/metrics", NULL), MHD_NO);
	connection.slot = &from;
	http_play.now_ns += 3;
	EXPECT(call("GET", "/metrics", NULL) == MHD_YES && connection.code == 0 &&
	       from.is_answering && from.since_ns == BEGIN + 3 && connection.request == hub);
	from.is_dropped = true;
	EXPECT_EQUAL(call("GET", "/metrics", NULL), MHD_NO);
	from.is_dropped = false;
	end();
	expected_compare(&text, "tests/unit/hub/expected/hub_paths");
}

#define ALERT(job) "{\"alerts\":[{\"status\":\"firing\",\"labels\":{\"nccl_job\":\"" job "\"}}]}"

static void post(const char *type, const char *body, size_t piece)
{
	char part[64];

	forget_request();
	connection.headers[0][0] = "Content-Type";
	connection.headers[0][1] = type;
	EXPECT_EQUAL(call("POST", "/api/v1/alerts", NULL), MHD_YES);
	if (connection.code != 0)
		return;
	for (size_t at = 0; body && at < strlen(body); at += piece) {
		text_format(part, sizeof(part), "%.*s", (int)piece, body + at);
		EXPECT_EQUAL(call("POST", "/api/v1/alerts", part), MHD_YES);
	}
	call("POST", "/api/v1/alerts", NULL);
}

static void test_alerts(void)
{
	static char large[HUB_ALERTS_BYTES + 1];
	size_t length;

	begin(NULL);
	http_play.now_ns += 5;
	post("application/json", ALERT("a"), 63);
	put_answer("an alert about a job", true);
	EXPECT(hub->state.alerts == 1 &&
	       hub->state.jobs.list[0]->alert_ns == BEGIN + 5 + 60 * SECOND_NS);
	post("Application/JSON; charset=utf-8", ALERT("b"), 7);
	put_answer("in pieces", true);
	EXPECT_EQUAL(hub->state.alerts, 2);
	post("application/json", ALERT("none"), 40);
	put_answer("about another one", true);
	EXPECT_EQUAL(hub->state.alerts, 2);
	post("application/json", "{\"alerts\":[]}", 40);
	put_answer("about nothing", true);
	post("application/json", "{", 40);
	put_answer("no webhook", true);
	post("application/json", NULL, 1);
	put_answer("no body", true);
	post("text/plain", ALERT("a"), 40);
	put_answer("another type", true);
	post("application/jso", ALERT("a"), 40);
	put_answer("almost", true);
	EXPECT(from.is_answering && from.since_ns == BEGIN + 5);
	forget_request();
	EXPECT_EQUAL(call("POST", "/api/v1/alerts", NULL), MHD_YES);
	put_answer("no type", true);
	forget_request();
	connection.headers[0][0] = "Content-Type";
	connection.headers[0][1] = "application/json";
	call("POST", "/api/v1/alerts", NULL);
	memset(large, ' ', sizeof(large));
	length = HUB_ALERTS_BYTES;
	EXPECT_THAT("256 KiB are taken",
		    hub_route(hub, &connection, "/api/v1/alerts", "POST", "", large, &length,
			      &connection.request) == MHD_YES &&
			    length == 0);
	EXPECT_THAT("not more", call("POST", "/api/v1/alerts", "x") == MHD_NO);
	forget_request();
	from.is_dropped = true;
	EXPECT_EQUAL(call("POST", "/api/v1/alerts", NULL), MHD_NO);
	from.is_dropped = false;
	end();
	expected_compare(&text, "tests/unit/hub/expected/hub_alerts");
}

/* Bodies of strangers are not kept. */
static void test_strangers(void)
{
	static char path[96];
	FILE *file;

	text_format(path, sizeof(path), "%s/web.yml", scratch_dir.path);
	file = fopen(path, "we");
	fputs("basic_auth_users:\n  a: "
	      "$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW\n",
	      file);
	fclose(file);
	begin(path);
	forget_request();
	connection.headers[0][0] = "Content-Type";
	connection.headers[0][1] = "application/json";
	call("POST", "/api/v1/alerts", NULL);
	EXPECT(call("POST", "/api/v1/alerts", ALERT("a")) == MHD_YES && from.upload == NULL);
	call("POST", "/api/v1/alerts", NULL);
	EXPECT(connection.code == 401 && hub->state.alerts == 0);
	forget_request();
	connection.headers[0][0] = "Content-Type";
	connection.headers[0][1] = "application/json";
	connection.headers[1][0] = "Authorization";
	connection.headers[1][1] = "Basic YTpVKlU=";
	call("POST", "/api/v1/alerts", NULL);
	hub->loop.http.checker.begun_ns = 1;
	{
		size_t length = 5;

		EXPECT_THAT("a body waits for its password",
			    hub_route(hub, &connection, "/api/v1/alerts", "POST", "", "12345",
				      &length, &connection.request) == MHD_YES &&
				    length == 5 && from.upload == NULL &&
				    connection.suspended == 1);
	}
	hub->loop.http.checker = (struct child){ .output = -1, .errors = -1 };
	connection.suspended = 0;
	from.waiting = NULL;
	from.checked = WEB_AUTH_LATER;
	get("without a password", "/metrics", true);
	EXPECT(connection.code == 401);
	end();
	free(text.text);
	text = (struct expected_text){ .text = NULL };
}

/* ---- the loop --------------------------------------------------------------------------------- */

/* What systemd is notified of; "" nothing. */
static const char *notification(void)
{
	static char bytes[200];
	ssize_t length = recv(notified, bytes, sizeof(bytes) - 1, MSG_DONTWAIT);

	bytes[length > 0 ? length : 0] = '\0';
	return bytes;
}

static void listen_as_systemd(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	text_format(address.sun_path, sizeof(address.sun_path), "%s/notify", scratch_dir.path);
	notified = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	EXPECT(bind(notified, (struct sockaddr *)&address, sizeof(address)) == 0);
	setenv("NOTIFY_SOCKET", address.sun_path, 1);
}

static void find_hang(struct hub_job *job)
{
	struct child child = { .begun_ns = BEGIN, .code = 1 };
	static char bytes[] = "{\"format\":\"ringside-doctor\",\"verdicts\":[{\"class\":"
			      "\"never_issued\",\"severity\":\"error\",\"title\":\"t\"}]}";

	child.bytes = bytes;
	child.used = strlen(bytes);
	hub_jobs_judged(&hub->state.jobs, job, &child, BEGIN, BEGIN);
	job->judge_ns = UINT64_MAX;
}

static void test_due(void)
{
	struct hub_jobs *jobs;

	begin(NULL);
	jobs = &hub->state.jobs;
	jobs->changes = hub->state.agents.changes;
	listen_as_systemd();
	jobs->list[0]->judge_ns = jobs->list[1]->judge_ns = UINT64_MAX;
	EXPECT_EQUAL(do_due(hub, BEGIN), BEGIN + SECOND_NS);
	EXPECT(hub->publish_ns == BEGIN + SECOND_NS &&
	       strcmp(notification(), "STATUS=2 jobs, 0 verdicts") == 0);
	EXPECT_EQUAL(do_due(hub, BEGIN + 10), BEGIN + SECOND_NS);
	EXPECT_THAT("nothing new, no notification", notification()[0] == '\0');
	find_hang(jobs->list[1]);
	EXPECT_EQUAL(do_due(hub, BEGIN + 20), BEGIN + 20 + SECOND_NS);
	EXPECT_THAT("a judgement is passed on at once",
		    strcmp(notification(), "STATUS=2 jobs, 1 verdicts") == 0 &&
			    hub->published == 1 && hub->state.verdicts.count == 1 &&
			    hub->state.verdicts.totals[VERDICT_NEVER_ISSUED] == 1);
	verdicts_release(&jobs->list[1]->found);
	EXPECT_EQUAL(do_due(hub, BEGIN + 20 + SECOND_NS - 1), BEGIN + 20 + SECOND_NS);
	EXPECT_EQUAL(hub->state.verdicts.count, 1);
	EXPECT_EQUAL(do_due(hub, BEGIN + 20 + SECOND_NS), BEGIN + 20 + 2 * SECOND_NS);
	EXPECT_THAT("the rest every second",
		    strcmp(notification(), "STATUS=2 jobs, 0 verdicts") == 0);
	jobs->list[0]->judge_ns = BEGIN + 30 + SECOND_NS;
	EXPECT_EQUAL(do_due(hub, BEGIN + 25 + SECOND_NS), BEGIN + 30 + SECOND_NS);
	jobs->list[0]->judge_ns = UINT64_MAX;
	hub->loop.must_reload = true;
	do_due(hub, BEGIN + 26 + SECOND_NS);
	EXPECT(!hub->loop.must_reload);
	hub->publish_ns = UINT64_MAX;
	options.hang_ns = 1;
	EXPECT_THAT("nothing is due", do_due(hub, BEGIN + 27 + SECOND_NS) == UINT64_MAX);
	end();
}

static void test_programs(void)
{
	begin(NULL);
	EXPECT_THAT("the programs are not beside this test",
		    find_programs(hub) == CLI_EXIT_UNKNOWN);
	EXPECT(open_all(hub) == CLI_EXIT_UNKNOWN);
	end();
	EXPECT_EQUAL(hub_main(2, (char *[]){ "hub", "--none", NULL }), CLI_EXIT_USAGE);
	EXPECT_EQUAL(hub_main(3, (char *[]){ "hub", "--agents", "n0:1", NULL }), CLI_EXIT_UNKNOWN);
}

/* The hook's output is an event. */
static void test_event(void)
{
	begin(NULL);
	hub->state.hook.output = -1;
	take_event(hub, 5, BEGIN);
	EXPECT(hub->state.hook.runs == 0);
	end();
}

int main(void)
{
	scratch_make();
	test_paths();
	test_alerts();
	test_strangers();
	test_due();
	test_programs();
	test_event();
	return tap_done();
}

#endif
