/* embed.c - an engine inside a program of your own: eight requests, 20 ms apart, and
 * when each one's first and last token leave.
 *
 *     cc embed.c -o embed $(pkg-config --cflags --libs vtwin) && ./embed */
#include <inttypes.h>
#include <stdio.h>
#include <vtwin/engine.h>
#include <vtwin/latency.h>

enum { REQUESTS = 8 };
static const int64_t apart_ns = 20 * 1000 * 1000;

static void print_ends(void *user, const struct vtwin_output *o)
{
    int64_t *first_ns = user, arrival_ns = (int64_t)o->id * apart_ns;

    if (o->first_index == 0)
        first_ns[o->id] = o->at_ns;
    if (o->finish != VTWIN_NOT_FINISHED)
        printf("request %" PRIu64 ": TTFT %.1f ms, E2E %.1f ms\n", o->id,
               (double)(first_ns[o->id] - arrival_ns) / 1e6,
               (double)(o->at_ns - arrival_ns) / 1e6);
}

int main(void)
{
    struct vtwin_error err = {VTWIN_INIT(err)};
    struct vtwin_model *model = NULL;
    struct vtwin_engine *engine = NULL;
    int64_t first_ns[REQUESTS] = {0}, now = 0;
    uint64_t next = 0;
    int rc = vtwin_model_open(&model, "qwen3-8b-h200", &err);

    if (rc == VTWIN_OK)
        rc = vtwin_engine_new(&engine, model, NULL, &err);
    while (rc == VTWIN_OK) { /* whatever comes first: a request, or the engine's turn */
        int64_t arrival = next < REQUESTS ? (int64_t)next * apart_ns : VTWIN_NEVER;

        now = vtwin_engine_due(engine);
        if (arrival == VTWIN_NEVER && now == VTWIN_NEVER)
            break;
        if (arrival <= now) {
            struct vtwin_request r = {VTWIN_INIT(r), .id = next++,
                                      .prompt_tokens = 1000, .output_tokens = 50};

            rc = vtwin_engine_add(engine, arrival, &r, &err);
        } else {
            rc = vtwin_engine_step(engine, now, print_ends, first_ns, &err);
        }
    }
    if (rc != VTWIN_OK)
        fprintf(stderr, "embed: %s\n", err.message);
    vtwin_engine_free(engine);
    vtwin_model_free(model);
    return rc;
}
