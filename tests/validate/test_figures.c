/* test_figures.c - error records become the bars, axes and tables that they should. */
#include <math.h>

#include "../place.h"
#include "validate/figures/figures.h"

#define HEAD                                                                   \
    "simulator,experiment_folder,model,workload,stage_index,metric_name,"      \
    "predicted,actual,mape,mpe,absolute_error,exp_id,hardware,dp,cpu_offload," \
    "gpu_mem_util,precision,tp,max_num_batched_tokens\r\n"
#define RUNTIME_HEAD "simulator,experiment_folder,model,workload,wall_clock_seconds\n"
#define L8           "meta-llama/Llama-3.1-8B-Instruct"
#define M7           "mistralai/Mixtral-8x7B-v0.1"

static int read_text(struct fig_set *s, const char *text, bool runtimes,
                     struct vt_err *err)
{
    struct vt_lines *l = NULL;
    int rc = vt_lines_from(&l, "t.csv", text, strlen(text), err);

    if (rc == VT_OK)
        rc = runtimes ? fig_read_runtimes(s, l, err) : fig_read_errors(s, l, err);
    vt_lines_close(l);
    return rc;
}

static void begin(struct fig_set *s, const char *rows, bool paper)
{
    struct vt_buf text = {0};
    struct vt_err err;

    *s = (struct fig_set){0};
    vt_buf_str(&text, HEAD);
    vt_buf_str(&text, rows);
    assert_int_equal(read_text(s, text.data, false, &err), VT_OK);
    assert_int_equal(fig_prepare(s, paper, &err), VT_OK);
    vt_buf_free(&text);
}

/* ---- tags --------------------------------------------------------------- */

static struct tag_row {
    const char *name;
    const char *model;
    const char *tail; /* hardware to max_num_batched_tokens */
    const char *want;
} tag_rows[] = {
    {"nothing differs", L8, "H100,,False,0.9,FP16,1,2048", "default"},
    {"one replica is none", L8, "H100,1,False,0.9,FP16,1,2048", "default"},
    {"chunk size before all", L8, "H100,2,True,0.95,FP16,2,1024", "mbt=1024"},
    {"offload before memory", L8, "H100,2,True,0.95,FP16,2,2048", "cpu-offload"},
    {"memory before replicas", L8, "H100,2,False,0.95,FP16,2,2048", "gpu-0.95"},
    {"replicas before tp", L8, "H100,2,False,0.9,FP16,2,2048", "dp=2"},
    {"experts count over tp", M7, "H100,2.0,False,0.9,FP16,4,2048", "ep=8"},
    {"tp that is not the model's", L8, "H100,,False,0.9,FP16,2,2048", "tp=2"},
    {"8x7B has two", M7, "H100,,False,0.9,FP16,2,2048", "default"},
    {"70b has four", "meta-llama/Llama-2-70b-hf", "H100,,False,0.9,FP16,1,2048",
     "tp=1"},
};

static void tags_follow_their_priority(void **state)
{
    const struct tag_row *r = *state;
    struct fig_set s;
    char row[512];

    snprintf(row, sizeof(row), "x,f,%s,general,-1,e2e_mean,1,1,0,0,0,1,%s\r\n",
             r->model, r->tail);
    begin(&s, row, true);
    assert_string_equal(s.error[0].at.tag, r->want);
    fig_set_free(&s);
}

static void without_a_column_for_chunks_all_is_default(void **state)
{
    struct fig_set s = {0};
    struct vt_err err;

    (void)state;
    assert_int_equal(
        read_text(&s,
                  "simulator,experiment_folder,model,workload,stage_index,"
                  "metric_name,predicted,actual,mape,mpe,absolute_error,tp\n"
                  "x,f," L8 ",general,-1,e2e_mean,1,1,0,0,0,8\n",
                  false, &err),
        VT_OK);
    assert_int_equal(fig_prepare(&s, true, &err), VT_OK);
    assert_string_equal(s.error[0].at.tag, "default");
    fig_set_free(&s);
}

/* ---- bars --------------------------------------------------------------- */

#define ROW(sim, folder, model, workload, stage, metric, mape, tail)        \
    sim "," folder "," model "," workload "," stage "," metric ",1,1," mape \
        ",0,0,1," tail "\r\n"
#define PLAIN "H100,,False,0.9,FP16,1,2048"
#define A100  "A100-80GB,,False,0.9,FP16,1,2048"

static void medians_are_of_what_a_figure_selects(void **state)
{
    static struct fig_bars b;
    struct fig_simulators sims;
    struct fig_set s;
    struct vt_err err;

    (void)state;
    begin(&s,
          ROW("vidur", "a", L8, "general", "-1", "e2e_mean", "10", PLAIN)
              ROW("vidur", "b", L8, "general-lite", "-1", "e2e_mean", "40",
                  PLAIN) ROW("vidur", "c", L8, "general", "-1", "e2e_mean", "20", PLAIN)
                  ROW("vidur", "c", L8, "general", "0", "e2e_mean", "9999", PLAIN)
                      ROW("vidur", "d", L8, "codegen", "-1", "e2e_mean", "9999", PLAIN)
                          ROW("vidur", "e", L8, "general", "-1", "e2e_mean", "7", A100)
                              ROW("vidur", "g", L8, "general", "-1", "e2e_mean", "8",
                                  A100) ROW("vtwin-step", "a", L8, "general", "-1",
                                            "e2e_mean", "inf", PLAIN),
          true);
    assert_int_equal(fig_simulators(&sims, &s, &err), VT_OK);
    assert_int_equal(sims.n, 2);
    assert_string_equal(sims.of[0].display, "vtwin step"); /* ours come first */
    b.sims = &sims;
    assert_int_equal(fig2_bars(&b, &s, &err), VT_OK);
    assert_int_equal(b.n_places, 2);
    assert_string_equal(b.label[1], "A100");
    assert_float_equal(b.value[0][0][1], 20, 1e-12);
    assert_float_equal(b.value[0][1][1], 7.5, 1e-12);
    assert_true(isinf(b.value[0][0][0]) != 0); /* no bar is that high */
    assert_int_equal(fig_bars_count(&b, 0), 2);
    assert_int_equal(fig1_bars(&b, &s, &err), VT_OK);
    assert_float_equal(b.value[0][0][1], 10, 1e-12); /* the first, not the median */
    assert_int_equal(fig3_bars(&b, &s, &err), VT_OK);
    assert_string_equal(b.label[1], "codegen");
    assert_float_equal(b.value[0][1][1], 9999, 1e-12);
    fig_set_free(&s);
}

/* ---- what a figure shows of several models and workloads ---------------- */

#define OFFLOAD "H100,,True,0.9,FP16,1,2048"
#define Q99     "mine/Qwen3-99B"

static struct shown_row {
    const char *name, *rows;
    fig_bars_maker *make;
    bool paper;
    const char *labels; /* of the places, one after the other */
    const char *left_out;
} shown_rows[] = {
    {"lite workloads stand apart and behind their own",
     ROW("x", "a", L8, "reasoning", "-1", "e2e_mean", "1", PLAIN)
         ROW("x", "b", L8, "general-lite", "-1", "e2e_mean", "2", PLAIN)
             ROW("x", "c", L8, "general", "-1", "e2e_mean", "3", PLAIN)
                 ROW("x", "d", L8, "mine", "-1", "e2e_mean", "3", PLAIN),
     fig3_bars, false, "general|general-lite|reasoning|mine|", ""},
    {"the paper has four workloads",
     ROW("x", "a", L8, "general", "-1", "e2e_mean", "1", PLAIN)
         ROW("x", "b", L8, "general-lite", "-1", "e2e_mean", "2", PLAIN)
             ROW("x", "d", L8, "mine", "-1", "e2e_mean", "3", PLAIN),
     fig3_bars, true, "general|", ""},
    {"all with offloading is as usual as all without",
     ROW("x", "a", L8, "general", "-1", "e2e_mean", "1", OFFLOAD), fig1_bars, false,
     "Ll-3.1-8B|", ""},
    {"some with offloading are not shown",
     ROW("x", "a", M7, "general", "-1", "e2e_mean", "1", OFFLOAD)
         ROW("x", "b", L8, "general", "-1", "e2e_mean", "1", PLAIN),
     fig1_bars, false, "Ll-3.1-8B|", ""},
    {"a model that the paper does not have is named",
     ROW("x", "a", Q99, "general", "-1", "e2e_mean", "1", PLAIN)
         ROW("x", "b", L8, "general", "-1", "e2e_mean", "1", PLAIN),
     fig1_bars, true, "Ll-3.1-8B|", "left out: " Q99},
    {"or drawn",
     ROW("x", "a", Q99, "general", "-1", "e2e_mean", "1", PLAIN)
         ROW("x", "b", L8, "general", "-1", "e2e_mean", "1", PLAIN),
     fig1_bars, false, "Ll-3.1-8B|Qwen3-99B|", ""},
    {"no two models have one label",
     ROW("x", "a", L8, "general", "-1", "e2e_mean", "1", PLAIN) ROW(
         "x", "b", "meta-llama/Llama-3.1-8B", "general", "-1", "e2e_mean", "1", PLAIN)
         ROW("x", "c", "other/Llama-3.1-8B", "general", "-1", "e2e_mean", "1", PLAIN),
     fig1_bars, false,
     "meta-llama/Llama-3.1-8B|Llama-3.1-8B-Instruct|other/Llama-3.1-8B|", ""},
    {"long names keep both of their ends",
     ROW("x", "a", "o/a-model-with-a-very-long-name-base", "general", "-1", "e2e_mean",
         "1", PLAIN) ROW("x", "b", "o/a-model-with-a-very-long-name-chat", "general",
                         "-1", "e2e_mean", "1", PLAIN),
     fig1_bars, false, "a-model-wi..g-name-base|a-model-wi..g-name-chat|", ""},
};

static void figures_show_all_or_name_what_they_leave_out(void **state)
{
    const struct shown_row *r = *state;
    static struct fig_bars b;
    struct vt_buf labels = {0};
    struct fig_simulators sims;
    struct fig_set s;
    struct vt_err err;

    begin(&s, r->rows, r->paper);
    assert_int_equal(fig_simulators(&sims, &s, &err), VT_OK);
    b.sims = &sims;
    assert_int_equal(r->make(&b, &s, &err), VT_OK);
    for (size_t i = 0; i < b.n_places; i++)
        vt_buf_printf(&labels, "%s|", b.label[i]);
    assert_string_equal(labels.data, r->labels);
    assert_string_equal(b.left_out, r->left_out);
    vt_buf_free(&labels);
    fig_set_free(&s);
}

static void configurations_pin_all_but_one(void **state)
{
    static struct fig_bars b;
    struct fig_simulators sims;
    const char *model = NULL;
    struct fig_set s;
    struct vt_err err;

    (void)state;
    begin(&s,
          ROW("vidur", "a", L8, "general", "-1", "e2e_mean", "1", PLAIN)
              ROW("vidur", "b", L8, "general", "-1", "e2e_mean", "3", PLAIN)
                  ROW("vidur", "c", L8, "general", "-1", "e2e_mean", "5",
                      "H100,,False,0.9,FP16,2,2048")
                      ROW("vidur", "d", L8, "general", "-1", "e2e_mean", "7",
                          "H100,,False,0.9,FP16,1,8192")
                          ROW("vidur", "e", L8, "general", "-1", "e2e_mean", "9",
                              "H100,,False,0.95,FP16,4,8192"),
          true);
    assert_int_equal(fig_simulators(&sims, &s, &err), VT_OK);
    b.sims = &sims;
    assert_int_equal(fig4_bars(&b, &s, false, &model, &err), VT_OK);
    assert_string_equal(model, L8);
    assert_int_equal(b.n_teams, 2); /* the memory differs only together with others */
    assert_string_equal(b.team[0].title, "TP");
    assert_string_equal(b.team[1].title, "Chunk Size");
    assert_int_equal(b.n_places, 4);
    assert_float_equal(b.value[0][0][0], 2, 1e-12);
    assert_float_equal(b.value[0][1][0], 5, 1e-12);
    assert_float_equal(b.value[0][3][0], 7, 1e-12);
    assert_float_equal(b.at[2], 2.6, 1e-12); /* a gap between groups */
    assert_int_equal(fig4_bars(&b, &s, true, &model, &err), VT_ECHECK);
    fig_set_free(&s);
}

static void a_point_is_a_median_of_medians(void **state)
{
    struct fig_point p[FIG_MAX_SIMS];
    struct fig_simulators sims;
    struct fig_set s;
    struct vt_err err;
    size_t n = 0;

    (void)state;
    begin(&s,
          ROW("vidur", "a", L8, "general", "-1", "e2e_mean", "1", PLAIN)
              ROW("vidur", "a", L8, "general", "-1", "ttft_mean", "3", PLAIN)
                  ROW("vidur", "a", L8, "general", "-1", "itl_mean", "100", PLAIN)
                      ROW("vidur", "b", L8, "codegen", "-1", "e2e_mean", "11", A100),
          true);
    assert_int_equal(read_text(&s,
                               RUNTIME_HEAD "vidur,a," L8 ",general,2\n"
                                            "vidur,b," L8 ",codegen,6\n",
                               true, &err),
                     VT_OK);
    assert_int_equal(fig_simulators(&sims, &s, &err), VT_OK);
    assert_int_equal(fig5_points(p, &n, &sims, &s, &err), VT_OK);
    assert_int_equal(n, 1);
    assert_float_equal(p[0].mape[1], 7, 1e-12); /* of 3 and 11 */
    assert_float_equal(p[0].mape[0], 5, 1e-12);
    assert_float_equal(p[0].seconds[1], 4, 1e-12);
    assert_float_equal(p[0].seconds[2], 5, 1e-12);
    fig_set_free(&s);
}

/* ---- axes --------------------------------------------------------------- */

static struct axis_row {
    const char *name;
    int metric;
    double value[4]; /* ends with 0 */
    bool broken;
    int kind; /* of the bottom */
    double hi, top_lo, top_hi;
} axis_rows[] = {
    {"low bars need no break",
     FIG_E2E_MEAN,
     {10, 20, 100},
     false,
     FIG_LINEAR,
     120,
     0,
     0},
    {"two bars never break", FIG_E2E_MEAN, {10, 500}, false, FIG_LINEAR, 600, 0, 0},
    {"one of three is tall",
     FIG_E2E_MEAN,
     {10, 20, 400},
     true,
     FIG_LINEAR,
     100,
     360,
     460},
    {"TTFT breaks later", FIG_TTFT_MEAN, {10, 20, 150}, false, FIG_LINEAR, 180, 0, 0},
    {"TTFT breaks", FIG_TTFT_MEAN, {10, 300, 400}, true, FIG_LINEAR, 200, 270, 460},
    {"two tall bars of TTFT are symlog",
     FIG_TTFT_MEAN,
     {10, 400},
     false,
     FIG_SYMLOG,
     480,
     0,
     0},
    {"the upper part begins above the lower one's end",
     FIG_ITL_MEAN,
     {10, 20, 105},
     true,
     FIG_LINEAR,
     100,
     100,
     120.75},
};

static void axes_break_when_they_should(void **state)
{
    const struct axis_row *r = *state;
    static struct fig_bars b;
    struct fig_simulators sims = {.n = 1};
    struct fig_break k;

    b.sims = &sims;
    fig_bars_clear(&b);
    b.metric[0] = r->metric;
    for (size_t i = 0; i < VT_COUNT(r->value) && r->value[i] > 0; i++) {
        b.value[0][i][0] = r->value[i];
        b.n_places = i + 1;
    }
    k = fig_break_of(&b, 0);
    assert_int_equal(k.broken, r->broken);
    assert_int_equal(k.bottom.kind, r->kind);
    assert_float_equal(k.bottom.hi, r->hi, 1e-9);
    if (r->broken) {
        assert_float_equal(k.top.lo, r->top_lo, 1e-9);
        assert_float_equal(k.top.hi, r->top_hi, 1e-9);
    }
}

static void hatches_stay_in_their_box_of(void *user, double x0, double y0, double x1,
                                         double y1)
{
    size_t *n = user;

    assert_true(x0 >= 1 - 1e-9 && x0 <= 1.3 + 1e-9 && x1 >= 1 - 1e-9);
    assert_true(x1 <= 1.3 + 1e-9 && fmin(y0, y1) >= 2 - 1e-9);
    assert_true(fmax(y0, y1) <= 2.7 + 1e-9);
    (*n)++;
}

static void hatches_stay_in_their_box(void **state)
{
    struct fig_box box = {1, 2, 1.3, 2.7};

    (void)state;
    for (unsigned one = FIG_RISING; one <= FIG_DOTTED; one *= 2) {
        size_t n = 0;

        fig_hatch_box(one, &box, hatches_stay_in_their_box_of, &n);
        assert_in_range(n, 2, 200);
    }
}

/* ---- the synthetic results ---------------------------------------------- */

static void load_results(struct fig_set *s, bool paper)
{
    struct vt_validate_figures job = {
        .results_dir = VT_TEST_DIR "/cases/figures/results", .paper = paper};
    struct vt_err err;

    *s = (struct fig_set){0};
    assert_int_equal(fig_load(s, &job, &err), VT_OK);
}

/* The heights that a script gives to a simulator's bars. */
static size_t heights(const char *script, const char *metric, const char *simulator,
                      double out[8])
{
    char mark[96];
    const char *at;
    size_t n = 0;

    snprintf(mark, sizeof(mark), "# %s of \"%s\"\n", metric, simulator);
    at = strstr(script, mark);
    assert_non_null(at);
    at = strstr(at, "EOD\n") + 4;
    for (; strncmp(at, "EOD", 3) != 0; at = strchr(at, '\n') + 1)
        assert_int_equal(sscanf(at, "%*f %lf", &out[n++]), 1);
    return n;
}

static void figure_1_has_the_published_heights(void **state)
{
    static const double blis[] = {2.50, 7.73, 12.15, 1.59, 6.03, 12.5};
    static const double aiconf_ttft[] = {120.8, 624, 435, 659, 105.8, 1371};
    static struct fig_bars b;
    struct fig_picture p = {.width_in = 0};
    struct fig_simulators sims;
    struct fig_set s;
    struct vt_err err;
    double got[8];

    (void)state;
    load_results(&s, false);
    assert_int_equal(fig_simulators(&sims, &s, &err), VT_OK);
    b.sims = &sims;
    assert_int_equal(fig1_bars(&b, &s, &err), VT_OK);
    assert_int_equal(b.n_places, 6);
    assert_string_equal(b.label[0], "Ll-3.1-8B");
    assert_string_equal(b.label[5], "Mx-8x22B");
    assert_int_equal(fig_bars_script(&p, &b, &err), VT_OK);
    assert_int_equal(heights(p.script.data, "e2e_mean", "blis-trained-physics", got),
                     6);
    for (size_t i = 0; i < 6; i++)
        assert_float_equal(got[i], blis[i], 1e-9);
    assert_int_equal(
        heights(p.script.data, "ttft_mean", "aiconfigurator-estimate", got), 6);
    for (size_t i = 0; i < 6; i++)
        assert_float_equal(got[i], aiconf_ttft[i], 1e-9);
    assert_int_equal(heights(p.script.data, "itl_mean", "vidur", got), 2);
    assert_float_equal(got[1], 326, 1e-9);
    for (size_t i = 0; i < 3; i++)
        assert_true(fig_break_of(&b, i).broken);
    vt_buf_free(&p.script);
    fig_set_free(&s);
}

/* ---- table 1 ------------------------------------------------------------ */

static void table_1_reads_as_specified(void **state)
{
    struct fig_truth truth[] = {{"a", 1000, 3000}, {"b", 1420, 3000}};
    struct fig_simulators sims;
    struct fig_set s = {0};
    struct vt_buf b = {0};
    struct vt_err err;

    (void)state;
    assert_int_equal(read_text(&s,
                               RUNTIME_HEAD "my_sim,a,m,w,0.05\n"
                                            "llmservingsim,a,m,w,200\n"
                                            "blis-trained-physics,a,m,w,5\n"
                                            "blis-trained-physics,b,m,w,6.4\n",
                               true, &err),
                     VT_OK);
    s.truth = truth;
    s.n_truths = 2;
    assert_int_equal(fig_simulators(&sims, &s, &err), VT_OK);
    assert_int_equal(fig_runtime_table(&b, &s, &sims, &err), VT_OK);
    assert_string_equal(b.data,
                        "\\begin{tabular}{lrr}\n\\toprule\n"
                        "Simulator & Median Runtime (s) & Speedup vs. Real \\\\\n"
                        "\\midrule\n"
                        "BLIS & 5.7 & 212$\\times$ \\\\\n"
                        "LLMServingSim & 200.0 & 0.6$\\times$ \\\\\n"
                        "my\\_sim & 0.1 & 24200$\\times$ \\\\\n"
                        "\\bottomrule\n\\end{tabular}\n");
    s.truth = NULL;
    vt_buf_free(&b);
    fig_set_free(&s);
}

/* ---- reading ------------------------------------------------------------ */

static struct bad_row {
    const char *name;
    const char *text;
    const char *why;
} bad_rows[] = {
    {"no head", "", "t.csv: there is no column 'simulator'"},
    {"a column is missing", "simulator,experiment_folder\n",
     "t.csv: there is no column 'model'"},
    {"a cell is missing", HEAD "x,f\r\n",
     "t.csv: line 2: 2 columns where the head has 19"},
    {"not a number", HEAD "x,f,m,w,-1,e2e_mean,1,1,many,0,0,1," PLAIN "\r\n",
     "t.csv: line 2: column 'mape' must be a number, not 'many'"},
    {"negative", HEAD "x,f,m,w,-1,e2e_mean,1,1,-3,0,0,1," PLAIN "\r\n",
     "t.csv: line 2: column 'mape' must be at least 0, not '-3'"},
    {"another metric", HEAD "x,f,m,w,-1,e2e,1,1,3,0,0,1," PLAIN "\r\n",
     "t.csv: line 2: column 'metric_name' must be one of the nine metrics (e2e_mean, "
     "ttft_p90, ...), not 'e2e'"},
    {"no stage", HEAD "x,f,m,w,-2,e2e_mean,1,1,3,0,0,1," PLAIN "\r\n",
     "t.csv: line 2: column 'stage_index' must be a stage, or -1 for the whole run, "
     "not "
     "'-2'"},
    {"nobody", HEAD ",f,m,w,-1,e2e_mean,1,1,3,0,0,1," PLAIN "\r\n",
     "t.csv: line 2: column 'simulator' must be stated, not ''"},
    {"open quote", HEAD "\"x,f\r\n",
     "t.csv: line 2: a quote is not closed, or more than 64 columns"},
    {"half a replica",
     HEAD "x,f,m,w,-1,e2e_mean,1,1,3,0,0,1,H100,1.5,False,0.9,FP16,1,2048\r\n",
     "t.csv: line 2: column 'dp' must be a whole number or empty, not '1.5'"},
};

static void bad_files_are_refused_in_one_line(void **state)
{
    const struct bad_row *r = *state;
    struct fig_set s = {0};
    struct vt_err err;

    assert_int_equal(read_text(&s, r->text, false, &err), VT_EINPUT);
    assert_string_equal(err.msg, r->why);
    fig_set_free(&s);
}

static void metadata_fill_and_samples_replace(void **state)
{
    struct vt_validate_figures job = {.paper = true};
    struct fig_set s = {0};
    struct place p;
    struct vt_err err;

    (void)state;
    place_begin(&p);
    place_put(&p, "error_records.csv",
              HEAD ROW("llmservingsim", "a", L8, "general", "-1", "e2e_mean", "1",
                       PLAIN) ROW("vidur", "a", L8, "general", "-1", "e2e_mean", "2",
                                  ",,False,0.9,FP16,1,2048"));
    place_put(&p, "runtime.csv", RUNTIME_HEAD "llmservingsim,a,m,w,9\n");
    place_put(
        &p, "llmservingsim_error_records_matched.csv",
        HEAD ROW("llmservingsim", "b", L8, "general", "-1", "e2e_mean", "3", PLAIN));
    place_put(&p, "llmservingsim_runtime.csv", RUNTIME_HEAD "llmservingsim,b,m,w,5\n");
    job.metadata = place_put(&p, "meta.csv",
                             "experiment_folder,hardware,dp\n"
                             "a,L40S,4\nb,H200,\n");
    job.results_dir = p.directory;
    assert_int_equal(fig_load(&s, &job, &err), VT_OK);
    assert_int_equal(s.n_errors, 2);
    assert_string_equal(s.error[0].at.hardware, "L40S"); /* was not stated */
    assert_string_equal(s.error[0].at.tag, "dp=4");
    assert_string_equal(s.error[1].at.hardware, "H100"); /* was */
    assert_float_equal(s.error[1].mape, 3, 0);
    assert_int_equal(s.n_runtimes, 1);
    assert_float_equal(s.runtime[0].seconds, 5, 0);
    fig_set_free(&s);
    place_end(&p);
}

#define EACH(rows, run)                                                       \
    for (size_t i = 0; i < VT_COUNT(rows); i++)                               \
        tests[n++] = (struct CMUnitTest)                                      \
        {                                                                     \
            .name = rows[i].name, .test_func = run, .initial_state = &rows[i] \
        }

int main(void)
{
    static const struct CMUnitTest single[] = {
        cmocka_unit_test(without_a_column_for_chunks_all_is_default),
        cmocka_unit_test(medians_are_of_what_a_figure_selects),
        cmocka_unit_test(configurations_pin_all_but_one),
        cmocka_unit_test(a_point_is_a_median_of_medians),
        cmocka_unit_test(hatches_stay_in_their_box),
        cmocka_unit_test(figure_1_has_the_published_heights),
        cmocka_unit_test(table_1_reads_as_specified),
        cmocka_unit_test(metadata_fill_and_samples_replace),
    };
    enum {
        N = VT_COUNT(single) + VT_COUNT(tag_rows) + VT_COUNT(axis_rows) +
            VT_COUNT(bad_rows) + VT_COUNT(shown_rows)
    };
    struct CMUnitTest tests[N];
    size_t n = VT_COUNT(single);

    memcpy(tests, single, sizeof(single));
    EACH(tag_rows, tags_follow_their_priority);
    EACH(shown_rows, figures_show_all_or_name_what_they_leave_out);
    EACH(axis_rows, axes_break_when_they_should);
    EACH(bad_rows, bad_files_are_refused_in_one_line);
    return cmocka_run_group_tests_name("figures", tests, NULL, NULL);
}
