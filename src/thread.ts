/** Threads that each run a program, which receives requests and responds to them one after the other. */
import { BoughError, messageOf } from "./errors.ts";
import { errorCode } from "./system-error.ts";

export interface Thread<Request, Answer, Note = never> {
  /** Sends a request. Rejects with the error of the thread's program. `transfer`: memory that moves to the thread. */
  ask(
    request: Request,
    options?: { transfer?: ArrayBuffer[]; onNote?: (note: Note) => void },
  ): Promise<Answer>;
  /** Returns the number of requests without a response. */
  waiting(): number;
  /** True once its program is loaded. */
  isReady(): boolean;
  /** True once its program has failed, or it is closed. It takes no requests then. */
  isBroken(): boolean;
  /** Ends it. Requests without a response are rejected. */
  close(): void;
}

type Message<Answer, Note> = "ready" | { note: Note } | { answer: Answer } | { failure: Failure };

interface Failure {
  message: string;
  hint: string | undefined;
  /** True if the message is for users, from a BoughError. */
  isForUsers: boolean;
  /** The code of a failed system call. */
  code: string | undefined;
}

interface Waiting<Answer, Note> extends PromiseWithResolvers<Answer> {
  onNote: (note: Note) => void;
}

/** Starts a thread. `program`: its path in src/. `smol`: collects garbage sooner, for a thread that makes much of it. */
export function startThread<Request, Answer, Note = never>(
  program: string,
  options: { smol?: boolean } = {},
): Thread<Request, Answer, Note> {
  const worker = new Worker(threadUrl(program), options);
  const waiting: Waiting<Answer, Note>[] = [];
  let isReady = false;
  let broken: Error | undefined;
  worker.onmessage = ({ data }: MessageEvent<Message<Answer, Note>>) => {
    if (data === "ready") isReady = true;
    else if ("note" in data) waiting[0]?.onNote(data.note);
    else if ("answer" in data) waiting.shift()?.resolve(data.answer);
    else waiting.shift()?.reject(errorOf(data.failure));
  };
  const fail = (error: Error) => {
    broken ??= error;
    for (const { reject } of waiting.splice(0)) reject(broken);
  };
  worker.onerror = ({ message }) => fail(new Error(message));
  return {
    ask(request, { transfer = [], onNote = () => {} } = {}) {
      if (broken !== undefined) return Promise.reject(broken);
      const asked = Promise.withResolvers<Answer>();
      waiting.push({ ...asked, onNote });
      worker.postMessage(request, transfer);
      return asked.promise;
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

/** Responds in this thread with the results of `answer`. `transfer` names memory in a result that moves without a copy. */
export function serveThread<Request, Answer, Note = never>(
  answer: (request: Request, say: (note: Note) => void) => Answer | Promise<Answer>,
  transfer: (answer: Answer) => ArrayBuffer[] = () => [],
): void {
  const post = (message: Message<Answer, Note>, memory: ArrayBuffer[] = []) =>
    self.postMessage(message, memory);
  let last = Promise.resolve();
  self.onmessage = ({ data }: MessageEvent<Request>) => {
    last = last.then(async () => {
      try {
        const result = await answer(data, (note) => post({ note }));
        post({ answer: result }, transfer(result));
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
