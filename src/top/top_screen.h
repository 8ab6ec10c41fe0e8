/*
 * The terminal, through ncurses. There is one, so there is one of these. All that is shown comes
 * from a canvas; ncurses sends what changed.
 */
#ifndef TOP_SCREEN_H
#define TOP_SCREEN_H

#include <stdbool.h>
#include <wchar.h>

#include "top/top_canvas.h"
#include "top/top_model.h"

/* False: this terminal (TERM) is unknown or cannot be moved about in; nothing was changed. */
bool top_screen_open(void);

/* The terminal as it was. Fine when it is not open. */
void top_screen_close(void);

/* Give the terminal back for a while, and take it again with whatever size it has then. */
void top_screen_leave(void);
void top_screen_return(void);

void top_screen_size(unsigned int *width, unsigned int *height);
/* The window has another size now. */
void top_screen_resize(void);

void top_screen_show(const struct top_canvas *canvas);

/* The next key that was pressed, without waiting. */
enum top_key top_screen_key(wchar_t *character);

/* May this terminal be given blocks? Consoles have few of them in their fonts. */
bool top_screen_has_blocks(void);

#endif
