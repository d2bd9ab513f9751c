# Every example workload and built-in profile runs.
for workload in "$VT_ROOT"/examples/*.yaml; do
    good simulate --workload "$workload" --json
    grep -q '"requests": [1-9]' out || fail "$workload serves nothing"
done
for file in "$VT_ROOT"/profiles/*-h200.json; do
    profile=$(basename "$file" .json)
    good profile list
    grep -q "^$profile " out || fail "$profile is not in the list"
    good simulate --profile "$profile" --arrivals closed --concurrency 16 --json
    good profile show "$profile" --json
    cp out mine.json
    good simulate --profile mine.json --arrivals closed --concurrency 16 --json
done
