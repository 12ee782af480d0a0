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
add --label "$LABELS"
add --build-arg "$BUILD_ARGS"
add --build-context "$BUILD_CONTEXTS"
add --output "$OUTPUTS"
[ "$PUSH" != true ] || words+=(--push)
if [ "$PUSH" = true ] || [ -n "${OUTPUTS//[[:space:]]/}" ]; then words+=(--digest-file "$work/digest"); fi
if [ "$CACHE" = true ]; then
  cache=$RUNNER_TEMP/bough-cache
  mkdir -p "$cache"
  words+=("--cache-from=type=local,src=$cache" "--cache-to=type=local,dest=$cache,mode=max,keep=$CACHE_SIZE")
fi
# A value stands in a file, never in a command line.
number=0
while IFS= read -r line || [ -n "$line" ]; do
  line=${line%$'\r'}
  case $line in
    *[![:space:]]*) ;;
    *) continue ;;
  esac
  case $line in
    id=* | type=*) words+=("--secret=$line") ;;
    *=*)
      number=$((number + 1))
      printf %s "${line#*=}" >"$work/secret$number"
      words+=("--secret=id=${line%%=*},src=$work/secret$number")
      ;;
    *)
      # The line may be a value: it is not shown.
      echo "::error title=bough::a line of the input secrets is not ID=VALUE"
      exit 2
      ;;
  esac
done <<<"$SECRETS"

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
