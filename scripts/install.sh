#!/bin/sh
# Installs bough from a release: picks the archive for this machine, verifies its checksum, puts the executable and
# the shell completions in place. Needs no root and changes nothing else.
set -eu

usage() {
  cat <<'END'
Usage: install.sh [--from PLACE] [--prefix DIRECTORY] [--target NAME]

  --from PLACE        a directory, or the http(s) address of one, with the archives and SHA256SUMS of a release
                      (default: the directory of this script)
  --prefix DIRECTORY  install into DIRECTORY/bin and DIRECTORY/share (default: ~/.local)
  --target NAME       take this archive (linux-x64, linux-arm64-musl, macos-arm64, ...) instead of the machine's own
END
}

say() { printf '%s\n' "$*" >&2; }
fail() {
  say "error: $1"
  [ $# -lt 2 ] || say "$2"
  exit 1
}

main() {
  from='' prefix='' target=''
  while [ $# -gt 0 ]; do
    case $1 in
      --from | --prefix | --target)
        [ -n "${2:-}" ] || refuse "$1 needs a value"
        case $1 in --from) from=$2 ;; --prefix) prefix=$2 ;; --target) target=$2 ;; esac
        shift 2
        ;;
      -h | --help) usage && exit 0 ;;
      *) refuse "unknown argument $1" ;;
    esac
  done
  if [ -z "$from" ]; then
    from=$(dirname "$0")
    [ -f "$from/SHA256SUMS" ] || fail "there is no release beside this script" "Name its place with --from."
  fi
  if [ -z "$prefix" ]; then
    [ -n "${HOME:-}" ] || fail "HOME is not set" "Name a place to install to with --prefix."
    prefix=$HOME/.local
  fi
  case $prefix in /*) ;; *) prefix=$PWD/$prefix ;; esac
  is_own=
  if [ -z "$target" ]; then
    target=$(machine)
    is_own=yes
  fi

  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
  fetch SHA256SUMS
  archive=$(sed -nE "s/^[0-9a-f]{64}  (bough-[0-9][^/]*-$target\.(tar\.gz|zip))\$/\1/p" "$work/SHA256SUMS" | head -n 1)
  if [ -z "$archive" ]; then
    known=$(sed -nE 's/^[0-9a-f]{64}  bough-[0-9.]+-(.*)\.(tar\.gz|zip)$/\1/p' "$work/SHA256SUMS" | paste -s -d ' ' -)
    fail "$from has no bough for $target" "It has: $known"
  fi
  fetch "$archive"
  verify "$archive"
  unpack "$archive"
  directory=${archive%.tar.gz}
  install_files "$work/${directory%.zip}"
}

refuse() {
  say "error: $1"
  usage >&2
  exit 2
}

# The name of this machine in archives: linux-x64, linux-arm64-musl, macos-arm64, ...
machine() {
  system=$(uname -s) processor=$(uname -m)
  case $processor in
    x86_64 | amd64) processor=x64 ;;
    aarch64 | arm64) processor=arm64 ;;
    *) fail "there is no bough for processors of the kind $processor" ;;
  esac
  case $system in
    Linux)
      if uses_musl; then printf 'linux-%s-musl\n' "$processor"; else printf 'linux-%s\n' "$processor"; fi
      ;;
    Darwin)
      # A shell that is run through Rosetta says x86_64 on Apple's own processors.
      if [ "$(sysctl -n sysctl.proc_translated 2>/dev/null || true)" = 1 ]; then processor=arm64; fi
      printf 'macos-%s\n' "$processor"
      ;;
    MINGW* | MSYS* | CYGWIN*) printf 'windows-x64\n' ;;
    *) fail "there is no bough for $system" ;;
  esac
}

# Where both C libraries are, the system's own programs are linked with glibc.
uses_musl() {
  ! getconf GNU_LIBC_VERSION >/dev/null 2>&1 && ldd --version 2>&1 | grep -qi musl
}

# fetch NAME: from the release into $work.
fetch() {
  case $from in
    http://* | https://*)
      address=${from%/}/$1
      if command -v curl >/dev/null; then
        # From https nothing leads to http.
        case $address in https:*) protocols='=https' ;; *) protocols='=http,https' ;; esac
        curl --proto "$protocols" --fail --silent --show-error --location --retry 3 --output "$work/$1" "$address"
      elif command -v wget >/dev/null; then
        wget -q -O "$work/$1" "$address"
      else
        fail "curl and wget are both missing" "Install one of them, or download the release and name its directory with --from."
      fi || fail "cannot download $address" "Is --from the address of a directory with a release in it?"
      ;;
    *)
      [ -f "$from/$1" ] || fail "there is no file $from/$1" "Is --from a directory with a release in it?"
      cp "$from/$1" "$work/$1"
      ;;
  esac
}

verify() {
  expected=$(sed -nE "s/^([0-9a-f]{64})  $1\$/\1/p" "$work/SHA256SUMS")
  if command -v sha256sum >/dev/null; then
    actual=$(sha256sum "$work/$1")
  elif command -v shasum >/dev/null; then
    actual=$(shasum -a 256 "$work/$1")
  elif command -v openssl >/dev/null; then
    actual=$(openssl dgst -sha256 -r "$work/$1")
  else
    fail "no program can compute a SHA-256: sha256sum, shasum and openssl are all missing"
  fi
  actual=${actual%% *}
  [ "$actual" = "$expected" ] || fail "$1 is corrupt: its SHA-256 is $actual, SHA256SUMS says $expected" \
    "Nothing has been installed. Download it again."
}

unpack() {
  case $1 in
    *.zip)
      command -v unzip >/dev/null || fail "unzip is missing"
      unzip -q "$work/$1" -d "$work"
      ;;
    *) tar -xzf "$work/$1" -C "$work" ;;
  esac
}

# install_files DIRECTORY: what has been unpacked, into $prefix. An executable that does not run replaces none that does.
install_files() {
  name=bough
  [ -f "$1/bough" ] || name=bough.exe
  if [ -n "$is_own" ]; then
    said=$("$1/$name" --version 2>&1) || fail "$name does not run on this machine: $said" "$(hint_for_failure)"
  else
    said=${1##*/}
  fi
  put "$1/$name" "bin/$name"
  put "$1/completions/bough.bash" share/bash-completion/completions/bough
  put "$1/completions/_bough" share/zsh/site-functions/_bough
  put "$1/completions/bough.fish" share/fish/vendor_completions.d/bough.fish
  say "installed $prefix/bin/$name ($said)"
  case :$PATH: in
    *":$prefix/bin:"*) ;;
    *)
      say "$prefix/bin is not in PATH. For this shell, and in ~/.profile or your shell's start-up file for all others:"
      # shellcheck disable=SC2016 # the line is for the user's shell
      say "  export PATH=\"$prefix/bin:\$PATH\""
      ;;
  esac
}

hint_for_failure() {
  case $target in
    *-musl) echo "It needs the C++ library; on Alpine: apk add libstdc++" ;;
    *) echo "Nothing has been installed. Another archive is chosen with --target." ;;
  esac
}

# put FILE PLACE: beside the old one first, so that whoever starts it meanwhile gets one or the other.
put() {
  place=$prefix/$2
  if ! { mkdir -p "$(dirname "$place")" && cp "$1" "$place.new.$$" && mv -f "$place.new.$$" "$place"; }; then
    fail "cannot write $place" "Install somewhere else with --prefix; root is not needed for a place of your own."
  fi
}

main "$@"
