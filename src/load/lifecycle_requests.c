/* lifecycle_requests.c - inference-perf's report of single requests. */
#include "load/file.h"
#include "load/lifecycle.h"
#include "load/stamps.h"

static void put_f64(struct vt_buf *b, const char *key, double v)
{
    vt_buf_printf(b, ", \"%s\": ", key);
    vt_buf_f64(b, v);
}

static void put_times(struct vt_buf *b, const struct lifecycle_window *w,
                      const struct vt_load_stage *s, const struct vt_load_record *q)
{
    struct stamps t = stamps_of(q, s->origin->backend);

    vt_buf_str(b, "\"output_token_times\": [");
    for (uint32_t i = 0; i < t.n; i++) {
        uint32_t tokens = stamps_are_tokens(&t, q) ? stamps_tokens(&t, q, i) : 1;

        for (uint32_t k = 0; k < tokens; k++) {
            vt_buf_str(b, i + k > 0 ? ", " : "");
            vt_buf_f64(b, lifecycle_seconds(w, s, t.at[i]));
        }
    }
    vt_buf_char(b, ']');
}

static void put_info(struct vt_buf *b, const struct lifecycle_window *w,
                     const struct vt_load_stage *s, const struct vt_load_record *q)
{
    vt_buf_printf(b,
                  ", \"info\": {\"input_tokens\": %u, \"output_tokens\": %u, "
                  "\"request_metrics\": {\"text\": {\"input_tokens\": %u}}, "
                  "\"response_metrics\": {\"output_tokens\": %u, \"server_usage\": ",
                  q->prompt_tokens, q->output_tokens, q->prompt_tokens,
                  q->output_tokens);
    if (q->counted_by_server)
        vt_buf_printf(b,
                      "{\"prompt_tokens\": %u, \"completion_tokens\": %u, "
                      "\"total_tokens\": %u, \"prompt_tokens_details\": "
                      "{\"cached_tokens\": %u}}}, ",
                      q->prompt_tokens, q->output_tokens,
                      q->prompt_tokens + q->output_tokens, q->cached_tokens);
    else
        vt_buf_str(b, "null}, ");
    put_times(b, w, s, q);
    vt_buf_char(b, '}');
}

static void put_error(struct vt_buf *b, const struct vt_load_record *q)
{
    const char *text = q->detail ? q->detail : q->error ? q->error : "";
    char type[48];

    if (q->ok) {
        vt_buf_str(b, ", \"error\": null");
        return;
    }
    lifecycle_error_type(q, type, sizeof(type));
    vt_buf_str(b, ", \"error\": {\"error_type\": ");
    vt_buf_json_str(b, type, strlen(type));
    vt_buf_str(b, ", \"error_msg\": ");
    vt_buf_json_str(b, text, strlen(text));
    vt_buf_char(b, '}');
}

static void put_text(struct vt_buf *b, const char *key, const char *text, size_t len)
{
    vt_buf_printf(b, ", \"%s\": ", key);
    if (text)
        vt_buf_json_str(b, text, len);
    else
        vt_buf_str(b, "null");
}

static void put_session(struct vt_buf *b, const struct vt_load_stage *s,
                        const struct vt_load_record *q)
{
    const struct vt_load_plan *p = s->origin->plan;
    const struct vt_load_session *of =
        p && q->session < p->n ? &p->session[q->session] : NULL;

    if (!of || of->n_turns < 2)
        return;
    vt_buf_str(b, ", \"session_id\": ");
    if (of->id)
        vt_buf_json_str(b, of->id, strlen(of->id));
    else
        vt_buf_printf(b, "\"%u\"", q->session);
}

static void put_request(struct vt_buf *b, const struct lifecycle_window *w,
                        size_t stage, const struct vt_load_record *q)
{
    const struct vt_load_stage *s = &w->stage[stage];
    const struct vt_load_plan *p = s->origin->plan;
    const struct vt_load_turn *t = NULL;

    if (p && q->session < p->n && q->turn < p->session[q->session].n_turns)
        t = &p->session[q->session].turn[q->turn];
    vt_buf_printf(b, "{\"stage_id\": %zu", stage);
    put_f64(b, "scheduled_time", lifecycle_seconds(w, s, q->planned));
    put_f64(b, "start_time", lifecycle_seconds(w, s, q->begun));
    put_f64(b, "end_time", lifecycle_seconds(w, s, q->ended));
    put_session(b, s, q);
    put_text(b, "request", t ? t->text : NULL, t ? t->text_len : 0);
    put_text(b, "response", q->text, q->text_len);
    put_info(b, w, s, q);
    put_error(b, q);
    vt_buf_char(b, '}');
}

int lifecycle_requests(const struct lifecycle_window *w, const char *path,
                       struct vt_err *err)
{
    struct vt_buf b = {0};
    struct vt_out *o;
    int rc = vt_out_open(&o, path, err);
    size_t n = 0;

    if (rc != VT_OK)
        return rc;
    vt_buf_char(&b, '[');
    for (size_t k = 0; k < w->n; k++)
        for (size_t i = 0; i < w->stage[k].records->n && rc == VT_OK; i++) {
            vt_buf_str(&b, n++ > 0 ? ",\n" : "\n");
            put_request(&b, w, k, &w->stage[k].records->record[i]);
            rc = file_flush(o, &b, FILE_IF_LARGE, err);
        }
    vt_buf_str(&b, "\n]\n");
    if (rc == VT_OK)
        rc = file_flush(o, &b, FILE_ALL, err);
    vt_buf_free(&b);
    return vt_out_end(o, rc, err);
}
