import type { UploadProgress } from "../../service/files/upload.ts";

/** A content that is sent before a step needs it. */
export interface EagerContent {
  size: number;
  outcome: "under way" | "sent" | "reused";
}

/** A step that waits for its contents. Stages that share a prefetch can have one each at the same time. */
export interface WaitingStep {
  contents: ReadonlySet<string>;
  done: UploadProgress;
  onProgress: (done: UploadProgress) => void;
}

export type WaitingSteps = ReturnType<typeof createWaitingSteps>;

/** Creates the set of steps that wait for their contents, with the progress of these. */
export function createWaitingSteps() {
  const steps = new Set<WaitingStep>();
  /** Bytes sent of files that are not complete yet. */
  const underWay = { hashed: 0, unhashed: 0 };
  const report = () => {
    for (const { done, onProgress } of steps)
      onProgress({ ...done, sentBytes: done.sentBytes + underWay.hashed + underWay.unhashed });
  };
  return {
    get isWaiting() {
      return steps.size > 0;
    },
    add: (step: WaitingStep) => void steps.add(step),
    delete: (step: WaitingStep) => void steps.delete(step),
    report,
    setUnderWay(kind: keyof typeof underWay, bytes: number, reports = true): void {
      underWay[kind] = bytes;
      if (reports) report();
    },
    note(sha256: string, content: EagerContent): void {
      for (const { contents, done } of steps) if (contents.has(sha256)) countUpload(done, content);
    },
  };
}

/** Counts a content that has arrived. */
export function countUpload(done: UploadProgress, { size, outcome }: EagerContent): void {
  if (outcome === "under way") return;
  done.files++;
  if (outcome === "reused") done.reused++;
  else done.sentBytes += size;
}
