import { BoughError } from "../../errors.ts";
import {
  allowedCalls,
  architectures,
  callsOfCapabilities,
  conditionalCalls,
  missingCalls,
  operationNotPermitted,
  refusedArguments,
  unnamedCalls,
} from "./system-calls.ts";

/** `linux.seccomp` of the OCI runtime specification. */
interface Seccomp {
  defaultAction: "SCMP_ACT_ERRNO";
  defaultErrnoRet: number;
  architectures: readonly string[];
  syscalls: readonly SeccompRule[];
}

interface SeccompRule {
  names: readonly string[];
  action: "SCMP_ACT_ALLOW" | "SCMP_ACT_ERRNO";
  errnoRet?: number;
  args?: readonly { index: number; value: number; valueTwo?: number; op: string }[];
}

/** Filters made so far: nearly every command has the same one. */
const made = new Map<string, Seccomp>();

/**
 * Returns Docker's default system call filter for processes with these capabilities. runc compiles it again for each container,
 * so it has one rule where Docker's profile has several. `architecture`: as the OCI image specification spells it.
 */
export function seccompFilter(architecture: string, capabilities: readonly string[]): Seccomp {
  const key = [architecture, ...capabilities].join(" ");
  const filter = made.get(key) ?? makeFilter(architecture, capabilities);
  made.set(key, filter);
  return filter;
}

function makeFilter(architecture: string, capabilities: readonly string[]): Seccomp {
  const machine = architectures[architecture];
  if (machine === undefined) throw new BoughError(`there is no filter of system calls for ${architecture}`);
  const isNeeded = ({ unlessCapability = "" }) => !capabilities.includes(unlessCapability);
  const allowed = new Set([
    ...allowedCalls,
    ...machine.calls,
    ...capabilities.flatMap((capability) => callsOfCapabilities[capability] ?? []),
  ]);
  const { names, errorNumber } = missingCalls;
  return {
    defaultAction: "SCMP_ACT_ERRNO",
    defaultErrnoRet: operationNotPermitted,
    architectures: machine.names,
    syscalls: [
      { names: [...allowed].sort(), action: "SCMP_ACT_ALLOW" },
      ...conditionalCalls
        .filter(isNeeded)
        .map((call): SeccompRule => ({ ...conditionOf(call), action: "SCMP_ACT_ALLOW" })),
      ...[missingCalls]
        .filter(isNeeded)
        .map((): SeccompRule => ({ names, action: "SCMP_ACT_ERRNO", errnoRet: errorNumber })),
    ],
  };
}

/**
 * Returns the same filter the other way round, for a runtime that adds no rule for unknown calls: these fail with ENOSYS by default,
 * and known ones with EPERM by name.
 */
export function invertedFilter(architecture: string, capabilities: readonly string[]): Seccomp {
  const filter = seccompFilter(architecture, capabilities);
  const named = new Set(filter.syscalls.flatMap(({ names }) => names));
  const known = [...Object.values(callsOfCapabilities).flat(), ...unnamedCalls];
  const refusal = { action: "SCMP_ACT_ERRNO", errnoRet: operationNotPermitted } as const;
  return {
    ...filter,
    defaultErrnoRet: missingCalls.errorNumber,
    syscalls: [
      ...filter.syscalls.filter(({ action }) => action === "SCMP_ACT_ALLOW"),
      { ...refusal, names: [...new Set(known)].filter((name) => !named.has(name)).sort() },
      ...refusedArguments
        .filter(({ name }) => !filter.syscalls[0]?.names.includes(name))
        .map((call): SeccompRule => ({ ...refusal, ...conditionOf(call) })),
    ],
  };
}

function conditionOf({ name, operator, value, mask }: (typeof refusedArguments)[number]) {
  // A masked comparison takes the mask first.
  const compared = mask === undefined ? { value } : { value: mask, valueTwo: value };
  return { names: [name], args: [{ index: 0, ...compared, op: `SCMP_CMP_${operator}` }] };
}
