#!/bin/sh
# Installs bough from a release: chooses the archive for this machine, verifies the release's signature and the archive's
# checksum, and installs the executable, the shell completions and the man pages. Needs no root and changes nothing else.
set -eu

# The version to install. An older release has a valid signature, too, but must not be installed in its place.
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
  --version VERSION   the release that PLACE must have (default: $version)
  --unsigned          do not require a signature: for a release that you made yourself
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
    [ -f "$from/SHA256SUMS" ] || fail "there is no release in the directory of this script" "Name another place with --from."
  fi
  check_place
  if [ -z "$prefix" ]; then
    [ -n "${HOME:-}" ] || fail "HOME is not set" "Name a directory to install into with --prefix."
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
    fetch SHA256SUMS.minisig "Only a release that you made yourself may lack a signature: install it with --unsigned."
    verify_signature
  else
    say "warning: the signature is not verified (--unsigned), only checksums"
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
    *) fail "there is no bough for the processor $processor" ;;
  esac
  case $system in
    Linux)
      if uses_musl; then printf 'linux-%s-musl\n' "$processor"; else printf 'linux-%s\n' "$processor"; fi
      ;;
    Darwin)
      # A shell that Rosetta runs reports x86_64 on Apple's processors.
      if [ "$(sysctl -n sysctl.proc_translated 2>/dev/null || true)" = 1 ]; then processor=arm64; fi
      printf 'macos-%s\n' "$processor"
      ;;
    MINGW* | MSYS* | CYGWIN*) printf 'windows-x64\n' ;;
    *) fail "there is no bough for $system" ;;
  esac
}

# If a system has both C libraries, its own programs are linked with glibc.
uses_musl() {
  ! getconf GNU_LIBC_VERSION >/dev/null 2>&1 && ldd --version 2>&1 | grep -qi musl
}

# Others on the network could replace what comes over plain HTTP, except on this machine's loopback.
check_place() {
  case $from in
    http://*)
      printf '%s\n' "$from" | grep -qxE 'http://(127\.0\.0\.1|localhost|\[::1])(:[0-9]+)?(/.*)?' ||
        fail "$from is plain HTTP: others on the network could replace what is installed" \
          "Name an https address with --from, or a directory."
      # A proxy may be on the network.
      unset http_proxy HTTP_PROXY all_proxy ALL_PROXY
      ;;
  esac
}

# fetch NAME [HINT]: copies a file of the release into $work.
fetch() {
  hint=${2:-}
  case $from in
    http://* | https://*)
      address=${from%/}/$1
      if command -v curl >/dev/null; then
        # Does not follow redirects from https to http, nor any redirects from loopback.
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

# fetch_with_wget ADDRESS FILE: no wget has an option to stay with https, but each, even busybox's, prints the redirects.
fetch_with_wget() {
  if ! wget -q -S -O "$2" "$1" 2>"$work/log"; then
    grep -E '^ *HTTP/|^wget:' "$work/log" | tail -n 2 >&2
    return 1
  fi
  case $1 in https:*) allowed='(https://|/)' ;; *) allowed='nowhere' ;; esac
  if grep -qi '^ *HTTP/' "$work/log" &&
    ! grep -i '^ *location:' "$work/log" | grep -qviE "^ *location:[[:space:]]*$allowed"; then
    # busybox can be built without verification of certificates.
    ! grep -qi 'certificate validation not implemented' "$work/log" || is_certified=
    return 0
  fi
  rm -f "$2"
  say "unsafe redirect: $(grep -i '^ *location:' "$work/log" | tail -n 1)"
  return 1
}
is_certified=yes

# SHA256SUMS must be signed with bough's key, for this version. In minisign's format, a comment with the version is signed, too.
verify_signature() {
  sums=$work/SHA256SUMS
  comment=$(sed -n '3s/^trusted comment: //p' "$sums.minisig")
  if command -v minisign >/dev/null; then
    comment=$(minisign -V -Q -P "$key" -m "$sums" 2>"$work/log") || fail_signature "$(cat "$work/log")"
  elif openssl_knows_ed25519; then
    openssl_verify || fail_signature "openssl cannot verify it"
  else
    [ -n "$is_certified" ] ||
      fail "neither the server's certificate nor the signature can be verified" "Install curl, minisign or openssl, then run this again."
    say "warning: the signature was not verified, only checksums: there is neither minisign nor an openssl that knows Ed25519"
  fi
  case $comment in
    "bough $version commit "*) ;;
    *) fail "the release is not bough $version: it is signed as \"$(printf %s "$comment" | tr -cd '[:print:]')\"" \
      "Nothing has been installed. Use the install.sh of that release, or --version." ;;
  esac
}

fail_signature() {
  fail "SHA256SUMS is not signed with bough's key: $1" "Nothing has been installed. Do not use what is in $from."
}

# Tries a test vector of RFC 8032 (7.1, TEST 2): older versions, and LibreSSL, lack Ed25519 or BLAKE2b.
openssl_knows_ed25519() {
  command -v openssl >/dev/null || return 1
  decode PUAXw+hDiVqStwqnTRt+vJyYLM8uxJaMwM1V8Sr0Zgw= | public_key >"$work/vector.key"
  decode kqAJqfDUyrhyDoILX2QlQKKye1QWUD+Ps3YiI+vbadoIWsHkPhWZbkWPNhPQ8R2MOHsurrQwKu6wDSkWErsMAA== >"$work/vector.sig"
  printf r >"$work/vector"
  is_signed "$work/vector" && openssl dgst -blake2b512 -binary <"$work/vector" >/dev/null 2>&1
}

# A key and a signature each have two letters for the algorithm, eight bytes for the key's id, then the key or the signature
# itself. The first signature is over the file's BLAKE2b-512, the second over the first one and the comment.
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

# is_signed FILE: verifies a file with FILE.sig and FILE.key.
is_signed() {
  openssl pkeyutl -verify -rawin -in "$1" -sigfile "$1.sig" -pubin -keyform DER -inkey "$1.key" >/dev/null 2>&1
}

decode() { printf %s "$1" | openssl base64 -d -A; }

# slice FILE FROM COUNT: prints COUNT bytes of a file.
slice() { dd if="$1" bs=1 skip="$2" count="$3" 2>/dev/null; }

# Converts the 32 bytes of an Ed25519 key to the DER that openssl reads (RFC 8410).
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

# install_files DIRECTORY: installs unpacked files into $prefix. Replaces no executable by one that does not run.
install_files() {
  name=bough
  [ -f "$1/bough" ] || name=bough.exe
  if [ -n "$is_own" ]; then
    installed=$("$1/$name" --version 2>&1) || fail "$name does not run on this machine: $installed" "$(hint_for_failure)"
  else
    installed=${1##*/}
  fi
  put "$1/$name" "bin/$name"
  put "$1/completions/bough.bash" share/bash-completion/completions/bough
  put "$1/completions/_bough" share/zsh/site-functions/_bough
  put "$1/completions/bough.fish" share/fish/vendor_completions.d/bough.fish
  for page in "$1"/man/*.1 "$1"/man/*.7; do
    # A pattern without matches stays as it is.
    [ ! -f "$page" ] || put "$page" "share/man/man${page##*.}/${page##*/}"
  done
  say "installed $prefix/bin/$name ($installed)"
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
    *) echo "Nothing has been installed. Choose another archive with --target." ;;
  esac
}

# put FILE PLACE: writes the new file beside the old one, then renames it, so that a program started meanwhile is complete.
put() {
  place=$prefix/$2
  if ! { mkdir -p "$(dirname "$place")" && cp "$1" "$place.new.$$" && mv -f "$place.new.$$" "$place"; }; then
    fail "cannot write $place" "Install into another directory with --prefix; your own directories need no root."
  fi
}

main "$@"
