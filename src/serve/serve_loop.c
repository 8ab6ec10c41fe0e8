/* The event loop: descriptors, signals, timers, systemd. */
#include "serve/server.h"

#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "cli/cli.h"
#include "common/clock.h"

/* Blocks above this size are returned to the system when freed: response bodies are, memory of scans is reused. */
enum { EVENTS_AT_ONCE = 32, LARGE_BLOCK = 2 * 1024 * 1024, TRIM_ABOVE = 8 * 1024 * 1024 };

bool serve_loop_watch(const struct serve_loop *loop, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	return epoll_ctl(loop->epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

/* Each watched process needs a descriptor. */
static void set_limits(void)
{
	struct rlimit files;

	mallopt(M_MMAP_THRESHOLD, LARGE_BLOCK);
	mallopt(M_TRIM_THRESHOLD, TRIM_ABOVE);
	if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
}

void serve_loop_init(struct serve_loop *loop)
{
	memset(loop, 0, sizeof(*loop));
	loop->epoll = loop->signals = -1;
	loop->http.server.epoll = loop->http.old.epoll = -1;
}

int serve_loop_open(struct serve_loop *loop)
{
	sigset_t set;

	set_limits();
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	/* The parent may have ignored SIGCHLD: then the exit status of children would be lost. */
	signal(SIGCHLD, SIG_DFL);
	loop->epoll = epoll_create1(EPOLL_CLOEXEC);
	loop->signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	if (loop->epoll == -1 || loop->signals == -1 || !serve_loop_watch(loop, loop->signals))
		return serve_log(SERVE_ERROR, "cannot start: %s", strerror(errno));
	return 0;
}

int serve_loop_listen(struct serve_loop *loop, const struct web_address *list, size_t count,
		      const char *standard, gid_t group)
{
	struct web_address address;
	const char *why;
	int inherited = 0;

	if (count == 0)
		inherited = serve_listen_inherit(&loop->listeners);
	if (inherited == -1)
		return CLI_EXIT_UNKNOWN;
	for (size_t i = 0; i < count; i++)
		if (serve_listen_open(&loop->listeners, &list[i], group))
			return CLI_EXIT_UNKNOWN;
	if (loop->listeners.count == 0 && (web_address_parse(&address, standard, &why) != OK ||
					   serve_listen_open(&loop->listeners, &address, group)))
		return CLI_EXIT_UNKNOWN;
	return 0;
}

int serve_loop_serve(struct serve_loop *loop, const char *web_config,
		     MHD_AccessHandlerCallback answer, void *context)
{
	char why[1200];

	if (serve_http_init(&loop->http, loop->epoll, web_config, answer, context, why,
			    sizeof(why)) == OK)
		return 0;
	return serve_log(SERVE_ERROR, "%s", why);
}

void serve_loop_close(struct serve_loop *loop)
{
	serve_listen_close(&loop->listeners);
	serve_http_release(&loop->http);
	if (loop->signals != -1)
		close(loop->signals);
	if (loop->epoll != -1)
		close(loop->epoll);
}

void serve_loop_reload(struct serve_loop *loop, const char *web_config)
{
	char why[1200];

	loop->must_reload = false;
	if (web_config == NULL) {
		serve_log(SERVE_INFO, "no web configuration to reload");
		return;
	}
	serve_systemd_notify("RELOADING=1\nMONOTONIC_USEC=%llu",
			     (unsigned long long)(clock_system_ns(CLOCK_MONOTONIC) / 1000));
	if (serve_http_reload(&loop->http, web_config, why, sizeof(why)) == OK)
		serve_log(SERVE_INFO, "reloaded %s", web_config);
	else
		serve_log(SERVE_ERROR, "%s; keeping the previous configuration", why);
	serve_systemd_notify("READY=1");
}

/* ---- running --------------------------------------------------------------------------------- */

static void take_signals(struct serve_loop *loop)
{
	struct signalfd_siginfo got;

	while (read(loop->signals, &got, sizeof(got)) == (ssize_t)sizeof(got)) {
		if (got.ssi_signo == SIGHUP)
			loop->must_reload = true;
		else if (got.ssi_signo != SIGCHLD) /* handled in due() */
			loop->must_end = true;
	}
}

static void take_event(struct serve_loop *loop, const struct serve_loop_program *program, int fd,
		       uint64_t now_ns)
{
	if (fd == loop->signals) {
		take_signals(loop);
		return;
	}
	for (size_t i = 0; i < loop->listeners.count; i++)
		if (fd == loop->listeners.list[i].fd) {
			serve_http_accept(&loop->http, &loop->listeners.list[i], now_ns);
			return;
		}
	program->event(program->context, fd, now_ns);
}

/* Without free descriptors a listener would wake us all the time: pause it for a second. */
static void pause_listeners(const struct serve_loop *loop, bool is_paused)
{
	for (size_t i = 0; i < loop->listeners.count; i++) {
		struct epoll_event event = { .events = is_paused ? 0 : EPOLLIN,
					     .data.fd = loop->listeners.list[i].fd };

		epoll_ctl(loop->epoll, EPOLL_CTL_MOD, event.data.fd, &event);
	}
}

static uint64_t heed_pause(struct serve_loop *loop, uint64_t now_ns)
{
	uint64_t until = loop->http.paused_until_ns;

	if (until == 0)
		return UINT64_MAX;
	pause_listeners(loop, now_ns < until);
	if (now_ns >= until)
		loop->http.paused_until_ns = 0;
	return now_ns < until ? until : UINT64_MAX;
}

/* The server last: what is answered is as new as can be. */
static uint64_t do_due(struct serve_loop *loop, const struct serve_loop_program *program,
		       uint64_t now_ns)
{
	uint64_t next = program->due(program->context, now_ns), at;

	if (loop->watchdog_ns > 0) {
		if (now_ns >= loop->next_watchdog_ns) {
			serve_systemd_notify("WATCHDOG=1");
			loop->next_watchdog_ns = now_ns + loop->watchdog_ns;
		}
		next = loop->next_watchdog_ns < next ? loop->next_watchdog_ns : next;
	}
	at = serve_http_run(&loop->http, now_ns);
	next = at < next ? at : next;
	if (loop->http.has_waiting)
		next = now_ns;
	at = heed_pause(loop, now_ns);
	return at < next ? at : next;
}

static int wait_ms(uint64_t now_ns, uint64_t next_ns)
{
	if (next_ns <= now_ns)
		return 0;
	if (next_ns - now_ns > UINT64_C(3600000000000))
		return 3600 * 1000;
	return (int)((next_ns - now_ns + 999999) / 1000000);
}

static void tell_addresses(const struct serve_loop *loop)
{
	for (size_t i = 0; i < loop->listeners.count; i++) {
		char text[160];
		const struct web_address *address = &loop->listeners.list[i].address;

		web_address_text(address, text, sizeof(text));
		serve_log(SERVE_INFO, "listening on %s%s%s",
			  address->is_unix	      ? ""
			  : loop->http.config.has_tls ? "https://"
						      : "http://",
			  text,
			  address->is_unix || address->is_loopback ||
					  loop->http.config.user_count > 0 ||
					  loop->http.config.client_auth == WEB_CLIENT_REQUIRE
				  ? ""
				  : ", open to everyone who can reach it: see --web-config");
	}
}

int serve_loop_run(struct serve_loop *loop, const struct serve_loop_program *program)
{
	struct epoll_event events[EVENTS_AT_ONCE];

	for (size_t i = 0; i < loop->listeners.count; i++)
		if (!serve_loop_watch(loop, loop->listeners.list[i].fd))
			return serve_log(SERVE_ERROR, "cannot start: %s", strerror(errno));
	loop->watchdog_ns = serve_systemd_watchdog_ns();
	tell_addresses(loop);
	serve_systemd_notify("READY=1");
	while (!loop->must_end) {
		uint64_t next_ns = do_due(loop, program, clock_system_ns(CLOCK_MONOTONIC)), now_ns;
		int count = epoll_wait(loop->epoll, events, EVENTS_AT_ONCE,
				       wait_ms(clock_system_ns(CLOCK_MONOTONIC), next_ns));

		now_ns = clock_system_ns(CLOCK_MONOTONIC);
		for (int i = 0; i < count; i++)
			take_event(loop, program, events[i].data.fd, now_ns);
	}
	serve_systemd_notify("STOPPING=1");
	return 0;
}
