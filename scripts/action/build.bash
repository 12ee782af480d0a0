# Builds an image as the variables say, which are the action's inputs, and sets the action's outputs.
set -euo pipefail

# A directory of this user alone.
work=$(mktemp -d "$RUNNER_TEMP/bough-build.XXXXXX")
trap 'rm -rf "$work"' EXIT

words=(build --docker --metadata-file "$work/metadata.json" --iidfile "$work/imageid")
# add OPTION LINES: gives an option once for each line that is not blank.
add() {
  local line
  while IFS= read -r line || [ -n "$line" ]; do
    line=${line%$'\r'}
    [ -z "${line//[[:space:]]/}" ] || words+=("$1=$line")
  done <<<"$2"
}

[ -z "$FILE" ] || words+=("--dockerfile=$FILE")
[ -z "$TARGET" ] || words+=("--target=$TARGET")
[ -z "$CHECK" ] || words+=("--check=$CHECK")
[ "$NO_CACHE" != true ] || words+=(--no-cache)
newline=$'\n'
add --tag "${TAGS//[, ]/$newline}"
add --tag-from "$TAG_FROM"
add --label "$LABELS"
add --build-arg "$BUILD_ARGS"
add --build-context "$BUILD_CONTEXTS"
add --output "$OUTPUTS"
platforms=$(printf %s "$PLATFORMS" | tr -s ', \t\r\n' ',')
platforms=${platforms#,} platforms=${platforms%,}
[ -z "$platforms" ] || words+=("--platform=$platforms")
[ -z "$LOCK" ] || words+=("--lock=$LOCK" --locked)
[ "$PUSH" != true ] || words+=(--push)
if [ "$PUSH" = true ] || [ -n "${OUTPUTS//[[:space:]]/}" ]; then words+=(--digest-file "$work/digest"); fi
# Returns whether the job has GitHub's cache, with the second version of its protocol.
has_cache() {
  [ -n "$ACTIONS_RESULTS_URL" ] && [ -n "$ACTIONS_RUNTIME_TOKEN" ] || return 1
  case $ACTIONS_CACHE_SERVICE_V2:$ACTIONS_RESULTS_URL in
    [Tt]rue:* | 1:* | *:https://results-receiver.actions.githubusercontent.com/*) ;;
    *) return 1 ;;
  esac
}
case $CACHE in
  true)
    if has_cache; then
      words+=("--cache-from=type=gha,scope=$CACHE_KEY" "--cache-to=type=gha,scope=$CACHE_KEY,mode=max,keep=$CACHE_SIZE")
    else
      echo "::warning title=bough::this server has no cache that bough can use, so every step is built: with the input cache: directory, actions/cache keeps the layers"
    fi
    ;;
  directory)
    cache=$RUNNER_TEMP/bough-cache
    mkdir -p "$cache"
    words+=("--cache-from=type=local,src=$cache" "--cache-to=type=local,dest=$cache,mode=max,keep=$CACHE_SIZE")
    ;;
esac
# What is refused may be a value: it is not shown.
refuse_secrets() {
  echo "::error title=bough::$1"
  exit 2
}
# A value stands in a file, never in a command line.
number=0
add_secret() {
  case $1 in
    id=* | type=*) words+=("--secret=$1") ;;
    *=*)
      [[ ${1%%=*} =~ ^[A-Za-z0-9_.-]+$ ]] ||
        refuse_secrets "the input secrets has an id of other characters than letters, digits, _, . and -: a value of several lines is written in double quotes, \"ID=VALUE\""
      number=$((number + 1))
      printf %s "${1#*=}" >"$work/secret$number"
      words+=("--secret=id=${1%%=*},src=$work/secret$number")
      ;;
    *) refuse_secrets "a line of the input secrets is not ID=VALUE" ;;
  esac
}
# As for docker's action: an entry in double quotes may have several lines, and each double quote in it stands twice.
entry=
while IFS= read -r line || [ -n "$line" ]; do
  line=${line%$'\r'}
  if [ -n "$entry" ]; then
    entry+=$newline$line
  elif [ -n "${line//[[:space:]]/}" ]; then
    entry=$line
  else
    continue
  fi
  if [ "${entry:0:1}" = '"' ]; then
    quotes=${entry//[!\"]/}
    [ $((${#quotes} % 2)) = 0 ] || continue
    entry=${entry%"${entry##*[![:space:]]}"}
    [ "${entry: -1}" = '"' ] || refuse_secrets "the input secrets has text behind a closing double quote"
    entry=${entry:1:${#entry}-2}
    entry=${entry//'""'/'"'}
  fi
  add_secret "$entry"
  entry=
done <<<"$SECRETS"
[ -z "$entry" ] || refuse_secrets "a double quote in the input secrets is not closed"

bough "${words[@]}" -- "$CONTEXT"

# The metadata has text of the Dockerfile: nobody may know what ends it.
end=end-$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
{
  echo "imageid=$(cat "$work/imageid")"
  [ ! -f "$work/digest" ] || echo "digest=$(cat "$work/digest")"
  printf 'metadata<<%s\n' "$end"
  cat "$work/metadata.json"
  printf '\n%s\n' "$end"
} >>"$GITHUB_OUTPUT"
