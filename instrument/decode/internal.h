/* What the files of decode/ share: merge.c, which brings the records of a cluster into order, and
 * decode.c and others, which turn them into events (events.h). Private to this module. */
#ifndef CONSAN_DECODE_INTERNAL_H
#define CONSAN_DECODE_INTERNAL_H

#include <pthread.h>

#include "instrument/rewrite/rewrite.h"
#include "decode.h"

/* What is known of a site before its first record. */
struct site_info {
	struct plan plan;
	uint8_t phase;
	uint8_t lane_words;
	uint16_t uniform_words;
	bool sync;                 /* its records are ordered between warps */
	bool join;                 /* the four warps of a warpgroup must all be here before they
				      continue */
	bool aligned;              /* a memory access or an mma that the whole warp must execute together */
	bool used;                 /* a tcgen05.ld: ptx_load_is_read() */
	bool flag;                 /* a volatile load of a flag (ptx/flag.h) */
};

/* An instruction that is recorded with its wgmma group. */
struct batch_info {
	uint8_t words;             /* its words in the record */
	bool mma, a_regs, a_mn, b_mn; /* a wgmma; A is in registers; A, B are transposed */
	bool deep;                 /* sparse: B is 64 bytes deep */
	uint16_t n;                /* columns of B */
	uint16_t nd, na;           /* number of registers of D, of A */
	uint32_t regs[132];        /* those of D, then those of A */
};

struct record {
	uint32_t site, lanes;
	uint64_t key;              /* position in the order between warps: clock or ticket */
	bool affine;
	uint32_t base;
	int32_t stride;
	const uint32_t *words;     /* the words behind the first unit */
};

/* The chunks of one lane. */
struct stream {
	const struct record_chunk **chunk;
	uint32_t nchunks, at;      /* index of the chunk after the one being read */
	const uint32_t *next, *end;
	uint32_t leader, lanes;    /* this lane as a mask; with those that it can lead */
	unsigned units;            /* of the record at `next` */
	uint64_t clock;            /* of the record at `next`; UINT64_MAX: there is none */
	bool sync_known;           /* exact order: these two are those of the next record that
				      synchronizes */
	uint64_t sync_clock, sync_key;
};

struct dwarp {
	uint32_t first, nstreams;
	uint32_t current;          /* the stream with the next record */
	uint64_t clock;            /* of the last record */
	bool at_join;              /* waits for its warpgroup at a join */
	uint64_t join_key;         /* key of its next synchronization after the join; 0: not
				      known yet */
	uint32_t joins;            /* number of joins that it has left */
	bool over;
	struct record join_record; /* its record at the join */
	uint32_t all, gone;        /* masks of lanes: existing; exited */
	uint32_t at_bar, bar_site; /* lanes at a CTA barrier; the site of the last of them */
	struct event bar_arrival;  /* of its last record, to be emitted when all lanes are there */
	const struct ptx_insn *bar; /* the barrier instruction that they executed */
	uint32_t other_bar;        /* 1 + site of another barrier instruction that some of them
				      executed; 0: none */
	uint32_t maxnreg;
	/* lanes whose record of this setmaxnreg is still to come: the warp executes it once,
	 * when its first lanes are recorded */
	uint32_t regs_missing, regs_site;
	uint32_t last_insn;        /* 1 + index of the last record's instruction */
	/* lanes at an .aligned access (struct site_info), and those that did not execute it
	 * yet; 0: none */
	uint32_t at_aligned, missing, aligned_site;
	/* lanes that wait for the others of their member masks: at bar.warp.sync, at a collective */
	struct meeting { uint32_t lanes, mask[32]; } sync, collective;
	uint32_t sync_site;
	/* lanes at an .aligned tcgen05 instruction that waits for the others of the warp, and the record
	 * of the last of them; 0: none */
	uint32_t at_tcgen05;
	struct record tcgen05;
	uint8_t from[32];          /* the source lane of each lane there */
	/* for each lane: the mbarrier and phase of its last arrival, and the token of its next
	 * wait */
	struct { uint32_t model; uint64_t phase; } arrived[32];
	uint64_t token[32];
	uint32_t has_token;
	/* the wait that failed last: its lanes, mbarrier, time and phase */
	struct { uint32_t site, lanes, model; uint64_t clock, phase; } polled;
	/* the global side of each lane's next copy: its address, or the coordinates and im2col
	 * offsets of a tensor copy */
	struct { uint64_t at; int32_t word[8]; } source[32];
	uint8_t nseen;             /* used entries of dcluster.seen */
	/* together.c: by lane, the site of its last record, or 0; and the lanes whose next record
	 * follows a collective that was emitted already */
	uint32_t from_site[32], counted;
};

#define PATHS 1024
#define PIECES 1024
#define PLACES 64

struct signal { uint32_t op, count; int64_t tx; uint32_t site, lanes; uint16_t cta, warp; };
/* Tokens are opaque, and the same value may be returned again: it stands for the newest phase
 * in which it was returned. */
#define TOKENS 1024
struct token { uint64_t value, phase; bool known; };
struct model {                 /* the state of an mbarrier */
	uint16_t peer;
	uint32_t addr;
	uint32_t expected, pending;
	int64_t tx;
	uint64_t phase;
	/* by phase % 4: the clock of the last arrival from its own CTA */
	uint64_t arrived[4];
	VEC(struct signal) signal; /* operations that will signal it, oldest first */
	size_t done;               /* number of these that have signalled */
	struct token *token;       /* hash table of TOKENS by value; NULL: none is known */
};

/* The addresses of tensor maps in global memory that the launch uses: a hash table; 0: a free
 * entry. */
struct map_set {
	uint64_t low, high;        /* the lowest and the highest address */
	struct map_place {
		uint64_t addr;
		bool written, again;   /* again: an instruction wrote it that had written it
					  before */
		uint64_t sites;    /* a set of the writing sites, by the low bits of their
				      numbers */
		const uint32_t *last;  /* words of the last record that wrote it */
	} *at;
	uint32_t n, cap;
};

/* The sizes of blocks that malloc returned to kernels: a hash table by address; 0: a free entry. */
struct heap_sizes {
	struct heap_size { uint64_t addr, bytes; } *at;
	uint32_t n, cap;
};

struct job {
	const struct decode_launch *l;
	const struct site_info *info;
	const struct batch_info *batch; /* for each of code->batch */
	struct map_set maps;
	struct heap_sizes heap;    /* under the lock */
	uint8_t *seen;             /* by site: it has records; set by all threads */
	uint32_t nclusters, nctas, nwarps;
	const struct record_chunk **chunk; /* sorted by cluster, stream and clock */
	uint32_t *first;           /* for each cluster, the index of its first chunk */
	uint32_t *todo, ntodo;     /* clusters */
	uint8_t *blind;            /* for each cluster: records of it are missing, so it is
				      decoded as if it had none; NULL: no cluster */
	uint32_t next;             /* place in todo of the next cluster to decode */
	pthread_mutex_t lock;
	struct decode_result result;
};

/* The tensor memory of a CTA, as tcgen05.c needs it. */
struct dtmem {
	uint32_t units;            /* allocated columns (tmem_form.h) */
	bool relinquished;
	/* 1 + the warp that waits in an alloc or dealloc with .cta_group::2 for one of the other CTA,
	 * and what it executes; 0: none */
	uint32_t waits;
	struct tmem_call call;
	struct event freed;        /* of the dealloc */
};

#define NEVER INT64_MAX       /* larger than all turns */

/* The plain uses of wgmma registers between two instructions: in coarse events all reads and all
 * writes at once; else instruction by instruction. */
struct path_cache {
	uint64_t key;
	uint32_t n, *use;          /* indices of rewrite.reg_use */
	uint32_t *reg;             /* coarse: nread registers that are read, then nwritten */
	uint32_t nread, nwritten;
};

/* Does a collective lie on every path from one site to another? */
struct together_path {
	uint64_t key;
	bool yes;
};

/* The decoding of a cluster, by one thread. */
struct dcluster {
	struct job *job;
	struct cluster_info info;
	struct event_sink *sink;
	struct dwarp *warp;
	uint64_t *turn;            /* for each warp the key of its next record; NEVER: it has
				      ended, or waits at a join */
	VEC(struct stream) stream;
	VEC(struct model) model;
	VEC(struct ev_span) span;  /* of the event being made */
	VEC(struct ev_gspan) gspan;
	struct path_cache *path;   /* PATHS of them */
	struct together_path *together; /* PATHS of them; NULL: no collectives are looked for */
	struct { uint64_t from, bytes; } place[PLACES]; /* the allocation found last, by site */
	struct mma_pieces **pieces; /* PIECES of them, or NULL */
	struct tc_book *book;      /* of tcgen05.mma */
	struct gather *gather;     /* decode_launch.coarse; NULL: nothing was gathered yet */
	bool registers;            /* the kernel has wgmma, whose registers are checked */
	bool blind;                /* as in struct job */
	bool stopped;              /* an operand was refused: the cluster ends here */
	uint32_t nat_join;         /* number of warps that wait at a join */
	uint32_t ops, running;
	struct dtmem *tmem;        /* for each CTA */
	uint32_t *left;            /* for each CTA, number of lanes that have not exited */
	uint32_t arrived;          /* number of lanes that arrived at the cluster barrier */
	struct record *seen;       /* if the kernel did not end: 32 records for each warp, the
				      last ones of its lanes; no lane is in two of them; else
				      NULL */
	struct decode_result result;
};

/* ---- merge.c ---- */
/* Size of a record, with its first unit. */
unsigned record_units(const struct site_info *s, bool affine, uint32_t lanes);
/* Prepares a thread for any of the job's clusters. The caches may be shared by clusters that
 * one thread decodes in turn. */
void merge_open(struct dcluster *c, struct job *j);
void merge_close(struct dcluster *c);
void merge_open_caches(struct dcluster *c);
void merge_close_caches(struct dcluster *c);
/* Begins a cluster, whose chunks are sorted. */
void merge_begin(struct dcluster *c, uint32_t id);
void merge_end(struct dcluster *c);
/* Runs the warp whose turn is next, unless it comes after `until`. False: it does, or the
 * cluster has ended. *key: that turn. */
bool merge_step(struct dcluster *c, uint64_t until, uint64_t *key);
void merge_run(struct dcluster *c); /* until it ends */

/* ---- sites.c ---- */
struct decode_sites {
	struct site_info *info;
	struct batch_info *batch;
	bool cancels;              /* clusters may be canceled, so that they record nothing */
};
/* Number of instructions executed, from the sites that have records. */
uint32_t sites_executed(const struct rewrite *code, const uint8_t *seen);

/* ---- maps.c ---- */
/* Finds all maps before the launch is decoded, as a store to a map comes before the copy that
 * uses it. Only with --gpu-global. */
void maps_find(struct job *j);
bool maps_hold(const struct map_set *m, uint64_t addr);
bool maps_written(const struct map_set *m, uint64_t addr); /* by any thread of the launch */
/* Written more than once: its content at the end of the launch need not be the one used. */
bool maps_rewritten(const struct map_set *m, uint64_t addr);
void maps_free(struct job *j);

/* ---- decode.c ---- */
void decode_begin(struct dcluster *c);
void decode_record(struct dcluster *c, uint32_t warp, const struct record *r);
/* The four warps of a warpgroup are at these records; NULL: a warp without one. */
void decode_warpgroup(struct dcluster *c, uint32_t first, const struct record *r[4]);
void decode_end(struct dcluster *c);

/* Do records of global memory make events? */
static inline bool decodes_global(const struct job *j)
{
	return j->l->code->global && !j->l->screened;
}

/* The k-th chunk of the launch, from 1. */
static inline const struct record_chunk *chunk_at(const struct decode_launch *l, uint32_t k)
{
	return l->chunk ? l->chunk[k - 1]
		: (const void *)((const char *)l->pool + (size_t)k * RECORD_CHUNK_BYTES);
}

static inline uint32_t record_word(const struct dcluster *c, const struct record *r, unsigned lane,
	unsigned word)
{
	const struct site_info *s = &c->job->info[r->site];

	if (s->plan.class == PLAN_LANES && s->phase != PHASE_BATCH && !r->affine)
		word += (unsigned)__builtin_popcount(r->lanes & ((1u << lane) - 1)) * s->lane_words;
	return r->words[word];
}

/* ---- hang.c ---- */
/* If the kernel did not end: notes the last record of lanes. */
void hang_note(struct dcluster *c, uint32_t warp, const struct record *r);
/* Reports the lanes that have not exited, and what they wait for. */
void hang_report(struct dcluster *c);

/* ---- gather.c ---- */
void gather_close(struct gather *g); /* NULL is fine */
/* Emits the events of what was gathered. */
void gather_flush(struct dcluster *c);

/* ---- wgmma.c ---- */
struct batch_info batch_of(const struct ptx_func *f, const struct ptx_insn *i);
/* ---- barriers.c ---- */
struct model *model_of(struct dcluster *c, uint32_t peer, uint32_t addr);
void model_init(struct model *m, uint32_t count);
void model_close(struct model *m);
/* An arrival in this phase returned this token. */
void model_token(struct model *m, uint64_t value, uint64_t phase);
/* The phase of a token. False: not known. */
bool model_phase(const struct model *m, uint64_t value, uint64_t *phase);
/* Another object of the same CTA, if only that one has returned the token; else NULL. */
const struct model *model_of_token(const struct dcluster *c, const struct model *m, uint64_t value);
void model_arrive(struct model *m, uint32_t count, int64_t tx, bool drop);
void model_complete(struct model *m, int64_t tx);
/* A wait saw a phase complete: lands the signals needed for that. */
void model_wait(struct dcluster *c, struct model *m, bool parity, uint64_t value);
void model_add_signal(struct model *m, const struct signal *s);
void model_land_all(struct dcluster *c); /* lands all remaining signals */
void emit(struct dcluster *c, const struct event *e);

#endif
