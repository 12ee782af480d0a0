import { readFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "./bough.ts";
import { makeBusyboxLayout } from "./busybox-image.ts";
import { TestEngine } from "./engine.ts";
import { makeOrdinaryUser } from "./ordinary-user.ts";

/** The engine of an ordinary user: `bough serve`, which enters a user namespace, with the image `busybox:latest`. */
export async function openUserEngine(): Promise<TestEngine> {
  const user = makeOrdinaryUser();
  user.giveBough();
  const made = temporaryDirectory();
  await makeBusyboxLayout(made);
  const layout = user.give(made, "layout");
  const bough = [
    ...user.prefix,
    ...["env", "-i", `--chdir=${user.home}`, `PATH=${process.env.PATH}`, `HOME=${user.home}`],
    ...[`${user.home}/bough`, "--local"],
  ];
  const imported = Bun.spawnSync([
    ...bough,
    ...["images", "import", `oci:${layout}:latest`, "--tag", "busybox:latest"],
  ]);
  if (!imported.success) throw new Error(imported.stderr.toString());
  const log = join(temporaryDirectory(), "log");
  const token = crypto.randomUUID();
  const socket = join(user.home, "socket");
  const server = Bun.spawn([...bough, "serve", "--listen", `unix:${socket}`, "--token", token], {
    stdin: "ignore",
    stdout: Bun.file(log),
    stderr: Bun.file(log),
  });
  const answer = async (request: Request): Promise<Response> => {
    const { method, headers, url } = request;
    const body = await request.arrayBuffer();
    const authorized = new Headers(headers);
    authorized.set("Authorization", `Bearer ${token}`);
    return fetch(url, {
      method,
      headers: authorized,
      unix: socket,
      redirect: "manual",
      ...(body.byteLength === 0 ? {} : { body }),
    });
  };
  for (let attempt = 0; ; attempt++) {
    const answered = await answer(new Request("http://engine/v1/whoami")).catch(() => undefined);
    if (answered?.ok) break;
    if (attempt === 400) throw new Error(`bough serve does not answer: ${readFileSync(log, "utf8")}`);
    await Bun.sleep(50);
  }
  return TestEngine.over({
    directory: user.home,
    fetch: answer,
    async close() {
      server.kill("SIGINT");
      await server.exited;
      user.remove();
    },
  });
}
