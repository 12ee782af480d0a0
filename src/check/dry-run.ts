import {
  foreignPlatform,
  localBaseUrl,
  OtherPlatformError,
  requireBaseName,
  scratch,
} from "../builder/bases/base.ts";
import {
  type ContextFiles,
  type DirectoryContext,
  type NamedContexts,
  sourceDirectory,
} from "../builder/contexts/named-context.ts";
import type { StagedTypes } from "../builder/copy/destination.ts";
import { type PlannedCopy, planCopy } from "../builder/copy/plan.ts";
import type { Dialect } from "../builder/dialect.ts";
import type { Backend } from "../builder/interpreter/backend.ts";
import { expandMounts, mountedDirectory } from "../builder/mounts/mount-support.ts";
import { findMountedFiles, type MountedFiles } from "../builder/mounts/mounted-files.ts";
import type { MountSupport } from "../builder/service-support.ts";
import { pathInImage } from "../builder/state/path-in-image.ts";
import type { BuildPlatforms } from "../builder/state/platform.ts";
import { createIsKnown, type StageScope, variableLookup } from "../builder/state/scope.ts";
import { describeExcluded } from "../builder/state/warnings.ts";
import { extend } from "../columns/persistent-map.ts";
import type { BuildContext } from "../context/build-context.ts";
import { cacheFileSystem, type FileSystem } from "../context/file-system/file-system.ts";
import type { IgnoreRules } from "../context/patterns/ignore.ts";
import type { FromInstruction, Instruction, RunInstruction } from "../dockerfile/instruction.ts";
import type { EscapeCharacter } from "../dockerfile/text/directives.ts";
import { warnsOfUndefined } from "../dockerfile/variable-replacement.ts";
import { wordsOfMount } from "../dockerfile/words/references.ts";
import { BoughError } from "../errors.ts";
import { withDefaultPath } from "../image/config.ts";
import { parseReference } from "../service/images/reference.ts";
import { isTag } from "../service/wire/image.ts";
import { type OpenReference, openReferences } from "./lints/references.ts";
import { describeItem, type PlannedFile, plannedFiles } from "./planned-file.ts";
import { type Finding, isWarningRule, warn } from "./rules.ts";

export interface DryRunOptions {
  dialect: Dialect;
  context: BuildContext;
  files: FileSystem;
  ignore: IgnoreRules;
  contexts: NamedContexts;
  /** False for a stage that is not built: nothing is fetched for it. */
  opensContexts: boolean;
  buildArgs: ReadonlyMap<string, string>;
  /** `--allow-local-from`. */
  allowsLocalFrom: boolean;
  /** The service and its platform; `undefined` if no instruction depends on the platform. */
  platform: AssumedService | undefined;
  /** Resolves to true if the service supports FROM scratch. Called only if that matters. */
  startsFromScratch(): Promise<boolean>;
  signal: AbortSignal;
  /** Returns the final state of the stage that a FROM names. */
  baseOf(from: FromInstruction): DryRunStage | undefined;
  /** Returns the ONBUILD instructions of that stage. */
  triggersOf(from: FromInstruction): readonly Instruction[];
}

export interface AssumedService {
  platforms: BuildPlatforms;
  /** False if the service itself might report otherwise. */
  isCertain: boolean;
  startsFromScratch: boolean;
  /** The kinds of `RUN --mount` whose contents the service can keep out of its images. */
  mounts: MountSupport;
}

/** The files, references, warnings and errors that a dry run of the Dockerfile has found. */
export interface DryRunResult {
  files: PlannedFile[];
  /** The images, URLs and repositories that no digest, checksum or commit pins: the next build may get others. */
  references: OpenReference[];
  warnings: Finding[];
  errors: Finding[];
}

/** The error of sources that can't be copied: they are missing, lead out of the context, or can't be read. */
export class UncopyableSourceError extends BoughError {
  override readonly name = "UncopyableSourceError";
}

/** Creates the backend of `--check`. It sends no request, reads no file, and adds to `result` what a build would do. */
export function createDryRun(
  options: DryRunOptions,
  escape: EscapeCharacter,
  result: DryRunResult,
): Backend<DryRunStage> {
  const { contexts, signal, buildArgs } = options;
  const remembered = new Map<FileSystem, FileSystem>();
  /** Returns the files of a named context, or of the build context. */
  const open: OpenFiles = async (directory) => {
    if (directory !== undefined && !options.opensContexts)
      throw new UncopyableSourceError("the build context is not needed, so it is not opened");
    const { context, ignore, files } =
      directory === undefined ? options : await asSource(() => directory.open({ signal }));
    return { context, ignore, files: remembered.getOrInsertComputed(files, cacheFileSystem) };
  };
  const backend: Backend<DryRunStage> = {
    dialect: options.dialect,
    escape,
    buildArgs,
    contexts,
    assumedVariables: withDefaultPath([]),
    warn({ rule, message, subject, skipped }, instruction) {
      if (rule === undefined || !isWarningRule(rule)) return;
      result.warnings.push({ ...warn(rule, message, instruction, subject), ...(skipped && { skipped }) });
    },
    warnsAboutUndefined: ({ name }) => warnsOfUndefined(name, true),

    platformOf(from, globals) {
      const { platform } = options;
      try {
        return foreignPlatform(from, platform?.platforms, variableLookup({ args: globals }), escape);
      } catch (error) {
        if (!(error instanceof OtherPlatformError) || platform?.isCertain === true) throw error;
        backend.warn({ rule: "OtherPlatform", message: error.wording }, from);
        return undefined;
      }
    },
    startFromStage: async (from) => options.baseOf(from),
    triggersOf: options.triggersOf,
    // A check does not read the triggers of images.
    linkTrigger: () => {},
    startFromImage: (reference) => startFrom(reference, options),
    loadImageEnv: async (_, stage) => stage,
    addToHistory: (_, stage) => stage,
    async changeWorkdir(instruction, path, stage) {
      if (path === undefined)
        return { ...stage, workdir: undefined, workdirIsSet: true, workdirIsAssumed: false };
      const isAbsolute = path.startsWith("/");
      if (!stage.workdirIsSet && !isAbsolute) {
        const message = `Relative workdir ${JSON.stringify(path)} can have unexpected results if the base image changes`;
        backend.warn({ rule: "WorkdirRelativePath", message }, instruction);
      }
      if (path === "") return stage;
      const isLost = stage.workdir === undefined && !isAbsolute;
      const workdir = isLost ? undefined : pathInImage(stage.workdir ?? "/", path);
      const workdirIsAssumed = stage.workdirIsAssumed && !isAbsolute;
      return { ...stage, workdir, workdirIsSet: true, workdirIsAssumed };
    },
    changeUser: (_, stage) => stage,

    async copyOptions(instruction, { workdir, staged }) {
      return {
        ...(await open(sourceDirectory(instruction, contexts))),
        ...{ signal, workdir, staged },
        // Only a build asks the service what it can make.
        whyLeftOut: backend.dialect.copiesAsBuildKit ? async () => undefined : undefined,
        isDirectoryInImage: async () => false,
        readLinkInImage: async () => undefined,
      };
    },
    planCopy: planSources,
    // Only a build can find out the files of an image.
    copyFromImage: async (_, __, stage) => stage,
    async copy(instruction, copy, stage) {
      const { plan, isDestinationKnown } = copy;
      if (plan.excluded.length > 0)
        backend.warn({ rule: "DefaultExclude", message: describeExcluded(plan.excluded) }, instruction);
      const directory = sourceDirectory(instruction, contexts);
      const from = directory === undefined ? {} : { context: directory.name };
      for (const reference of openReferences(copy, buildArgs))
        result.references.push({ ...reference, range: instruction.range });
      result.files.push(
        ...plannedFiles(instruction, copy, stage, escape).map((file) => ({ ...file, ...from })),
      );
      return isDestinationKnown ? { ...stage, staged: extend(stage.staged, typesOf(copy)) } : stage;
    },
    async run(instruction, stage) {
      for (const { warnings, excluded } of await planMounts(
        instruction,
        stage,
        { ...options, open },
        escape,
      )) {
        for (const warning of warnings) backend.warn(warning, instruction);
        if (excluded.length > 0)
          backend.warn({ rule: "DefaultExclude", message: describeExcluded(excluded) }, instruction);
      }
      return { ...stage, staged: new Map() };
    },
  };
  return backend;
}

type OpenFiles = (directory: DirectoryContext | undefined) => Promise<ContextFiles>;

/** Finds the files of the context that are mounted. Files that are missing there are found without the service. */
async function planMounts(
  { mounts }: RunInstruction,
  stage: DryRunStage,
  { contexts, signal, open }: Pick<DryRunOptions, "contexts" | "signal"> & { open: OpenFiles },
  escape: EscapeCharacter,
): Promise<MountedFiles[]> {
  const isKnown = createIsKnown(stage, escape);
  const known = mounts.filter((mount) => wordsOfMount(mount).every(isKnown));
  // The image may have a WORKDIR, in which a relative target is not the root.
  const workdir = stage.workdirIsAssumed && stage.workdir === "/" ? undefined : stage.workdir;
  const given = { lookup: variableLookup(stage), escape, workdir: workdir ?? "/workdir" };
  const found: MountedFiles[] = [];
  for (const spec of expandMounts({ mounts: known }, given)) {
    if (spec.type !== "bind") continue;
    const directory = mountedDirectory(spec, contexts);
    if (spec.from !== undefined && directory === undefined) continue;
    const opened = await open(directory);
    found.push(await asSource(() => findMountedFiles(spec.source, { ...opened, signal })));
  }
  return found;
}

async function startFrom(reference: string, options: DryRunOptions): Promise<DryRunStage> {
  const startsFromScratch = reference === scratch && (await options.startsFromScratch());
  requireBaseName(reference, { startsFromScratch });
  if (startsFromScratch) return startDryRunStage();
  const parsed = isTag(reference) ? undefined : parseReference(reference);
  if (parsed?.kind === "local") localBaseUrl(parsed, options);
  return startDryRunStage();
}

function planSources(...parameters: Parameters<typeof planCopy>): ReturnType<typeof planCopy> {
  return asSource(() => planCopy(...parameters));
}

/** Turns an error into one about a source: each instruction that needs an unreachable address reports it. */
async function asSource<Result>(find: () => Promise<Result>): Promise<Result> {
  try {
    return await find();
  } catch (error) {
    if (!(error instanceof BoughError) || error.kind === "interrupted") throw error;
    const { message, hint } = error;
    throw new UncopyableSourceError(message, { cause: error, hint });
  }
}

/** Returns the entries that later instructions find, by path. */
function typesOf({ plan }: PlannedCopy): [path: string, { type: string; target?: string }][] {
  return Array.from(plan.items, (item) => [
    item.path,
    item.kind === "entry" ? item.entry : describeItem(item),
  ]);
}

/** A stage without an image. */
export interface DryRunStage extends StageScope {
  /** `undefined` if it depends on a variable of the image. */
  workdir: string | undefined;
  /** True after any WORKDIR. */
  workdirIsSet: boolean;
  /** True if no WORKDIR was absolute: relative ones are resolved from `/`, although the image may have another WORKDIR. */
  workdirIsAssumed: boolean;
  staged: StagedTypes;
}

export function startDryRunStage(): DryRunStage {
  const words = { env: new Map(), args: new Map(), inherited: undefined, unknown: new Map(), config: {} };
  const place = { workdir: "/", workdirIsSet: false, workdirIsAssumed: true, staged: new Map() };
  return { ...words, ...place };
}
