import { resolve } from "node:path";
import type { GivenIds } from "../../../builder/mounts/mount-support.ts";
import type { GivenSecrets } from "../../../builder/state/secrets.ts";
import { fileError } from "../../../context/file-system/file-error.ts";
import { BoughError, usageError } from "../../../errors.ts";
import { wording } from "../../../messages/wording.ts";
import { Secret } from "../../../secret.ts";
import type { SecretEntry, SecretSource } from "../../entries/secret.ts";
import type { Runtime } from "../../process/runtime.ts";
import { type AgentPaths, openAgent, pathsOf } from "./agent-options.ts";
import type { BuildOptionValues } from "./build-parsers.ts";

/** The source of each `--secret` and the paths of each `--ssh`, by id. Nothing has been read yet. */
interface SecretSources {
  secrets: ReadonlyMap<string, OpenableSource>;
  agents: ReadonlyMap<string, AgentPaths>;
}

/** The secrets and agents of the command line, loaded on demand, and only once. Disposing them ends agents of this process. */
export interface SecretOptions extends SecretSources, Disposable {
  load(): Promise<GivenSecrets>;
}

type OpenableSource = Exclude<SecretSource, { kind: "by-id" }>;

/** BuildKit's limit. */
const maxBytes = 500 * 1024;

/** Finds the sources of `--secret` and `--ssh`. */
export function readSecretOptions(
  { secret: secrets = [], ssh: agents = [] }: Pick<BuildOptionValues, "secret" | "ssh">,
  runtime: Runtime,
): SecretOptions {
  const { environment } = runtime;
  const sources: SecretSources = {
    secrets: new Map(secrets.map((entry) => [entry.id, sourceOf(entry, runtime)])),
    agents: new Map(agents.map((entry) => [entry.id, pathsOf(entry, environment)])),
  };
  let loaded: Promise<GivenSecrets> | undefined;
  const opened = new DisposableStack();
  return {
    ...sources,
    load() {
      loaded ??= loadSecrets(sources, runtime, opened);
      return loaded;
    },
    [Symbol.dispose]: () => opened.dispose(),
  };
}

export function idsOf({ secrets, agents }: SecretSources): GivenIds {
  return { secrets: [...secrets.keys()], agents: [...agents.keys()] };
}

/** Reads all secrets into memory, and writes them nowhere. */
async function loadSecrets(
  { secrets, agents }: SecretSources,
  runtime: Runtime,
  opened: DisposableStack,
): Promise<GivenSecrets> {
  const { environment } = runtime;
  const encoder = new TextEncoder();
  const values = new Map<string, Secret>();
  for (const [id, source] of secrets) {
    const value =
      source.kind === "file"
        ? await readSecret(id, source.path, runtime)
        : // As in Docker, an unset variable is an empty secret.
          encoder.encode(environment[source.name] ?? "");
    requireSize(id, value.byteLength);
    values.set(id, new Secret(value));
  }
  const sockets = new Map<string, string>();
  for (const [id, paths] of agents) sockets.set(id, await openAgent(id, paths, runtime, opened));
  return { values, agents: sockets };
}

/** Chooses the source. Which variables are for builds is up to whoever starts a server. */
function sourceOf(
  { id, ...source }: SecretEntry,
  { environment, isSecretVariable = () => true }: Pick<Runtime, "environment" | "isSecretVariable">,
): OpenableSource {
  if (source.kind === "file") return source;
  if (source.kind === "by-id") {
    // Without a word about variables that are not allowed: nobody is to learn which there are.
    const isVariable = environment[id] !== undefined && isSecretVariable(id);
    return isVariable ? { kind: "variable", name: id } : { kind: "file", path: id };
  }
  const { name } = source;
  if (isSecretVariable(name)) return source;
  throw usageError(
    wording`${{ option: "secret" }} id=${id}: the variable ${name} is not for builds: whoever starts the server allows that with --secret-env ${name}`,
  );
}

async function readSecret(
  id: string,
  path: string,
  { workingDirectory, inputs, signal }: Pick<Runtime, "workingDirectory" | "inputs" | "signal">,
): Promise<Uint8Array> {
  try {
    return await inputs.read(resolve(workingDirectory, path), { maxBytes, signal });
  } catch (error) {
    signal.throwIfAborted();
    throw new BoughError(
      wording`${{ option: "secret" }} id=${id}: ${fileError("read", path, error).message}`,
      {
        kind: "usage",
        hint: wording`Name its file or variable: ${{ option: "secret" }} id=${id},src=FILE or ${{ option: "secret" }} id=${id},env=NAME.`,
        cause: error,
      },
    );
  }
}

function requireSize(id: string, bytes: number): void {
  if (bytes <= maxBytes) return;
  throw usageError(
    wording`${{ option: "secret" }} id=${id}: too large: ${bytes} bytes, a secret may have at most ${maxBytes}`,
  );
}
