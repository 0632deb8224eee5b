/* launch_info: what is known of a launch and of a cluster before its first event. */
#ifndef CONSAN_LAUNCH_INFO_H
#define CONSAN_LAUNCH_INFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct launch_info {
	const char *kernel;      /* mangled name */
	uint32_t id;             /* number of earlier launches of this process */
	uint32_t grid[3], block[3], cluster[3];
	/* Sizes of smaller clusters into which some clusters are split; 0: none. Cluster ids
	 * from cluster_whole() on number these, as if the whole grid consisted of them. */
	uint32_t fallback[3];
	uint32_t shared_static, shared_dynamic; /* bytes per CTA */
	uint32_t regs_per_thread; /* at entry, for setmaxnreg */
	uint32_t sm;              /* 90 for sm_90a */
	uint32_t device;          /* number of the device on which it runs */
	uint64_t seed;
	const char *schedule;     /* a controlled one, as the option `schedule` names it; or NULL.
				     Not saved */
	uint8_t reads;            /* as the option `reads`: 0 newest, 1 oldest, 2 random */
	uint64_t queue;           /* launches of one queue begin in order */
	uint64_t launched;        /* by a kernel: the number of the EV_GRID_LAUNCH; else 0. Not saved */
	bool programmatic;        /* it may begin before the previous launch has ended */
	bool tensor;              /* the kernel has tcgen05 instructions */
	bool clustered;           /* it, or the kernel, states cluster dimensions, perhaps 1, 1, 1 */
	bool apart;               /* no cluster synchronizes with another: the kernel has no strong
				     write to global memory and no griddepcontrol */
	const struct ev_symbol {  /* named shared variables */
		const char *name;
		uint32_t addr, bytes;
	} *symbols;
	size_t nsymbols;
};

/* One cluster of a launch. */
struct cluster_info {
	const struct launch_info *launch;
	uint32_t id;             /* linear cluster id in the grid */
	uint32_t nctas;
	uint32_t warps_per_cta;
	struct recorder *recorder; /* records its steps (recorder.h), or NULL */
};

/* Writes the name of a shared address to out, n bytes: "tile+0x80"; "" if it is in no variable.
 * An mbarrier in a variable that is large enough for several, but not for data beside them, is
 * an element of an array of mbarriers: "full[1]". */
void launch_symbol(const struct launch_info *l, uint64_t addr, bool mbarrier, char *out, size_t n);

/* How many clusters of the size `cluster` make up the grid. */
uint32_t cluster_whole(const struct launch_info *l);
/* The sizes of this cluster: the launch's `cluster`, or `fallback`. Never 0. */
void cluster_dims(const struct cluster_info *c, uint32_t dims[3]);
/* blockIdx of the CTA with this rank in this cluster */
void cluster_ctaid(const struct cluster_info *c, unsigned rank, uint32_t id[3]);

#endif
