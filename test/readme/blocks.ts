/**
 * The command blocks of a Markdown document: fenced ones of the kinds `sh` (a script), `console` (commands after `$ `, each
 * with its output) and `yaml` (a pipeline, whose jobs have a `script`). A block that can't be run has the reason in a
 * comment right above it, which the page does not show: `<!-- not run: it would ... -->`.
 */
export interface Block {
  kind: "sh" | "console" | "yaml";
  /** The number of its first line in the document, from 1. */
  line: number;
  lines: readonly string[];
  notRunBecause: string | undefined;
}

/** A command of a `console` block. */
export interface Step {
  command: string;
  /** The index of its output in the block's lines, and the lines of the output, if the block shows any. */
  outputStart: number;
  output: readonly string[];
}

const kinds = ["sh", "console", "yaml"] as const;

export function readBlocks(markdown: string): Block[] {
  const blocks: Block[] = [];
  const lines = markdown.split("\n");
  for (let at = 0; at < lines.length; at++) {
    const fence = /^(`{3,})(\S*)/.exec(lines[at] ?? "");
    if (fence === null) continue;
    const [, ticks = "", name = ""] = fence;
    const end = lines.indexOf(ticks, at + 1);
    if (end < 0) throw new Error(`line ${at + 1}: a block that does not end`);
    const kind = kinds.find((known) => known === name);
    if (kind !== undefined) {
      const [, notRunBecause] = /^<!-- not run: (.*\S) -->$/.exec(lines[at - 1] ?? "") ?? [];
      blocks.push({ kind, line: at + 2, lines: lines.slice(at + 1, end), notRunBecause });
    }
    at = end;
  }
  return blocks;
}

/** The steps of a `console` block. A line that begins with `> ` continues the command above it. */
export function readSteps(lines: readonly string[]): Step[] {
  const starts = lines.flatMap((line, index) => (line.startsWith("$ ") ? [index] : []));
  return starts.map((start, index) => {
    const all = lines.slice(start, starts[index + 1]);
    const isContinued = (line: string, at: number) => at === 0 || line.startsWith("> ");
    const count = all.findIndex((line, at) => !isContinued(line, at));
    const commands = count < 0 ? all : all.slice(0, count);
    const output = all.slice(commands.length);
    while (output.at(-1) === "") output.pop();
    return {
      command: commands.map((line) => line.slice(2)).join("\n"),
      outputStart: start + commands.length,
      output,
    };
  });
}
