import type {
  AddInstruction,
  CopyInstruction,
  FromInstruction,
  Instruction,
  RunInstruction,
} from "../../dockerfile/instruction.ts";
import { variablesIn, withDefaultPath } from "../../image/config.ts";
import { isSamePlatform } from "../../image/platform.ts";
import { foreignPlatform, scratch } from "../bases/base.ts";
import { chainHash } from "../cache/chain-hash.ts";
import { imageReference, sourceDirectory } from "../contexts/named-context.ts";
import { planCopy } from "../copy/plan.ts";
import type { Backend } from "../interpreter/backend.ts";
import { pathInImage } from "../state/path-in-image.ts";
import { variableLookup } from "../state/scope.ts";
import { changeUser, changeWorkdir, keepWorkdir, type StageState, startStage } from "../state/state.ts";
import { copyOf } from "../steps/copy-from-step.ts";
import { runKey } from "../steps/run-step.ts";
import { hashCopiedFiles, hashMounts } from "./file-keys.ts";
import type { KeyJob } from "./key-job.ts";

/** The stages whose keys are known. */
interface StageKeys {
  baseOf(from: FromInstruction): StageState | undefined;
  sourceOf(instruction: Instruction): StageState | undefined;
  mountedStage(run: RunInstruction, from: string): StageState | undefined;
  triggersOf(from: FromInstruction): readonly Instruction[];
  linkTrigger(trigger: Instruction, from: FromInstruction): void;
}

/**
 * Creates the backend that finds content keys. It makes no layer: each instruction that would make one adds itself, and the files that
 * it copies, to the hash of the stage.
 */
export function createKeyBackend(job: KeyJob, stages: StageKeys): Backend<StageState> {
  const { asked, signal, platforms } = job;
  const { dialect, buildArgs, contexts } = asked;
  const { escape } = asked.dockerfile;
  const sourceHash = async (from: string, stage: StageState | undefined): Promise<string> => {
    if (stage !== undefined) return stage.layer.hash;
    // As in Docker, whatever the platform of the stage itself.
    const platform = isSamePlatform(platforms.build, platforms.target) ? undefined : platforms.target;
    return (await job.findBase(imageReference(from, contexts), platform)).hash;
  };
  /** Adds to the hash an instruction that depends on nothing but its own words and the layer below. */
  const addToLayer = async (stage: StageState, instruction: string, command: readonly string[]) =>
    withHash(stage, await chainHash({ parent: stage.layer, instruction, command, files: new Map() }, signal));
  return {
    ...{ dialect, escape, buildArgs, contexts, assumedVariables: undefined },
    warn: () => undefined,
    warnsAboutUndefined: () => false,

    platformOf: (from, globals) =>
      foreignPlatform(from, platforms, variableLookup({ args: globals }), escape),
    startFromStage: async (from) => stages.baseOf(from),
    triggersOf: stages.triggersOf,
    linkTrigger: stages.linkTrigger,
    async startFromImage(reference, _, platform) {
      const { hash, config, author } = await job.findBase(reference, platform);
      return {
        ...startStage(layerOf(hash), config),
        ...(author !== undefined && { author }),
        isFromScratch: reference === scratch,
        inherited: withDefaultPath(variablesIn(config)),
      };
    },
    loadImageEnv: async (_, stage) => stage,
    // A line of the history changes nothing in a container.
    addToHistory: (_, stage) => stage,
    async changeWorkdir(_, path = "/", stage) {
      if (path === "") return keepWorkdir(stage);
      const next = changeWorkdir(stage, path);
      return addToLayer(next, "WORKDIR", [next.config.WorkingDir, next.config.User ?? ""]);
    },
    changeUser: (user, stage) => (user === undefined ? stage : changeUser(stage, user)),

    async copyOptions(instruction, { config }) {
      const directory = sourceDirectory(instruction, contexts);
      const { context, ignore, files } =
        directory === undefined ? job.source : await directory.open({ signal });
      return {
        ...{ context, files, ignore, signal },
        staged: new Map(),
        whyLeftOut: dialect.copiesAsBuildKit ? async () => undefined : undefined,
        workdir: config.WorkingDir,
        // The base and all that was copied before count in the key: where the files go follows from these.
        isDirectoryInImage: async () => false,
        readLinkInImage: async () => undefined,
      };
    },
    planCopy,
    async copyFromImage(instruction, words, stage) {
      const hash = await sourceHash(instruction.from ?? "", stages.sourceOf(instruction));
      const copy = { ...copyOf(instruction, words, stage), chown: words.chown };
      return addToLayer(stage, "COPY", [hash, JSON.stringify(copy)]);
    },
    async copy(instruction, { words, plan }, stage) {
      const copied = await hashCopiedFiles(instruction, { words, plan }, job);
      const path = pathInImage(stage.config.WorkingDir, words.destination);
      const place = /\/\.?$/.test(words.destination) ? `${path}/` : path;
      const command = [...optionsOf(instruction), place, words.chown, words.chmod, copied];
      return addToLayer(stage, instruction.name, command);
    },
    async run(instruction, stage) {
      const mounts = await hashMounts(instruction, stage, job, (from) =>
        sourceHash(from, stages.mountedStage(instruction, from)),
      );
      const mounted = mounts === undefined ? undefined : { key: mounts, files: new Map(), images: [] };
      const key = runKey(instruction, stage, asked, mounted);
      return withHash(stage, await chainHash(key, signal));
    },
  };
}

function optionsOf(instruction: CopyInstruction | AddInstruction): string[] {
  const { parents } = instruction;
  const unpack = instruction.name === "ADD" ? instruction.unpack : undefined;
  return [...(parents ? ["--parents"] : []), ...(unpack === undefined ? [] : [`--unpack=${unpack}`])];
}

function withHash(stage: StageState, hash: string): StageState {
  return { ...stage, layer: layerOf(hash), workdirIsPending: false };
}

/** Returns a stand-in for a layer, which no service has: only its hash is used. */
function layerOf(hash: string): StageState["layer"] {
  return { hash, image: hash, entry: 0, cached: false, operation: null, isBase: false, origin: [] };
}
