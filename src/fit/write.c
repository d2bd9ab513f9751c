/* write.c - a fitted profile as JSON. */
#include "fit/internal.h"

#include <math.h>

static void put_text(struct vt_jw *j, const char *key, const char *v)
{
    if (v)
        vt_jw_str(j, key, v);
}

static void put_limit(struct vt_jw *j, const char *key, uint32_t v)
{
    if (v > 0)
        vt_jw_u64(j, key, v);
}

/* The engine's KV groups, as far as its model is known; none: its layers keep every
 * token, or vLLM would not start so. */
static struct vt_engine_config engine_of(const struct vt_meta *m,
                                         const struct vt_fit_about *about)
{
    struct vt_kv_wish wish = {.arch = about->arch,
                              .tp = m->tp,
                              .caching_stated = m->enable_prefix_caching >= 0};
    struct vt_engine_config c;
    struct vt_err ignored;
    uint64_t block_bytes;

    vt_engine_config_init(&c);
    vt_engine_config_take(&c, m);
    if (about->num_gpu_blocks > 0)
        c.num_gpu_blocks = about->num_gpu_blocks;
    if (about->block_size > 0)
        c.block_size = about->block_size;
    if (!about->arch || vt_kv_groups(&c, &wish, &block_bytes, &ignored) != VT_OK)
        c.n_kv_groups = 0;
    return c;
}

/* Without them nobody knows what a block of the pool holds. */
static void put_groups(struct vt_jw *j, const struct vt_engine_config *c)
{
    if (c->n_kv_groups == 0)
        return;
    vt_jw_list(j, "kv_groups");
    for (uint32_t i = 0; i < c->n_kv_groups; i++) {
        const struct vt_kv_group *g = &c->kv_group[i];

        vt_jw_row(j, NULL);
        vt_jw_str(j, "type", vt_attention_name((enum vt_attention)g->type));
        put_limit(j, "window", g->window);
        vt_jw_u64(j, "block_size", g->block_size);
        vt_jw_u64(j, "layers", g->layers);
        vt_jw_u64(j, "page_bytes", g->page_bytes);
        vt_jw_u64(j, "unit_bytes", g->unit_bytes);
        if (g->saves_inside)
            vt_jw_bool(j, "saves_inside", true);
        vt_jw_end(j);
    }
    vt_jw_end(j);
    if (c->mamba_cache_mode == VT_MAMBA_ALIGN)
        vt_jw_str(j, "mamba_cache_mode", "align");
}

static void put_number(struct vt_jw *j, const char *key, double v)
{
    if (v > 0)
        vt_jw_printf(j, key, "%.3f", v);
}

static void put_link(struct vt_jw *j, const struct vt_offload *o)
{
    if (!o)
        return;
    vt_jw_row(j, "offload");
    put_number(j, "load_gb_per_s", o->load_gbs);
    put_number(j, "store_gb_per_s", o->store_gbs);
    put_number(j, "setup_us", o->setup_us);
    put_number(j, "duplex", o->duplex);
    put_number(j, "host_us", o->host_us);
    put_number(j, "host_block_us", o->host_block_us);
    vt_jw_end(j);
}

static void put_engine(struct vt_jw *j, const struct vt_meta *m,
                       const struct vt_fit_about *about)
{
    struct vt_engine_config c = engine_of(m, about);
    uint32_t blocks =
        about->num_gpu_blocks > 0 ? about->num_gpu_blocks : m->num_gpu_blocks;
    uint32_t size = about->block_size > 0 ? about->block_size : m->block_size;

    vt_jw_map(j, "engine");
    put_text(j, "model", about->model ? about->model : m->model);
    put_text(j, "gpu", about->gpu ? about->gpu : m->gpu);
    put_text(j, "vllm_version", m->vllm_version);
    put_limit(j, "tensor_parallel_size", m->tp);
    put_text(j, "kv_cache_dtype", m->kv_cache_dtype);
    put_limit(j, "max_num_seqs",
              about->max_num_seqs > 0 ? about->max_num_seqs : m->max_num_seqs);
    put_limit(j, "max_num_batched_tokens", m->max_num_batched_tokens);
    put_limit(j, "max_model_len", m->max_model_len);
    put_limit(j, "num_speculative_tokens", m->num_speculative_tokens);
    put_limit(j, "block_size", size);
    put_limit(j, "num_gpu_blocks", blocks);
    if (blocks > 0 && size > 0)
        vt_jw_u64(j, "kv_cache_tokens",
                  c.n_kv_groups > 0 ? vt_kv_facts(&c).tokens : (uint64_t)blocks * size);
    put_groups(j, &c);
    if (m->enable_prefix_caching >= 0)
        vt_jw_bool(j, "enable_prefix_caching", m->enable_prefix_caching > 0);
    vt_jw_bool(j, "async_scheduling", m->async_scheduling != 0);
    put_link(j, about->link);
    vt_jw_end(j);
}

/* Nothing where nothing is known. */
static void put_errors(struct vt_jw *j, const char *key,
                       const struct vt_crossval_row *r)
{
    bool known = false;

    for (enum vt_trust i = VT_TRUST_E2E; r && i < VT_TRUSTS; i++)
        known |= !isnan(vt_crossval_at(r, i));
    if (!known)
        return;
    vt_jw_row(j, key);
    for (enum vt_trust i = VT_TRUST_E2E; i < VT_TRUSTS; i++)
        if (!isnan(vt_crossval_at(r, i)))
            vt_jw_printf(j, vt_trust_names[i], "%.1f", vt_crossval_at(r, i));
    vt_jw_end(j);
}

/* Which moments nothing was learned from: when each ended on the capture's clock, and
 * how long it was. */
static void put_stalled(struct vt_jw *j, const struct capture *c)
{
    vt_jw_row_list(j, "stalled_ms");
    for (size_t i = 0; i < c->n; i++) {
        if (c->step[i].stall <= 0)
            continue;
        vt_jw_row_list(j, NULL);
        vt_jw_printf(j, NULL, "%.1f", c->step[i].out);
        vt_jw_printf(j, NULL, "%.1f", c->step[i].stall);
        vt_jw_end(j);
    }
    vt_jw_end(j);
}

static void put_capture(struct vt_jw *j, const struct vt_fit *f, size_t i)
{
    struct vt_fit_look c = vt_fit_look(f, i);

    vt_jw_row(j, NULL);
    vt_jw_str(j, "name", c.name);
    if (c.steps > 0)
        vt_jw_u64(j, "steps", c.steps);
    else
        vt_jw_u64(j, "requests", c.requests);
    vt_jw_printf(j, "seconds", "%.1f", c.seconds);
    if (c.stalls > 0) {
        vt_jw_u64(j, "stalls", c.stalls);
        vt_jw_printf(j, "stall_seconds", "%.1f", c.stall_seconds);
        put_stalled(j, &f->capture[i]);
    }
    if (c.odd)
        vt_jw_bool(j, "left_out", true);
    vt_jw_end(j);
}

static void put_lines(struct vt_jw *j, const char *key, const char *text)
{
    if (!text || !*text)
        return;
    vt_jw_list(j, key);
    while (*text) {
        size_t len = strcspn(text, "\n");

        vt_jw_strn(j, NULL, text, len);
        text += len + (text[len] != '\0');
    }
    vt_jw_end(j);
}

/* What the frontend adds is in the model. */
static void put_client(struct vt_jw *j, const struct vt_fit_about *about)
{
    if (about->clock != VT_CLOCK_CLIENT)
        return;
    vt_jw_str(j, "clock", vt_clock_name(about->clock));
    vt_jw_row(j, "frontend");
    vt_jw_str(j, "kind", "none");
    vt_jw_printf(j, "client_us", "%.1f", about->pause_us);
    if (about->read_us > 0) {
        vt_jw_printf(j, "read_us", "%.1f", about->read_us);
        vt_jw_printf(j, "pass_us", "%.1f", about->pass_us);
    }
    vt_jw_end(j);
}

static void put_provenance(struct vt_jw *j, const struct vt_fit *f,
                           const struct vt_fit_quality *q,
                           const struct vt_fit_about *about)
{
    vt_jw_map(j, "provenance");
    vt_jw_str(j, "made_by", about->made_by ? about->made_by : "vtwin fit " VT_VERSION);
    put_text(j, "forced", about->forced);
    vt_jw_list(j, "captures");
    for (size_t i = 0; i < f->n; i++)
        put_capture(j, f, i);
    vt_jw_end(j);
    if (q) {
        vt_jw_u64(j, "steps", q->steps);
        vt_jw_u64(j, "windows", q->windows);
        vt_jw_printf(j, "median_window_error", "%.4f", q->median_error);
        vt_jw_printf(j, "bias", "%.4f", q->bias);
        vt_jw_u64(j, "stalls", q->stalls);
        vt_jw_printf(j, "stall_share", "%.4f", q->stall_share);
    }
    if (about->in_sample || about->out_of_sample) {
        vt_jw_map(j, "median_error_percent");
        put_errors(j, "in_sample", about->in_sample);
        put_errors(j, "out_of_sample", about->out_of_sample);
        vt_jw_end(j);
    }
    put_lines(j, "notes", about->notes);
    if (about->learned)
        vt_jw_raw(j, "learned", about->learned, strlen(about->learned));
    vt_jw_end(j);
}

void vt_fit_step_model(struct vt_buf *model, const struct vt_step_params *p)
{
    vt_buf_str(model, "{\n    \"kind\": \"step\",\n    \"params\": {\n");
    vt_step_params_write(model, p, "      ", VT_STEP_FITTED);
    vt_buf_str(model, "    }\n  }");
}

void vt_fit_profile(struct vt_buf *b, const struct vt_fit *f, const char *model,
                    const struct vt_fit_quality *q, const struct vt_fit_about *about)
{
    struct vt_jw j;

    vt_jw_init(&j, b, &vt_json_pretty);
    vt_jw_map(&j, NULL);
    put_text(&j, "name", about->name);
    put_text(&j, "description", about->description);
    put_engine(&j, vt_fit_engine(f), about);
    vt_jw_raw(&j, "model", model, strlen(model));
    put_client(&j, about);
    put_errors(&j, "expected_error_pct", about->expected);
    put_provenance(&j, f, q, about);
    vt_jw_end(&j);
    vt_buf_char(b, '\n');
}
