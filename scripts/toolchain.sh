# Sourced by the other scripts: installs Bun and the packages, on request also the programs that the engine runs.
# shellcheck shell=sh
set -eu
cd "$(dirname "$0")/.."

say() { printf '%s\n' "$*" >&2; }

# Finds the Bun that package.json pins in node_modules, our cache or PATH, or installs it from the npm registry. Does not
# run its install script: the executable is taken from the platform's package.
bring_bun() {
  bun_version=$(sed -n 's/.*"packageManager": "bun@\([^"]*\)".*/\1/p' package.json)
  bun_cache="${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/bough-toolchain/bun-$bun_version"
  if ! find_bun; then
    command -v npm >/dev/null || { say "error: npm is missing; install Node.js with npm (Debian: apt-get install npm)"; exit 1; }
    say "fetching Bun $bun_version from the npm registry"
    # npm would take existing files for those that it has installed.
    rm -rf "$bun_cache"
    mkdir -p "$bun_cache"
    npm install --prefix "$bun_cache" --ignore-scripts --no-save --no-audit --no-fund --loglevel=error "bun@$bun_version" >&2
    find_bun || { say "error: the npm package bun@$bun_version has no executable for this machine that scripts/bun.sha512 knows"; exit 1; }
  fi
  PATH="$(dirname "$bun"):$PATH"
  export PATH
}

find_bun() {
  for bun in node_modules/@oven/bun-*/bin/bun "$bun_cache"/node_modules/@oven/bun-*/bin/bun "$(command -v bun || true)"; do
    case $bun in /*) ;; *) bun="$PWD/$bun" ;; esac
    [ -f "$bun" ] && [ -x "$bun" ] || continue
    if ! is_pinned "$bun"; then
      say "not used: $bun is not the Bun $bun_version that scripts/bun.sha512 has the digest of"
    # The digest is known, but it may be for another machine: npm can install those for glibc and for musl.
    elif [ "$("$bun" --version 2>/dev/null)" = "$bun_version" ]; then
      return 0
    fi
  done
  return 1
}

# is_pinned FILE: compares the file's digest. The version that a program prints proves nothing.
is_pinned() {
  if command -v sha512sum >/dev/null; then digest=$(sha512sum <"$1")
  elif command -v shasum >/dev/null; then digest=$(shasum -a 512 <"$1")
  elif command -v openssl >/dev/null; then digest=$(openssl dgst -sha512 -r <"$1")
  else say "error: no program can compute a SHA-512: sha512sum, shasum and openssl are all missing"; exit 1
  fi
  grep -q "^${digest%% *}  @oven/bun-[a-z0-9-]*@$bun_version\$" scripts/bun.sha512
}

bring_packages() {
  bring_bun
  bun install --frozen-lockfile --ignore-scripts --silent >&2
}

# bring_programs PROGRAM[:PACKAGE[/PACKAGE]]...: installs programs from Debian packages, by default of the same name. Of two packages the
# first is taken if the release has it: Debian 13 has split some.
bring_programs() {
  missing=
  for wanted; do
    PATH="$PATH:/usr/sbin:/sbin" command -v "${wanted%:*}" >/dev/null || missing="$missing ${wanted#*:}"
  done
  [ -z "$missing" ] && return 0
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then without_services apt-get update -qq; fi
  missing=$(for package in $missing; do printf ' %s' "$(available_package "$package")"; done)
  install="apt-get install --yes --no-install-recommends ca-certificates$missing"
  if [ "$(id -u)" != 0 ]; then
    say "error: missing:$missing. Install them, then run this again:"
    say "  sudo $install"
    exit 1
  fi
  command -v apt-get >/dev/null || { say "error: missing:$missing, and apt-get is missing, too: install them with your system's package manager"; exit 1; }
  say "installing$missing from Debian's packages"
  without_services sh -ec "$install -qq"
}

# available_package PACKAGE[/PACKAGE]: the first that apt knows, else the last.
available_package() {
  case $1 in
    */*) if apt-cache show "${1%%/*}" >/dev/null 2>&1; then echo "${1%%/*}"; else echo "${1#*/}"; fi ;;
    *) echo "$1" ;;
  esac
}

# without_services COMMAND...: lets a command install packages whose services are neither started nor enabled. Docker's would
# change the firewall, for instance. invoke-rc.d(8) describes the policy, which deb-systemd-invoke obeys, too.
without_services() (
  policy=/usr/sbin/policy-rc.d
  services=$(enabled_services)
  trap 'remove_policy; disable_other_services' EXIT
  trap 'exit 130' INT
  trap 'exit 143' HUP TERM
  # An existing policy is the administrator's. This one allows everything if the script is killed before it can remove it.
  if [ -e "$policy" ]; then policy=
  else
    printf '#!/bin/sh\n! kill -0 %s 2>/dev/null || exit 101\n' "$$" >"$policy"
    chmod 755 "$policy"
  fi
  # Hides dpkg's progress, and also debconf's and the policy's remarks, but no error.
  said=$(DEBIAN_FRONTEND=noninteractive "$@" 2>&1 >/dev/null) || { status=$?; say "$said"; exit "$status"; }
)

remove_policy() { [ -z "$policy" ] || rm -f "$policy"; }

disable_other_services() {
  for link in $(enabled_services); do
    case " $(echo $services) " in *" $link "*) ;; *) rm "$link" ;; esac
  done
  [ ! -d /run/systemd/system ] || systemctl daemon-reload
}

# systemd's names have no spaces.
enabled_services() { [ ! -d /etc/systemd ] || find /etc/systemd -type l; }
