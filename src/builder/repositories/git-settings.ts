/** The environment of git, in which it runs no other programs than it needs. */
import { keepsModes } from "../../context/file-system/file-system.ts";

type Setting = readonly [name: string, value: string];

/** The time after which a transfer without progress is ended. */
const stalledSeconds = 60;

/** Returns variables for git: it never prompts, and reads no settings of this machine. `own`: further settings. */
export function gitEnvironment(own: readonly Setting[] = []): Record<string, string> {
  return { ...plain, ...settings([...fixedSettings, ...own]) };
}

/** Keeps out the user's settings, which could name programs and rewrite addresses. */
const plain = {
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_CONFIG_GLOBAL: "/dev/null",
  GIT_ATTR_NOSYSTEM: "1",
  GIT_TERMINAL_PROMPT: "0",
  // Keys come only from the agent, and the host's key must be known already.
  GIT_SSH_COMMAND:
    "ssh -F none -o BatchMode=yes -o IdentityFile=none -o ConnectTimeout=30 -o ServerAliveInterval=15",
  GIT_SSH_VARIANT: "ssh",
  LC_ALL: "C",
};

/** A path that does not exist: no file on Windows can have this name. */
const nowhere = keepsModes ? "/dev/null" : "<nowhere>";

const fixedSettings: readonly Setting[] = [
  ["core.hooksPath", nowhere],
  ["core.attributesFile", nowhere],
  ["core.fsmonitor", "false"],
  ["core.logAllRefUpdates", "false"],
  ["credential.helper", ""],
  ["gc.auto", "0"],
  ["maintenance.auto", "false"],
  // Fetched objects stay one pack, to which the size limit applies.
  ["fetch.unpackLimit", "1"],
  ["http.lowSpeedLimit", "1"],
  ["http.lowSpeedTime", String(stalledSeconds)],
  ["init.defaultBranch", "master"],
  // Links are files with their targets, and paths may be longer than those of old programs.
  ...(keepsModes
    ? []
    : ([
        ["core.symlinks", "false"],
        ["core.longPaths", "true"],
      ] as const)),
];

/** Passes settings in the environment: every user of a machine can read command lines. */
function settings(pairs: readonly Setting[]): Record<string, string> {
  const variables: Record<string, string> = { GIT_CONFIG_COUNT: String(pairs.length) };
  pairs.forEach(([key, value], index) => {
    variables[`GIT_CONFIG_KEY_${index}`] = key;
    variables[`GIT_CONFIG_VALUE_${index}`] = value;
  });
  return variables;
}
