import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readBlocks, readSteps } from "./blocks.ts";
import { type Bindings, matchOutput } from "./expectation.ts";
import { Reader } from "./reader.ts";

const root = join(import.meta.dir, "../..");
const separator = "\u001e";

/**
 * Runs every command block of a document, from the top, after the commands that its reader has run before. Commands of a
 * `console` block must print what it shows; a command without output only has to succeed. `UPDATE_GOLDEN=1` writes the actual
 * output.
 */
export function testDocument(name: string, { before }: { before?: string } = {}): void {
  const path = join(root, name);
  const document = readFileSync(path, "utf8");
  const blocks = readBlocks(document).filter(({ notRunBecause }) => notRunBecause === undefined);
  if (blocks.length === 0) return;

  describe(name, () => {
    let reader: Reader;
    let bindings: Bindings = new Map();
    let isOutdated = false;
    /** Replacements for lines of the document, by the number of the first line. */
    const replacements = new Map<number, { count: number; lines: readonly string[] }>();

    beforeAll(async () => {
      reader = await Reader.start();
      if (before === undefined) return;
      const { exitCode, output } = await reader.run(before);
      expect({ exitCode, output }).toEqual({ exitCode: 0, output });
    });
    afterAll(async () => {
      await reader.stop();
      if (isOutdated) update();
    });

    for (const { kind, line, lines } of blocks) {
      test(`line ${line}: ${kind}`, async () => {
        if (kind === "console") await runConsole(line, lines);
        else {
          const text = lines.join("\n");
          const { exitCode, output } = await (kind === "sh" ? reader.run(text) : reader.runPipeline(text));
          expect({ exitCode, output }).toEqual({ exitCode: 0, output });
        }
      });
    }

    /** Runs all commands in one shell, so that later ones have the variables of earlier ones. */
    async function runConsole(line: number, lines: readonly string[]): Promise<void> {
      const steps = readSteps(lines);
      const script = steps
        .map(({ command }) => `${command}\nprintf '${separator}%d${separator}' $?`)
        .join("\n");
      const { output } = await reader.run(`set +e\n${script}`);
      const parts = output.split(separator);
      for (const [index, step] of steps.entries()) {
        const printed = (parts[index * 2] ?? "").replace(/\n+$/, "");
        const actual = printed === "" ? [] : printed.split("\n");
        const isFailure = step.output.some((text) => /^(\[ERROR\]|error:)/.test(text));
        expect({ command: step.command, failed: parts[index * 2 + 1] !== "0", printed }).toEqual({
          command: step.command,
          failed: isFailure,
          printed,
        });
        if (step.output.length === 0) continue;
        const shown = abridge(actual, step.output);
        replacements.set(line + step.outputStart, { count: step.output.length, lines: shown });
        const matched = matchOutput(step.output, actual, bindings);
        if (matched !== undefined) bindings = matched;
        else if (process.env.UPDATE_GOLDEN === "1") isOutdated = true;
        else expect(actual).toEqual([...step.output]);
      }
    }

    /** Replaces all outputs, not only those that have changed, so that an id is the same everywhere. */
    function update(): void {
      if (readFileSync(path, "utf8") !== document) throw new Error(`${name} has been changed meanwhile`);
      const lines = document.split("\n");
      for (const [line, { count, lines: printed }] of [...replacements].sort(
        ([one], [other]) => other - one,
      )) {
        lines.splice(line - 1, count, ...printed);
      }
      writeFileSync(path, lines.join("\n"));
    }
  });
}

/** Cuts the output as the document does: the same number of lines before and after its `...`. */
function abridge(actual: readonly string[], shown: readonly string[]): readonly string[] {
  const cut = shown.indexOf("...");
  const after = shown.length - cut - 1;
  return cut < 0 ? actual : [...actual.slice(0, cut), "...", ...actual.slice(actual.length - after)];
}
