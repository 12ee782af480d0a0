/**
 * Examples of the manual can be copied as they are shown: each block of each topic is found in what the terminal shows, and parsed there.
 * A long comment may be on a line of its own.
 */
import { describe, expect, test } from "bun:test";
import { parse } from "yaml";
import { showTopic, topics } from "../../src/cli/help/topics.ts";
import type { Output } from "../../src/cli/process/runtime.ts";

const indent = "    ";
const withoutComment = (line: string) => line.replace(/(^|\s+)# .*$/, "").trimEnd();

interface Shown {
  /** The kind of block: `sh` for one without a name, which is what people type. */
  kind: string;
  source: string;
  /** `undefined`: no part of the topic has these lines. */
  shown: string | undefined;
}

function shownBlocks(name: string, columns: number): Shown[] {
  let text = "";
  const output: Output = {
    ...{ columns, rows: 24, isTerminal: false, hasColor: false },
    ...{ write() {}, flush: async () => {}, onResize: () => () => {} },
    writeAlone(render) {
      text += render(columns);
    },
  };
  showTopic(name, output, {});
  const lines = text
    .split("\n")
    .map((line) => (line.startsWith(indent) ? line.slice(indent.length) : undefined));
  const blocks = [...(topics[name]?.markdown ?? "").matchAll(/^```(\w*)\n(.*?)^```$/gms)];
  let start = 0;
  return blocks.map(([, kind = "", source = ""]) => {
    const commands = source
      .split("\n")
      .map(withoutComment)
      .filter((line) => line !== "");
    const at = lines.findIndex((_, from) => from >= start && endOf(lines, from, commands) !== undefined);
    const end = at < 0 ? undefined : endOf(lines, at, commands);
    start = end ?? start;
    return {
      kind: kind || "sh",
      source,
      shown: end === undefined ? undefined : lines.slice(at, end).join("\n"),
    };
  });
}

/** Returns the line behind the last command, if the commands begin here; comments and empty lines may be between them. */
function endOf(
  lines: readonly (string | undefined)[],
  from: number,
  commands: readonly string[],
): number | undefined {
  let at = from;
  // The comment above a command belongs to it.
  if (withoutComment(lines[from] ?? "") === "" && !lines[from]?.includes("# ")) return undefined;
  for (const command of commands) {
    while (at < lines.length && withoutComment(lines[at] ?? "") === "") at += 1;
    if (withoutComment(lines[at] ?? "") !== command) return undefined;
    at += 1;
  }
  return at;
}

/** Comments of scripts in YAML may have moved. */
const plain = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value), (_, each) =>
    typeof each === "string"
      ? each
          .split("\n")
          .map(withoutComment)
          .filter((line) => line !== "")
          .join("\n")
      : each,
  );

async function shellError(script: string): Promise<string> {
  const child = Bun.spawn(["bash", "-n"], { stdin: Buffer.from(script), stdout: "ignore", stderr: "pipe" });
  return new Response(child.stderr).text();
}

describe.each([60, 80, 120])("at %d columns", (columns) => {
  test.each(Object.keys(topics))("%s", async (name) => {
    for (const { kind, source, shown } of shownBlocks(name, columns)) {
      expect({ source, isShown: shown !== undefined }).toEqual({ source, isShown: true });
      const text = shown ?? "";
      if (kind === "yaml" || kind === "yml") expect(plain(parse(text))).toEqual(plain(parse(source)));
      else if (kind === "json") expect(JSON.parse(text)).toEqual(JSON.parse(source));
      else if (kind === "sh")
        expect({ source, error: await shellError(text) }).toEqual({ source, error: "" });
    }
  });
});
