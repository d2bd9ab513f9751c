/* Maps from numbers, texts found by hash, and names. */
#include "testing.h"

static void nothing_is_asked_of_an_empty_one(void **state)
{
    struct vt_map m = {0};

    (void)state;
    assert_null(vt_map_get(&m, 0));
    assert_null(vt_map_get(&m, 7));
    vt_map_clear(&m);
    assert_null(m.cell);
    vt_map_free(&m);
}

/* Against an array that says what is there: keys are few, so that they come and go. */
static void random_walk(uint64_t (*key_of)(uint64_t i))
{
    enum { KEYS = 700, STEPS = 200000 };
    static uint64_t want[KEYS]; /* value + 1; 0: not there */
    struct vt_map m = {0};
    struct vt_rng r;
    size_t n = 0, seen = 0;

    memset(want, 0, sizeof(want));
    vt_rng_init(&r, 1, "map");
    for (int step = 0; step < STEPS; step++) {
        uint64_t i = vt_rng_below(&r, KEYS);
        uint64_t *place = vt_map_get(&m, key_of(i));

        assert_true((place != NULL) == (want[i] != 0));
        if (place)
            assert_true(*place == want[i] - 1);
        if (place && vt_rng_below(&r, 2)) {
            vt_map_drop(&m, place);
            want[i] = 0;
            n--;
        } else {
            place = vt_map_put(&m, key_of(i));
            assert_non_null(place);
            if (want[i] == 0)
                assert_true(*place == 0);
            n += want[i] == 0;
            *place = vt_rng_u64(&r) >> 1;
            want[i] = *place + 1;
        }
        assert_int_equal(m.n, n);
    }
    for (uint64_t i = 0; i < KEYS; i++) {
        const uint64_t *place = vt_map_get(&m, key_of(i));

        assert_true(want[i] == (place ? *place + 1 : 0));
        seen += place != NULL;
    }
    assert_int_equal(seen, n);
    vt_map_clear(&m);
    assert_null(vt_map_get(&m, key_of(0)));
    assert_non_null(vt_map_put(&m, key_of(0)));
    assert_int_equal(m.n, 1);
    vt_map_free(&m);
}

static uint64_t small_number(uint64_t i)
{
    return i; /* 0 is a key as any other */
}

static uint64_t many_low_zeros(uint64_t i)
{
    return i << 40;
}

static uint64_t hashed(uint64_t i)
{
    return vt_mix64(i + 1);
}

static void keys_come_and_go(void **state)
{
    (void)state;
    random_walk(small_number);
    random_walk(many_low_zeros);
    random_walk(hashed);
}

/* ---- by hash ------------------------------------------------------------ */

static bool is_word(const void *sought, uint64_t value)
{
    return strcmp(sought, (const char *)(uintptr_t)value) == 0;
}

/* All have one hash, so that only the words tell them apart. */
static void equal_hashes_stay_apart(void **state)
{
    static const char *const word[] = {"a", "b", "c", "d", "e"};
    struct vt_map m = {0};

    (void)state;
    for (uint64_t hash = 0; hash < 2; hash++) {
        for (size_t i = 0; i < VT_COUNT(word); i++) {
            uint64_t *place;

            assert_null(vt_map_find(&m, hash, is_word, word[i]));
            place = vt_map_add(&m, hash);
            assert_non_null(place);
            *place = (uintptr_t)word[i];
        }
        vt_map_drop(&m, vt_map_find(&m, hash, is_word, "c"));
        for (size_t i = 0; i < VT_COUNT(word); i++) {
            uint64_t *place = vt_map_find(&m, hash, is_word, word[i]);

            assert_true((place != NULL) == (i != 2));
            if (place)
                assert_string_equal((const char *)(uintptr_t)*place, word[i]);
        }
        vt_map_clear(&m);
    }
    vt_map_free(&m);
}

static void names_are_claimed_once(void **state)
{
    enum { N = 1000 };
    static struct {
        int other;
        const char *name;
    } member[N];
    static char text[N][8];
    struct vt_names names = {0};
    uint32_t index;
    bool is_new;

    (void)state;
    for (uint32_t i = 0; i < N; i++) {
        int len = snprintf(text[i], sizeof(text[i]), "n%u", i);

        member[i].name = text[i];
        for (int again = 0; again < 2; again++) {
            index = again ? N : i;
            assert_int_equal(vt_names_claim(&names, &member[0].name, sizeof(member[0]),
                                            text[i], (size_t)len, &index, &is_new,
                                            NULL),
                             VT_OK);
            assert_int_equal(index, i);
            assert_int_equal(is_new, !again);
        }
    }
    /* A name is no part of another. */
    index = N;
    assert_int_equal(vt_names_claim(&names, &member[0].name, sizeof(member[0]), "n12x",
                                    3, &index, &is_new, NULL),
                     VT_OK);
    assert_int_equal(index, 12);
    vt_names_free(&names);
}

static void few_keys_of_many_fit_into_little_memory(void **state)
{
    enum { N = 100000, LEFT = 10 };
    struct vt_map m = {0};

    (void)state;
    vt_map_fit(&m);
    for (uint64_t i = 0; i < N; i++)
        *vt_map_put(&m, i) = i;
    vt_map_fit(&m);
    assert_true(m.mask >= N);
    for (uint64_t i = LEFT; i < N; i++)
        vt_map_drop(&m, vt_map_get(&m, i));
    vt_map_fit(&m);
    assert_true(m.mask < 1000);
    assert_int_equal(m.n, LEFT);
    for (uint64_t i = 0; i < 2 * LEFT; i++) {
        uint64_t *place = vt_map_get(&m, i);

        assert_true((place != NULL) == (i < LEFT));
        assert_true(!place || *place == i);
    }
    vt_map_free(&m);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_asked_of_an_empty_one),
        cmocka_unit_test(keys_come_and_go),
        cmocka_unit_test(equal_hashes_stay_apart),
        cmocka_unit_test(few_keys_of_many_fit_into_little_memory),
        cmocka_unit_test(names_are_claimed_once),
    };

    return cmocka_run_group_tests_name("maps", tests, NULL, NULL);
}
