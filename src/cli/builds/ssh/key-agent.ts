import { createServer, type Server, type Socket } from "node:net";
import { BoughError } from "../../../errors.ts";
import { openScratch } from "../../process/scratch.ts";
import type { SigningKey } from "./private-key.ts";
import { text, uint32, WireReader } from "./wire.ts";

/** An SSH agent in this process, which has the keys of `--ssh ID=KEYFILE` and takes no others, as in docker. Disposing it ends it. */
interface KeyAgent extends Disposable {
  /** Its socket, or its pipe on Windows. */
  path: string;
}

export async function openKeyAgent(
  keys: readonly SigningKey[],
  environment: Readonly<Record<string, string | undefined>>,
): Promise<KeyAgent> {
  const scratch = process.platform === "win32" ? undefined : openScratch("agent", environment);
  const path = scratch?.path ?? `\\\\.\\pipe\\bough-agent-${crypto.randomUUID()}`;
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
    serve(socket, keys);
  });
  const close = () => {
    server.close();
    for (const socket of sockets) socket.destroy();
    scratch?.[Symbol.dispose]();
  };
  try {
    await listen(server, path);
  } catch (error) {
    close();
    throw new BoughError(`cannot create the socket ${path} for an SSH agent`, {
      hint: "TMPDIR=DIRECTORY names another place for it. Its path may have 107 bytes.",
      cause: error,
    });
  }
  // The agent of a build does not keep the process alive.
  server.unref();
  return { path, [Symbol.dispose]: close };
}

function listen(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(path, resolve);
  });
}

/** OpenSSH's limit of a message. */
const maxBytes = 256 * 1024;

function serve(socket: Socket, keys: readonly SigningKey[]): void {
  let waiting = Buffer.alloc(0);
  socket.on("error", () => socket.destroy());
  socket.on("data", (bytes: Buffer) => {
    waiting = Buffer.concat([waiting, bytes]);
    while (waiting.length >= 4) {
      const length = waiting.readUInt32BE();
      if (length > maxBytes) {
        socket.destroy();
        return;
      }
      if (waiting.length < 4 + length) return;
      socket.write(text(answer(waiting.subarray(4, 4 + length), keys)));
      waiting = waiting.subarray(4 + length);
    }
  });
}

/** Messages of draft-miller-ssh-agent. */
const [failure, requestIdentities, identities, signRequest, signResponse] = [5, 11, 12, 13, 14];

/** Returns the answer of an agent to a message. */
export function answer(message: Buffer, keys: readonly SigningKey[]): Buffer {
  const failed = Buffer.of(failure);
  const [type] = message;
  if (type === requestIdentities) {
    const listed = keys.flatMap(({ publicKey }) => [text(publicKey), text("")]);
    return Buffer.concat([Buffer.of(identities), uint32(keys.length), ...listed]);
  }
  if (type !== signRequest) return failed;
  try {
    const fields = new WireReader(message.subarray(1));
    const [wanted, data, flags] = [fields.text(), fields.text(), fields.uint32()];
    const key = keys.find(({ publicKey }) => publicKey.equals(wanted));
    return key === undefined ? failed : Buffer.concat([Buffer.of(signResponse), text(key.sign(data, flags))]);
  } catch (error) {
    if (error instanceof RangeError) return failed;
    throw error;
  }
}
