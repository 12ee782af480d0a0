export const shells = ["bash", "zsh", "fish"] as const;
export type Shell = (typeof shells)[number];

/**
 * The completion scripts. Each asks bough for candidates: one a line, with a tab and a description if it has one. `:files` and
 * `:directories` stand for the shell's own completion of these.
 */
export const scripts: Readonly<Record<Shell, string>> = {
  // bash splits a word at `:` and `=`, and replaces only its last part.
  bash: `# bash completion for bough
_bough() {
  local line=\${COMP_LINE:0:COMP_POINT} word prefix='' candidate
  word=\${line##*[[:space:]]}
  if [[ $COMP_WORDBREAKS == *:* && $word == *[:=]* ]]; then
    prefix=\${word%"\${word##*[:=]}"}
  fi
  COMPREPLY=()
  while IFS=$'\\t' read -r candidate _; do
    case $candidate in
      :files) compopt -o default -o filenames 2>/dev/null ;;
      :directories) compopt -o dirnames -o filenames 2>/dev/null ;;
      */) compopt -o nospace 2>/dev/null; COMPREPLY+=("\${candidate#"$prefix"}") ;;
      *) COMPREPLY+=("\${candidate#"$prefix"}") ;;
    esac
  done < <("\${COMP_WORDS[0]}" completion candidates -- "$line" 2>/dev/null)
}
complete -F _bough bough
`,

  zsh: `#compdef bough
_bough() {
  local line="\${(j: :)words[1,CURRENT-1]} $PREFIX" candidate description
  local -a plain described directories
  while IFS=$'\\t' read -r candidate description; do
    case $candidate in
      :files) _files ;;
      :directories) _files -/ ;;
      */) directories+=("$candidate") ;;
      *) plain+=("$candidate"); described+=("$candidate\${description:+ -- $description}") ;;
    esac
  done < <("\${words[1]}" completion candidates -- "$line" 2>/dev/null)
  (( $#directories )) && compadd -S '' -- $directories
  (( $#plain )) && compadd -l -d described -- $plain
}
if [[ $funcstack[1] == _bough ]]; then _bough "$@"; else compdef _bough bough; fi
`,

  fish: `# fish completion for bough
function __bough_candidates
  set -l line (commandline -cp)
  set -l words (commandline -opc)
  for candidate in ($words[1] completion candidates -- "$line" 2>/dev/null)
    switch $candidate
      case :files
        __fish_complete_path (commandline -ct)
      case :directories
        __fish_complete_directories (commandline -ct)
      case '*'
        echo $candidate
    end
  end
end
complete -c bough -f -a '(__bough_candidates)'
`,
};
