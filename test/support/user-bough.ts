/**
 * Runs command lines as an ordinary user who is root in a user namespace, all in one process: the start of one, and of the
 * namespace, would take several times as long as most commands.
 */
import { join } from "node:path";
import { userNamespaceEntry } from "../../src/cli/process/user-namespace.ts";
import type { BoughOptions, Ended } from "./bough.ts";
import type { OrdinaryUser } from "./ordinary-user.ts";

type Options = Pick<BoughOptions, "workingDirectory" | "environment">;

export interface Request {
  id: number;
  words: readonly string[];
  options: Options;
}

export interface Response {
  id: number;
  ended: Ended;
}

export interface UserBough {
  run(words: readonly string[], options: Options): Promise<Ended>;
  close(): void;
}

/** Starts the process at the first command. */
export function makeUserBough(user: OrdinaryUser): UserBough {
  let process: ReturnType<typeof startRunner> | undefined;
  return {
    run(words, options) {
      process ??= startRunner(user);
      return process.run(words, options);
    },
    close: () => process?.kill(),
  };
}

function startRunner(user: OrdinaryUser) {
  const environment = ["env", "-i", `PATH=${process.env.PATH}`, `HOME=${user.home}`];
  const program = [user.bun, join(user.checkout, "test/support/bough-runner.ts")];
  const child = Bun.spawn([...user.prefix, ...environment, ...userNamespaceEntry, ...program], {
    stdin: "pipe",
    stdout: "pipe",
    stderr: "inherit",
  });
  child.unref();
  const waiting = new Map<number, PromiseWithResolvers<Ended>>();
  let next = 0;
  void receive();
  return {
    run(words: readonly string[], options: Options): Promise<Ended> {
      const request: Request = { id: next++, words, options };
      const asked = Promise.withResolvers<Ended>();
      waiting.set(request.id, asked);
      child.stdin.write(`${JSON.stringify(request)}\n`);
      child.stdin.flush();
      return asked.promise;
    },
    kill: () => child.kill("SIGKILL"),
  };

  async function receive(): Promise<void> {
    let text = "";
    for await (const chunk of child.stdout.pipeThrough(new TextDecoderStream())) {
      const lines = (text + chunk).split("\n");
      text = lines.pop() ?? "";
      for (const line of lines) {
        const { id, ended } = JSON.parse(line) as Response;
        waiting.get(id)?.resolve(ended);
        waiting.delete(id);
      }
    }
    for (const { reject } of waiting.values()) reject(new Error("the process of the user's bough has ended"));
  }
}
