/* release.h - what vLLM's releases decide differently. */
#ifndef VT_CORE_RELEASE_H
#define VT_CORE_RELEASE_H

#include <stdbool.h>
#include <stdint.h>

struct release {        /* each is a change; release.c knows which release brought it */
    bool frees_to_back; /* blocks without a prefix cache are taken in turn */
    bool counts_admissions;  /* cache statistics: not at every look at the queue */
    bool mamba_whole_blocks; /* only a prompt's last piece ends inside a block */
    bool marks_stale;        /* results from before a preemption are told apart */
    bool scan_follows;       /* any victim before the scan moves it, planned or not */
    bool pads_pages;         /* pages need not divide the largest */
    bool sparse_retention;   /* windows and states are kept at prompts' ends only */
    bool stops_early;        /* min_tokens does not hide EOS and stop tokens */
    bool pads_if_room;       /* too little room for drafts: admitted without them */
    bool cuts_all_whole;     /* every group that needs all tokens holds the hit alone */
    bool eagle_resends;      /* with drafts a prompt has two places to go on from */
    bool pads_after_hits;    /* drafts for one token, also where nobody runs */
    bool agrees_at_first;    /* ranks: at a wave's first pass, then as often as asked */
    bool mamba_skips_gaps;   /* a lost state does not shield older ones */
    bool lone_prompt_uncut;  /* no long-prefill threshold while nobody else is there */
    bool aside_is_waiting;   /* who is put aside stands in the queue as before */
    bool eagle_sees_whole;   /* a draft head's hit may reach the prompt's last block */
    bool leaves_last_token;  /* a prompt sent again goes on before its last token */
    bool looks_in_pause;     /* the queue is looked at while new requests are held */
    bool mamba_saves_inside; /* a prompt's last piece may pass the place of a state */
    bool waits_for_blocks;   /* nobody is preempted whose blocks come back later */
    bool offload_hears_ends; /* aborts store what was computed; ends wait for a plan */
    bool offload_counts_offers; /* store_threshold: not looks */
    bool offload_commits;       /* a last token that was never computed is not stored */
    bool offload_windows;       /* are stored as they are kept on the GPU */
    bool offload_by_request;    /* the host's blocks age with those who used them */
    bool mamba_marks_ends;      /* who stands at his prompt's last state holds it */
};

struct release release_rules(uint32_t vllm);

#endif
