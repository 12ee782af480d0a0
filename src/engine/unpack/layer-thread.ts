/** The program of an unpacking thread: unpacks the layers that it receives. */
import { serveThread } from "../../thread.ts";
import type { ThreadJob } from "./layer-threads.ts";
import { openTotals } from "./totals.ts";
import { unpackLayer } from "./unpack-layer.ts";

serveThread(({ job, totals }: ThreadJob) => unpackLayer(job, openTotals(totals)));
