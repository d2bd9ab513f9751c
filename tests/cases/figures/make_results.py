#!/usr/bin/env python3
"""make_results.py DIR - writes error_records.csv and runtime.csv for tests of
`vtwin validate figures`.

The errors are made up around published medians of simulators on H100, A100 and L40S
(figure 1's values are exactly those); those of vtwin-* are invented. They test how
figures are drawn and say nothing about any simulator."""
import csv
import random
import sys

L8, Q14 = "meta-llama/Llama-3.1-8B-Instruct", "Qwen/Qwen3-14B"
C34, L70 = "codellama/CodeLlama-34b-Instruct-hf", "meta-llama/Llama-2-70b-hf"
M7, M22 = "mistralai/Mixtral-8x7B-v0.1", "mistralai/Mixtral-8x22B-Instruct-v0.1"
TP = {L8: 1, Q14: 1, C34: 2, L70: 4, M7: 2, M22: 8}

# id, model, hardware, workload, then what differs from the default
EXPERIMENTS = [
    (9, L8, "H100", "general", {}),
    (10, Q14, "H100", "general", {}),
    (11, C34, "H100", "general", {}),
    (13, L70, "H100", "general-lite", {}),
    (14, M7, "H100", "general", {}),
    (15, M22, "H100", "general", {}),
    (20, L8, "H100", "codegen", {}),
    (21, Q14, "H100", "codegen", {}),
    (22, M22, "H100", "codegen", {}),
    (23, L8, "H100", "roleplay", {}),
    (24, Q14, "H100", "roleplay", {}),
    (25, L8, "H100", "reasoning-lite", {}),
    (30, L8, "H100", "general", {"tp": 2}),
    (31, L8, "H100", "general", {"mbt": 1024}),
    (32, L8, "H100", "general", {"mbt": 8192}),
    (33, L8, "H100", "general", {"mem": 0.95}),
    (34, L8, "H100", "general", {"offload": True}),
    (35, M7, "H100", "general", {"tp": 4}),
    (36, M7, "H100", "general", {"mbt": 8192}),
    (38, M7, "H100", "general", {"dp": 2}),
    (48, L8, "A100-80GB", "general", {}),
    (49, L70, "A100-80GB", "general-lite", {}),
    (56, L8, "L40S", "general-lite", {}),
]

# Figure 1: e2e, ttft and itl mean of model after model.
FIG1 = {
    "blis-trained-physics": [(2.50, 14.7, 6.80), (7.73, 0.98, 8.33), (12.15, 0.17, 13.14),
                             (1.59, 7.23, 1.28), (6.03, 22.3, 5.02), (12.5, 28.6, 12.0)],
    "aiconfigurator-estimate": [(5.83, 120.8, 0.03), (62.7, 624, 54.8), (7.22, 435, 2.81),
                                (8.51, 659, 0.32), (34.1, 105.8, 31.5), (381.7, 1371, 370)],
    "llm-optimizer-estimate": [(40.0, 1151, 57.9), (21.1, 5064, 43.4), (18.9, 1202, 33.5),
                               (44.9, 739, 54.7), (90.9, 22.6, 91.9), (91.0, 24.3, 91.9)],
    "llmservingsim": [(21.4, 72.8, 22.3), (23.3, 70.8, 22.9), (11.7, 67.2, 10.9),
                      (17.2, 70.3, 26.6), (16.3, 93.0, 10.6), (52.4, 89.5, 64.2)],
    "vidur": [None, None, (80.9, 63.1, 80.4), (597, 23123, 326), None, None],
}
# Medians elsewhere; and seconds of a run.
OTHER = {
    "vtwin-step": (2.4, 5.1, 1.9, 0.21),
    "vtwin-trace": (4.4, 11.0, 3.6, 0.17),
    "vtwin-knob": (19.0, 48.0, 22.0, 0.09),
    "blis-trained-physics": (6.79, 18.37, 6.46, 5.71),
    "blis-roofline": (33.39, 649.6, 44.44, 2.46),
    "vidur": (618.8, 29783, 259.2, 8.56),
    "llm-optimizer-estimate": (51.72, 662.1, 60.60, 0.054),
    "aiconfigurator-estimate": (18.05, 370, 12.78, 2.06),
    "llmservingsim": (18.77, 72.51, 21.76, 199.8),
}
OVER = ("vidur", "aiconfigurator-estimate")  # the others say too little
ANALYTIC = ("llm-optimizer-estimate", "aiconfigurator-estimate")
TRUTH = {"e2e": 3600.0, "ttft": 45.0, "itl": 16.0}
COLUMNS = ["exp_id", "hardware", "dp", "cpu_offload", "gpu_mem_util", "precision", "tp",
           "max_num_batched_tokens"]


def can_run(sim, model, hw, what):
    if sim == "vidur":
        return model in (C34, L70) and hw != "L40S" and not what.get("offload")
    if sim == "llm-optimizer-estimate":
        return hw != "L40S"
    return sim != "llmservingsim" or (hw == "H100" and what.get("dp", 1) == 1)


def means_of(sim, exp, draw):
    number, model, hw, workload, _ = exp
    first = [L8, Q14, C34, L70, M7, M22].index(model)
    if number <= 15 and sim in FIG1:
        return FIG1[sim][first]
    scale = {"H100": 1, "A100-80GB": 1.9, "L40S": 1.6}[hw]
    scale *= 3 if workload.startswith("reasoning") else 1
    return tuple(m * scale * draw.uniform(0.6, 1.6) for m in OTHER[sim][:3])


def metric_rows(sim, mape, draw):
    for name, value in zip(("e2e", "ttft", "itl"), mape):
        for part, more in (("mean", 1.0), ("p90", 1.2), ("p99", 1.4)):
            if part != "mean" and (sim in ANALYTIC or name == "itl"):
                continue
            actual = TRUTH[name] * more
            error = value if part == "mean" else value * draw.uniform(0.8, 1.5)
            up = sim in OVER or error >= 100 or (name == "ttft" and sim in ANALYTIC)
            mpe = error if up else -error
            yield f"{name}_{part}", actual * (1 + mpe / 100), actual, error, mpe


def main(directory):
    draw = random.Random(7)
    errors = csv.writer(open(directory + "/error_records.csv", "w", newline=""))
    times = csv.writer(open(directory + "/runtime.csv", "w", newline=""))
    where = ["simulator", "experiment_folder", "model", "workload"]
    errors.writerow(where + ["stage_index", "metric_name", "predicted", "actual", "mape",
                             "mpe", "absolute_error"] + COLUMNS)
    times.writerow(where + ["wall_clock_seconds"] + COLUMNS)
    for exp in EXPERIMENTS:
        number, model, hw, workload, what = exp
        tail = [number, hw, what.get("dp", ""), what.get("offload", False),
                what.get("mem", 0.9), "FP16", what.get("tp", TP[model]), what.get("mbt", 2048)]
        for sim in OTHER:
            mape = means_of(sim, exp, draw) if can_run(sim, model, hw, what) else None
            if not mape:
                continue
            head = [sim, f"truth/{number}-{model.split('/')[1].lower()}", model, workload]
            for stage in ((0, -1) if number == 9 else (-1,)):
                for name, p, a, e, s in metric_rows(sim, mape, draw):
                    errors.writerow(head + [stage, name] + [f"{v:.6g}" for v in (
                        p, a, e, s, abs(p - a))] + tail)
            times.writerow(head + [f"{OTHER[sim][3] * draw.uniform(0.5, 2):.4g}"] + tail)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else ".")
