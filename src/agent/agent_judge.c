/* Judging the speed of jobs, in a child process, because nobody can wait for half a second. */
#include "agent/agent.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/text.h"
#include "doctor/doctor.h"

/* Of a judgement, which is cut off by CPU time before: on a node without idle cores. */
#define JUDGE_NS (60 * SECOND_NS)
#define JUDGE_POLL_NS (100 * MS_NS)
/* Half of what the unit has. */
#define JUDGE_BYTES (UINT64_C(128) << 20)
enum { JUDGEMENT_BYTES_MAX = 4 << 20 };

/*
 * From the child, which is a fork of this program: the judgement and the verdicts as they are in memory, each verdict
 * followed by its lines.
 */
static void write_lines(struct sink *sink, const struct verdict_lines *lines)
{
	for (size_t i = 0; i < lines->count; i++)
		sink_write(sink, lines->list[i], strlen(lines->list[i]) + 1);
}

static int judge_work(const char *input, void *context)
{
	struct agent_look *look = context;
	struct live_judgement *judgement = &look->judgement;
	struct sink sink;

	(void)input;
	live_judge_compare(&look->live, judgement);
	sink_init_fd(&sink, STDOUT_FILENO);
	sink_write(&sink, judgement, sizeof(*judgement));
	for (size_t i = 0; i < judgement->found.count; i++) {
		const struct verdict *verdict = &judgement->found.list[i];

		sink_write(&sink, verdict, sizeof(*verdict));
		write_lines(&sink, &verdict->evidence);
		write_lines(&sink, &verdict->missing);
		write_lines(&sink, &verdict->advice);
	}
	return sink_flush(&sink) == OK ? 0 : 1;
}

/* What is left of the child's output. */
struct rest {
	char *at, *end;
};

static bool take_bytes(struct rest *rest, void *to, size_t length)
{
	if ((size_t)(rest->end - rest->at) < length)
		return false;
	memcpy(to, rest->at, length);
	rest->at += length;
	return true;
}

/* Borrowed from the output; `list` has room for VERDICT_LINES_MAX. */
static bool take_lines(struct rest *rest, struct verdict_lines *lines, char **list)
{
	lines->list = list;
	for (size_t i = 0; i < lines->count; i++) {
		char *end = rest->at < rest->end
				    ? memchr(rest->at, '\0', (size_t)(rest->end - rest->at))
				    : NULL;

		if (end == NULL || i == VERDICT_LINES_MAX)
			return false;
		list[i] = rest->at;
		rest->at = end + 1;
	}
	return true;
}

static bool take_judgement(struct live_judgement *judgement, const struct child *child)
{
	struct rest rest = { child->bytes, child->bytes + child->used };
	char *lines[3][VERDICT_LINES_MAX];
	struct live_judgement made;
	struct verdict verdict;

	if (child->code != 0 || !take_bytes(&rest, &made, sizeof(made)))
		return false;
	for (size_t i = 0; i < made.found.count; i++) {
		if (!take_bytes(&rest, &verdict, sizeof(verdict)) ||
		    !take_lines(&rest, &verdict.evidence, lines[0]) ||
		    !take_lines(&rest, &verdict.missing, lines[1]) ||
		    !take_lines(&rest, &verdict.advice, lines[2]))
			return false;
		verdicts_add_copy(&judgement->found, &verdict);
	}
	made.found = judgement->found;
	*judgement = made;
	return true;
}

/* A judgement counts against a budget of its own, so that expensive ones do not make scans less frequent. */
static void end_judgement(struct agent_look *look)
{
	if (!take_judgement(&look->judgement, &look->judge)) {
		serve_log(SERVE_WARNING, "cannot judge the speed of a job: %s", look->judge.why);
		look->judgement.status = ERR_SYSTEM;
	}
	look->judgements++;
	look->judged_ns += look->judge.cpu_ns;
	live_judge_end(&look->live, &look->judgement, look->judge.cpu_ns);
	child_release(&look->judge);
}

uint64_t agent_look_judge(struct agent_look *look, uint64_t now_ns)
{
	const struct child_task task = { .work = judge_work,
					 .keeps_files = true,
					 .context = look,
					 .timeout_ns = JUDGE_NS,
					 .limit_bytes = JUDGEMENT_BYTES_MAX,
					 .memory_bytes = JUDGE_BYTES };

	if (look->judge.begun_ns != 0) {
		if (!child_has_ended(&look->judge, now_ns))
			return now_ns + JUDGE_POLL_NS;
		end_judgement(look);
	}
	if (look->status != OK || look->judged_look == look->number)
		return UINT64_MAX;
	look->judged_look = look->number;
	if (!live_judge_begin(&look->live, look->last_ns, &look->judgement))
		return UINT64_MAX;
	child_start(&look->judge, &task, look->epoll, now_ns);
	return now_ns + JUDGE_POLL_NS;
}
