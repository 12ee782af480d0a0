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
  if (!/^[-+]?(0|((\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h))+)$/.test(value)) {
    return { message: `invalid duration "${value}" in --${name}`, expected };
  }
  const nanoseconds = nanosecondsOf(value);
  if (nanoseconds === 0 || (nanoseconds >= 1e6 && !value.startsWith("-"))) return undefined;
  return { message: `Interval "${name}" cannot be less than 1ms`, expected };
};

const checkCount: Check = (name, value) => {
  const expected = "a number, 0 or more";
  if (!/^[-+]?\d+$/.test(value) || Math.abs(Number(value)) > 0x7fffffff) {
    return { message: `invalid number "${value}" in --${name}`, expected };
  }
  return Number(value) < 0 ? { message: `--${name} cannot be negative (${value})`, expected } : undefined;
};

/** Nanoseconds of each unit of Go's durations. */
const units: Readonly<Record<string, number>> = {
  ns: 1,
  us: 1e3,
  µs: 1e3,
  μs: 1e3,
  ms: 1e6,
  s: 1e9,
  m: 6e10,
  h: 3.6e12,
};

/** Returns the nanoseconds of a duration in Go's notation, such as `1m30s`; its sign is ignored. */
export function nanosecondsOf(duration: string): number {
  let nanoseconds = 0;
  for (const [, amount = "", unit = ""] of duration.matchAll(/([\d.]+)(ns|us|µs|μs|ms|s|m|h)/g))
    nanoseconds += Number(amount) * (units[unit] ?? 0);
  return nanoseconds;
}
