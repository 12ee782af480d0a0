/** The places that this machine can make, by the names of the columns in `test/README.md`. */

import { openArm64Place } from "./arm64-place.ts";
import { openContainerPlace } from "./container-place.ts";
import { openDaemonPlace } from "./daemon-place.ts";
import { openEnginePlace } from "./engine-place.ts";
import type { Place } from "./place.ts";
import { openPluginPlace } from "./plugin-place.ts";
import { openServePlace, openSixCallsPlace } from "./service-places.ts";
import { openWindowsPlace } from "./windows-place.ts";

export interface PlaceEntry {
  open(): Promise<Place>;
  /** The number of times that a promise is tried at the same time. */
  atOnce?: number;
}

export const places = {
  root: { open: () => openEnginePlace({ user: "root" }) },
  user: { open: () => openEnginePlace({ user: "ordinary" }) },
  closed: { open: () => openEnginePlace({ user: "ordinary", input: "closed" }) },
  pipe: { open: () => openEnginePlace({ user: "ordinary", input: "pipe" }) },
  terminal: { open: () => openEnginePlace({ user: "ordinary", input: "terminal" }) },
  two: { open: () => openEnginePlace({ user: "root" }), atOnce: 2 },
  serve: { open: openServePlace },
  "six calls": { open: openSixCallsPlace },
  plugin: { open: openPluginPlace },
  daemon: { open: openDaemonPlace },
  container: { open: openContainerPlace },
  Windows: { open: openWindowsPlace },
  arm64: { open: openArm64Place },
} satisfies Record<string, PlaceEntry>;
