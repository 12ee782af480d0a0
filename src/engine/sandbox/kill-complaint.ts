/** What unshare of util-linux 2.38 says when its child is killed; nothing that the command has said. */
const complaint = Buffer.from("unshare: sigprocmask unblock failed: Invalid argument\n");

/** It comes in up to three pieces, of which this is the first. */
const firstPiece = "unshare: ".length;

/** The end of a killed command's standard error, without unshare's complaint. */
export class ComplaintFilter {
  /** What may be the complaint, so far. */
  held: Uint8Array = Buffer.alloc(0);

  /**
   * What can be passed on now: all but an end with which the complaint may begin. A command that is not known to be killed may
   * be killed by another process: of that nothing shorter than the first piece is held back.
   */
  pass(chunk: Uint8Array, { isKilled }: { isKilled: boolean }): Uint8Array {
    const all = Buffer.concat([this.held, chunk]);
    const start = complaintStart(all, isKilled ? 1 : firstPiece);
    this.held = all.subarray(start);
    return all.subarray(0, start);
  }

  /** Whether it is what was said last. */
  get wasMade(): boolean {
    return complaint.equals(this.held);
  }

  /** What was held back and is none. */
  end(): Uint8Array {
    return this.wasMade ? Buffer.alloc(0) : this.held;
  }
}

/** Where in `bytes` the complaint or `fewest` bytes of its beginning are the end; their length where there are none. */
function complaintStart(bytes: Buffer, fewest: number): number {
  for (let start = Math.max(0, bytes.length - complaint.length); start <= bytes.length - fewest; start++) {
    if (complaint.subarray(0, bytes.length - start).equals(bytes.subarray(start))) return start;
  }
  return bytes.length;
}
