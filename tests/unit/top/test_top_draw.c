/*
 * Whole screens of `ringside top`, as text, compared with tests/top/screen-*.expected; REWRITE=1
 * rewrites these files for review.
 */
#include <locale.h>
#include <time.h>

#include "common/clock.h"
#include "tests/support/live_scene.h"
#include "tests/tap.h"
#include "top/top.h"

enum { RANKS = 8 };

struct top {
	struct live_scene scene;
	struct top_view view;
	struct top_model model;
	struct top_canvas canvas;
	struct top_around around;
};

static const char hostile[] = "模型\xe2\x80\xae e\xcc\x81t\xc3\xa9\xff\x1b[31m並列";

/* Rank 5 has not called AllReduce #812 of dp; the other communicators go on. */
static void begin(struct top *top, const char *odd_name)
{
	*top = (struct top){ .around = { .host = "gpu-node-07" } };
	for (int i = 0; i < RANKS; i++) {
		struct recording_process *process = scene_process(&top->scene, "llm-70b", i, 16);

		scene_comm(process, 0xd9, "dp", i, 2 * RANKS, 2);
		scene_comm(process, (uint64_t)(200 + i / 4), i / 4 ? odd_name : "tp-0", i % 4, 4,
			   1);
	}
	scene_join(&top->scene);
	top->scene.live.limits = live_limits_default();
	for (uint32_t i = 0; i < top->scene.live.job.comm_count; i++) {
		const double waits[RANKS] = { 0.31, 0.28, 0.3, 0.29, 0.27, 0, 0.3, 0.3 };
		struct scene_course course = { .operations_per_s = 120 * (i + 1),
					       .busbw = 182e9 / (i + 1),
					       .wait = 0.12,
					       .points = 60,
					       .stopped = i == 0 ? 24 : 0,
					       .seed = i };

		scene_course(&top->scene, i, &course, waits);
	}
	top_view_init(&top->view, SECOND_NS);
	top_model_init(&top->model);
	top_canvas_init(&top->canvas, true);
}

static void hang(struct top *top)
{
	struct live *live = &top->scene.live;
	const struct job_comm *dp = &live->job.comms[0];
	struct live_notice *notice = scene_notice(&top->scene, LIVE_MISSING, 0, dp->seats[5], 24);

	scene_job_hangs(&top->scene, 0);
	for (uint32_t i = 0; i < dp->seat_count; i++) {
		struct live_seat *seat = &live->seats[dp->seats[i]];

		if (i == 5)
			seat->is_behind = true;
		else
			scene_flight(&top->scene, dp->seats[i], OP_ALL_REDUCE, 812,
				     24 * SECOND_NS + i * 10000000);
	}
	live->seats[dp->seats[6]].wait_count = 2;
	live->seats[dp->seats[6]].waits[0] = (struct flight_wait){
		.reason = FLIGHT_RECV_NET, .peer = 5, .channels = { 15 }, .since_ns = 5000000000
	};
	snprintf(notice->title, sizeof(notice->title),
		 "rank 5 has not called AllReduce #812 of dp; 7 ranks wait");
	snprintf(notice->text, sizeof(notice->text),
		 "7 of 8 ranks of dp seen here are in an operation, the longest in AllReduce #812 "
		 "for 24 s. Rank 5 (gpu-node-07, pid 41205) is at collective 811.");
	snprintf(notice->hint, sizeof(notice->hint), "ringside ps @41205");
	notice = scene_notice(&top->scene, LIVE_STRAGGLER, 1, live->job.comms[1].seats[1], 70);
	snprintf(notice->title, sizeof(notice->title),
		 "straggler: rank 1 of tp-0; others wait 31%% of the time");
}

static void end(struct top *top)
{
	top_canvas_release(&top->canvas);
	top_model_release(&top->model);
	live_scene_release(&top->scene);
}

static void draw(struct top *top, unsigned int width, unsigned int height)
{
	if (top_model_make(&top->model, &top->scene.live, &top->view) != OK ||
	    (top->view.is_once
		     ? top_draw_once(&top->canvas, &top->model, &top->view, &top->around, width)
		     : top_draw(&top->canvas, &top->model, &top->view, &top->around, width,
				height)) != OK)
		abort();
}

static void expect_screen(struct top *top, const char *sentence, const char *name)
{
	const char *rewrite = getenv("REWRITE");
	char path[256], wanted[65536];
	struct sink sink;
	size_t length = 0;
	FILE *file;

	snprintf(path, sizeof(path), "tests/top/screen-%s.expected", name);
	sink_init_memory(&sink);
	top_canvas_write(&top->canvas, &sink);
	if (rewrite && rewrite[0] == '1' && (file = fopen(path, "w")) != NULL) {
		fputs(sink_string(&sink), file);
		fclose(file);
	}
	if ((file = fopen(path, "r")) != NULL) {
		length = fread(wanted, 1, sizeof(wanted) - 1, file);
		fclose(file);
	}
	wanted[length] = '\0';
	if (!EXPECT_THAT(sentence, strcmp(sink_string(&sink), wanted) == 0))
		printf("# got:\n%s\n# wanted (%s):\n%s\n", sink_string(&sink), path, wanted);
	sink_release(&sink);
}

static void test_screens(void)
{
	struct top top;

	begin(&top, "tp-1");
	hang(&top);
	draw(&top, 80, 24);
	expect_screen(&top, "80x24", "80x24");
	draw(&top, 200, 50);
	expect_screen(&top, "200x50", "200x50");
	draw(&top, 40, 10);
	expect_screen(&top, "40x10", "40x10");
	top.view.pane = TOP_SEATS;
	draw(&top, 20, 5);
	expect_screen(&top, "20x5", "20x5");
	top.view.pane = TOP_FLIGHTS;
	top.view.places[TOP_FLIGHTS].at = 1;
	draw(&top, 80, 24);
	expect_screen(&top, "an operation with its details", "detail");
	top.view.pane = TOP_NOTICES;
	top.view.places[TOP_NOTICES].at = 1;
	draw(&top, 60, 24);
	expect_screen(&top, "the second notice, in a narrow window", "notice");
	top.view.is_once = true;
	draw(&top, 100, 0);
	expect_screen(&top, "plain text", "once");
	top.canvas.is_utf8 = top.view.is_once = false;
	draw(&top, 80, 24);
	expect_screen(&top, "without UTF-8", "ascii");
	end(&top);
}

static void test_death(void)
{
	struct top top;
	const struct job_comm *dp;

	begin(&top, "tp-1");
	hang(&top);
	dp = &top.scene.live.job.comms[0];
	top.scene.list[top.scene.live.job.seats[dp->seats[5]].process]->life = RECORDING_KILLED;
	top.scene.live.job.ranks[5].life = RECORDING_KILLED;
	top.scene.live.seats[dp->seats[5]].is_over = true;
	draw(&top, 80, 24);
	expect_screen(&top, "others wait for a killed rank, which is listed last", "death");
	end(&top);
}

static void test_no_process(void)
{
	struct live_limits limits = live_limits_default();
	struct top top = { .around = { .host = "gpu-node-07",
				       .remark = "1 file cannot be read: /dev/shm/x: too short" } };

	live_init(&top.scene.live, &limits);
	top.scene.live.wall_ns = SCENE_WALL_NS;
	top_view_init(&top.view, SECOND_NS);
	top_canvas_init(&top.canvas, true);
	draw(&top, 80, 24);
	expect_screen(&top, "no recordings", "nothing");
	top_canvas_release(&top.canvas);
	top_model_release(&top.model);
	live_release(&top.scene.live);
}

/* Columns stay aligned whatever a name contains. */
static void test_hostile_names(void)
{
	struct top top;

	begin(&top, hostile);
	draw(&top, 80, 24);
	expect_screen(&top, "a hostile name stays within its column", "hostile");
	end(&top);
}

/* Each cell is a printable character or the right half of a wide one; no control characters. */
static bool is_sound(const struct top_canvas *canvas)
{
	for (unsigned int row = 0; row < canvas->height; row++) {
		for (unsigned int column = 0; column < canvas->width; column++) {
			const struct top_cell *cell = top_canvas_cell(canvas, row, column);

			if (cell->is_second &&
			    (column == 0 || wcwidth(cell[-1].characters[0]) != 2))
				return false;
			if (!cell->is_second && wcwidth(cell->characters[0]) <= 0)
				return false;
			if (wcwidth(cell->characters[0]) == 2 &&
			    (column + 1 == canvas->width || !cell[1].is_second))
				return false;
		}
	}
	return true;
}

static void test_all_sizes(void)
{
	struct top top;
	bool are_sound = true, has_head = true, has_cursor = true;

	begin(&top, hostile);
	hang(&top);
	for (unsigned int width = 1; width <= 130; width += width < 30 ? 1 : 7) {
		for (unsigned int height = 1; height <= 60; height += height < 30 ? 1 : 9) {
			top.view.pane = (enum top_pane)((width + height) % TOP_PANES);
			top.view.places[top.view.pane].at = height % 8;
			top.view.places[top.view.pane].first = 1000;
			top.view.has_help = width % 5 == 4;
			draw(&top, width, height);
			are_sound &= top.canvas.width == width && top.canvas.height == height &&
				     is_sound(&top.canvas);
			has_head &= top_canvas_cell(&top.canvas, 0, 0)->characters[0] != L' ';
			has_cursor &= height < 4 || top.view.has_help ||
				      top.view.places[top.view.pane].first <=
					      top.view.places[top.view.pane].at;
		}
	}
	EXPECT_THAT("screens of all sizes contain valid cells only", are_sound);
	EXPECT_THAT("and have a header line", has_head);
	EXPECT_THAT("and the cursor is not above the visible rows", has_cursor);
	end(&top);
}

/* The column with the share of timed operations is shown only if some are not timed. */
static void test_timed(void)
{
	struct top top;
	struct top_fit fit;
	bool is_there = false, is_asked = false;
	char text[TOP_CELL_TEXT];
	struct top_cell_of cell = { .pane = TOP_COMMS, .column = TOP_COLUMN_TIMED };

	begin(&top, "tp-1");
	for (int sampled = 0; sampled < 2; sampled++) {
		for (size_t i = 0; i < top.scene.live.job.seat_count; i++) {
			top.scene.live.seats[i].sums.operations = 1000;
			top.scene.live.seats[i].sums.timed = sampled ? 20 : 1000;
		}
		top.scene.live.comms[0].sums.operations = 16000;
		top.scene.live.comms[0].sums.timed = 320;
		EXPECT(top_model_make(&top.model, &top.scene.live, &top.view) == OK);
		top_columns_fit(&fit, &top.model, TOP_COMMS, 200, true);
		is_there = is_asked;
		is_asked = false;
		for (size_t i = 0; i < fit.count; i++)
			is_asked |= fit.columns[i]->id == TOP_COLUMN_TIMED;
	}
	EXPECT_THAT("no TIMED column if all operations are timed", !is_there);
	EXPECT_THAT("a TIMED column if some are not", is_asked);
	cell.live = &top.scene.live;
	EXPECT_THAT("it shows the share", strcmp(top_cells_text(&cell, text), "2%") == 0);
	top.scene.live.comms[0].sums.operations = 0;
	EXPECT_THAT("and a dash without operations", strcmp(top_cells_text(&cell, text), "-") == 0);
	end(&top);
}

static void test_layout(void)
{
	struct top_layout layout, other;
	struct top_model model;
	struct top_view view;
	bool is_whole = true, is_calm = true;

	top_model_init(&model);
	top_view_init(&view, SECOND_NS);
	model.lists[TOP_COMMS].count = 12;
	model.lists[TOP_SEATS].count = 64;
	for (unsigned int height = 1; height <= 200; height++) {
		unsigned int used = 1;

		model.lists[TOP_FLIGHTS].count = 100;
		top_layout(&layout, &model, &view, height, 3, false);
		model.lists[TOP_FLIGHTS].count = 0;
		top_layout(&other, &model, &view, height, 3, false);
		is_calm &= memcmp(&layout, &other, sizeof(layout)) == 0;
		for (int pane = 0; pane < TOP_PANES; pane++)
			used += layout.lines[pane];
		is_whole &= used + (layout.keys_at > 0) == height;
	}
	EXPECT_THAT("every line is assigned", is_whole);
	EXPECT_THAT("the layout does not depend on the number of operations in flight", is_calm);
	top_model_release(&model);
}

int main(void)
{
	if (setlocale(LC_CTYPE, "C.UTF-8") == NULL)
		return tap_skip_all("locale C.UTF-8 is not available");
	setenv("TZ", "UTC", 1);
	tzset();
	test_screens();
	test_death();
	test_no_process();
	test_hostile_names();
	test_all_sizes();
	test_timed();
	test_layout();
	return tap_done();
}
