# shellcheck shell=bash
# Sourced by the scripts beside it: where the project is, how to speak, how to run one step.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# A shell started by make or a CI runner often lacks rustup's folder, and an ordinary user's lacks
# sbin, where Debian keeps pgbouncer. Last in line, so that what the user chose comes first.
PATH="$PATH:${CARGO_HOME:-${HOME:-/root}/.cargo}/bin:/usr/local/sbin:/usr/sbin"
export PATH
# Under `make -j` cargo would look for a job server that make does not share with scripts.
unset MAKEFLAGS MFLAGS MAKELEVEL

# newer_or_same VERSION LEAST
newer_or_same() { [ "$(printf '%s\n' "$1" "$2" | sort -V | head -n 1)" = "$2" ]; }

say() { printf '%s\n' "$*" >&2; }
die() {
    say "$*"
    exit 1
}

# step TITLE COMMAND…: a heading, the command, how long it took; the first failure ends the script.
# A person can interrupt a step that hangs. A run without a terminal gets a time limit.
step() {
    local title=$1 began=$SECONDS status=0
    shift
    printf '\n==> %s\n' "$title"
    if [ -t 0 ] || ! command -v timeout >/dev/null; then
        "$@" </dev/null || status=$?
    else
        # Beside us, not before us: a shell that waits for its foreground does not hear signals.
        timeout --kill-after=30s "${GLEANER_STEP_LIMIT:-45m}" "$@" </dev/null &
        running=$!
        wait "$running" || status=$?
        running=
    fi
    case $status in
        0) printf '    %s: ok, %d s\n' "$title" $((SECONDS - began)) ;;
        124 | 137) die "FAILED: $title did not end within ${GLEANER_STEP_LIMIT:-45m} and was stopped: $*" ;;
        *) die "FAILED: $title, after $((SECONDS - began)) s, with status $status: $*" ;;
    esac
}

# beside COMMAND…: starts it, usually a function of steps, beside what follows. What it says is kept for `meet`.
running=
beside_pid=
beside_log=
beside() {
    beside_log=$(mktemp "${TMPDIR:-/tmp}/gleaner-beside.XXXXXX")
    # Whatever ends us ends it.
    trap 'leave' EXIT
    trap 'exit 143' TERM
    trap 'exit 130' INT
    {
        trap '[ -z "$running" ] || kill -TERM "$running"; exit 143' TERM
        "$@"
    } </dev/null >"$beside_log" 2>&1 &
    beside_pid=$!
}
# meet: waits for what runs beside, shows what it said, and fails if it failed.
meet() {
    local status=0
    wait "$beside_pid" || status=$?
    beside_pid=
    cat "$beside_log"
    [ "$status" = 0 ] || die "FAILED, beside the steps above it."
}
leave() {
    local status=$?
    trap - EXIT TERM INT
    [ -z "$running" ] || kill -TERM "$running" 2>/dev/null || true
    if [ -n "$beside_pid" ] && kill -TERM "$beside_pid" 2>/dev/null; then wait "$beside_pid" || true; fi
    rm -f "$beside_log"
    exit "$status"
}

# The programs that clients are tested with, as `cargo test --workspace` builds them: a package alone would get other features of
# its dependencies, and most of them would be compiled once more.
build_programs() { cargo build --locked --quiet --workspace --bin gleaner --examples; }
