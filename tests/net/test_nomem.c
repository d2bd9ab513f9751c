/* Every allocation of a server and its connections is made to fail in turn, once and
 * for good. A connection may end by it, the server may not: nothing hangs, every
 * request ends once, and nothing leaks.
 *
 * This program replaces malloc, which sanitizers do too; under those it does nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "live/live.h"
#include "net/net.h"

#include "../failing_malloc.h"

#if REPLACES_MALLOC

enum { N_CLIENTS = 5 };
static struct net_conn *due[N_CLIENTS];
static size_t n_due, n_asked, n_answered, n_gone;

static void on_request(void *user, struct net_conn *c, const struct net_request *r)
{
    char *body = net_take_body(c);
    struct net_reply reply = {.status = 200, .body = r->body, .len = 0};

    (void)user;
    free(body);
    n_asked++;
    if (strcmp(r->path, "/later") == 0) {
        due[n_due++] = c;
        return;
    }
    net_answer(c, &reply);
    n_answered++;
}

static void on_refused(void *user, int status)
{
    (void)user;
    (void)status;
}

static void on_gone(void *user, struct net_conn *c)
{
    (void)user;
    for (size_t i = 0; i < n_due; i++)
        if (due[i] == c)
            due[i] = due[--n_due];
    n_gone++;
}

/* Half of what each says comes later. */
static void talk(const struct net *n, int *fd, bool first)
{
    static char large[60000];
    static const char *const said[N_CLIENTS][2] = {
        {"GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HT", "TP/1.1\r\nHost: x\r\n\r\n"},
        {"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\na",
         "bc\r\n0\r\n\r\n"},
        {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 60003\r\n\r\n", "abc"},
        {"GET /later HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n", ""},
        {"POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: "
         "1\r\n\r\n",
         "x"},
    };
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(net_port(n))};

    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (int i = 0; i < N_CLIENTS; i++) {
        if (first) {
            fd[i] = socket(AF_INET, SOCK_STREAM, 0);
            assert_int_equal(connect(fd[i], (struct sockaddr *)&a, sizeof(a)), 0);
        }
        (void)send(fd[i], said[i][!first], strlen(said[i][!first]), MSG_NOSIGNAL);
        if (i == 2 && !first)
            (void)send(fd[i], large, sizeof(large), MSG_NOSIGNAL);
    }
}

static void turns(struct net *n)
{
    struct net_reply reply = {.status = 200};
    struct vt_err err;

    for (int i = 0; i < 8; i++) {
        assert_int_equal(net_wait(n, vt_wall_ns() + VT_MS / 2, false, &err), VT_OK);
        net_flush(n);
    }
    for (size_t i = 0; i < n_due; i++) {
        net_stream(due[i], &reply);
        for (int k = 0; k < 100; k++)
            net_put(due[i], "0123456789", 10);
        net_end(due[i]);
        n_answered++;
    }
    n_due = 0;
}

/* Opens, serves and closes; the codes of opening are the only ones there are. */
static int session(struct vt_err *err)
{
    const struct net_config c = {.host = "127.0.0.1",
                                 .max_body_bytes = 1 << 20,
                                 .max_header_bytes = 1000,
                                 .max_unsent_bytes = 1 << 20,
                                 .max_connections = 100};
    const struct net_handler h = {
        .request = on_request, .gone = on_gone, .refused = on_refused};
    struct net *n;
    int fd[N_CLIENTS], rc = net_open(&n, &c, &h, err);

    n_due = n_asked = n_answered = n_gone = 0;
    if (rc != VT_OK)
        return rc;
    talk(n, fd, true);
    turns(n);
    talk(n, fd, false);
    turns(n);
    turns(n);
    net_close(n);
    for (int i = 0; i < N_CLIENTS; i++)
        close(fd[i]);
    assert_int_equal(n_asked, n_answered + n_gone);
    return VT_OK;
}

static void every_allocation_may_fail(void **state)
{
    struct vt_err err = {0};

    (void)state;
    assert_int_equal(session(&err), VT_OK);
    assert_int_equal(n_asked, 7);
    assert_int_equal(n_gone, 0);
    for (int both = 0; both < 2; both++) {
        bool hit = true;

        for (long at = 1; hit; at++) {
            long before = live;
            int rc;

            calls = 0;
            fail_at = at;
            for_good = both != 0;
            rc = session(&err);
            hit = calls >= at;
            fail_at = 0;
            assert_true(rc == VT_OK || rc == VT_ENOMEM || rc == VT_EINPUT);
            assert_int_equal(live, before);
        }
    }
}

#else

static void every_allocation_may_fail(void **state)
{
    (void)state;
    skip();
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_allocation_may_fail)};

    return cmocka_run_group_tests_name("net_nomem", tests, NULL, NULL);
}
