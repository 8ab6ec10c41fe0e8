/*
 * The event loop: signals, listeners, pauses, the watchdog and how long to wait, with a libmicrohttpd and a clock that are
 * played. The loop is included, because it is in no library.
 */
#include "tests/tap.h"

#if !__has_include(<microhttpd.h>) || !__has_include(<gnutls/gnutls.h>)

int main(void)
{
	return tap_skip_all("no headers of libmicrohttpd or GnuTLS");
}

#else

#include "tests/support/http_play.h"

#include "serve/serve_loop.c"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "common/attributes.h"
#include "common/text.h"
#include "tests/support/scratch.h"

#define BEGIN (1000 * SECOND_NS)

static struct serve_loop loop;
static int notified;

/* What a program was asked to do. */
static struct {
	uint64_t next_ns, due_ns;
	int fd, events, calls;
	int end_after;
} asked;

static uint64_t due(void *context, uint64_t now_ns)
{
	(void)context;
	asked.due_ns = now_ns;
	asked.calls++;
	if (asked.calls == asked.end_after)
		raise(SIGTERM);
	return asked.next_ns;
}

static void event(void *context, int fd, uint64_t now_ns)
{
	char byte;

	(void)context;
	asked.fd = fd;
	asked.events++;
	asked.due_ns = now_ns;
	if (read(fd, &byte, 1) != 1)
		abort();
}

static const struct serve_loop_program program = { due, event, NULL };

static enum MHD_Result answer(void *context, struct MHD_Connection *connection, const char *path,
			      const char *method, const char *version, const char *upload,
			      size_t *upload_bytes, void **request)
{
	(void)context, (void)connection, (void)path, (void)method;
	(void)version, (void)upload, (void)upload_bytes, (void)request;
	return MHD_NO;
}

static struct web_address address_of(const char *text)
{
	struct web_address address;
	const char *why;

	if (web_address_parse(&address, text, &why) != OK)
		abort();
	return address;
}

static struct web_address own_socket(const char *name)
{
	char text[120];

	text_format(text, sizeof(text), "unix:%s/%s", scratch_dir.path, name);
	return address_of(text);
}

static const char *notification(void)
{
	static char bytes[200];
	ssize_t length = recv(notified, bytes, sizeof(bytes) - 1, MSG_DONTWAIT);

	bytes[length > 0 ? length : 0] = '\0';
	return bytes;
}

static void begin(void)
{
	http_play = (struct http_play){ .now_ns = BEGIN, .timeout_ms = UINT64_MAX };
	memset(&asked, 0, sizeof(asked));
	asked.next_ns = UINT64_MAX;
	serve_loop_init(&loop);
	EXPECT(serve_loop_open(&loop) == 0 && loop.epoll != -1 && loop.signals != -1);
	EXPECT(serve_loop_serve(&loop, NULL, answer, NULL) == 0);
}

static void end(void)
{
	serve_loop_close(&loop);
	EXPECT_EQUAL(http_play.daemons, 0);
}

static size_t open_fds(void)
{
	size_t count = 0;

	for (int fd = 0; fd < 256; fd++)
		count += fcntl(fd, F_GETFD) != -1;
	return count;
}

static void test_open(void)
{
	size_t fds = open_fds();
	struct rlimit files, few;

	getrlimit(RLIMIT_NOFILE, &files);
	few = files;
	few.rlim_cur = files.rlim_max / 2;
	setrlimit(RLIMIT_NOFILE, &few);
	begin();
	getrlimit(RLIMIT_NOFILE, &few);
	EXPECT_THAT("as many descriptors as there may be", few.rlim_cur == files.rlim_max);
	end();
	setrlimit(RLIMIT_NOFILE, &files);
	EXPECT_EQUAL(open_fds(), fds);
	serve_loop_init(&loop);
	serve_loop_close(&loop);
	EXPECT_EQUAL(open_fds(), fds);
}

static void test_wait(void)
{
	static const struct {
		uint64_t next_ns;
		int ms;
	} cases[] = {
		{ 0, 0 },
		{ BEGIN, 0 },
		{ BEGIN + 1, 1 },
		{ BEGIN + MS_NS, 1 },
		{ BEGIN + MS_NS + 1, 2 },
		{ BEGIN + 3600 * SECOND_NS, 3600000 },
		{ BEGIN + 3600 * SECOND_NS + 1, 3600000 },
		{ BEGIN + 7200 * SECOND_NS, 3600000 },
		{ UINT64_MAX, 3600000 },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++)
		EXPECT_EQUAL(wait_ms(BEGIN, cases[i].next_ns), cases[i].ms);
}

static void test_listen(void)
{
	struct web_address two[2];

	begin();
	two[0] = own_socket("one");
	two[1] = own_socket("two");
	EXPECT(serve_loop_listen(&loop, two, 2, "127.0.0.1:0", (gid_t)-1) == 0);
	EXPECT(loop.listeners.count == 2 && loop.listeners.list[1].address.is_unix);
	end();
	begin();
	EXPECT(serve_loop_listen(&loop, NULL, 0, "127.0.0.1:0", (gid_t)-1) == 0);
	EXPECT_THAT("without an address, the usual one",
		    loop.listeners.count == 1 && loop.listeners.list[0].address.is_loopback);
	end();
	begin();
	two[0] = address_of("unix:/none/of/this");
	EXPECT(serve_loop_listen(&loop, two, 1, "127.0.0.1:0", (gid_t)-1) == CLI_EXIT_UNKNOWN);
	end();
	begin();
	EXPECT(serve_loop_listen(&loop, NULL, 0, "no address", (gid_t)-1) == CLI_EXIT_UNKNOWN);
	EXPECT(serve_loop_listen(&loop, NULL, 0, "unix:/none/of/this", (gid_t)-1) ==
	       CLI_EXIT_UNKNOWN);
	end();
	begin();
	setenv("LISTEN_FDS", "x", 1);
	{
		char pid[24];

		text_format(pid, sizeof(pid), "%d", (int)getpid());
		setenv("LISTEN_PID", pid, 1);
	}
	EXPECT_THAT("sockets that cannot be used",
		    serve_loop_listen(&loop, NULL, 0, "127.0.0.1:0", (gid_t)-1) ==
			    CLI_EXIT_UNKNOWN);
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_PID");
	end();
	EXPECT(serve_loop_serve(&loop, "/none/of/this", answer, NULL) == CLI_EXIT_UNKNOWN);
	serve_http_release(&loop.http);
}

static void test_signals(void)
{
	begin();
	raise(SIGCHLD);
	take_event(&loop, &program, loop.signals, BEGIN);
	EXPECT_THAT("a child that ended is the program's", !loop.must_end && !loop.must_reload);
	raise(SIGHUP);
	take_event(&loop, &program, loop.signals, BEGIN);
	EXPECT(!loop.must_end && loop.must_reload && asked.events == 0);
	raise(SIGINT);
	take_event(&loop, &program, loop.signals, BEGIN);
	EXPECT(loop.must_end);
	loop.must_end = false;
	raise(SIGTERM);
	raise(SIGHUP);
	loop.must_reload = false;
	take_signals(&loop);
	EXPECT_THAT("several at once", loop.must_end && loop.must_reload);
	end();
}

static int client_of(const char *name)
{
	struct web_address address = own_socket(name);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (connect(fd, (struct sockaddr *)&address.socket, address.length) == -1)
		abort();
	return fd;
}

static void test_events(void)
{
	struct web_address two[2];
	int fds[2], client;

	begin();
	two[0] = own_socket("one");
	two[1] = own_socket("two");
	serve_loop_listen(&loop, two, 2, "", (gid_t)-1);
	client = client_of("two");
	take_event(&loop, &program, loop.listeners.list[0].fd, BEGIN);
	EXPECT_EQUAL(loop.http.accepted, 0);
	take_event(&loop, &program, loop.listeners.list[1].fd, BEGIN);
	EXPECT(loop.http.accepted == 1 && loop.http.connections[0].since_ns == BEGIN &&
	       asked.events == 0);
	EXPECT(pipe2(fds, O_CLOEXEC) == 0 && write(fds[1], "x", 1) == 1);
	take_event(&loop, &program, fds[0], BEGIN + 1);
	EXPECT(asked.fd == fds[0] && asked.events == 1 && asked.due_ns == BEGIN + 1);
	EXPECT(serve_loop_watch(&loop, fds[0]) && !serve_loop_watch(&loop, fds[0]));
	close(fds[0]);
	close(fds[1]);
	close(client);
	end();
}

static void test_pause(void)
{
	struct epoll_event events[4];
	struct web_address two[2];
	int client, other;

	begin();
	two[0] = own_socket("one");
	two[1] = own_socket("two");
	serve_loop_listen(&loop, two, 2, "", (gid_t)-1);
	serve_loop_watch(&loop, loop.listeners.list[0].fd);
	serve_loop_watch(&loop, loop.listeners.list[1].fd);
	client = client_of("one");
	other = client_of("two");
	EXPECT_EQUAL(heed_pause(&loop, BEGIN), UINT64_MAX);
	EXPECT_EQUAL(epoll_wait(loop.epoll, events, 4, 0), 2);
	loop.http.paused_until_ns = BEGIN + 5;
	EXPECT_EQUAL(heed_pause(&loop, BEGIN), BEGIN + 5);
	EXPECT_THAT("a listener that is paused wakes nobody",
		    epoll_wait(loop.epoll, events, 4, 0) == 0);
	EXPECT_EQUAL(heed_pause(&loop, BEGIN + 4), BEGIN + 5);
	EXPECT_EQUAL(loop.http.paused_until_ns, BEGIN + 5);
	EXPECT_EQUAL(heed_pause(&loop, BEGIN + 5), UINT64_MAX);
	EXPECT_THAT("until it is over",
		    loop.http.paused_until_ns == 0 && epoll_wait(loop.epoll, events, 4, 0) == 2);
	close(other);
	close(client);
	end();
}

static void test_due(void)
{
	begin();
	asked.next_ns = BEGIN + 100;
	EXPECT_EQUAL(do_due(&loop, &program, BEGIN), BEGIN + 100);
	EXPECT(asked.due_ns == BEGIN && notification()[0] == '\0');
	loop.watchdog_ns = 40;
	EXPECT_EQUAL(do_due(&loop, &program, BEGIN), BEGIN + 40);
	EXPECT(strcmp(notification(), "WATCHDOG=1") == 0);
	EXPECT_EQUAL(do_due(&loop, &program, BEGIN + 39), BEGIN + 40);
	EXPECT(notification()[0] == '\0');
	EXPECT_EQUAL(do_due(&loop, &program, BEGIN + 40), BEGIN + 80);
	EXPECT(strcmp(notification(), "WATCHDOG=1") == 0);
	loop.watchdog_ns = 400;
	loop.next_watchdog_ns = BEGIN + 440;
	EXPECT_EQUAL(do_due(&loop, &program, BEGIN + 50), BEGIN + 100);
	loop.watchdog_ns = 0;
	loop.http.paused_until_ns = BEGIN + 70;
	EXPECT_EQUAL(do_due(&loop, &program, BEGIN + 60), BEGIN + 70);
	loop.http.paused_until_ns = 0;
	http_play.timeout_ms = 1;
	asked.next_ns = BEGIN + SECOND_NS;
	EXPECT_EQUAL(do_due(&loop, &program, BEGIN), BEGIN + MS_NS);
	http_play.timeout_ms = 2000;
	EXPECT_EQUAL(do_due(&loop, &program, BEGIN), BEGIN + SECOND_NS);
	end();
}

static void test_run(void)
{
	struct web_address two[2];
	int fds[2], client;

	begin();
	two[0] = own_socket("one");
	two[1] = own_socket("two");
	serve_loop_listen(&loop, two, 2, "", (gid_t)-1);
	client = client_of("two");
	EXPECT(pipe2(fds, O_CLOEXEC) == 0 && write(fds[1], "x", 1) == 1 &&
	       serve_loop_watch(&loop, fds[0]));
	asked.end_after = 4;
	asked.next_ns = BEGIN;
	setenv("WATCHDOG_USEC", "3000000", 1);
	EXPECT_EQUAL(serve_loop_run(&loop, &program), 0);
	unsetenv("WATCHDOG_USEC");
	EXPECT(asked.calls == 4 && asked.events == 1 && asked.fd == fds[0] &&
	       loop.http.accepted == 1 && loop.watchdog_ns == 1500 * MS_NS);
	EXPECT(strcmp(notification(), "READY=1") == 0);
	EXPECT(strcmp(notification(), "WATCHDOG=1") == 0);
	EXPECT(strcmp(notification(), "STOPPING=1") == 0);
	EXPECT_THAT("a listener that is watched cannot be watched again",
		    serve_loop_run(&loop, &program) == CLI_EXIT_UNKNOWN);
	close(client);
	close(fds[0]);
	close(fds[1]);
	end();
}

static void test_reload(void)
{
	char path[96];
	FILE *file;

	begin();
	loop.must_reload = true;
	serve_loop_reload(&loop, NULL);
	EXPECT(!loop.must_reload && notification()[0] == '\0');
	text_format(path, sizeof(path), "%s/web.yml", scratch_dir.path);
	file = fopen(path, "we");
	fputs("http_server_config:\n  headers:\n    Strict-Transport-Security: max-age=3\n", file);
	fclose(file);
	serve_loop_reload(&loop, path);
	EXPECT(strcmp(loop.http.config.strict_transport, "max-age=3") == 0);
	EXPECT(strcmp(notification(), "RELOADING=1\nMONOTONIC_USEC=1000000000") == 0);
	EXPECT(strcmp(notification(), "READY=1") == 0);
	remove(path);
	serve_loop_reload(&loop, path);
	EXPECT_THAT("one that cannot be read changes nothing",
		    strcmp(loop.http.config.strict_transport, "max-age=3") == 0);
	end();
}

/* What is logged about addresses: who else can read them. */
static void test_addresses(void)
{
	char path[96], said[600];
	int saved = dup(STDERR_FILENO), fd;
	ssize_t length;

	text_format(path, sizeof(path), "%s/log", scratch_dir.path);
	begin();
	loop.listeners.list[0].address = address_of("127.0.0.1:80");
	loop.listeners.list[1].address = address_of("10.0.0.1:80");
	loop.listeners.list[2].address = address_of("unix:/run/x");
	loop.listeners.count = 3;
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	dup2(fd, STDERR_FILENO);
	tell_addresses(&loop);
	loop.http.config.has_tls = true;
	loop.listeners.count = 2;
	loop.http.config.user_count = 1;
	tell_addresses(&loop);
	loop.http.config.user_count = 0;
	loop.http.config.client_auth = WEB_CLIENT_REQUIRE;
	tell_addresses(&loop);
	loop.http.config.client_auth = WEB_CLIENT_REQUIRE_ANY;
	tell_addresses(&loop);
	dup2(saved, STDERR_FILENO);
	close(saved);
	length = pread(fd, said, sizeof(said) - 1, 0);
	said[length > 0 ? length : 0] = '\0';
	close(fd);
	loop.listeners.count = 0;
	loop.http.config.has_tls = false;
#define LINE(text) "ringside-agent: listening on " text "\n"
#define OPEN ", open to everyone who can reach it: see --web-config"
	EXPECT(strcmp(said, LINE("http://127.0.0.1:80") LINE("http://10.0.0.1:80" OPEN)
				    LINE("unix:/run/x") LINE("https://127.0.0.1:80") LINE(
					    "https://10.0.0.1:80") LINE("https://127.0.0.1:80")
					    LINE("https://10.0.0.1:80") LINE("https://127.0.0.1:80")
						    LINE("https://10.0.0.1:80" OPEN)) == 0);
	end();
}

int main(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	scratch_make();
	unsetenv("LISTEN_FDS");
	unsetenv("WATCHDOG_USEC");
	text_format(address.sun_path, sizeof(address.sun_path), "%s/notify", scratch_dir.path);
	notified = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	EXPECT(bind(notified, (struct sockaddr *)&address, sizeof(address)) == 0);
	setenv("NOTIFY_SOCKET", address.sun_path, 1);
	test_open();
	test_wait();
	test_listen();
	test_signals();
	test_events();
	test_pause();
	test_due();
	test_run();
	test_reload();
	test_addresses();
	return tap_done();
}

#endif
