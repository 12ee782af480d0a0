import { visible } from "../../visible.ts";
import { command, type Invocation } from "../command-line/command.ts";
import { oneOf } from "../command-line/option-values.ts";
import { type Shell, scripts, shells } from "./completion-scripts.ts";

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
  ],
  agentNote: "It only prints; in bash `source <(bough completion bash)` is enough to try it.",
  takesRest: "hidden",
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
