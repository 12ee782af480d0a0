/** A process that copies between images of an engine until it is killed: `bun copying-child.ts DIRECTORY`. */
import { TestEngine } from "../../support/engine.ts";

const engine = await TestEngine.open({ directory: process.argv[2] ?? "" });
const base = await engine.importBase();
const source = await engine.run(base, "mkdir -p /many/d; cd /many; seq 500 | xargs touch; cp [1-9]* d");
process.stdout.write("ready\n");
for (let uid = 0; ; uid++) {
  const copies = [{ image: source.image ?? "", sources: ["/many"], destination: "/copy", uid: uid % 2 }];
  await engine.run(base, "", { copies });
}
