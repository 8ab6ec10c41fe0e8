/*
 * The HTTP server's connections: limits, deadlines, turns and new configurations, with a libmicrohttpd and a clock that
 * are played. The part of the agent that calls libmicrohttpd is included, because it is in no library.
 */
#include "tests/tap.h"

#if !__has_include(<microhttpd.h>) || !__has_include(<gnutls/gnutls.h>)

int main(void)
{
	return tap_skip_all("no headers of libmicrohttpd or GnuTLS");
}

#else

#define HTTP_PLAY_LIBRARY
#include "tests/support/http_play.h"

#include "serve/serve_http.c"

#include <arpa/inet.h>
#include <gnutls/x509.h>
#include <poll.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/un.h>

#include "common/attributes.h"
#include "tests/support/scratch.h"

#define SECOND SECOND_NS
#define BEGIN (1000 * SECOND)

static struct serve_http http;
static struct serve_listener listener;
static int loop;
static char why[400];

/* The handler is not called by the library that is played. */
static enum MHD_Result answer(void *context, struct MHD_Connection *connection, const char *path,
			      const char *method, const char *version, const char *upload,
			      size_t *upload_bytes, void **request)
{
	(void)context, (void)connection, (void)path, (void)method;
	(void)version, (void)upload, (void)upload_bytes, (void)request;
	return MHD_NO;
}

static void begin(const char *config)
{
	http_play = (struct http_play){ .now_ns = BEGIN, .timeout_ms = UINT64_MAX };
	loop = epoll_create1(EPOLL_CLOEXEC);
	listener = (struct serve_listener){ .fd = -1 };
	EXPECT(serve_http_init(&http, loop, config, answer, &http, why, sizeof(why)) == OK);
}

static void end(void)
{
	serve_http_release(&http);
	close(loop);
	EXPECT_EQUAL(http_play.daemons, 0);
	EXPECT_EQUAL(http_play.responses, 0);
}

/* Somebody connects from 10.0.0.`host`, at this time; returns the client's end. -1: refused. */
static int connect_from(int host, uint64_t now_ns)
{
	struct sockaddr_storage from = { 0 };
	struct sockaddr_in *v4 = (struct sockaddr_in *)&from;
	uint64_t before = http.accepted;
	int ends[2];

	v4->sin_family = AF_INET;
	v4->sin_addr.s_addr = htonl(0x0a000000 + (uint32_t)host);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == -1)
		abort();
	connection_take(&http, &listener, ends[0], &from, sizeof(*v4), now_ns);
	if (http.accepted > before)
		return ends[1];
	close(ends[1]);
	return -1;
}

static struct MHD_Connection *of(const struct serve_connection *ours)
{
	return http_play_find(http.server.daemon, ours);
}

/* Its request is answered. */
static void serve(struct serve_connection *ours, uint64_t now_ns)
{
	http_play.now_ns = now_ns;
	http_play_completed(of(ours));
}

/* ---- connections ------------------------------------------------------------------------------ */

static void test_addresses(void)
{
	static const struct {
		int family;
		const char *text;
		uint8_t bytes[16];
	} cases[] = {
		{ AF_INET, "1.2.3.4", { [10] = 0xff, [11] = 0xff, 1, 2, 3, 4 } },
		{ AF_INET6, "::ffff:1.2.3.4", { [10] = 0xff, [11] = 0xff, 1, 2, 3, 4 } },
		{ AF_INET6, "fd01:203:405:607:809:a0b:c0d:e0f", { 0xfd, 1, 2, 3, 4, 5, 6, 7 } },
		{ AF_UNIX, "", { 0 } },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct sockaddr_storage from = { 0 };
		uint8_t address[16];

		from.ss_family = (sa_family_t)cases[i].family;
		if (cases[i].family == AF_INET)
			inet_pton(AF_INET, cases[i].text, &((struct sockaddr_in *)&from)->sin_addr);
		if (cases[i].family == AF_INET6)
			inet_pton(AF_INET6, cases[i].text,
				  &((struct sockaddr_in6 *)&from)->sin6_addr);
		address_of(&from, address);
		EXPECT_THAT(cases[i].text, memcmp(address, cases[i].bytes, 16) == 0);
	}
}

static void test_take(bool adds_later)
{
	struct serve_connection *first = &http.connections[0], *second = &http.connections[1];
	int client, other;

	begin(NULL);
	http_play.adds_later = adds_later;
	EXPECT(strcmp(http.server.daemon->options,
		      "connections=512\nmemory=16384\ntimeout=90\nstrict=1\n") == 0);
	EXPECT(http.server.daemon->flags ==
	       (MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME));
	EXPECT(http.server.daemon->answer == answer && http.server.daemon->context == &http);
	EXPECT_EQUAL(http.server.daemon->unescape(NULL, NULL, (char[]){ "a%20b" }), 5);
	listener.is_ours = true;
	listener.address.is_loopback = true;
	client = connect_from(1, BEGIN);
	EXPECT(client != -1 && http.count == 1 && http.accepted == 1 && http.refused == 0);
	EXPECT(first->http == &http && first->is_private && first->checks_host && !first->is_unix &&
	       first->since_ns == BEGIN && first->checked == WEB_AUTH_LATER &&
	       first->address[12] == 10 && first->address[15] == 1 && of(first) != NULL);
	EXPECT(serve_http_connection(of(first)) == first);
	listener.is_ours = listener.address.is_loopback = false;
	other = connect_from(2, BEGIN + 1);
	EXPECT(http.count == 2 && !second->is_private && !second->checks_host);
	http_play.fails_early = true;
	EXPECT_THAT("libmicrohttpd fails before it takes it", connect_from(3, BEGIN) != -1 &&
								      http.count == 2 &&
								      http.connections[2].fd == -1);
	http_play.fails_early = false;
	http_play.fails_to_add = true;
	EXPECT_THAT("or after", connect_from(3, BEGIN) != -1 && http.count == 2 &&
					http.connections[2].fd == -1 && http.coming == NULL);
	http_play.fails_to_add = false;
	close(client);
	serve_http_run(&http, BEGIN + 2);
	EXPECT_THAT("a client that goes makes room", http.count == 1 && first->fd == -1);
	close(connect_from(4, BEGIN + 3));
	EXPECT_THAT("for the next", http.count == 2 && first->address[15] == 4);
	end();
	close(other);
	EXPECT_EQUAL(http.count, 0);
}

static void test_completed(void)
{
	struct serve_connection *ours = &http.connections[0];
	int client;

	begin(NULL);
	client = connect_from(1, BEGIN);
	ours->upload = malloc(1);
	ours->is_answering = ours->is_for_body = ours->has_waited = ours->has_failed = true;
	ours->has_turn = true;
	ours->checked = WEB_AUTH_GOOD;
	http.checked = ours;
	of(ours)->request = &http;
	serve(ours, BEGIN + 7);
	EXPECT(ours->upload == NULL && !ours->is_answering && !ours->is_for_body &&
	       !ours->has_waited && !ours->has_failed && !ours->has_turn &&
	       ours->checked == WEB_AUTH_LATER && http.checked == NULL &&
	       ours->since_ns == BEGIN + 7 && ours->requests == 1);
	serve(ours, BEGIN + 8);
	EXPECT_EQUAL(ours->requests, 2);
	http.checked = ours + 1;
	serve(ours, BEGIN + 8);
	EXPECT_THAT("a check of another connection goes on", http.checked == ours + 1);
	http.checked = ours;
	close(client);
	serve_http_run(&http, BEGIN + 9);
	EXPECT_THAT("the check of one that is gone goes on without it",
		    http.checked == NULL && http.count == 0);
	end();
}

/* 15 s for a request, 30 s for an answer, 75 s without a request. */
static void test_deadlines(void)
{
	struct serve_connection *list = http.connections;
	int clients[4];

	begin(NULL);
	for (int i = 0; i < 4; i++)
		clients[i] = connect_from(i, BEGIN + (uint64_t)i);
	list[1].is_answering = true;
	list[2].requests = 1;
	EXPECT_EQUAL(serve_http_run(&http, BEGIN + 5), BEGIN + 15 * SECOND);
	EXPECT_EQUAL(serve_http_run(&http, BEGIN + 15 * SECOND - 1), BEGIN + 15 * SECOND);
	EXPECT_EQUAL(http.count, 4);
	EXPECT_EQUAL(serve_http_run(&http, BEGIN + 15 * SECOND), BEGIN + 15 * SECOND + 3);
	EXPECT_THAT("the one that asked nothing is dropped first",
		    http.count == 3 && list[0].fd == -1);
	EXPECT_EQUAL(serve_http_run(&http, BEGIN + 15 * SECOND + 3), BEGIN + 30 * SECOND + 1);
	EXPECT_EQUAL(serve_http_run(&http, BEGIN + 30 * SECOND + 1), BEGIN + 75 * SECOND + 2);
	EXPECT(http.count == 1 && list[2].fd != -1);
	http_play.timeout_ms = 5;
	EXPECT_EQUAL(serve_http_run(&http, BEGIN + 40 * SECOND), BEGIN + 40 * SECOND + 5 * MS_NS);
	http_play.timeout_ms = 100000;
	EXPECT_EQUAL(serve_http_run(&http, BEGIN + 40 * SECOND), BEGIN + 75 * SECOND + 2);
	/* One that libmicrohttpd does not notice at once is dropped once. */
	serve_http_wait(&list[2], of(&list[2]));
	of(&list[2])->suspended++;
	serve_http_run(&http, BEGIN + 75 * SECOND + 2);
	EXPECT(list[2].is_dropped && list[2].waiting == NULL && of(&list[2])->suspended == 1);
	http_play.timeout_ms = UINT64_MAX;
	EXPECT_EQUAL(serve_http_run(&http, BEGIN + 75 * SECOND + 3), UINT64_MAX);
	of(&list[2])->suspended = 0;
	EXPECT_EQUAL(serve_http_run(&http, BEGIN + 75 * SECOND + 3), UINT64_MAX);
	EXPECT_EQUAL(http.count, 0);
	for (int i = 0; i < 4; i++)
		close(clients[i]);
	end();
}

/* ---- limits ----------------------------------------------------------------------------------- */

static int clients[SERVE_CONNECTIONS_MAX];

/* 32 per address. */
static void test_per_address(void)
{
	struct serve_connection *list = http.connections;
	int other, many;

	begin(NULL);
	other = connect_from(2, BEGIN - 1);
	for (int i = 0; i < SERVE_CONNECTIONS_PER_ADDRESS; i++)
		clients[i] = connect_from(1, BEGIN + 100 - (uint64_t)i);
	EXPECT(http.count == 33 && http.refused == 0);
	many = connect_from(1, BEGIN + 200);
	EXPECT_THAT("of its own connections the one goes that has waited longest",
		    many != -1 && http.count == 33 && http.refused == 1 &&
			    list[SERVE_CONNECTIONS_PER_ADDRESS].since_ns == BEGIN + 200 &&
			    list[0].fd != -1);
	close(many);
	list[20].requests = 1;
	list[20].since_ns = BEGIN + 1000;
	serve_http_run(&http, BEGIN + 200);
	EXPECT_EQUAL(http.count, 32);
	many = connect_from(1, BEGIN + 300);
	EXPECT(http.refused == 1 && http.count == 33);
	close(connect_from(1, BEGIN + 301));
	EXPECT_THAT("one that was served before goes first",
		    http.refused == 2 && list[20].since_ns == BEGIN + 301);
	serve_http_run(&http, BEGIN + 302);
	close(connect_from(1, BEGIN + 303));
	serve_http_run(&http, BEGIN + 304);
	for (int i = 1; i < 34; i++)
		list[i].is_answering = list[i].fd != -1;
	clients[40] = connect_from(1, BEGIN + 305);
	for (int i = 1; i < 34; i++)
		list[i].is_answering = list[i].fd != -1;
	EXPECT_EQUAL(http.refused, 2);
	EXPECT_THAT("without one that waits, the new one goes",
		    connect_from(1, BEGIN + 306) == -1 && http.refused == 3 && http.count == 33);
	list[7].waiting = of(&list[7]);
	of(&list[7])->suspended = 1;
	EXPECT_THAT("one that waits for its first password stays",
		    connect_from(1, BEGIN + 306) == -1);
	list[7].wrong = 1;
	list[0].waiting = of(&list[0]);
	of(&list[0])->suspended = 1;
	list[0].wrong = 1;
	close(connect_from(1, BEGIN + 307));
	EXPECT_THAT("one that guesses goes",
		    list[7].since_ns == BEGIN + 307 && http.refused == 5 && list[0].wrong == 1);
	close(many);
	listener.address.is_unix = true;
	for (int i = 0; i < 34; i++)
		EXPECT(connect_from(1, BEGIN + 308) != -1);
	EXPECT_THAT("Unix sockets have no such limit", http.refused == 5);
	close(other);
	end();
}

/* 256 in total. */
static void test_total(void)
{
	struct serve_connection *list = http.connections;
	int one;

	begin(NULL);
	for (int i = 0; i < SERVE_CONNECTIONS_MAX; i++)
		clients[i] =
			connect_from(i / 30, BEGIN + (uint64_t)(i + 7) % SERVE_CONNECTIONS_MAX);
	EXPECT(http.count == SERVE_CONNECTIONS_MAX && http.refused == 0);
	one = connect_from(99, BEGIN + 1000);
	EXPECT_THAT("of all the one goes that has waited longest",
		    one != -1 && http.refused == 1 && list[249].since_ns == BEGIN + 1000 &&
			    list[249].address[15] == 99 && http.count == SERVE_CONNECTIONS_MAX);
	for (int i = 0; i < SERVE_CONNECTIONS_MAX; i++)
		list[i].is_answering = true;
	EXPECT(connect_from(99, BEGIN + 1001) == -1 && http.refused == 2);
	list[3].waiting = of(&list[3]);
	of(&list[3])->suspended = 1;
	list[3].wrong = 2;
	close(connect_from(99, BEGIN + 1002));
	EXPECT(list[3].since_ns == BEGIN + 1002 && http.refused == 3);
	for (int i = 0; i < SERVE_CONNECTIONS_MAX; i++)
		close(clients[i]);
	close(one);
	serve_http_run(&http, BEGIN + 1003);
	EXPECT_EQUAL(http.count, 0);
	end();
}

/* ---- accepting -------------------------------------------------------------------------------- */

static void test_accept(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct rlimit files, few;
	int sockets[70], fds;

	begin(NULL);
	listener.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	listener.address.is_unix = true;
	text_format(address.sun_path, sizeof(address.sun_path), "%s/socket", scratch_dir.path);
	EXPECT(bind(listener.fd, (struct sockaddr *)&address, sizeof(address)) == 0 &&
	       listen(listener.fd, 128) == 0);
	serve_http_accept(&http, &listener, BEGIN);
	EXPECT_THAT("nobody is there", http.accepted == 0 && http.paused_until_ns == 0);
	for (int i = 0; i < 70; i++) {
		sockets[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		connect(sockets[i], (struct sockaddr *)&address, sizeof(address));
	}
	serve_http_accept(&http, &listener, BEGIN + 1);
	EXPECT_THAT("64 at once", http.accepted == 64 && http.paused_until_ns == 0);
	EXPECT((fcntl(http.connections[0].fd, F_GETFL) & O_NONBLOCK) != 0 &&
	       (fcntl(http.connections[0].fd, F_GETFD) & FD_CLOEXEC) != 0 &&
	       http.connections[0].is_unix);
	getrlimit(RLIMIT_NOFILE, &files);
	fds = dup(loop);
	close(fds);
	few = files;
	few.rlim_cur = (rlim_t)fds;
	setrlimit(RLIMIT_NOFILE, &few);
	serve_http_accept(&http, &listener, BEGIN + 2);
	setrlimit(RLIMIT_NOFILE, &files);
	EXPECT_THAT("without descriptors there is a pause",
		    http.accepted == 64 && http.paused_until_ns == BEGIN + 2 + SECOND);
	serve_http_accept(&http, &listener, BEGIN + 3);
	EXPECT_EQUAL(http.accepted, 70);
	close(listener.fd);
	for (int i = 0; i < 70; i++)
		close(sockets[i]);
	end();
}

/* ---- waiting ---------------------------------------------------------------------------------- */

static void test_bodies(void)
{
	struct serve_connection *list = http.connections;

	begin(NULL);
	for (int i = 0; i < 3; i++)
		clients[i] = connect_from(i, BEGIN);
	http.has_waiting = false;
	serve_http_wait_for_body(&list[1], of(&list[1]));
	EXPECT(list[1].is_for_body && list[1].waiting == of(&list[1]) && http.has_waiting &&
	       of(&list[1])->suspended == 1);
	serve_http_wait(&list[2], of(&list[2]));
	EXPECT(!list[2].is_for_body && of(&list[2])->suspended == 1);
	serve_http_has_body(&http, true);
	EXPECT_THAT("one that waits for a body goes on, one that waits for a password does not",
		    list[1].has_waited && !list[1].has_failed && !list[1].is_for_body &&
			    list[1].waiting == NULL && of(&list[1])->suspended == 0 &&
			    of(&list[1])->is_resumed && of(&list[2])->suspended == 1 &&
			    !list[2].has_waited && !list[0].has_waited);
	serve_http_wait_for_body(&list[0], of(&list[0]));
	serve_http_has_body(&http, false);
	EXPECT(list[0].has_waited && list[0].has_failed && !list[1].has_failed);
	http.has_waiting = true;
	serve_http_run(&http, BEGIN + 1);
	EXPECT(!http.has_waiting);
	for (int i = 0; i < 3; i++)
		close(clients[i]);
	end();
}

static void test_turns(void)
{
	struct serve_connection *list = http.connections;

	begin(NULL);
	for (int i = 0; i < 4; i++)
		clients[i] = connect_from(i, BEGIN + 10 - (uint64_t)i);
	EXPECT_THAT("nobody waits", serve_http_has_turn(&list[0]));
	serve_http_wait_for_body(&list[3], of(&list[3]));
	EXPECT_THAT("for a password", serve_http_has_turn(&list[0]));
	EXPECT_EQUAL(serve_http_run(&http, BEGIN + 20), BEGIN + 7 + 15 * SECOND);
	serve_http_wait(&list[1], of(&list[1]));
	EXPECT_THAT("somebody does", !serve_http_has_turn(&list[0]));
	serve_http_wait(&list[2], of(&list[2]));
	http.auth.free_ns = BEGIN + 30;
	EXPECT_THAT("but not before its time",
		    serve_http_run(&http, BEGIN + 29) == BEGIN + 30 && !list[2].has_turn);
	EXPECT_EQUAL(serve_http_run(&http, BEGIN + 30), BEGIN + 30);
	EXPECT_THAT("who came first has the turn",
		    list[2].has_turn && list[2].waiting == NULL && !list[1].has_turn &&
			    of(&list[2])->suspended == 0 && of(&list[1])->suspended == 1);
	EXPECT(serve_http_has_turn(&list[2]) && !serve_http_has_turn(&list[0]));
	connection_resume(&list[1]);
	EXPECT_THAT("the one with the turn comes before those that come later",
		    !serve_http_has_turn(&list[0]));
	list[2].has_turn = false;
	EXPECT(serve_http_has_turn(&list[0]));
	list[2].has_turn = true;
	http.checker.begun_ns = 1;
	EXPECT_THAT("while a password is checked there is no turn",
		    !serve_http_has_turn(&list[2]) && !serve_http_has_turn(&list[0]));
	http.checker = (struct child){ .output = -1, .errors = -1 };
	serve_http_has_body(&http, true);
	for (int i = 0; i < 4; i++)
		close(clients[i]);
	end();
}

/* A password is checked by a child. */
static void check_password(const char *password, enum web_verdict wanted, bool is_gone)
{
	static const char hash[] = "$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW";
	struct serve_connection *ours = &http.connections[0];
	bool is_due = true;
	uint64_t next_ns;

	begin(NULL);
	clients[0] = connect_from(5, BEGIN);
	text_copy(http.auth.password, sizeof(http.auth.password), password);
	text_copy(http.auth.hash, sizeof(http.auth.hash), hash);
	http.auth.is_known = true;
	EXPECT(serve_http_check(ours, of(ours)) == WEB_AUTH_LATER && http.checked == ours &&
	       ours->waiting == of(ours) && http.checker.pid > 0 &&
	       http.checker.until_ns == BEGIN + 20 * SECOND && http.checked_address[15] == 5);
	if (is_gone) {
		connection_resume(ours);
		shutdown(clients[0], SHUT_RDWR);
		MHD_run(http.server.daemon);
		EXPECT(http.checked == NULL);
	}
	while (http.checker.begun_ns != 0) {
		next_ns = serve_http_run(&http, BEGIN + 5);
		is_due &= next_ns == BEGIN + 5 + (http.checker.begun_ns != 0 ? 100 * MS_NS : 0);
		poll(NULL, 0, 5);
	}
	EXPECT_THAT("its end is an event, and it is asked for ten times per second", is_due);
	EXPECT_EQUAL(http.checked == NULL &&
			     (is_gone || (ours->checked == wanted && ours->waiting == NULL &&
					  of(ours)->suspended == 0)),
		     true);
	EXPECT(web_auth_was_wrong(&http.auth, http.checked_address, BEGIN + 6) ==
	       (wanted == WEB_AUTH_WRONG));
	EXPECT_THAT("bcrypt costs time", http.auth.free_ns > BEGIN + 5);
	close(clients[0]);
	end();
}

/* Without a child it is checked at once. */
static void test_check_here(void)
{
	struct serve_connection *ours = &http.connections[0];
	struct rlimit files, few;
	enum web_verdict verdict;

	begin(NULL);
	clients[0] = connect_from(5, BEGIN);
	text_copy(http.auth.password, sizeof(http.auth.password), "x");
	text_copy(http.auth.hash, sizeof(http.auth.hash),
		  "$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW");
	getrlimit(RLIMIT_NOFILE, &files);
	few = files;
	few.rlim_cur = 0;
	setrlimit(RLIMIT_NOFILE, &few);
	verdict = serve_http_check(ours, of(ours));
	setrlimit(RLIMIT_NOFILE, &files);
	EXPECT(verdict == WEB_AUTH_WRONG && http.checker.begun_ns == 0 && http.checked == NULL &&
	       ours->waiting == NULL && web_auth_was_wrong(&http.auth, ours->address, BEGIN + 1));
	EXPECT_THAT("it took no time on this clock", http.auth.free_ns == BEGIN);
	close(clients[0]);
	end();
}

/* ---- configurations --------------------------------------------------------------------------- */

static char *path_of(const char *name)
{
	static char paths[4][96];
	static int next;

	next = (next + 1) % 4;
	text_format(paths[next], sizeof(paths[0]), "%s/%s", scratch_dir.path, name);
	return paths[next];
}

static void write_text(const char *name, const char *text, size_t length)
{
	FILE *file = fopen(path_of(name), "we");

	fwrite(text, 1, length, file);
	fclose(file);
}

static void write_config(const char *text)
{
	write_text("web.yml", text, strlen(text));
}

/* A certificate that is its own authority, and another key. */
static void write_certificate(void)
{
	static const unsigned char number[] = { 1 };
	gnutls_x509_privkey_t key, other;
	gnutls_x509_crt_t cert;
	gnutls_datum_t pem;

	gnutls_x509_privkey_init(&key);
	gnutls_x509_privkey_init(&other);
	gnutls_x509_privkey_generate(key, GNUTLS_PK_ECDSA,
				     GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0);
	gnutls_x509_privkey_generate(other, GNUTLS_PK_ECDSA,
				     GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0);
	gnutls_x509_crt_init(&cert);
	gnutls_x509_crt_set_version(cert, 3);
	gnutls_x509_crt_set_serial(cert, number, sizeof(number));
	gnutls_x509_crt_set_dn(cert, "CN=localhost", NULL);
	gnutls_x509_crt_set_activation_time(cert, 0);
	gnutls_x509_crt_set_expiration_time(cert, 4000000000);
	gnutls_x509_crt_set_key(cert, key);
	EXPECT(gnutls_x509_crt_sign2(cert, cert, key, GNUTLS_DIG_SHA256, 0) == 0);
	gnutls_x509_crt_export2(cert, GNUTLS_X509_FMT_PEM, &pem);
	write_text("cert", (char *)pem.data, pem.size);
	gnutls_free(pem.data);
	gnutls_x509_privkey_export2(key, GNUTLS_X509_FMT_PEM, &pem);
	write_text("key", (char *)pem.data, pem.size);
	gnutls_free(pem.data);
	gnutls_x509_privkey_export2(other, GNUTLS_X509_FMT_PEM, &pem);
	write_text("other", (char *)pem.data, pem.size);
	gnutls_free(pem.data);
	gnutls_x509_crt_deinit(cert);
	gnutls_x509_privkey_deinit(key);
	gnutls_x509_privkey_deinit(other);
}

#define TLS "tls_server_config:\n  cert_file: cert\n  key_file: key\n"

static bool is_refused(const char *config, const char *message)
{
	struct serve_http failed;
	int set = epoll_create1(EPOLL_CLOEXEC);
	bool is_same;

	write_config(config);
	is_same = serve_http_init(&failed, set, path_of("web.yml"), answer, NULL, why,
				  sizeof(why)) != OK &&
		  strstr(why, message) != NULL;
	if (!is_same)
		printf("# got %s\n", why);
	serve_http_release(&failed);
	close(set);
	return is_same;
}

static void test_tls(void)
{
	write_certificate();
	write_config(TLS "  min_version: TLS11\n  max_version: TLS13\n");
	begin(path_of("web.yml"));
	EXPECT((http.server.daemon->flags & MHD_USE_TLS) != 0 && http.server.has_tls);
	EXPECT(strcmp(http.server.daemon->options,
		      "cert=PEM\nkey=PEM\n"
		      "priorities=NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:+VERS-TLS1.1\n"
		      "connections=512\nmemory=16384\ntimeout=90\nstrict=1\n") == 0);
	end();
	write_config(TLS
		     "  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: cert\n");
	begin(path_of("web.yml"));
	EXPECT(strcmp(http.server.daemon->options,
		      "cert=PEM\nkey=PEM\npriorities=NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2\n"
		      "trust=PEM\nconnections=512\nmemory=16384\ntimeout=90\nstrict=1\n") == 0);
	end();
	EXPECT(is_refused("tls_server_config:\n  cert_file: cert\n  key_file: other\n",
			  "/cert with "));
	EXPECT(is_refused("tls_server_config:\n  cert_file: none\n  key_file: key\n",
			  "/none: No such file"));
	EXPECT(is_refused("tls_server_config:\n  cert_file: cert\n  key_file: none\n",
			  "/none: No such file"));
	EXPECT(is_refused(TLS "  client_auth_type: RequireAndVerifyClientCert\n"
			      "  client_ca_file: none\n",
			  "/none: No such file"));
	EXPECT(is_refused(TLS "  client_auth_type: RequireAndVerifyClientCert\n"
			      "  client_ca_file: other\n",
			  "/other: "));
	http_play.fails_to_start = http_play.has_no_tls = true;
	EXPECT(is_refused(TLS, "cannot start the HTTP server: this libmicrohttpd has no TLS"));
	http_play.has_no_tls = false;
	EXPECT(is_refused(TLS, "cannot start the HTTP server") && strstr(why, ": this") == NULL);
	http_play.has_no_tls = true;
	EXPECT(is_refused("basic_auth_users:\n", "cannot start the HTTP server") &&
	       strstr(why, ": this") == NULL);
	http_play.fails_to_start = http_play.has_no_tls = false;
	EXPECT(is_refused("nonsense: x\n", "nonsense"));
}

/* Real sessions of client and server, in memory. Returns whether the handshake succeeds. */
struct wire {
	unsigned char bytes[2][1 << 16];
	size_t used[2], at[2];
};
struct wire_end {
	struct wire *wire;
	int side;
};

static ssize_t wire_write(gnutls_transport_ptr_t to, const void *bytes, size_t length)
{
	struct wire_end *end = to;

	memcpy(end->wire->bytes[end->side] + end->wire->used[end->side], bytes, length);
	end->wire->used[end->side] += length;
	return (ssize_t)length;
}

static ssize_t wire_read(gnutls_transport_ptr_t from, void *bytes, size_t length)
{
	struct wire_end *end = from;
	int other = !end->side;
	size_t left = end->wire->used[other] - end->wire->at[other];

	if (left == 0) {
		errno = EAGAIN;
		return -1;
	}
	length = length < left ? length : left;
	memcpy(bytes, end->wire->bytes[other] + end->wire->at[other], length);
	end->wire->at[other] += length;
	return (ssize_t)length;
}

static bool shakes_hands(enum web_client_auth wanted, const char *cert, bool is_trusted)
{
	static struct wire wire;
	struct wire_end ends[2] = { { &wire, 0 }, { &wire, 1 } };
	struct serve_tls tls = { .client_auth = wanted };
	gnutls_certificate_credentials_t own, theirs;
	gnutls_session_t server, client;
	int one = GNUTLS_E_AGAIN, other = GNUTLS_E_AGAIN;

	wire.used[0] = wire.used[1] = wire.at[0] = wire.at[1] = 0;
	gnutls_certificate_allocate_credentials(&own);
	gnutls_certificate_allocate_credentials(&theirs);
	gnutls_certificate_set_x509_key_file(own, path_of("cert"), path_of("key"),
					     GNUTLS_X509_FMT_PEM);
	if (is_trusted)
		gnutls_certificate_set_x509_trust_file(own, path_of("cert"), GNUTLS_X509_FMT_PEM);
	if (cert)
		gnutls_certificate_set_x509_key_file(theirs, path_of(cert), path_of("key"),
						     GNUTLS_X509_FMT_PEM);
	gnutls_init(&server, GNUTLS_SERVER | GNUTLS_NONBLOCK);
	gnutls_init(&client, GNUTLS_CLIENT | GNUTLS_NONBLOCK | GNUTLS_FORCE_CLIENT_CERT);
	gnutls_set_default_priority(client);
	gnutls_priority_set_direct(server, "NORMAL:-VERS-ALL:+VERS-TLS1.2", NULL);
	gnutls_credentials_set(server, GNUTLS_CRD_CERTIFICATE, own);
	gnutls_credentials_set(client, GNUTLS_CRD_CERTIFICATE, theirs);
	gnutls_transport_set_ptr(server, &ends[0]);
	gnutls_transport_set_ptr(client, &ends[1]);
	gnutls_transport_set_push_function(server, wire_write);
	gnutls_transport_set_push_function(client, wire_write);
	gnutls_transport_set_pull_function(server, wire_read);
	gnutls_transport_set_pull_function(client, wire_read);
	agent_tls_session(&tls, server);
	for (int i = 0; i < 20; i++) {
		if (one == GNUTLS_E_AGAIN)
			one = gnutls_handshake(server);
		if (other == GNUTLS_E_AGAIN)
			other = gnutls_handshake(client);
	}
	gnutls_deinit(server);
	gnutls_deinit(client);
	gnutls_certificate_free_credentials(own);
	gnutls_certificate_free_credentials(theirs);
	return one == 0;
}

static void test_clients(void)
{
	static const struct {
		enum web_client_auth wanted;
		bool without, good, unknown;
	} cases[] = {
		{ WEB_CLIENT_NONE, true, true, true },
		{ WEB_CLIENT_REQUEST, true, true, true },
		{ WEB_CLIENT_REQUIRE_ANY, false, true, true },
		{ WEB_CLIENT_VERIFY_IF_GIVEN, true, true, false },
		{ WEB_CLIENT_REQUIRE, false, true, false },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		EXPECT_EQUAL(shakes_hands(cases[i].wanted, NULL, true), cases[i].without);
		EXPECT_EQUAL(shakes_hands(cases[i].wanted, "cert", true), cases[i].good);
		EXPECT_EQUAL(shakes_hands(cases[i].wanted, "cert", false), cases[i].unknown);
	}
}

static void test_reload(void)
{
	struct MHD_Daemon *first;
	int client;

	write_config("http_server_config:\n  headers:\n    Strict-Transport-Security: max-age=1\n");
	begin(path_of("web.yml"));
	first = http.server.daemon;
	client = connect_from(1, BEGIN);
	write_config("http_server_config:\n  headers:\n    Strict-Transport-Security: max-age=2\n");
	EXPECT(serve_http_reload(&http, path_of("web.yml"), why, sizeof(why)) == OK);
	EXPECT_THAT("without TLS the server stays",
		    http.server.daemon == first && http.old.daemon == NULL &&
			    strcmp(http.config.strict_transport, "max-age=2") == 0);
	write_config("nonsense: x\n");
	EXPECT_THAT("a wrong configuration changes nothing",
		    serve_http_reload(&http, path_of("web.yml"), why, sizeof(why)) != OK &&
			    strcmp(http.config.strict_transport, "max-age=2") == 0);
	write_config(TLS);
	EXPECT(serve_http_reload(&http, path_of("web.yml"), why, sizeof(why)) == OK);
	EXPECT_THAT("with TLS the old one finishes its requests for 5 s",
		    http.server.daemon != first && http.old.daemon == first &&
			    http.config.has_tls && http.old.until_ns == BEGIN + 5 * SECOND &&
			    http_play.daemons == 2);
	EXPECT_EQUAL(serve_http_run(&http, BEGIN + 1), BEGIN + 5 * SECOND);
	EXPECT(http.old.daemon == first && first->runs == 1 && http.server.daemon->runs == 1);
	http_play.timeout_ms = 1;
	EXPECT_EQUAL(serve_http_run(&http, BEGIN + 2), BEGIN + 2 + MS_NS);
	http_play.timeout_ms = UINT64_MAX;
	EXPECT_EQUAL(serve_http_run(&http, BEGIN + 5 * SECOND - 1), BEGIN + 5 * SECOND);
	http.connections[0].waiting = &first->connections[0];
	first->connections[0].suspended = 1;
	serve_http_run(&http, BEGIN + 5 * SECOND);
	EXPECT(http.old.daemon == NULL && http.old.epoll == -1 && http_play.daemons == 1 &&
	       http.count == 0);
	close(client);
	first = http.server.daemon;
	write_config("tls_server_config:\n  cert_file: none\n  key_file: key\n");
	EXPECT_THAT("a certificate that cannot be read changes nothing",
		    serve_http_reload(&http, path_of("web.yml"), why, sizeof(why)) != OK &&
			    http.server.daemon == first && http.config.has_tls &&
			    http_play.daemons == 1);
	EXPECT_THAT("without TLS it ends, too",
		    serve_http_reload(&http, NULL, why, sizeof(why)) == OK &&
			    !http.config.has_tls && http.old.daemon == first && http.old.has_tls);
	client = connect_from(1, BEGIN);
	http_play.now_ns = BEGIN + 100;
	serve_http_run(&http, BEGIN + 100);
	EXPECT_THAT("an old one without connections is stopped at once",
		    http.old.daemon == NULL && http.count == 1);
	close(client);
	end();
}

/* A session that libmicrohttpd begins with TLS has what its clients must show. */
static void test_session(void)
{
	gnutls_session_t session;
	int client;

	gnutls_init(&session, GNUTLS_SERVER);
	write_config(TLS);
	begin(path_of("web.yml"));
	http_play.session = session;
	client = connect_from(1, BEGIN);
	EXPECT(http.count == 1);
	http_play.session = NULL;
	EXPECT(connect_from(1, BEGIN) != -1 && http.count == 2);
	close(client);
	end();
	gnutls_deinit(session);
}

int main(void)
{
	scratch_make();
	test_addresses();
	test_take(false);
	test_take(true);
	test_completed();
	test_deadlines();
	test_per_address();
	test_total();
	test_accept();
	test_bodies();
	test_turns();
	check_password("U*U", WEB_AUTH_GOOD, false);
	check_password("wrong", WEB_AUTH_WRONG, false);
	check_password("wrong", WEB_AUTH_WRONG, true);
	test_check_here();
	test_tls();
	test_clients();
	test_reload();
	test_session();
	return tap_done();
}

#endif
