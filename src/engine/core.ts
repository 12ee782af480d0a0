import type { Packer } from "./export/pack-layer.ts";
import type { EngineState } from "./state.ts";

/** An open engine, on which both requests over HTTP and calls of this process work. */
export interface EngineCore {
  state: EngineState;
  /** Cleans up after killed processes, once, before the first call that changes something. */
  prepare(): Promise<void>;
  /** Returns the engine's packer of layers. Its code is loaded only when something is packed. */
  openPacker(): Promise<Packer>;
}
