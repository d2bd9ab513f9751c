# vtwin validate figures: pictures, a table and a page of what validate found.
cases=$VT_ROOT/tests/cases/figures
figures="fig1_model_sensitivity fig2_hardware_portability fig3_workload_sensitivity
fig4a_config_dense fig4b_config_moe fig5_pareto fig6_blis_roofline_vs_trained"

# ---- the results are what their script makes ----
mkdir made
python3 "$cases/make_results.py" made
cmp made/error_records.csv "$cases/results/error_records.csv"
cmp made/runtime.csv "$cases/results/runtime.csv"

# ---- all of them ----
good validate figures --results-dir "$cases/results" --output-dir drawn
[ "$(grep -c '^OK: ' out)" -eq 9 ] || fail "not all were drawn: $(cat out)"
for name in $figures; do
    [ "$(head -c 5 "drawn/$name.pdf")" = %PDF- ] || fail "$name.pdf is none"
    [ "$(head -c 4 "drawn/$name.png" | tail -c 3)" = PNG ] || fail "$name.png is none"
    [ "$(wc -c <"drawn/$name.pdf")" -gt 8000 ] || fail "$name.pdf is trivial"
    [ "$(wc -c <"drawn/$name.png")" -gt 30000 ] || fail "$name.png is trivial"
    grep -aq 'CreationDate (D:20000101000000' "drawn/$name.pdf" || fail "$name.pdf is dated"
    grep -q "id=\"$name\"" drawn/report.html || fail "$name is not on the page"
done
[ "$(grep -c '<svg' drawn/report.html)" -eq 7 ] || fail "the page has not seven figures"
grep -q 'font-family="serif" font-weight="bold"' drawn/report.html || fail "no bold titles"
grep -q 'serif:' drawn/report.html && fail "a font that browsers do not know"
grep -Eq 'src=|href="http' drawn/report.html && fail "the page needs other files"
grep -q '^vtwin step & 0\.[0-9] & [0-9]*\$\\times\$' drawn/table1_runtime.tex

# ---- the paper's view, exclusions, nothing to draw ----
good validate figures --results-dir "$cases/results" --output-dir paper --paper \
    --exclude-simulators vidur,llmservingsim
grep -q Roofline paper/table1_runtime.tex && fail "--paper shows BLIS-Roofline"
grep -q LLMServingSim paper/table1_runtime.tex || fail "exclusions reach beyond figure 4"
(head -1 "$cases/results/error_records.csv"
    grep '^vtwin-step,.*/10-' "$cases/results/error_records.csv") >made/error_records.csv
good validate figures --results-dir made
grep -qx 'OK: fig1_model_sensitivity' out
grep -qx 'SKIP: fig4b_config_moe (insufficient data)' out
[ -s made/figures/report.html ] || fail "no page in results/figures"

# ---- other hardware, models and workloads than the paper's ----
sed 's/,H100,/,H200,/; s/,general,/,mine,/; s/Qwen3-14B/Qwen3-99B/' \
    made/error_records.csv >rows && mv rows made/error_records.csv
good validate figures --results-dir made
grep -qx 'OK: fig1_model_sensitivity' out
good validate figures --results-dir made --paper
grep -qx 'SKIP: fig1_model_sensitivity (insufficient data)' out

# ---- refusals ----
bad 'error_records.csv: ' validate figures --results-dir nowhere --output-dir x
sed '3s/e2e_/e3e_/' "$cases/results/error_records.csv" >made/error_records.csv
bad "error_records.csv: line 3: column 'metric_name' must be" \
    validate figures --results-dir made --output-dir x

# ---- samples count as whole experiments where those are at hand, by what they are called ----
mkdir -p moved/data/one/results sampled
echo '{"successes": {"count": 3000, "throughput": {"requests_per_sec": 10}}}' \
    >moved/data/one/results/summary_lifecycle_metrics.json
{
    head -1 "$cases/results/error_records.csv"
    grep -m 1 '^llmservingsim,.*,-1,e2e_mean,' "$cases/results/error_records.csv" |
        sed 's/^llmservingsim,[^,]*,/llmservingsim,far\/away\/one,/'
} >sampled/error_records.csv
{
    head -1 "$cases/results/runtime.csv"
    grep -m 1 '^llmservingsim,' "$cases/results/runtime.csv" |
        sed 's/^llmservingsim,[^,]*,/llmservingsim,far\/away\/one,/'
} >sampled/runtime.csv
seconds() { # of the point in figure 5, as the page's numbers have it
    good validate figures --results-dir sampled --output-dir sampled/figures "$@"
    python3 - sampled/figures/table1_runtime.tex <<'PY'
import re, sys
print(re.search(r"LLMServingSim & ([0-9.]+) & ([0-9.]+)", open(sys.argv[1]).read()).group(2))
PY
}
alone=$(seconds)
[ "$(seconds --data-dir moved/data)" != "$alone" ] || fail "--data-dir changes nothing: $alone"
