/** bough on its own engine in containers of the engine's image, as the manual starts them for an ordinary user. */
import { chmodSync, mkdtempSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../support/bough.ts";
import { compileBough } from "../support/compiled.ts";
import { startDocker } from "../support/docker.ts";
import { containerRows, engineImage, importEngineImage } from "../support/engine-image.ts";
import { writeFiles } from "../support/files.ts";
import { importBase } from "./engine-place.ts";
import type { Place } from "./place.ts";
import { startProgram } from "./program.ts";

export async function openContainerPlace(): Promise<Place> {
  const docker = await startDocker(join(temporaryDirectory(), "docker"));
  await importEngineImage(docker, temporaryDirectory());
  const shared = temporaryDirectory();
  const flags = containerRows().get("user")?.split(" ") ?? [];
  const mounts = [`${compileBough()}:/usr/local/bin/bough:ro`, `${shared}:${shared}`, "state:/home/bough"];
  let containers = 0;
  const place: Place = {
    base: "base:1",
    makeDirectory(files) {
      const directory = mkdtempSync(join(shared, "place-"));
      writeFiles(directory, files);
      chmodSync(directory, 0o777);
      return directory;
    },
    path: (path) => path,
    start(directory, words, options = {}) {
      const name = `place-${containers++}`;
      const variables = Object.entries({ BOUGH_DOCKER: "1", ...options.environment });
      const command = [
        ...docker.command,
        ...["run", "--rm", "--interactive", "--name", name, "--network", "host", "--workdir", directory],
        ...flags,
        ...mounts.flatMap((mount) => ["--volume", mount]),
        ...variables.flatMap(([variable, value]) => ["--env", `${variable}=${value}`]),
        ...[engineImage, "bough", ...words],
      ];
      const { environment } = docker;
      const started = startProgram({ command, directory: "/", environment, input: "null" }, options);
      return {
        ...started,
        // docker's command line is not what runs bough.
        kill: () => void Bun.spawnSync([...docker.command, "kill", name], { env: environment }),
      };
    },
    close: docker.close,
  };
  chmodSync(shared, 0o755);
  await importBase(place);
  return place;
}
