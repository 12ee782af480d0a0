import { resolve } from "node:path";
import type { GivenIds } from "../../../builder/mounts/mount-support.ts";
import type { GivenSecrets } from "../../../builder/state/secrets.ts";
import { fileError } from "../../../context/file-system/file-error.ts";
import { BoughError, usageError } from "../../../errors.ts";
import { wording } from "../../../messages/wording.ts";
import { Secret } from "../../../secret.ts";
import type { Invocation } from "../../command-line/command.ts";
import { splitCsv, splitPair } from "../../command-line/option-values.ts";
import type { Runtime } from "../../process/runtime.ts";
import { type AgentPaths, openAgent, parseAgent } from "./agent-options.ts";

/** The source of each `--secret` and the paths of each `--ssh`, by id. Nothing has been read yet. */
interface SecretSources {
  secrets: ReadonlyMap<string, SecretSource>;
  agents: ReadonlyMap<string, AgentPaths>;
}

/** The secrets and agents of the command line, loaded on demand, and only once. Disposing them ends agents of this process. */
export interface SecretOptions extends SecretSources, Disposable {
  load(): Promise<GivenSecrets>;
}

type SecretSource = { file: string } | { variable: string };

/** BuildKit's limit. */
const maxBytes = 500 * 1024;

/** Reads `--secret id=ID[,src=FILE|,env=NAME]` and `--ssh default|ID[=SOCKET|KEY,...]`, which have docker's syntax. */
export function readSecretOptions(given: Pick<Invocation, "values" | "runtime">): SecretOptions {
  const { values, runtime } = given;
  const { environment } = runtime;
  const secrets = values.list("secret").map((text) => parseSecret(text, runtime));
  const agents = values.list("ssh").map((text) => parseAgent(text, environment));
  const sources = { secrets: new Map(secrets), agents: new Map(agents) };
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
      "file" in source
        ? await readSecret(id, source.file, runtime)
        : // As in Docker, an unset variable is an empty secret.
          encoder.encode(environment[source.variable] ?? "");
    requireSize(id, value.byteLength);
    values.set(id, new Secret(value));
  }
  const sockets = new Map<string, string>();
  for (const [id, paths] of agents) sockets.set(id, await openAgent(id, paths, runtime, opened));
  return { values, agents: sockets };
}

const fields = ["id", "type", "src", "source", "env"] as const;

function parseSecret(
  text: string,
  { environment, isSecretVariable = () => true }: Pick<Runtime, "environment" | "isSecretVariable">,
): [string, SecretSource] {
  const given: Partial<Record<(typeof fields)[number], string>> = {};
  for (const field of splitCsv(text)) {
    const [key, value] = splitPair(field);
    const name = fields.find((known) => known === key.toLowerCase());
    if (value === undefined) throw badSecret(`invalid field '${field}' must be a key=value pair`);
    if (name === undefined) throw badSecret(`unexpected key '${key}'`);
    given[name] = value;
  }
  const { id = "", type, src, source = src, env } = given;
  if (id === "") throw badSecret("the id is missing");
  if (type !== undefined && type !== "file" && type !== "env")
    throw badSecret(`unsupported secret type ${JSON.stringify(type)}`);
  const variable = (name: string): [string, SecretSource] => {
    if (isSecretVariable(name)) return [id, { variable: name }];
    throw usageError(
      `--secret id=${id}: the variable ${name} is not for builds: whoever starts the server allows that with --secret-env ${name}`,
    );
  };
  if (env !== undefined && env !== "" && type !== "file") return variable(env);
  if (source !== undefined && source !== "")
    return type === "env" ? variable(source) : [id, { file: source }];
  if (type === "env") return variable(id);
  // Without a word about variables that are not allowed: nobody is to learn which there are.
  const isVariable = type === undefined && environment[id] !== undefined && isSecretVariable(id);
  return [id, isVariable ? { variable: id } : { file: id }];
}

/** Returns an error that does not show the whole text, which may be a secret by mistake. */
function badSecret(what: string): BoughError {
  return usageError(
    wording`${{ option: "secret" }}: ${what}`,
    wording`Write ${{ option: "secret" }} id=ID,src=FILE or ${{ option: "secret" }} id=ID,env=NAME.`,
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
