# install.sh - what `cmake --install` leaves is a program that runs, pages and completions
# in their places, and a library that others can build on, by pkg-config and by CMake.
# shellcheck shell=bash

prefix=$PWD/prefix
build=$(dirname "$VTWIN")
cmake --install "$build" --prefix "$prefix" >log || fail "cmake --install: $(tail -n 3 log)"
lib=$(dirname "$(find "$prefix" -name libvtwin.so)")

for file in bin/vtwin include/vtwin/vtwin.h include/vtwin/engine.h include/vtwin/latency.h \
    include/vtwin/sim.h include/vtwin/ask.h share/man/man1/vtwin.1 share/man/man1/vtwin-simulate.1 \
    share/bash-completion/completions/vtwin share/zsh/site-functions/_vtwin \
    share/doc/vtwin/README.md share/doc/vtwin/docs/simulate.md; do
    [ -s "$prefix/$file" ] || fail "not installed: $file"
done
[ "$("$prefix/bin/vtwin" --version)" = "$("$VTWIN" --version)" ] || fail "the program"
[ "$(readlink "$lib/libvtwin.so")" = libvtwin.so.0 ] || fail "libvtwin.so's soname"

# The library has none of what serves and shows nothing but its face.
if readelf -d "$lib/libvtwin.so" | grep -E 'NEEDED.*(zmq|curl)'; then
    fail "libvtwin needs more than it should"
fi
nm -D --defined-only "$lib/libvtwin.so" | awk '{ print $3 }' >shown
grep -q '^vtwin_simulate$' shown || fail "vtwin_simulate is not exported"
case $build in */asan) ;; *)
    if grep -v '^vtwin_' shown; then fail "libvtwin exports what is not its face"; fi ;;
esac

# By pkg-config. A sanitized library wants a sanitized program.
case $build in */asan) flags=-fsanitize=address,undefined cc=clang ;; *) flags= cc=cc ;; esac
export PKG_CONFIG_PATH=$lib/pkgconfig LD_LIBRARY_PATH=$lib
# shellcheck disable=SC2046,SC2086
$cc -Wall -Wextra -Werror -std=c11 $flags "$VT_ROOT/examples/embed.c" -o embed \
    $(pkg-config --cflags --libs vtwin) ||
    fail "embed.c by pkg-config"
./embed >by_pkgconfig || fail "embed: $(cat by_pkgconfig)"
[ "$(wc -l <by_pkgconfig)" -eq 8 ] || fail "embed says: $(cat by_pkgconfig)"
grep -qE '^request 0: TTFT [0-9]+\.[0-9] ms, E2E [0-9]+\.[0-9] ms$' by_pkgconfig ||
    fail "embed says: $(cat by_pkgconfig)"

# By CMake, from C and with the headers read as C++.
mkdir consumer
cat >consumer/CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.20)
project(consumer LANGUAGES C)
find_package(vtwin 0.2 REQUIRED CONFIG)
add_executable(embed ${EMBED})
target_link_libraries(embed PRIVATE vtwin::vtwin)
END
cmake -S consumer -B consumer/build -DCMAKE_PREFIX_PATH="$prefix" \
    -DCMAKE_C_COMPILER=$cc -DCMAKE_C_FLAGS="$flags" \
    -DEMBED="$VT_ROOT/examples/embed.c" >log 2>&1 &&
    cmake --build consumer/build >log 2>&1 || fail "embed.c by CMake: $(tail -n 5 log)"
consumer/build/embed | diff - by_pkgconfig || fail "the two builds differ"
