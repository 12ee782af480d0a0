/**
 * A process that builds on an engine until it is killed: `bun engine-child.ts DIRECTORY LAYOUT`. It prints a line of JSON
 * before and after each action.
 */
import { TestEngine } from "./engine.ts";

const [directory = "", layout = ""] = process.argv.slice(2);
const engine = await TestEngine.open({ directory });
const say = (line: object) => process.stdout.write(`${JSON.stringify(line)}\n`);

say({ about: "import" });
let image = await engine.importBase("base:1", layout);
say({ done: "base:1", image });
for (let step = 1; ; step++) {
  const { uuid } = await engine.upload(`${process.pid} ${step}`);
  const tag = `step-${process.pid}:${step}`;
  const command = "cp /staged /kept; seq 3000 > /numbers; mkdir -p /d; touch /d/$RANDOM; sleep 0.02";
  say({ about: tag });
  const finished = await engine.run(image, command, {
    files: { "/staged": { uuid, uid: 0, gid: 0, mode: "0644" } },
  });
  image = finished.image ?? "";
  await engine.json("PATCH", `/v1/images/${image}/tag`, { tag });
  say({ done: tag, image, content: `${process.pid} ${step}` });
}
