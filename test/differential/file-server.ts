import { join } from "node:path";
import { findMachineAddress } from "../support/machine-address.ts";

/** What `ADD <url>` and apt fetch from; a case knows its address by `ARG SERVER`. */
export function serveFiles(packages: string): { address: string; stop(): Promise<void> } {
  const files: Record<string, string> = {
    "/greeting.txt": "hello\n",
    "/some name.txt": "a name with a space\n",
  };
  const machine = findMachineAddress();
  const server = Bun.serve({
    hostname: machine.address,
    port: 0,
    fetch(request) {
      const pathname = decodeURIComponent(new URL(request.url).pathname);
      const name = /^\/packages\/([\w.+~-]+)$/.exec(pathname)?.[1];
      const content = name === undefined ? files[pathname] : Bun.file(join(packages, name));
      return content === undefined ? new Response("no such file", { status: 404 }) : new Response(content);
    },
    error: () => new Response("no such file", { status: 404 }),
  });
  return {
    address: server.url.href.replace(/\/$/, ""),
    async stop() {
      await server.stop(true);
      machine.release();
    },
  };
}
