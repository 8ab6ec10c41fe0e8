/* The terminal: what is asked of ncurses, in which order, and what keys mean. ncurses is played; the file is included for that. */
#include "tests/tap.h"

#if !__has_include(<ncurses.h>)

int main(void)
{
	return tap_skip_all("no header of ncurses");
}

#else

#define NCURSES_WIDECHAR 1
/* Before ncurses, which has a macro OK. */
#include "common/attributes.h"
#include "common/text.h"
#include "tests/support/noted_calls.h"
#include "top/top.h"

#include <ncurses.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>

/* ---- the stage -------------------------------------------------------------------------------- */

static struct {
	bool has_screen, has_colors;
	int started;
	int colors, pairs;
	char *cup, *clear;
	int key_kind;
	wint_t key;
	struct winsize window;
	int window_result;
	wchar_t refused; /* a character that ncurses does not take */
} play;

static SCREEN *play_newterm(const char *type, FILE *output, FILE *input)
{
	note("newterm %s %d %d", type ? type : "of the environment", fileno(output), fileno(input));
	return play.has_screen ? (SCREEN *)&play : NULL;
}

static int play_ioctl(int fd, unsigned long request, struct winsize *size)
{
	*size = play.window;
	return fd == 1 && request == TIOCGWINSZ ? play.window_result : -1;
}

static int play_get_wch(wint_t *code)
{
	*code = play.key;
	return play.key_kind;
}

struct played_character {
	wchar_t first;
	attr_t attributes;
	short pair;
};

static int play_setcchar(struct played_character *to, const wchar_t *from, attr_t attributes,
			 short pair)
{
	*to = (struct played_character){ from[0], attributes, pair };
	return from[0] == play.refused ? ERR : OK;
}

/* Attributes as letters. */
static int play_put(int row, int column, const struct played_character *character)
{
	static const struct {
		attr_t bit;
		const char *letter;
	} letters[] = { { A_BOLD, "b" }, { A_DIM, "d" }, { A_UNDERLINE, "u" }, { A_REVERSE, "r" } };
	char text[8] = "";

	for (size_t i = 0; i < ARRAY_LENGTH(letters); i++)
		if (character->attributes & letters[i].bit)
			text_append(text, sizeof(text), "%s", letters[i].letter);
	return note("%d,%d %c %s %d", row, column, (char)character->first, text, character->pair);
}

#undef stdscr
#undef curscr
#undef COLORS
#undef COLOR_PAIRS
#undef getmaxx
#undef getmaxy
#undef refresh
#undef erase
#undef mvadd_wch
#undef get_wch
#undef clearok
#define stdscr ((WINDOW *)1)
#define curscr ((WINDOW *)2)
#define WINDOW_NAME(window) ((window) == stdscr ? "stdscr" : "curscr")
#define COLORS play.colors
#define COLOR_PAIRS play.pairs
#define has_colors() play.has_colors
#define start_color() (note("start_color"), play.started)
#define use_default_colors() note("use_default_colors")
#define init_pair(pair, ink, paper) note("pair %d: %d on %d", pair, ink, paper)
#define cbreak() note("cbreak")
#define noecho() note("noecho")
#define nonl() note("nonl")
#define keypad(window, is_on) note("keypad %s %d", WINDOW_NAME(window), is_on)
#define nodelay(window, is_on) note("nodelay %s %d", WINDOW_NAME(window), is_on)
#define set_escdelay(ms) note("escdelay %d", ms)
#define curs_set(kind) note("cursor %d", kind)
#define tigetstr(name) (strcmp(name, "cup") == 0 ? play.cup : play.clear)
#define use_env(is_on) note("use_env %d", is_on)
#define use_tioctl(is_on) note("use_tioctl %d", is_on)
#define newterm(type, output, input) play_newterm(type, output, input)
#define set_term(of) note("set_term %d", (void *)(of) == (void *)&play)
#define endwin() note("endwin")
#define delscreen(of) note("delscreen %d", (void *)(of) == (void *)&play)
#define reset_prog_mode() note("reset_prog_mode")
#define clearok(window, is_on) note("clearok %s %d", WINDOW_NAME(window), is_on)
#define refresh() note("refresh")
#define erase() note("erase")
#define getmaxx(window) ((window) == stdscr ? 81 : 0)
#define getmaxy(window) ((window) == stdscr ? 25 : 0)
#define ioctl(fd, request, size) play_ioctl(fd, request, size)
#define resizeterm(rows, columns) note("resizeterm %d %d", rows, columns)
#define cchar_t struct played_character
#define setcchar(to, from, attributes, pair, options) play_setcchar(to, from, attributes, pair)
#define mvadd_wch(row, column, character) play_put(row, column, character)
#define get_wch(code) play_get_wch(code)
#include "top/top_screen.c"

static char capability[] = "x";

static void begin(void)
{
	memset(&play, 0, sizeof(play));
	play.has_screen = play.has_colors = true;
	play.colors = 8;
	play.pairs = 5;
	play.cup = play.clear = capability;
	calls[0] = '\0';
	setenv("TERM", "xterm", 1);
	unsetenv("NO_COLOR");
}

/* ---- opening and closing ---------------------------------------------------------------------- */

#define OPENING "use_env 0\nuse_tioctl 1\nnewterm of the environment 1 0\n"
#define MODES                                                                            \
	"set_term 1\ncbreak\nnoecho\nnonl\nkeypad stdscr 1\nnodelay stdscr 1\nescdelay " \
	"25\ncursor "                                                                    \
	"0\n"
#define CLOSING "endwin\ndelscreen 1\n"

static void test_open(void)
{
	static const char *const dumb[] = { NULL, "", "dumb" };

	for (size_t i = 0; i < ARRAY_LENGTH(dumb); i++) {
		begin();
		if (dumb[i] == NULL)
			unsetenv("TERM");
		else
			setenv("TERM", dumb[i], 1);
		EXPECT(!top_screen_open());
		EXPECT_THAT("nothing is tried with a terminal that shows no screens",
			    is_called(""));
	}
	begin();
	play.has_screen = false;
	EXPECT(!top_screen_open());
	EXPECT(is_called(OPENING));
	top_screen_close();
	EXPECT_THAT("what is not open is not closed", is_called(""));
	for (int i = 0; i < 4; i++) {
		begin();
		*(i < 2 ? &play.cup : &play.clear) = i % 2 ? (char *)-1 : NULL;
		EXPECT(!top_screen_open());
		EXPECT_THAT("a terminal without cursor addressing or clearing is left again",
			    is_called(OPENING "set_term 1\n" CLOSING));
	}
	begin();
	EXPECT(top_screen_open());
	EXPECT(is_called(OPENING MODES
			 "start_color\nuse_default_colors\npair 1: 7 on 1\npair 2: 3 on -1\n"
			 "pair 3: 6 on -1\npair 4: 1 on -1\n"));
	top_screen_close();
	EXPECT(is_called(CLOSING));
	top_screen_close();
	EXPECT(is_called(""));
}

static void test_return(void)
{
	begin();
	play.window = (struct winsize){ .ws_row = 40, .ws_col = 120 };
	top_screen_leave();
	EXPECT(is_called("endwin\n"));
	top_screen_return();
	EXPECT(is_called("reset_prog_mode\nresizeterm 40 120\nclearok curscr 1\nclearok curscr 1\n"
			 "refresh\ncursor 0\n"));
}

static void test_size(void)
{
	static const struct {
		int result;
		unsigned short rows, columns;
		const char *calls;
	} cases[] = {
		{ 0, 1, 1, "resizeterm 1 1\nclearok curscr 1\n" },
		{ 0, 24, 80, "resizeterm 24 80\nclearok curscr 1\n" },
		{ 0, 0, 80, "clearok curscr 1\n" },
		{ 0, 24, 0, "clearok curscr 1\n" },
		{ -1, 24, 80, "clearok curscr 1\n" },
	};
	unsigned int width, height;

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		begin();
		play.window_result = cases[i].result;
		play.window =
			(struct winsize){ .ws_row = cases[i].rows, .ws_col = cases[i].columns };
		top_screen_resize();
		EXPECT(is_called(cases[i].calls));
	}
	top_screen_size(&width, &height);
	EXPECT(width == 81 && height == 25);
}

/* ---- what is shown ---------------------------------------------------------------------------- */

#define PLAIN                                                                                      \
	"erase\n0,0 0  0\n0,1 1 b 0\n0,2 2 d 0\n0,3 3 u 0\n0,4 4 r 0\n0,5 5 b 0\n0,6 6 br 0\n0,7 " \
	"7 b "                                                                                     \
	"0\n0,8 8 b 0\nrefresh\n"
#define COLOURED                                                                                  \
	"erase\n0,0 0  0\n0,1 1 b 0\n0,2 2 d 0\n0,3 3 u 3\n0,4 4 r 0\n0,5 5 b 3\n0,6 6 b 1\n0,7 " \
	"7 b "                                                                                    \
	"2\n0,8 8 b 4\nrefresh\n"

static void show_styles(void)
{
	struct top_cell cells[TOP_STYLES] = { 0 };
	struct top_canvas canvas = { .width = TOP_STYLES, .height = 1, .cells = cells };

	for (int i = 0; i < TOP_STYLES; i++)
		cells[i] = (struct top_cell){ .characters = { L'0' + i }, .style = (uint8_t)i };
	calls[0] = '\0';
	top_screen_show(&canvas);
}

static void test_styles(void)
{
	static const struct {
		const char *no_color;
		bool has_colors;
		int started, colors, pairs;
		bool is_coloured;
	} cases[] = {
		{ NULL, true, OK, 8, 5, true },	  { "", true, OK, 256, 64, true },
		{ "1", true, OK, 8, 5, false },	  { NULL, false, OK, 8, 5, false },
		{ NULL, true, ERR, 8, 5, false }, { NULL, true, OK, 7, 5, false },
		{ NULL, true, OK, 8, 4, false },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		begin();
		if (cases[i].no_color != NULL)
			setenv("NO_COLOR", cases[i].no_color, 1);
		play.has_colors = cases[i].has_colors;
		play.started = cases[i].started;
		play.colors = cases[i].colors;
		play.pairs = cases[i].pairs;
		EXPECT(top_screen_open());
		show_styles();
		EXPECT(is_called(cases[i].is_coloured ? COLOURED : PLAIN));
		top_screen_close();
	}
}

static void test_show(void)
{
	struct top_canvas canvas;

	begin();
	top_canvas_init(&canvas, true);
	EXPECT_EQUAL(top_canvas_clear(&canvas, 3, 2), OK);
	top_canvas_text(&canvas, 0, 0, 3, TOP_PLAIN, "ab");
	top_canvas_text(&canvas, 1, 0, 3, TOP_PLAIN, "cde");
	canvas.cells[1].is_second = true;
	play.refused = L'd';
	top_screen_show(&canvas);
	EXPECT_THAT("row by row, but for second halves and what ncurses refuses",
		    is_called("erase\n0,0 a  0\n0,2    0\n1,0 c  0\n1,2 e  0\nrefresh\n"));
	top_canvas_release(&canvas);
}

/* ---- keys ------------------------------------------------------------------------------------- */

static void test_keys(void)
{
	static const struct {
		int kind;
		wint_t code;
		enum top_key key;
		wchar_t character;
	} cases[] = {
		{ ERR, 0, TOP_KEY_NONE, 0 },
		{ ERR, 'x', TOP_KEY_NONE, 0 },
		{ KEY_CODE_YES, KEY_UP, TOP_KEY_UP, 0 },
		{ KEY_CODE_YES, KEY_DOWN, TOP_KEY_DOWN, 0 },
		{ KEY_CODE_YES, KEY_PPAGE, TOP_KEY_PAGE_UP, 0 },
		{ KEY_CODE_YES, KEY_NPAGE, TOP_KEY_PAGE_DOWN, 0 },
		{ KEY_CODE_YES, KEY_HOME, TOP_KEY_HOME, 0 },
		{ KEY_CODE_YES, KEY_END, TOP_KEY_END, 0 },
		{ KEY_CODE_YES, KEY_RIGHT, TOP_KEY_NEXT, 0 },
		{ KEY_CODE_YES, KEY_LEFT, TOP_KEY_PREVIOUS, 0 },
		{ KEY_CODE_YES, KEY_BTAB, TOP_KEY_PREVIOUS, 0 },
		{ KEY_CODE_YES, KEY_ENTER, TOP_KEY_ENTER, 0 },
		{ KEY_CODE_YES, KEY_BACKSPACE, TOP_KEY_BACKSPACE, 0 },
		{ KEY_CODE_YES, KEY_RESIZE, TOP_KEY_REDRAW, 0 },
		{ OK, '\t', TOP_KEY_NEXT, 0 },
		{ OK, '\r', TOP_KEY_ENTER, 0 },
		{ OK, '\n', TOP_KEY_ENTER, 0 },
		{ OK, 0x1b, TOP_KEY_ESCAPE, 0 },
		{ OK, 0x08, TOP_KEY_BACKSPACE, 0 },
		{ OK, 0x7f, TOP_KEY_BACKSPACE, 0 },
		{ OK, 'q', TOP_KEY_CHARACTER, L'q' },
		{ OK, 0xe9, TOP_KEY_CHARACTER, 0xe9 },
		/* A character that has the number of a key is no key. */
		{ OK, KEY_UP, TOP_KEY_CHARACTER, KEY_UP },
	};
	wchar_t character;

	begin();
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		play.key_kind = cases[i].kind;
		play.key = cases[i].code;
		EXPECT_EQUAL(top_screen_key(&character), cases[i].key);
		EXPECT_EQUAL(character, cases[i].character);
	}
	EXPECT(is_called(""));
	play.key_kind = OK;
	play.key = 0x0c;
	EXPECT_EQUAL(top_screen_key(&character), TOP_KEY_REDRAW);
	EXPECT_THAT("Ctrl-L draws everything again", is_called("clearok curscr 1\n"));
}

static void test_blocks(void)
{
	static const struct {
		const char *term;
		bool has_blocks;
	} cases[] = { { "xterm", true },
		      { "linux", false },
		      { "linux-16color", false },
		      { "linu", true },
		      { NULL, true } };

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		begin();
		if (cases[i].term == NULL)
			unsetenv("TERM");
		else
			setenv("TERM", cases[i].term, 1);
		EXPECT_EQUAL(top_screen_has_blocks(), cases[i].has_blocks);
	}
}

int main(void)
{
	test_open();
	test_return();
	test_size();
	test_styles();
	test_show();
	test_keys();
	test_blocks();
	return tap_done();
}

#endif
