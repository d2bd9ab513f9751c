#include "core/release.h"

#include <stddef.h>

#include "base/base.h"

/* The first release of each change, and where it was undone the first one after, by the
 * number behind "0.". Dated from the sources of all of them. */
#define RULE(name) offsetof(struct release, name)
static const struct {
    size_t rule;
    uint32_t since, until;
} changes[] = {
    {RULE(frees_to_back), 27, 28},
    {RULE(counts_admissions), 27, UINT32_MAX},
    {RULE(mamba_whole_blocks), 27, UINT32_MAX},
    {RULE(marks_stale), 27, UINT32_MAX},
    {RULE(offload_hears_ends), 27, UINT32_MAX},
    {RULE(scan_follows), 28, UINT32_MAX},
    {RULE(pads_pages), 29, UINT32_MAX},
    {RULE(sparse_retention), 29, UINT32_MAX},
    {RULE(stops_early), 29, UINT32_MAX},
    {RULE(pads_if_room), 29, UINT32_MAX},
    {RULE(cuts_all_whole), 29, UINT32_MAX},
    {RULE(offload_counts_offers), 29, UINT32_MAX},
    {RULE(waits_for_blocks), 30, UINT32_MAX},
    {RULE(offload_commits), 30, UINT32_MAX},
    {RULE(offload_windows), 30, UINT32_MAX},
    {RULE(eagle_resends), 30, UINT32_MAX},
    {RULE(pads_after_hits), 30, UINT32_MAX},
    {RULE(agrees_at_first), 30, UINT32_MAX},
    {RULE(mamba_skips_gaps), 30, UINT32_MAX},
    {RULE(lone_prompt_uncut), 31, UINT32_MAX},
    {RULE(aside_is_waiting), 31, UINT32_MAX},
    {RULE(offload_by_request), 31, UINT32_MAX},
    {RULE(eagle_sees_whole), 32, UINT32_MAX},
    {RULE(leaves_last_token), 32, UINT32_MAX},
    {RULE(looks_in_pause), 32, UINT32_MAX},
    {RULE(mamba_saves_inside), 32, UINT32_MAX},
    {RULE(mamba_marks_ends), 32, UINT32_MAX},
};

struct release release_rules(uint32_t vllm)
{
    struct release r = {0};

    for (size_t i = 0; i < VT_COUNT(changes); i++)
        *(bool *)((char *)&r + changes[i].rule) =
            vllm >= changes[i].since && vllm < changes[i].until;
    return r;
}
