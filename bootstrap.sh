#!/bin/sh
# Make a virtual environment with everything that kt needs, from whatever this machine has.
#
#   sh bootstrap.sh DIR      create DIR (a venv), install the pinned dependencies and this project, editable
#   sh bootstrap.sh --lock   rewrite requirements.lock (needs uv, or a pip that can fetch it)
#
# Looked for, in this order: a Python >= 3.12 on PATH, in pyenv, in the usual places; then uv; then a pip for uv.
set -eu

say() { printf 'kt set-up: %s\n' "$*" >&2; }

new_enough() { "$1" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 12))' >/dev/null 2>&1; }

find_python() {
    for name in "${PYTHON:-}" python3.13 python3.12 python3.14 python3 python; do
        [ -n "$name" ] || continue
        path=$(command -v "$name" 2>/dev/null) || continue
        if new_enough "$path"; then printf '%s\n' "$path"; return 0; fi
    done
    home=$(getent passwd "$(id -u)" 2>/dev/null | cut -d: -f6) || home=
    for root in "${PYENV_ROOT:-}" "${HOME:-}/.pyenv" "$home/.pyenv" /opt/homebrew /usr/local "${HOME:-}/.local"; do
        [ -d "$root" ] || continue
        for path in "$root"/versions/3.1[2-9]*/bin/python3 "$root"/bin/python3.1[2-9]; do
            [ -x "$path" ] || continue
            if new_enough "$path"; then printf '%s\n' "$path"; return 0; fi
        done
    done
    return 1
}

find_uv() {
    for path in "$(command -v uv 2>/dev/null || true)" "${HOME:-}/.local/bin/uv" "${HOME:-}/.cargo/bin/uv"; do
        if [ -n "$path" ] && "$path" --version >/dev/null 2>&1; then printf '%s\n' "$path"; return 0; fi
    done
    return 1
}

fetch_uv() { # $1: a folder to put it in
    for name in python3 python; do
        command -v "$name" >/dev/null 2>&1 || continue
        say "no Python >= 3.12 found: fetching uv with $name -m pip, to get one"
        "$name" -m pip install -qq --target "$1" uv >&2 || continue
        printf '%s\n' "$1/bin/uv"
        return 0
    done
    return 1
}

if [ "${1:-}" = --lock ]; then
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    uv=$(find_uv) || uv=$(fetch_uv "$scratch")
    printf '# Rewritten by `make lock` from pyproject.toml; do not edit.\n' > requirements.lock
    "$uv" pip compile pyproject.toml --group dev --universal --generate-hashes --no-header --quiet \
        --no-emit-index-url --python-version 3.12 >> requirements.lock
    exit 0
fi

venv=${1:?a folder for the virtual environment is wanted: sh bootstrap.sh .venv}

if python=$(find_python); then
    say "using $python ($("$python" --version))"
    "$python" -m venv --clear "$venv"
else
    uv=$(find_uv) || { mkdir -p "$venv.uv" && uv=$(fetch_uv "$venv.uv"); } || {
        say "got: no Python >= 3.12, no uv and no pip; wanted: one of them."
        say "do: install Python 3.12 or later (or uv) and run make again."
        exit 1
    }
    say "using $uv to make a Python 3.12 environment"
    "$uv" venv --quiet --clear --seed --python '>=3.12' "$venv"
fi

say "installing the pinned dependencies (this takes a minute the first time)"
if uv=$(find_uv); then
    VIRTUAL_ENV="$venv" "$uv" pip install --quiet --python "$venv/bin/python" --require-hashes -r requirements.lock
    VIRTUAL_ENV="$venv" "$uv" pip install --quiet --python "$venv/bin/python" --no-deps --no-build-isolation -e .
else
    "$venv/bin/python" -m pip install -qq --require-hashes -r requirements.lock
    "$venv/bin/python" -m pip install -qq --no-deps --no-build-isolation -e .
fi
say "ready: $venv/bin/kt"
