/** A thread's own program: unpacks the layers that it is sent, one after the other, and answers with ThreadAnswers. */
import { BoughError, messageOf } from "../../errors.ts";
import { errorCode } from "../../system-error.ts";
import type { ThreadAnswer, ThreadJob } from "./layer-threads.ts";
import { openTotals } from "./totals.ts";
import { unpackLayer } from "./unpack-layer.ts";

declare const self: Worker;

self.onmessage = async ({ data: { job, totals } }: MessageEvent<ThreadJob>) => {
  say(await answer(job, totals));
};

async function answer(job: ThreadJob["job"], totals: SharedArrayBuffer): Promise<ThreadAnswer> {
  try {
    return { layer: await unpackLayer(job, openTotals(totals)) };
  } catch (error) {
    const hint = error instanceof BoughError ? error.hint : undefined;
    return { failure: { message: messageOf(error), hint, code: errorCode(error) } };
  }
}

function say(message: ThreadAnswer): void {
  self.postMessage(message);
}
