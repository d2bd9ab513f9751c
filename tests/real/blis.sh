# shellcheck shell=bash
# BLIS programs beside the adapters that repeat them, on the same generated experiments: at
# most 0.1 % apart in any number (bench/blis). Each variable names a program that was built
# from that commit, with the configurations of models beside it.
ran=
while read -r name kinds; do
    [ -n "${!name-}" ] || continue
    # shellcheck disable=SC2086
    "$VT_ROOT/bench/blis" "$VTWIN" "${!name}" $kinds || fail "$name: ${!name}"
    ran=1
done <<'KINDS'
BLIS_F90A1E3A roofline trained-physics
BLIS_V0_7_9 blackbox crossmodel trained-roofline roofline
BLIS_B05154C blackbox-b05154c roofline-b05154c crossmodel-b05154c
KINDS
[ -n "$ran" ] || skip 'no BLIS program: $BLIS_F90A1E3A, $BLIS_V0_7_9 and $BLIS_B05154C name them'
