/** What unshare of util-linux 2.38 says when its child is killed; nothing that the command has said. */
const complaint = Buffer.from("unshare: sigprocmask unblock failed: Invalid argument\n");

/** The end of a killed command's standard error, without unshare's complaint, which comes in up to three pieces. */
export class ComplaintFilter {
  #held: Uint8Array = Buffer.alloc(0);

  /** What can be passed on now: all but an end with which the complaint may begin. */
  pass(chunk: Uint8Array): Uint8Array {
    const all = Buffer.concat([this.#held, chunk]);
    const start = complaintStart(all);
    this.#held = all.subarray(start);
    return all.subarray(0, start);
  }

  /** What was held back and is none. */
  end(): Uint8Array {
    return complaint.equals(this.#held) ? Buffer.alloc(0) : this.#held;
  }
}

/** Where in `bytes` the complaint or a beginning of it is the end; their length where there is none. */
function complaintStart(bytes: Buffer): number {
  for (let start = Math.max(0, bytes.length - complaint.length); start < bytes.length; start++) {
    if (complaint.subarray(0, bytes.length - start).equals(bytes.subarray(start))) return start;
  }
  return bytes.length;
}
