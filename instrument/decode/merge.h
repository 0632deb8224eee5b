/* merge: between merge.c, which brings the records of a cluster into order, and
 * decode.c, which says what they mean. Private to them. */
#ifndef CONSAN_INSTRUMENT_MERGE_H
#define CONSAN_INSTRUMENT_MERGE_H

#include <pthread.h>

#include "instrument/rewrite/rewrite.h"
#include "decode.h"

/* What is known of a site before its first record. */
struct site_info {
	struct plan plan;
	uint8_t phase;
	uint8_t lane_words;
	uint16_t uniform_words;
	bool sync;                 /* it takes part in the order between warps */
	bool meets;                /* the four warps of a warpgroup go on together */
	bool aligned;              /* it accesses memory, and the whole warp or nobody may */
};

/* Of an instruction recorded with its group of wgmma. */
struct batch_info {
	uint8_t words;             /* of the record that are its own */
	bool mma, a_regs, a_mn, b_mn; /* a wgmma; A in registers; transposed */
	uint16_t n;                /* columns of B */
	uint16_t nd, na;           /* registers of D and of A, */
	uint32_t regs[132];        /* ... one after the other */
};

struct record {
	uint32_t site, lanes;
	uint64_t key;              /* in the order between warps */
	bool affine;
	uint32_t base;
	int32_t stride;
	const uint32_t *words;     /* after the unit at its front */
};

/* One lane's chunks. */
struct stream {
	const struct record_chunk **chunk;
	uint32_t nchunks, at;      /* chunk being read */
	const uint32_t *next, *end;
	uint64_t clock;            /* of the record at next; UINT64_MAX: over */
	bool ahead;                /* in an exact order the next that synchronises is known: */
	uint64_t ahead_clock, ahead_key;
};

struct dwarp {
	uint32_t first, nstreams;
	uint32_t current;          /* stream with the next record */
	uint64_t clock;            /* of the record before */
	bool met;                  /* waits for its warpgroup, */
	uint64_t due;              /* ... with this key ahead; 0: that was not looked at */
	uint32_t meetings;         /* of its warpgroup that it has come out of */
	bool over;
	struct record held;        /* the record at which it waits */
	uint32_t all, gone;        /* lanes that exist; that have exited */
	uint32_t at_bar, bar_site; /* lanes at a barrier, which some recorded here */
	const struct ptx_insn *bar; /* through which they came */
	uint32_t other_bar;        /* 1 + where others of them did; 0: they did not */
	uint32_t maxnreg;
	/* lanes that come to the setmaxnreg of this site, which the warp executes once, later
	 * than the first of its lanes were recorded there */
	uint32_t regs_behind, regs_site;
	uint32_t past;             /* 1 + the instruction of the last record */
	/* lanes that came to an .aligned instruction of struct site_info, and those that
	 * have not come yet; 0: none */
	uint32_t at_aligned, behind, aligned_site;
	uint32_t at_sync, sync_mask;
	uint32_t at_meeting, meeting_mask;
	uint8_t from[32];          /* the lane that each reads there */
	/* of lanes: where and in which phase they arrived last; by what they wait next */
	struct { uint32_t model; uint64_t phase; } arrived[32];
	uint64_t token[32];
	uint32_t has_token;
	/* the wait that failed last: which lanes and mbarrier's, when, in which phase */
	struct { uint32_t site, lanes, model; uint64_t clock, phase; } polled;
	/* the global side of the copy that comes next, by lane: its address, or a
	 * tensor copy's coordinates, then its im2col offsets */
	struct { uint64_t at; int32_t word[8]; } source[32];
	uint8_t nseen;             /* of dcluster.seen */
};

#define WAYS 1024
#define PIECES 1024
#define PLACES 64

struct signal { uint32_t op, count; int64_t tx; uint32_t site, lanes; uint16_t cta, warp; };
/* What arrivals returned is opaque, and the same value may come again: it stands for
 * the newest phase in which it was returned. */
#define TOKENS 1024
struct token { uint64_t value, phase; bool known; };
struct model {                 /* of an mbarrier */
	uint16_t peer;
	uint32_t addr;
	uint32_t expected, pending;
	int64_t tx;
	uint64_t phase;
	/* by phase % 4: when the CTA arrived, last */
	uint64_t arrived[4];
	VEC(struct signal) flying; /* will signal it, oldest first */
	size_t done;               /* of these, have */
	struct token *token;       /* TOKENS, by value; NULL: none was recorded */
};

/* Where tensor copies of the launch find maps in global memory: a table by hash,
 * 0 where there is none. */
struct map_set {
	uint64_t low, high;        /* the first, the last */
	struct map_place {
		uint64_t addr;
		bool written, again;   /* again: by an instruction that had written it before */
		uint64_t sites;        /* of those, by the number's last bits */
		const uint32_t *last;  /* the record's words */
	} *at;
	uint32_t n, cap;
};

struct job {
	const struct decode_launch *l;
	const struct site_info *info;
	const struct batch_info *batch; /* of each of code->batch */
	struct map_set maps;
	uint8_t *seen;             /* sites, set by all threads */
	uint32_t nclusters, nctas, nwarps;
	const struct record_chunk **chunk; /* by cluster, stream, clock */
	uint32_t *first;           /* of each cluster, in chunk */
	uint32_t *todo, ntodo;     /* clusters */
	uint8_t *blind;            /* of each cluster: records of it are missing, so that it is
				      as if it had recorded nothing; NULL: of none */
	uint32_t next;             /* place in todo of the next cluster to decode */
	pthread_mutex_t lock;
	struct decode_result result;
};

#define NEVER INT64_MAX       /* no turn comes later */

/* One thread's cluster. */
struct dcluster {
	struct job *job;
	struct cluster_info info;
	struct event_sink *sink;
	struct dwarp *warp;
	uint64_t *turn;            /* of each, when: the key of its next record; NEVER: it is
				      over, or waits for its warpgroup */
	VEC(struct stream) stream;
	VEC(struct model) model;
	VEC(struct ev_span) span;
	struct way_cache { uint64_t key; uint32_t n, *note; } *way; /* WAYS of them */
	struct { uint64_t from, bytes; } place[PLACES]; /* allocations, by site */
	struct mma_pieces **pieces; /* PIECES of them, or NULL */
	struct gather *gather;     /* decode_launch.coarse; NULL: nothing was gathered yet */
	bool registers;            /* the kernel has wgmma, whose registers are checked */
	bool blind;                /* see struct job */
	bool stopped;              /* something was refused: it ends here */
	uint32_t nmet;             /* warps that wait for their warpgroup */
	uint32_t ops, running;
	uint32_t *left;            /* lanes of each CTA that have not exited */
	uint32_t arrived;          /* lanes, at the cluster's barrier */
	struct record *seen;       /* if the kernel did not end: 32 a warp, the last of its
				      lanes, which no two share; NULL: it did */
	struct decode_result result;
};

/* ---- merge.c ---- */
/* Of a record, with the one at its front. */
unsigned record_units(const struct site_info *s, bool affine, uint32_t lanes);
/* What a thread has, whichever of the job's clusters is at hand; caches may be lent
 * from one to another that comes by turns with it. */
void merge_open(struct dcluster *c, struct job *j);
void merge_close(struct dcluster *c);
void merge_open_caches(struct dcluster *c);
void merge_close_caches(struct dcluster *c);
/* A cluster, whose chunks are in their order. */
void merge_begin(struct dcluster *c, uint32_t id);
void merge_end(struct dcluster *c);
/* Runs the warp whose turn it is, unless its turn comes after `until`. False: it does,
 * or the cluster is over; *key: its key. */
bool merge_step(struct dcluster *c, uint64_t until, uint64_t *key);
void merge_run(struct dcluster *c); /* to its end */

/* ---- sites.c ---- */
struct decode_sites {
	struct site_info *info;
	struct batch_info *batch;
};
/* How many instructions, by the sites that were seen. */
uint32_t sites_executed(const struct rewrite *code, const uint8_t *seen);

/* ---- maps.c ---- */
/* As a store comes before the copy that names the map, all are looked for before
 * the launch is decoded; none, unless accesses to global memory were recorded. */
void maps_find(struct job *j);
bool maps_hold(const struct map_set *m, uint64_t addr);
bool maps_written(const struct map_set *m, uint64_t addr); /* ... somewhere in the launch */
/* ... and again: what it said at one time need not be what it says at the end. */
bool maps_rewritten(const struct map_set *m, uint64_t addr);
void maps_drop(struct job *j);

/* ---- decode.c ---- */
void decode_begin(struct dcluster *c);
void decode_record(struct dcluster *c, uint32_t warp, const struct record *r);
/* All four warps of the group stand at these records; NULL: it has none. */
void decode_meeting(struct dcluster *c, uint32_t first, const struct record *r[4]);
void decode_end(struct dcluster *c);

/* The k-th of the launch, from 1. */
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
/* Where the kernel did not end: what a warp was last seen at. */
void hang_note(struct dcluster *c, uint32_t warp, const struct record *r);
/* Whoever is left, and what for. */
void hang_tell(struct dcluster *c);

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
/* An arrival in this phase has returned this value. */
void model_token(struct model *m, uint64_t value, uint64_t phase);
/* Of which phase it is; false: that is not known. */
bool model_phase(const struct model *m, uint64_t value, uint64_t *phase);
void model_arrive(struct model *m, uint32_t count, int64_t tx, bool drop);
void model_complete(struct model *m, int64_t tx);
/* Signals come in until the phase is complete that a wait saw complete. */
void model_wait(struct dcluster *c, struct model *m, bool parity, uint64_t value);
void model_fly(struct model *m, const struct signal *s);
void model_land(struct dcluster *c); /* all that still flies */
void emit(struct dcluster *c, const struct event *e);

#endif
