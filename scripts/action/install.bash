# Installs a release of bough for the later steps of the job, and what its engine needs.
set -euo pipefail

fail() {
  echo "::error title=bough::$1"
  exit 1
}

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

if [ -n "$RELEASE" ]; then
  # In a repository of its own the action has the installer beside it, in bough's one directory above.
  installer=$GITHUB_ACTION_PATH/install.sh
  [ -f "$installer" ] || installer=$GITHUB_ACTION_PATH/../install.sh
  sh "$installer" --from "$RELEASE" ${VERSION:+--version "$VERSION"} --prefix "$RUNNER_TEMP/bough"
  echo "$RUNNER_TEMP/bough/bin" >>"$GITHUB_PATH"
  PATH=$RUNNER_TEMP/bough/bin:$PATH
else
  command -v bough >/dev/null || fail "there is no bough in the PATH: the input release names what to install"
fi
# A service needs none of it.
[ -z "${CONTREE_URL:-}" ] || PACKAGES=
if [ -z "$PACKAGES" ] || [ "$(uname -s)" != Linux ]; then exit 0; fi
if ! { command -v crun || command -v runc; } >/dev/null || ! command -v skopeo >/dev/null ||
  ! command -v slirp4netns >/dev/null || ! command -v newuidmap >/dev/null; then
  read -ra packages <<<"$PACKAGES"
  as_root apt-get -qq update
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq install --no-install-recommends "${packages[@]}"
fi
# Ubuntu lets ordinary users make user namespaces only if their program has a profile of AppArmor.
restriction=/proc/sys/kernel/apparmor_restrict_unprivileged_userns
if [ "$(id -u)" != 0 ] && [ "$(cat "$restriction" 2>/dev/null || echo 0)" = 1 ]; then
  echo 0 | sudo tee "$restriction" >/dev/null
fi
