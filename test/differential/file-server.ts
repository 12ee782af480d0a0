import { join } from "node:path";
import { findMachineAddress } from "../support/machine-address.ts";

/** A fixed port, since images that are kept from run to run contain the address. */
const usualPort = 47_321;

/** Serves files for `ADD <url>` and packages for apt. A case gets the address as `ARG SERVER`. */
export function serveFiles(packages: string): { address: string; stop(): Promise<void> } {
  const files: Record<string, string> = {
    "/greeting.txt": "hello\n",
    "/some name.txt": "a name with a space\n",
  };
  const machine = findMachineAddress();
  const serve = (port: number) =>
    Bun.serve({
      hostname: machine.address,
      port,
      fetch(request) {
        const pathname = decodeURIComponent(new URL(request.url).pathname);
        const name = /^\/packages\/([\w.+~-]+)$/.exec(pathname)?.[1];
        const content = name === undefined ? files[pathname] : Bun.file(join(packages, name));
        return content === undefined ? new Response("no such file", { status: 404 }) : new Response(content);
      },
      error: () => new Response("no such file", { status: 404 }),
    });
  const server = serveOn(usualPort, serve);
  return {
    address: server.url.href.replace(/\/$/, ""),
    async stop() {
      await server.stop(true);
      machine.release();
    },
  };
}

/** Serves on another port if this one is in use. */
function serveOn<Server>(port: number, serve: (port: number) => Server): Server {
  try {
    return serve(port);
  } catch {
    return serve(0);
  }
}
