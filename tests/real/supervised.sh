# A Rust frontend that Python starts and supervises: Python alone speaks the handshake.
program=$VT_ROOT/build/frontends/$VERSION/vllm-rs
VLLM_USE_RUST_FRONTEND=1 VLLM_RUST_FRONTEND_PATH=$program python_frontend
play --log-requests
wait_until_up
pgrep -P "$(pgrep -P "$frontend")" -a | grep -q "vllm-rs frontend" || fail "no Rust frontend"
check clients "$url"
both_end
