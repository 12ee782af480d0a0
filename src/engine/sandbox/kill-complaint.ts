/** The message that unshare of util-linux 2.38 prints when its child is killed. It is not the command's output. */
const complaint = Buffer.from("unshare: sigprocmask unblock failed: Invalid argument\n");

/** The complaint arrives in up to three pieces. This is the length of the first. */
const firstPiece = "unshare: ".length;

/** Removes unshare's complaint from the end of a killed command's standard error. */
export class ComplaintFilter {
  /** The bytes so far that may be the complaint. */
  held: Uint8Array = Buffer.alloc(0);

  /**
   * Returns what can be passed on now: everything but an end that may be the beginning of the complaint. Another process may kill
   * a command that is not known to be killed; of its output, only ends at least as long as the first piece are held back.
   */
  pass(chunk: Uint8Array, { isKilled }: { isKilled: boolean }): Uint8Array {
    const all = Buffer.concat([this.held, chunk]);
    const start = complaintStart(all, isKilled ? 1 : firstPiece);
    this.held = all.subarray(start);
    return all.subarray(0, start);
  }

  /** True if the complaint was the last output. */
  get wasMade(): boolean {
    return complaint.equals(this.held);
  }

  /** Returns what was held back and is not the complaint. */
  end(): Uint8Array {
    return this.wasMade ? Buffer.alloc(0) : this.held;
  }
}

/** Returns where an end of `bytes`, of at least `fewest`, matches the complaint's beginning; their length if none does. */
function complaintStart(bytes: Buffer, fewest: number): number {
  for (let start = Math.max(0, bytes.length - complaint.length); start <= bytes.length - fewest; start++) {
    if (complaint.subarray(0, bytes.length - start).equals(bytes.subarray(start))) return start;
  }
  return bytes.length;
}
