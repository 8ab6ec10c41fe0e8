#include "programs/top/top_look.h"

#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/text.h"

/* Who died is of interest for a while, and then in the way. */
#define KEEP_NS UINT64_C(60000000000)

enum status top_look_init(struct top_look *look, const char *directory)
{
	struct watch_settings settings = { .directory = directory, .keep_ns = KEEP_NS };
	struct live_limits limits = live_limits_default();

	*look = (struct top_look){ .around = { .host = "" } };
	if (gethostname(look->around.host, sizeof(look->around.host) - 1) == -1)
		text_copy(look->around.host, sizeof(look->around.host), "?");
	live_init(&look->live, &limits);
	top_model_init(&look->model);
	return watch_init(&look->watch, &settings);
}

void top_look_release(struct top_look *look)
{
	top_model_release(&look->model);
	live_release(&look->live);
	watch_release(&look->watch);
}

uint64_t top_look_clock(void)
{
	return clock_system_ns(CLOCK_MONOTONIC);
}

static void remark(struct top_look *look, enum status status)
{
	const struct watch *watch = &look->watch;
	char *text = look->around.remark;

	text[0] = '\0';
	if (status != OK)
		text_format(text, TOP_REMARK_TEXT, "this look failed: %s", status_text(status));
	else if (watch->refused_count > 0)
		text_format(text, TOP_REMARK_TEXT, "%zu file%s cannot be read: %s: %s",
			    watch->refused_count, watch->refused_count == 1 ? "" : "s",
			    watch->refused[0].path, watch->refused[0].why);
	else if (watch->left_out > 0)
		text_format(text, TOP_REMARK_TEXT, "%zu processes beyond the first %d are left out",
			    watch->left_out, WATCH_PROCESSES_MAX);
	else if (watch->unreadable > 0)
		text_format(text, TOP_REMARK_TEXT,
			    "%zu recording%s of other users may not be read; root may",
			    watch->unreadable, watch->unreadable == 1 ? "" : "s");
}

/* What live knows points into the recording: whatever watch_look() made of it, live must follow. */
void top_look_now(struct top_look *look, struct top_view *view)
{
	enum status status = watch_look(&look->watch, WATCH_TOTALS), next;
	struct live_limits limits = look->live.limits;

	next = live_look(&look->live, &look->watch.recording, top_look_clock(),
			 clock_system_ns(CLOCK_REALTIME));
	if (next != OK) {
		live_release(&look->live);
		live_init(&look->live, &limits);
		status = next;
	}
	next = top_model_make(&look->model, &look->live, view);
	remark(look, status != OK ? status : next);
}

void top_look_again(struct top_look *look, struct top_view *view)
{
	if (top_model_make(&look->model, &look->live, view) != OK)
		remark(look, ERR_NO_SPACE);
}
