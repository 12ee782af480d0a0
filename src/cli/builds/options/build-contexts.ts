/** `--build-context NAME=VALUE`, with the names and values that `docker buildx build` and `buildah build` take. */
import { join, resolve } from "node:path";
import { redactUrl } from "../../../builder/addresses/source-url.ts";
import {
  contextName,
  type ImageContext,
  type NamedContext,
  type NamedContexts,
} from "../../../builder/contexts/named-context.ts";
import { openNamedContext } from "../../../context/build-context.ts";
import { localFileSystem } from "../../../context/file-system/file-system.ts";
import { readIgnoreRules } from "../../../context/patterns/ignore.ts";
import { BoughError, messageOf, usageError } from "../../../errors.ts";
import { wording } from "../../../messages/wording.ts";
import { parseReference } from "../../../service/images/reference.ts";
import type { Invocation } from "../../command-line/command.ts";
import { type ContextSource, findContextSource, type LazySource } from "../../contexts/context-source.ts";
import type { FetchedContext } from "../../contexts/fetched-context.ts";
import type { PrepareFetch } from "../../contexts/prepare-fetches.ts";
import { isEmbedded } from "../../service/choice.ts";
import { layoutReference } from "./layout-reference.ts";

/** A context as given, before its directory is opened. */
type GivenContext =
  | ImageContext
  | { kind: "directory"; name: string; path: string }
  | { kind: "remote"; name: string; source: LazySource };

type GivenOptions = Pick<Invocation, "values" | "runtime" | "globals"> & {
  /** Contexts that came with a bake file, by the words that name them. */
  fetched?: ReadonlyMap<string, FetchedContext> | undefined;
};

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
function readContextOptions(options: GivenOptions): GivenContext[] {
  const given = options.values.list("build-context").map((text) => readContext(text, options));
  return [...new Map(given.map((context) => [context.name, context])).values()];
}

function readContext(text: string, { runtime, globals, fetched }: GivenOptions): GivenContext {
  const [, word = "", value = ""] = /^([^=]+)=(.+)$/s.exec(text) ?? [];
  // An address without a name may have an equals sign in its query.
  if (word === "" || word.includes("://")) {
    throw usageError(
      wording`${{ option: "build-context" }} takes NAME=VALUE, not ${JSON.stringify(redactUrl(text))}`,
      wording`As in ${{ option: "build-context" }} lib=../lib, or ${{ option: "build-context" }} alpine=docker-image://alpine:3.20.`,
    );
  }
  requireName(word);
  const name = contextName(word);
  const context = fetched?.get(value);
  if (context !== undefined) return { kind: "remote", name, source: { kind: "fetched", context } };
  const [, scheme, rest = ""] = /^([a-z][a-z0-9+.-]*):\/\/(.*)$/is.exec(value) ?? [];
  switch (scheme?.toLowerCase()) {
    case "docker-image":
    case "container-image":
    case "docker":
      return { kind: "image", name, reference: imageIn(rest, name, value) };
    case "oci-layout":
      if (!isEmbedded(runtime, globals)) throw unreadableLayout(name, value);
      return {
        kind: "image",
        name,
        reference: layoutReference(rest, `${name}=${value}`, runtime.workingDirectory),
      };
    default:
      return readPlace(name, value, runtime.workingDirectory);
  }
}

/** Requires the name of an image, as BuildKit does. */
function requireName(name: string): void {
  if (/^\d+$/.test(name)) {
    throw usageError(
      wording`${{ option: "build-context" }} ${name}: a number means a stage by its place in the Dockerfile`,
      "Give the stage a name (FROM ... AS NAME), and replace that.",
    );
  }
  try {
    parseReference(name);
  } catch (error) {
    throw new BoughError(wording`${{ option: "build-context" }} ${name}: invalid name: ${messageOf(error)}`, {
      kind: "usage",
      hint: "Give the name as FROM or --from has it: of a stage, an image or of your choice, in lower case.",
      cause: error,
    });
  }
}

function imageIn(reference: string, name: string, value: string): string {
  try {
    if (parseReference(reference).kind !== "local") return reference;
  } catch (error) {
    throw new BoughError(wording`${{ option: "build-context" }} ${name}=${value}: ${messageOf(error)}`, {
      kind: "usage",
      hint: `As in ${name}=docker-image://alpine:3.20.`,
      cause: error,
    });
  }
  throw usageError(
    wording`${{ option: "build-context" }} ${name}=${value}: this is not an image's name`,
    wording`For an OCI layout write ${name}=oci-layout://PATH:TAG.${wording` ${{ command: "images import" }} imports other formats.`}`,
  );
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
  if (/^target:/.test(value)) {
    throw usageError(
      wording`not supported: ${shown}: a target is one of a bake file`,
      wording`${wording`${{ command: "bake" }} builds targets of each other.`} Of one build: tag the target, then give ${name}=docker-image://TAG.`,
    );
  }
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
