/** Fetches remote bake files: `bough bake ADDRESS [CONTEXT] [TARGET...]`. */
import { redactUrl } from "../../../builder/addresses/source-url.ts";
import { usageError } from "../../../errors.ts";
import { Secret } from "../../../secret.ts";
import { defaultMaxAddBytes } from "../../builds/inputs.ts";
import { findRemoteSource, type RemoteSource } from "../../contexts/context-source.ts";
import { type FetchSettings, openContextStorage } from "../../contexts/fetched-context.ts";
import { fetchContext } from "../../contexts/open-fetched-context.ts";
import type { BakeText } from "../file-location.ts";
import type { BakeInvocation } from "../options/bake-options.ts";
import { gitSecrets } from "./git-secrets.ts";
import type { RemoteTree } from "./tree.ts";

/** The files of a repository or an archive, or a single bake file, whose paths are those of this machine. */
export type RemoteDefinition = Disposable & ({ tree: RemoteTree } | { file: BakeText });

/** The limit of docker buildx for a bake file at an address. */
const maxBytes = 2 * 1024 * 1024;

/** @param isRead true if nothing is built, so that nothing is kept either */
export async function fetchDefinition(
  address: string,
  { isRead }: { isRead: boolean },
  { runtime, log }: Pick<BakeInvocation, "runtime" | "log">,
): Promise<RemoteDefinition> {
  const source = findRemoteSource(address);
  if (source === undefined) throw usageError(`${redactUrl(address)}: unsupported address`);
  const settings: FetchSettings = {
    buildArgs: new Map(),
    maxAddBytes: defaultMaxAddBytes,
    secrets: { load: async () => credentialsFor(source, address, runtime.environment) },
    keepsContext: !isRead,
    log,
  };
  using stack = new DisposableStack();
  const contexts = openContextStorage(settings, runtime, stack);
  const names = { subject: "the bake file", alone: "a bake file" };
  const fetched = await fetchContext(source, { ...names, settings, contexts, runtime });
  stack.use(fetched.held);
  const { dockerfile: text } = fetched;
  if (text !== undefined && Buffer.byteLength(text) > maxBytes)
    throw usageError(`${fetched.name} is larger than 2 MB`);
  const opened = stack.move();
  return {
    ...(text === undefined ? { tree: { address, fetched } } : { file: { file: redactUrl(address), text } }),
    [Symbol.dispose]: () => opened.dispose(),
  };
}

/** Reads buildx's variables with credentials of private repositories. */
function credentialsFor(
  source: RemoteSource,
  address: string,
  environment: Readonly<Record<string, string | undefined>>,
): Awaited<ReturnType<FetchSettings["secrets"]["load"]>> {
  const encoder = new TextEncoder();
  const values = new Map(
    gitSecrets(environment).map(([id, name]) => [id, new Secret(encoder.encode(environment[name] ?? ""))]),
  );
  const agent = environment.BUILDX_BAKE_GIT_SSH?.split(",", 1)[0] || environment.SSH_AUTH_SOCK;
  if (source.kind === "repository" && source.address.scheme === "ssh" && !agent)
    throw usageError(
      `${redactUrl(address)}: an SSH agent is required`,
      "Start ssh-agent, or name its socket in BUILDX_BAKE_GIT_SSH.",
    );
  return { values, agents: new Map(agent ? [["default", agent]] : []) };
}
