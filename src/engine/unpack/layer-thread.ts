/** The program of an unpacking thread: unpacks the layers that it receives. */
import { serveThread } from "../../thread.ts";
import { NoRoomError } from "../import-limits.ts";
import type { ThreadJob, ThreadResult } from "./layer-threads.ts";
import { openTotals } from "./totals.ts";
import { unpackLayer } from "./unpack-layer.ts";

serveThread(async ({ job, totals }: ThreadJob): Promise<ThreadResult> => {
  try {
    return { layer: await unpackLayer(job, openTotals(totals)) };
  } catch (error) {
    // An error that a thread sends arrives without its class.
    if (error instanceof NoRoomError) return { noRoom: error.message };
    throw error;
  }
});
