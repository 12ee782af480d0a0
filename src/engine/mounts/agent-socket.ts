import { chmodSync, chownSync, closeSync, constants, openSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { BoughError } from "../../errors.ts";
import type { SshMount } from "./mount-spec.ts";

/**
 * Opens a socket in `directory` that forwards to an agent's. It has the owner that the mount asks for, and makes an agent usable
 * that only accepts this process's user.
 */
export async function openAgentSocket(
  { agent, mode, uid, gid }: SshMount,
  directory: string,
): Promise<{ path: string; close: () => void }> {
  const connections = new Set<Socket>();
  const keep = (socket: Socket) => {
    connections.add(socket);
    socket.once("close", () => connections.delete(socket));
  };
  const server = createServer((client) => {
    const toAgent = connect(agent);
    for (const [socket, other] of [
      [client, toAgent],
      [toAgent, client],
    ] as const) {
      keep(socket);
      socket.on("error", () => other.destroy());
      socket.pipe(other);
    }
  });
  const path = join(directory, "agent");
  // A socket's path is limited to 107 bytes. The path through a descriptor is short.
  const descriptor = openSync(directory, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(`/proc/self/fd/${descriptor}/agent`, resolve);
    });
    chownSync(path, uid, gid);
    chmodSync(path, mode);
  } catch (error) {
    server.close();
    throw new BoughError("cannot create a socket for the SSH agent", { cause: error });
  } finally {
    closeSync(descriptor);
  }
  return {
    path,
    close() {
      server.close();
      for (const socket of connections) socket.destroy();
    },
  };
}
