/**
 * Golden cases: test/cases/dockerfile/<case>/ has a Dockerfile and its parsed form, or its error message.
 * `UPDATE_GOLDEN=1 bun test test/dockerfile/parse.test.ts` writes the expected files again.
 */
import { expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { CopySource, Dockerfile, Instruction, LineRange } from "../../src/dockerfile/instruction.ts";
import { argumentWords } from "../../src/dockerfile/instruction-words.ts";
import { parseDockerfile } from "../../src/dockerfile/parse.ts";
import { DockerfileError } from "../../src/dockerfile/problems/problem.ts";

const root = join(import.meta.dir, "../cases/dockerfile");
const isUpdate = process.env.UPDATE_GOLDEN === "1";
const names = readdirSync(root, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map((entry) => entry.name);

test.each(names)("%s", (name) => {
  const parsedPath = join(root, name, "expected.json");
  const refusedPath = join(root, name, "expected.txt");
  const outcome = parse(readFileSync(join(root, name, "Dockerfile"), "utf8"));
  if (isUpdate) {
    for (const path of [parsedPath, refusedPath]) rmSync(path, { force: true });
    writeFileSync(outcome.isRefused ? refusedPath : parsedPath, outcome.text);
  }
  const expectedPath = existsSync(parsedPath) ? parsedPath : refusedPath;
  expect(outcome.text).toBe(readFileSync(expectedPath, "utf8"));
});

test("an invalid Dockerfile is a usage error that has every problem with its place", () => {
  const lines = ["FROM alpine", "RNU one", "COPY --chmode=755 \\", "  --form=x a b"];
  let caught: unknown;
  try {
    parseDockerfile(lines.join("\n"), "some/Dockerfile");
  } catch (error) {
    caught = error;
  }
  expect(caught).toBeInstanceOf(DockerfileError);
  const { exitCode, kind, problems } = caught as DockerfileError;
  expect({ exitCode, kind }).toEqual({ exitCode: 2, kind: "usage" });
  expect(problems.map(({ range, culprit }) => ({ range, culprit }))).toEqual([
    { range: { start: 2, end: 2 }, culprit: { line: 2, column: 1, length: 3 } },
    { range: { start: 3, end: 4 }, culprit: { line: 3, column: 6, length: 12 } },
    { range: { start: 3, end: 4 }, culprit: { line: 4, column: 3, length: 8 } },
  ]);
});

test("a file that is not a Dockerfile is not read completely", () => {
  const text = Array.from({ length: 5000 }, (_, index) => `line ${index}`).join("\n");
  const message = refusal(text);
  expect(message.match(/^Dockerfile:\d+: unknown instruction/gm)).toHaveLength(100);
  expect(message).toEndWith("\n... and more: the rest of the file was not read");
});

test("a file of 54 MB is refused without being split into lines", () => {
  expect(refusal("RUN true\n".repeat(6_000_000))).toStartWith("Dockerfile:1: the file is too large\n");
});

test("an instruction of half a million lines is parsed", () => {
  const { instructions } = parseDockerfile(`FROM alpine\nRUN true${"\\\n;".repeat(500_000)}`, "Dockerfile");
  expect(instructions[1]?.range).toEqual({ start: 2, end: 500_002 });
});

test("a line longer than BuildKit's limit is refused", () => {
  const longest = `ENV A=${"x".repeat(65_528)}`;
  expect(parseDockerfile(`FROM alpine\n${longest}\n`, "Dockerfile").instructions).toHaveLength(2);
  expect(() => parseDockerfile(`FROM alpine\n${longest}x\n`, "Dockerfile")).toThrow(
    /^Dockerfile:2: dockerfile line greater than max allowed size of 65535\n/,
  );
});

function refusal(text: string): string {
  const outcome = parse(text);
  return outcome.isRefused ? outcome.text.trimEnd() : "";
}

function parse(text: string): { isRefused: boolean; text: string } {
  try {
    return {
      isRefused: false,
      text: `${print(summarize(parseDockerfile(text, "Dockerfile")), "")}\n`,
    };
  } catch (error) {
    if (!(error instanceof DockerfileError)) throw error;
    return { isRefused: true, text: `${error.message}\n` };
  }
}

/** Returns a parsed file for a golden file: ranges on one line, nothing that is empty. */
function summarize({ escape: escapeCharacter, directives, instructions, warnings }: Dockerfile) {
  return {
    ...(escapeCharacter === "\\" ? {} : { escape: escapeCharacter }),
    ...(directives.size === 0 ? {} : { directives: Object.fromEntries(directives) }),
    instructions: instructions.map((instruction) => summarizeInstruction(instruction, escapeCharacter)),
    ...(warnings.length === 0
      ? {}
      : { warnings: warnings.map((warning) => ({ ...warning, range: lines(warning.range) })) }),
  };
}

function summarizeInstruction(instruction: Instruction, escapeCharacter: string) {
  const { name, range, flags, heredocs, title, original, args: _, ...rest } = instruction;
  return {
    name,
    lines: lines(range),
    ...(title === original ? {} : { title }),
    ...(flags.length === 0 ? {} : { flags }),
    original,
    words: argumentWords(instruction, escapeCharacter),
    ...("sources" in rest ? { ...rest, sources: rest.sources.map(nameOf) } : rest),
    ...(heredocs.length === 0
      ? {}
      : { heredocs: heredocs.map((document) => ({ ...document, range: lines(document.range) })) }),
  };
}

/** Returns a source as one word. The content of a here-document is shown with the here-documents. */
function nameOf(source: CopySource): string {
  return source.kind === "path" ? source.path : `<<${source.document.name}`;
}

function lines({ start, end }: LineRange): string {
  return start === end ? String(start) : `${start}-${end}`;
}

/** Returns JSON in which every value that fits on one line is on one line. */
function print(value: unknown, indent: string): string {
  const onOneLine = JSON.stringify(value, null, 1).replace(/\n\s*/g, " ");
  if (typeof value !== "object" || value === null || indent.length + onOneLine.length <= 110)
    return onOneLine;
  const inner = `${indent}  `;
  if (Array.isArray(value))
    return `[\n${value.map((item) => inner + print(item, inner)).join(",\n")}\n${indent}]`;
  const fields = Object.entries(value).filter(([, field]) => field !== undefined);
  return `{\n${fields.map(([key, field]) => `${inner}"${key}": ${print(field, inner)}`).join(",\n")}\n${indent}}`;
}
