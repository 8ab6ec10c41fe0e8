/* The terminal: ncurses, keys, size. */
#define NCURSES_WIDECHAR 1

#include "top/top.h"

#include <ncurses.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "common/attributes.h"

static SCREEN *screen;
static attr_t attributes[TOP_STYLES];
static short pairs[TOP_STYLES];

static void set_styles(void)
{
	/* Without colours, use bold, reverse and underline. */
	static const attr_t plain[TOP_STYLES] = {
		[TOP_STRONG] = A_BOLD,	   [TOP_FAINT] = A_DIM,
		[TOP_TITLE] = A_UNDERLINE, [TOP_TITLE_ACTIVE] = A_REVERSE,
		[TOP_CHOSEN] = A_BOLD,	   [TOP_ALARM] = A_BOLD | A_REVERSE,
		[TOP_WARNING] = A_BOLD,	   [TOP_BAD] = A_BOLD,
	};
	const char *no_color = getenv("NO_COLOR");

	memcpy(attributes, plain, sizeof(attributes));
	memset(pairs, 0, sizeof(pairs));
	if ((no_color && no_color[0] != '\0') || !has_colors() || start_color() == ERR ||
	    COLORS < 8 || COLOR_PAIRS < 5)
		return;
	use_default_colors();
	init_pair(1, COLOR_WHITE, COLOR_RED);
	init_pair(2, COLOR_YELLOW, -1);
	init_pair(3, COLOR_CYAN, -1);
	init_pair(4, COLOR_RED, -1);
	pairs[TOP_BAD] = 4;
	pairs[TOP_ALARM] = 1;
	attributes[TOP_ALARM] = A_BOLD;
	pairs[TOP_WARNING] = 2;
	pairs[TOP_TITLE] = 3;
	pairs[TOP_CHOSEN] = 3;
}

static void set_modes(void)
{
	cbreak();
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	set_escdelay(25);
	curs_set(0);
}

/* Terminal capabilities needed for a live display. */
static bool is_able(void)
{
	return tigetstr("cup") != NULL && tigetstr("cup") != (char *)-1 &&
	       tigetstr("clear") != NULL && tigetstr("clear") != (char *)-1;
}

bool top_screen_open(void)
{
	const char *term = getenv("TERM");

	if (term == NULL || term[0] == '\0' || strcmp(term, "dumb") == 0)
		return false;
	/* Use the current window size; LINES and COLUMNS of a shell are outdated after the first
	 * change. */
	use_env(FALSE);
	use_tioctl(TRUE);
	screen = newterm(NULL, stdout, stdin);
	if (screen == NULL)
		return false;
	set_term(screen);
	if (!is_able()) {
		top_screen_close();
		return false;
	}
	set_modes();
	set_styles();
	return true;
}

void top_screen_close(void)
{
	if (screen == NULL)
		return;
	endwin();
	delscreen(screen);
	screen = NULL;
}

void top_screen_leave(void)
{
	endwin();
}

void top_screen_return(void)
{
	reset_prog_mode();
	top_screen_resize();
	clearok(curscr, TRUE);
	refresh();
	curs_set(0);
}

void top_screen_size(unsigned int *width, unsigned int *height)
{
	*width = (unsigned int)getmaxx(stdscr);
	*height = (unsigned int)getmaxy(stdscr);
}

void top_screen_resize(void)
{
	struct winsize size;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0)
		resizeterm(size.ws_row, size.ws_col);
	clearok(curscr, TRUE);
}

void top_screen_show(const struct top_canvas *canvas)
{
	erase();
	for (unsigned int row = 0; row < canvas->height; row++) {
		for (unsigned int column = 0; column < canvas->width; column++) {
			const struct top_cell *cell = top_canvas_cell(canvas, row, column);
			cchar_t character;

			if (cell->is_second ||
			    setcchar(&character, cell->characters, attributes[cell->style],
				     pairs[cell->style], NULL) == ERR)
				continue;
			mvadd_wch((int)row, (int)column, &character);
		}
	}
	refresh();
}

static enum top_key key_of(wint_t code)
{
	switch (code) {
	case KEY_UP:
		return TOP_KEY_UP;
	case KEY_DOWN:
		return TOP_KEY_DOWN;
	case KEY_PPAGE:
		return TOP_KEY_PAGE_UP;
	case KEY_NPAGE:
		return TOP_KEY_PAGE_DOWN;
	case KEY_HOME:
		return TOP_KEY_HOME;
	case KEY_END:
		return TOP_KEY_END;
	case KEY_RIGHT:
		return TOP_KEY_NEXT;
	case KEY_LEFT:
	case KEY_BTAB:
		return TOP_KEY_PREVIOUS;
	case KEY_ENTER:
		return TOP_KEY_ENTER;
	case KEY_BACKSPACE:
		return TOP_KEY_BACKSPACE;
	default:
		return TOP_KEY_REDRAW;
	}
}

enum top_key top_screen_key(wchar_t *character)
{
	wint_t code = 0;
	int kind = get_wch(&code);

	*character = 0;
	if (kind == ERR)
		return TOP_KEY_NONE;
	if (kind == KEY_CODE_YES)
		return key_of(code);
	switch (code) {
	case L'\t':
		return TOP_KEY_NEXT;
	case L'\r':
	case L'\n':
		return TOP_KEY_ENTER;
	case 0x1b:
		return TOP_KEY_ESCAPE;
	case 0x08:
	case 0x7f:
		return TOP_KEY_BACKSPACE;
	case 0x0c:
		clearok(curscr, TRUE);
		return TOP_KEY_REDRAW;
	default:
		*character = (wchar_t)code;
		return TOP_KEY_CHARACTER;
	}
}

bool top_screen_has_blocks(void)
{
	const char *term = getenv("TERM");

	return term == NULL || strncmp(term, "linux", 5) != 0;
}
