/* What py-spy, eu-stack, gdb and /proc print, and the one place that is chosen from it. */
#include <stdlib.h>
#include <string.h>

#include "import/stack_read.h"
#include "tests/tap.h"

#define EXPECT_STR(got, wanted) EXPECT(strcmp(got, wanted) == 0)

static const char py_spy[] =
	"[{\"pid\": 4711, \"thread_id\": 5, \"thread_name\": \"worker\", \"os_thread_id\": 4712,\n"
	" \"active\": true, \"owns_gil\": true, \"process_info\": null, \"frames\": [\n"
	"  {\"name\": \"work\", \"filename\": \"/home/u/w.py\", \"module\": null, \"line\": 3,\n"
	"   \"short_filename\": null, \"is_entry\": true,\n"
	"   \"locals\": [{\"name\": \"password\", \"addr\": 1, \"arg\": true, \"repr\": "
	"\"hunter2\"}]}]},\n"
	"{\"pid\": 4711, \"thread_id\": 6, \"thread_name\": \"MainThread\", \"os_thread_id\": "
	"4711,\n"
	" \"active\": false, \"owns_gil\": false, \"process_info\": null, \"frames\": [\n"
	"  {\"name\": \"wait\", \"filename\": \"/usr/lib/python3.11/threading.py\", \"line\": "
	"327},\n"
	"  {\"name\": \"barrier\", \"filename\": \"/v/site-packages/torch/distributed/c10d.py\", "
	"\"line\": 9},\n"
	"  {\"name\": \"__next__\", \"filename\": "
	"\"/v/site-packages/torch/utils/data/dataloader.py\", "
	"\"line\": 1130},\n"
	"  {\"name\": \"decorate\", \"filename\": \"/v/site-packages/torch/utils/_contextlib.py\", "
	"\"line\": 1},\n"
	"  {\"name\": \"step\", \"filename\": \"/home/u/train.py\", \"line\": 88},\n"
	"  {\"name\": \"main\", \"filename\": \"/home/u/train.py\", \"line\": 120}]}]\n";

static const char *say(const struct stack *stack)
{
	static char text[STACK_PLACE];

	stack_say(stack, text, sizeof(text));
	return text;
}

static void test_python_frames(void)
{
	static const char native[] = "TID 4711:\n#0  0x1 poll\nTID 4799:\n#0  0x1 pause\n";
	struct stack stack;
	struct stack_thread *thread;

	stack_init(&stack, 4711);
	EXPECT(stack_read_pyspy(&stack, py_spy, strlen(py_spy)) == OK);
	EXPECT(stack.thread_count == 2);
	/* The main thread counts, not the one that runs; frames that only wait and those of libraries are left out. */
	EXPECT_STR(say(&stack), "in torch/utils/data/dataloader.py:1130 in __next__ < "
				"/home/u/train.py:88 in step < /home/u/train.py:120 in main");
	EXPECT(stack.threads[0].owns_gil && stack.threads[0].tid == 4712);
	thread = stack_thread(&stack, 4711);
	thread->state = 'S';
	stack_read_syscall(thread, "7 0x1 0x2\n");
	EXPECT(strstr(say(&stack), " in main (asleep") != NULL);
	/* Native frames are for threads without Python's. */
	EXPECT(stack_read_native(&stack, native, strlen(native)) == OK);
	EXPECT(stack_thread(&stack, 4711)->is_python);
	EXPECT_STR(stack_thread(&stack, 4799)->frames[0].function, "pause");
	stack_release(&stack);
}

/* py-spy lists the newest thread first. Each has one frame, named after its place in the list. */
static void test_the_main_thread(void)
{
#define THREAD(frame, name, id)                                                                  \
	"{\"thread_name\": " name ", \"os_thread_id\": " id ", \"frames\": [{\"name\": \"" frame \
	"\", \"filename\": \"/t.py\", \"line\": 1}]}"
	static const struct {
		const char *sentence, *text, *place;
	} cases[] = {
		{ "Python 2: no names, no ids",
		  "[" THREAD("new", "null", "null") "," THREAD("old", "null", "null") "]", "old" },
		{ "a name says it",
		  "[" THREAD("new", "\"MainThread\"", "null") "," THREAD("old", "null", "null") "]",
		  "new" },
		{ "in a process forked from a thread it has another name",
		  "[" THREAD("only", "\"loader\"", "null") "]", "only" },
		{ "an id says it",
		  "[" THREAD("new", "null", "7") "," THREAD("old", "null", "8") "]", "new" },
		{ "if there are ids, the last one may be any",
		  "[" THREAD("new", "null", "9") "," THREAD("old", "null", "8") "]", NULL },
	};
#undef THREAD

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct stack stack;
		const struct stack_thread *thread;

		stack_init(&stack, 7);
		EXPECT(stack_read_pyspy(&stack, cases[i].text, strlen(cases[i].text)) == OK);
		thread = stack_thread(&stack, 7);
		EXPECT_THAT(cases[i].sentence,
			    thread->is_main && (cases[i].place != NULL
							? thread->frame_count == 1 &&
								  strcmp(thread->frames[0].function,
									 cases[i].place) == 0
							: thread->frame_count == 0));
		stack_release(&stack);
	}
}

static void test_threads_of_a_container(void)
{
	static const char text[] = "[{\"thread_name\": \"new\", \"os_thread_id\": 34, \"frames\": "
				   "[{\"name\": \"f\"}]},"
				   "{\"thread_name\": \"loader\", \"os_thread_id\": 4711, "
				   "\"frames\": [{\"name\": \"g\"}]},"
				   "{\"thread_name\": \"MainThread\", \"os_thread_id\": 1, "
				   "\"frames\": [{\"name\": \"h\"}]}]";
	struct stack stack;

	stack_init(&stack, 4711);
	stack_thread(&stack, 4711)->own_tid = 1;
	stack_thread(&stack, 4799)->own_tid = 4711;
	EXPECT(stack_read_pyspy(&stack, text, strlen(text)) == OK);
	EXPECT_STR(stack_thread(&stack, 4711)->name, "MainThread");
	EXPECT_THAT("its id is that of another thread here",
		    strcmp(stack_thread(&stack, 4799)->name, "loader") == 0 &&
			    !stack_thread(&stack, 4799)->is_main);
	EXPECT_THAT("the id of one that is too new is not known here",
		    stack.thread_count == 3 && stack.threads[2].tid == 0);
	stack_release(&stack);
	/* Here ids are what they are, also of a new thread. */
	stack_init(&stack, 1);
	stack_thread(&stack, 1)->own_tid = 1;
	EXPECT(stack_read_pyspy(&stack, text, strlen(text)) == OK);
	EXPECT(stack.thread_count == 3 && stack_thread(&stack, 34)->is_python &&
	       stack_thread(&stack, 4711)->is_python);
	stack_release(&stack);
}

static void test_values_are_not_kept(void)
{
	static const char gdb[] = "Thread 1 (Thread 0x7f (LWP 7) \"x\"):\n"
				  "#0  login (password=0x5555 \"hunter2\") at /src/login.c:12\n"
				  "#1  0x0000000000000001 in main () from /lib/x.so\n";
	struct stack stack;

	stack_init(&stack, 7);
	EXPECT(stack_read_native(&stack, gdb, strlen(gdb)) == OK);
	EXPECT(stack.thread_count == 1 && stack.threads[0].frame_count == 2);
	EXPECT_STR(stack.threads[0].frames[0].function, "login");
	EXPECT_STR(stack.threads[0].frames[0].file, "/src/login.c");
	EXPECT(stack.threads[0].frames[0].line == 12);
	EXPECT_STR(say(&stack), "in login < main");
	stack_release(&stack);
}

static void test_secrets_are_hidden(void)
{
	static const char text[] =
		"[{\"thread_name\": \"MainThread\", \"frames\": [{\"name\": \"f\", \"line\": 1,"
		"\"filename\": \"/tmp/token=abc/x.py\"}]}]";
	char to[128];
	struct stack stack;
	uint64_t socket;

	stack_init(&stack, 7);
	EXPECT(stack_read_pyspy(&stack, text, strlen(text)) == OK);
	EXPECT_STR(say(&stack), "in (hidden):1 in f");
	stack_release(&stack);
	EXPECT(stack_read_link("/data/password=x", to, sizeof(to), &socket));
	EXPECT_STR(to, "(hidden)");
}

/* The file of one frame, as it is kept. */
static const char *kept_file(const char *start, const char *repeated, int times, const char *end)
{
	static char file[STACK_FILE];
	char text[8192];
	size_t used;
	struct stack stack;

	used = (size_t)snprintf(text, sizeof(text),
				"[{\"thread_name\": \"MainThread\", \"frames\": "
				"[{\"name\": \"f\", \"line\": 1, \"filename\": \"%s",
				start);
	for (int i = 0; i < times; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s", repeated);
	used += (size_t)snprintf(text + used, sizeof(text) - used, "%s\"}]}]", end);
	stack_init(&stack, 7);
	EXPECT(stack_read_pyspy(&stack, text, used) == OK);
	snprintf(file, sizeof(file), "%s", stack.threads[0].frames[0].file);
	stack_release(&stack);
	return file;
}

static void test_long_paths(void)
{
	const char *file;

	EXPECT_STR(kept_file("", "/cluster", 100, "/site-packages/torch/_ops.py"), "torch/_ops.py");
	file = kept_file("", "/cluster", 100, "/train.py");
	EXPECT(strlen(file) == STACK_FILE - 1 && strncmp(file, "...", 3) == 0);
	EXPECT(strcmp(file + STACK_FILE - 1 - strlen("/cluster/train.py"), "/cluster/train.py") ==
	       0);
	EXPECT_THAT("one that just fits is whole",
		    kept_file("/", "x", STACK_FILE - 5, ".py")[0] == '/');
	EXPECT_THAT("one more byte does not fit",
		    strncmp(kept_file("/", "x", STACK_FILE - 4, ".py"), "...x", 4) == 0);
	/* Two bytes each: one of the two is cut inside a character. */
	EXPECT(strncmp(kept_file("/", "\xc3\xbc", 200, "/t.py"), "...\xc3\xbc", 5) == 0);
	EXPECT(strncmp(kept_file("/", "\xc3\xbc", 200, "/tt.py"), "...\xc3\xbc", 5) == 0);
	EXPECT_STR(kept_file("/token=abc", "/cluster", 100, "/train.py"), "(hidden)");
	EXPECT_THAT("longer than any path of the system",
		    strncmp(kept_file("", "/cluster", 600, "/train.py"), "...", 3) == 0);
}

static void test_native_frames(void)
{
	static const char eu_stack[] = "PID 9 - process\nTID 9:\n"
				       "#0  0x00007f2ac38e8545 clock_nanosleep@GLIBC_2.2.5\n"
				       "#1  0x00000000005d64b4 - 1\n"
				       "#2  0x000000000053acbc - 1 c10d::Work::wait(int)\n"
				       "#3  0x0000000000000001 - 1 main\n"
				       "TID 10:\n#0  0x1 pause\n";
	struct stack stack;

	stack_init(&stack, 9);
	EXPECT(stack_read_native(&stack, eu_stack, strlen(eu_stack)) == OK);
	EXPECT(stack.thread_count == 2 && stack.threads[0].is_main && !stack.threads[1].is_main);
	EXPECT_STR(say(&stack), "in clock_nanosleep < c10d::Work::wait(int) < main");
	stack_release(&stack);
	stack_init(&stack, 9);
	EXPECT(stack_read_native(&stack, "cannot attach\n", 14) == ERR_FORMAT);
	EXPECT(stack_read_pyspy(&stack, "Error: no", 9) == ERR_FORMAT);
	EXPECT(stack_read_pyspy(&stack, "[]", 2) == ERR_FORMAT);
	EXPECT_STR(say(&stack), "");
	stack_release(&stack);
}

#if defined(__aarch64__)
#define READ_CALL "63"
#define POLL_CALL "73"
#else
#define READ_CALL "0"
#define POLL_CALL "271"
#endif

static void test_what_the_kernel_says(void)
{
	struct stack stack;
	struct stack_thread *thread;
	char to[128];
	uint64_t number = 0;

	stack_init(&stack, 9);
	thread = stack_thread(&stack, 9);
	stack_read_stat(thread, "9 (a ) (b) S 1 9 9 0");
	EXPECT_STR(thread->name, "a ) (b");
	EXPECT(thread->state == 'S');
	stack_read_syscall(thread, READ_CALL " 0x5 0x7f 0x1 0x0 0x0 0x0 0x7ffe 0x7f2a\n");
	EXPECT_STR(thread->syscall, "read");
	EXPECT(thread->waits_on == 5);
	EXPECT(stack_read_link("pipe:[123]", thread->waits_for, sizeof(thread->waits_for),
			       &number));
	EXPECT_STR(say(&stack), "asleep in read from a pipe");
	thread->state = 'D';
	EXPECT(stack_read_link("/mnt/nfs/x", thread->waits_for, sizeof(thread->waits_for),
			       &number));
	EXPECT_STR(say(&stack), "in uninterruptible sleep in read from /mnt/nfs/x");
	thread->waits_on = -1;
	stack_read_syscall(thread, POLL_CALL " 0x5 0x1 0x1\n");
	EXPECT_STR(thread->syscall, "ppoll");
	EXPECT(thread->waits_on == -1);
	stack_read_syscall(thread, "54321 0x5\n");
	EXPECT_STR(thread->syscall, "system call 54321");
	/* On an overloaded machine, a thread that runs gets little. */
	thread->state = 'R';
	thread->cpu_percent = 4;
	EXPECT_STR(say(&stack), "running");
	thread->state = 'S';
	thread->cpu_percent = 97;
	EXPECT_STR(say(&stack), "running");
	stack_read_kernel(
		thread,
		"[<0>] hrtimer_nanosleep+0x74/0xf0\n[<0>] common_nsleep_timens+0x3d/0xa0\n"
		"[<0>] __x64_sys_clock_nanosleep+0xce/0x140\n[<0>] do_syscall_64+0x71/0x280\n");
	EXPECT_STR(thread->kernel, "hrtimer_nanosleep < common_nsleep_timens");
	stack_read_kernel(thread, "futex_wait");
	EXPECT_STR(thread->kernel, "futex_wait");
	stack_read_kernel(thread, "0");
	EXPECT_STR(thread->kernel, "");
	EXPECT(stack_read_schedstat("36105329 497683094 33\n", &number) && number == 36105329);
	EXPECT(!stack_read_schedstat("", &number));
	EXPECT(!stack_read_link("socket:[4242]", to, sizeof(to), &number) && number == 4242);
	stack_release(&stack);
}

static void test_the_other_end_of_a_socket(void)
{
	static const char tcp[] = "  sl  local_address rem_address   st tx_queue rx_queue tr "
				  "tm->when retrnsmt   uid  timeout inode\n"
				  "   0: 00000000:1F90 00000000:0000 0A 00000000:00000000 "
				  "00:00000000 00000000  0  0 11 1 0 100 0 0 10 0\n"
				  "   1: 0100007F:1F90 0200000A:01BB 01 00000000:00000000 "
				  "00:00000000 00000000  0  0 4242 1 0 20 4 30 10 -1\n";
	static const char tcp6[] =
		"   1: 00 0000000000000000FFFF00000200000A:01BB 01 0:0 00:0 0 0 0 77 1\n"
		"   2: 00 B80D0120000000000000000001000000:0050 01 0:0 00:0 0 0 0 78 1\n";
	char to[128];

	EXPECT(stack_read_peer(tcp, 4242, to, sizeof(to)));
	EXPECT(stack_read_peer(tcp, 11, to, sizeof(to)));
	EXPECT_STR(to, "a listening socket");
	EXPECT(!stack_read_peer(tcp, 12, to, sizeof(to)));
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	EXPECT(stack_read_peer(tcp, 4242, to, sizeof(to)));
	EXPECT_STR(to, "a socket to 10.0.0.2:443");
	EXPECT(stack_read_peer(tcp6, 77, to, sizeof(to)));
	EXPECT_STR(to, "a socket to 10.0.0.2:443");
	EXPECT(stack_read_peer(tcp6, 78, to, sizeof(to)));
	EXPECT_STR(to, "a socket to [2001:db8:0:0:0:0:0:1]:80");
#endif
}

static void test_lists_are_bounded(void)
{
	struct stack stack;
	char line[64];
	size_t size = 1 << 20, used = 0;
	char *text = malloc(size);

	stack_init(&stack, 1);
	for (int i = 1; i < 2000 && text != NULL; i++) {
		int length = snprintf(line, sizeof(line), "TID %d:\n#0  0x1 f\n#1  0x2 g\n", i);

		memcpy(text + used, line, (size_t)length);
		used += (size_t)length;
	}
	EXPECT(stack_read_native(&stack, text, used) == OK);
	EXPECT(stack.thread_count == STACK_THREADS_MAX &&
	       stack.threads_left_out == 1999 - STACK_THREADS_MAX);
	stack_release(&stack);
	used = (size_t)snprintf(text, size, "TID 1:\n");
	for (int i = 0; i < 1000; i++)
		used += (size_t)snprintf(text + used, size - used, "#%d  0x1 f\n", i);
	EXPECT(stack_read_native(&stack, text, used) == OK);
	EXPECT(stack.threads[0].frame_count == STACK_FRAMES_MAX);
	stack_release(&stack);
	free(text);
}

int main(void)
{
	test_python_frames();
	test_the_main_thread();
	test_threads_of_a_container();
	test_values_are_not_kept();
	test_secrets_are_hidden();
	test_long_paths();
	test_native_frames();
	test_what_the_kernel_says();
	test_the_other_end_of_a_socket();
	test_lists_are_bounded();
	return tap_done();
}
