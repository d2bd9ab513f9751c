/* lifecycle_requests.c - inference-perf's report of single requests. */
#include "load/lifecycle.h"
#include "load/summary.h"

static void put_info(struct vt_jw *w, const struct lifecycle_window *of,
                     const struct vt_load_stage *s, const struct vt_load_record *q)
{
    struct stamps t = stamps_of(q, s->origin->backend);

    vt_jw_map(w, "info");
    vt_jw_u64(w, "input_tokens", q->prompt_tokens);
    vt_jw_u64(w, "output_tokens", q->output_tokens);
    vt_jw_map(w, "request_metrics");
    vt_jw_map(w, "text");
    vt_jw_u64(w, "input_tokens", q->prompt_tokens);
    vt_jw_end(w);
    vt_jw_end(w);
    vt_jw_map(w, "response_metrics");
    vt_jw_u64(w, "output_tokens", q->output_tokens);
    if (q->counted_by_server) {
        vt_jw_map(w, "server_usage");
        vt_jw_u64(w, "prompt_tokens", q->prompt_tokens);
        vt_jw_u64(w, "completion_tokens", q->output_tokens);
        vt_jw_u64(w, "total_tokens", q->prompt_tokens + q->output_tokens);
        vt_jw_map(w, "prompt_tokens_details");
        vt_jw_u64(w, "cached_tokens", q->cached_tokens);
        vt_jw_end(w);
        vt_jw_end(w);
    } else {
        vt_jw_null(w, "server_usage");
    }
    vt_jw_end(w);
    vt_jw_list(w, "output_token_times");
    for (uint32_t i = 0; i < t.n; i++) {
        uint32_t tokens = stamps_are_tokens(&t, q) ? stamps_tokens(&t, q, i) : 1;

        for (uint32_t k = 0; k < tokens; k++)
            vt_jw_f64(w, NULL, lifecycle_seconds(of, s, t.at[i]));
    }
    vt_jw_end(w);
    vt_jw_end(w);
}

static void put_content(struct vt_jw *w, const char *key, const char *text, size_t len)
{
    if (text)
        vt_jw_strn(w, key, text, len);
    else
        vt_jw_null(w, key);
}

static void put_request(struct vt_jw *w, const struct lifecycle_window *of,
                        size_t stage, const struct vt_load_record *q)
{
    const struct vt_load_stage *s = &of->stage[stage];
    const struct vt_load_plan *p = s->origin->plan;
    const struct vt_load_session *talk =
        p && q->session < p->n ? &p->session[q->session] : NULL;
    const struct vt_load_turn *t =
        talk && q->turn < talk->n_turns ? &talk->turn[q->turn] : NULL;
    char type[48];

    vt_jw_row(w, NULL);
    vt_jw_u64(w, "stage_id", stage);
    vt_jw_f64(w, "scheduled_time", lifecycle_seconds(of, s, q->planned));
    vt_jw_f64(w, "start_time", lifecycle_seconds(of, s, q->begun));
    vt_jw_f64(w, "end_time", lifecycle_seconds(of, s, q->ended));
    if (talk && talk->n_turns > 1 && talk->id)
        vt_jw_str(w, "session_id", talk->id);
    else if (talk && talk->n_turns > 1)
        vt_jw_printf(w, "session_id", "\"%u\"", q->session);
    put_content(w, "request", t ? t->text : NULL, t ? t->text_len : 0);
    put_content(w, "response", q->text, q->text_len);
    put_info(w, of, s, q);
    if (q->ok) {
        vt_jw_null(w, "error");
    } else {
        lifecycle_error_type(q, type, sizeof(type));
        vt_jw_map(w, "error");
        vt_jw_str(w, "error_type", type);
        vt_jw_str(w, "error_msg", q->detail ? q->detail : q->error ? q->error : "");
        vt_jw_end(w);
    }
    vt_jw_end(w);
}

int lifecycle_requests(const struct lifecycle_window *of, const char *path,
                       struct vt_err *err)
{
    struct vt_json_style style = vt_json_spaced;
    struct vt_buf b = {0};
    struct vt_out *o;
    struct vt_jw w;
    int rc = vt_out_open(&o, path, err);

    if (rc != VT_OK)
        return rc;
    style.indent = ""; /* a line each */
    vt_jw_init(&w, &b, &style);
    vt_jw_list(&w, NULL);
    for (size_t k = 0; k < of->n; k++)
        for (size_t i = 0; i < of->stage[k].records->n && rc == VT_OK; i++) {
            put_request(&w, of, k, &of->stage[k].records->record[i]);
            rc = vt_out_flush(o, &b, false, err);
        }
    vt_jw_end(&w);
    vt_buf_char(&b, '\n');
    if (rc == VT_OK)
        rc = vt_out_flush(o, &b, true, err);
    vt_buf_free(&b);
    return vt_out_end(o, rc, err);
}
