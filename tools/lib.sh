# shellcheck shell=bash disable=SC2034,SC2154
# lib.sh - what ./run and ./test share: packages and quiet builds. Sourced by bash
# with $root set to the repository.

build_packages=(gcc libc6-dev cmake ninja-build pkg-config zlib1g-dev libyaml-dev libssl-dev
    libzmq3-dev libpcre2-dev)
test_packages=(chromium-headless-shell clang clang-tidy cppcheck curl gnuplot-nox libclang-rt-14-dev
    libcmocka-dev libjansson-dev libmsgpack-dev lld openssl python3 python3-pip)

die() {
    echo "${0##*/}: $*" >&2
    exit 3
}

# quietly LOG COMMAND...: output only if it fails.
quietly() {
    local log=$1
    shift
    if ! "$@" >"$log" 2>&1; then
        cat "$log" >&2
        echo "${0##*/}: failed: $*" >&2
        return 1
    fi
}

# counted LOG COMMAND...: the same; while it runs, a line on the terminal that rewrites
# itself says how far ninja is. Elsewhere nothing does.
counted() {
    local log=$1 line
    [ -t 2 ] || {
        quietly "$@"
        return
    }
    shift
    if ! "$@" 2>&1 | tee "$log" | while IFS= read -r line; do
        case $line in "["[0-9]*) printf '\r\033[K%s' "${line:0:78}" >&2 ;; esac
    done; then
        printf '\r\033[K' >&2
        cat "$log" >&2
        echo "${0##*/}: failed: $*" >&2
        return 1
    fi
    printf '\r\033[K' >&2
}

# need PACKAGES...: installs the missing ones. Elsewhere than on Debian the tools are
# the user's affair, and CMake says what it lacks.
need() {
    local missing=() as_root=() log p
    command -v dpkg-query >/dev/null || return 0
    for p in "$@"; do
        [ "$(dpkg-query -W -f='${db:Status-Status}' "$p" 2>/dev/null)" = installed ] ||
            missing+=("$p")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null || die "please install: ${missing[*]}"
        as_root=(sudo)
    fi
    echo "${0##*/}: installing ${missing[*]}" >&2
    log=$(mktemp)
    as_root+=(env DEBIAN_FRONTEND=noninteractive)
    quietly "$log" "${as_root[@]}" apt-get -q update || die "apt-get update failed"
    quietly "$log" "${as_root[@]}" apt-get -q -y --no-install-recommends install \
        "${missing[@]}" || die "apt-get install failed"
    rm -f "$log"
}

# Where a preset of CMakePresets.json builds.
tree() {
    if [ "$1" = release ]; then echo "$root/build"; else echo "$root/build/$1"; fi
}

# A tree holds absolute paths: it is worthless once the repository has moved.
drop_if_moved() {
    if [ -e "$1/CMakeCache.txt" ] &&
        ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$1/CMakeCache.txt"; then
        rm -rf "$1"
    fi
    mkdir -p "$1"
}

# configure PRESET [-Dx=y...]: unless the tree is already what is asked for.
configure() {
    local dir asked="$*"
    dir=$(tree "$1")
    drop_if_moved "$dir"
    if [ -e "$dir/build.ninja" ] && [ "$(cat "$dir/asked" 2>/dev/null)" = "$asked" ]; then
        return 0
    fi
    (cd "$root" && quietly "$dir/configure.log" cmake --preset "$@") || return 1
    echo "$asked" >"$dir/asked"
}

# The same for a user's build, which keeps what ./test may have asked of the tree.
configure_once() {
    local dir
    dir=$(tree "$1")
    drop_if_moved "$dir"
    [ -e "$dir/build.ninja" ] || configure "$1"
}

# compile PRESET TARGETS...
compile() {
    local dir
    dir=$(tree "$1")
    shift
    counted "$dir/build.log" ninja -C "$dir" "$@"
}

# The binary's sources changed since it was built. Removing a file shows as well: it
# changes the directory.
stale() {
    [ ! -x "$root/build/vtwin" ] || [ ! -e "$root/build/built" ] ||
        [ -n "$(cd "$root" && find src profiles CMakeLists.txt tools/embed \
            -newer build/built -print -quit)" ]
}

# compile_release TARGETS...: remembers when the sources were read, not when the build
# ended, so that an edit in between counts as new.
compile_release() {
    touch "$root/build/building"
    compile release "$@" || return 1
    mv "$root/build/building" "$root/build/built"
}
