import type { BuildResult } from "../../builder/result.ts";
import type { Invocation } from "../command-line/command.ts";
import { printResult } from "../command-line/result.ts";

/** Prints the result of a build. */
export function printImage(invocation: Invocation, { image, tags, session, exported }: BuildResult): void {
  printResult(invocation, {
    id: image,
    json: {
      image,
      tag: tags[0] ?? null,
      tags,
      session,
      digest: exported[0]?.descriptor.digest ?? null,
      exported,
    },
    table: () => {
      const rows = (tags.length === 0 ? [null] : tags).map((tag) =>
        [image, tag, session].map((whole) => whole && { whole }),
      );
      return { header: ["IMAGE", "TAG", "SESSION"], rows };
    },
  });
}
