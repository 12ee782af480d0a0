/** A network namespace without any way out, for a helper that must use bough's proxy for all of its connections. */
import { ptr } from "bun:ffi";
import { closeSync, openSync } from "node:fs";
import { BoughError } from "../../errors.ts";
import { wording } from "../../messages/wording.ts";
import { closeOnExec, libc, numericCalls } from "../../programs/libc.ts";

interface EmptyNetwork {
  /** The open file of the namespace. */
  namespace: number;
  /** A socket that listens on the namespace's loopback, which nothing else uses. */
  listener: number;
  port: number;
}

const newNetwork = 0x40000000;
const [internet, stream, nonBlocking] = [2, 1, 0o4000];
/** `SIOCSIFFLAGS` and `IFF_UP` of linux/if.h; the flags follow the interface's name of at most 16 bytes. */
const [setFlags, up, flagsAt, requestBytes] = [0x8914, 1, 16, 40];
const maxWaiting = 128;
const port = 3128;

/**
 * Makes the namespace. This thread is in it for a few system calls only, in which none of bough's other code can run: a thread
 * that it started would stay in there.
 */
export function makeEmptyNetwork(): EmptyNetwork {
  const { unshare, setns, socket, bind, listen } = libc();
  const { ioctl } = numericCalls();
  const request = Buffer.alloc(requestBytes);
  request.write("lo");
  request.writeUInt16LE(up, flagsAt);
  const address = Buffer.alloc(16);
  address.writeUInt16LE(internet);
  address.writeUInt16BE(port, 2);
  address.set([127, 0, 0, 1], 4);
  const own = openSync(ownNamespace, "r");
  const opened: number[] = [];
  try {
    if (unshare(newNetwork) !== 0) throw failure();
    try {
      opened.push(openSync(ownNamespace, "r"));
      const listener = socket(internet, stream | nonBlocking | closeOnExec, 0);
      if (listener < 0) throw failure();
      opened.push(listener);
      const isListening =
        ioctl(listener, setFlags, ptr(request)) === 0 &&
        bind(listener, address, address.length) === 0 &&
        listen(listener, maxWaiting) === 0;
      if (!isListening) throw failure();
    } finally {
      // It can't fail: this process has the right to make namespaces.
      setns(own, newNetwork);
    }
    const [namespace = -1, listener = -1] = opened;
    return { namespace, listener, port };
  } catch (error) {
    for (const descriptor of opened) closeSync(descriptor);
    throw error;
  } finally {
    closeSync(own);
  }
}

const ownNamespace = "/proc/thread-self/ns/net";

function failure(): BoughError {
  return new BoughError("could not make a network namespace for a client's import", {
    hint: wording`${{ command: "serve", options: [{ option: "allow-local-fetch" }] }} imports without one.`,
  });
}
