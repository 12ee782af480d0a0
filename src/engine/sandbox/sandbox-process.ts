/** A process in a sandbox: its user, capabilities and environment. */
import type { TerminalSize } from "../../service/wire/instance.ts";
import type { SandboxNetwork } from "../network/networks.ts";
import type { LimitSettings } from "./limits/limits.ts";

declare global {
  interface JSON {
    /** Part of JavaScript, but not yet of TypeScript's declarations. */
    rawJSON(text: string): unknown;
  }
}

/** A process in a sandbox. Paths and IDs are those of the image. */
export interface SandboxProcess {
  args: readonly string[];
  env: Readonly<Record<string, string>>;
  /** Variables of this process only, which no record contains. */
  secretEnv?: Readonly<Record<string, string>>;
  cwd: string;
  uid: number;
  gid: number;
  additionalGids: readonly number[];
  home: string;
  /** The initial size of the terminal for its standard streams; `undefined` if it has none. */
  terminal?: TerminalSize | undefined;
}

export interface ProcessOptions {
  /** The path of its working directory contains no symbolic links of the image. */
  process: SandboxProcess;
  network: SandboxNetwork;
  limits: LimitSettings;
  /** True if bough runs in a chroot: see `root/chroot.ts`. */
  isInChroot?: boolean;
}

/**
 * Docker's default set without `CAP_NET_RAW`, which reads all packets of a network: a command has it only in a network of its own.
 * `CAP_MKNOD` is harmless: the control group for devices prevents root from opening the devices it makes, and a user
 * namespace can't make any.
 */
const capabilities = [
  "CAP_CHOWN",
  "CAP_DAC_OVERRIDE",
  "CAP_FSETID",
  "CAP_FOWNER",
  "CAP_MKNOD",
  "CAP_SETGID",
  "CAP_SETUID",
  "CAP_SETFCAP",
  "CAP_SETPCAP",
  "CAP_NET_BIND_SERVICE",
  "CAP_SYS_CHROOT",
  "CAP_KILL",
  "CAP_AUDIT_WRITE",
];

/** Returns the configuration of a process in the sandbox: the command, or a process that is started beside it. */
export function processConfig({
  process: command,
  network,
  limits,
  isInChroot = false,
}: ProcessOptions): object {
  const granted = grantedWith(network).filter((name) => !isInChroot || name !== "CAP_SYS_CHROOT");
  const effective = command.uid === 0 ? granted : [];
  return {
    ...(command.terminal === undefined
      ? { terminal: false }
      : {
          terminal: true,
          consoleSize: { width: command.terminal.columns, height: command.terminal.rows },
        }),
    user: { uid: command.uid, gid: command.gid, additionalGids: command.additionalGids },
    args: command.args,
    env: Object.entries({ ...command.env, ...command.secretEnv, ...homeFor(command) }).map(
      ([name, value]) => `${name}=${value}`,
    ),
    cwd: command.cwd,
    capabilities: { bounding: granted, effective, permitted: effective },
    noNewPrivileges: false,
    rlimits: limits.rlimits.map(({ type, hard, soft }) => ({
      type,
      hard: rlimitInJson(hard),
      soft: rlimitInJson(soft),
    })),
    oomScoreAdj: limits.oomScoreAdj,
  };
}

/** Returns a limit for JSON. RLIM_INFINITY is larger than the integers that JavaScript's numbers represent exactly. */
function rlimitInJson(limit: number): unknown {
  return Number.isFinite(limit) ? limit : JSON.rawJSON("18446744073709551615");
}

/** Returns HOME if it is unset or empty: a runtime may leave it unset for a user who is not in the image's `/etc/passwd`. */
function homeFor({ env, secretEnv, home }: SandboxProcess): Record<string, string> {
  return (secretEnv?.HOME ?? env.HOME ?? "") === "" ? { HOME: home } : {};
}

/** Returns the capabilities of a command in a network of this kind. */
export function grantedWith(network: Pick<SandboxNetwork, "kind">): readonly string[] {
  return network.kind === "host" ? capabilities : [...capabilities, "CAP_NET_RAW"];
}
