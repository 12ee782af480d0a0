import type { Invocation } from "../command-line/command.ts";
import { printResult } from "../command-line/result.ts";
import { shortLayer } from "../references/working-branch.ts";

/** Prints a session's branch and the image that it is at. */
export function printBranch(
  invocation: Invocation,
  { session, branch, image }: { session: string; branch: string; image: string },
): void {
  printResult(invocation, {
    id: image,
    json: { session, branch, image },
    table: (style) => ({
      header: ["SESSION", "BRANCH", "IMAGE"],
      rows: [[session, { shown: shortLayer(branch, style), value: branch }, image]],
    }),
  });
}
