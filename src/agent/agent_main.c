/*
 *	             +--------------------- epoll -------------------------------------+
 *	             |          |             |           |           |                |
 *	         listeners   libmicrohttpd  inotify   signals    the hook's        a moment:
 *	             |          |             |           |        output     scan, textfiles, watchdog,
 *	             v          v             v           v           v       a client's patience, the
 *	          accept     answer       scan soon   exit, reload,  log it   hook's time
 *	                                              a child ended
 *
 * One thread. Everything else waits for at most one scan, one response body or one bcrypt.
 */
#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "agent/agent_hook.h"
#include "agent/agent_http.h"
#include "agent/agent_look.h"
#include "agent/agent_options.h"
#include "agent/agent_route.h"
#include "agent/agent_system.h"
#include "agent/agent_verdicts.h"
#include "cmds/cli.h"
#include "common/clock.h"

/* The main loop: every event is a descriptor or a timer. */

/* Blocks above this size are returned to the system when freed: response bodies are, memory of scans is reused. */
enum { EVENTS_AT_ONCE = 32, LARGE_BLOCK = 2 * 1024 * 1024, TRIM_ABOVE = 8 * 1024 * 1024 };

struct agent {
	const struct agent_options *options;
	struct agent_listeners listeners;
	struct agent_http http;
	struct agent_route route;
	struct agent_look look;
	struct agent_notices notices;
	struct agent_verdicts verdicts;
	struct agent_kernel kernel;
	struct agent_hook hook;
	struct agent_textfile textfile;
	int epoll;
	int signals;
	bool is_watching; /* inotify is in the epoll set */
	bool must_end;
	uint64_t watchdog_ns;
	uint64_t next_watchdog_ns;
	uint64_t noted_look;	 /* number of the last processed scan */
	size_t status_processes; /* as in STATUS */
	size_t status_notices;
};

/* ---- setup ---------------------------------------------------------------------------------- */

static bool listen_to(const struct agent *agent, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	return epoll_ctl(agent->epoll, EPOLL_CTL_ADD, fd, &event) == 0;
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

static int open_signals(struct agent *agent)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	/* The parent may have ignored SIGCHLD: then the exit status of the hook would be lost. */
	signal(SIGCHLD, SIG_DFL);
	agent->epoll = epoll_create1(EPOLL_CLOEXEC);
	agent->signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	if (agent->epoll == -1 || agent->signals == -1 || !listen_to(agent, agent->signals))
		return agent_log(AGENT_ERROR, "cannot start: %s", strerror(errno));
	return 0;
}

/* The command line takes precedence, then sockets from systemd, then the default. */
static int open_listeners(struct agent *agent, gid_t group)
{
	const struct agent_options *options = agent->options;
	struct web_address standard;
	const char *why;
	int inherited = 0;

	if (options->listen_count == 0)
		inherited = agent_listen_inherit(&agent->listeners);
	if (inherited == -1)
		return CLI_EXIT_UNKNOWN;
	for (size_t i = 0; i < options->listen_count; i++)
		if (agent_listen_open(&agent->listeners, &options->listen[i], group))
			return CLI_EXIT_UNKNOWN;
	if (agent->listeners.count == 0 &&
	    (web_address_parse(&standard, "127.0.0.1:9749", &why) != OK ||
	     agent_listen_open(&agent->listeners, &standard, group)))
		return CLI_EXIT_UNKNOWN;
	return 0;
}

static int open_http(struct agent *agent)
{
	char why[1200];

	if (agent_http_init(&agent->http, agent->epoll, agent->options->web_config, agent_route,
			    &agent->route, why, sizeof(why)) == OK)
		return 0;
	return agent_log(AGENT_ERROR, "%s", why);
}

static int open_look(struct agent *agent)
{
	enum status status =
		agent_look_init(&agent->look, &agent->options->watch, &agent->options->limits);
	int fd = watch_fd(&agent->look.watch);

	if (status != OK)
		return agent_log(AGENT_ERROR, "cannot watch processes: %s",
				 status == ERR_SYSTEM ? strerror(errno) : status_text(status));
	agent->is_watching = fd != -1 && listen_to(agent, fd);
	return 0;
}

static int open_hook(struct agent *agent)
{
	const char *command = agent->options->hook;
	const char *wrong = agent_hook_init(&agent->hook, command, agent->epoll);

	if (wrong)
		return agent_log(AGENT_ERROR, "--hook %s: %s", command, wrong);
	agent->hook.timeout_ns = agent->options->hook_ns;
	if (command && access(agent->hook.words[0], X_OK) == -1)
		agent_log(AGENT_WARNING, "--hook %s: %s", agent->hook.words[0], strerror(errno));
	return 0;
}

static int open_all(struct agent *agent)
{
	const struct agent_options *options = agent->options;
	struct agent_rights rights = { .must_write = options->has_kernel };
	int code;

	set_limits();
	code = agent_rights_find(&rights, options->user, options->group);
	if (code == 0)
		code = open_signals(agent);
	if (code == 0)
		code = open_listeners(agent, options->group ? rights.group : (gid_t)-1);
	if (code == 0)
		code = open_http(agent);
	if (code == 0)
		code = agent_rights_drop(&rights);
	if (code == 0)
		code = agent_textfile_open(&agent->textfile, options->textfile,
					   options->interval_ns);
	if (code == 0)
		code = open_look(agent);
	if (code == 0)
		code = open_hook(agent);
	for (size_t i = 0; code == 0 && i < agent->listeners.count; i++)
		if (!listen_to(agent, agent->listeners.list[i].fd))
			code = agent_log(AGENT_ERROR, "cannot start: %s", strerror(errno));
	agent->route.http = &agent->http;
	agent->route.look = &agent->look;
	agent->look.verdicts = agent->verdicts.totals;
	agent->look.kernel = agent->kernel.totals;
	if (options->has_kernel)
		agent->kernel.seconds = (uint32_t)(options->kernel_ns / UINT64_C(1000000000));
	agent->route.host = options->host;
	agent_bodies_init(&agent->route.bodies, &agent->look, options->host);
	return code;
}

static void close_all(struct agent *agent)
{
	agent_listen_close(&agent->listeners);
	agent_http_release(&agent->http);
	agent_bodies_release(&agent->route.bodies);
	agent_textfile_close(&agent->textfile);
	agent_hook_release(&agent->hook);
	agent_verdicts_release(&agent->verdicts);
	agent_kernel_release(&agent->kernel);
	agent_look_release(&agent->look);
	if (agent->signals != -1)
		close(agent->signals);
	if (agent->epoll != -1)
		close(agent->epoll);
}

/* ---- events ---------------------------------------------------------------------------------- */

static void agent_reload(struct agent *agent)
{
	char why[1200];

	if (agent->options->web_config == NULL) {
		agent_log(AGENT_INFO, "no web configuration to reload");
		return;
	}
	agent_systemd_notify("RELOADING=1\nMONOTONIC_USEC=%llu",
			     (unsigned long long)(clock_system_ns(CLOCK_MONOTONIC) / 1000));
	if (agent_http_reload(&agent->http, agent->options->web_config, why, sizeof(why)) == OK)
		agent_log(AGENT_INFO, "reloaded %s", agent->options->web_config);
	else
		agent_log(AGENT_ERROR, "%s; keeping the previous configuration", why);
	/* Cached answers have the old headers. */
	agent_bodies_release(&agent->route.bodies);
	agent_systemd_notify("READY=1");
}

static void take_signals(struct agent *agent)
{
	struct signalfd_siginfo got;

	while (read(agent->signals, &got, sizeof(got)) == (ssize_t)sizeof(got)) {
		if (got.ssi_signo == SIGHUP)
			agent_reload(agent);
		else if (got.ssi_signo != SIGCHLD) /* handled in do_due() */
			agent->must_end = true;
	}
}

static void take_event(struct agent *agent, int fd, uint64_t now_ns)
{
	if (fd == agent->signals)
		take_signals(agent);
	else if (fd == agent->hook.output)
		agent_hook_handle(&agent->hook, now_ns);
	else if (agent->is_watching && fd == watch_fd(&agent->look.watch))
		agent_look_heed(&agent->look, now_ns);
	else
		for (size_t i = 0; i < agent->listeners.count; i++)
			if (fd == agent->listeners.list[i].fd)
				agent_http_accept(&agent->http, &agent->listeners.list[i], now_ns);
}

static void tell_status(struct agent *agent)
{
	size_t processes = agent->look.watch.recording.count;
	size_t notices = agent->look.live.notice_count;

	if (processes == agent->status_processes && notices == agent->status_notices)
		return;
	agent->status_processes = processes;
	agent->status_notices = notices;
	agent_systemd_notify("STATUS=%zu processes, %zu notices", processes, notices);
}

/* Runs what is due; returns when the next thing is due. */
static uint64_t do_due(struct agent *agent, uint64_t now_ns)
{
	const struct agent_verdicts_to to = { &agent->hook, agent->options->host,
					      &agent->look.watch };
	struct agent_textfile *textfile = &agent->textfile;
	uint64_t next, at;

	if (now_ns >= agent->look.next_ns)
		agent_look_take(&agent->look, now_ns);
	/* A request may have caused a scan, too. */
	if (agent->look.number != agent->noted_look) {
		agent->noted_look = agent->look.number;
		agent_bodies_age(&agent->route.bodies);
		agent_notices_report(&agent->notices, &agent->look.live, now_ns);
		agent_verdicts_report(&agent->verdicts, &agent->look.live, &to, now_ns);
		agent_kernel_look(&agent->kernel, &agent->look.live, &agent->look.watch, now_ns);
		tell_status(agent);
	}
	next = agent->look.next_ns;
	if (textfile->directory && (agent->look.watch.recording.count > 0 || textfile->count > 0)) {
		if (now_ns >= textfile->next_ns)
			agent_textfile_write(textfile, &agent->look.live, now_ns);
		next = textfile->next_ns < next ? textfile->next_ns : next;
	}
	if (agent->watchdog_ns > 0) {
		if (now_ns >= agent->next_watchdog_ns) {
			agent_systemd_notify("WATCHDOG=1");
			agent->next_watchdog_ns = now_ns + agent->watchdog_ns;
		}
		next = agent->next_watchdog_ns < next ? agent->next_watchdog_ns : next;
	}
	at = agent_hook_run(&agent->hook, now_ns);
	next = at < next ? at : next;
	at = agent_http_run(&agent->http, now_ns);
	return at < next ? at : next;
}

/* Without free descriptors a listener would wake us all the time: pause it for a second. */
static void pause_listeners(const struct agent *agent, bool is_paused)
{
	for (size_t i = 0; i < agent->listeners.count; i++) {
		struct epoll_event event = { .events = is_paused ? 0 : EPOLLIN,
					     .data.fd = agent->listeners.list[i].fd };

		epoll_ctl(agent->epoll, EPOLL_CTL_MOD, event.data.fd, &event);
	}
}

static uint64_t heed_pause(struct agent *agent, uint64_t now_ns)
{
	uint64_t until = agent->http.paused_until_ns;

	if (until == 0)
		return UINT64_MAX;
	pause_listeners(agent, now_ns < until);
	if (now_ns >= until)
		agent->http.paused_until_ns = 0;
	return now_ns < until ? until : UINT64_MAX;
}

static int wait_ms(uint64_t now_ns, uint64_t next_ns)
{
	if (next_ns <= now_ns)
		return 0;
	if (next_ns - now_ns > UINT64_C(3600000000000))
		return 3600 * 1000;
	return (int)((next_ns - now_ns + 999999) / 1000000);
}

static void agent_run(struct agent *agent)
{
	struct epoll_event events[EVENTS_AT_ONCE];

	while (!agent->must_end) {
		uint64_t now_ns = clock_system_ns(CLOCK_MONOTONIC);
		uint64_t next_ns = do_due(agent, now_ns), resume_ns = heed_pause(agent, now_ns);
		int count;

		if (resume_ns < next_ns)
			next_ns = resume_ns;
		count = epoll_wait(agent->epoll, events, EVENTS_AT_ONCE,
				   wait_ms(clock_system_ns(CLOCK_MONOTONIC), next_ns));
		now_ns = clock_system_ns(CLOCK_MONOTONIC);
		for (int i = 0; i < count; i++)
			take_event(agent, events[i].data.fd, now_ns);
	}
}

/* ---- start and end --------------------------------------------------------------------------- */

static void tell_addresses(const struct agent *agent)
{
	for (size_t i = 0; i < agent->listeners.count; i++) {
		char text[160];
		const struct web_address *address = &agent->listeners.list[i].address;

		web_address_text(address, text, sizeof(text));
		agent_log(AGENT_INFO, "listening on %s%s%s",
			  address->is_unix	       ? ""
			  : agent->http.config.has_tls ? "https://"
						       : "http://",
			  text,
			  address->is_unix || address->is_loopback ||
					  agent->http.config.user_count > 0 ||
					  agent->http.config.client_auth == WEB_CLIENT_REQUIRE
				  ? ""
				  : ", open to everyone who can reach it: see --web-config");
	}
}

/* Runs until it is stopped. Returns the exit code. */
static int agent_loop(const struct agent_options *options)
{
	struct agent *agent = calloc(1, sizeof(*agent));
	int code;

	if (agent == NULL)
		return agent_log(AGENT_ERROR, "out of memory");
	agent->options = options;
	agent->epoll = agent->signals = agent->textfile.fd = agent->hook.output = -1;
	agent->http.server.epoll = agent->http.old.epoll = -1;
	agent->look.watch.inotify = -1;
	code = open_all(agent);
	if (code == 0) {
		agent->watchdog_ns = agent_systemd_watchdog_ns();
		tell_addresses(agent);
		agent_systemd_notify("READY=1");
		agent_run(agent);
		agent_systemd_notify("STOPPING=1");
	}
	close_all(agent);
	free(agent);
	return code;
}

/* ringside-agent: see docs/AGENT.md. Started by `ringside agent`. */

int main(int argc, char **argv)
{
	struct agent_options options;
	int code = agent_options_parse(&options, argc, argv);

	return code == -1 ? agent_loop(&options) : code;
}
