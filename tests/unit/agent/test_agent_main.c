/*
 * What the agent does at the start and in each round, in which order, and when it is due next. All that it calls is played;
 * the program is included for that.
 */
#include "tests/tap.h"

#if !__has_include(<microhttpd.h>) || !__has_include(<gnutls/gnutls.h>)

int main(void)
{
	return tap_skip_all("no headers of libmicrohttpd or GnuTLS");
}

#else

#include <stdarg.h>
#include <stdio.h>

#include "agent/agent.h"
#include "agent/agent_route.h"
#include "cli/cli_ask.h"
#include "common/text.h"
#include "hub/hub.h"
#include "serve/server.h"

/* ---- the stage -------------------------------------------------------------------------------- */

/* Calls in their order; which one fails, and when each is due next. */
static char calls[1000];
static const char *failing;
static struct {
	uint64_t probe_ns, judge_ns, host_ns, bodies_ns, hook_ns;
	bool has_news, is_searching, is_step, is_busy;
	int fd;
	enum status status;
	char status_text[100];
} play;

static int call(const char *name)
{
	text_append(calls, sizeof(calls), "%s ", name);
	return failing && strcmp(failing, name) == 0 ? 7 : 0;
}

/* The same, of what is passed to it. */
static int call_with(const char *name, ...)
{
	return call(name);
}

static bool is_called(const char *wanted)
{
	bool is_same = strcmp(calls, wanted) == 0;

	if (!is_same)
		printf("# got %s\n# wanted %s\n", calls, wanted);
	calls[0] = '\0';
	return is_same;
}

static void play_notify(const char *format, ...) PRINTF_LIKE(1, 2);
static void play_notify(const char *format, ...)
{
	va_list list;

	va_start(list, format);
	vsnprintf(play.status_text, sizeof(play.status_text), format, list);
	va_end(list);
}

static enum status play_init(struct agent_look *look)
{
	look->watch.inotify = 5;
	return call("look") ? ERR_FORMAT : OK;
}

static uint64_t play_probe(bool *has_news)
{
	call("probe");
	*has_news = play.has_news;
	return play.probe_ns;
}

static uint64_t play_bodies(bool is_busy)
{
	call("bodies");
	play.is_busy = is_busy;
	return play.bodies_ns;
}

static void play_textfile(struct agent_textfile *to, uint64_t now_ns)
{
	call("textfile");
	to->next_ns = now_ns + 100;
}

static bool play_watch(int fd)
{
	play.fd = fd;
	return call("watch") == 0;
}

#define serve_rights_find(rights, user, group) call("find")
#define serve_loop_open(loop) call("open")
#define serve_loop_listen(loop, list, count, standard, group) \
	call((group) == (gid_t)-1 ? "listen" : "listen-as-group")
#define serve_loop_serve(loop, config, answer, context) call("serve")
#define cli_host_watch_open(host) call("host")
#define serve_rights_drop(rights) \
	call((rights)->must_write ? "drop-and-write" : (rights)->must_hand_on ? "drop-on" : "drop")
#define agent_textfile_open(to, directory, interval) call("files")
#define agent_look_init(look, watch, limits) play_init(look)
#define watch_fd(watch) ((watch)->inotify)
#define serve_loop_watch(loop, fd) play_watch(fd)
#define serve_hook_open(hook, command, timeout, epoll) call("hook")
#define agent_probe_open(probe, options, epoll) call("probe")
#define agent_bodies_init(bodies, look, host, epoll) call("bodies")
#define serve_hook_release(hook) call_with("hook", hook)
#define agent_probe_release(probe) call_with("probe", probe)
#define serve_loop_close(loop) call_with("loop", loop)
#define agent_bodies_release(bodies) call_with("bodies", bodies)
#define agent_textfile_close(to) call_with("files", to)
#define serve_verdicts_release(verdicts) call_with("verdicts", verdicts)
#define agent_kernel_release(kernel) call_with("kernel", kernel)
#define agent_look_release(look) call_with("look", look)
#define cli_host_watch_close(host) call_with("host", host)
#define serve_hook_handle(hook, now) call_with("hook", hook, now)
#define agent_look_heed(look, now) call_with("heed", look, now)
#define serve_systemd_notify play_notify
#define agent_bodies_age(bodies) call_with("age", bodies)
#define agent_notices_report(notices, live, now) call_with("notices", notices, live, now)
#define serve_verdicts_report(verdicts, live, to, now) \
	call_with("verdicts", verdicts, live, to, now)
#define agent_kernel_look(kernel, live, watch, now) call_with("kernel", kernel, live, watch, now)
#define agent_probe_run(probe, live, watch, now, news) play_probe(news)
#define agent_look_search(look) (call("search"), play.is_searching)
#define agent_look_judge(look, now) (call("judge"), play.judge_ns)
#define agent_textfile_write(to, live, now) play_textfile(to, now)
#define agent_look_host(look, now) (call("host"), play.host_ns)
#define serve_loop_reload(loop, config) ((loop)->must_reload = false, call("reload"))
#define agent_bodies_forget(bodies) call("forget")
#define agent_look_step(look, now) (call("step"), play.is_step)
#define agent_bodies_run(bodies, http, is_busy, now) play_bodies(is_busy)
#define serve_hook_run(hook, now) (call("hook"), play.hook_ns)
#define serve_loop_run(loop, program) call_with("run", loop, program)
#define hub_main(argc, argv) (call("hub"), 70 + (argc))
#pragma push_macro("main")
#undef main
#define main agent_program
#include "agent/agent_main.c"
#undef main
#pragma pop_macro("main")

#define BEGIN (1000 * SECOND_NS)

static struct agent agent;
static struct agent_options options;

static void begin(void)
{
	memset(&agent, 0, sizeof(agent));
	memset(&options, 0, sizeof(options));
	memset(&play, 0, sizeof(play));
	play.probe_ns = play.judge_ns = play.host_ns = play.bodies_ns = play.hook_ns = UINT64_MAX;
	agent.options = &options;
	agent.hook.output = -1;
	agent.look.next_ns = UINT64_MAX;
	calls[0] = '\0';
	failing = NULL;
}

/* ---- start and end ---------------------------------------------------------------------------- */

static void test_open(void)
{
	/* After a failure nothing more is opened; what is only prepared is. */
	static const struct {
		const char *failing, *calls;
	} cases[] = {
		{ "find", "find host probe bodies " },
		{ "open", "find open host probe bodies " },
		{ "listen", "find open listen host probe bodies " },
		{ "serve", "find open listen serve host probe bodies " },
		{ "drop", "find open listen serve host drop probe bodies " },
		{ "files", "find open listen serve host drop files probe bodies " },
		{ "look", "find open listen serve host drop files look probe bodies " },
		{ "hook", "find open listen serve host drop files look watch hook probe bodies " },
	};

	begin();
	EXPECT_EQUAL(open_all(&agent), 0);
	EXPECT(is_called("find open listen serve host drop files look watch hook probe bodies ") &&
	       agent.is_watching && play.fd == 5 && agent.kernel.seconds == 0);
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		begin();
		failing = cases[i].failing;
		EXPECT(open_all(&agent) != 0);
		EXPECT_THAT(cases[i].failing, is_called(cases[i].calls));
	}
	begin();
	failing = "watch";
	EXPECT(open_all(&agent) == 0 && !agent.is_watching);
	begin();
	options.has_kernel = true;
	options.kernel_ns = 30 * SECOND_NS;
	options.serving.group = "x";
	EXPECT(open_all(&agent) == 0 && agent.kernel.seconds == 30 &&
	       is_called(
		       "find open listen-as-group serve host drop-and-write files look watch hook "
		       "probe bodies "));
	begin();
	options.probe.has_stacks = true;
	EXPECT(open_all(&agent) == 0 && strstr(calls, " drop-on ") != NULL);
}

static void test_program(void)
{
	begin();
	EXPECT_EQUAL(agent_run(&options), 0);
	EXPECT(is_called("find open listen serve host drop files look watch hook probe bodies run "
			 "hook probe loop bodies files verdicts kernel look host "));
	failing = "open";
	EXPECT_EQUAL(agent_run(&options), 7);
	EXPECT(strstr(calls, "run") == NULL && strstr(calls, " loop bodies files ") != NULL);
	begin();
	EXPECT_EQUAL(agent_program(3, (char *[]){ "ringside-agent", "hub", "x", NULL }), 72);
	EXPECT(is_called("hub "));
	EXPECT_EQUAL(agent_program(2, (char *[]){ "ringside-agent", "--none", NULL }),
		     CLI_EXIT_USAGE);
	EXPECT_EQUAL(agent_program(1, (char *[]){ "ringside-agent", NULL }), 0);
	EXPECT(strstr(calls, " run ") != NULL);
}

/* ---- rounds ----------------------------------------------------------------------------------- */

static void test_events(void)
{
	begin();
	agent.look.watch.inotify = 5;
	agent.hook.output = 6;
	take_event(&agent, 6, BEGIN);
	EXPECT(is_called("hook "));
	take_event(&agent, 5, BEGIN);
	EXPECT(is_called(""));
	agent.is_watching = true;
	take_event(&agent, 5, BEGIN);
	EXPECT(is_called("heed "));
	take_event(&agent, 4, BEGIN);
	EXPECT(is_called(""));
}

static void test_rounds(void)
{
	begin();
	agent.look.next_ns = BEGIN + 50;
	EXPECT_EQUAL(do_due(&agent, BEGIN), BEGIN + 50);
	EXPECT(is_called("step probe search judge host bodies hook ") && !play.is_busy);
	agent.look.number = 1;
	play.is_step = true;
	do_due(&agent, BEGIN);
	EXPECT_THAT(
		"a new scan is reported once",
		is_called(
			"step age notices verdicts kernel probe search judge host bodies hook ") &&
			play.is_busy && agent.noted_look == 1);
	agent.look.is_scanning = true;
	agent.loop.must_reload = true;
	EXPECT_EQUAL(do_due(&agent, BEGIN), BEGIN);
	EXPECT_THAT("during a scan nothing is made of the last one",
		    is_called("reload forget step bodies hook "));
}

/* The next thing that is due decides. */
static void test_next(void)
{
	uint64_t *const times[] = { &play.probe_ns,  &play.judge_ns, &play.host_ns,
				    &play.bodies_ns, &play.hook_ns,  &agent.look.next_ns };

	for (size_t i = 0; i < ARRAY_LENGTH(times); i++) {
		begin();
		play.probe_ns = play.judge_ns = play.host_ns = BEGIN + 20;
		play.bodies_ns = play.hook_ns = agent.look.next_ns = BEGIN + 20;
		*times[i] = BEGIN + 10;
		EXPECT_EQUAL(do_due(&agent, BEGIN), BEGIN + 10);
		*times[i] = BEGIN + 30;
		EXPECT_EQUAL(do_due(&agent, BEGIN), BEGIN + 20);
	}
	begin();
	play.is_searching = true;
	EXPECT_EQUAL(do_due(&agent, BEGIN), BEGIN);
	begin();
	play.has_news = true;
	EXPECT_THAT("news of a hung job are scanned at once",
		    do_due(&agent, BEGIN) == BEGIN && agent.look.next_ns == BEGIN);
}

static void test_textfile(void)
{
	begin();
	agent.textfile.directory = "/d";
	agent.textfile.next_ns = BEGIN;
	do_due(&agent, BEGIN);
	EXPECT_THAT("no process, no file", strstr(calls, "textfile") == NULL);
	agent.textfile.count = 1;
	calls[0] = '\0';
	EXPECT_EQUAL(do_due(&agent, BEGIN), BEGIN + 100);
	EXPECT_THAT("the last files are removed",
		    strstr(calls, "judge textfile host bodies") && play.is_busy);
	agent.textfile.count = 0;
	agent.look.watch.recording.count = 1;
	calls[0] = '\0';
	EXPECT_EQUAL(do_due(&agent, BEGIN + 99), BEGIN + 100);
	EXPECT(strstr(calls, "textfile") == NULL && !play.is_busy);
	play.is_step = true;
	EXPECT_EQUAL(do_due(&agent, BEGIN + 100), BEGIN + 100);
	EXPECT_THAT("not in a round that took long", strstr(calls, "textfile") == NULL);
	play.is_step = false;
	EXPECT_EQUAL(do_due(&agent, BEGIN + 100), BEGIN + 200);
	play.judge_ns = BEGIN + 150;
	EXPECT_EQUAL(do_due(&agent, BEGIN + 101), BEGIN + 150);
	agent.textfile.directory = NULL;
	calls[0] = '\0';
	do_due(&agent, BEGIN + 300);
	EXPECT(strstr(calls, "textfile") == NULL);
}

static void test_status(void)
{
	begin();
	tell_status(&agent);
	EXPECT(play.status_text[0] == '\0');
	agent.look.watch.recording.count = 3;
	tell_status(&agent);
	EXPECT(strcmp(play.status_text, "STATUS=3 processes, 0 notices") == 0);
	play.status_text[0] = '\0';
	tell_status(&agent);
	EXPECT(play.status_text[0] == '\0');
	agent.look.live.notice_count = 2;
	tell_status(&agent);
	EXPECT(strcmp(play.status_text, "STATUS=3 processes, 2 notices") == 0);
}

int main(void)
{
	test_open();
	test_program();
	test_events();
	test_rounds();
	test_next();
	test_textfile();
	test_status();
	return tap_done();
}

#endif
