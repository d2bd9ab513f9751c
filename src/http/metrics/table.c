/* table.c - the families of /metrics, in the order of vLLM's registry, and
 * their buckets. To add one: a scalar or histogram in table.h, a row here. */
#include "http/metrics/table.h"

#include <math.h>

#define FAMILY(name, help, kind, when, first) \
    {name, help, METRICS_##kind, METRICS_##when, first, NULL, NULL, false}
#define GAUGE(name, help, first)         FAMILY(name, help, GAUGE, ALWAYS, first)
#define COUNTER(name, help, first)       FAMILY(name, help, COUNTER, ALWAYS, first)
#define HISTOGRAM(name, help, first)     FAMILY(name, help, HISTOGRAM, ALWAYS, first)
#define OFFLOAD(kind, name, help, first) FAMILY(name, help, kind, WITH_OFFLOAD, first)
#define PULLS(kind, name, help, first)   FAMILY(name, help, kind, WITH_PULLS, first)
#define DRAFTS(name, help, first)        FAMILY(name, help, COUNTER, WITH_DRAFTS, first)

const struct metrics_family metrics_family[] = {
    DRAFTS("vllm:spec_decode_num_drafts", "Drafts made.", M_DRAFTS),
    DRAFTS("vllm:spec_decode_num_draft_tokens", "Tokens drafted.", M_DRAFT_TOKENS),
    DRAFTS("vllm:spec_decode_num_accepted_tokens", "Drafted tokens accepted.",
           M_ACCEPTED),
    {"vllm:spec_decode_num_accepted_tokens_per_pos",
     "Drafted tokens accepted, by position in the draft.", METRICS_COUNTER,
     METRICS_WITH_DRAFTS, 0, "position", "", false},
    {"vllm:kv_offload_total_bytes", "Bytes moved, by direction.", METRICS_COUNTER,
     METRICS_WITH_OFFLOAD, M_LOAD_BYTES, "transfer_type", "CPU_to_GPU GPU_to_CPU",
     false},
    {"vllm:kv_offload_total_time", "Seconds of transfers, by direction.",
     METRICS_COUNTER, METRICS_WITH_OFFLOAD, M_LOAD_TIME, "transfer_type",
     "CPU_to_GPU GPU_to_CPU", false},
    {"vllm:kv_offload_size", "Bytes of a transfer, by direction.", METRICS_HISTOGRAM,
     METRICS_WITH_OFFLOAD, H_LOAD_SIZE, "transfer_type", "CPU_to_GPU GPU_to_CPU",
     false},
    OFFLOAD(GAUGE, "vllm:kv_offload_cpu_cache_usage_perc",
            "Share of the host's chunks that transfers hold; 1 is all.", M_HOST_USAGE),
    OFFLOAD(GAUGE, "vllm:kv_offload_cpu_cache_write_usage_perc",
            "The same of stores under way.", M_HOST_WRITE_USAGE),
    OFFLOAD(GAUGE, "vllm:kv_offload_cpu_cache_read_usage_perc",
            "The same of loads under way.", M_HOST_READ_USAGE),
    OFFLOAD(HISTOGRAM, "vllm:kv_offload_cpu_allocation_size",
            "Chunks that a store asked for.", H_ASKED),
    FAMILY("vllm:kv_offload_stores_skipped",
           "Chunks that were not met often enough to be stored.", COUNTER,
           WITH_THRESHOLD, M_STORES_SKIPPED),
    OFFLOAD(COUNTER, "vllm:kv_offload_load_bytes", "Bytes loaded from the host.",
            M_LOAD_BYTES),
    OFFLOAD(COUNTER, "vllm:kv_offload_load_time", "Seconds of loads.", M_LOAD_TIME),
    OFFLOAD(HISTOGRAM, "vllm:kv_offload_load_size", "Bytes of a load.", H_LOAD_SIZE),
    OFFLOAD(COUNTER, "vllm:kv_offload_store_bytes", "Bytes stored to the host.",
            M_STORE_BYTES),
    OFFLOAD(COUNTER, "vllm:kv_offload_store_time", "Seconds of stores.", M_STORE_TIME),
    OFFLOAD(HISTOGRAM, "vllm:kv_offload_store_size", "Bytes of a store.", H_STORE_SIZE),
    OFFLOAD(HISTOGRAM, "vllm:kv_offload_lookup_sync_delay_seconds",
            "Seconds of a lookup (0: they take no time here).", H_LOOKUP),
    OFFLOAD(COUNTER, "vllm:kv_offload_allocation_failure",
            "Stores for which the host had no room.", M_NO_ROOM),
    PULLS(HISTOGRAM, "vllm:nixl_xfer_time_seconds",
          "Seconds of a pull from an engine that prefilled.", H_PULL_TIME),
    PULLS(HISTOGRAM, "vllm:nixl_post_time_seconds", "Of these, before its first byte.",
          H_PULL_POST),
    PULLS(HISTOGRAM, "vllm:nixl_bytes_transferred", "Bytes of a pull, on one GPU.",
          H_PULL_BYTES),
    PULLS(HISTOGRAM, "vllm:nixl_num_descriptors",
          "Pieces of memory of a pull, on one GPU.", H_PULL_PARTS),
    PULLS(COUNTER, "vllm:nixl_num_failed_transfers", "Pulls that failed.",
          M_PULLS_FAILED),
    PULLS(COUNTER, "vllm:nixl_num_failed_notifications",
          "Engines that prefilled and could not be told.", M_NOTES_FAILED),
    PULLS(COUNTER, "vllm:nixl_num_kv_expired_reqs",
          "Prefills here whose blocks nobody pulled in time.", M_PREFILLS_EXPIRED),
    FAMILY("vllm:nixl_num_notifications_after_expiry",
           "Pulls that were told of when their prefill here had been given up.",
           COUNTER, PULLS_032, M_TOLD_LATE),
    COUNTER("vllm:estimated_flops_per_gpu", "Operations of a GPU (not estimated).",
            M_FLOPS),
    COUNTER("vllm:estimated_read_bytes_per_gpu", "Bytes a GPU read (not estimated).",
            M_READ_BYTES),
    COUNTER("vllm:estimated_write_bytes_per_gpu", "Bytes a GPU wrote (not estimated).",
            M_WRITE_BYTES),
    GAUGE("vllm:num_requests_running", "Requests in the batch.", M_RUNNING),
    GAUGE("vllm:num_requests_waiting", "Requests in the queue.", M_WAITING),
    {"vllm:num_requests_waiting_by_reason",
     "Requests in the queue, for room or for something else.", METRICS_GAUGE,
     METRICS_ALWAYS, M_WAITING_CAPACITY, "reason", "capacity deferred", false},
    {"vllm:num_requests_kv_fetch_by_stage",
     "Requests in the queue whose KV blocks come from elsewhere, by how far they are.",
     METRICS_GAUGE, METRICS_FETCHES_032, M_FETCHES_WAITING, "stage",
     "waiting_to_start in_progress completed_waiting", false},
    {"vllm:engine_sleep_state", "1 at the state the engine is in.", METRICS_GAUGE,
     METRICS_ALWAYS, M_AWAKE, "sleep_state", "awake weights_offloaded discard_all",
     false},
    GAUGE("vllm:kv_cache_usage_perc", "Share of KV blocks in use; 1 is all.",
          M_KV_USAGE),
    COUNTER("vllm:prefix_cache_queries", "Prompt tokens looked up in the prefix cache.",
            M_CACHE_QUERIES),
    COUNTER("vllm:prefix_cache_hits", "Prompt tokens found in the prefix cache.",
            M_CACHE_HITS),
    COUNTER("vllm:external_prefix_cache_queries",
            "Prompt tokens looked up in other instances' caches.", M_EXTERNAL_QUERIES),
    COUNTER("vllm:external_prefix_cache_hits",
            "Prompt tokens found in other instances' caches.", M_EXTERNAL_HITS),
    COUNTER("vllm:mm_cache_queries", "Items looked up in the multimodal cache.",
            M_MM_QUERIES),
    COUNTER("vllm:mm_cache_hits", "Items found in the multimodal cache.", M_MM_HITS),
    COUNTER("vllm:num_preemptions", "Requests put back into the queue.", M_PREEMPTIONS),
    COUNTER("vllm:prompt_tokens", "Prompt tokens done.", M_PROMPT),
    {"vllm:prompt_tokens_by_source", "Prompt tokens done, by where they came from.",
     METRICS_COUNTER, METRICS_ALWAYS, M_PROMPT_COMPUTED, "source",
     "local_compute local_cache_hit external_kv_transfer", false},
    COUNTER("vllm:prompt_tokens_cached", "Prompt tokens that needed no computing.",
            M_PROMPT_CACHED),
    {"vllm:prompt_tokens_cached_by_source",
     "Cached prompt tokens at admission, by the tier that had them.", METRICS_COUNTER,
     METRICS_SINCE_032, M_CACHED_DEVICE, "source",
     "device host p2p disk external_unspecified", false},
    COUNTER("vllm:generation_tokens", "Tokens generated.", M_GENERATION),
    {"vllm:request_success", "Requests that ended, by how.", METRICS_COUNTER,
     METRICS_ALWAYS, M_FINISH, "finished_reason", "stop length abort error repetition",
     false},
    {"vllm:admission_rejections", "Requests refused by a limit of the queue.",
     METRICS_COUNTER, METRICS_SINCE_032, M_REJECTED_REQUESTS, "reason",
     "max_num_queued_reqs max_num_queued_tokens", true},
    HISTOGRAM("vllm:request_prompt_tokens", "Prompt tokens of a request.", H_PROMPT),
    HISTOGRAM("vllm:request_generation_tokens", "Tokens generated for a request.",
              H_GENERATION),
    HISTOGRAM("vllm:iteration_tokens_total", "Tokens of a step that gave output.",
              H_ITERATION),
    HISTOGRAM("vllm:request_max_num_generation_tokens",
              "Tokens of the longest of a request's choices.", H_MAX_GENERATION),
    HISTOGRAM("vllm:request_params_n", "n of a request.", H_N),
    HISTOGRAM("vllm:request_params_max_tokens", "max_tokens of a request.",
              H_MAX_TOKENS),
    HISTOGRAM("vllm:time_to_first_token_seconds", "Arrival to first token.", H_TTFT),
    HISTOGRAM("vllm:inter_token_latency_seconds", "From one output to the next.",
              H_ITL),
    HISTOGRAM("vllm:request_time_per_output_token_seconds",
              "Mean time of a request's tokens after the first.", H_TPOT),
    HISTOGRAM("vllm:e2e_request_latency_seconds", "Arrival to end.", H_E2E),
    HISTOGRAM("vllm:request_queue_time_seconds", "Queued to first scheduled.", H_QUEUE),
    HISTOGRAM("vllm:request_inference_time_seconds", "First scheduled to last token.",
              H_INFERENCE),
    HISTOGRAM("vllm:request_prefill_time_seconds", "First scheduled to first token.",
              H_PREFILL),
    HISTOGRAM("vllm:request_decode_time_seconds", "First token to last.", H_DECODE),
    FAMILY("vllm:request_num_preemptions", "How often a request was put back.",
           HISTOGRAM, SINCE_032, H_PREEMPTIONS),
    HISTOGRAM("vllm:request_prefill_kv_computed_tokens",
              "Prompt tokens of a request that were not cached.", H_COMPUTED),
};
const size_t metrics_n_families = VT_COUNT(metrics_family);

#define BOTH   API_BOTH_LINES
#define ONLY26 API_ONLY_026
#define ONLY32 API_ONLY_032

/* Values of a config are put where one begins with '@'. */
const struct metrics_info metrics_info[] = {
    {"_block_size_resolved", "True", BOTH},
    {"block_size", "@block_size", BOTH},
    {"cache_dtype", "auto", BOTH},
    {"cache_hit_alignment_tokens", "None", ONLY32},
    {"calculate_kv_scales", "False", ONLY26},
    {"effective_attention_block_size", "@whole_block_size", ONLY32},
    {"enable_mamba_shared_prefix_checkpoint", "False", ONLY32},
    {"enable_prefix_caching", "@prefix_caching", BOTH},
    {"engine", "@engine", BOTH},
    {"gpu_memory_utilization", "@utilization", BOTH},
    {"hash_block_size", "None", ONLY32},
    {"is_attention_free", "False", BOTH},
    {"kv_cache_dtype_skip_layers", "[]", BOTH},
    {"kv_cache_layout", "None", ONLY32},
    {"kv_cache_max_concurrency", "@concurrency", BOTH},
    {"kv_cache_memory_bytes", "None", BOTH},
    {"kv_cache_size_tokens", "@tokens", BOTH},
    {"kv_offloading_backend", "native", BOTH},
    {"kv_offloading_size", "@offloading_size", BOTH},
    {"kv_sharing_fast_prefill", "False", BOTH},
    {"mamba_block_size", "@state_block_size", BOTH},
    {"mamba_cache_dtype", "auto", BOTH},
    {"mamba_cache_mode", "@mamba_mode", BOTH},
    {"mamba_page_size_padded", "None", BOTH},
    {"mamba_ssm_cache_dtype", "float32", BOTH},
    {"num_cpu_blocks", "None", BOTH},
    {"num_gpu_blocks", "@blocks", BOTH},
    {"num_gpu_blocks_override", "None", BOTH},
    {"prefix_cache_retention_interval", "@retention", ONLY32},
    {"prefix_caching_hash_algo", "sha256", BOTH},
    {"prefix_match_unit", "None", BOTH},
    {"replayssm_buffer_len", "16", ONLY32},
    {"skip_page_size_padded", "None", BOTH},
    {"sliding_window", "@window", BOTH},
    {"swa_bounded_replay", "True", ONLY32},
    {"use_kda_recoverssm", "False", ONLY32},
    {"use_replayssm", "False", ONLY32},
    {"user_specified_block_size", "False", BOTH},
    {"user_specified_mamba_block_size", "False", ONLY26},
};
const size_t metrics_n_infos = VT_COUNT(metrics_info);

static const double iteration[] = {1,   8,    16,   32,   64,   128,   256,
                                   512, 1024, 2048, 4096, 8192, 16384, 0};
static const double transfer[] = {1e6,  5e6,   10e6,  20e6,  40e6, 60e6,
                                  80e6, 100e6, 150e6, 200e6, 0};
static const double pull_time[] = {.005, .01, .025, .05, .075, .1, .2,
                                   .3,   .5,  .75,  1,   5,    0};
static const double pull_bytes[] = {0x1p11, 0x1p13, 0x1p15, 0x1p17, 0x1p19,
                                    0x1p21, 0x1p23, 0x1p25, 0x1p27, 0x1p29,
                                    0x1p31, 0x1p33, 0};
static const double pull_post[] = {.001, .005, .01, .025, .05, .075, .1,
                                   .2,   .3,   .5,  .75,  1,   5,    0};
static const double pull_parts[] = {10,   20,   30,   50,    75,    100,   200, 400,
                                    1000, 2000, 4000, 10000, 20000, 50000, 0};
static const double lookup[] = {.00001, .00005, .0001, .0005, .001, .005,
                                .01,    .05,    .1,    .5,    1,    0};
static const double chunks[] = {1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 0};
static const double choices[] = {1, 2, 5, 10, 20, 0};
static const double preemptions[] = {1, 2, 3, 4, 5, 10, 20, 0};
static const double ttft[] = {.001, .005, .01, .02, .04, .06,  .08, .1,
                              .25,  .5,   .75, 1,   2.5, 5,    7.5, 10,
                              20,   40,   80,  160, 640, 2560, 0};
static const double itl[] = {.01, .025, .05, .075, .1,  .15, .2, .3, .4, .5,
                             .75, 1,    2.5, 5,    7.5, 10,  20, 40, 80, 0};
static const double request[] = {.3, .5, .8, 1,  1.5, 2,   2.5, 5,   10,   15,   20,
                                 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680, 0};
const double metrics_bounds_highr[] = {.01, .025, .05, .075, .1, .25, .5, .75,
                                       1,   1.5,  2,   2.5,  3,  3.5, 4,  4.5,
                                       5,   7.5,  10,  30,   60, 0};
const double metrics_bounds_http[] = {.1, .5, 1, 0};
const double metrics_bounds_late[] = {.00005, .0001, .00025, .0005, .001, .0025,
                                      .005,   .01,   .025,   .05,   .1,   .25,
                                      .5,     1,     2.5,    5,     10,   0};

const double *const metrics_bounds[H_HISTOGRAMS] = {[H_ITERATION] = iteration,
                                                    [H_N] = choices,
                                                    [H_PREEMPTIONS] = preemptions,
                                                    [H_TTFT] = ttft,
                                                    [H_ITL] = itl,
                                                    [H_TPOT] = itl,
                                                    [H_E2E] = request,
                                                    [H_QUEUE] = request,
                                                    [H_INFERENCE] = request,
                                                    [H_PREFILL] = request,
                                                    [H_DECODE] = request,
                                                    [H_LOAD_SIZE] = transfer,
                                                    [H_STORE_SIZE] = transfer,
                                                    [H_LOOKUP] = lookup,
                                                    [H_ASKED] = chunks,
                                                    [H_PULL_TIME] = pull_time,
                                                    [H_PULL_POST] = pull_post,
                                                    [H_PULL_PARTS] = pull_parts,
                                                    [H_PULL_BYTES] = pull_bytes};

void metrics_pad(double out[METRICS_BOUNDS], const double *list)
{
    int i = 0;

    for (; list[i] > 0; i++)
        out[i] = list[i];
    for (; i < METRICS_BOUNDS; i++)
        out[i] = (double)INFINITY;
}
