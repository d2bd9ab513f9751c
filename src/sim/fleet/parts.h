/* parts.h - what a fleet is made of: router, transfers, autoscaler. */
#ifndef VT_SIM_FLEET_PARTS_H
#define VT_SIM_FLEET_PARTS_H

#include "sim/fleet/fleet.h"

/* ---- sets of block keys (keys.c) ------------------------------- */

struct holders; /* below */

/* The keys last sent to an instance, as a router remembers them. */
struct key_lru { /* zero-initialise but for cap and whose it is */
    uint32_t cap;
    uint32_t instance;
    struct holders *index; /* borrowed: gets the first key of each prompt; NULL: none */
    struct vt_map map;     /* to 1 + index of a link */
    struct key_link {
        uint64_t key;
        uint32_t prev, next;
    } *link;
    uint32_t n, newest, oldest; /* links from 1; 0: none */
};
uint32_t key_lru_match(const struct key_lru *l, const uint64_t *key, uint32_t n);
/* False: out of memory. */
bool key_lru_note(struct key_lru *l, const uint64_t *key, uint32_t n);
void key_lru_free(struct key_lru *l);

/* What an instance's cache held some time ago: what it holds now, less the events since
 * then. Events that come and go between two questions cost next to nothing. */
struct key_view { /* zero-initialise but for delay, group and units */
    vt_ns delay;
    uint32_t group, units; /* as vt_engine_key_units() says */
    struct vt_map late;    /* to blocks stored less blocks removed, modulo 2^32 */
    struct key_told {
        vt_ns at;
        uint64_t key;
        uint32_t change; /* 1 or -1, modulo 2^32 */
    } *told;             /* events of the last `delay`, oldest first: [head, n) */
    size_t head, n, cap;
    size_t counted; /* [head, counted) are in `late` */
    /* Of prompts' first blocks: how many are there by key, and which keys came and went
     * since holders_hear(). */
    struct vt_map firsts;
    struct key_told *first;
    size_t n_firsts, cap_firsts;
};
/* Both false when out of memory. Events of other groups are not looked at. */
bool key_view_tell(struct key_view *v, vt_ns at, const struct vt_kv_event *e,
                   uint32_t n);
bool key_view_see(struct key_view *v, vt_ns now);
/* Whether the key was there; `blocks` have it now. */
bool key_view_had(const struct key_view *v, uint64_t key, uint32_t blocks);
void key_view_clear(struct key_view *v);
void key_view_free(struct key_view *v);

/* ---- who has which prompts' beginning (holders.c) ---------------- */

/* By the key of a prompt's first block: whoever lacks that has no block of the prompt.
 * Of caches that are seen late it names whoever had the block then or got it since, and
 * sometimes others: the ones that it names are to be asked. */
struct holders {       /* zero-initialise */
    struct vt_map map; /* to 1 + index of a set */
    struct holder_set {
        struct holder {
            uint32_t instance;
            uint32_t times; /* it came more often than it went */
        } *holder;          /* ascending */
        size_t cap;
        uint32_t n;
        uint32_t next; /* unused set, from 1; 0: none */
    } *set;
    size_t n_sets, cap_sets;
    uint32_t unused;
    struct holder_gone {
        vt_ns at;
        uint64_t key; /* 0: no longer of interest */
        uint32_t instance;
    } *gone; /* which is not known yet: [head, n_gone) */
    size_t head, n_gone, cap_gone;
};
/* Found or put there, with 0 times; NULL: out of memory. Good until the next call. */
struct holder *holders_put(struct holders *h, uint64_t key, uint32_t instance);
/* Once less, if it is there. */
void holders_drop(struct holders *h, uint64_t key, uint32_t instance);
void holders_forget(struct holders *h, uint32_t instance); /* O(keys) */
/* Ascending; good until the next change. */
const struct holder *holders_of(const struct holders *h, uint64_t key, uint32_t *n);
/* What was told to the view since the last call. False: out of memory. */
bool holders_hear(struct holders *h, struct key_view *v, uint32_t instance);
/* What went up to then is known to have gone. Where instances were heard one after the
 * other for a while it may be known later, never sooner. */
void holders_expire(struct holders *h, vt_ns until);
void holders_free(struct holders *h);

/* ---- the router (router.c, score.c, standing.c) ------------------- */

enum { POOL_MAIN, POOL_DECODE, N_POOLS }; /* one choice for each way of a request */

struct seen { /* what a router knows of one instance */
    uint32_t waiting, running;
    double kv_usage;
    uint32_t in_flight; /* exact: the router sent them */
    uint32_t cached;    /* leading blocks of the request at hand */
};

#define NO_PLACE UINT32_MAX

struct ask {
    struct seen *seen;         /* of all instances */
    uint64_t look;             /* changes with that (but for requests in flight and
                                * cached blocks), and with the pool's candidates */
    const uint32_t *candidate; /* those that may get it, ascending */
    const uint32_t *place;     /* of each instance among them; NO_PLACE: it is none */
    uint32_t n;
    const uint32_t *hit; /* places of those with cached blocks, ascending */
    uint32_t n_hits;
    const uint64_t *key; /* of the prompt's blocks, where wanted */
    uint32_t n_keys;
    uint32_t session; /* VT_NO_TURN: none */
    unsigned pool;
};

enum {
    WANT_STATE = 1,
    WANT_KEYS = 2,
    WANT_CACHED = 4,
    WANT_SENT = 8,
    WANT_EXACT = 16, /* of requests in flight, which are known as they end */
    WANT_HOME = 32,  /* where sessions were sent */
};

struct router; /* opaque */
struct router_config {
    const char *routing; /* borrowed until router_new() returns */
    uint32_t n_instances;
    size_t n_sessions;
    uint64_t seed;
    uint32_t vllm;   /* whose release's balancer vllm-dp is */
    bool lockstep;   /* the instances are ranks of a mixture of experts */
    bool one_by_one; /* score all candidates for each request: the same, but slow */
};
int router_new(struct router **out, const struct router_config *c, struct vt_err *err);
void router_free(struct router *r);            /* NULL is fine */
unsigned router_wants(const struct router *r); /* of `ask`, beside what is exact */
/* Chooses a candidate and remembers it. VT_ENOMEM. */
int router_pick(struct router *r, const struct ask *a, uint32_t *instance,
                struct vt_err *err);
void router_forget(struct router *r, uint32_t instance); /* it starts anew */

/* ---- engines in one virtual time (fleet.c) ---------------------------- */

enum instance_state { OFF, LOADING, SERVING, DRAINING };

struct instance {
    struct vt_engine *engine; /* NULL: never started */
    const struct vt_engine_config *config;
    const struct vt_latency *model;
    vt_ns post_ns;
    enum instance_state state;
    vt_ns ready_ns;               /* while LOADING */
    vt_ns last_out;               /* of its last step */
    vt_ns busy_ns;                /* some step was in flight */
    struct key_view view;         /* where the router's view of caches is late */
    struct vt_engine_totals past; /* of engines that ran here before */
    struct parting parting;
    uint64_t requests;
    vt_ns from_ns, to_ns;
    struct inbox { /* requests that it gets in the window under way */
        struct sent {
            size_t req;
            vt_ns at, on; /* routed, and there */
        } *sent;
        size_t n, cap;
    } inbox;
};

struct turns {         /* whose turn it is: a tournament over the engines' due times */
    vt_ns *due;        /* of each leaf */
    uint32_t *winner;  /* of each inner node; [1] is the root */
    uint32_t n_leaves; /* a power of two */
};

struct fleet {
    struct sim_run *r;
    const struct vt_fleet *f;
    struct vt_engine_config *config; /* of each instance */
    struct instance *inst;
    uint32_t n;
    struct lockstep { /* of instances that are ranks of one deployment */
        struct vt_ranks *ranks;
        uint64_t moves; /* of them, when `turns` was last right */
    } *lockstep;        /* n / f->ranks of them; NULL: all are independent */
    struct turns turns;
    struct router *router;
    struct vt_keys *keys; /* NULL: not wanted */
    struct seen *seen;
    vt_ns seen_ns;   /* when; -1: never */
    uint64_t look;   /* as struct ask has it */
    struct choices { /* who may get a request of a pool */
        uint32_t *candidate, *place;
        uint32_t n;
        bool known; /* else somebody came or went */
    } choices[N_POOLS];
    struct holders holders; /* of late and of live caches, */
    bool indexed;           /* where engines have equal keys */
    uint32_t *hit;          /* places of the request at hand, */
    uint32_t *hit_at;       /* and whose they are */
    uint32_t n_hits;
    struct vt_agenda transfers;  /* requests whose prefill ends, then to be decoded */
    vt_ns tick_ns;               /* next look of the autoscaler */
    vt_ns high_since, low_since; /* -1: it is not */
};

int fleet_start(struct fleet *f, uint32_t i, vt_ns now, struct vt_err *err);
void fleet_stop(struct fleet *f, uint32_t i, vt_ns now);
/* Something has happened to that engine: when it is due may have changed. */
void fleet_follow(struct fleet *f, uint32_t i);
/* Hands it over. */
int fleet_add(struct fleet *f, const struct vt_request *q, vt_ns now,
              struct vt_err *err);

/* What is due of an engine, with the books of who has it done; all but `turns`. */
int fleet_act(struct fleet *f, struct sim_run *r, uint32_t i, vt_ns due,
              struct vt_err *err);
/* The next arrival goes to an engine: *req, routed, to be there at *on. VT_NEVER: it is
 * not on its way yet. */
int fleet_arrive(struct fleet *f, vt_ns now, size_t *req, vt_ns *on,
                 struct vt_err *err);

/* ---- what the router sees of them (look.c) ------------------------------ */

int look_open(struct fleet *f, struct vt_err *err);
void look_close(struct fleet *f); /* also after a failed opening */
/* An engine has started, anew or for the first time. */
void look_start(struct fleet *f, uint32_t i);
/* Some engine's state (SERVING or not) has changed. */
void look_change(struct fleet *f);
/* Whether what the router would see now is to be looked at anew. */
bool look_is_due(const struct fleet *f, vt_ns now);
/* What an engine has told of its cache in a step. */
int look_tell(struct instance *x, vt_ns at, struct vt_err *err);
/* The router gets it; not while engines run side by side. */
int look_hear(struct fleet *f, uint32_t i, struct vt_err *err);
/* Sets the request's instance, one of the pool's. */
int fleet_route(struct fleet *f, size_t req, vt_ns now, unsigned pool,
                struct vt_err *err);

/* ---- engines side by side (windows.c) ---------------------------------- */

/* Runs all but the end of it, which the caller runs one event after the other; nothing
 * where the fleet's engines have to wait for each other. */
int windows_run(struct fleet *f, struct vt_err *err);

/* ---- prefill and decode apart (pd.c) ---------------------------------- */

int pd_check(const struct vt_sim_spec *spec, struct vt_err *err);
/* A prefill engine's step: prompts that are done set out for a decode engine. */
int pd_take_step(struct fleet *f, struct instance *from, const struct vt_step *s,
                 struct vt_err *err);
int pd_deliver(struct fleet *f, vt_ns now, struct vt_err *err);
/* A decode engine's step: who prefilled what it has pulled is told so. */
void pd_note_pulled(struct fleet *f, const struct vt_step *s);

/* ---- more and fewer engines (autoscale.c) ----------------------------- */

int autoscale_check(const struct vt_fleet *f, struct vt_err *err);
vt_ns autoscale_due(const struct fleet *f);
int autoscale_act(struct fleet *f, vt_ns now, struct vt_err *err);

#endif
