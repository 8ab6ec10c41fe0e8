#include "programs/sim/tape_map.h"

#include <stdlib.h>

#include "common/hash.h"

enum status tape_map_init(struct tape_map *map, size_t count)
{
	map->room = 16;
	while (map->room < 2 * count + 2)
		map->room *= 2;
	map->ids = calloc(map->room, sizeof(*map->ids));
	return map->ids ? OK : ERR_NO_SPACE;
}

void tape_map_release(struct tape_map *map)
{
	free(map->ids);
	*map = (struct tape_map){ 0 };
}

/* Its place, or the free one where it belongs. */
static struct tape_id *place_of(const struct tape_map *map, uint64_t recorded)
{
	size_t i = hash_word(0, recorded) & (map->room - 1);

	while (map->ids[i].recorded != 0 && map->ids[i].recorded != recorded)
		i = (i + 1) & (map->room - 1);
	return &map->ids[i];
}

struct tape_id *tape_map_find(const struct tape_map *map, uint64_t recorded)
{
	struct tape_id *id = place_of(map, recorded);

	return recorded != 0 && id->recorded == recorded ? id : NULL;
}

struct tape_id *tape_map_put(struct tape_map *map, uint64_t recorded)
{
	struct tape_id *id = place_of(map, recorded);

	*id = (struct tape_id){ .recorded = recorded };
	return id;
}
