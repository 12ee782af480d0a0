import type { BuildContext } from "../../context/build-context.ts";
import type { FileSystem } from "../../context/file-system/file-system.ts";
import type { IgnoreRules } from "../../context/patterns/ignore.ts";
import type { CopyInstruction, FromInstruction } from "../../dockerfile/instruction.ts";
import { BoughError } from "../../errors.ts";
import { wording } from "../../messages/wording.ts";

/** The value of a `--build-context NAME=VALUE`, which stands for NAME in FROM, `COPY --from` and `RUN --mount=from`. */
export type NamedContext = DirectoryContext | ImageContext;

/** A context with files. */
export interface DirectoryContext {
  kind: "directory";
  name: string;
  source: FilesSource;
  /** Returns the files. Fetches them at the first call, if they are not on this machine. */
  open(use: ContextUse): Promise<ContextFiles>;
}

/** The place of a context's files: a directory of this machine, or an address that they are fetched from. */
type FilesSource = { kind: "local"; context: BuildContext } | { kind: "repository" } | { kind: "url" };

interface ContextUse {
  signal: AbortSignal;
  /** The origin of fetched files is reported to it. */
  inputs?: InputObserver | undefined;
}

export interface ContextFiles {
  context: BuildContext;
  /** Reads them. */
  files: FileSystem;
  /** The rules of the directory's own `.dockerignore`. */
  ignore: IgnoreRules;
}

export interface ImageContext {
  kind: "image";
  name: string;
  /** A reference as FROM takes it, or `oci:` with the absolute path of a layout. */
  reference: string;
}

/** Named contexts by `contextName`. */
export type NamedContexts = ReadonlyMap<string, NamedContext>;

/** Names that BuildKit never replaces. */
const reserved: ReadonlySet<string> = new Set(["scratch", "context"]);

/** Returns the shortest form of an image's name, as BuildKit compares names: `docker.io/library/alpine:latest` is `alpine`. */
export function contextName(reference: string): string {
  return reference
    .replace(/^(?:index\.)?docker\.io\//, "")
    .replace(/^library\/(?=[^/]+$)/, "")
    .replace(/:latest$/, "");
}

/** Returns the context that replaces the stage or image of this name; `undefined` if there is none. */
export function findContext(reference: string, contexts: NamedContexts): NamedContext | undefined {
  return reserved.has(reference.toLowerCase()) ? undefined : contexts.get(contextName(reference));
}

/** Returns the reference of the image that `reference` means: of a named context, or of itself. */
export function imageReference(reference: string, contexts: NamedContexts): string {
  const found = findContext(reference, contexts);
  return found?.kind === "image" ? found.reference : reference;
}

/** Returns the directory that a `COPY --from` takes its sources from; `undefined` for a stage, an image or the build context. */
export function sourceDirectory(
  { name, from }: { name: string } & Partial<Pick<CopyInstruction, "from">>,
  contexts: NamedContexts,
): DirectoryContext | undefined {
  const found = name === "COPY" && from !== undefined ? findContext(from, contexts) : undefined;
  return found?.kind === "directory" ? found : undefined;
}

/** Receives the external inputs of a build. The same input may be reported more than once. */
export interface InputObserver {
  image(reference: string, uuid: string): void;
  /** The URL has no credentials. */
  url(url: string, sha256: string): void;
  /** A commit of a git repository, whose address has no credentials. */
  repository(url: string, commit: { ref: string | undefined; commit: string }): void;
  /** A file of the context, by its path there. `context`: the name of a `--build-context`. Without this method, unchanged files are not read. */
  file?(path: string, sha256: string, context?: string): void;
}

/** Returns the COPY that puts all files of a context into the empty image: what a FROM of a directory means. */
export function copyOfDirectory(name: string, from: FromInstruction): CopyInstruction {
  const { range, original, title } = from;
  return {
    ...{ name: "COPY", range, original, title, flags: [], args: ". /", heredocs: [] },
    from: name,
    sources: [{ kind: "path", path: "." }],
    destination: "/",
    ...{ chown: undefined, chmod: undefined, exclude: [], parents: false, link: undefined },
  };
}

/** Calls `action`, which starts from the empty image. If that is refused, the error names the context that needs it. */
export async function explainDirectoryBase<Result>(
  { name }: Pick<DirectoryContext, "name">,
  action: () => Promise<Result>,
): Promise<Result> {
  try {
    return await action();
  } catch (error) {
    if (!(error instanceof BoughError) || error.kind !== "usage") throw error;
    throw new BoughError(
      wording`${{ option: "build-context" }} ${name} is a directory, which needs FROM scratch. ${error.wording}`,
      {
        kind: "usage",
        hint: `Start from an image and copy the files: COPY --from=${name} / /.`,
        cause: error,
      },
    );
  }
}
