import type { Packer } from "./export/pack-layer.ts";
import type { EngineState } from "./state.ts";

/** An open engine, without the ways to it: requests, and calls of this process. */
export interface EngineCore {
  state: EngineState;
  /** Cleans up after killed processes, once, before the first call that changes something. */
  prepare(): Promise<void>;
  /** Returns the one packer of layers, which is loaded only if something is packed. */
  openPacker(): Promise<Packer>;
}
