#include "common/status.h"

#include <stdint.h>
#include <stdlib.h>

#include "tests/tap.h"

enum { MANY = 1000 };

int main(void)
{
	uint32_t *list = NULL;
	bool is_whole = true, has_room = true;

	/* Under ASan this also shows that there is room for each. */
	for (uint32_t i = 0; i < MANY && has_room; i++) {
		has_room = list_grow(&list, i, sizeof(*list));
		if (has_room)
			list[i] = i;
	}
	for (uint32_t i = 0; i < MANY && has_room; i++)
		is_whole = is_whole && list[i] == i;
	EXPECT_THAT("a list grows element by element", has_room);
	EXPECT_THAT("earlier elements are kept", is_whole);
	free(list);
	return tap_done();
}
