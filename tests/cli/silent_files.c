/*
 * A file system whose server stops answering, as a dead file server or a user's own one does:
 *
 *	silent_files FUSE-DEVICE DIRECTORY [NAME]     mounts it, prints "ready" and serves it until it is killed
 *
 * Below it, everything that exists is there, but:
 *	lookup      asking for this name, or NAME, is never answered
 *	open        a file; opening it is never answered
 *	read        a file of 8 KiB; reading it is never answered
 *	list        a directory; opening it is never answered
 *	names       a directory; reading its names is never answered
 *	memfd:ringside  a file named like a region in memory; what fstat() asks about it is never answered
 *	plain       a file that answers, and contains zeros
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

static struct entry {
	const char *name;
	mode_t mode;
	unsigned int silent_about; /* this operation */
} entries[] = {
	[1] = { "", S_IFDIR | 0755, 0 },
	[2] = { "lookup", S_IFREG | 0644, FUSE_LOOKUP },
	[3] = { "open", S_IFREG | 0644, FUSE_OPEN },
	[4] = { "read", S_IFREG | 0644, FUSE_READ },
	[5] = { "list", S_IFDIR | 0755, FUSE_OPENDIR },
	[6] = { "names", S_IFDIR | 0755, FUSE_READDIR },
	[7] = { "memfd:ringside", S_IFREG | 0644, FUSE_GETATTR },
	[8] = { "plain", S_IFREG | 0644, 0 },
};
enum { ENTRIES = sizeof(entries) / sizeof(entries[0]), FILE_BYTES = 8192 };

static int device;

static void answer(const struct fuse_in_header *in, int error, const void *body, size_t size)
{
	static char bytes[FILE_BYTES + 64];
	struct fuse_out_header out = { .len = (uint32_t)(sizeof(out) + size),
				       .error = -error,
				       .unique = in->unique };

	memcpy(bytes, &out, sizeof(out));
	if (size > 0)
		memcpy(bytes + sizeof(out), body, size);
	if (write(device, bytes, out.len) == -1 && errno != ENOENT)
		perror("silent_files");
}

static struct fuse_attr attributes(uint64_t node)
{
	return (struct fuse_attr){ .ino = node,
				   .size = S_ISREG(entries[node].mode) ? FILE_BYTES : 0,
				   .mode = entries[node].mode,
				   .nlink = 1,
				   .blksize = 4096 };
}

static void look_up(const struct fuse_in_header *in, const char *name)
{
	for (uint64_t node = 2; node < ENTRIES; node++) {
		struct fuse_entry_out out = { .nodeid = node, .attr = attributes(node) };

		if (strcmp(entries[node].name, name) != 0)
			continue;
		if (entries[node].silent_about != FUSE_LOOKUP)
			answer(in, 0, &out, sizeof(out));
		return;
	}
	answer(in, ENOENT, NULL, 0);
}

/* Names of the top directory, in the first answer. */
static void list_names(const struct fuse_in_header *in, const struct fuse_read_in *read)
{
	static char bytes[4096];
	size_t used = 0;

	for (uint64_t node = 2; in->nodeid == 1 && read->offset == 0 && node < ENTRIES; node++) {
		struct fuse_dirent *one = (struct fuse_dirent *)(void *)(bytes + used);

		*one = (struct fuse_dirent){ .ino = node,
					     .off = node,
					     .namelen = (uint32_t)strlen(entries[node].name),
					     .type = (entries[node].mode & S_IFMT) >> 12 };
		memcpy(one->name, entries[node].name, one->namelen);
		used += FUSE_DIRENT_SIZE(one);
	}
	answer(in, 0, bytes, used);
}

static void serve_one(const char *bytes)
{
	static const char zeros[FILE_BYTES];
	const struct fuse_in_header *in = (const void *)bytes;
	const void *body = bytes + sizeof(*in);
	struct fuse_init_out init = { .major = FUSE_KERNEL_VERSION, .minor = 31 };
	struct fuse_attr_out attr = { .attr_valid = 0 };
	struct fuse_open_out opened = { .fh = 1 };
	struct fuse_statfs_out fs = { .st = { .bsize = 4096, .namelen = 255 } };

	if (in->nodeid > 0 && in->nodeid < ENTRIES && in->opcode != FUSE_LOOKUP &&
	    entries[in->nodeid].silent_about == in->opcode)
		return;
	switch (in->opcode) {
	case FUSE_INIT:
		init.max_write = 65536;
		/* Or the first name that is not answered would stop all others. */
		init.flags = FUSE_PARALLEL_DIROPS;
		answer(in, 0, &init, sizeof(init));
		break;
	case FUSE_LOOKUP:
		look_up(in, body);
		break;
	case FUSE_GETATTR:
		attr.attr = attributes(in->nodeid);
		answer(in, 0, &attr, sizeof(attr));
		break;
	case FUSE_OPEN:
	case FUSE_OPENDIR:
		answer(in, 0, &opened, sizeof(opened));
		break;
	case FUSE_READ:
		answer(in, 0, zeros, ((const struct fuse_read_in *)body)->size % (FILE_BYTES + 1));
		break;
	case FUSE_READDIR:
		list_names(in, body);
		break;
	case FUSE_STATFS:
		answer(in, 0, &fs, sizeof(fs));
		break;
	case FUSE_RELEASE:
	case FUSE_RELEASEDIR:
	case FUSE_FLUSH:
		answer(in, 0, NULL, 0);
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		break;
	default:
		answer(in, ENOSYS, NULL, 0);
	}
}

int main(int argc, char **argv)
{
	static _Alignas(8) char bytes[1 << 20];
	char options[128];

	device = argc >= 3 ? open(argv[1], O_RDWR | O_CLOEXEC) : -1;
	if (device == -1) {
		perror("usage: silent_files FUSE-DEVICE DIRECTORY [NAME]");
		return 2;
	}
	if (argc > 3)
		entries[2].name = argv[3];
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other",
		 device);
	if (mount("silent", argv[2], "fuse", MS_NOSUID | MS_NODEV, options) == -1) {
		perror(argv[2]);
		return 2;
	}
	printf("ready\n");
	fflush(stdout);
	while (read(device, bytes, sizeof(bytes)) > 0 || errno == EINTR || errno == ENOENT)
		serve_one(bytes);
	return 0;
}
