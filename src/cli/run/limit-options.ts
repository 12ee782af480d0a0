/** `--memory`, `--cpus`, `--pids`, `--shm-size` and `--ulimit`: limits of the resources that a command may use. */
import { CommandLineError, usageError } from "../../errors.ts";
import { type Message, wording } from "../../messages/wording.ts";
import {
  comparableLimit,
  minLimits,
  type ResourcesLimits,
  type Ulimit,
  type UlimitName,
  ulimitNames,
} from "../../service/wire/instance.ts";
import type { ArgumentDefinitions } from "../command-line/definitions.ts";
import type { OptionParsers, OptionsOf } from "../command-line/options.ts";

export const limitDefinitions = {
  memory: {
    type: "string",
    valueHint: "SIZE",
    description: "Memory that each command may take, as in 2g (default on the engine: most of the machine's)",
  },
  cpus: {
    type: "string",
    valueHint: "NUMBER",
    description: "Processors that each command may take, as in 1.5 (default: all)",
  },
  pids: {
    type: "string",
    synonyms: ["--pids-limit"],
    valueHint: "NUMBER",
    description: "Processes and threads that each command may have (default on the engine: 4096 or more)",
  },
  "shm-size": {
    type: "string",
    valueHint: "SIZE",
    description: "Size of /dev/shm in each command, as in 1g (default on the engine: 64m)",
  },
  ulimit: {
    type: "string",
    valueHint: "NAME=SOFT[:HARD]",
    completes: ulimitNames.map((name) => `${name}=`),
    multiple: true,
    description: "Limit of each command, as in nofile=1024:4096; -1: none (default: that of the service)",
  },
} satisfies ArgumentDefinitions;

export const limitParsers = {
  memory: (text: string) =>
    parseSize(
      text,
      "memory",
      { bytes: minLimits.max_memory_bytes, shown: "6m" },
      wording`For example: ${{ option: "memory", value: "512m" }}, ${{ option: "memory", value: "2g" }}.`,
    ),
  cpus: parseCpus,
  pids: parsePids,
  "shm-size": (text: string) =>
    parseSize(
      text,
      "shm-size",
      { bytes: 1, shown: "1 byte" },
      wording`For example: ${{ option: "shm-size", value: "1g" }}.`,
    ),
  ulimit: (given: readonly string[]) => given.map(parseUlimit),
} satisfies OptionParsers<typeof limitDefinitions>;

/** Returns the limits; `undefined` if no limit is given. */
export function limitsOf({
  memory,
  cpus,
  pids,
  "shm-size": shm,
  ulimit: ulimits = [],
}: OptionsOf<typeof limitDefinitions, typeof limitParsers>): ResourcesLimits | undefined {
  const limits: ResourcesLimits = {
    ...(memory === undefined ? {} : { max_memory_bytes: memory }),
    ...(pids === undefined ? {} : { max_processes: pids }),
    ...(cpus === undefined ? {} : { cpus }),
    ...(shm === undefined ? {} : { shm_bytes: shm }),
    ...(ulimits.length === 0 ? {} : { ulimits: Object.fromEntries(ulimits) }),
  };
  return Object.keys(limits).length === 0 ? undefined : limits;
}

const { max_processes: minProcesses, cpus: minCpus } = minLimits;

/** Parses Docker's sizes: b, k, m or g for powers of 1024; bytes without a unit. */
function parseSize(
  text: string,
  option: string,
  min: { bytes: number; shown: string },
  hint: Message,
): number {
  const [, number, unit = ""] = /^(\d{1,15}(?:\.\d{1,9})?)([bkmgt]?)(?:i?b)?$/i.exec(text) ?? [];
  const bytes = Math.floor(Number(number) * 1024 ** Math.max("bkmgt".indexOf(unit.toLowerCase()), 0));
  if (bytes >= min.bytes && Number.isSafeInteger(bytes)) return bytes;
  throw new CommandLineError(
    wording`${{ option }} takes a size of at least ${min.shown}, not ${JSON.stringify(text)}`,
    hint,
  );
}

function parseCpus(text: string): number {
  const cpus = /^\d{0,6}(\.\d{1,9})?$/.test(text) ? Number(text || "0") : 0;
  if (cpus >= minCpus) return cpus;
  throw usageError(
    wording`${{ option: "cpus" }} takes a number of at least ${minCpus}, not ${JSON.stringify(text)}`,
    wording`For example: ${{ option: "cpus" }} 1.5.`,
  );
}

function parsePids(text: string): number {
  const pids = /^\d{1,9}$/.test(text) ? Number(text) : 0;
  if (pids >= minProcesses) return pids;
  throw usageError(
    wording`${{ option: "pids" }} takes a whole number of at least ${minProcesses}, not ${JSON.stringify(text)}`,
    wording`For example: ${{ option: "pids" }} 1000.`,
  );
}

/** Parses Docker's `NAME=SOFT[:HARD]`. Without HARD, both are SOFT. */
export function parseUlimit(text: string): [UlimitName, Ulimit] {
  const [, given, softText = "", hardText = softText] = /^(\w+)=(-1|\d+)(?::(-1|\d+))?$/.exec(text) ?? [];
  const [soft, hard] = [Number(softText), Number(hardText)];
  if (given === undefined || !Number.isSafeInteger(soft) || !Number.isSafeInteger(hard))
    throw new CommandLineError(
      `--ulimit takes NAME=SOFT[:HARD], not ${JSON.stringify(text)}`,
      "For example: --ulimit nofile=1024:4096, --ulimit core=-1.",
    );
  const name = ulimitNames.find((each) => each === given);
  if (name === undefined)
    throw new CommandLineError(
      `--ulimit ${text}: unknown limit ${given}`,
      `There are ${ulimitNames.join(", ")}.`,
    );
  if (comparableLimit(soft) > comparableLimit(hard))
    throw new CommandLineError(
      `--ulimit ${text}: the soft limit is above the hard limit`,
      "For example: --ulimit nofile=1024:4096.",
    );
  return [name, { soft, hard }];
}
