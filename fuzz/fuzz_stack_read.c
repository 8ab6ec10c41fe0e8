/* What other programs and /proc say about a process: any bytes, in any order, in the format of each. */
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz_main.h"
#include "import/stack_read.h"

static void check_text(const char *text, size_t size)
{
	const char *end = memchr(text, '\0', size);

	if (end == NULL)
		abort();
	for (; text < end; text++)
		if ((unsigned char)*text < 0x20)
			abort();
}

static void check(const struct stack *stack)
{
	char place[STACK_PLACE], state[240];

	if (stack->thread_count > STACK_THREADS_MAX)
		abort();
	stack_say(stack, place, sizeof(place));
	check_text(place, sizeof(place));
	for (size_t t = 0; t < stack->thread_count; t++) {
		const struct stack_thread *thread = &stack->threads[t];

		if (thread->frame_count > STACK_FRAMES_MAX)
			abort();
		check_text(thread->name, sizeof(thread->name));
		check_text(thread->waits_for, sizeof(thread->waits_for));
		check_text(thread->kernel, sizeof(thread->kernel));
		stack_say_state(thread, state, sizeof(state));
		check_text(state, sizeof(state));
		for (size_t f = 0; f < thread->frame_count; f++) {
			check_text(thread->frames[f].file, sizeof(thread->frames[f].file));
			check_text(thread->frames[f].function, sizeof(thread->frames[f].function));
		}
	}
}

static void read_proc(struct stack *stack, const char *text)
{
	struct stack_thread *thread = stack_thread(stack, 7);
	uint64_t number;

	if (thread == NULL)
		return;
	stack_read_stat(thread, text);
	stack_read_syscall(thread, text);
	stack_read_kernel(thread, text);
	stack_read_schedstat(text, &number);
	if (!stack_read_link(text, thread->waits_for, sizeof(thread->waits_for), &number))
		stack_read_peer(text, number, thread->waits_for, sizeof(thread->waits_for));
	stack_read_peer(text, 1, thread->waits_for, sizeof(thread->waits_for));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct stack stack;
	char *text = malloc(size + 1);

	if (text == NULL)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	stack_init(&stack, 7);
	stack_read_pyspy(&stack, text, size);
	stack_read_native(&stack, text, size);
	read_proc(&stack, text);
	check(&stack);
	stack_release(&stack);
	stack_init(&stack, 7);
	read_proc(&stack, text);
	stack_read_native(&stack, text, size);
	stack_read_pyspy(&stack, text, size);
	check(&stack);
	stack_release(&stack);
	free(text);
	return 0;
}
