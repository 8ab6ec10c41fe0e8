/* The rows of `ringside top`: order, filter, cursors, keys. */
#include <locale.h>

#include "tests/support/live_scene.h"
#include "tests/tap.h"
#include "top/top.h"

enum { RANKS = 4 };

struct top {
	struct live_scene scene;
	struct top_view view;
	struct top_model model;
};

static uint32_t comm_named(const struct top *top, const char *label)
{
	for (uint32_t i = 0; i < top->scene.live.job.comm_count; i++)
		if (strcmp(top->scene.live.job.comms[i].label, label) == 0)
			return i;
	abort();
}

/* Four ranks in "world", two each in "tp-0" and "tp-1", one in "lonely". */
static void begin(struct top *top)
{
	*top = (struct top){ .model = { .live = NULL } };
	for (int i = 0; i < RANKS; i++) {
		struct recording_process *process = scene_process(&top->scene, "train", i, RANKS);

		scene_comm(process, 100, "world", i, RANKS, 1);
		scene_comm(process, (uint64_t)(200 + i / 2), i / 2 ? "tp-1" : "tp-0", i % 2, 2, 1);
		if (i == 3)
			scene_comm(process, 300, "lonely", 0, 1, 1);
	}
	scene_join(&top->scene);
	top->scene.live.limits = live_limits_default();
	for (uint32_t i = 0; i < top->scene.live.job.comm_count; i++) {
		const double waits[RANKS] = { 0.3, 0.1, 0.2, 0 };
		struct scene_course course = { .operations_per_s = 10 * (i + 1),
					       .busbw = 1e9 * (i + 1),
					       .wait = i == 1 ? 0.5 : 0.1,
					       .points = 60,
					       .seed = i };

		scene_course(&top->scene, i, &course, waits);
	}
	top_view_init(&top->view, SCENE_WALL_NS);
	top_model_init(&top->model);
}

static void end(struct top *top)
{
	top_model_release(&top->model);
	live_scene_release(&top->scene);
}

static void make(struct top *top)
{
	if (top_model_make(&top->model, &top->scene.live, &top->view) != OK)
		abort();
}

static void press(struct top *top, const char *keys)
{
	for (; *keys != '\0'; keys++) {
		enum top_key key = *keys == '\t'   ? TOP_KEY_NEXT
				   : *keys == '\n' ? TOP_KEY_ENTER
				   : *keys == 27   ? TOP_KEY_ESCAPE
				   : *keys == 8	   ? TOP_KEY_BACKSPACE
						   : TOP_KEY_CHARACTER;

		top_keys_take(&top->view, &top->model, key, (wchar_t)*keys);
		make(top);
	}
}

static const char *label_at(const struct top *top, size_t row)
{
	return top->scene.live.job.comms[top->model.lists[TOP_COMMS].rows[row].index].label;
}

static void test_lists(void)
{
	struct top top;
	const struct top_list *seats;

	begin(&top);
	make(&top);
	EXPECT_EQUAL(top.model.lists[TOP_COMMS].count, 4);
	EXPECT_THAT("the largest communicator is first", strcmp(label_at(&top, 0), "world") == 0);
	EXPECT_EQUAL(top.model.alive, RANKS);
	EXPECT_THAT("its ranks are in order",
		    top.model.lists[TOP_SEATS].count == RANKS && top.model.comm == 0);
	seats = &top.model.lists[TOP_SEATS];
	for (uint32_t i = 0; i < RANKS; i++)
		EXPECT_EQUAL(top.scene.live.job.seats[seats->rows[i].index].comm_rank, i);
	EXPECT_EQUAL(top.model.lists[TOP_FLIGHTS].count, 0);
	EXPECT(!top.model.has_many_jobs && !top.model.has_comm_ranks && top.model.has_gpus);
	press(&top, "jj");
	EXPECT_THAT("tp-1 has other rank numbers than the job",
		    strcmp(label_at(&top, 2), "tp-1") == 0 && top.model.has_comm_ranks);
	end(&top);
}

static void test_sorting(void)
{
	struct top top;

	begin(&top);
	make(&top);
	press(&top, "s");
	EXPECT_EQUAL(top.view.sorts[TOP_COMMS], TOP_BY_WAIT);
	EXPECT(strcmp(top_view_sort_name(&top.view, TOP_COMMS), "by wait") == 0);
	EXPECT_THAT("sorted by waiting", top.model.lists[TOP_COMMS].rows[0].index == 1);
	press(&top, "s");
	EXPECT_THAT("sorted by bandwidth", top.model.lists[TOP_COMMS].rows[0].index == 3);
	press(&top, "sss");
	EXPECT_THAT("sort orders wrap around", top.view.sorts[TOP_COMMS] == TOP_BY_ORDER);
	press(&top, "\ts");
	EXPECT_THAT("each pane has its own sort order",
		    top.view.sorts[TOP_SEATS] == TOP_BY_WAIT &&
			    top.view.sorts[TOP_COMMS] == TOP_BY_ORDER);
	EXPECT_THAT("the rank that waits most is first",
		    top.scene.live.job.seats[top.model.lists[TOP_SEATS].rows[0].index].comm_rank ==
			    0);
	EXPECT_THAT("the one that waits least is last",
		    top.scene.live.job.seats[top.model.lists[TOP_SEATS].rows[3].index].comm_rank ==
			    3);
	top.scene.live.seats[top.model.lists[TOP_SEATS].rows[0].index].is_over = true;
	make(&top);
	EXPECT_THAT("ended ranks are last in every order",
		    top.model.lists[TOP_SEATS].rows[3].is_over);
	end(&top);
}

static void test_flights(void)
{
	struct top top;
	struct live *live = &top.scene.live;

	begin(&top);
	for (uint32_t i = 0; i < live->job.seat_count; i++)
		scene_flight(&top.scene, i, OP_ALL_REDUCE, 812, (i + 1) * UINT64_C(1000000000));
	make(&top);
	EXPECT_EQUAL(top.model.lists[TOP_FLIGHTS].count, live->job.seat_count);
	EXPECT_THAT("the oldest operation is first",
		    top.model.lists[TOP_FLIGHTS].rows[0].index == live->job.seat_count - 1);
	press(&top, "\t\ts");
	EXPECT_THAT("or sorted by rank", top.model.lists[TOP_FLIGHTS].rows[0].index == 0);
	EXPECT_THAT("the oldest operation of a communicator is the oldest of all its ranks",
		    top_model_oldest_ns(live, &live->job.comms[comm_named(&top, "lonely")]) ==
			    live->job.seat_count * UINT64_C(1000000000));
	end(&top);
}

static void test_filter(void)
{
	struct top top;

	begin(&top);
	make(&top);
	press(&top, "/TP-");
	EXPECT_THAT("the filter applies while typing and ignores case",
		    top.view.is_typing && top.model.lists[TOP_COMMS].count == 2);
	press(&top, "1q\n");
	EXPECT_THAT("letters are added to the filter", top.model.lists[TOP_COMMS].count == 0);
	EXPECT_EQUAL(top.model.comm, UINT32_MAX);
	EXPECT_EQUAL(top.model.lists[TOP_SEATS].count, 0);
	press(&top, "/\b\n");
	EXPECT(strcmp(top.view.filter, "TP-1") == 0 && !top.view.is_typing);
	EXPECT_EQUAL(top.model.lists[TOP_COMMS].count, 1);
	press(&top, "\033");
	EXPECT_EQUAL(top.model.lists[TOP_COMMS].count, 4);
	press(&top, "/train\n");
	EXPECT_THAT("the filter matches job names", top.model.lists[TOP_COMMS].count == 4);
	top.view.is_typing = true;
	for (int i = 0; i < 200; i++)
		top_keys_take(&top.view, &top.model, TOP_KEY_CHARACTER, 0x8a13);
	EXPECT_THAT("the filter has a maximum length", strlen(top.view.filter) < TOP_FILTER_BYTES);
	top_keys_take(&top.view, &top.model, TOP_KEY_CHARACTER, 0x1b);
	top_keys_take(&top.view, &top.model, TOP_KEY_BACKSPACE, 0);
	EXPECT_THAT("backspace removes a whole multi-byte character",
		    (strlen(top.view.filter) - 5) % 3 == 0);
	end(&top);
}

/* What is typed arrives as UTF-8; what no text contains does not. */
static void test_typing(void)
{
	static const struct {
		wchar_t character;
		const char *bytes;
	} cases[] = {
		{ 0x1f, "" },
		{ 0x20, " " },
		{ 0x7e, "~" },
		{ 0x7f, "" },
		{ 0x80, "\xc2\x80" },
		{ 0xe9, "\xc3\xa9" },
		{ 0x7ff, "\xdf\xbf" },
		{ 0x800, "\xe0\xa0\x80" },
		{ 0x8a13, "\xe8\xa8\x93" },
		{ 0xffff, "\xef\xbf\xbf" },
		{ 0x10000, "\xf0\x90\x80\x80" },
		{ 0x10ffff, "\xf4\x8f\xbf\xbf" },
		{ 0x110000, "" },
	};
	struct top top;

	begin(&top);
	make(&top);
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		top.view.filter[0] = '\0';
		top.view.is_typing = true;
		top_keys_take(&top.view, &top.model, TOP_KEY_CHARACTER, cases[i].character);
		EXPECT_THAT("typed", strcmp(top.view.filter, cases[i].bytes) == 0);
		top_keys_take(&top.view, &top.model, TOP_KEY_BACKSPACE, 0);
		EXPECT(top.view.filter[0] == '\0');
	}
	for (int i = 0; i < TOP_FILTER_BYTES; i++)
		top_keys_take(&top.view, &top.model, TOP_KEY_CHARACTER, L'x');
	EXPECT_EQUAL(strlen(top.view.filter), TOP_FILTER_BYTES - 1);
	end(&top);
}

static void test_pages(void)
{
	struct top top;
	struct top_place *place = &top.view.places[TOP_COMMS];

	begin(&top);
	make(&top);
	place->shown = 3;
	top_keys_take(&top.view, &top.model, TOP_KEY_PAGE_DOWN, 0);
	EXPECT_THAT("a page is one row less than is shown", place->at == 2);
	top_keys_take(&top.view, &top.model, TOP_KEY_PAGE_DOWN, 0);
	EXPECT_EQUAL(place->at, 3);
	top_keys_take(&top.view, &top.model, TOP_KEY_PAGE_UP, 0);
	EXPECT_EQUAL(place->at, 1);
	top_keys_take(&top.view, &top.model, TOP_KEY_PAGE_UP, 0);
	EXPECT_EQUAL(place->at, 0);
	place->shown = 1;
	top_keys_take(&top.view, &top.model, TOP_KEY_PAGE_DOWN, 0);
	EXPECT_THAT("but at least one", place->at == 1);
	top_keys_take(&top.view, &top.model, TOP_KEY_PAGE_UP, 0);
	EXPECT_EQUAL(place->at, 0);
	top_keys_take(&top.view, &top.model, TOP_KEY_END, 0);
	EXPECT_EQUAL(place->at, 3);
	press(&top, "/tp-\n");
	EXPECT_THAT("the last row if there are fewer", place->at == 1);
	press(&top, "/none\n");
	EXPECT_THAT("the first if there is none", place->at == 0 && place->key == 0);
	press(&top, "\033");
	top_keys_take(&top.view, &top.model, TOP_KEY_HOME, 0);
	EXPECT_EQUAL(place->at, 0);
	end(&top);
}

static void test_cursor(void)
{
	struct top top;

	begin(&top);
	make(&top);
	scene_notice(&top.scene, LIVE_STRAGGLER, comm_named(&top, "tp-1"), UINT32_MAX, 3);
	make(&top);
	EXPECT_THAT("the cursor moves to the subject of a notice",
		    top.model.comm == comm_named(&top, "tp-1"));
	press(&top, "k");
	EXPECT_THAT("but stays where the user moved it",
		    top.model.comm == comm_named(&top, "tp-0"));
	make(&top);
	press(&top, "sss");
	EXPECT_THAT("and follows its row when the order changes",
		    top.model.comm == comm_named(&top, "tp-0"));
	press(&top, "kkkkkkk");
	EXPECT_EQUAL(top.view.places[TOP_COMMS].at, 0);
	press(&top, "jjjjjjjjjjj");
	EXPECT_EQUAL(top.view.places[TOP_COMMS].at, 3);
	top.view.places[TOP_COMMS].key = 12345;
	make(&top);
	EXPECT_THAT("when its row disappears it keeps its position",
		    top.view.places[TOP_COMMS].at == 3);
	end(&top);
}

static void test_panes(void)
{
	struct top top;

	begin(&top);
	make(&top);
	press(&top, "\t\n\t");
	EXPECT_THAT("without notices there are three panes", top.view.pane == TOP_COMMS);
	scene_notice(&top.scene, LIVE_HANG, 0, UINT32_MAX, 30);
	make(&top);
	top_keys_take(&top.view, &top.model, TOP_KEY_PREVIOUS, 0);
	EXPECT_EQUAL(top.view.pane, TOP_NOTICES);
	press(&top, "s");
	top.scene.live.notice_count = 0;
	make(&top);
	EXPECT_THAT("when the active pane disappears the next one is active",
		    top.view.pane == TOP_COMMS);
	end(&top);
}

static void test_other_keys(void)
{
	struct top top;
	const char *what;

	begin(&top);
	make(&top);
	press(&top, "p");
	EXPECT(top.view.is_paused);
	press(&top, " ");
	EXPECT(!top.view.is_paused);
	top.view.interval_ns = 1000000000;
	press(&top, "+");
	EXPECT_EQUAL(top.view.interval_ns, 2000000000);
	press(&top, "---");
	EXPECT_EQUAL(top.view.interval_ns, TOP_INTERVAL_LEAST_NS);
	press(&top, "-");
	EXPECT_EQUAL(top.view.interval_ns, TOP_INTERVAL_LEAST_NS);
	press(&top, "+++++++++++");
	EXPECT_EQUAL(top.view.interval_ns, TOP_INTERVAL_MOST_NS);
	press(&top, "?");
	EXPECT(top.view.has_help);
	EXPECT_THAT("any key closes the help and does nothing else",
		    top_keys_take(&top.view, &top.model, TOP_KEY_CHARACTER, L'q') == TOP_DRAW &&
			    !top.view.has_help);
	EXPECT_EQUAL(top_keys_take(&top.view, &top.model, TOP_KEY_CHARACTER, L'x'), TOP_STAY);
	EXPECT_EQUAL(top_keys_take(&top.view, &top.model, TOP_KEY_CHARACTER, L'q'), TOP_QUIT);
	EXPECT_EQUAL(top_keys_take(&top.view, &top.model, TOP_KEY_LEFT_US, 0), TOP_QUIT);
	EXPECT(top_keys_help(0, &what) != NULL && top_keys_help(99, &what) == NULL);
	end(&top);
}

static void test_nothing(void)
{
	struct live_limits limits = live_limits_default();
	struct top_model model;
	struct top_view view;
	struct live live;

	live_init(&live, &limits);
	top_view_init(&view, 1);
	top_model_init(&model);
	EXPECT_THAT("before the first refresh there are no rows",
		    top_model_make(&model, &live, &view) == OK && model.comm == UINT32_MAX &&
			    model.lists[TOP_COMMS].count == 0);
	EXPECT_EQUAL(top_keys_take(&view, &model, TOP_KEY_DOWN, 0), TOP_STAY);
	top_model_release(&model);
	live_release(&live);
}

int main(void)
{
	test_lists();
	test_sorting();
	test_flights();
	test_filter();
	test_typing();
	test_pages();
	test_cursor();
	test_panes();
	test_other_keys();
	test_nothing();
	return tap_done();
}
