/** A thread's own program: unpacks the layers that it is sent. */
import { serveThread } from "../../thread.ts";
import type { ThreadJob } from "./layer-threads.ts";
import { openTotals } from "./totals.ts";
import { unpackLayer } from "./unpack-layer.ts";

serveThread(({ job, totals }: ThreadJob) => unpackLayer(job, openTotals(totals)));
