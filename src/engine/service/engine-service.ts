/** The engine as the service of this process: every call is a function call with typed values. */
import type { Clock } from "../../clock.ts";
import { once } from "../../once.ts";
import type { Service } from "../../service/client.ts";
import type { KnownFiles } from "../../service/files/upload.ts";
import type { ServiceNotice } from "../../service/http/attempt.ts";
import type { ServedTime } from "../../service/service.ts";
import { accountOf } from "../account.ts";
import type { EngineCore } from "../core.ts";
import { findPackable } from "../export/image-layers.ts";
import { createCalls } from "./calls.ts";
import { createCapabilities } from "./capabilities.ts";
import { createImageFiles } from "./image-files.ts";
import { createImages } from "./images.ts";
import { createLayers } from "./layers.ts";
import { createOperationRecords } from "./operation-records.ts";
import { createOperations } from "./operations.ts";
import { createTerminals } from "./terminals.ts";
import { createUploads } from "./uploads.ts";

export interface EngineServiceOptions {
  clock: Clock;
  /** Aborts everything but `cancel`. */
  signal: AbortSignal;
  onNotice?: (notice: ServiceNotice) => void;
  /** Called at the end of each operation. */
  onServed?: (time: ServedTime) => void;
  knownFiles?: KnownFiles;
  /** Descriptions of the operations under way, for a process that exits without waiting for them. */
  running?: Set<string>;
}

export function createEngineService(core: EngineCore, options: EngineServiceOptions): Service {
  const { state } = core;
  const { clock, signal, onNotice = () => undefined, onServed, knownFiles, running = new Set() } = options;
  const calls = createCalls(core, signal);
  const account = once(() => accountOf(state));
  return {
    address: `embedded engine (${state.layout.directory})`,
    base: "http://engine/",
    isInThisProcess: true,
    capabilities: createCapabilities(account),
    whoami: async () => {
      const { permissions } = account();
      return { expires: undefined, permissions: Object.keys(permissions) };
    },
    async packLayer(image, layer, job) {
      const packable = await calls.read(() => findPackable(state, image, layer));
      if (packable === undefined) return undefined;
      const packer = await core.openPacker();
      return packer.pack({ ...packable, inUserNamespace: state.inUserNamespace }, { ...job, signal });
    },
    ...createImages(state, calls),
    ...createImageFiles(state, calls, signal),
    ...createLayers(state, calls, signal),
    ...createOperations(core, calls, { clock, signal, onNotice, onServed, running }),
    ...createOperationRecords(state, calls),
    ...createUploads(state, calls, { signal, knownFiles }),
    ...createTerminals(state, calls, { clock, signal }),
  };
}
