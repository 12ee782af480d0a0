/** The places that this machine can make, by the names of the columns in `test/README.md`. */

import { openEnginePlace } from "./engine-place.ts";
import type { Place } from "./place.ts";
import { openPluginPlace } from "./plugin-place.ts";
import { openServePlace, openSixCallsPlace } from "./service-places.ts";

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
} satisfies Record<string, PlaceEntry>;
