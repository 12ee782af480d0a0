/** Threads that each run a program, which receives requests and responds to them one after the other. */
import { BoughError, messageOf } from "./errors.ts";
import { errorCode } from "./system-error.ts";

export interface Thread<Request, Response, Progress = never> {
  /** Sends a request. Rejects with the error of the thread's program. `transfer`: memory that moves to the thread. */
  send(
    request: Request,
    options?: { transfer?: ArrayBuffer[]; onProgress?: (progress: Progress) => void },
  ): Promise<Response>;
  /** Returns the number of requests without a response. */
  waiting(): number;
  /** True once its program is loaded. */
  isReady(): boolean;
  /** True once its program has failed, or it is closed: it accepts no more requests. */
  isBroken(): boolean;
  /** Ends it. Requests without a response are rejected. */
  close(): void;
}

type Message<Response, Progress> =
  | "ready"
  | { progress: Progress }
  | { response: Response }
  | { failure: Failure };

interface Failure {
  message: string;
  hint: string | undefined;
  /** True if the message is for users, from a BoughError. */
  isForUsers: boolean;
  /** The code of a failed system call. */
  code: string | undefined;
}

interface Waiting<Response, Progress> extends PromiseWithResolvers<Response> {
  onProgress: (progress: Progress) => void;
}

/** Starts a thread. `program`: its path in src/. `smol`: collects garbage sooner, for a thread that makes much of it. */
export function startThread<Request, Response, Progress = never>(
  program: string,
  options: { smol?: boolean } = {},
): Thread<Request, Response, Progress> {
  const worker = new Worker(threadUrl(program), options);
  const waiting: Waiting<Response, Progress>[] = [];
  let isReady = false;
  let broken: Error | undefined;
  worker.onmessage = ({ data }: MessageEvent<Message<Response, Progress>>) => {
    if (data === "ready") isReady = true;
    else if ("progress" in data) waiting[0]?.onProgress(data.progress);
    else if ("response" in data) waiting.shift()?.resolve(data.response);
    else waiting.shift()?.reject(errorOf(data.failure));
  };
  const fail = (error: Error) => {
    broken ??= error;
    for (const { reject } of waiting.splice(0)) reject(broken);
  };
  worker.onerror = ({ message }) => fail(new Error(message));
  return {
    send(request, { transfer = [], onProgress = () => {} } = {}) {
      if (broken !== undefined) return Promise.reject(broken);
      const sent = Promise.withResolvers<Response>();
      waiting.push({ ...sent, onProgress });
      worker.postMessage(request, transfer);
      return sent.promise;
    },
    waiting: () => waiting.length,
    isReady: () => isReady && broken === undefined,
    isBroken: () => broken !== undefined,
    close() {
      worker.terminate();
      fail(new Error("the thread is closed"));
    },
  };
}

export function leastBusy<T extends { waiting(): number }>(threads: readonly T[]): T | undefined {
  return threads.reduce<T | undefined>(
    (one, other) => (one === undefined || other.waiting() < one.waiting() ? other : one),
    undefined,
  );
}

declare const self: Worker;

/** Responds in this thread with the results of `respond`. `transfer` names memory in a result that moves without a copy. */
export function serveThread<Request, Response, Progress = never>(
  respond: (request: Request, report: (progress: Progress) => void) => Response | Promise<Response>,
  transfer: (response: Response) => ArrayBuffer[] = () => [],
): void {
  const post = (message: Message<Response, Progress>, memory: ArrayBuffer[] = []) =>
    self.postMessage(message, memory);
  let last = Promise.resolve();
  self.onmessage = ({ data }: MessageEvent<Request>) => {
    last = last.then(async () => {
      try {
        const result = await respond(data, (progress) => post({ progress }));
        post({ response: result }, transfer(result));
      } catch (error) {
        post({ failure: failureOf(error) });
      }
    });
  };
  post("ready");
}

function failureOf(error: unknown): Failure {
  const isForUsers = error instanceof BoughError;
  return {
    message: messageOf(error),
    hint: isForUsers && error.hint !== undefined ? String(error.hint) : undefined,
    isForUsers,
    code: errorCode(error),
  };
}

function errorOf({ message, hint, isForUsers, code }: Failure): Error {
  const error = isForUsers ? new BoughError(message, { hint }) : new Error(message);
  return code === undefined ? error : Object.assign(error, { code });
}

/**
 * Returns the URL of a thread's program by its path in src/. In a compiled bough, the programs compiled in with `main.ts` (see
 * scripts/build) keep their paths relative to it.
 */
export function threadUrl(path: string): string {
  // In a thread, `Bun.main` is the thread's program.
  const root = Bun.isStandaloneExecutable
    ? Bun.pathToFileURL(Bun.main.replace(/(?<=^\/\$bunfs\/root\/).*/, ""))
    : import.meta.url;
  return new URL(path, root).href;
}
