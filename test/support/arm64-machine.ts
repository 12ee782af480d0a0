/** Preloaded into `bough serve`: it says that its machine is for linux/arm64. The programs of test images are the real machine's. */
import { readFileSync } from "node:fs";

const own = "`linux/${machineArchitecture()}`";

Bun.plugin({
  name: "arm64-machine",
  setup(build) {
    build.onLoad({ filter: /\/src\/image\/platform\.ts$/ }, ({ path }) => {
      const text = readFileSync(path, "utf8");
      if (!text.includes(own)) throw new Error(`${path} does not have ${own}`);
      return { contents: text.replace(own, '"linux/arm64"'), loader: "ts" };
    });
  },
});
