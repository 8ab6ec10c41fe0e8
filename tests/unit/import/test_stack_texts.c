/* Texts of /proc about a thread, right and wrong ones, and what a verdict makes of it. */
#include <sys/syscall.h>

#include "common/attributes.h"
#include "import/stack_read.h"
#include "tests/support/shown_text.h"
#include "tests/tap.h"

static void show_syscalls(void)
{
	static const struct {
		long number;
		const char *rest;
	} cases[] = { { SYS_read, " 0x5 0x0" },
		      { SYS_read, " 0x7fffffff 0x0" },
		      { SYS_read, " 0x80000000 0x0" },
		      { SYS_read, "" },
		      { SYS_read, "x" },
		      { SYS_futex, " 0x5 0x0" },
		      { 99999, " 0x5" },
		      { -1, " 0x7ffe 0x5555" },
		      { -1, "" } };
	struct stack_thread thread;

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		char text[64];

		thread = (struct stack_thread){ .waits_on = -1 };
		snprintf(text, sizeof(text), "%ld%s", cases[i].number, cases[i].rest);
		stack_read_syscall(&thread, text);
		show("syscall case %zu: '%s' waits on %d%s\n", i, thread.syscall,
		     (int)thread.waits_on, thread.is_in_user_code ? ", in user code" : "");
	}
	for (size_t i = 0; i < 3; i++) {
		static const char *const texts[] = { "running", "runnin", "what 5" };

		thread = (struct stack_thread){ .waits_on = -1 };
		stack_read_syscall(&thread, texts[i]);
		show("syscall %s: '%s'%s\n", texts[i], thread.syscall,
		     thread.is_in_user_code ? ", in user code" : "");
	}
}

static void show_kernels(void)
{
	static const char *const texts[] = {
		"",
		"0",
		"futex_wait_queue",
		"futex_wait_queue\n",
		"[<0>] hrtimer_nanosleep+0x74/0xf0\n[<0>] common_nsleep+0x40/0x50\n[<0>] "
		"__x64_sys_clock_nanosleep+0xc3/0x130\n"
		"[<0>] do_syscall_64+0x59/0x90\n[<0>] entry_SYSCALL_64_after_hwframe+0x63/0xcd\n",
		"[<0>] a+1\n[<0>] b+1\n[<0>] c+1\n[<0>] d+1\n[<0>] e+1\n",
		"[<0>]\n[<0>] \n[nothing\n[<0>] el0_svc+1\n[<0>] f",
		"[<0>] a b\n\n[<0>] g+0x1",
	};

	for (size_t i = 0; i < ARRAY_LENGTH(texts); i++) {
		struct stack_thread thread = { .kernel = "before" };

		stack_read_kernel(&thread, texts[i]);
		show("kernel case %zu: '%s'\n", i, thread.kernel);
	}
}

static void show_stats(void)
{
	static const char *const texts[] = { "7 (name) S 1", "7 (a) b (c) R 1", "7 () T 1",
					     "7 (name)S 1",  "7 name S 1",	"7 )name( S 1",
					     "7 (name) 5 1", "7 (name",		"7 name) S",
					     "7 (name) " };
	uint64_t ns = 5;

	for (size_t i = 0; i < ARRAY_LENGTH(texts); i++) {
		struct stack_thread thread = { .state = 'x' }, named = { .name = "known" };

		stack_read_stat(&thread, texts[i]);
		stack_read_stat(&named, texts[i]);
		show("stat '%s': '%s' %c, '%s'\n", texts[i], thread.name, thread.state, named.name);
	}
	EXPECT(stack_read_schedstat("123 456 7\n", &ns) && ns == 123);
	EXPECT(!stack_read_schedstat("123", &ns) && !stack_read_schedstat(" x 5", &ns) &&
	       !stack_read_schedstat("", &ns) && ns == 123);
}

static void show_links(void)
{
	static const char *const links[] = { "pipe:[5]",
					     "anon_inode:[eventpoll]",
					     "anon_inode:[eventfd]",
					     "anon_inode:[timerfd]",
					     "anon_inode:[signalfd]",
					     "anon_inode:[io_uring]",
					     "anon_inode:[pidfd]",
					     "anon_inode:other",
					     "socket:[77]",
					     "socket:[77",
					     "socket:77",
					     "/data/x",
					     "/data/a\x01"
					     "b" };
	static const char table[] =
		"  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid "
		" timeout inode\n"
		"   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0 "
		"       0 70 1\n"
		"   1: 0100007F:1F90 0200000A:01BB 01 00000000:00000000 00:00000000 00000000     0 "
		"       0 71 1\n"
		"   2: x 00000000000000000000000000000000:0050 01 00000000:00000000 00:00000000 "
		"00000000     0        0 72 1\n"
		"   3: x 0000000000000000FFFF00000200000A:0050 01 00000000:00000000 00:00000000 "
		"00000000     0        0 73 1\n"
		"   4: x B80D0120000000000000000001000000:FFFF 01 00000000:00000000 00:00000000 "
		"00000000     0        0 74 1\n"
		"   5: x 0200000A 01 00000000:00000000 00:00000000 00000000     0        0 75 1\n"
		"   6: x 0200000A:1BB 01 00000000:00000000 00:00000000 00000000     0        0 76 "
		"1\n"
		"   7: x 0200000A0200000A:01BB 01 00000000:00000000 00:00000000 00000000     0     "
		"   0 77 1\n"
		"   8: x 0200000A:01BB 01 00000000:00000000 00:00000000 00000000     0        0\n"
		"   9: x 0200000A:01BB 01 00000000:00000000 00:00000000 00000000     0        0 0 "
		"1\n"
		"  10: x 0100000000000000FFFF00000200000A:0050 01 00000000:00000000 00:00000000 "
		"00000000     0        0 78 1\n"
		"  11: x 0000000001000000FFFF00000200000A:0050 01 00000000:00000000 00:00000000 "
		"00000000     0        0 79";
	char to[128];

	for (size_t i = 0; i < ARRAY_LENGTH(links); i++) {
		uint64_t socket = 5;
		bool is_known;

		snprintf(to, sizeof(to), "nothing");
		is_known = stack_read_link(links[i], to, sizeof(to), &socket);
		show("link case %zu: %s '%s' %" PRIu64 "\n", i, is_known ? "is" : "is not", to,
		     socket);
	}
	for (uint64_t socket = 69; socket <= 80; socket++) {
		bool is_known;

		snprintf(to, sizeof(to), "nothing");
		is_known = stack_read_peer(table, socket, to, sizeof(to));
		show("socket %" PRIu64 ": %s '%s'\n", socket, is_known ? "is" : "is not", to);
	}
	EXPECT(!stack_read_peer(table, 0, to, sizeof(to)) &&
	       !stack_read_peer("", 70, to, sizeof(to)));
}

static void show_states(void)
{
	static const char states[] = { 'R', 'S', 'D', 'T', 't', 'Z', 'X', '\0' };
	static const int percents[] = { -1, 0, 49, 50 };
	static const struct {
		const char *syscall, *what;
	} waits[] = { { "", "a pipe" },
		      { "read", "a pipe" },
		      { "recvfrom", "x" },
		      { "poll", "x" },
		      { "futex", "" } };
	char text[240];

	for (size_t i = 0; i < sizeof(states); i++)
		for (size_t j = 0; j < ARRAY_LENGTH(percents); j++) {
			struct stack_thread thread = { .state = states[i],
						       .cpu_percent = percents[j],
						       .syscall = "futex" };

			stack_say_state(&thread, text, sizeof(text));
			show("state %c at %d%%: '%s'\n", states[i] != '\0' ? states[i] : '-',
			     percents[j], text);
		}
	for (size_t i = 0; i < ARRAY_LENGTH(waits); i++) {
		struct stack_thread thread = { .state = 'S', .cpu_percent = -1 };

		snprintf(thread.syscall, sizeof(thread.syscall), "%s", waits[i].syscall);
		snprintf(thread.waits_for, sizeof(thread.waits_for), "%s", waits[i].what);
		stack_say_state(&thread, text, sizeof(text));
		show("in %s: '%s'\n", waits[i].syscall, text);
	}
}

/* Which thread is chosen: one with frames, of Python, the main one, the one that runs Python code. */
static void show_choices(void)
{
	for (unsigned int bits = 0; bits < 256; bits++) {
		struct stack_frame frames[2] = {
			{ .function = "first", .file = "a.py", .line = 1 },
			{ .function = "second", .file = "b.py", .line = 2 }
		};
		struct stack_thread threads[2];
		struct stack stack = { .threads = threads, .thread_count = 2 };
		char text[STACK_PLACE];

		for (unsigned int i = 0; i < 2; i++) {
			unsigned int own = bits >> 4 * i;

			frames[i].is_python = own & 2;
			threads[i] = (struct stack_thread){ .frames = &frames[i],
							    .frame_count = own & 1,
							    .is_python = own & 2,
							    .is_main = own & 4,
							    .owns_gil = own & 8,
							    .state = i == 0 ? 'S' : 'R',
							    .cpu_percent = -1 };
		}
		stack_say(&stack, text, sizeof(text));
		/* Those that differ in one of the threads only. */
		if ((bits & 15) == 1 || (bits >> 4) == 3)
			show("threads %x and %x: %s\n", bits & 15, bits >> 4, text);
	}
}

int main(void)
{
	show_syscalls();
	show_kernels();
	show_stats();
	show_links();
	show_states();
	show_choices();
	EXPECT_THAT("threads are described as expected",
		    shown_is_expected("tests/unit/import/expected/stack_texts.txt"));
	return tap_done();
}
