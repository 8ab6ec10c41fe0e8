/* What a region says was moved to and from each peer. */
#include "base/list_grow.h"
#include "region/region_read.h"
#include "recording/recording_load.h"

static enum status take_links(struct recording_process *process)
{
	uint32_t count = region_slots(process->region, REGION_LINKS);
	struct region_link link;

	for (uint32_t i = 0; i < count; i++) {
		if (!region_link_at(process->region, i, &link)) {
			if (i != 0)
				continue;
			link = (struct region_link){ 0 };
		}
		if (!list_grow(&process->links, process->link_count, sizeof(link)))
			return ERR_NO_SPACE;
		process->links[process->link_count++] = link;
	}
	return OK;
}

/* Links come of proxy operations: while there were none, there are none. */
enum status recording_links_load(struct recording_process *process)
{
	struct region *region = process->region;
	enum status status;
	uint64_t proxies;

	status = region_pread(region, &proxies, sizeof(proxies),
			      offsetof(struct region_header, proxy_cursor));
	if (status != OK || proxies == 0)
		return status;
	status = region_copy(region, REGION_COPY_BRIEF | REGION_COPY_LINKS);
	if (status == OK)
		status = take_links(process);
	region_copy_drop(region, REGION_COPY_LINKS);
	return status;
}
