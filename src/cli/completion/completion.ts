import { visible } from "../../visible.ts";
import { command, type Invocation } from "../command-line/command.ts";
import { oneOf } from "../command-line/option-values.ts";
import { powershell } from "./powershell.ts";

const shells = ["bash", "zsh", "fish", "powershell"] as const;
type Shell = (typeof shells)[number];

/**
 * The completion scripts. Each asks bough for candidates: one a line, with a tab and a description if it has one. `:files` and
 * `:directories` stand for the shell's own completion of these, and `:named-files` for files after the last `:` or `=`. If the
 * program is named in a way that only a command line understands (an alias, `~/bin/bough`), the one in PATH is asked.
 */
const scripts: Readonly<Record<Shell, string>> = {
  // bash splits a word at `:` and `=` before its first quote, and replaces only its last part.
  bash: `# bash completion for bough
_bough() {
  local line=\${COMP_LINE:0:COMP_POINT} program word prefix='' candidate
  program=$(type -P "\${COMP_WORDS[0]}") || program=bough
  word=\${line##*[[:space:]]}
  word=\${word%%[\\"\\']*}
  if [[ $COMP_WORDBREAKS == *:* && $word == *[:=]* ]]; then
    prefix=\${word%"\${word##*[:=]}"}
  fi
  COMPREPLY=()
  while IFS=$'\\t' read -r candidate _; do
    case $candidate in
      :files|:named-files) compopt -o default -o filenames 2>/dev/null ;;
      :directories) compopt -o dirnames -o filenames 2>/dev/null ;;
      */|*=) compopt -o nospace 2>/dev/null; COMPREPLY+=("\${candidate#"$prefix"}") ;;
      *) COMPREPLY+=("\${candidate#"$prefix"}") ;;
    esac
  done < <("$program" completion candidates -- "$line" 2>/dev/null)
}
complete -F _bough bough
`,

  zsh: `#compdef bough
_bough() {
  local line="\${(j: :)words[1,CURRENT-1]} $PREFIX" program candidate description
  program=$(whence -p -- "\${words[1]}") || program=bough
  local -a plain described unfinished
  while IFS=$'\\t' read -r candidate description; do
    case $candidate in
      :files) [[ $PREFIX == -* ]] && compset -P 1 '*='; _files ;;
      :directories) [[ $PREFIX == -* ]] && compset -P 1 '*='; _files -/ ;;
      :named-files) compset -P '*[:=]'; _files ;;
      */|*=) unfinished+=("$candidate") ;;
      *) plain+=("$candidate"); described+=("$candidate\${description:+ -- $description}") ;;
    esac
  done < <("$program" completion candidates -- "$line" 2>/dev/null)
  (( $#unfinished )) && compadd -S '' -- $unfinished
  (( $#plain )) && compadd -l -d described -- $plain
}
if [[ $funcstack[1] == _bough ]]; then _bough "$@"; else compdef _bough bough; fi
`,

  fish: `# fish completion for bough
function __bough_candidates
  set -l line (commandline -cp)
  set -l program (commandline -opc)[1]
  command -q -- $program; or set program bough
  for candidate in ($program completion candidates -- "$line" 2>/dev/null)
    switch $candidate
      case :files
        __bough_files '-[^=]*='
      case :directories
        __bough_files '-[^=]*=' | string match -r '^[^\\t]*/(?:\\t.*)?$'
      case :named-files
        __bough_files '.*[:=]'
      case '*'
        echo $candidate
    end
  end
end
# Completes the part of the word after what matches the pattern.
function __bough_files
  set -l parts (string match -r -- "^((?:$argv[1])?)(.*)" (commandline -ct))
  for path in (complete -C "'' $parts[3]")
    echo "$parts[2]$path"
  end
end
complete -c bough -f -a '(__bough_candidates)'
`,

  powershell,
};

export const completion = command({
  name: "completion",
  description:
    "Print the script with which a shell completes bough's command lines, including tags, sessions and branches.",
  args: {
    shell: { type: "positional", required: true, completes: shells, description: shells.join(", ") },
  },
  run: complete,
  examples: [
    ["completion bash > ~/.local/share/bash-completion/completions/bough", "bash, permanently"],
    ["completion zsh > ~/.zfunc/_bough", "zsh, with ~/.zfunc in its fpath"],
    ["completion fish > ~/.config/fish/completions/bough.fish", "fish"],
    ["completion powershell >> $PROFILE", "PowerShell, in the next session"],
  ],
  agentNote: "It only prints; in bash `source <(bough completion bash)` is enough to try it.",
  trailingCommand: "hidden",
});

/** Prints a script, or candidates: the scripts run `bough completion candidates -- LINE`, with the line up to the cursor. */
async function complete({ values, runtime, commands }: Invocation): Promise<void> {
  const [given = ""] = values.positionals;
  if (given === "candidates" && values.rest !== undefined) {
    const { findCandidates } = await import("./candidates.ts");
    for (const line of await findCandidates(values.rest.join(" "), commands, runtime))
      runtime.stdout.write(lineOf(line));
    return;
  }
  const shell: Shell = oneOf(given, shells, "SHELL");
  runtime.stdout.write(scripts[shell]);
}

/**
 * Returns the line of a candidate, which is empty if the shell would interpret one of its characters: names come from services
 * and images, and a shell inserts them unquoted. Descriptions are only shown.
 */
function lineOf(candidate: string): string {
  const [word = "", ...description] = candidate.split("\t");
  if (!harmlessWord.test(word)) return "";
  return `${[word, ...description.map(visible)].join("\t")}\n`;
}

const harmlessWord = /^[\p{L}\p{M}\p{N}._:/@=+,%-]+$/u;
