/** `--build-context NAME=VALUE`, with the names and values that `docker buildx build` and `buildah build` take. */
import { join, resolve } from "node:path";
import { redactUrl } from "../../../builder/addresses/source-url.ts";
import type { ImageContext, NamedContext, NamedContexts } from "../../../builder/contexts/named-context.ts";
import { openNamedContext } from "../../../context/build-context.ts";
import { localFileSystem } from "../../../context/file-system/file-system.ts";
import { readIgnoreRules } from "../../../context/patterns/ignore.ts";
import { BoughError, messageOf, usageError } from "../../../errors.ts";
import { wording } from "../../../messages/wording.ts";
import { type ContextSource, findContextSource, type LazySource } from "../../contexts/context-source.ts";
import type { PrepareFetch } from "../../contexts/prepare-fetches.ts";
import type { ContextEntry } from "../../entries/context.ts";
import { isEmbedded } from "../../service/choice.ts";
import type { BuildInvocation } from "../request.ts";
import { layoutReference } from "./layout-reference.ts";

/** A context as given, before its directory is opened. */
type GivenContext =
  | ImageContext
  | { kind: "directory"; name: string; path: string }
  | { kind: "remote"; name: string; source: LazySource };

type GivenOptions = Pick<BuildInvocation, "options" | "runtime" | "globals">;

/**
 * Opens the contexts of this machine. Throws a BoughError of kind `usage` for an invalid one, also if no instruction uses it. An
 * address is only read: nothing is fetched yet.
 */
export async function openNamedContexts(
  given: GivenOptions,
  prepare: PrepareFetch,
  warn: (message: string) => void,
): Promise<NamedContexts> {
  const contexts = new Map<string, NamedContext>();
  for (const context of readContextOptions(given)) {
    const { name } = context;
    switch (context.kind) {
      case "image":
        contexts.set(name, context);
        break;
      case "directory":
        contexts.set(name, await open(context, given, warn));
        break;
      case "remote": {
        const { source } = context;
        contexts.set(name, {
          ...{ kind: "directory", name },
          source: { kind: source.kind === "fetched" ? "repository" : source.kind },
          open: prepare(name, source),
        });
      }
    }
  }
  return contexts;
}

/** Returns the paths of the ignore files of all directories, whether or not they exist. */
export function namedIgnoreFiles(given: GivenOptions): string[] {
  return readContextOptions(given).flatMap((context) =>
    context.kind === "directory"
      ? [join(resolve(given.runtime.workingDirectory, context.path), ".dockerignore")]
      : [],
  );
}

async function open(
  { name, path }: Extract<GivenContext, { kind: "directory" }>,
  { runtime: { workingDirectory } }: GivenOptions,
  warn: (message: string) => void,
): Promise<NamedContext> {
  const context = await openNamedContext(name, path, workingDirectory);
  const place = { contextPath: context.absolutePath, dockerfilePath: undefined };
  const ignore = readIgnoreRules({ ...place, defaultExcludes: false, inheritance: "effective", warn });
  const opened = { context, files: localFileSystem, ignore };
  return { kind: "directory", name, source: { kind: "local", context }, open: async () => opened };
}

/** Returns the contexts by name. As in Docker, the last of several with the same name counts. */
function readContextOptions(build: GivenOptions): GivenContext[] {
  const given = (build.options["build-context"] ?? []).map((entry) => readContext(entry, build));
  return [...new Map(given.map((context) => [context.name, context])).values()];
}

function readContext(entry: ContextEntry, { runtime, globals }: GivenOptions): GivenContext {
  const { name, text } = entry;
  switch (entry.kind) {
    case "image":
      return { kind: "image", name, reference: entry.reference };
    case "fetched":
      return { kind: "remote", name, source: { kind: "fetched", context: entry.context } };
    case "layout":
      if (!isEmbedded(runtime, globals)) throw unreadableLayout(name, text);
      return {
        kind: "image",
        name,
        reference: layoutReference(entry.image, `${name}=${text}`, runtime.workingDirectory),
      };
    case "place":
      return readPlace(name, text, runtime.workingDirectory);
  }
}

/** Returns the error for an OCI layout, of which a service can fetch nothing. */
export function unreadableLayout(name: string, value = "oci-layout://..."): BoughError {
  return usageError(
    wording`${{ option: "build-context" }} ${name}=${value}: the service can't read files of this machine`,
    `Push the image to a registry and give ${name}=docker-image://REFERENCE, or build on the embedded engine (--local).`,
  );
}

/** Reads a directory or an address. As with CONTEXT, an existing directory wins. */
function readPlace(name: string, value: string, workingDirectory: string): GivenContext {
  const shown = wording`${{ option: "build-context" }} ${name}=${redactUrl(value)}`;
  const source = findSource(name, value, workingDirectory);
  if (source === undefined) {
    throw usageError(
      wording`${shown}: unknown kind of context`,
      "Give the path of a directory, docker-image://REFERENCE, oci-layout://PATH:TAG, or the address of a git repository or file.",
    );
  }
  // Standard input can only be CONTEXT.
  if (source.kind === "directory" || source.kind === "stdin") return { kind: "directory", name, path: value };
  if (source.kind === "url" && !URL.canParse(source.url))
    throw usageError(wording`${shown}: invalid address`);
  return { kind: "remote", name, source };
}

function findSource(name: string, value: string, workingDirectory: string): ContextSource | undefined {
  try {
    return findContextSource(value, workingDirectory);
  } catch (error) {
    throw new BoughError(wording`${{ option: "build-context" }} ${name}=${messageOf(error)}`, {
      kind: "usage",
      cause: error,
    });
  }
}
