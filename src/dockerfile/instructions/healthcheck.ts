import { parseGoDuration } from "../../go/duration.ts";
import { nearest } from "../../suggest.ts";
import { readFlags } from "../flags.ts";
import type { Command, HealthcheckInstruction } from "../instruction.ts";
import { baseOf, placeOf, type Statement } from "../text/statement.ts";
import type { Word } from "../words/words.ts";
import { isEmptyCommand, parseCommand } from "./configuration.ts";

const durations = ["interval", "timeout", "start-period", "start-interval"];

/** Parses `HEALTHCHECK [flags] CMD command` or `HEALTHCHECK NONE`. */
export function parseHealthcheck(statement: Statement): HealthcheckInstruction {
  // Docker ignores the flags of HEALTHCHECK NONE.
  if (/^none\s*$/i.test(statement.args.text))
    return { ...baseOf(statement, "HEALTHCHECK", []), ...noHealthcheck };
  const declared = Object.fromEntries([...durations, "retries"].map((name) => [name, "text"] as const));
  const flags = readFlags(statement, declared);
  for (const name of durations) checkFlag(statement, name, flags.text(name), checkDuration);
  checkFlag(statement, "retries", flags.text("retries"), checkCount);

  const { args } = statement;
  const [type = ""] = /^\S*/.exec(args.text) ?? [];
  const rest = args.text.slice(type.length);
  const text = rest.trimStart();
  const offset = args.offset + type.length + rest.length - text.length;
  const kind = { text: type, offset: args.offset };
  const command = checkForm(statement, kind, { text, offset });
  return {
    ...baseOf(statement, "HEALTHCHECK", flags.list),
    command,
    interval: flags.text("interval"),
    timeout: flags.text("timeout"),
    startPeriod: flags.text("start-period"),
    startInterval: flags.text("start-interval"),
    retries: flags.text("retries"),
  };
}

function checkForm(statement: Statement, kind: Word, rest: Word): Command | undefined {
  const type = kind.text.toUpperCase();
  const expected = "HEALTHCHECK CMD command or HEALTHCHECK NONE";
  switch (type) {
    case "":
      statement.reportNoArguments(expected);
      return undefined;
    case "NONE":
      if (rest.text !== "") {
        statement.report({ message: "HEALTHCHECK NONE takes no arguments", expected, at: placeOf(rest) });
      }
      return undefined;
    case "CMD": {
      const command = parseCommand(statement, rest);
      if (isEmptyCommand(command)) {
        statement.report({
          message: "Missing command after HEALTHCHECK CMD",
          expected: "a command",
          at: placeOf(kind),
        });
      }
      return command;
    }
    default: {
      const meant = nearest(type, ["CMD", "NONE"]);
      const advice = meant === undefined ? "try CMD" : `did you mean ${meant}?`;
      const message = `Unknown type "${kind.text}" in HEALTHCHECK (${advice})`;
      statement.report({ message, expected, at: placeOf(kind) });
      return undefined;
    }
  }
}

const noHealthcheck = {
  command: undefined,
  interval: undefined,
  timeout: undefined,
  startPeriod: undefined,
  startInterval: undefined,
  retries: undefined,
};

type Check = (name: string, value: string) => { message: string; expected: string } | undefined;

function checkFlag(statement: Statement, name: string, value: string | undefined, check: Check): void {
  if (value === undefined || value === "") return;
  const complaint = check(name, value);
  if (complaint !== undefined) statement.report({ ...complaint, at: statement.placeOfFlag(name) });
}

const checkDuration: Check = (name, value) => {
  const expected = "a duration of at least 1ms, such as 30s or 1m30s, or 0";
  const nanoseconds = parseGoDuration(value);
  if (nanoseconds === undefined) return { message: `invalid duration "${value}" in --${name}`, expected };
  if (nanoseconds === 0 || nanoseconds >= 1e6) return undefined;
  return { message: `Interval "${name}" cannot be less than 1ms`, expected };
};

const checkCount: Check = (name, value) => {
  const expected = "a number, 0 or more";
  if (!/^[-+]?\d+$/.test(value) || Math.abs(Number(value)) > 0x7fffffff) {
    return { message: `invalid number "${value}" in --${name}`, expected };
  }
  return Number(value) < 0 ? { message: `--${name} cannot be negative (${value})`, expected } : undefined;
};

/** Returns the nanoseconds of a flag's value, 0 for an empty one. */
export function nanosecondsOf(duration: string): number {
  return parseGoDuration(duration) ?? 0;
}
