/** The program for arm64 as a client of `bough serve`, with its processor emulated. */
import { join } from "node:path";
import { compileBoughFor } from "../support/compiled-for.ts";
import { findRoot } from "../support/kept-root.ts";
import type { Place } from "./place.ts";
import { serveEngine } from "./served-engine.ts";
import { clientOf } from "./service-places.ts";

export async function openArm64Place(): Promise<Place> {
  const [{ close, ...service }, libraries] = await Promise.all([serveEngine(), findArm64Libraries()]);
  const program = ["qemu-aarch64-static", "-L", join(libraries, "usr"), compileBoughFor("linux-arm64")];
  return clientOf(service, close, program);
}

/** Returns a directory with the libraries that Bun needs, of Debian's packages. None of them is run to unpack them. */
function findArm64Libraries(): Promise<string> {
  return findRoot({
    name: "arm64-libraries",
    suite: "trixie",
    options: [
      "--variant=extract",
      "--architectures=arm64",
      "--include=libc6,libgcc-s1,libstdc++6",
      "--skip=check/qemu",
    ],
  });
}
