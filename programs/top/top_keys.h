/* What keys do: moving, sorting, filtering. Knows no terminal. */
#ifndef TOP_KEYS_H
#define TOP_KEYS_H

#include <wchar.h>

#include "programs/top/top_model.h"
#include "programs/top/top_view.h"

enum top_key {
	TOP_KEY_NONE = 0, /* no more of them */
	TOP_KEY_CHARACTER = 1,
	TOP_KEY_UP = 2,
	TOP_KEY_DOWN = 3,
	TOP_KEY_PAGE_UP = 4,
	TOP_KEY_PAGE_DOWN = 5,
	TOP_KEY_HOME = 6,
	TOP_KEY_END = 7,
	TOP_KEY_NEXT = 8,     /* tab */
	TOP_KEY_PREVIOUS = 9, /* shift and tab */
	TOP_KEY_ENTER = 10,
	TOP_KEY_ESCAPE = 11,
	TOP_KEY_BACKSPACE = 12,
	TOP_KEY_REDRAW = 13,  /* ^L, a new size */
	TOP_KEY_LEFT_US = 14, /* the terminal is gone */
};

enum top_action {
	TOP_STAY = 0,
	TOP_DRAW = 1, /* the model is to be made anew */
	TOP_QUIT = 2,
};

/* `character` is for TOP_KEY_CHARACTER alone. */
enum top_action top_keys_take(struct top_view *view, const struct top_model *model,
			      enum top_key key, wchar_t character);

/* A line a key, for the help: both texts; NULL after the last. */
const char *top_keys_help(unsigned int i, const char **what);

#endif
