/*
 * The terminal, through ncurses, which supports only one. Everything shown comes from a canvas;
 * ncurses sends the differences.
 */
#ifndef TOP_SCREEN_H
#define TOP_SCREEN_H

#include <stdbool.h>
#include <wchar.h>

#include "top/top_canvas.h"
#include "top/top_model.h"

/* False: this terminal (TERM) is unknown or has no cursor addressing; nothing was changed. */
bool top_screen_open(void);

/* Restores the terminal. May be called when it is not open. */
void top_screen_close(void);

/* Release the terminal for a while, then take it back with its current size. */
void top_screen_leave(void);
void top_screen_return(void);

void top_screen_size(unsigned int *width, unsigned int *height);
/* The window size has changed. */
void top_screen_resize(void);

void top_screen_show(const struct top_canvas *canvas);

/* The next key that was pressed; does not block. */
enum top_key top_screen_key(wchar_t *character);

/* Whether this terminal can show block characters. Consoles have few of them in their fonts. */
bool top_screen_has_blocks(void);

#endif
