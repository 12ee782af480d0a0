import type { UploadProgress } from "../../service/files/upload.ts";

/** A content that is sent before a step asks for it. */
export interface Content {
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

/** Steps that wait for their contents, and what is under way for them. */
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
    note(sha256: string, content: Content): void {
      for (const { contents, done } of steps) if (contents.has(sha256)) add(done, content);
    },
  };
}

/** Counts a content that has arrived. */
export function add(done: UploadProgress, { size, outcome }: Content): void {
  if (outcome === "under way") return;
  done.files++;
  if (outcome === "reused") done.reused++;
  else done.sentBytes += size;
}
