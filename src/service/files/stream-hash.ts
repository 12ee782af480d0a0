import { threadUrl } from "../../thread.ts";

/**
 * The SHA-256 of a stream that passes in pieces, together with the buffers that the pieces are gathered in: these are used
 * again and again, since new ones for each piece would have to be mapped, cleared and collected.
 */
interface StreamHash {
  /** Where the next piece goes. Resolves once nobody needs what was there: the piece before the last must have been sent. */
  nextBuffer(): Promise<Uint8Array>;
  /** Takes a piece, the beginning of one of the buffers. */
  update(piece: Uint8Array): void;
  /** Returns lower-case hex. Call it after the last piece. */
  digest(): Promise<string>;
  close(): void;
}

/** Smaller pieces cost more turns of the event loop; larger ones cost memory and save no time. */
const pieceBytes = 1024 * 1024;
/** One that is being sent, one that is being filled, and one more, so that neither waits for the other. */
const bufferCount = 3;

/** Hashes on this thread: there is nothing to start, and nothing else happens while a piece is hashed. */
export function createStreamHash(): StreamHash {
  const hasher = new Bun.CryptoHasher("sha256");
  const buffers: Uint8Array[] = [];
  let count = 0;
  let digest: string | undefined;
  return {
    async nextBuffer() {
      const index = count++ % bufferCount;
      buffers[index] ??= Buffer.allocUnsafeSlow(pieceBytes);
      return buffers[index];
    },
    update: (piece) => void hasher.update(piece),
    async digest() {
      digest ??= hasher.digest("hex");
      return digest;
    },
    close() {},
  };
}

/** A hash that can be taken to its end without the pieces, from the file that they are of. */
interface FileHash extends StreamHash {
  /** Hashes the rest of the file on the thread; no piece is to be given any more. Returns the digest. */
  digestRest(rest: FileRest): Promise<string>;
}

export interface FileRest {
  /** An open file. */
  descriptor: number;
  from: number;
  size: number;
}

/** What the thread is told: its buffers, then the length of the piece in the buffer of that index, then nothing or the rest. */
export type HashRequest =
  | { buffers: SharedArrayBuffer[] }
  | { index: number; length: number }
  | { rest: FileRest }
  | "end";
export type HashAnswer = { index: number } | { digest: string };

/** Hashes on a thread of its own, while the pieces are sent: for streams that are worth the start of one. */
export function createThreadedStreamHash(): FileHash {
  const memory = Array.from({ length: bufferCount }, () => new SharedArrayBuffer(pieceBytes));
  const buffers = memory.map((each) => new Uint8Array(each));
  const free = buffers.map(() => Promise.resolve());
  const release = buffers.map(() => () => {});
  const { promise: digest, resolve, reject: fail } = Promise.withResolvers<string>();
  digest.catch(() => undefined);
  const thread = new Worker(threadUrl("./service/files/stream-hash-thread.ts"));
  const say = (request: HashRequest) => thread.postMessage(request);
  thread.onerror = (event) => fail(new Error(event.message));
  thread.onmessage = ({ data }: MessageEvent<HashAnswer>) => {
    if ("digest" in data) resolve(data.digest);
    else release[data.index]?.();
  };
  say({ buffers: memory });
  let count = 0;
  let ended = false;
  return {
    async nextBuffer() {
      const index = count++ % bufferCount;
      // A thread that has failed releases nothing.
      await Promise.race([free[index], digest]);
      return buffers[index] ?? new Uint8Array();
    },
    update(piece) {
      const index = buffers.findIndex(({ buffer }) => buffer === piece.buffer);
      free[index] = new Promise((done) => {
        release[index] = done;
      });
      say({ index, length: piece.byteLength });
    },
    digest() {
      if (!ended) say("end");
      ended = true;
      return digest;
    },
    digestRest(rest) {
      if (!ended) say({ rest });
      ended = true;
      return digest;
    },
    close: () => thread.terminate(),
  };
}
