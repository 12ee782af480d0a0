import { statSync } from "node:fs";
import { resolve } from "node:path";
import { displayPath } from "../../../context/file-system/display-path.ts";
import { fileError } from "../../../context/file-system/file-error.ts";
import { type BoughError, usageError } from "../../../errors.ts";
import { wording } from "../../../messages/wording.ts";
import type { AgentEntry } from "../../entries/agent.ts";
import type { Runtime } from "../../process/runtime.ts";
import type { SigningKey } from "../ssh/private-key.ts";

/** The paths of an `--ssh`: an agent's socket, or files of keys. */
export type AgentPaths = readonly [string, ...string[]];

const isWindows = process.platform === "win32";
/** The pipe of Windows' own agent, which docker uses there, too. */
const windowsAgent = "\\\\.\\pipe\\openssh-ssh-agent";
const startAgent = isWindows ? "Start-Service ssh-agent" : "eval $(ssh-agent)";

/** Without a path, it is the agent of the user. */
export function pathsOf(
  { id, paths: [first, ...others] }: AgentEntry,
  environment: Readonly<Record<string, string | undefined>>,
): AgentPaths {
  const socket = first ?? (environment.SSH_AUTH_SOCK || (isWindows ? windowsAgent : ""));
  if (socket !== "") return [socket, ...others];
  throw usageError(
    wording`${{ option: "ssh" }} ${id}: no SSH agent: SSH_AUTH_SOCK is not set`,
    wording`Start one (${startAgent}; ssh-add KEY), or give its socket or a key: ${{ option: "ssh" }} ${id}=PATH.`,
  );
}

/** Returns the socket of an agent. If the paths are keys, opens one in this process that has them. */
export async function openAgent(
  id: string,
  paths: AgentPaths,
  runtime: Runtime,
  opened: DisposableStack,
): Promise<string> {
  const [first, ...others] = paths.map((path) => resolve(runtime.workingDirectory, path));
  if (first !== undefined && others.length === 0 && isSocket(id, first)) return first;
  const keys: SigningKey[] = [];
  for (const path of paths) keys.push(await readKey(id, path, runtime));
  const { openKeyAgent } = await import("../ssh/key-agent.ts");
  return opened.use(await openKeyAgent(keys, runtime.environment)).path;
}

function isSocket(id: string, path: string): boolean {
  // A pipe of Windows: to look at it would connect to it.
  if (isWindows && /^[\\/]{2}\.[\\/]pipe[\\/]/i.test(path)) return true;
  try {
    return statSync(path).isSocket();
  } catch (error) {
    throw usageError(
      wording`${{ option: "ssh" }} ${id}: ${fileError("use", path, error).message}`,
      "Give the path of an agent's socket, or of a private key.",
    );
  }
}

/** Docker's limit. */
const maxKeyBytes = 100 * 1024;

async function readKey(
  id: string,
  path: string,
  { workingDirectory, inputs, signal }: Runtime,
): Promise<SigningKey> {
  const refuse = (problem: string, hint: string): BoughError =>
    usageError(wording`${{ option: "ssh" }} ${id}: ${problem}`, wording`${hint}`);
  const { PrivateKeyError, readPrivateKey } = await import("../ssh/private-key.ts");
  let content: Buffer;
  try {
    content = await inputs.read(resolve(workingDirectory, path), { maxBytes: maxKeyBytes, signal });
  } catch (error) {
    signal.throwIfAborted();
    throw refuse(
      fileError("read", path, error).message,
      "Give the path of an agent's socket, or of a private key.",
    );
  }
  try {
    return readPrivateKey(content.toString("latin1"));
  } catch (error) {
    if (!(error instanceof PrivateKeyError)) throw error;
    throw refuse(
      `cannot use ${displayPath(path)} as a key: ${error.message}`,
      `An agent takes any key: ${startAgent}; ssh-add KEY; then give no path.`,
    );
  }
}
