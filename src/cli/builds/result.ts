import type { BuildResult } from "../../builder/result.ts";
import { renderTable } from "../../terminal/table.ts";
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
    table: (style) => {
      const rows = (tags.length === 0 ? ["-"] : tags).map((tag) =>
        [image, tag, session].map((whole) => ({ whole })),
      );
      return renderTable(["IMAGE", "TAG", "SESSION"], rows, style);
    },
  });
}
