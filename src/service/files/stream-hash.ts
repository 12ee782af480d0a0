import { threadUrl } from "../../thread.ts";

/**
 * The SHA-256 of a stream of pieces, and the buffers that the pieces are gathered in. The buffers are reused, because new ones
 * would have to be mapped, cleared and collected.
 */
interface StreamHash {
  /**
   * Returns the buffer for the next piece, once its old content is hashed. The piece before the last must have been sent by then.
   */
  nextBuffer(): Promise<Uint8Array>;
  /** Hashes a piece, which is the beginning of one of the buffers. */
  update(piece: Uint8Array): void;
  /** Returns lower-case hex. Call it after the last piece. */
  digest(): Promise<string>;
  close(): void;
}

/** Smaller pieces cost more turns of the event loop; larger ones cost memory and save no time. */
const pieceBytes = 1024 * 1024;
/** A buffer that is sent, one that is filled, and one more, so that neither waits for the other. */
const bufferCount = 3;

/** Hashes on this thread: no thread has to start, and nothing else runs while a piece is hashed. */
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

/** A hash that can read the rest of its file itself, without further pieces. */
interface FileHash extends StreamHash {
  /** Hashes the rest of the file on the thread, and returns the digest. No piece may follow. */
  digestRest(rest: FileRest): Promise<string>;
}

export interface FileRest {
  /** An open file. */
  descriptor: number;
  from: number;
  size: number;
}

/**
 * A message to the thread: first its buffers, then for each piece the index of its buffer and its length, finally the rest of the
 * file or `end`.
 */
export type HashRequest =
  | { buffers: SharedArrayBuffer[] }
  | { index: number; length: number }
  | { rest: FileRest }
  | "end";
export type HashResponse = { index: number } | { digest: string };

/** Hashes on a separate thread while the pieces are sent, for streams that are worth its start. */
export function createThreadedStreamHash(): FileHash {
  const memory = Array.from({ length: bufferCount }, () => new SharedArrayBuffer(pieceBytes));
  const buffers = memory.map((each) => new Uint8Array(each));
  const free = buffers.map(() => Promise.resolve());
  const release = buffers.map(() => () => {});
  const { promise: digest, resolve, reject: fail } = Promise.withResolvers<string>();
  digest.catch(() => undefined);
  const thread = new Worker(threadUrl("./service/files/stream-hash-thread.ts"));
  const post = (request: HashRequest) => thread.postMessage(request);
  thread.onerror = (event) => fail(new Error(event.message));
  thread.onmessage = ({ data }: MessageEvent<HashResponse>) => {
    if ("digest" in data) resolve(data.digest);
    else release[data.index]?.();
  };
  post({ buffers: memory });
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
      post({ index, length: piece.byteLength });
    },
    digest() {
      if (!ended) post("end");
      ended = true;
      return digest;
    },
    digestRest(rest) {
      if (!ended) post({ rest });
      ended = true;
      return digest;
    },
    close: () => thread.terminate(),
  };
}
