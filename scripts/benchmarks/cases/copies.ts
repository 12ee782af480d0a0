import { writeFileSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { Registry } from "../../../test/support/registry.ts";
import { type Bench, type Row, runUntilSettled } from "../bench.ts";
import { importBase } from "../buildah.ts";
import { makeDocker, timeDocker } from "../docker.ts";
import { alternate, median, run } from "../measure.ts";

const copies = 60;

/** Compares sixty COPYs of a small file each with `docker build`. */
export async function measureManyCopies(bench: Bench): Promise<Row[]> {
  const docker = await makeDocker(bench);
  await importBase(bench);
  const context = bench.directory("many-copies");
  const names = Array.from({ length: copies }, (_, index) => `file${index}`);
  const lines = names.map((name) => `COPY ${name} /copied/${name}`);
  writeFileSync(join(context, "Dockerfile"), `${["FROM base:1", ...lines].join("\n")}\n`);
  for (const name of names) writeFileSync(join(context, name), `the content of ${name}\n`);
  const command = bench.build(context, "engine", "--docker", "--no-cache");
  const [bough = 0, other = 0] = await alternate(
    Math.max(3, Math.ceil(bench.times / 2)),
    async () => (await run(command)).milliseconds,
    () => timeDocker(docker, context, "--no-cache"),
  );
  return [fasterRow(`${copies} COPYs of a file`, { bough, other }, "docker build", 3)];
}

/** Changes a file of 1 KB whose COPY follows one of 300 MB, builds, and pushes to a registry that has the image of before. */
export async function measureChangedCopy(bench: Bench): Promise<Row[]> {
  const docker = await makeDocker(bench);
  await importBase(bench);
  const context = bench.directory("changed-copy");
  const small = join(context, "small");
  writeFileSync(join(context, "Dockerfile"), "FROM base:1\nCOPY large /large\nCOPY small /small\n");
  const words = ["dd", "if=/dev/urandom", `of=${join(context, "large")}`, "bs=1M", "count=300"];
  await run({ words });
  writeFileSync(small, Buffer.alloc(1000, "first "));
  const registry = await Registry.start();
  const counting = await countSent(registry.host);
  try {
    const tags = { bough: "changed:1", docker: `${registry.host}/docker:1` };
    const build = bench.build(context, "engine", "--docker", "--tag", tags.bough);
    const push = {
      words: [bench.bough, "--local", "-q", "push", tags.bough, `${counting.host}/bough:1`],
      env: build.env ?? {},
    };
    const buildByDocker = () => timeDocker(docker, context, `--tag=${tags.docker}`);
    const pushByDocker = async () => {
      const begun = performance.now();
      await docker.push(tags.docker);
      return performance.now() - begun;
    };
    await runUntilSettled(build);
    await buildByDocker();
    await run(push);
    await pushByDocker();
    const cached: number[] = [];
    const built = { bough: [] as number[], docker: [] as number[] };
    const pushed = { bough: [] as number[], docker: [] as number[], bytes: [] as number[] };
    for (let round = 0; round < bench.times; round++) {
      // Past the time in which a file's state does not yet prove its content.
      await Bun.sleep(200);
      cached.push((await run(build)).milliseconds);
      writeFileSync(small, Buffer.alloc(1000, `round ${round} `));
      Bun.spawnSync(["sync"]);
      built.bough.push((await run(build)).milliseconds);
      built.docker.push(await buildByDocker());
      const before = counting.bytes();
      pushed.bough.push((await run(push)).milliseconds);
      pushed.bytes.push(counting.bytes() - before);
      pushed.docker.push(await pushByDocker());
    }
    const name = "COPY of 300 MB, COPY of 1 KB, changed";
    const [bough, unchanged] = [median(built.bough), median(cached)];
    return [
      {
        case: name,
        bough: `${bough.toFixed(0)} ms`,
        against: `${unchanged.toFixed(0)} ms, nothing changed`,
        figure: bough / unchanged,
        unit: "times",
        goal: { atMost: 1.5 },
      },
      fasterRow(name, { bough, other: median(built.docker) }, "docker build", 2),
      fasterRow(
        `${name}, push`,
        { bough: median(pushed.bough), other: median(pushed.docker) },
        "docker push",
        2,
      ),
      {
        case: `${name}, push`,
        bough: "sent to the registry",
        against: "",
        figure: median(pushed.bytes) / 2 ** 20,
        unit: "MiB",
        goal: { atMost: 1 },
      },
    ];
  } finally {
    counting.close();
    await registry.stop();
  }
}

/** Passes connections on to a server, and counts the bytes that clients send. */
async function countSent(to: string) {
  let bytes = 0;
  const [hostname = "", port] = to.split(":");
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const target = connect(Number(port), hostname);
    client.on("data", (data) => {
      bytes += data.length;
    });
    client.pipe(target).pipe(client);
    for (const each of [client, target]) {
      sockets.add(each);
      each.on("error", () => {
        client.destroy();
        target.destroy();
      });
    }
  });
  const listening = Promise.withResolvers<void>();
  server.listen(0, "127.0.0.1", listening.resolve);
  await listening.promise;
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the proxy has no port");
  return {
    host: `127.0.0.1:${address.port}`,
    bytes: () => bytes,
    close() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

function fasterRow(
  name: string,
  { bough, other }: { bough: number; other: number },
  peer: string,
  atLeast: number,
): Row {
  return {
    case: name,
    bough: `${bough.toFixed(0)} ms`,
    against: `${other.toFixed(0)} ms, ${peer}`,
    figure: other / bough,
    unit: "times as fast",
    goal: { atLeast },
  };
}
