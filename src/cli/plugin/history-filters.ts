/** `--filter` of `docker buildx history ls`. */
import type { Clock } from "../../clock.ts";
import { usageError } from "../../errors.ts";
import { parseGoDuration } from "../../go/duration.ts";
import type { BuildSummary } from "../../history/history-database.ts";
import { statusAsInDocker } from "./history-record.ts";

type Test = (build: BuildSummary) => boolean;

/** Parses filters of the form `KEY OPERATOR VALUE`. Returns a predicate that is true for builds that match all of them. */
export function readFilters(given: readonly string[], clock: Pick<Clock, "now">): Test {
  const tests = given.map((text) => readFilter(text, clock));
  return (build) => tests.every((test) => test(build));
}

function readFilter(text: string, clock: Pick<Clock, "now">): Test {
  const unsupported = usageError(`unsupported filter ${JSON.stringify(text)}`);
  const [, key = "", operator = "", value = ""] = /^(\w+)(!=|>=|<=|=|>|<)(.*)$/s.exec(text) ?? [];
  if (key === "ref" && operator === "=") return ({ id }) => id.includes(value);
  if (key === "status" && (operator === "=" || operator === "!="))
    return ({ status }) =>
      (statusAsInDocker(status).toLowerCase() === value.toLowerCase()) === (operator === "=");
  const compare = comparisons[operator];
  if (compare === undefined) throw unsupported;
  if (key === "duration") {
    const nanoseconds = parseGoDuration(value);
    if (nanoseconds === undefined) throw unsupported;
    return (build) => compare(build.seconds, nanoseconds / 1e9);
  }
  const moment = readMoment(value, clock);
  if (moment === undefined) throw unsupported;
  if (key === "startedAt") return (build) => compare(build.startedAt, moment);
  if (key === "completedAt") return (build) => compare(build.startedAt + build.seconds * 1000, moment);
  throw unsupported;
}

const comparisons: Readonly<Record<string, (one: number, other: number) => boolean>> = {
  ">": (one, other) => one > other,
  "<": (one, other) => one < other,
  ">=": (one, other) => one >= other,
  "<=": (one, other) => one <= other,
};

/** Parses a date or an age. Returns milliseconds since the epoch. */
function readMoment(text: string, { now }: Pick<Clock, "now">): number | undefined {
  const ago = parseGoDuration(text);
  if (ago !== undefined) return now() - ago / 1e6;
  const moment = /^\d{4}-\d\d-\d\d/.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(moment) ? undefined : moment;
}
