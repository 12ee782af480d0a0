/** The limits of setrlimit(2) that a request asks for. */
import { readFileSync } from "node:fs";
import {
  comparableLimit,
  type ResourcesLimits,
  type Ulimit,
  type UlimitName,
  ulimitNames,
} from "../../../service/wire/instance.ts";
import { asFields, type Fields, optionalNumber, refuse, refuseUnknown } from "../../http/fields.ts";
import { hasCapability } from "../../system/user-namespace.ts";

type Ulimits = NonNullable<ResourcesLimits["ulimits"]>;

/** Reads `ulimits` of a request's `resources_limits`. */
export function readUlimits({ ulimits: given }: Fields): Ulimits | undefined {
  if (given == null) return undefined;
  const fields = asFields(given, "ulimits");
  refuseUnknown(fields, ulimitNames, "ulimits");
  const ulimits: Ulimits = {};
  for (const name of ulimitNames) {
    if (fields[name] === undefined) continue;
    const place = `ulimits.${name}`;
    const limit = asFields(fields[name], place);
    refuseUnknown(limit, ["soft", "hard"], place);
    const [soft, hard] = [optionalNumber(limit, "soft", -1), optionalNumber(limit, "hard", -1)];
    if (soft === undefined || hard === undefined) return refuse(place, "must have soft and hard");
    if (comparableLimit(soft) > comparableLimit(hard)) refuse(`${place}.soft`, "must not be above hard");
    ulimits[name] = { soft, hard };
  }
  return ulimits;
}

/** Returns the limits by their names in runc's configuration; infinite: unlimited. */
export function rlimitsOf(ulimits: Ulimits = {}): Map<string, Ulimit> {
  return new Map(
    Object.entries(ulimits).map(([name, { soft, hard }]) => [
      `RLIMIT_${name.toUpperCase()}`,
      { soft: comparableLimit(soft), hard: comparableLimit(hard) },
    ]),
  );
}

/** Throws if this process may not set a limit for a command. `maxOf`: the highest value of each. */
export function requireUlimits(ulimits: Ulimits, maxOf: (name: UlimitName) => number): void {
  for (const [name, { hard }] of Object.entries(ulimits) as [UlimitName, Ulimit][]) {
    const max = maxOf(name);
    if (comparableLimit(hard) <= max) continue;
    const asked = hard === -1 ? "unlimited" : String(hard);
    refuse(`ulimits.${name}.hard`, `must be at most ${max} (the engine may set no more), not ${asked}`);
  }
}

/**
 * Returns the highest values that this process may set. Only root of the machine, with CAP_SYS_RESOURCE, may exceed its own hard
 * limits.
 */
export function maxUlimits({ inUserNamespace }: { inUserNamespace: boolean }): (name: UlimitName) => number {
  const own = readFileSync("/proc/self/limits", "utf8");
  const mayRaise = !inUserNamespace && hasCapability("sysResource");
  return (name) => {
    const max = mayRaise ? Number.POSITIVE_INFINITY : hardLimit(own, titles[name]);
    // Not even a process with that capability may exceed `nr_open`.
    return name === "nofile" ? Math.min(max, Number(readFileSync("/proc/sys/fs/nr_open", "utf8"))) : max;
  };
}

/** Returns a hard limit; infinite: unlimited. `limits`: `/proc/<pid>/limits`. */
export function hardLimit(limits: string, title: string): number {
  const [, value] = new RegExp(`^${title}\\s+\\S+\\s+(\\d+)`, "m").exec(limits) ?? [];
  return value === undefined ? Number.POSITIVE_INFINITY : Number(value);
}

/** Titles in `/proc/<pid>/limits`. */
const titles: Readonly<Record<UlimitName, string>> = {
  core: "Max core file size",
  cpu: "Max cpu time",
  data: "Max data size",
  fsize: "Max file size",
  locks: "Max file locks",
  memlock: "Max locked memory",
  msgqueue: "Max msgqueue size",
  nice: "Max nice priority",
  nofile: "Max open files",
  nproc: "Max processes",
  rss: "Max resident set",
  rtprio: "Max realtime priority",
  rttime: "Max realtime timeout",
  sigpending: "Max pending signals",
  stack: "Max stack size",
};
