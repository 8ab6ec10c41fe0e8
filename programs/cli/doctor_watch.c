#include "programs/cli/doctor_watch.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/hash.h"
#include "common/text.h"
#include "programs/cli/cli_errors.h"
#include "programs/cli/cli_memory.h"
#include "programs/cli/cli_options.h"
#include "view/json.h"
#include "view/verdict_json.h"

/* What is remembered of a verdict from one look to the next. */
struct known {
	uint64_t key;
	uint64_t state; /* what makes it another when it changes: severity, title */
	uint64_t first_ns;
	char title[200];
	bool is_there; /* in this look */
};

struct watch {
	const struct doctor_options *options;
	struct known *list;
	size_t count;
	bool has_looked;
};

static uint64_t state_of(const struct verdict *verdict)
{
	/* What cannot be told says how far it is from that: no news each time. */
	if (verdict->class == VERDICT_BLIND && verdict->severity == VERDICT_NOTE)
		return VERDICT_NOTE;
	return hash_word((uint64_t)verdict->severity,
			 hash_bytes(verdict->title, strlen(verdict->title)));
}

static struct known *find(struct watch *watch, uint64_t key)
{
	for (size_t i = 0; i < watch->count; i++)
		if (watch->list[i].key == key)
			return &watch->list[i];
	return NULL;
}

static struct known *remember(struct watch *watch, uint64_t key, uint64_t wall_ns)
{
	struct known *known;

	watch->list = cli_realloc(watch->list, (watch->count + 1) * sizeof(*watch->list));
	known = &watch->list[watch->count++];
	*known = (struct known){ .key = key, .first_ns = wall_ns };
	return known;
}

/* ---- telling --------------------------------------------------------------------------------- */

static void tell_json(struct sink *sink, const char *event, const struct doctor_case *look,
		      const struct verdict *verdict, const struct known *known)
{
	char time[UNITS_TEXT];
	struct json json;

	json_init(&json, sink);
	json_object(&json);
	json_put_string(&json, "event", event);
	json_put_string(&json, "time", units_wall_time(time, look->wall_ns));
	json_put_unsigned(&json, "time_ns", look->wall_ns);
	json_put_hex(&json, "key", known->key);
	json_put_string(&json, "title", known->title);
	if (verdict) {
		json_key(&json, "verdict");
		verdict_json_one(&json, verdict);
	}
	json_end(&json);
	json_line(&json);
}

static void tell(struct sink *sink, const char *event, const struct doctor_case *look,
		 const struct verdict *verdict, const struct known *known)
{
	struct verdict_text_options style = doctor_text_options(look->options);
	char time[UNITS_TEXT], stood[UNITS_TEXT], title[200];

	if (look->options->is_json) {
		tell_json(sink, event, look, verdict, known);
		return;
	}
	style.has_jobs = look->has_job && look->scene.jobs > 1;
	units_date(time, look->wall_ns);
	if (verdict) {
		sink_format(sink, "\n%s UTC: %s\n", time, event);
		verdict_text_one(sink, verdict, 0, &style);
		return;
	}
	verdict_text_clean(title, sizeof(title), known->title);
	sink_format(sink, "\n%s UTC: %s after %s: %s\n", time, event,
		    units_duration(stood, look->wall_ns - known->first_ns), title);
}

/* The first look is told as a whole, of the others what is new. */
static void tell_first(struct sink *sink, const struct doctor_case *look)
{
	struct verdict_text_options style = doctor_text_options(look->options);
	struct verdict_look shown = doctor_case_look(look);
	struct json json;

	if (!look->options->is_json) {
		if (verdict_text(sink, &look->verdicts, &shown, &style) == ERR_NO_SPACE)
			cli_no_memory();
		return;
	}
	json_init(&json, sink);
	verdict_json(&json, &look->verdicts, &shown);
	json_line(&json);
}

static void compare(struct watch *watch, struct sink *sink, const struct doctor_case *look)
{
	size_t kept = 0;

	for (size_t i = 0; i < watch->count; i++)
		watch->list[i].is_there = false;
	for (size_t i = 0; i < look->verdicts.count; i++) {
		const struct verdict *verdict = &look->verdicts.list[i];
		struct known *known = find(watch, verdict_key(verdict));
		bool is_new = known == NULL;
		bool is_other = is_new || known->state != state_of(verdict);

		if (is_new)
			known = remember(watch, verdict_key(verdict), look->wall_ns);
		known->is_there = true;
		known->state = state_of(verdict);
		text_copy(known->title, sizeof(known->title), verdict->title);
		if (watch->has_looked && is_other)
			tell(sink, is_new ? "appeared" : "changed", look, verdict, known);
	}
	for (size_t i = 0; i < watch->count; i++) {
		if (watch->list[i].is_there)
			watch->list[kept++] = watch->list[i];
		else
			tell(sink, "cleared", look, NULL, &watch->list[i]);
	}
	watch->count = kept;
	if (!watch->has_looked)
		tell_first(sink, look);
	watch->has_looked = true;
}

/* ---- the loop -------------------------------------------------------------------------------- */

/* True: go on. */
static bool look_once(struct watch *watch, const struct doctor_yardstick *yardstick, int stop_fd,
		      int *exit_code)
{
	struct doctor_case look;
	struct sink sink;
	int code = doctor_case_make(&look, watch->options, yardstick, stop_fd);

	/* Nothing recorded now may be recorded later; what is wrong with the command stays wrong. */
	if (code != 0) {
		doctor_case_release(&look);
		if (code != CLI_END)
			*exit_code = code;
		return code == CLI_EXIT_TROUBLE;
	}
	sink_init_fd(&sink, STDOUT_FILENO);
	compare(watch, &sink, &look);
	*exit_code = scene_has_trouble(look.has_job ? &look.scene : NULL, &look.verdicts)
			     ? CLI_EXIT_TROUBLE
			     : CLI_EXIT_DONE;
	doctor_case_release(&look);
	if (sink_flush(&sink) == OK) {
		sink_release(&sink);
		return true;
	}
	*exit_code = cli_finish(&sink, CLI_EXIT_TROUBLE);
	return false;
}

static bool wait_for_next(uint64_t interval_ns, int stop_fd)
{
	struct pollfd stop = { stop_fd, POLLIN, 0 };
	int found = poll(&stop, 1, (int)(interval_ns / 1000000));

	return found == 0 || (found == -1 && errno == EINTR);
}

int doctor_watch(const struct doctor_options *options, const struct doctor_yardstick *yardstick)
{
	struct watch watch = { .options = options };
	int exit_code = CLI_EXIT_DONE, stop_fd;
	sigset_t ends;

	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	sigprocmask(SIG_BLOCK, &ends, NULL);
	stop_fd = signalfd(-1, &ends, SFD_CLOEXEC);
	if (stop_fd == -1)
		return cli_error("cannot wait for signals: %s", strerror(errno));
	while (look_once(&watch, yardstick, stop_fd, &exit_code) &&
	       wait_for_next(options->interval_ns, stop_fd))
		;
	close(stop_fd);
	free(watch.list);
	return exit_code;
}
