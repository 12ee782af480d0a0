/** A process that gives commands secrets until it is killed: `bun building-child.ts DIRECTORY BASE SECRET`. */
import { TestEngine } from "../../support/engine.ts";

const [directory = "", base = "", secret = ""] = process.argv.slice(2);
const engine = await TestEngine.open({ directory });
const value = Buffer.from(secret).toString("base64");
process.stdout.write("ready\n");
for (;;) {
  await engine.run(base, "test $(cat /s) = $TOKEN_OF_SOME && touch /made", {
    mounts: [
      { type: "secret", target: "/s", value, env: "TOKEN_OF_SOME" },
      { type: "cache", target: "/c", id: "x", sharing: "locked" },
    ],
  });
}
