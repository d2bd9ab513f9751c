# Goldens are checked and replayed, from a directory and from a bucket; what is wrong
# with one is found and told.
shipped=$VT_ROOT/conformance
e2e=$VT_ROOT/tests/e2e
unset CONFORMANCE_BUCKET VLLM_RS AWS_ENDPOINT_URL_S3 AWS_SESSION_TOKEN AWS_PROFILE
loose=(--tolerance-ms 100 --tolerance-p99-ms 2000) # a busy machine is no failure here

# failing PATTERN ARGS: exit 1, one line on stderr, and a row that matches.
failing() {
    local pattern=$1
    shift
    vtwin conform "$@"
    [ "$status" -eq 1 ] || fail "exit $status, not 1, from: conform $* ($(cat out err))"
    [ "$(wc -l <err)" -eq 1 ] || fail "stderr of conform $*: $(cat err)"
    grep -Eq -- "$pattern" out || fail "no row '$pattern' from conform $*: $(cat out)"
}

# only NAMES...: a manifest with those goldens of the shipped one.
only() {
    local name
    rm -rf only
    mkdir only
    sed 's|"\.\./tests|"'"$VT_ROOT"'/tests|' "$shipped/models.toml" >only/models.toml
    cp "$shipped/compat.toml" only/
    ln -s "$shipped/goldens" only/goldens
    for name in "$@"; do
        awk -v RS= -v path="goldens/$name.jsonl.gz" 'index($0, path) { print $0 "\n" }' \
            "$shipped/manifest.toml"
    done >only/manifest.toml
    [ "$(grep -c '^\[\[golden' only/manifest.toml)" -eq $# ] || fail "no golden $*"
}
mine=(--manifest only/manifest.toml)

# Programs that conform started from here and that still run.
started() {
    local p
    for p in /proc/[0-9]*; do
        [ "$(readlink "$p/cwd" 2>/dev/null)" = "$PWD" ] || continue
        tr '\0' ' ' 2>/dev/null <"$p/cmdline" | grep -E 'handshake-address|served-model-name' || true
    done
}

# tiny: a manifest with a golden of three short requests.
tiny() {
    only
    cat >only/tiny.jsonl <<'JSON'
{"meta":{"vllm_version":"0.26.0","config_hash":"1111111111111111111111111111111111111111111111111111111111111111"}}
{"id":"cmpl-a-0-0123abcd","arrival_ms":5,"prompt_tokens":9,"output_tokens":4,"ttft_ms":20,"itl_ms":[5,5,7],"output_token_ids":[11,12,13,4091],"finish_reason":"stop","max_tokens":16}
{"id":"chatcmpl-b-89ab4567","arrival_ms":10,"prompt_tokens":30,"output_tokens":6,"ttft_ms":12,"itl_ms":[6,4],"itl_tokens":[2,3],"output_token_ids":[4091,22,23,24,25,26],"finish_reason":"length"}
{"id":"c","arrival_ms":900000,"prompt_tokens":1,"output_tokens":1,"ttft_ms":3,"output_token_ids":[31],"finish_reason":"repetition"}
JSON
    cat >only/manifest.toml <<TOML
[[golden]]
line = "0.26"
path = "tiny.jsonl"
sha256 = "$(sha256sum <only/tiny.jsonl | cut -c1-64)"
config_hash = "1111111111111111111111111111111111111111111111111111111111111111"
workload = "tiny"
role = "fidelity"
model = "tiny-qwen3"
TOML
}

# ---- what there is ----
good conform --manifest "$shipped/manifest.toml" --list
grep -Eq '^0.26 +v0.26.0 +yes +yes$' out
grep -q '^0.32.0-python-start ' out
good conform --manifest "$shipped/manifest.toml" --list --json
python3 -c 'import json,sys; d=json.load(open("out")); assert len(d["goldens"]) >= 7' || fail "--list --json"
good conform --manifest "$shipped/manifest.toml" --role schema
! grep -q 'tokens\|timing\|FAILED' out || fail "schema goldens: $(cat out)"
grep -q '0 failed, 0 skipped$' out

# ---- nothing to check ----
mkdir empty
cp "$shipped/compat.toml" "$shipped/models.toml" empty/
: >empty/manifest.toml
good conform --manifest empty/manifest.toml
[ "$(cat out)" = "no goldens to check" ] || fail "no goldens: $(cat out)"
good conform --manifest "$shipped/manifest.toml" --line 0.30
[ "$(cat out)" = "no goldens to check" ] || fail "none of a line: $(cat out)"

# ---- bad input ----
bad 'nowhere.toml: No such file' conform --manifest nowhere.toml
bad "line '0.99' is not in compat.toml" conform --manifest empty/manifest.toml --line 0.99
bad "role: 'both'" conform --role both
bad '/nowhere is no program' conform "${mine[@]/only/empty}" --frontend /nowhere
printf '[[golden]]\n' >empty/manifest.toml
bad "empty/manifest.toml: line 1: field 'line' is missing" conform --manifest empty/manifest.toml

# ---- replays through our own frontend ----
only 0.26.0-python-preempt 0.32.0-python-start
good conform "${mine[@]}" "${loose[@]}"
grep -Eq 'tokens +ok +through our own frontend: 8 requests, 1071 tokens' out
grep -Eq 'timing +ok +error of 8 TTFTs' out
tiny
good conform "${mine[@]}" "${loose[@]}" --json
python3 - <<'PY' || fail "--json"
import json
d = json.load(open("out"))
assert (d["ok"], d["failed"], d["skipped"]) == (6, 0, 1), d
assert {c["check"] for c in d["checks"] if c["result"] == "ok"} >= {"integrity", "tokens", "timing"}
PY
failing 'timing +FAILED .*allowed p50 0 p99 0 ms, attempt 3' "${mine[@]}" \
    --tolerance-ms 0 --tolerance-p99-ms 0

# ---- what can be wrong with a golden ----
h=1111111111111111111111111111111111111111111111111111111111111111
only 0.26.0-rust-supervised
good conform "${mine[@]}" --expect-config-hash "$(sed -n 's/^config_hash = "\(.*\)"/\1/p' only/manifest.toml)"
failing "provenance +FAILED .*expected was ${h:0:12}" "${mine[@]}" --expect-config-hash "$h"
sed -i 's/^config_hash = "....../config_hash = "000000/' only/manifest.toml
failing 'provenance +FAILED .*the manifest says 000000' "${mine[@]}"
only 0.26.0-rust-supervised
sed -i 's/^line = "0.26"/line = "0.32"/' only/manifest.toml
failing "line +FAILED .*0.26.0 is not on line 0.32" "${mine[@]}"
grep -Eq "schema +FAILED .*no key 'tensor_parallel_size', which line 0.32 requires" out
# The same on a line that is not validated is told, and fails only strictly.
sed -i 's/^line = "0.32"/line = "0.30"/' only/manifest.toml
good conform "${mine[@]}"
grep -q 'not validated' out
failing 'line +FAILED' "${mine[@]}" --strict
# Any version is on the nightly line.
sed -i 's/^line = "0.30"/line = "nightly"/' only/manifest.toml
good conform "${mine[@]}"
! grep -q failed,.*failed out || fail "nightly: $(cat out)"

only 0.26.0-rust-supervised
mkdir moved
good conform "${mine[@]}" --goldens moved
grep -q 'integrity   skipped  not in moved' out
failing 'integrity +FAILED +not in moved' "${mine[@]}" --goldens moved --strict
mkdir moved/goldens
{ zcat "$shipped/goldens/0.26.0-rust-supervised.jsonl.gz" && echo; } | gzip -n >moved/goldens/0.26.0-rust-supervised.jsonl.gz
failing 'integrity +FAILED +sha256 is' "${mine[@]}" --goldens moved
[ "$(grep -c 0.26.0-rust-supervised out)" -eq 1 ] || fail "a changed file is looked into"
# Plain instead of gzip is another file, but may be pinned as well.
zcat "$shipped/goldens/0.26.0-rust-supervised.jsonl.gz" >moved/plain.jsonl
sed -i "s/^sha256.*/sha256 = \"$(sha256sum <moved/plain.jsonl | cut -c1-64)\"/; s/^path.*/path = \"plain.jsonl\"/" only/manifest.toml
good conform "${mine[@]}" --goldens moved

# ---- frontends that do not tell the truth ----
tiny
liar=(--frontend "$e2e/lying_frontend.py" "${loose[@]}")
LIE=tokens failing 'tokens +FAILED +through e2e/lying_frontend.py: 3 of 3 requests differ; .*: token 0 is 1, not' "${mine[@]}" "${liar[@]}"
LIE=refuse failing 'tokens +FAILED .* answered 400: .*I do not like it' "${mine[@]}" "${liar[@]}"
LIE=cut failing 'tokens +FAILED .* without a finish_reason' "${mine[@]}" "${liar[@]}"
LIE=crash failing 'tokens +FAILED .*frontend ended with status 1: cannot go on' "${mine[@]}" "${liar[@]}"
[ -z "$(started)" ] || fail "left behind: $(started)"
# An id that cannot be a header is refused before anything is sent.
sed -i 's/"id":"c"/"id":"c\\nd"/' only/tiny.jsonl
sed -i "s/^sha256.*/sha256 = \"$(sha256sum <only/tiny.jsonl | cut -c1-64)\"/" only/manifest.toml
LIE=tokens failing "tokens +FAILED .*the id 'c.d' cannot be sent over HTTP" "${mine[@]}" "${liar[@]}"
tiny

# ---- stopped ----
LIE=mute "$VTWIN" conform "${mine[@]}" "${liar[@]}" >out 2>err &
job=$!
deadline=$((SECONDS + 20))
until [ "$(started | wc -l)" -eq 2 ]; do
    [ $SECONDS -lt $deadline ] || fail "nothing was started"
    sleep 0.1
done
kill -TERM $job
status=0
wait $job || status=$?
[ $status -eq 143 ] || fail "exit $status when stopped"
[ -z "$(started)" ] || fail "left behind when stopped: $(started)"

# ---- a bucket ----
mkdir -p s3/goldens
cp "$shipped/goldens/0.26.0-rust-supervised.jsonl.gz" s3/goldens/v1%2Fa%20b%2B%C3%A9.gz
cp "$shipped/goldens/0.32.0-python-start.jsonl.gz" s3/goldens/v1%2Fcut%2Fx.gz
for name in redirect plain; do cp s3/goldens/v1%2Fcut%2Fx.gz s3/goldens/v1%2F$name%2Fx.gz; done
python3 "$e2e/s3_server.py" s3 AKID 'se/cret+' >port &
server=$!
trap 'kill $server; rm -rf "$dir"' EXIT
deadline=$((SECONDS + 20))
until [ -s port ]; do
    [ $SECONDS -lt $deadline ] || fail "the S3 server does not start"
    sleep 0.1
done
export AWS_ACCESS_KEY_ID=AKID AWS_SECRET_ACCESS_KEY='se/cret+' AWS_REGION=eu-west-3
export AWS_ENDPOINT_URL=http://127.0.0.1:$(cat port)
only 0.26.0-rust-supervised
in_bucket() { sed -i "s|^\(bucket_\)\?path = .*|bucket_path = \"$1\"|" only/manifest.toml; }
in_bucket 'a b+é.gz'
good conform "${mine[@]}"
grep -q 'integrity   skipped  not in only, and no bucket is given' out
good conform "${mine[@]}" --bucket s3://goldens/v1/
grep -q ' 0 failed, 0 skipped$' out
CONFORMANCE_BUCKET=goldens/v1 good conform "${mine[@]}" --cache kept
[ "$(sha256sum kept/* | cut -c1-64)" = "$(basename kept/*)" ] || fail "cache: $(ls kept)"
in_bucket 's3://goldens/v1/a b+é.gz'
good conform "${mine[@]}"
AWS_ENDPOINT_URL=http://127.0.0.1:1 good conform "${mine[@]}" --cache kept # not asked again
AWS_SECRET_ACCESS_KEY=wrong failing 'integrity +FAILED .* 403 SignatureDoesNotMatch' "${mine[@]}"
AWS_ACCESS_KEY_ID=who failing 'integrity +FAILED .* 403 InvalidAccessKeyId' "${mine[@]}"
AWS_ACCESS_KEY_ID= failing 'integrity +FAILED .* 403 AccessDenied' "${mine[@]}"
AWS_ENDPOINT_URL=http://127.0.0.1:1 failing 'integrity +FAILED .*onnect' "${mine[@]}"
AWS_ENDPOINT_URL=ftp://127.0.0.1 failing 'integrity +FAILED .*no http address' "${mine[@]}"
in_bucket missing.gz
failing 'integrity +FAILED +s3://goldens/v1/missing.gz: S3 answered 404 NoSuchKey' "${mine[@]}" --bucket goldens/v1
failing 'integrity +FAILED .* 404 NoSuchBucket' "${mine[@]}" --bucket other-bucket
in_bucket redirect/x.gz
failing 'integrity +FAILED .*S3 answered 307' "${mine[@]}" --bucket goldens/v1
in_bucket plain/x.gz
failing 'integrity +FAILED .*S3 answered 502' "${mine[@]}" --bucket goldens/v1
in_bucket cut/x.gz
failing 'integrity +FAILED .*(transfer closed|bytes remaining)' "${mine[@]}" --bucket goldens/v1 --cache cut
[ -z "$(ls cut)" ] || fail "half a download is kept: $(ls cut)"

# ---- real frontends, where they are at hand ----
for version in 0.26.0 0.32.0; do
    rs=${VT_FRONTENDS:-$VT_ROOT/build/frontends}/$version/vllm-rs
    [ -x "$rs" ] || continue
    only 0.26.0-python-preempt 0.32.0-python-start
    sed -i 's/^role.*/role = "fidelity"/' only/manifest.toml
    VLLM_RS=$rs good conform "${mine[@]}" "${loose[@]}"
    [ "$(grep -c "tokens      ok       through $version/vllm-rs" out)" -eq 2 ] || fail "$(cat out)"
done
