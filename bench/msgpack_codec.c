/* msgpack_codec.c - our reader and writer of engine-core messages against msgpack-c on
 * the same messages; `bench/msgpack` builds and runs it.
 *
 *   msgpack_codec [REPEATS]
 *
 * Both sides do what an engine needs: tokens end up in an array of uint32_t, and the
 * messages that are written are compared byte by byte before anything is timed. */
#include <msgpack.h>

#include "wire/codec/codec.h"

enum { PROMPT = 11000, REQUESTS = 256, VOCABULARY = 151936 };

struct bench {
    const struct vt_wire_line *line;
    struct vt_buf add, step; /* messages to read */
    struct vt_buf out;       /* written by us */
    msgpack_sbuffer sbuffer; /* written by msgpack-c */
    struct vt_arena arena;
    struct wire_outputs outputs; /* what is written */
    struct wire_output row[REQUESTS];
    char id[REQUESTS][40];
    uint32_t token[REQUESTS];
    uint32_t prompt[PROMPT];
    uint64_t sum; /* keeps the compiler from dropping what is read */
};

/* ---- the messages ----------------------------------------------------- */

static struct mp_span text(const char *s)
{
    return (struct mp_span){(const uint8_t *)s, strlen(s)};
}

static void make_add(struct bench *b, struct vt_rng *rng)
{
    struct vt_buf sampling = {0};
    struct wire_request r = {.n_fields = b->line->request_fields,
                             .id = text("cmpl-0123456789abcdef-0-01234567"),
                             .prompt = b->prompt,
                             .n_prompt = PROMPT,
                             .arrival_time = 1794714825.5012634,
                             .data_parallel_rank = -1,
                             .external_id = text("cmpl-0123456789abcdef-0")};

    for (size_t i = 0; i < PROMPT; i++)
        b->prompt[i] = (uint32_t)vt_rng_below(rng, VOCABULARY);
    mp_put_map(&sampling, 3);
    mp_put_str(&sampling, "temperature");
    mp_put_f64(&sampling, 0.0);
    mp_put_str(&sampling, "max_tokens");
    mp_put_u64(&sampling, 128);
    mp_put_str(&sampling, "_all_stop_token_ids");
    mp_put_array(&sampling, 2);
    mp_put_u64(&sampling, 151643);
    mp_put_u64(&sampling, 151645);
    r.sampling = (struct mp_span){(const uint8_t *)sampling.data, sampling.len};
    wire_request_write(&b->add, &r);
    vt_buf_free(&sampling);
}

static void make_step(struct bench *b, struct vt_rng *rng)
{
    b->outputs = (struct wire_outputs){.output = b->row,
                                       .n_outputs = REQUESTS,
                                       .has_stats = true,
                                       .timestamp = 4412.295493921,
                                       .wave_complete = -1,
                                       .start_wave = -1};
    b->outputs.stats = (struct wire_stats){.running = REQUESTS, .kv_usage = 0.4321};
    for (size_t i = 0; i < REQUESTS; i++) {
        snprintf(b->id[i], sizeof(b->id[i]), "cmpl-%016llx-0-%08x",
                 (unsigned long long)vt_rng_u64(rng),
                 (unsigned)vt_rng_below(rng, 1u << 31));
        b->token[i] = (uint32_t)vt_rng_below(rng, VOCABULARY);
        b->row[i] = (struct wire_output){.id = text(b->id[i]),
                                         .token = &b->token[i],
                                         .n_tokens = 1,
                                         .finish = WIRE_UNFINISHED};
    }
    wire_outputs_write(&b->step, b->line, &b->outputs);
}

/* ---- msgpack-c -------------------------------------------------------- */

static void pack_key(msgpack_packer *p, const char *key)
{
    msgpack_pack_str_with_body(p, key, strlen(key));
}

static void pack_nil(msgpack_packer *p, const char *key)
{
    pack_key(p, key);
    msgpack_pack_nil(p);
}

static void pack_u64(msgpack_packer *p, const char *key, uint64_t v)
{
    pack_key(p, key);
    msgpack_pack_uint64(p, v);
}

static void pack_prefix(msgpack_packer *p, const struct wire_stats *s)
{
    pack_key(p, "prefix_cache_stats");
    msgpack_pack_map(p, 7);
    pack_key(p, "reset");
    s->cache.reset ? msgpack_pack_true(p) : msgpack_pack_false(p);
    pack_u64(p, "requests", s->cache.requests);
    pack_u64(p, "queries", s->cache.queries);
    pack_u64(p, "hits", s->cache.hits);
    pack_u64(p, "preempted_requests", s->cache.preempted_requests);
    pack_u64(p, "preempted_queries", s->cache.preempted_queries);
    pack_u64(p, "preempted_hits", s->cache.preempted_hits);
}

static void pack_stats(msgpack_packer *p, const struct wire_stats *s)
{
    msgpack_pack_map(p, 16);
    pack_u64(p, "num_running_reqs", s->running);
    pack_u64(p, "num_waiting_reqs", s->waiting);
    pack_u64(p, "num_skipped_waiting_reqs", s->skipped_waiting);
    pack_u64(p, "step_counter", s->step_counter);
    pack_u64(p, "current_wave", (uint64_t)s->current_wave);
    pack_key(p, "kv_cache_usage");
    msgpack_pack_double(p, s->kv_usage);
    pack_nil(p, "iteration_details");
    pack_prefix(p, s);
    pack_nil(p, "connector_prefix_cache_stats");
    pack_key(p, "kv_cache_eviction_events");
    msgpack_pack_array(p, 0);
    pack_nil(p, "spec_decoding_stats");
    pack_nil(p, "kv_connector_stats");
    pack_key(p, "waiting_lora_adapters");
    msgpack_pack_map(p, 0);
    pack_key(p, "running_lora_adapters");
    msgpack_pack_map(p, 0);
    pack_nil(p, "cudagraph_stats");
    pack_nil(p, "perf_stats");
}

static void pack_row(msgpack_packer *p, const struct wire_output *o)
{
    msgpack_pack_array(p, 14);
    msgpack_pack_str_with_body(p, o->id.at, o->id.len);
    msgpack_pack_array(p, o->n_tokens);
    for (uint32_t i = 0; i < o->n_tokens; i++)
        msgpack_pack_uint32(p, o->token[i]);
    for (int i = 0; i < 11; i++)
        msgpack_pack_nil(p);
    msgpack_pack_uint64(p, o->n_nans);
}

static void theirs_write(struct bench *b)
{
    msgpack_packer p;

    msgpack_sbuffer_clear(&b->sbuffer);
    msgpack_packer_init(&p, &b->sbuffer, msgpack_sbuffer_write);
    msgpack_pack_array(&p, 8);
    msgpack_pack_uint32(&p, b->outputs.engine_index);
    msgpack_pack_array(&p, b->outputs.n_outputs);
    for (uint32_t i = 0; i < b->outputs.n_outputs; i++)
        pack_row(&p, &b->outputs.output[i]);
    pack_stats(&p, &b->outputs.stats);
    msgpack_pack_double(&p, b->outputs.timestamp);
    for (int i = 0; i < 4; i++)
        msgpack_pack_nil(&p);
}

static void theirs_read_add(struct bench *b)
{
    msgpack_unpacked u;
    const msgpack_object *prompt;
    uint32_t *token;
    size_t at = 0;

    msgpack_unpacked_init(&u);
    if (msgpack_unpack_next(&u, b->add.data, b->add.len, &at) != MSGPACK_UNPACK_SUCCESS)
        abort();
    prompt = &u.data.via.array.ptr[1];
    vt_arena_reset(&b->arena);
    token = vt_arena_alloc(&b->arena, prompt->via.array.size * sizeof(*token));
    for (uint32_t i = 0; i < prompt->via.array.size; i++)
        token[i] = (uint32_t)prompt->via.array.ptr[i].via.u64;
    b->sum += token[PROMPT - 1];
    msgpack_unpacked_destroy(&u);
}

/* Only into its own objects: less than our reader does. */
static void theirs_read_step(struct bench *b)
{
    msgpack_unpacked u;
    size_t at = 0;

    msgpack_unpacked_init(&u);
    if (msgpack_unpack_next(&u, b->step.data, b->step.len, &at) !=
        MSGPACK_UNPACK_SUCCESS)
        abort();
    b->sum += u.data.via.array.ptr[1].via.array.size;
    msgpack_unpacked_destroy(&u);
}

/* ---- ours ------------------------------------------------------------- */

static void ours_read_add(struct bench *b)
{
    struct wire_request r;
    struct wire_sampling s;

    vt_arena_reset(&b->arena);
    if (wire_request_read(&r, &b->arena, b->add.data, b->add.len, NULL) != VT_OK ||
        wire_sampling_read(&s, &b->arena, r.sampling, NULL) != VT_OK)
        abort();
    b->sum += r.prompt[PROMPT - 1] + s.max_tokens;
}

static void ours_read_step(struct bench *b)
{
    struct wire_outputs o;

    vt_arena_reset(&b->arena);
    if (wire_outputs_read(&o, &b->arena, b->step.data, b->step.len, 0, NULL) != VT_OK)
        abort();
    b->sum += o.output[REQUESTS - 1].token[0];
}

static void ours_write(struct bench *b)
{
    vt_buf_clear(&b->out);
    wire_outputs_write(&b->out, b->line, &b->outputs);
}

/* ---- timing ----------------------------------------------------------- */

static double now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

/* Best of the repeats, each of a hundred calls. */
static double best_us(struct bench *b, void (*work)(struct bench *), int repeats)
{
    double best = 1e300;

    for (int i = 0; i < repeats; i++) {
        double from = now_us(), took;

        for (int k = 0; k < 100; k++)
            work(b);
        took = (now_us() - from) / 100.0;
        if (took < best)
            best = took;
    }
    return best;
}

static void compare(struct bench *b, const char *what, size_t bytes, int repeats,
                    void (*ours)(struct bench *), void (*theirs)(struct bench *))
{
    double a = best_us(b, ours, repeats), c = best_us(b, theirs, repeats);

    printf("%-36s %7zu %9.2f %11.2f %7.1f\n", what, bytes, a, c, c / a);
}

int main(int argc, char **argv)
{
    static struct bench b;
    int repeats = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 30;
    struct vt_rng rng;

    b.line = vt_wire_line_find("0.26");
    vt_rng_init(&rng, 1, "bench");
    msgpack_sbuffer_init(&b.sbuffer);
    make_add(&b, &rng);
    make_step(&b, &rng);
    theirs_write(&b);
    if (b.sbuffer.size != b.step.len ||
        memcmp(b.sbuffer.data, b.step.data, b.step.len) != 0) {
        fputs("msgpack_codec: the two writers differ\n", stderr);
        return 1;
    }
    printf("%-36s %7s %9s %11s %7s\n", "CPU us per message", "bytes", "vtwin",
           "msgpack-c", "ratio");
    compare(&b, "read ADD, 11,000 tokens", b.add.len, repeats, ours_read_add,
            theirs_read_add);
    compare(&b, "write a step of 256 outputs", b.step.len, repeats, ours_write,
            theirs_write);
    compare(&b, "read a step of 256 outputs", b.step.len, repeats, ours_read_step,
            theirs_read_step);
    msgpack_sbuffer_destroy(&b.sbuffer);
    vt_buf_free(&b.add);
    vt_buf_free(&b.step);
    vt_buf_free(&b.out);
    vt_arena_free(&b.arena);
    return b.sum == 0;
}
