/* Options, what the user chose, and the rows of one refresh. */
#include "top/top.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cli/pages.h"
#include "common/attributes.h"
#include "common/clock.h"
#include "common/hash.h"
#include "common/text.h"
#include "output/live_json.h"

/* ---- the command line and what the user chose ------------------------------------------------ */

static const struct cli_option top_option_rows[] = {
	{ 0, "interval", "TIME", "time between refreshes, 200ms to 60s (default 1s)",
	  CLI_TIME(struct top_options, interval_ns, TOP_INTERVAL_LEAST_NS, TOP_INTERVAL_MOST_NS),
	  .like = "is not a time like 1s or 500ms", .less = "is not between 200ms and 60s" },
	{ 0, "once", NULL, "print plain text once and exit (default without a terminal)",
	  CLI_FLAG(struct top_options, is_once) },
	{ 0, "directory", "DIR",
	  "directory of the shared-memory regions (default RINGSIDE_SHM or /dev/shm)",
	  CLI_TEXT(struct top_options, directory) },
	CLI_OPTION_END,
};

static const struct cli_example examples[] = {
	{ "ringside top", "watch the jobs on this host; press ? for help" },
	{ "ssh -t node01 ringside top", "watch another host" },
	{ "ringside top --once | less -S", "print all rows once" },
	{ NULL, NULL },
};

const struct cli_page top_page = {
	.name = "top",
	.operands = "",
	.about = "Shows the jobs on this host while they run: hangs and stragglers; communicators "
		 "with bandwidth and waiting; the ranks of one communicator; operations in flight "
		 "and what they wait for. It reads the shared-memory regions of the processes and "
		 "needs no agent; as root it sees the processes of all users.\n"
		 "For machine-readable output, use 'ringside ps --json' or 'ringside report "
		 "--json'.\n",
	.options = top_option_rows,
	.examples = examples,
};

int top_options_parse(struct top_options *options, int argc, char **argv)
{
	*options = (struct top_options){ .interval_ns = 1000000000,
					 .directory = getenv("RINGSIDE_SHM") };
	return cli_parse(&top_page, options, argc, argv);
}

void top_view_init(struct top_view *view, uint64_t interval_ns)
{
	*view = (struct top_view){ .pane = TOP_COMMS, .interval_ns = interval_ns };
	view->sorts[TOP_FLIGHTS] = TOP_BY_AGE;
}

/* Switches to the next useful sort order of the active pane. */
static void next_sort(struct top_view *view)
{
	enum top_sort *sort = &view->sorts[view->pane];

	if (view->pane == TOP_FLIGHTS)
		*sort = *sort == TOP_BY_AGE ? TOP_BY_ORDER : TOP_BY_AGE;
	else if (view->pane != TOP_NOTICES)
		*sort = *sort == TOP_BY_AGE ? TOP_BY_ORDER : *sort + 1;
}

const char *top_view_sort_name(const struct top_view *view, enum top_pane pane)
{
	switch (view->sorts[pane]) {
	case TOP_BY_WAIT:
		return "by wait";
	case TOP_BY_BUSBW:
		return "by busbw";
	case TOP_BY_RATE:
		return "by ops/s";
	case TOP_BY_AGE:
		return "by age";
	default:
		return pane == TOP_COMMS ? "by size" : "by rank";
	}
}

/* One step longer (1) or shorter (-1). */
static void step_interval(struct top_view *view, int direction)
{
	static const uint64_t steps[] = { TOP_INTERVAL_LEAST_NS, 500 * MS_NS,	      1000 * MS_NS,
					  2000 * MS_NS,		 5000 * MS_NS,	      10000 * MS_NS,
					  30000 * MS_NS,	 TOP_INTERVAL_MOST_NS };

	for (size_t i = 0; direction > 0 && i < ARRAY_LENGTH(steps); i++) {
		if (steps[i] > view->interval_ns) {
			view->interval_ns = steps[i];
			return;
		}
	}
	for (size_t i = ARRAY_LENGTH(steps); direction < 0 && i-- > 0;) {
		if (steps[i] < view->interval_ns) {
			view->interval_ns = steps[i];
			return;
		}
	}
}

/* ---- the rows of one refresh ----------------------------------------------------------------- */

void top_model_init(struct top_model *model)
{
	*model = (struct top_model){ .comm = UINT32_MAX };
}

void top_model_release(struct top_model *model)
{
	for (int pane = 0; pane < TOP_PANES; pane++)
		free(model->lists[pane].rows);
	top_model_init(model);
}

/* ---- what rows are made of ------------------------------------------------------------------- */

const struct live_point *top_model_point(const struct live *live,
					 const struct live_history *history)
{
	const struct live_point *point;

	if (history->count == 0)
		return NULL;
	point = live_point(history, history->count - 1);
	return point->wall_ns == live->wall_ns ? point : NULL;
}

uint64_t top_model_oldest_ns(const struct live *live, const struct job_comm *comm)
{
	uint64_t oldest_ns = 0;

	for (uint32_t i = 0; i < comm->seat_count; i++) {
		const struct live_seat *seat = &live->seats[comm->seats[i]];

		if (!seat->is_over && seat->oldest_age_ns > oldest_ns)
			oldest_ns = seat->oldest_age_ns;
	}
	return oldest_ns;
}

bool top_model_is_alarm(const struct live_notice *notice)
{
	return notice->kind == LIVE_HANG || notice->kind == LIVE_MISSING ||
	       notice->kind == LIVE_MISMATCH || notice->kind == LIVE_DEAD;
}

static bool is_over(const struct live *live, const struct job_comm *comm)
{
	for (uint32_t i = 0; i < comm->seat_count; i++)
		if (!live->seats[comm->seats[i]].is_over)
			return false;
	return true;
}

/* Unknown values sort last. */
static double sort_value(const struct live *live, enum top_sort sort,
			 const struct live_history *history, uint64_t age_ns)
{
	const struct live_point *point = top_model_point(live, history);
	double value = NAN;

	if (sort == TOP_BY_AGE)
		return (double)age_ns;
	if (point != NULL)
		value = sort == TOP_BY_WAIT    ? point->wait_share
			: sort == TOP_BY_BUSBW ? point->busbw
					       : point->operations_per_s;
	return sort != TOP_BY_ORDER && isfinite(value) ? value : -1;
}

static uint64_t comm_key(const struct live *live, uint32_t comm)
{
	char text[LIVE_JSON_KEY];

	return strtoull(live_json_key(live, comm, text), NULL, 16);
}

static uint64_t seat_key(const struct live *live, uint32_t index)
{
	const struct job_seat *seat = &live->job.seats[index];
	const struct recording_process *process = live->job.recording->processes[seat->process];
	uint64_t key =
		hash_word(hash_bytes(process->host, strlen(process->host)), (uint64_t)process->pid);

	return hash_word(hash_word(key, process->start_ticks), seat->comm_id);
}

/* ---- lists ----------------------------------------------------------------------------------- */

static enum status list_add_row(struct top_list *list, const struct top_row *row)
{
	if (!list_grow(&list->rows, list->count, sizeof(*list->rows)))
		return ERR_NO_SPACE;
	list->rows[list->count++] = *row;
	return OK;
}

static int in_order(const void *one, const void *other)
{
	const struct top_row *a = one, *b = other;

	if (a->is_over != b->is_over)
		return a->is_over ? 1 : -1;
	if (a->value != b->value)
		return a->value > b->value ? -1 : 1;
	return ORDER(a->index, b->index);
}

static void list_sort(struct top_list *list)
{
	if (list->count > 1)
		qsort(list->rows, list->count, sizeof(*list->rows), in_order);
}

static bool has_part(const char *text, const char *part)
{
	size_t length = strlen(part);

	for (; *text != '\0'; text++)
		if (strncasecmp(text, part, length) == 0)
			return true;
	return length == 0;
}

static bool comm_passes_filter(const struct live *live, const struct top_view *view, uint32_t comm)
{
	const struct job_comm *of = &live->job.comms[comm];

	return view->filter[0] == '\0' || has_part(of->label, view->filter) ||
	       has_part(live->job.groups[of->group].name, view->filter);
}

static enum status list_notices(struct top_list *list, const struct live *live)
{
	enum status status = OK;

	for (uint32_t i = 0; i < live->notice_count && status == OK; i++) {
		const struct live_notice *notice = &live->notices[i];
		uint64_t key = hash_word(notice->kind, notice->first_wall_ns);

		if (notice->comm < live->job.comm_count)
			key = hash_word(key, comm_key(live, notice->comm));
		if (notice->seat < live->job.seat_count)
			key = hash_word(key, seat_key(live, notice->seat));
		status = list_add_row(list, &(struct top_row){ .key = key, .index = i });
	}
	return status;
}

static enum status list_comms(struct top_list *list, const struct live *live,
			      const struct top_view *view)
{
	enum status status = OK;

	for (uint32_t i = 0; i < live->job.comm_count && status == OK; i++) {
		const struct job_comm *comm = &live->job.comms[i];

		if (!comm_passes_filter(live, view, i))
			continue;
		status = list_add_row(
			list,
			&(struct top_row){ .key = comm_key(live, i),
					   .index = i,
					   .is_over = is_over(live, comm),
					   .value = sort_value(live, view->sorts[TOP_COMMS],
							       &live->comms[i].history,
							       top_model_oldest_ns(live, comm)) });
	}
	list_sort(list);
	return status;
}

/* The index here is the order of ranks in the communicator. */
static enum status list_seats(struct top_list *list, const struct live *live,
			      const struct top_view *view, uint32_t comm)
{
	const struct job_comm *of = &live->job.comms[comm];
	enum status status = OK;

	for (uint32_t i = 0; i < of->seat_count && status == OK; i++) {
		const struct live_seat *seat = &live->seats[of->seats[i]];

		status = list_add_row(
			list, &(struct top_row){ .key = seat_key(live, of->seats[i]),
						 .index = i,
						 .is_over = seat->is_over,
						 .value = sort_value(live, view->sorts[TOP_SEATS],
								     &seat->history,
								     seat->oldest_age_ns) });
	}
	list_sort(list);
	for (size_t i = 0; i < list->count; i++)
		list->rows[i].index = of->seats[list->rows[i].index];
	return status;
}

static enum status list_flights(struct top_list *list, const struct live *live,
				const struct top_view *view)
{
	bool is_by_age = view->sorts[TOP_FLIGHTS] == TOP_BY_AGE;
	enum status status = OK;

	for (uint32_t i = 0; i < live->job.seat_count && status == OK; i++) {
		const struct live_seat *seat = &live->seats[i];

		if (seat->oldest == NULL ||
		    !comm_passes_filter(live, view, live->job.seats[i].comm))
			continue;
		status = list_add_row(
			list,
			&(struct top_row){ .key = seat_key(live, i),
					   .index = i,
					   .is_over = seat->is_over,
					   .value = is_by_age ? (double)seat->oldest_age_ns : 0 });
	}
	list_sort(list);
	return status;
}

/* ---- cursors --------------------------------------------------------------------------------- */

static bool find_index(const struct top_list *list, uint32_t index, size_t *at)
{
	for (size_t i = 0; i < list->count; i++) {
		if (list->rows[i].index == index) {
			*at = i;
			return true;
		}
	}
	return false;
}

static void place_cursor(const struct top_list *list, struct top_place *place)
{
	size_t at = place->at;

	for (size_t i = 0; place->is_by_hand && i < list->count; i++) {
		if (list->rows[i].key == place->key) {
			at = i;
			break;
		}
	}
	if (at >= list->count)
		at = list->count > 0 ? list->count - 1 : 0;
	place->at = at;
	place->key = list->count > 0 ? list->rows[at].key : 0;
}

/* Until the user moves it, the cursor is on the subject of the most serious notice. */
static void follow_notice(const struct top_model *model, struct top_place *place)
{
	const struct live *live = model->live;

	if (place->is_by_hand)
		return;
	place->at = 0;
	for (size_t i = 0; i < live->notice_count; i++)
		if (find_index(&model->lists[TOP_COMMS], live->notices[i].comm, &place->at))
			return;
}

/* --------------------------------------------------------------------------------------------- */

static void count_ranks(struct top_model *model)
{
	const struct job *job = &model->live->job;

	model->alive = model->killed = model->ended = 0;
	for (size_t i = 0; i < job->rank_count; i++) {
		enum recording_life life = job->ranks[i].life;

		model->alive += life == RECORDING_ALIVE;
		model->killed += life == RECORDING_KILLED;
		model->ended += life == RECORDING_ENDED || life == RECORDING_UNKNOWN;
	}
}

static void choose_columns(struct top_model *model, const struct top_view *view)
{
	const struct live *live = model->live;
	const struct top_list *seats = &model->lists[TOP_SEATS];

	model->has_many_jobs = live->job.group_count > 1;
	model->has_many_hosts = live->job.host_count > 1;
	model->has_minute = !view->is_once;
	model->has_comm_ranks = model->has_gpus = model->is_sampled = false;
	for (size_t i = 0; i < seats->count; i++) {
		const struct job_seat *seat = &live->job.seats[seats->rows[i].index];

		model->has_gpus |= live->job.ranks[seat->rank].gpu >= 0;
		model->has_comm_ranks |=
			seat->comm_rank >= 0 && seat->comm_rank != live->job.ranks[seat->rank].rank;
	}
	for (size_t s = 0; s < live->job.seat_count; s++)
		model->is_sampled |= live->seats[s].sums.timed < live->seats[s].sums.operations;
}

static enum status make_lists(struct top_model *model, struct top_view *view)
{
	struct top_list *lists = model->lists;
	const struct live *live = model->live;
	enum status status = list_notices(&lists[TOP_NOTICES], live);

	if (status == OK)
		status = list_comms(&lists[TOP_COMMS], live, view);
	if (status == OK)
		status = list_flights(&lists[TOP_FLIGHTS], live, view);
	if (status != OK)
		return status;
	follow_notice(model, &view->places[TOP_COMMS]);
	place_cursor(&lists[TOP_COMMS], &view->places[TOP_COMMS]);
	if (lists[TOP_COMMS].count > 0) {
		model->comm = lists[TOP_COMMS].rows[view->places[TOP_COMMS].at].index;
		status = list_seats(&lists[TOP_SEATS], live, view, model->comm);
	}
	return status;
}

enum status top_model_make(struct top_model *model, const struct live *live, struct top_view *view)
{
	enum status status;

	model->live = live;
	model->comm = UINT32_MAX;
	for (int pane = 0; pane < TOP_PANES; pane++)
		model->lists[pane].count = 0;
	status = make_lists(model, view);
	for (int pane = 0; pane < TOP_PANES; pane++) {
		if (status != OK)
			model->lists[pane].count = 0;
		place_cursor(&model->lists[pane], &view->places[pane]);
	}
	if (view->pane == TOP_NOTICES && model->lists[TOP_NOTICES].count == 0)
		view->pane = TOP_COMMS;
	count_ranks(model);
	choose_columns(model, view);
	return status;
}

static const char *const help[][2] = {
	{ "up down j k", "move (also Page Up, Page Down, Home, End)" },
	{ "tab enter", "next pane (shift-tab or left: previous)" },
	{ "s", "change the sort order of the pane" },
	{ "/", "filter communicators by their name or their job's" },
	{ "escape", "clear the filter" },
	{ "p space", "freeze the display" },
	{ "+ -", "slower / faster refresh" },
	{ "h ?", "this help" },
	{ "q", "quit" },
};

const char *top_keys_help(unsigned int i, const char **what)
{
	if (i >= ARRAY_LENGTH(help))
		return NULL;
	*what = help[i][1];
	return help[i][0];
}

/* ---- the filter ------------------------------------------------------------------------------ */

static void drop_character(char *text)
{
	size_t length = strlen(text);

	while (length > 0 && ((unsigned char)text[length - 1] & 0xc0) == 0x80)
		length--;
	if (length > 0)
		length--;
	text[length] = '\0';
}

static void append_character(char *text, wchar_t wide)
{
	uint32_t character = (uint32_t)wide;
	size_t length = strlen(text), count;
	char bytes[4];

	if (character < 0x20 || character == 0x7f || character > 0x10ffff)
		return;
	count = text_encode(bytes, character);
	if (length + count >= TOP_FILTER_BYTES)
		return;
	memcpy(text + length, bytes, count);
	text[length + count] = '\0';
}

static enum top_action key_type(struct top_view *view, enum top_key key, wchar_t character)
{
	switch (key) {
	case TOP_KEY_CHARACTER:
		append_character(view->filter, character);
		break;
	case TOP_KEY_BACKSPACE:
		drop_character(view->filter);
		break;
	case TOP_KEY_ESCAPE:
		view->filter[0] = '\0';
		view->is_typing = false;
		break;
	default:
		view->is_typing = false;
		break;
	}
	return TOP_DRAW;
}

/* ---- moving ---------------------------------------------------------------------------------- */

static enum top_action move_to(struct top_view *view, const struct top_model *model, size_t at)
{
	const struct top_list *list = &model->lists[view->pane];
	struct top_place *place = &view->places[view->pane];

	if (list->count == 0)
		return TOP_STAY;
	if (at >= list->count)
		at = list->count - 1;
	place->at = at;
	place->key = list->rows[at].key;
	place->is_by_hand = true;
	return TOP_DRAW;
}

static enum top_action key_move(struct top_view *view, const struct top_model *model,
				enum top_key key)
{
	const struct top_place *place = &view->places[view->pane];
	size_t page = place->shown > 1 ? place->shown - 1 : 1;

	switch (key) {
	case TOP_KEY_UP:
		return move_to(view, model, place->at > 0 ? place->at - 1 : 0);
	case TOP_KEY_DOWN:
		return move_to(view, model, place->at + 1);
	case TOP_KEY_PAGE_UP:
		return move_to(view, model, place->at > page ? place->at - page : 0);
	case TOP_KEY_PAGE_DOWN:
		return move_to(view, model, place->at + page);
	case TOP_KEY_HOME:
		return move_to(view, model, 0);
	default:
		return move_to(view, model, model->lists[view->pane].count);
	}
}

static enum top_action switch_pane(struct top_view *view, const struct top_model *model, int by)
{
	do {
		view->pane = (enum top_pane)(((int)view->pane + by + TOP_PANES) % TOP_PANES);
	} while (view->pane == TOP_NOTICES && model->lists[TOP_NOTICES].count == 0);
	return TOP_DRAW;
}

/* --------------------------------------------------------------------------------------------- */

static enum top_action key_letter(struct top_view *view, const struct top_model *model,
				  wchar_t letter)
{
	switch (letter) {
	case L'q':
	case L'Q':
		return TOP_QUIT;
	case L'j':
		return key_move(view, model, TOP_KEY_DOWN);
	case L'k':
		return key_move(view, model, TOP_KEY_UP);
	case L's':
		next_sort(view);
		break;
	case L'p':
	case L' ':
		view->is_paused = !view->is_paused;
		break;
	case L'+':
	case L'=':
		step_interval(view, 1);
		break;
	case L'-':
		step_interval(view, -1);
		break;
	case L'/':
		view->is_typing = true;
		break;
	case L'h':
	case L'?':
		view->has_help = true;
		break;
	default:
		return TOP_STAY;
	}
	return TOP_DRAW;
}

enum top_action top_keys_take(struct top_view *view, const struct top_model *model,
			      enum top_key key, wchar_t character)
{
	if (key == TOP_KEY_REDRAW)
		return TOP_DRAW;
	if (key == TOP_KEY_LEFT_US)
		return TOP_QUIT;
	if (view->has_help) {
		view->has_help = false;
		return TOP_DRAW;
	}
	if (view->is_typing)
		return key_type(view, key, character);
	switch (key) {
	case TOP_KEY_CHARACTER:
		return key_letter(view, model, character);
	case TOP_KEY_NEXT:
	case TOP_KEY_ENTER:
		return switch_pane(view, model, 1);
	case TOP_KEY_PREVIOUS:
		return switch_pane(view, model, -1);
	case TOP_KEY_ESCAPE:
		view->filter[0] = '\0';
		return TOP_DRAW;
	case TOP_KEY_NONE:
	case TOP_KEY_BACKSPACE:
		return TOP_STAY;
	default:
		return key_move(view, model, key);
	}
}
