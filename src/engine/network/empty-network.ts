/** A network namespace without any way out, for a helper that must use bough's proxy for all of its connections. */
import { closeSync, openSync } from "node:fs";
import type { Clock } from "../../clock.ts";
import { BoughError } from "../../errors.ts";
import type { Environment } from "../../home-directory.ts";
import { wording } from "../../messages/wording.ts";
import { beforeDeadline, endHelper, startHelper } from "../../programs/helper.ts";
import { ownProcess } from "../../programs/own-process.ts";
import { readLines } from "../../streams.ts";
import { findProgram, helperEnvironment } from "../system/programs.ts";
import { openForeign } from "./foreign-descriptor.ts";
import { port } from "./listen.ts";

interface EmptyNetwork {
  /** The open file of the namespace. */
  namespace: number;
  /** A socket that listens on the namespace's loopback, which nothing else uses. */
  listener: number;
  port: number;
}

/** Normally a process makes the namespace in some 50 milliseconds. */
const maxSeconds = 10;

/** Makes the namespace. It stays as long as one of its two files is open: the process that has made it is ended. */
export async function makeEmptyNetwork(environment: Environment, clock: Clock): Promise<EmptyNetwork> {
  const command = [findProgram("unshare", environment), "--net", ...ownProcess("listen")];
  const place = { workingDirectory: "/", environment: helperEnvironment(environment) };
  const helper = startHelper(command, place);
  try {
    const firstLine = readLines(helper.stdout)[Symbol.asyncIterator]().next();
    const deadline = { clock, seconds: maxSeconds, failure: "was not ready" };
    const { value: descriptor, done } = await beforeDeadline(helper, command, firstLine, deadline);
    const listener = done === true ? undefined : openForeign(helper.pid, Number(descriptor));
    if (listener === undefined) throw failure();
    try {
      return { namespace: openSync(`/proc/${helper.pid}/ns/net`, "r"), listener, port };
    } catch (error) {
      closeSync(listener);
      throw error;
    }
  } finally {
    endHelper(helper);
    await helper.exited;
  }
}

function failure(): BoughError {
  return new BoughError("could not make a network namespace for a client's import", {
    hint: wording`${{ command: "serve", options: [{ option: "allow-local-fetch" }] }} imports without one.`,
  });
}
