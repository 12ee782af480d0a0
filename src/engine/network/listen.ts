/** Listens in a network namespace that has only its loopback, which is down at first. This runs in a process of its own (`ownProcess`). */
import { ptr } from "bun:ffi";
import { writeSync } from "node:fs";
import { closeOnExec, libc, numericCalls } from "../../programs/libc.ts";

const [internet, stream, nonBlocking] = [2, 1, 0o4000];
/** `SIOCSIFFLAGS` and `IFF_UP` of linux/if.h; the flags follow the interface's name of at most 16 bytes. */
const [setFlags, up, flagsAt, requestBytes] = [0x8914, 1, 16, 40];
const maxWaiting = 128;
export const port = 3128;

/** Prints the number of the socket's descriptor once it listens, and then waits until it is ended. Returns 1 if it can't listen. */
export function listen(): number | Promise<number> {
  const { socket, bind, listen } = libc();
  const request = Buffer.alloc(requestBytes);
  request.write("lo");
  request.writeUInt16LE(up, flagsAt);
  const address = Buffer.alloc(16);
  address.writeUInt16LE(internet);
  address.writeUInt16BE(port, 2);
  address.set([127, 0, 0, 1], 4);
  const listener = socket(internet, stream | nonBlocking | closeOnExec, 0);
  const isListening =
    listener >= 0 &&
    numericCalls().ioctl(listener, setFlags, ptr(request)) === 0 &&
    bind(listener, address, address.length) === 0 &&
    listen(listener, maxWaiting) === 0;
  if (!isListening) return 1;
  writeSync(1, `${listener}\n`);
  return new Response(Bun.file(0).stream()).text().then(() => 0);
}
