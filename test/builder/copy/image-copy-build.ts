/** Builds that copy from an image, on any service, in the same way as `bough build`. */
import { join } from "node:path";
import { createSharedBuildState } from "../../../src/builder/build.ts";
import { baseHash } from "../../../src/builder/cache/chain-hash.ts";
import { createImageInspection } from "../../../src/builder/cache/image-inspection.ts";
import { createLayerCache } from "../../../src/builder/cache/layer-cache.ts";
import { createStepMemory } from "../../../src/builder/cache/step-memory.ts";
import { stageImageCopy } from "../../../src/builder/copy/from-image.ts";
import { expandCopyWords } from "../../../src/builder/copy/words.ts";
import { dialects } from "../../../src/builder/dialect.ts";
import type { StepEvent } from "../../../src/builder/events.ts";
import type { BuildJob } from "../../../src/builder/job.ts";
import { supportOf } from "../../../src/builder/service-support.ts";
import { createSourcePrefetch } from "../../../src/builder/stages/source-prefetch.ts";
import { createEagerUploads } from "../../../src/builder/staging/eager-uploads.ts";
import { createSmallContents } from "../../../src/builder/staging/small-contents.ts";
import { type StageState, startStage } from "../../../src/builder/state/state.ts";
import { commitPending } from "../../../src/builder/steps/commit-step.ts";
import { systemClock } from "../../../src/clock.ts";
import { localFileSystem } from "../../../src/context/file-system/file-system.ts";
import { ignoreRules } from "../../../src/context/patterns/ignore.ts";
import { parseDockerfile } from "../../../src/dockerfile/parse.ts";
import { createService, type ServiceOptions } from "../../../src/service/client.ts";
import { openStore, type Store } from "../../../src/store/store.ts";

export interface ImageCopyBuild {
  events: StepEvent[];
  store: Store;
  /** Stages `COPY --from=source <line>` for each line, on top of `base`. */
  stage(lines: readonly string[], images: { source: string; base: string }): Promise<StageState>;
  /** Returns the UUID of the stage's image. */
  commit(stage: StageState): Promise<string>;
  close(): void;
}

/** `directory` has the build's state; the directory of an earlier build makes this a later build of the same. */
export function createImageCopyBuild(
  directory: string,
  service: Pick<ServiceOptions, "fetch" | "baseUrl">,
): ImageCopyBuild {
  const clock = systemClock;
  const { signal } = new AbortController();
  const store = openStore(join(directory, "state.db"), clock);
  const client = createService({
    ...service,
    userAgent: "bough/0.0.0 (test)",
    clock,
    signal,
    random: () => 0,
    knownFiles: store.uploads,
  });
  const events: StepEvent[] = [];
  const hashes = store.hashes.open(directory);
  const fileStates = store.fileStates.open(directory);
  const dockerfile = parseDockerfile("FROM base\n", "Dockerfile");
  const context = { path: directory, absolutePath: directory, realPath: directory };
  const ignore = ignoreRules([], { defaultExcludes: false });
  const eagerUploads = createEagerUploads({
    service: client,
    uploads: store.uploads,
    contents: createSmallContents(),
    signal,
  });
  const supports = supportOf(client, dialects.docker);
  const session = "build:test";
  const source = { context, ignore, files: localFileSystem, hashes, fileStates };
  const job: BuildJob = {
    asked: {
      dialect: dialects.docker,
      dockerfile,
      target: undefined,
      contexts: new Map(),
      session,
      buildArgs: new Map(),
      platform: undefined,
      secrets: { values: new Map(), agents: new Map() },
      labels: new Map(),
      tags: [],
      useCache: true,
      uncachedStages: [],
      pullsImages: false,
      allowsLocalFrom: false,
      maxAddBytes: 1,
      jobs: 1,
      measuresLayers: false,
      commands: { timeoutSeconds: 60, network: "default", hosts: [], limits: undefined },
    },
    services: {
      service: client,
      supports,
      inspection: createImageInspection(client, supports, store.imageMetadata),
      store,
      layers: createLayerCache(store, session),
      memory: createStepMemory(store.steps, { session, dockerfile: "Dockerfile", explains: false }),
      owner: { id: "test", isAlive: () => false },
      git: {
        run: () => Promise.reject(new Error("no git")),
        makeDirectory: async () => ({ path: "", [Symbol.dispose]() {} }),
      },
      openRegistry: () => Promise.reject(new Error("no registry")),
      decompress: () => Promise.reject(new Error("nothing is decompressed")) as never,
      fetchUrl: fetch,
      clock,
      signal,
    },
    source,
    stages: {
      baseOf: () => undefined,
      linkTrigger: () => {},
      triggersOf: () => [],
      sourceOf: () => undefined,
      mountedStage: () => undefined,
    },
    shared: createSharedBuildState(1).work,
    useCache: true,
    prefetch: createSourcePrefetch({
      ...source,
      dialect: dialects.default,
      dockerfile,
      eagerUploads,
      clock,
      signal,
    }),
    eagerUploads,
    layerTitles: () => [],
    platforms: undefined,
    emit: (event: StepEvent) => void events.push(event),
  };

  return {
    events,
    store,
    async stage(lines, { source, base }) {
      const hash = baseHash({ uuid: base }, client);
      const found = { hash, image: base, parent: undefined, kind: "from", title: "FROM base" } as const;
      let state = startStage(job.services.layers.put({ ...found, operation: undefined }));
      const text = lines.map((line) => `COPY --from=source ${line}\n`).join("");
      for (const instruction of parseDockerfile(`FROM base\n${text}`, "Dockerfile").instructions) {
        if (instruction.name !== "COPY") continue;
        const words = expandCopyWords(instruction, () => undefined, "\\", dialects.docker);
        state = await stageImageCopy(
          instruction,
          { words, source: { image: source, evictable: undefined } },
          state,
          job,
        );
      }
      return state;
    },
    commit: async (stage) => (await commitPending(stage, { line: 1, ordinal: 0 }, job)).layer.image,
    close: () => store.close(),
  };
}
