#!/bin/sh
# Installs bough from a release: picks the archive for this machine, verifies the release's signature and the archive's
# checksum, puts the executable and the shell completions in place. Needs no root and changes nothing else.
set -eu

# What this script installs: an older release has a good signature, too, and is not taken for it.
version=0.1.0
# The key that releases are signed with, in minisign's format; `bough release-key` prints it, too.
key=RWSIviRf33Bf4SpP8Q5y6iHCVkqr01D/RNrwpE+M6rDODXMM2Jfp5kwE

usage() {
  cat <<END
Usage: install.sh [--from PLACE] [--prefix DIRECTORY] [--target NAME] [--version VERSION] [--unsigned]

  --from PLACE        a directory, or the https address of one, with the archives, SHA256SUMS and SHA256SUMS.minisig of
                      a release (default: the directory of this script)
  --prefix DIRECTORY  install into DIRECTORY/bin and DIRECTORY/share (default: ~/.local)
  --target NAME       take this archive (linux-x64, linux-arm64-musl, macos-arm64, ...) instead of the machine's own
  --version VERSION   the release that PLACE has to be (default: $version)
  --unsigned          ask for no signature: for a release that you made yourself
END
}

say() { printf '%s\n' "$*" >&2; }
fail() {
  say "error: $1"
  [ $# -lt 2 ] || say "$2"
  exit 1
}

main() {
  from='' prefix='' target='' wants_signature=yes
  while [ $# -gt 0 ]; do
    case $1 in
      --from | --prefix | --target | --version)
        [ -n "${2:-}" ] || refuse "$1 needs a value"
        case $1 in --from) from=$2 ;; --prefix) prefix=$2 ;; --target) target=$2 ;; --version) version=$2 ;; esac
        shift 2
        ;;
      --unsigned) wants_signature='' && shift ;;
      -h | --help) usage && exit 0 ;;
      *) refuse "unknown argument $1" ;;
    esac
  done
  if [ -z "$from" ]; then
    from=$(dirname "$0")
    [ -f "$from/SHA256SUMS" ] || fail "there is no release beside this script" "Name its place with --from."
  fi
  check_place
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
  if [ -n "$wants_signature" ]; then
    fetch SHA256SUMS.minisig "Only a release that you made yourself may lack its signature: --unsigned takes it."
    verify_signature
  else
    say "warning: nobody's signature was asked for (--unsigned), only checksums are verified"
  fi
  listed=$(sed -nE 's/^[0-9a-f]{64}  (bough-[0-9][^/]*\.(tar\.gz|zip))$/\1/p' "$work/SHA256SUMS")
  archive=$(printf '%s\n' "$listed" | grep -Fx -e "bough-$version-$target.tar.gz" -e "bough-$version-$target.zip" | head -n 1)
  if [ -z "$archive" ]; then
    fail "$from has no bough $version for $target" "It has: $(printf '%s\n' "$listed" | paste -s -d ' ' -)"
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

# Whoever is on the way could replace what comes over plain HTTP. On this machine's loopback nobody is.
check_place() {
  case $from in
    http://*)
      printf '%s\n' "$from" | grep -qxE 'http://(127\.0\.0\.1|localhost|\[::1])(:[0-9]+)?(/.*)?' ||
        fail "$from is plain HTTP: whoever is on the way could replace what is installed" \
          "Name an https address with --from, or a directory."
      # To a proxy the way is longer.
      unset http_proxy HTTP_PROXY all_proxy ALL_PROXY
      ;;
  esac
}

# fetch NAME [HINT]: from the release into $work.
fetch() {
  hint=${2:-}
  case $from in
    http://* | https://*)
      address=${from%/}/$1
      if command -v curl >/dev/null; then
        # From https nothing leads to http, and from loopback nothing leads anywhere.
        case $address in https:*) protocols='=https' hops=10 ;; *) protocols='=http' hops=0 ;; esac
        curl --proto "$protocols" --proto-redir "$protocols" --max-redirs "$hops" \
          --fail --silent --show-error --location --retry 3 --output "$work/$1" "$address"
      elif command -v wget >/dev/null; then
        fetch_with_wget "$address" "$work/$1"
      else
        fail "curl and wget are both missing" "Install one of them, or download the release and name its directory with --from."
      fi || fail "cannot download $address" "${hint:-Is --from the address of a directory with a release in it? Redirects to plain HTTP are not followed.}"
      ;;
    *)
      [ -f "$from/$1" ] || fail "there is no file $from/$1" "${hint:-Is --from a directory with a release in it?}"
      cp "$from/$1" "$work/$1"
      ;;
  esac
}

# fetch_with_wget ADDRESS FILE: no wget can be told to stay with https, but each, busybox's too, shows where it was led.
fetch_with_wget() {
  if ! wget -q -S -O "$2" "$1" 2>"$work/log"; then
    grep -E '^ *HTTP/|^wget:' "$work/log" | tail -n 2 >&2
    return 1
  fi
  case $1 in https:*) allowed='(https://|/)' ;; *) allowed='nowhere' ;; esac
  if grep -qi '^ *HTTP/' "$work/log" &&
    ! grep -i '^ *location:' "$work/log" | grep -qviE "^ *location:[[:space:]]*$allowed"; then
    # busybox can be built to take any certificate.
    ! grep -qi 'certificate validation not implemented' "$work/log" || is_certified=
    return 0
  fi
  rm -f "$2"
  say "a redirect leads away from where it is safe: $(grep -i '^ *location:' "$work/log" | tail -n 1)"
  return 1
}
is_certified=yes

# SHA256SUMS has to be signed with bough's key, as this version's. The signature is minisign's: a comment is signed with it.
verify_signature() {
  sums=$work/SHA256SUMS
  comment=$(sed -n '3s/^trusted comment: //p' "$sums.minisig")
  if command -v minisign >/dev/null; then
    comment=$(minisign -V -Q -P "$key" -m "$sums" 2>"$work/log") || fail_signature "$(cat "$work/log")"
  elif openssl_knows_ed25519; then
    openssl_verify || fail_signature "says openssl"
  else
    [ -n "$is_certified" ] ||
      fail "neither the server's certificate nor the signature can be verified" "Install curl, minisign or openssl, then run this again."
    say "warning: the signature was not verified, only checksums: there is neither minisign nor an openssl that knows Ed25519"
  fi
  case $comment in
    "bough $version commit "*) ;;
    *) fail "the release is not bough $version: it is signed as \"$(printf %s "$comment" | tr -cd '[:print:]')\"" \
      "Nothing has been installed. Take that release's own install.sh, or say --version." ;;
  esac
}

fail_signature() {
  fail "SHA256SUMS is not signed with bough's key: $1" "Nothing has been installed. Do not use what is in $from."
}

# By a test vector of RFC 8032 (7.1, TEST 2): older ones, and LibreSSL, lack one thing or the other.
openssl_knows_ed25519() {
  command -v openssl >/dev/null || return 1
  decode PUAXw+hDiVqStwqnTRt+vJyYLM8uxJaMwM1V8Sr0Zgw= | public_key >"$work/vector.key"
  decode kqAJqfDUyrhyDoILX2QlQKKye1QWUD+Ps3YiI+vbadoIWsHkPhWZbkWPNhPQ8R2MOHsurrQwKu6wDSkWErsMAA== >"$work/vector.sig"
  printf r >"$work/vector"
  is_signed "$work/vector" && openssl dgst -blake2b512 -binary <"$work/vector" >/dev/null 2>&1
}

# The key and the signature are two letters for the algorithm, eight bytes that name the key, and then what they are. Signed
# is the file's BLAKE2b-512, and by a second signature the first one with the comment.
openssl_verify() {
  decode "$key" >"$work/key"
  sed -n 2p "$sums.minisig" | tr -d '\r\n' | openssl base64 -d -A >"$work/signature"
  { printf ED && slice "$work/key" 2 8; } >"$work/head.wanted"
  slice "$work/signature" 0 10 >"$work/head"
  [ "$(openssl base64 -A <"$work/head")" = "$(openssl base64 -A <"$work/head.wanted")" ] || return 1
  slice "$work/signature" 10 64 >"$work/file.sig"
  openssl dgst -blake2b512 -binary <"$sums" >"$work/file"
  sed -n 4p "$sums.minisig" | tr -d '\r\n' | openssl base64 -d -A >"$work/comment.sig"
  { cat "$work/file.sig" && printf %s "$comment"; } >"$work/comment"
  for signed in file comment; do
    slice "$work/key" 10 32 | public_key >"$work/$signed.key"
    is_signed "$work/$signed" || return 1
  done
}

# is_signed FILE: by FILE.sig and FILE.key.
is_signed() {
  openssl pkeyutl -verify -rawin -in "$1" -sigfile "$1.sig" -pubin -keyform DER -inkey "$1.key" >/dev/null 2>&1
}

decode() { printf %s "$1" | openssl base64 -d -A; }

# slice FILE FROM COUNT: so many of its bytes.
slice() { dd if="$1" bs=1 skip="$2" count="$3" 2>/dev/null; }

# An Ed25519 key's 32 bytes as the DER that openssl reads (RFC 8410).
public_key() { printf '\060\052\060\005\006\003\053\145\160\003\041\000' && cat; }

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
