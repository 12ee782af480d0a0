import { createServer, type Socket } from "node:net";

export interface RawServer {
  url: string;
  /** The first lines of the requests so far. */
  requests: string[];
  close(): Promise<void>;
}

/** Starts a TCP server. `answer` gets each request's socket and number, from 0, and writes any bytes to it. */
export async function startRawServer(answer: (socket: Socket, count: number) => void): Promise<RawServer> {
  const requests: string[] = [];
  const server = await listenForSockets((socket) => {
    socket.on("data", (data) => {
      const line = data.toString("latin1").split("\r\n", 1)[0] ?? "";
      // A body may come in a separate packet.
      if (!/ HTTP\/1\.1$/.test(line)) return;
      requests.push(line.replace(/ HTTP\/1\.1$/, ""));
      answer(socket, requests.length - 1);
    });
  });
  return { ...server, requests };
}

/** Listens on a port of loopback. `close` destroys open sockets. */
export async function listenForSockets(
  onSocket: (socket: Socket) => void,
): Promise<Omit<RawServer, "requests">> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
    socket.on("close", () => sockets.delete(socket));
    onSocket(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return {
    url: `http://127.0.0.1:${address.port}`,
    close() {
      for (const socket of sockets) socket.destroy();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

/** Returns a whole response as text. */
export function rawAnswer(status: string, body: string, headers: Record<string, string> = {}): string {
  const all = {
    "Content-Type": "application/json",
    "Content-Length": String(Buffer.byteLength(body)),
    ...headers,
  };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status}\r\n${lines.join("")}\r\n${body}`;
}
