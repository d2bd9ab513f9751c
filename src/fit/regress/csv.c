/* csv.c - the data sets as tables that any tool reads. */
#include "fit/regress/regress.h"

#include <math.h>

static void put_number(struct vt_buf *b, double v) /* after a comma; NAN: nothing */
{
    vt_buf_char(b, ',');
    if (isfinite(v))
        vt_buf_printf(b, "%.10g", v);
}

static void put_text(struct vt_buf *b, const char *text)
{
    vt_buf_char(b, ',');
    vt_buf_csv(b, text, false);
}

/* "8.2B": what people call a model's size. */
static void put_size(struct vt_buf *b, const struct regress_capture *c)
{
    double size = c->engine[VT_F_MODEL_SIZE];

    vt_buf_char(b, ',');
    if (size > 0)
        vt_buf_printf(b, "%.3gB", size);
}

static const enum vt_feature_id engine_columns[] = {
    VT_F_MODEL_SIZE,    VT_F_SIZE_PROXY,      VT_F_LAYERS,
    VT_F_KV_HEAD_RATIO, VT_F_KV_BYTES,        VT_F_COMPUTE_TO_BANDWIDTH,
    VT_F_MEMORY_GB,     VT_F_RELATIVE_FACTOR, VT_F_EXPERT_SHARE,
};

static void put_engine_names(struct vt_buf *b, size_t from)
{
    for (size_t i = from; i < VT_COUNT(engine_columns); i++)
        vt_buf_printf(b, ",%s", vt_features[engine_columns[i]].name);
}

static void put_engine(struct vt_buf *b, const struct regress_capture *c, size_t from)
{
    for (size_t i = from; i < VT_COUNT(engine_columns); i++) {
        double v = c->engine[engine_columns[i]];

        put_number(b, v > 0 ? v : NAN); /* none of them is 0 if it is known */
    }
}

static const char *type_of(const struct regress_capture *c)
{
    return !(c->engine[VT_F_LAYERS] > 0) ? ""
           : c->engine[VT_F_IS_MOE] > 0  ? "moe"
                                         : "dense";
}

static const char *rule_of(const struct regress_row *r)
{
    return vt_rule_names[r->left_out];
}

void vt_regress_data_alpha_csv(const struct vt_regress_data *d, struct vt_buf *b)
{
    const struct regress_table *t = &d->table[VT_REGRESS_QUEUE];

    vt_buf_str(b, "alpha_latency_ms,prompt_tokens,queue_depth,running_depth,kv_ratio,"
                  "model_size,hw_type,tp,prefix_hit_ratio,since_sched_ms,"
                  "batch_fullness,arrive_ms,handoff_ms,model_type,attention");
    put_engine_names(b, 1);
    vt_buf_str(b, ",capture,left_out\n");
    for (size_t i = 0; i < t->n; i++) {
        const struct regress_row *r = &t->row[i];
        const struct regress_capture *c = &d->capture[r->capture];

        vt_buf_printf(b, "%.10g", 1e-3 * r->y_us);
        put_number(b, r->v[VT_F_PROMPT_TOKENS]);
        put_number(b, r->v[VT_F_QUEUE_DEPTH]);
        put_number(b, r->v[VT_F_RUNNING_DEPTH]);
        put_number(b, r->v[VT_F_KV_RATIO]);
        put_size(b, c);
        put_text(b, c->gpu);
        put_number(b, c->tp);
        put_number(b, r->v[VT_F_PREFIX_HIT_RATIO]);
        put_number(b, r->v[VT_F_SINCE_SCHED_MS]);
        put_number(b, r->v[VT_F_BATCH_FULLNESS]);
        put_number(b, 1e-3 * r->arrive_us);
        put_number(b, 1e-3 * r->handoff_us);
        put_text(b, type_of(c));
        put_text(b, c->attention);
        put_engine(b, c, 1);
        put_text(b, c->name);
        put_text(b, rule_of(r));
        vt_buf_char(b, '\n');
    }
}

void vt_regress_data_beta_csv(const struct vt_regress_data *d, struct vt_buf *b)
{
    static const enum vt_feature_id more[] = {
        VT_F_SCHEDULED_TOKENS, VT_F_PREFILL_RATIO, VT_F_RUNNING_DEPTH,
        VT_F_QUEUE_DEPTH,      VT_F_KV_BLOCKS,     VT_F_DECODE_CONTEXT,
        VT_F_PREFILL_CONTEXT,
    };
    const struct regress_table *t = &d->table[VT_REGRESS_STEP];

    vt_buf_str(b, "step_duration_us,num_prefill,num_decode,prefill_tokens,"
                  "decode_tokens,kv_ratio,model_type,hw,tp");
    for (size_t k = 0; k < VT_COUNT(more); k++)
        vt_buf_printf(b, ",%s", vt_features[more[k]].name);
    vt_buf_str(b, ",attention");
    put_engine_names(b, 0);
    vt_buf_str(b, ",capture,step,left_out\n");
    for (size_t i = 0; i < t->n; i++) {
        const struct regress_row *r = &t->row[i];
        const struct regress_capture *c = &d->capture[r->capture];

        vt_buf_printf(b, "%.10g", r->y_us);
        put_number(b, r->v[VT_F_NUM_PREFILL]);
        put_number(b, r->v[VT_F_NUM_DECODE]);
        put_number(b, r->v[VT_F_PREFILL_TOKENS]);
        put_number(b, r->v[VT_F_DECODE_TOKENS]);
        put_number(b, r->v[VT_F_KV_RATIO]);
        put_text(b, type_of(c));
        put_text(b, c->gpu);
        put_number(b, c->tp);
        for (size_t k = 0; k < VT_COUNT(more); k++)
            put_number(b, r->v[more[k]]);
        put_text(b, c->attention);
        put_engine(b, c, 0);
        put_text(b, c->name);
        put_number(b, (double)r->step);
        put_text(b, rule_of(r));
        vt_buf_char(b, '\n');
    }
}
