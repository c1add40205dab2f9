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
# A person can interrupt a step that hangs. Nobody watches a run without a terminal, so that gets a limit.
step() {
    local title=$1 began=$SECONDS status=0
    shift
    printf '\n==> %s\n' "$title"
    if [ -t 0 ] || ! command -v timeout >/dev/null; then
        "$@" </dev/null || status=$?
    else
        timeout --kill-after=30s "${GLEANER_STEP_LIMIT:-45m}" "$@" </dev/null || status=$?
    fi
    case $status in
        0) printf '    %s: ok, %d s\n' "$title" $((SECONDS - began)) ;;
        124 | 137) die "FAILED: $title did not end within ${GLEANER_STEP_LIMIT:-45m} and was stopped: $*" ;;
        *) die "FAILED: $title, after $((SECONDS - began)) s, with status $status: $*" ;;
    esac
}
