/*
 * Requests and their whole answers, with a libmicrohttpd and a clock that are played. What the agent answers is included,
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

#include "serve/serve_answer.c"
#include "agent/agent_route.c"

#include <poll.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/attributes.h"
#include "tests/support/expected_verdicts.h"
#include "tests/support/scratch.h"

#define BEGIN (1000 * SECOND_NS)

static struct serve_http http;
static struct agent_look look;
static struct agent_route route;
static struct MHD_Connection connection;
static struct serve_connection from;
static struct expected_text text;
static char why[400];

/* A scan of a directory without processes, at the played time. */
static void scan(void)
{
	uint64_t number = look.number;

	look.next_ns = http_play.now_ns;
	while (look.number == number && agent_look_step(&look, http_play.now_ns))
		continue;
}

static void begin(const char *config)
{
	static struct watch_settings settings;
	static const struct live_limits limits = { .hang_ns = 20 * SECOND_NS,
						   .lag_ns = 5 * SECOND_NS };

	settings = (struct watch_settings){ .directory = scratch_dir.path };
	http_play = (struct http_play){ .now_ns = BEGIN, .timeout_ms = UINT64_MAX };
	EXPECT(serve_http_init(&http, epoll_create1(EPOLL_CLOEXEC), config, agent_route, &route,
			       why, sizeof(why)) == OK);
	EXPECT(agent_look_init(&look, &settings, &limits) == OK);
	look.watch.next_processes_ns = UINT64_MAX;
	scan();
	route = (struct agent_route){ .site = { .http = &http, .host = "node7" }, .look = &look };
	agent_bodies_init(&route.bodies, &look, "node7", -1);
	route.bodies.has_turn = true;
	connection = (struct MHD_Connection){ .fd = -1, .slot = &from };
	from = (struct serve_connection){ .fd = -1, .http = &http, .checked = WEB_AUTH_LATER };
}

static void end(void)
{
	http_play_forget(&connection);
	close(http.loop);
	http.loop = -1;
	serve_http_release(&http);
	agent_bodies_release(&route.bodies);
	agent_look_release(&look);
	EXPECT_EQUAL(route.bodies.held, 0);
	EXPECT_EQUAL(route.bodies.held_snapshots, 0);
	EXPECT_EQUAL(http_play.responses, 0);
}

/* A new request on the same connection. */
static void forget_request(void)
{
	http_play_forget(&connection);
	connection.suspended = 0;
	connection.request = NULL;
	memset(connection.headers, 0, sizeof(connection.headers));
	memset(connection.arguments, 0, sizeof(connection.arguments));
	from.waiting = NULL;
	from.is_for_body = from.has_waited = from.has_failed = false;
	from.is_answering = false;
}

static enum MHD_Result call(const char *method, const char *path)
{
	size_t none = 0;

	return agent_route(&route, &connection, path, method, "HTTP/1.1", NULL, &none,
			   &connection.request);
}

/* Asks as libmicrohttpd does, and keeps the answer in `connection`. */
static void ask(const char *method, const char *path)
{
	if (call(method, path) == MHD_YES && connection.code == 0)
		call(method, path);
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

static void get(const char *heading, const char *path, const char *name, const char *value,
		bool has_body)
{
	forget_request();
	if (strchr(path, '?')) {
		static char parts[400];

		text_copy(parts, sizeof(parts), path);
		*strchr(parts, '?') = '\0';
		connection.arguments[0][0] = name;
		connection.arguments[0][1] = value;
		route.bodies.has_turn = true;
		ask("GET", parts);
	} else {
		connection.headers[0][0] = name;
		connection.headers[0][1] = value;
		route.bodies.has_turn = true;
		ask("GET", path);
	}
	put_answer(heading, has_body);
}

/* ---- answers ---------------------------------------------------------------------------------- */

static void test_paths(void)
{
	static char long_name[LIVE_JSON_KEY + 10];

	begin(NULL);
	get("metrics", "/metrics", NULL, NULL, false);
	get("metrics in OpenMetrics", "/metrics", "Accept", "application/openmetrics-text", false);
	get("metrics, compressed", "/metrics", "Accept-Encoding", "gzip", false);
	get("health", "/healthz", NULL, NULL, false);
	EXPECT(strstr(connection.response->bytes,
		      "{\"status\":\"ok\",\"version\":\"" RINGSIDE_VERSION
		      "\",\"host\":\"node7\",\"processes\":0,\"notices\":0,\"looks\":1,"
		      "\"looks_failed\":0,\"refused_files\":0,\"connections\":0}\n") != NULL);
	look.status = ERR_SYSTEM;
	get("health, if scans fail", "/healthz", NULL, NULL, false);
	EXPECT(strstr(connection.response->bytes, "{\"status\":\"failing\",") != NULL);
	look.status = OK;
	get("now", "/api/v1/now", NULL, NULL, false);
	get("summary", "/api/v1/summary", NULL, NULL, false);
	get("history", "/api/v1/history", NULL, NULL, false);
	get("history after a time", "/api/v1/history?", "after", "9223372036854775807", false);
	get("history after no time", "/api/v1/history?", "after", "-1", true);
	memset(long_name, 'x', sizeof(long_name) - 1);
	get("history of a long name", "/api/v1/history?", "members", long_name, false);
	get("snapshot of too many operations", "/api/v1/snapshot?", "operations", "20001", true);
	get("snapshot of a wrong number", "/api/v1/snapshot?", "operations", "x", true);
	get("snapshot of a wrong job", "/api/v1/snapshot?", "job", "%0", true);
	get("a runbook", "/runbooks/HangGpu.md", NULL, NULL, false);
	get("no runbook", "/runbooks/None.md", NULL, NULL, true);
	get("the page", "/", NULL, NULL, false);
	get("the page, known by another name", "/", "If-None-Match", "\"other\"", false);
	get("the page, whatever is known", "/", "If-None-Match", "*", false);
	{
		char known[80];

		text_format(known, sizeof(known), "\"other\", %s", live_page_file("/")->etag);
		get("the page, known", "/", "If-None-Match", known, false);
	}
	get("no such path", "/metrics/", NULL, NULL, true);
	get("no such path of the API", "/api/v1", NULL, NULL, true);
	http_play.fails_to_respond = true;
	forget_request();
	EXPECT(call("GET", "/") == MHD_YES && call("GET", "/") == MHD_NO);
	EXPECT(call("GET", "/none") == MHD_NO);
	look.number++;
	route.bodies.has_turn = true;
	EXPECT(call("GET", "/api/v1/now") == MHD_NO);
	http_play.fails_to_respond = false;
	end();
	expected_compare(&text, "tests/unit/agent/expected/agent_paths");
}

static void test_methods(void)
{
	static char some[] = "x";
	size_t one = 1;

	begin(NULL);
	forget_request();
	ask("HEAD", "/none");
	put_answer("HEAD", true);
	forget_request();
	ask("POST", "/metrics");
	put_answer("POST", true);
	EXPECT(!from.is_answering);
	forget_request();
	ask("get", "/metrics");
	put_answer("a method in lower case", true);
	get("a body", "/none", "Content-Length", "1", true);
	get("an empty body", "/none", "Content-Length", "0", true);
	forget_request();
	connection.headers[0][0] = connection.headers[1][0] = "Content-Length";
	connection.headers[0][1] = "0";
	connection.headers[1][1] = "52";
	ask("GET", "/metrics");
	put_answer("two lengths", true);
	forget_request();
	connection.headers[0][0] = "Transfer-Encoding";
	connection.headers[0][1] = "chunked";
	connection.headers[1][0] = "Content-Length";
	connection.headers[1][1] = "0";
	ask("GET", "/metrics");
	put_answer("a length beside pieces", true);
	get("a body of unknown length", "/none", "Transfer-Encoding", "chunked", true);
	forget_request();
	EXPECT(agent_route(&route, &connection, "/", "GET", "", some, &one, &connection.request) ==
	       MHD_NO);
	connection.slot = NULL;
	EXPECT(call("GET", "/") == MHD_NO);
	connection.slot = &from;
	from.is_dropped = true;
	EXPECT(call("GET", "/") == MHD_YES && call("GET", "/") == MHD_NO);
	from.is_dropped = false;
	forget_request();
	http_play.now_ns++;
	EXPECT(call("GET", "/") == MHD_YES && from.is_answering && from.since_ns == BEGIN + 1 &&
	       connection.request == &route && connection.code == 0);
	get("another host, from a loopback address or not", "/none", "Host", "evil.example", true);
	from.checks_host = true;
	get("another host", "/none", "Host", "evil.example", true);
	get("this host", "/none", "Host", "node7:80", true);
	get("no host", "/none", NULL, NULL, true);
	end();
	expected_compare(&text, "tests/unit/agent/expected/agent_methods");
}

static void write_config(const char *config)
{
	static char path[96];
	FILE *file;

	text_format(path, sizeof(path), "%s/web.yml", scratch_dir.path);
	file = fopen(path, "we");
	fputs(config, file);
	fclose(file);
	begin(path);
}

static void test_passwords(void)
{
	static const char right[] = "Basic YTpVKlU=", wrong[] = "Basic YTp3cm9uZw==";
	struct serve_connection *waiting = &http.connections[0];
	struct MHD_Connection other = { .fd = -1 };

	write_config("basic_auth_users:\n  a: "
		     "$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW\n"
		     "http_server_config:\n  headers:\n    Strict-Transport-Security: max-age=7\n");
	get("no password", "/none", NULL, NULL, true);
	EXPECT(from.wrong == 1 && from.checked == WEB_AUTH_LATER);
	/* Somebody else is before. */
	*waiting = (struct serve_connection){ .fd = 0, .http = &http, .waiting = &other };
	get("a password that waits for its turn", "/none", "Authorization", right, true);
	EXPECT(from.waiting == &connection && connection.suspended == 1);
	waiting->fd = -1;
	get("the right password", "/none", "Authorization", right, true);
	EXPECT(connection.suspended == 1 && http.checker.begun_ns != 0 && http.checked == &from);
	from.fd = 7;
	while (http.checker.begun_ns != 0) {
		serve_http_run(&http, http_play.now_ns);
		poll(NULL, 0, 1);
	}
	from.fd = -1;
	EXPECT(from.checked == WEB_AUTH_GOOD && connection.suspended == 0);
	call("GET", "/none");
	put_answer("its answer", true);
	EXPECT(from.wrong == 1 && from.checked == WEB_AUTH_LATER);
	get("it is known now", "/none", "Authorization", right, true);
	http_play.now_ns += 100 * SECOND_NS;
	scan();
	get("a wrong password", "/none", "Authorization", wrong, true);
	while (http.checker.begun_ns != 0) {
		serve_http_run(&http, http_play.now_ns);
		poll(NULL, 0, 1);
	}
	call("GET", "/none");
	put_answer("its answer", true);
	EXPECT(from.wrong == 2);
	end();
	expected_compare(&text, "tests/unit/agent/expected/agent_passwords");
}

/* ---- bodies ----------------------------------------------------------------------------------- */

static void request(const char *path)
{
	forget_request();
	ask("GET", path);
}

static void test_bodies(void)
{
	struct agent_bodies *bodies = &route.bodies;
	struct MHD_Response *first;
	size_t held;

	begin(NULL);
	request("/api/v1/now");
	first = connection.response;
	held = bodies->held;
	EXPECT(connection.code == 200 && held == first->length && !bodies->has_turn);
	request("/api/v1/now");
	EXPECT_THAT("a body is made once per scan",
		    connection.response == first && bodies->held == held && first->references == 2);
	request("/api/v1/summary");
	EXPECT_THAT("one is made in a round", connection.code == 0 && connection.suspended == 1 &&
						      bodies->is_wanted && from.is_for_body);
	EXPECT_EQUAL(agent_bodies_run(bodies, &http, true, BEGIN), BEGIN);
	EXPECT(bodies->is_wanted && !bodies->has_turn);
	look.is_scanning = true;
	EXPECT_EQUAL(agent_bodies_run(bodies, &http, false, BEGIN), BEGIN);
	EXPECT(!bodies->has_turn);
	look.is_scanning = false;
	EXPECT_EQUAL(agent_bodies_run(bodies, &http, false, BEGIN), UINT64_MAX);
	EXPECT(bodies->has_turn && !bodies->is_wanted);
	request("/api/v1/summary");
	EXPECT(connection.code == 200 && bodies->held == held + connection.response->length);
	agent_bodies_age(bodies);
	EXPECT_THAT("bodies of this scan are kept", http_play.responses == 2);
	look.number++;
	agent_bodies_age(bodies);
	EXPECT_THAT("older ones are not, unless they are being read",
		    http_play.responses == 1 && bodies->held == connection.response->length);
	http_play_forget(&connection);
	EXPECT(http_play.responses == 0 && bodies->held == 0);
	bodies->has_turn = true;
	request("/api/v1/now");
	EXPECT(http_play.responses == 1);
	agent_bodies_forget(bodies);
	EXPECT(http_play.responses == 1 && bodies->made[AGENT_BODY_NOW][0].response == NULL);
	bodies->held += AGENT_BODY_BYTES_MAX - bodies->held;
	bodies->has_turn = true;
	request("/api/v1/now");
	EXPECT_THAT("48 MiB may be held", connection.code == 200);
	agent_bodies_forget(bodies);
	http_play_forget(&connection);
	bodies->held = AGENT_BODY_BYTES_MAX + 1;
	bodies->has_turn = true;
	request("/api/v1/now");
	EXPECT(connection.code == 503 && strstr(connection.response->headers, "Retry-After: 1\n"));
	bodies->held = 0;
	bodies->held_snapshots = AGENT_BODY_SNAPSHOT_BYTES_MAX + 1;
	request("/api/v1/now");
	EXPECT_THAT("those of snapshots are counted apart", connection.code == 200);
	bodies->has_turn = true;
	request("/api/v1/snapshot");
	EXPECT(connection.code == 503);
	bodies->held_snapshots = 0;
	end();
}

/* Histories differ by what is asked. */
static void test_history(void)
{
	struct agent_bodies *bodies = &route.bodies;
	struct MHD_Response *first;

	begin(NULL);
	request("/api/v1/history");
	first = connection.response;
	EXPECT(first != NULL);
	forget_request();
	connection.arguments[0][0] = "after";
	connection.arguments[0][1] = "0";
	ask("GET", "/api/v1/history");
	EXPECT_THAT("the same history", connection.response == first);
	forget_request();
	connection.arguments[0][0] = "after";
	connection.arguments[0][1] = "1";
	ask("GET", "/api/v1/history");
	EXPECT_THAT("another one", connection.suspended == 1);
	forget_request();
	connection.arguments[0][0] = "members";
	connection.arguments[0][1] = "x";
	ask("GET", "/api/v1/history");
	EXPECT(connection.suspended == 1);
	bodies->budgets[AGENT_BODY_HISTORY] =
		(struct agent_budget){ .spent_ns = 3600 * SECOND_NS, .since_ns = BEGIN };
	bodies->has_turn = true;
	request("/api/v1/history");
	EXPECT_THAT("one that is there costs nothing", connection.code == 200);
	look.number++;
	request("/api/v1/history");
	EXPECT_THAT("a new one has a budget", connection.code == 503);
	request("/api/v1/now");
	EXPECT_THAT("of its own", connection.code == 200);
	end();
}

/* Requests wait for a scan that is new enough. */
static void test_fresh(void)
{
	begin(NULL);
	http_play.now_ns += 10 * SECOND_NS;
	request("/api/v1/now");
	EXPECT(connection.suspended == 1 && from.is_for_body && route.bodies.is_wanted &&
	       look.next_ns == http_play.now_ns);
	from.has_waited = true;
	call("GET", "/api/v1/now");
	EXPECT_THAT("what they waited for is good enough", connection.code == 200);
	request("/healthz");
	EXPECT(connection.suspended == 1 && connection.code == 0);
	from.has_waited = true;
	call("GET", "/healthz");
	EXPECT(connection.code == 200);
	request("/none");
	EXPECT(connection.code == 404);
	end();
}

/* ---- snapshots -------------------------------------------------------------------------------- */

static void wait_for_maker(void)
{
	bool is_due = true;
	uint64_t next_ns;

	while (route.bodies.maker.begun_ns != 0) {
		next_ns = agent_bodies_run(&route.bodies, &http, false, BEGIN + 5);
		is_due &= next_ns == BEGIN + 5 + (route.bodies.maker.begun_ns ? 100 * MS_NS : 0);
		poll(NULL, 0, 1);
	}
	EXPECT_THAT("it is looked at ten times per second", is_due);
}

static void test_snapshots(void)
{
	struct agent_bodies *bodies = &route.bodies;
	struct MHD_Response *made;

	begin(NULL);
	forget_request();
	connection.arguments[0][0] = "operations";
	connection.arguments[0][1] = "513";
	connection.arguments[1][0] = "job";
	connection.arguments[1][1] = "a%20b";
	ask("GET", "/api/v1/snapshot");
	EXPECT(connection.suspended == 1 && bodies->maker.begun_ns == BEGIN &&
	       bodies->maker.until_ns == BEGIN + 20 * SECOND_NS && !bodies->makes_gzip &&
	       bodies->making.snapshot.operations == 1024 && bodies->making.snapshot.has_job &&
	       !bodies->making.snapshot.has_environment &&
	       strcmp(bodies->making.snapshot.job, "a b") == 0 && !bodies->has_turn);
	bodies->has_turn = true;
	request("/api/v1/snapshot");
	EXPECT_THAT("another one waits for it", connection.suspended == 1 &&
							bodies->making.snapshot.has_job &&
							!bodies->is_wanted);
	wait_for_maker();
	EXPECT(bodies->held_snapshots > 0 && bodies->held == 0);
	forget_request();
	connection.arguments[0][0] = "operations";
	connection.arguments[0][1] = "1024";
	connection.arguments[1][0] = "job";
	connection.arguments[1][1] = "a b";
	ask("GET", "/api/v1/snapshot");
	made = connection.response;
	EXPECT(connection.code == 200 && made->length == bodies->held_snapshots &&
	       made->length % 512 == 0 &&
	       strstr(made->headers, "Content-Type: application/x-tar\n") != NULL &&
	       strstr(made->headers, "Content-Encoding") == NULL);
	forget_request();
	connection.arguments[0][0] = "job";
	connection.arguments[0][1] = "a b";
	bodies->has_turn = true;
	ask("GET", "/api/v1/snapshot");
	EXPECT_THAT("other operations are another snapshot", connection.suspended == 1);
	wait_for_maker();
	from.is_private = true;
	bodies->has_turn = true;
	ask("GET", "/api/v1/snapshot");
	EXPECT_THAT("so is one with environments, for the user of the agent",
		    bodies->maker.begun_ns != 0 && bodies->making.snapshot.has_environment);
	wait_for_maker();
	from.is_private = false;
	http.config.user_count = 1;
	forget_request();
	EXPECT(may_see_environment(&route, &connection));
	http.config.user_count = 0;
	http.config.client_auth = WEB_CLIENT_REQUIRE_ANY;
	EXPECT(!may_see_environment(&route, &connection));
	http.config.client_auth = WEB_CLIENT_REQUIRE;
	EXPECT(may_see_environment(&route, &connection));
	http.config.client_auth = WEB_CLIENT_NONE;
	bodies->has_turn = true;
	forget_request();
	connection.headers[0][0] = "Accept-Encoding";
	connection.headers[0][1] = "gzip";
	ask("GET", "/api/v1/snapshot");
	EXPECT(bodies->makes_gzip && bodies->maker.begun_ns != 0);
	wait_for_maker();
	call("GET", "/api/v1/snapshot");
	EXPECT(connection.code == 200 && connection.response->length > 20 &&
	       memcmp(connection.response->bytes, "\x1f\x8b", 2) == 0 &&
	       strstr(connection.response->headers, "Content-Encoding: gzip\n") != NULL);
	EXPECT_THAT("it costs time of its budget",
		    bodies->budgets[AGENT_BODY_SNAPSHOT].spent_ns > 0);
	end();
}

static void test_failed_snapshot(void)
{
	struct agent_bodies *bodies = &route.bodies;

	begin(NULL);
	request("/api/v1/snapshot");
	EXPECT(connection.suspended == 1 && bodies->maker.pid > 0);
	/* It has ended without success, and with some output, or with success, and without output. */
	for (int code = 0; code < 2; code++) {
		child_release(&bodies->maker);
		bodies->maker = (struct child){ .begun_ns = BEGIN,
						.output = -1,
						.errors = -1,
						.code = code,
						.bytes = calloc(1, 8),
						.used = code == 0 ? 0 : 7 };
		EXPECT_EQUAL(agent_bodies_run(bodies, &http, false, BEGIN + 5), BEGIN + 5);
		EXPECT(bodies->maker.begun_ns == 0 &&
		       bodies->made[AGENT_BODY_SNAPSHOT][0].response == NULL &&
		       bodies->held_snapshots == 0);
	}
	/* The connection is not in the table of this test. */
	from.has_waited = from.has_failed = true;
	connection.suspended = 0;
	call("GET", "/api/v1/snapshot");
	EXPECT(connection.code == 503 && bodies->maker.begun_ns == 0);
	request("/none");
	from.has_failed = true;
	bodies->has_turn = true;
	http_play_forget(&connection);
	call("GET", "/api/v1/now");
	EXPECT_THAT("other bodies do not fail with it", connection.code == 200);
	end();
}

int main(void)
{
	scratch_make();
	test_paths();
	test_methods();
	test_passwords();
	test_bodies();
	test_history();
	test_fresh();
	test_snapshots();
	test_failed_snapshot();
	return tap_done();
}

#endif
