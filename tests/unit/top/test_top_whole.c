/*
 * Whole screens with their styles: scenes with two jobs at many sizes, each pane active, with a filter, paused, with help.
 * Below each line of text are the styles of its cells, as digits of enum top_style; blank: plain.
 */
#include <locale.h>
#include <time.h>

#include "common/attributes.h"
#include "common/clock.h"
#include "tests/support/expected_output.h"
#include "tests/tap.h"
#include "tests/unit/output/live_scenes.h"
#include "top/top.h"

struct screen {
	unsigned int width, height; /* height 0: once, as text */
	enum top_pane pane;
	size_t at;
	const char *filter;
	bool is_typing, is_paused, has_help, is_ascii;
	const char *remark;
};

static const struct screen screens[] = {
	{ .width = 80, .height = 24 },
	{ .width = 80, .height = 24, .pane = TOP_COMMS, .at = 3, .is_paused = true },
	{ .width = 100, .height = 40, .pane = TOP_SEATS, .at = 5, .filter = "tensor" },
	{ .width = 120,
	  .height = 30,
	  .pane = TOP_FLIGHTS,
	  .at = 1,
	  .remark = "1 file cannot be read" },
	{ .width = 60, .height = 15, .pane = TOP_NOTICES, .at = 1, .is_ascii = true },
	{ .width = 45, .height = 12, .filter = "world", .is_typing = true },
	{ .width = 200, .height = 60, .pane = TOP_SEATS, .at = 7 },
	{ .width = 30, .height = 8, .pane = TOP_SEATS },
	{ .width = 22, .height = 6, .pane = TOP_COMMS, .at = 9 },
	{ .width = 72, .height = 30, .has_help = true },
	{ .width = 90, .height = 20, .filter = "nothing has this name" },
	{ .width = 100 },
	{ .width = 60, .remark = "2 files cannot be read" },
};

static void put_styles(struct sink *sink, const struct top_canvas *canvas, unsigned int row)
{
	unsigned int end = canvas->width;

	while (end > 0 && top_canvas_cell(canvas, row, end - 1)->style == TOP_PLAIN)
		end--;
	for (unsigned int i = 0; i < end; i++) {
		uint8_t style = top_canvas_cell(canvas, row, i)->style;

		sink_byte(sink, style == TOP_PLAIN ? ' ' : (char)('0' + style));
	}
	sink_byte(sink, '\n');
}

static void put_canvas(struct sink *sink, const struct top_canvas *canvas)
{
	const char *line;
	struct sink text;

	sink_init_memory(&text);
	top_canvas_write(canvas, &text);
	line = sink_string(&text);
	for (unsigned int row = 0; row < canvas->height; row++) {
		size_t length = strcspn(line, "\n");

		sink_byte(sink, '|');
		sink_write(sink, line, length);
		sink_text(sink, "\n ");
		put_styles(sink, canvas, row);
		line += length + (line[length] != '\0');
	}
	sink_release(&text);
}

static void put_screen(struct sink *sink, const struct live *live, const struct screen *screen)
{
	struct top_around around = { .host = "gpu-node-07" };
	struct top_canvas canvas;
	struct top_model model;
	struct top_view view;
	enum status status;

	top_view_init(&view, SECOND_NS);
	top_model_init(&model);
	top_canvas_init(&canvas, !screen->is_ascii);
	snprintf(around.remark, sizeof(around.remark), "%s", screen->remark ? screen->remark : "");
	snprintf(view.filter, sizeof(view.filter), "%s", screen->filter ? screen->filter : "");
	view.pane = screen->pane;
	view.is_typing = screen->is_typing;
	view.is_paused = screen->is_paused;
	view.has_help = screen->has_help;
	view.is_once = screen->height == 0;
	view.places[screen->pane].at = screen->at;
	EXPECT_EQUAL(top_model_make(&model, live, &view), OK);
	status = view.is_once
			 ? top_draw_once(&canvas, &model, &view, &around, screen->width)
			 : top_draw(&canvas, &model, &view, &around, screen->width, screen->height);
	EXPECT_EQUAL(status, OK);
	sink_format(sink, "%ux%u\n", screen->width, screen->height);
	put_canvas(sink, &canvas);
	top_canvas_release(&canvas);
	top_model_release(&model);
}

static void expect_scene(const char *name, void (*change)(struct live_scene *scene),
			 const char *file)
{
	static struct live_scene scene;
	char path[128];
	struct sink sink;

	live_scene_make(&scene, name);
	scene.live.limits = live_limits_default();
	if (change)
		change(&scene);
	sink_init_memory(&sink);
	for (size_t i = 0; i < ARRAY_LENGTH(screens); i++)
		put_screen(&sink, &scene.live, &screens[i]);
	snprintf(path, sizeof(path), "tests/unit/top/expected/%s.txt", file);
	EXPECT_THAT(path, expected_text(&sink, path));
	live_scene_release(&scene);
}

/* One process was killed and one ended; operations are sampled; a GPU is known, and a second host. */
static void make_uneven(struct live_scene *scene)
{
	struct live *live = &scene->live;

	scene->list[1]->life = RECORDING_KILLED;
	scene->list[2]->life = RECORDING_ENDED;
	live->job.ranks[1].life = RECORDING_KILLED;
	live->job.ranks[2].life = RECORDING_ENDED;
	for (size_t i = 0; i < live->job.seat_count; i++) {
		uint32_t process = live->job.seats[i].process;

		live->seats[i].is_over = process == 1 || process == 2;
		live->seats[i].sums.operations = 100;
		live->seats[i].sums.timed = 10 * (i + 1);
	}
	for (size_t i = 0; i < scene->list[0]->comm_count; i++)
		scene->list[0]->comms[i].info.gpu = 3;
	live->notices_left_out = 4;
}

/* Operations that wait for one thing or several, known since a while or not; the second job is an earlier run, and the first was
 * judged in part. */
static void make_waiting(struct live_scene *scene)
{
	static const enum flight_reason reasons[] = { FLIGHT_RECV_NET, FLIGHT_SEND_GPU,
						      FLIGHT_SEND_NET, FLIGHT_RECV_GPU };
	struct live *live = &scene->live;
	struct live_judged *speed = &live->jobs[0].speed;

	for (size_t i = 0; i < live->job.seat_count; i++) {
		struct live_seat *seat = &live->seats[i];

		if (seat->oldest == NULL)
			continue;
		seat->wait_count = i % 4;
		for (uint32_t w = 0; w < seat->wait_count; w++)
			seat->waits[w] = (struct flight_wait){
				.reason = reasons[(i + w) % 4],
				.peer = (int32_t)w,
				.since_ns = flight_since_ns(seat->oldest) + w * 1000000000,
			};
	}
	live->job.groups[1].is_earlier_run = true;
	live->jobs[1].is_alive = false;
	speed->is_judged = false;
	snprintf(speed->why, sizeof(speed->why), "too few operations were timed");
}

/* ---- what fits ---------------------------------------------------------------------------------- */

static void put_columns(struct sink *sink, const struct top_model *model, enum top_pane pane)
{
	for (unsigned int width = 4; width <= 160; width += width < 60 ? 3 : 9) {
		struct top_fit fit;

		top_columns_fit(&fit, model, pane, width, true);
		sink_format(sink, "%u:", width);
		for (size_t i = 0; i < fit.count; i++)
			sink_format(sink, " %s %u+%u",
				    fit.columns[i]->title[0] ? fit.columns[i]->title : "(bar)",
				    fit.at[i], fit.widths[i]);
		sink_byte(sink, '\n');
	}
}

/* The columns of each pane at many widths, with their places and widths. */
static void test_columns(void)
{
	static struct live_scene scene;
	struct top_model model;
	struct top_view view;
	struct sink sink;

	live_scene_make(&scene, "straggler");
	scene.live.limits = live_limits_default();
	make_uneven(&scene);
	top_view_init(&view, SECOND_NS);
	top_model_init(&model);
	EXPECT_EQUAL(top_model_make(&model, &scene.live, &view), OK);
	sink_init_memory(&sink);
	for (enum top_pane pane = TOP_COMMS; pane < TOP_PANES; pane++)
		put_columns(&sink, &model, pane);
	EXPECT_THAT("columns", expected_text(&sink, "tests/unit/top/expected/columns.txt"));
	top_model_release(&model);
	live_scene_release(&scene);
}

static void put_layouts(struct sink *sink, const struct top_model *model,
			const struct top_view *view, unsigned int notice_lines,
			unsigned int remarks)
{
	static const unsigned int heights[] = { 0,  1,	2,  3,	4,  5,	6,  7,	8,  9,	10, 11,
						12, 13, 14, 15, 16, 18, 20, 24, 30, 40, 60, 100 };

	for (size_t i = 0; i < ARRAY_LENGTH(heights); i++) {
		struct top_layout layout;

		top_layout(&layout, model, view, heights[i], notice_lines, remarks);
		sink_format(sink, "%u:", heights[i]);
		for (enum top_pane pane = 0; pane < TOP_PANES; pane++)
			sink_format(sink, " %u+%u", layout.at[pane], layout.lines[pane]);
		sink_format(sink, " remarks %u, keys %u\n", layout.remark_at, layout.keys_at);
	}
}

/* How lines are divided, with few and many rows, notices and remarks. */
static void test_layouts(void)
{
	struct top_model model;
	struct top_view view;
	struct sink sink;

	top_model_init(&model);
	top_view_init(&view, SECOND_NS);
	sink_init_memory(&sink);
	model.lists[TOP_COMMS].count = 12;
	model.lists[TOP_SEATS].count = 64;
	for (enum top_pane pane = 0; pane < TOP_PANES; pane++) {
		view.pane = pane;
		sink_format(&sink, "pane %d\n", (int)pane);
		put_layouts(&sink, &model, &view, 4, 0);
	}
	view.pane = TOP_COMMS;
	view.is_typing = true;
	sink_text(&sink, "typing, remarks\n");
	put_layouts(&sink, &model, &view, 0, 2);
	model.lists[TOP_COMMS].count = 1;
	model.lists[TOP_SEATS].count = 0;
	view.is_typing = false;
	sink_text(&sink, "few rows, many notices\n");
	put_layouts(&sink, &model, &view, 50, 1);
	EXPECT_THAT("layouts", expected_text(&sink, "tests/unit/top/expected/layouts.txt"));
	top_model_release(&model);
}

int main(void)
{
	if (setlocale(LC_CTYPE, "C.UTF-8") == NULL)
		return tap_skip_all("locale C.UTF-8 is not available");
	setenv("TZ", "UTC", 1);
	tzset();
	expect_scene("hang", NULL, "hang");
	expect_scene("straggler", NULL, "straggler");
	expect_scene("straggler", make_uneven, "uneven");
	expect_scene("fresh", NULL, "fresh");
	expect_scene("hang", make_waiting, "waiting");
	expect_scene("empty", NULL, "empty");
	test_columns();
	test_layouts();
	return tap_done();
}
