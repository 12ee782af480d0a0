/**
 * A process that needs an image until it is killed: `bun fetching-process.ts DIRECTORY IMAGE DIGEST`. The store of the blob DIGEST
 * does not respond; the process prints a line when it is asked for it.
 */
import { openBlobSource } from "../../src/registry/open-blob-store.ts";
import { TestEngine } from "./engine.ts";

const [directory = "", image = "", digest = ""] = process.argv.slice(2);
const engine = await TestEngine.open({
  directory,
  openBlobSource(address, dependencies) {
    const store = openBlobSource(address, dependencies);
    return {
      ...store,
      openBlob(blob, signal, checks) {
        if (blob.digest !== digest) return store.openBlob(blob, signal, checks);
        process.stdout.write("asked\n");
        return new Promise(() => undefined);
      },
    };
  },
});
await engine.run(image, "true");
