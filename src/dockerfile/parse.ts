import { nearest } from "../suggest.ts";
import { readFlags } from "./flags.ts";
import type { ArgInstruction, Dockerfile, FromInstruction, Instruction, Stage } from "./instruction.ts";
import {
  parseExpose,
  parseMaintainer,
  parseShell,
  parseStartCommand,
  parseStopsignal,
  parseUser,
  parseVolume,
  parseWorkdir,
} from "./instructions/configuration.ts";
import { parseAdd, parseCopy } from "./instructions/copy.ts";
import { parseHealthcheck } from "./instructions/healthcheck.ts";
import { parseArg, parseEnv, parseLabel } from "./instructions/pairs.ts";
import { parseRun } from "./instructions/run.ts";
import { DockerfileError, Findings, type Problem } from "./problems/problem.ts";
import { findMarkedLines, invalidTextIn } from "./text/decode.ts";
import { SourceReader } from "./text/source.ts";
import { baseOf, placeOf, Statement } from "./text/statement.ts";
import { splitAtBlanks } from "./words/words.ts";

type Parser = (statement: Statement) => Instruction;

const parsers = new Map<string, Parser>([
  ["ADD", parseAdd],
  ["ARG", parseArg],
  ["CMD", (statement) => parseStartCommand(statement, "CMD")],
  ["COPY", parseCopy],
  ["ENTRYPOINT", (statement) => parseStartCommand(statement, "ENTRYPOINT")],
  ["ENV", parseEnv],
  ["EXPOSE", parseExpose],
  ["FROM", parseFrom],
  ["HEALTHCHECK", parseHealthcheck],
  ["LABEL", parseLabel],
  ["MAINTAINER", parseMaintainer],
  ["ONBUILD", parseOnbuild],
  ["RUN", parseRun],
  ["SHELL", parseShell],
  ["STOPSIGNAL", parseStopsignal],
  ["USER", parseUser],
  ["VOLUME", parseVolume],
  ["WORKDIR", parseWorkdir],
]);

/**
 * Parses a Dockerfile as BuildKit's front end does. `path` is only for messages. Throws one DockerfileError with every problem
 * of the file, and nothing else, whatever the text.
 */
export function parseDockerfile(text: string, path: string): Dockerfile {
  const findings = new Findings();
  const { problems, warnings } = findings;
  const marked = findMarkedLines(text);
  const source = new SourceReader(marked.length === 0 ? text : text.toWellFormed(), findings);
  const instructions: Instruction[] = [];
  const order = new StageOrder();
  for (let line = source.nextLogicalLine(); line !== undefined; line = source.nextLogicalLine()) {
    const statement = new Statement(line, source.escape, findings);
    const invalidText = invalidTextIn(line, marked, source.lines);
    if (invalidText !== undefined) findings.addWarning(invalidText);
    const instruction = parseStatement(statement);
    if (instruction !== undefined) instructions.push(instruction);
    order.check(statement);
  }
  if (problems.length === 0 && !order.hasStage) {
    const isEmpty = instructions.length === 0;
    const message = isEmpty ? "file with no instructions" : "dockerfile contains no stages to build";
    const line = Math.max(1, source.lines.length);
    findings.addProblem({ message, expected: "a FROM instruction", range: { start: line, end: line } });
  }
  const { lines, escape: escapeCharacter, directives } = source;
  if (problems.length > 0) {
    problems.sort((one, other) => lineOf(one) - lineOf(other));
    throw new DockerfileError({ path, lines }, problems, { isCutShort: findings.isFull });
  }
  const { globals, stages } = splitStages(instructions);
  return { path, lines, escape: escapeCharacter, directives, globals, stages, instructions, warnings };
}

function splitStages(instructions: readonly Instruction[]): Pick<Dockerfile, "globals" | "stages"> {
  const globals: ArgInstruction[] = [];
  const stages: (Stage & { instructions: Instruction[] })[] = [];
  for (const instruction of instructions) {
    const stage = stages.at(-1);
    if (instruction.name === "FROM") {
      const { stageName: name } = instruction;
      stages.push({ index: stages.length, name, from: instruction, instructions: [] });
    } else if (stage !== undefined) stage.instructions.push(instruction);
    else if (instruction.name === "ARG") globals.push(instruction);
  }
  return { globals, stages };
}

/** Reports, once, an instruction other than ARG before the first FROM. */
class StageOrder {
  hasStage = false;
  private hasReported = false;

  check(statement: Statement): void {
    if (this.hasStage) return;
    const { name, writtenName } = statement;
    const isKnown = parsers.has(name);
    // A misspelt FROM is reported as such.
    this.hasStage = (isKnown ? name : nearestName(statement)) === "FROM";
    if (this.hasStage || this.hasReported || !isKnown || name === "ARG") return;
    this.hasReported = true;
    const message = `no build stage in current context: ${name} is before the first FROM`;
    statement.report({
      message,
      expected: "FROM first; only ARG is allowed before it",
      at: placeOf(writtenName),
    });
  }
}

function parseStatement(statement: Statement): Instruction | undefined {
  const parser = parsers.get(statement.name);
  if (parser !== undefined) return parser(statement);
  const meant = nearestName(statement);
  const suggestion = meant === undefined ? "" : ` (did you mean ${meant}?)`;
  statement.report({
    message: `unknown instruction: ${statement.writtenName.text}${suggestion}`,
    expected: `one of ${[...parsers.keys()].join(", ")}`,
    at: placeOf(statement.writtenName),
  });
  return undefined;
}

/** Parses `ONBUILD INSTRUCTION`, with the instruction as its trigger. */
function parseOnbuild(statement: Statement): Instruction {
  const flags = readFlags(statement);
  const inner = statement.inner();
  const { name } = inner;
  const expected = "an instruction other than FROM, MAINTAINER and ONBUILD";
  let trigger: Instruction | undefined;
  if (name === "") statement.reportNoArguments(expected);
  else if (name === "ONBUILD") {
    const message = "Chaining ONBUILD via `ONBUILD ONBUILD` isn't allowed";
    statement.report({ message, expected, at: placeOf(inner.writtenName) });
  } else if (name === "FROM" || name === "MAINTAINER") {
    const message = `${name} isn't allowed as an ONBUILD trigger`;
    statement.report({ message, expected, at: placeOf(inner.writtenName) });
  } else {
    trigger = parseStatement(inner);
  }
  return { ...baseOf(statement, "ONBUILD", flags.list), trigger };
}

function nearestName(statement: Statement): string | undefined {
  return nearest(statement.name, parsers.keys());
}

function lineOf(problem: Problem): number {
  return problem.culprit?.line ?? problem.range.start;
}

const stageNameForm = /^[a-z][a-z0-9-_.]*$/;

/** Parses `FROM [--platform=P] IMAGE [AS NAME]`. */
function parseFrom(statement: Statement): FromInstruction {
  const flags = readFlags(statement, { platform: "text" });
  const words = splitAtBlanks(statement.args.text, statement.args.offset);
  const [image, as, stage] = words;
  let stageName: string | undefined;
  if (words.length === 3 && as?.text.toUpperCase() === "AS" && stage !== undefined) {
    stageName = stage.text.toLowerCase();
    if (!stageNameForm.test(stageName)) {
      statement.report({
        message: `invalid name for build stage: "${stage.text}", name can't start with a number or contain symbols`,
        expected: "a letter, then letters, digits, '-', '_' and '.'",
        at: placeOf(stage),
      });
    }
  } else if (words.length !== 1) {
    const surplus = as ?? statement.writtenName;
    const message = "FROM requires either one or three arguments";
    statement.report({ message, expected: "FROM image or FROM image AS name", at: placeOf(surplus) });
  }
  const base = baseOf(statement, "FROM", flags.list);
  return { ...base, image: image?.text ?? "", stageName, platform: flags.text("platform") || undefined };
}
