/**
 * A line to a far place: a TCP proxy that delays the bytes of both directions by half a round trip, without a limit of bandwidth
 * unless one is given. The handshake of a connection costs a round trip, too. Run in a separate process, so that what it costs
 * is not the client's: `far-line.ts ADDRESS MILLISECONDS [MBIT]`. Prints its own address.
 */
import { connect, createServer, type Socket } from "node:net";

const [address = "", roundTrip = "100", megabits = "0"] = process.argv.slice(2);
const target = new URL(address);
const halfMilliseconds = Number(roundTrip) / 2;
const bytesPerMillisecond = (Number(megabits) * 1e6) / 8 / 1000;
/** When the line has sent all that was given to it, by direction: all connections share its bandwidth. */
const free = { up: 0, down: 0 };

const server = createServer({ noDelay: true, allowHalfOpen: true }, (near) => {
  const opened = performance.now();
  const far = connect({
    host: target.hostname,
    port: Number(target.port),
    noDelay: true,
    allowHalfOpen: true,
  });
  carry(near, far, "up", opened + 2 * halfMilliseconds);
  carry(far, near, "down", opened);
});
server.listen(0, "127.0.0.1", () => {
  const own = server.address();
  process.stdout.write(`${target.protocol}//127.0.0.1:${typeof own === "object" ? own?.port : own}\n`);
});

/** Passes on what comes, in order, each piece at its own time, and the end after the last. */
function carry(from: Socket, to: Socket, direction: keyof typeof free, earliest: number): void {
  const waiting: { at: number; bytes: Buffer | undefined }[] = [];
  let timer: Timer | undefined;
  const deliver = () => {
    timer = undefined;
    while (waiting[0] !== undefined && waiting[0].at <= performance.now() + 0.5) {
      const bytes = waiting.shift()?.bytes;
      if (bytes === undefined) to.end();
      else to.write(bytes);
    }
    if (waiting[0] !== undefined) timer = setTimeout(deliver, waiting[0].at - performance.now());
  };
  const put = (bytes: Buffer | undefined) => {
    const now = Math.max(performance.now(), earliest);
    let sent = now;
    if (bytesPerMillisecond > 0 && bytes !== undefined) {
      sent = Math.max(now, free[direction]) + bytes.length / bytesPerMillisecond;
      free[direction] = sent;
      // What waits in the line is bounded, as its buffers are.
      if (sent - now > maxQueueMilliseconds) {
        from.pause();
        setTimeout(() => from.resume(), sent - now - maxQueueMilliseconds / 2);
      }
    }
    waiting.push({ at: sent + halfMilliseconds, bytes });
    if (timer === undefined)
      timer = setTimeout(deliver, Math.max(0, (waiting[0]?.at ?? 0) - performance.now()));
  };
  from.on("data", put);
  from.on("end", () => put(undefined));
  for (const socket of [from, to])
    socket.on("error", () => {
      from.destroy();
      to.destroy();
    });
}

const maxQueueMilliseconds = 100;
