#include "programs/top/top_keys.h"

#include <stdint.h>
#include <string.h>

#include "common/attributes.h"

static const char *const help[][2] = {
	{ "up down j k", "move; page up, page down, home and end, too" },
	{ "tab enter", "next pane; shift and tab, or left: the one before" },
	{ "s", "sort the pane by something else" },
	{ "/", "show only communicators with this in their name, or their job's" },
	{ "escape", "show all again" },
	{ "p space", "pause: the screen stands still, the jobs do not" },
	{ "+ -", "look less often, more often" },
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
	size_t length = strlen(text);
	char bytes[4];
	size_t count = character < 0x80 ? 1 : character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;

	if (character < 0x20 || character == 0x7f || character > 0x10ffff ||
	    length + count >= TOP_FILTER_BYTES)
		return;
	if (count == 1) {
		bytes[0] = (char)character;
	} else {
		for (size_t i = count - 1; i > 0; i--) {
			bytes[i] = (char)(0x80 | (character & 0x3f));
			character >>= 6;
		}
		bytes[0] = (char)((0xf00u >> count & 0xff) | character);
	}
	memcpy(text + length, bytes, count);
	text[length + count] = '\0';
}

static enum top_action type(struct top_view *view, enum top_key key, wchar_t character)
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

static enum top_action move(struct top_view *view, const struct top_model *model, enum top_key key)
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

static enum top_action letter(struct top_view *view, const struct top_model *model, wchar_t letter)
{
	switch (letter) {
	case L'q':
	case L'Q':
		return TOP_QUIT;
	case L'j':
		return move(view, model, TOP_KEY_DOWN);
	case L'k':
		return move(view, model, TOP_KEY_UP);
	case L's':
		top_view_next_sort(view);
		break;
	case L'p':
	case L' ':
		view->is_paused = !view->is_paused;
		break;
	case L'+':
	case L'=':
		top_view_step_interval(view, 1);
		break;
	case L'-':
		top_view_step_interval(view, -1);
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
		return type(view, key, character);
	switch (key) {
	case TOP_KEY_CHARACTER:
		return letter(view, model, character);
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
		return move(view, model, key);
	}
}
