# Same input and seed: the same bytes. Another seed: others.
good simulate --seed 7 --out a
cp out a.out
good simulate --seed 7 --out b
sed 's|report: b/|report: a/|' out | cmp - a.out
for f in requests.jsonl steps.jsonl summary.json; do
    [ -s a/$f ] || fail "$f is empty"
    cmp a/$f b/$f
done
good simulate --seed 8 --out c
! cmp -s a/requests.jsonl c/requests.jsonl || fail "seed 8 gives what seed 7 gave"

# Neither the time zone nor a terminal's width shows.
TZ=Asia/Tokyo COLUMNS=40 good simulate --seed 7 --out d
cmp a/summary.json d/summary.json

# A second run replaces the first one's files, all four.
good simulate --seed 8 --out b
cmp b/summary.json c/summary.json
cmp b/steps.jsonl c/steps.jsonl
sed "s/--out [bc]/--out/" b/report.html >b.html
sed "s/--out [bc]/--out/" c/report.html | cmp - b.html
[ "$(ls b | wc -l)" -eq 4 ] || fail "other files in b: $(ls b)"
